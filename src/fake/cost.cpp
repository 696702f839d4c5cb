#include "umbra/fake/cost.h"

#include <algorithm>

#include "fake/counted.h"
#include "umbra/autograd/running.h"

namespace umbra {

namespace {

/// The trace that sees the call of an operator that takes functions, from its handler to where the functions run.
thread_local CostTrace* g_sees_call = nullptr;

template <class T> struct Restored {
  T& place;
  T before;
  Restored(T& place, T value) : place(place), before(std::exchange(place, value)) {}
  ~Restored() { place = before; }
};

}  // namespace

// ---- the report ----

const CostOperation* CostReport::peak_operation() const {
  if (timeline.empty() || timeline[peak_point].operation < 0) return nullptr;
  return &operations[static_cast<size_t>(timeline[peak_point].operation)];
}

int64_t CostReport::flops() const {
  int64_t sum = 0;
  for (const CostOperation& o : operations) sum += o.flops;
  return sum;
}

std::map<std::string, int64_t> CostReport::flops_by_scope() const {
  std::map<std::string, int64_t> out;
  for (const CostOperation& o : operations) {
    if (o.flops == 0) continue;
    std::string name = scopes[static_cast<size_t>(o.scope)];
    for (; !name.empty(); name.resize(name.rfind('.') == std::string::npos ? 0 : name.rfind('.'))) out[name] += o.flops;
    out[""] += o.flops;
  }
  return out;
}

std::map<std::string, int64_t> CostReport::flops_by_operator() const {
  std::map<std::string, int64_t> out;
  for (const CostOperation& o : operations)
    if (o.flops) out[std::string(o.name)] += o.flops;
  return out;
}

// ---- the trace ----

CostTrace::CostTrace(Counts counts) : counts_(counts) {
  report_.scopes.emplace_back();
  report_.phases.emplace_back();
  scope_numbers_[""] = 0;
}

CostTrace::~CostTrace() { stop(); }

void CostTrace::start() {
  check(!running_, "this cost trace is running already");
  MemoryObserver* other = set_memory_observer(this);
  if (other) {
    set_memory_observer(other);
    fail("another cost trace is running");
  }
  running_ = true;
}

void CostTrace::stop() {
  if (std::exchange(running_, false)) set_memory_observer(nullptr);
}

void CostTrace::hold(const Tensor& tensor) {
  const StorageImpl* storage = tensor.storage().get();
  made(storage, storage->bytes().has_hint() ? storage->bytes().hint() : 0, storage->has_data());
}

void CostTrace::change(int64_t bytes) {
  in_use_ += bytes;
  report_.timeline.push_back({in_use_, operation_});
  if (in_use_ <= report_.peak) return;
  report_.peak = in_use_;
  report_.peak_point = report_.timeline.size() - 1;
}

void CostTrace::made(const void* storage, int64_t bytes, bool has_data) noexcept {
  if (!has_data && counts_ == Counts::WithData) return;
  std::lock_guard lock(mutex_);
  int64_t& known = storages_[storage];
  if (bytes != known) change(bytes - known);
  known = bytes;
}

void CostTrace::gone(const void* storage) noexcept {
  std::lock_guard lock(mutex_);
  auto found = storages_.find(storage);
  if (found == storages_.end()) return;
  if (found->second) change(-found->second);
  storages_.erase(found);
}

void CostTrace::begin(std::string phase) {
  std::lock_guard lock(mutex_);
  report_.phase_ends.push_back(in_use_);
  report_.phases.push_back(std::move(phase));
}

void CostTrace::note_scope() {
  scopes_by_node_.emplace_back(autograd::upcoming_sequence_number(), scope_stack_.empty() ? 0 : scope_stack_.back());
}

void CostTrace::enter_scope(const std::string& name) {
  auto [found, is_new] = scope_numbers_.try_emplace(name, static_cast<int32_t>(report_.scopes.size()));
  if (is_new) report_.scopes.push_back(name);
  scope_stack_.push_back(found->second);
  note_scope();
}

void CostTrace::leave_scope() {
  check(!scope_stack_.empty(), "there is no scope to leave");
  scope_stack_.pop_back();
  note_scope();
}

int32_t CostTrace::scope_now() const {
  const autograd::Node* node = autograd::running_node();
  if (!node || !scope_stack_.empty()) return scope_stack_.empty() ? 0 : scope_stack_.back();
  auto after = std::upper_bound(scopes_by_node_.begin(), scopes_by_node_.end(), node->sequence_number(),
                                [](uint64_t place, const auto& entry) { return place < entry.first; });
  return after == scopes_by_node_.begin() ? 0 : std::prev(after)->second;
}

bool CostTrace::handle(const Operator& op, Value* frame) {
  Restored during(operation_, static_cast<int32_t>(report_.operations.size()));
  Restored sees_call(g_sees_call, op.takes_functions() ? this : nullptr);
  int32_t phase = static_cast<int32_t>(report_.phases.size()) - 1;
  report_.operations.push_back({op.name(), scope_now(), phase, 0});
  size_t number = report_.operations.size() - 1;
  bool all = counts_ == Counts::All;
  int64_t bytes = 0;
  if (has_flops(op) || has_workspace(op)) {
    std::vector<Value> arguments(frame, frame + op.argument_count());  // results take their places
    op.call(frame);
    report_.operations[number].flops = count_flops(op, arguments.data(), frame);
    if (all) bytes = count_workspace(op, arguments.data(), frame);
  } else {
    if (all) bytes = resolved_bytes(op, frame);
    op.call(frame);
  }
  if (bytes) {
    std::lock_guard lock(mutex_);
    change(bytes);
    change(-bytes);
  }
  return true;
}

CostTrace::OneOf::~OneOf() {
  std::vector<CostOperation>& operations = trace_.report_.operations;
  begins_.push_back(operations.size());
  size_t dearest = 0;
  int64_t most = -1;
  for (size_t way = 0; way + 1 < begins_.size(); ++way) {
    int64_t sum = 0;
    for (size_t i = begins_[way]; i < begins_[way + 1]; ++i) sum += operations[i].flops;
    if (sum > most) most = sum, dearest = way;
  }
  for (size_t i = begins_.front(); i < begins_.back(); ++i)
    if (i < begins_[dearest] || i >= begins_[dearest + 1]) operations[i].flops = 0;
}

FunctionsCounted::FunctionsCounted() : trace_(std::exchange(g_sees_call, nullptr)) {
  if (trace_) scope_.emplace(IntrusivePtr<Mode>(trace_));
}

FunctionsCounted::~FunctionsCounted() { g_sees_call = trace_; }

CostReport CostTrace::report() const {
  CostReport out = report_;
  out.phase_ends.push_back(in_use_);
  return out;
}

}  // namespace umbra
