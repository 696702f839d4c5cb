// What a graph's calls begin for others to end, where a run ends in between.
#pragma once

#include <cstddef>

namespace umbra::fx {

/// Two functions for what calls begin on this thread: how much is begun and not ended, and that all but so much ends.
/// A run that fails ends what it began.
void set_unfinished(size_t (*count)(), void (*end)(size_t kept));

/// Ends what is begun in its scope, where the scope ends by an exception.
class EndUnfinished {
 public:
  EndUnfinished();
  ~EndUnfinished();
  EndUnfinished(const EndUnfinished&) = delete;

 private:
  size_t count_;
  int exceptions_;
};

}  // namespace umbra::fx
