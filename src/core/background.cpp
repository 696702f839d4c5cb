#include "umbra/core/background.h"

#include <future>

namespace umbra {

struct BackgroundTask::State {
  std::future<void> result;  // waits where it is let go
};

BackgroundTask::BackgroundTask(std::function<void()> function)
    : state_(std::make_unique<State>(State{std::async(std::launch::async, std::move(function))})) {}
BackgroundTask::BackgroundTask(BackgroundTask&&) noexcept = default;
BackgroundTask& BackgroundTask::operator=(BackgroundTask&&) noexcept = default;
BackgroundTask::~BackgroundTask() = default;

void BackgroundTask::wait() { state_->result.get(); }

}  // namespace umbra
