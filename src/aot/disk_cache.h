// Reading and writing the files of the cache on disk.
#pragma once

#include <optional>

#include "umbra/aot/disk_cache.h"
#include "umbra/aot/partition.h"

namespace umbra::aot {

struct StoredGraphs {
  JointGraph joint;  // without the joint graph itself
  Partition partition;
};

/// The graphs of this key, made for calls like `info`; nothing where there are none, or the file is not right.
std::optional<StoredGraphs> load_graphs(const std::string& key, const CallInfo& info);
/// Conditions on sizes that were found after the analysis.
struct FoundConditions {
  std::vector<const sym::Expression*> guards, assumptions;
  /// Those of an environment beyond the first ones; none where there is none.
  static FoundConditions since(const sym::ShapeEnv* env, size_t guards, size_t assumptions);
};
void store_graphs(const std::string& key, const JointGraph& joint, const Partition& partition,
                  const FoundConditions& found);
/// Notes that a capture is not kept.
void note_bypass(const std::string& why);
/// The library that made a file: its version, and the file it was loaded from.
std::string library_identity();

}  // namespace umbra::aot
