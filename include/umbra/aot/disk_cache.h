// Compiled graphs kept on disk, so that another process need not trace them again.
//
//     UMBRA_CACHE_DIR=/var/cache/me ./train          # or: aot::set_cache_directory("/var/cache/me");
//
// A function is still run once on tensors without data: what it does then, operator by operator, the kinds of its
// inputs, the thread's modes, the options and the version of the library are the key. Joint tracing and partitioning
// are what a hit saves. Graphs of symbolic sizes are found by calls of the sizes that they were captured with; the
// guards that tracing has left come back with them. Not kept are graphs of sizes that only the run tells, of constants
// above a megabyte, of operators of a user's library, and those with code of the user's in the backward (functions with
// gradients of their own, hooks) or in a table of decompositions; they are counted by their reason.
//
// Several processes may use one folder: files appear by renaming, whole or not at all, and are named by their key. A
// file that is damaged, or made by another version, is replaced.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {
namespace aot {

/// The folder; empty: nothing is kept, which is what a process starts with unless UMBRA_CACHE_DIR names one.
std::string cache_directory();
void set_cache_directory(std::string directory);

struct DiskCacheInfo {
  size_t hits = 0, misses = 0;                  // looked up, and found or not
  size_t stored = 0;                            // files written
  size_t damaged = 0;                           // files that were not what they should be
  std::map<std::string, size_t> bypassed = {};  // captures that are not kept, by the reason
};
/// Of this process.
DiskCacheInfo disk_cache_info();

}  // namespace aot
}  // namespace umbra
