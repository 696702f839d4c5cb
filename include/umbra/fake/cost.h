// What a program costs: memory over time and floating-point operations, by operator and module.
//
//     auto cost = make_counted<CostTrace>(CostTrace::Counts::All);   // a run on fake tensors
//     cost->hold(weights);                                          // what was there before
//     { EnterMode scope(cost);  cost->begin("forward");  ... }
//     cost->report().peak;                                                  // bytes
//
// The storages of fake tensors are counted as if they had memory, so that the same account serves a run on data and one
// without. What kernels take for themselves is seen in a run on data, and counted by `count_workspace` in one without.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "umbra/core/memory.h"
#include "umbra/dispatch/dispatcher.h"

namespace UMBRA_API umbra {

/// One change of the memory in use.
struct MemoryPoint {
  int64_t bytes;      // in use after it
  int32_t operation;  // index of CostReport::operations; -1 outside of operators
};
/// A call of an operator.
struct CostOperation {
  std::string_view name;  // "aten::mm"
  int32_t scope;          // index of CostReport::scopes: the module
  int32_t phase;          // index of CostReport::phases
  int64_t flops;
};

struct CostReport {
  std::vector<std::string> phases, scopes;  // names; the scope of index 0 is the program itself
  std::vector<CostOperation> operations;
  std::vector<MemoryPoint> timeline;
  std::vector<int64_t> phase_ends;  // bytes in use at the end of each phase
  int64_t peak = 0;
  size_t peak_point = 0;  // index of the timeline

  /// The operation at the peak, or null where it was there before any.
  const CostOperation* peak_operation() const;
  int64_t flops() const;
  /// Floating-point operations of each module, those inside it included: "" is the program.
  std::map<std::string, int64_t> flops_by_scope() const;
  std::map<std::string, int64_t> flops_by_operator() const;
};

/// Follows a run: enter it as a mode, and what runs inside is counted.
class CostTrace final : public DispatchMode, private MemoryObserver {
 public:
  /// Which storages count: those with data alone, or those of fake tensors too (a fake run has numbers with data).
  enum class Counts : uint8_t { All, WithData };
  explicit CostTrace(Counts counts);
  ~CostTrace() override;

  /// Counts storages that come and go from here on; one trace at a time.
  void start();
  void stop();
  /// Counts a tensor's storage that was there before, once.
  void hold(const Tensor& tensor);
  /// A part of the run begins: "forward", "backward", "optimizer".
  void begin(std::string phase);
  /// Modules, by their full names; a backward pass finds back into the module whose forward it differentiates.
  void enter_scope(const std::string& name);
  void leave_scope();
  int64_t bytes_in_use() const { return in_use_; }
  size_t operation_count() const { return report_.operations.size(); }
  /// What was seen so far.
  CostReport report() const;

  bool handle(const Operator& op, Value* frame) override;

  /// Ways that a run can go, one after the other in a run without data: the operations of the dearest one count.
  class OneOf {
   public:
    explicit OneOf(CostTrace& trace) : trace_(trace), begins_{trace.operation_count()} {}
    ~OneOf();
    OneOf(const OneOf&) = delete;
    /// One way ends, the next begins.
    void next() { begins_.push_back(trace_.operation_count()); }

   private:
    CostTrace& trace_;
    std::vector<size_t> begins_;
  };

 private:
  friend class FunctionsCounted;
  void made(const void* storage, int64_t bytes, bool has_data) noexcept override;
  void gone(const void* storage) noexcept override;
  void change(int64_t bytes);
  void note_scope();
  int32_t scope_now() const;

  Counts counts_;
  bool running_ = false;
  std::mutex mutex_;  // storages may go on any thread
  std::unordered_map<const void*, int64_t> storages_;
  int64_t in_use_ = 0;
  int32_t operation_ = -1;
  CostReport report_;
  std::unordered_map<std::string, int32_t> scope_numbers_;
  std::vector<int32_t> scope_stack_;
  std::vector<std::pair<uint64_t, int32_t>> scopes_by_node_;  // from which node of the autograd graph on, the scope
};

/// While an operator runs the functions that it takes: the trace that sees the call, if there is one, sees what they
/// do.
class FunctionsCounted {
 public:
  FunctionsCounted();
  ~FunctionsCounted();
  FunctionsCounted(const FunctionsCounted&) = delete;
  CostTrace* trace() const { return trace_; }

 private:
  CostTrace* trace_;
  std::optional<EnterMode> scope_;
};

/// Floating-point operations of a call whose results stand in the frame (a multiply-add counts two), as PyTorch counts
/// them: products of matrices, convolutions, attention and their gradients; 0 for all others.
int64_t count_flops(const Operator& op, const Value* arguments, const Value* results);

/// The bytes that the call's kernel takes for itself while it runs, beside the results, where it is known to: 0 for
/// kernels that take none to speak of.
int64_t count_workspace(const Operator& op, const Value* arguments, const Value* results);

/// A page with a plot of memory over time, and tables of what takes it.
std::string cost_page(const CostReport& report, const std::string& title,
                      const std::vector<std::pair<std::string, std::string>>& summary);

}  // namespace umbra
