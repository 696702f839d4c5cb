// How long the operators of a run take: each call below autograd, and the regions that the user has named.
//
//     auto profile = make_counted<Profile>(Profile::Options{});
//     { EnterMode scope(profile); model(x); }
//     for (const ProfiledCall& call : profile->calls()) ...
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <unordered_map>

#include "umbra/core/memory.h"
#include "umbra/dispatch/dispatcher.h"

namespace UMBRA_API umbra {

/// A call of an operator, or a region. Times are nanoseconds since the profile was made.
struct ProfiledCall {
  std::string name;
  int64_t begin = 0, end = 0;
  int64_t parent = -1;  // the call or region it is part of, by its place in the list
  bool region = false;
  int64_t bytes = 0;               // taken, less given back, outside of what is part of it
  std::vector<std::string> sizes;  // of its arguments: "[2, 3]", "[[2], [3]]" for a list of tensors, "[]" for the rest
};

/// A mode that notes the calls of the thread that has entered it. It sees what a user's mode sees: composites have come
/// apart.
class Profile final : public DispatchMode, private MemoryObserver {
 public:
  struct Options {
    bool sizes = false, memory = false;
  };
  explicit Profile(Options options);
  ~Profile() override;

  bool handle(const Operator& op, Value* frame) override;
  /// A region begins; it is part of the one that is open.
  void begin(std::string name);
  /// The region that was begun last ends.
  void end();
  /// Ends what is still open; memory is seen no longer.
  void stop();
  const std::vector<ProfiledCall>& calls() const { return calls_; }

 private:
  void open(std::string name, bool region);
  void close();
  int64_t now() const;
  void made(const void* storage, int64_t bytes, bool has_data) noexcept override;
  void gone(const void* storage) noexcept override;

  Options options_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<ProfiledCall> calls_;
  std::vector<size_t> open_;
  std::mutex mutex_;  // storages of all threads are seen
  std::unordered_map<const void*, int64_t> storages_;
  int64_t bytes_ = 0;  // since the last call began or ended
  bool observes_ = false;
};

}  // namespace umbra
