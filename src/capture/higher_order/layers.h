// What the layers share in dealing with operators that take functions.
#pragma once

#include "umbra/capture/higher_order.h"

namespace umbra {

/// The call with other values; its functions stay what they are.
FunctionCall with_values(const FunctionCall& call, const std::function<Value(const Value&)>& change);

/// Whether the call is to be captured, or seen by a mode: then functions are handed on, not run.
bool is_captured(const FunctionCall& call);

/// The call with functions that use nothing but their inputs: what they close over is added to the operands. An error
/// if a function writes an operand or a tensor from outside, or gives one back.
FunctionCall close_functions(const FunctionCall& call);

/// The call with functions that are given these values, which they close over.
FunctionCall closed_over(const FunctionCall& call, const std::vector<Value>& values);

/// The same errors for a call that is not captured, and those of results that do not fit, found without running a
/// function on data. Gives what the functions close over.
std::vector<Tensor> check_functions(const FunctionCall& call);

/// Tells a call that is recorded as a whole what its functions can ask for: the grad mode, and which of their inputs
/// need gradients; what is carried also where only later steps make it so, which a function must not tell from the
/// first.
void note_history(FunctionCall& call);

/// Inputs as a function sees them that has such a history, for as long as it runs; tensors that had none are given one.
/// A derivative that it takes by one of them, or by a tensor from outside, must not lead through another.
class HistoryScope {
 public:
  HistoryScope(const InputHistory& history, const std::vector<Value>& inputs);
  ~HistoryScope();
  HistoryScope(const HistoryScope&) = delete;
  /// The function has run; its inputs keep their history until the end.
  void leave();

 private:
  std::vector<Tensor> marked_;
  bool inside_ = true;
};

/// A function of a call, as it was given.
ValueFunction plain_function(const FunctionCall& call, size_t which);

/// A function of such a call, as it runs for its values: it sees what the user's code may ask for (which inputs need
/// gradients, the grad mode), and what it gives has no history.
ValueFunction with_history(const FunctionCall& call, size_t which);

/// What a call gives that is recorded above autograd: with a history where it has one in a run, whose gradient is made
/// and recorded where the program takes it. The call's functions are closed.
std::vector<Value> with_recorded_gradient(const FunctionCall& closed, std::vector<Value> results);

/// Whether the call is differentiated.
bool needs_gradients(const FunctionCall& call);

/// Whether a function that is recorded now has a history that nobody uses.
bool shows_history();

/// What each function does with inputs of which such ones need gradients: what it gives, and its calls.
struct Rehearsed {
  std::vector<std::vector<Value>> results;
  std::vector<IntrusivePtr<fx::GraphModule>> graphs;
};
Rehearsed rehearse_functions(const FunctionCall& call, const std::vector<bool>& tracked);

/// What of a recorded function repeats a run that the forward pass has made.
struct RepeatedRun {
  size_t detached = 0;             // its first calls, which cut inputs off from their history
  const fx::Node* last = nullptr;  // its last call; null: all of the function is repeated
};

/// The function as it runs on such inputs, for a backward pass, recorded: what it refers to may be gone when it is
/// called. What the forward pass did besides computing is not done again, and an error where a result of that is
/// needed: random numbers would be others. `repeated` is filled in while the function runs.
ValueFunction record_function(const ValueFunction& function, const std::vector<Value>& inputs,
                              const RepeatedRun& repeated = {});

/// The same where functionalisation is on: the recorded function is one of the values below it. A graph has lost what
/// its calls' history was (a custom function's gradient, a part without one): where what is given has a history that is
/// followed, `differentiated` runs instead.
ValueFunction record_lowered(const ValueFunction& function, const std::vector<Value>& inputs,
                             const ValueFunction& differentiated, const RepeatedRun& repeated = {});

/// "torch.cond"
std::string public_name(const FunctionCall& call);

/// An error if a recorded function writes its inputs or gives them back.
void refuse_effects(const FunctionCall& call, const fx::Graph& graph, const std::vector<Value>& results);

}  // namespace umbra
