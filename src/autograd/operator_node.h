// The node of an operator: runs the gradient formulas of its definition on what they asked to have saved.
#pragma once

#include <map>

#include "autograd/plan.h"
#include "umbra/autograd/saved_tensor.h"

namespace UMBRA_API umbra {
namespace autograd {

class OperatorNode final : public Node {
 public:
  OperatorNode(const Operator& op, const Plan& plan) : op_(op), plan_(plan) {}

  /// Which formulas are needed, one bit each; before anything is saved.
  void set_needed(uint64_t formulas) { needed_ = formulas; }
  /// Whether a needed formula names this argument's value.
  bool saves_argument(int argument) const;
  /// Keeps what the needed formulas name, as far as it is known before the call.
  void save_arguments(const Value* frame);
  /// Keeps the results they name. `own`: this node is their history.
  void save_results(const Value* frame, bool own);
  /// The results belong to a view whose base has been given this history.
  void set_rebased(const IntrusivePtr<Node>& base_node);

  /// What it keeps under a name: "self", "result", "self_sym_sizes"; none where its formulas name no such thing. An
  /// error where it was let go.
  std::optional<Value> saved(std::string_view name) const;
  /// The names of all that its formulas keep.
  std::vector<std::string> saved_names() const;
  /// The tensor that it keeps under a name; null where there is none.
  SavedTensor* saved_tensor(std::string_view name);

  std::string name() const override { return plan_.name; }
  Gradients apply(Gradients incoming) override;
  void release_saved() override;
  const Operator& op() const { return op_; }
  /// The edges of one argument: one for a tensor, as many as there are tensors for a list.
  struct Range {
    size_t first, count;
  };
  Range edges_of(int argument) const;
  /// How many tensors a list among the differentiable arguments has; in the order of the arguments.
  void add_list_length(size_t length) { list_lengths_.push_back(length); }

 protected:
  void release_resources() override;

 private:
  template <class F> void each_needed(F&& visit) const;
  bool needs_argument(int argument) const;
  struct Found {
    bool named = false;  // by one of the formulas
    bool kept = false;   // for one that is needed
    bool is_tensor = false;
    size_t slot = 0;
  };
  Found find(std::string_view name) const;
  Value save(const Value& value, bool is_output);
  /// What hooks gave back in one pass: they are asked once for a tensor, also where several formulas take it.
  using Unpacked = std::map<int64_t, Tensor>;
  Value restore(const Value& saved, Unpacked& unpacked) const;
  Value source_value(const Gradient& gradient, size_t source, size_t slot, const Gradients& incoming,
                     Unpacked& unpacked) const;
  Value incoming_value(const Gradients& incoming, int index) const;
  void run(const Gradient& gradient, size_t first_slot, const Gradients& incoming, Unpacked& unpacked,
           Gradients& out) const;

  const Operator& op_;
  const Plan& plan_;
  uint64_t needed_ = 0;
  std::vector<size_t> list_lengths_;
  // One value for each source of each needed formula, in order. A tensor is kept as its position in tensors_.
  std::vector<Value> values_;
  std::vector<SavedTensor> tensors_;
};

/// A gradient came by an operator that has none.
class MissingDerivative : public Error {
 public:
  using Error::Error;
};

/// Recorded where an operator has no gradient: an error once a gradient comes by.
class NotImplementedNode final : public Node {
 public:
  explicit NotImplementedNode(const Operator& op) : op_(op) {}
  std::string name() const override { return "NotImplemented"; }
  Gradients apply(Gradients incoming) override;

 private:
  const Operator& op_;
};

}  // namespace autograd
}  // namespace umbra
