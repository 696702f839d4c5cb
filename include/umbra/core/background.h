// A function that runs on a thread of its own, for headers that should not bring those of threads.
#pragma once

#include <functional>
#include <memory>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

class BackgroundTask {
 public:
  explicit BackgroundTask(std::function<void()> function);
  BackgroundTask(BackgroundTask&&) noexcept;
  BackgroundTask& operator=(BackgroundTask&&) noexcept;
  /// Waits; an error that nobody asked for is lost.
  ~BackgroundTask();
  /// Until the function has ended; throws what it threw.
  void wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace umbra
