// How far a long piece of work has come, on a terminal: "umbra: run 12 of 100", "umbra: wrote 1.2 GB of 3.4 GB".
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "files.h"
#include "umbra/io/file.h"

namespace umbra::cli {

/// Says nothing where standard error is no terminal, and nothing of work that is done within half a second.
class Progress {
 public:
  Progress(const char* what, size_t total) : what_(what), total_(total), shows_(isatty(STDERR_FILENO)) {}
  virtual ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(size_t count = 1) {
    done_ += count;
    Clock::time_point now = Clock::now();
    if (!shows_ || total_ < 2 || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    shown_ = true;
    std::fprintf(stderr, "\rumbra: %s %s of %s\033[K", what_, text(done_).c_str(), text(total_).c_str());
  }

 protected:
  virtual std::string text(size_t count) const { return std::to_string(count); }

 private:
  using Clock = std::chrono::steady_clock;
  const char* what_;
  size_t total_, done_ = 0;
  bool shows_, shown_ = false;
  Clock::time_point next_ = Clock::now() + std::chrono::milliseconds(500);
};

/// How much has been written to a file, of so many bytes.
class WriteProgress final : public Progress, public io::WriteWatcher {
 public:
  explicit WriteProgress(size_t bytes) : Progress("wrote", bytes) { io::watch_writes(this); }
  ~WriteProgress() override { io::watch_writes(nullptr); }
  void wrote(size_t bytes) override { step(bytes); }

 private:
  std::string text(size_t count) const override { return amount(static_cast<int64_t>(count), "B"); }
};

}  // namespace umbra::cli
