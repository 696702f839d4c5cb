#include "umbra/dispatch/profile.h"

#include <utility>

namespace umbra {

namespace {

std::string sizes_text(const Tensor& t) {
  std::string out;
  if (t.defined())
    for (const SymInt& size : t.sym_sizes()) out += (out.empty() ? "" : ", ") + to_string(size);
  return "[" + out + "]";
}

std::string sizes_text(const Value& argument) {
  if (argument.is_tensor()) return sizes_text(argument.tensor_ref());
  if (!argument.is_tensor_list()) return "[]";
  std::string out;
  for (const Tensor& t : argument.tensor_list()) out += (out.empty() ? "" : ", ") + sizes_text(t);
  return "[" + out + "]";
}

}  // namespace

Profile::Profile(Options options) : options_(options) {
  if (!options_.memory) return;
  MemoryObserver* before = set_memory_observer(this);
  if (before) {
    set_memory_observer(before);
    fail("memory is being counted already: one profile or estimate at a time can do so");
  }
  observes_ = true;
}

Profile::~Profile() { stop(); }

void Profile::stop() {
  while (!open_.empty()) close();
  if (std::exchange(observes_, false)) set_memory_observer(nullptr);
}

int64_t Profile::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_).count();
}

void Profile::open(std::string name, bool region) {
  std::lock_guard lock(mutex_);
  if (!open_.empty()) calls_[open_.back()].bytes += bytes_;
  bytes_ = 0;
  ProfiledCall& call = calls_.emplace_back();
  call.name = std::move(name);
  call.region = region;
  call.parent = open_.empty() ? -1 : static_cast<int64_t>(open_.back());
  open_.push_back(calls_.size() - 1);
  call.begin = now();
}

void Profile::close() {
  std::lock_guard lock(mutex_);
  ProfiledCall& call = calls_[open_.back()];
  call.end = now();
  call.bytes += std::exchange(bytes_, 0);
  open_.pop_back();
}

void Profile::begin(std::string name) { open(std::move(name), true); }

void Profile::end() {
  check(!open_.empty() && calls_[open_.back()].region, "no region of the profile is open");
  close();
}

bool Profile::handle(const Operator& op, Value* frame) {
  struct Closing {
    Profile& profile;
    ~Closing() { profile.close(); }
  };
  open(op.schema().space + "::" + op.schema().name, false);
  Closing closing{*this};
  if (options_.sizes)
    for (size_t i = 0; i < op.argument_count(); ++i) calls_.back().sizes.push_back(sizes_text(frame[i]));
  op.call(frame);
  return true;
}

void Profile::made(const void* storage, int64_t bytes, bool) noexcept {
  std::lock_guard lock(mutex_);
  int64_t& known = storages_[storage];
  bytes_ += bytes - std::exchange(known, bytes);
}

void Profile::gone(const void* storage) noexcept {
  std::lock_guard lock(mutex_);
  auto found = storages_.find(storage);
  if (found == storages_.end()) return;
  bytes_ -= found->second;
  storages_.erase(found);
}

}  // namespace umbra
