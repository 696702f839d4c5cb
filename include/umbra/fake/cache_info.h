// How often fake runs did what they had done before: the figures of PyTorch's cache of fake operators.
//
// Nothing is cached: an operator's metadata costs less than looking it up would. What is counted is which calls a
// cache would have answered, and why it could not have kept the others. Counting starts with the first question.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "umbra/core/value.h"

namespace UMBRA_API umbra {

class FakeModeImpl;
class Operator;

struct FakeCacheInfo {
  int64_t hits = 0;                         // calls like one that was seen before
  int64_t misses = 0;                       // calls that were new
  std::map<std::string, int64_t> bypasses;  // calls that depend on more than metadata, by the reason
  int64_t size = 0;                         // different calls that were seen
};

/// The counts since the last clear_fake_cache_info, by all threads; the first call of either starts the counting.
FakeCacheInfo fake_cache_info();
/// Forgets the counts and the calls that were seen.
void clear_fake_cache_info();
/// Compares the results of a call that was seen before with those it had then, and raises where they look different.
void set_fake_cache_crosscheck(bool on);
bool fake_cache_crosscheck();
/// Everything a call's metadata follow from: the operator, what tensors look like, numbers with their types, the
/// default dtype, inference mode. Calls with equal keys have equal results; `bypass` gets the reason where that cannot
/// be said of the call.
std::string fake_call_key(const Operator& op, FakeModeImpl& mode, ArrayRef<Value> arguments, std::string& bypass);

}  // namespace umbra
