// How far a long piece of work has come, on a terminal: "umbra: 12 of 100".
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace umbra::cli {

/// Says nothing where standard error is no terminal, and nothing of work that is done within half a second.
class Progress {
 public:
  Progress(const char* what, size_t total) : what_(what), total_(total), shows_(isatty(STDERR_FILENO)) {}
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step() {
    ++done_;
    Clock::time_point now = Clock::now();
    if (!shows_ || total_ < 2 || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    shown_ = true;
    std::fprintf(stderr, "\rumbra: %s %zu of %zu\033[K", what_, done_, total_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  const char* what_;
  size_t total_, done_ = 0;
  bool shows_, shown_ = false;
  Clock::time_point next_ = Clock::now() + std::chrono::milliseconds(500);
};

}  // namespace umbra::cli
