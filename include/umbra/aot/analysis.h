// The first phase of ahead-of-time autograd: what a function does to its inputs, and what its outputs are to them.
#pragma once

#include <vector>

#include "umbra/aot/arguments.h"
#include "umbra/capture/functionalize.h"

namespace UMBRA_API umbra {
namespace autograd {
class Node;
}
namespace aot {

/// What the function works on: an input, or a tensor that it closes over.
struct PrimalInfo {
  Tensor tensor;             // undefined where the input is another value
  Value plain = {};          // that value, or the symbol that stands for it
  TensorSpec stand_in = {};  // the tensor's look as the graphs know it: sizes can be symbols
  bool requires_grad = false;
  bool written = false;
  bool tracked = false;  // the write is part of autograd's history; not so under NoGrad, or where no gradient is needed
  bool counted = false;  // the write counts as a new version; not so for the statistics that batch_norm keeps
  TensorSpec after = {};  // its look when the function has run: out= may have given it another size
  bool changed = false;   // it is the argument of a MetadataChange
  bool replaced = false;  // it has got another tensor's memory (set_)
};

/// An argument that the function makes a view of itself, in place (t_, as_strided_).
struct MetadataChange {
  size_t argument = 0;
  std::vector<ViewStep> views = {};
  bool tracked = false;  // that is part of autograd's history
};

struct OutputInfo {
  enum class Kind : uint8_t {
    Fresh,             // a value of its own
    Input,             // an input itself
    InputView,         // a view of an input
    Output,            // an earlier output once more
    OutputView,        // a view of another output
    IntermediateView,  // a view, as other outputs are, of something that is no output
    Plain,             // no tensor
    Computed,          // a number that the graphs compute, of sizes or of data
  };
  Kind kind = Kind::Fresh;
  size_t base = 0;  // which source, output or intermediate it is (a view of)
  bool requires_grad = false;
  bool made_without_grad = false;    // a view that was taken under NoGrad
  std::vector<ViewStep> views = {};  // from the base to a view of it
  TensorSpec spec = {};
  Value value = {};  // of a plain one
};

/// A tensor that is no output, of which several outputs are views.
struct IntermediateInfo {
  size_t output = 0;  // one of the views
  bool requires_grad = false;
  TensorSpec spec = {};
};

/// Everything later phases need to know of one call.
struct CallInfo {
  std::vector<Value> inputs;  // those that were analysed
  ArgumentLayout
      layout;  // how the function's arguments are made of the first primals; the other primals are closed over
  std::vector<PrimalInfo> primals;
  std::vector<MetadataChange> changes;  // by argument
  std::vector<OutputInfo> outputs;
  std::vector<IntermediateInfo> intermediates;
  bool has_effects = false;         // it makes calls that hand on tokens (capture/effects.h)
  bool tokens = true;               // such calls do
  bool asks_for_leaves = false;     // it asked whether a tensor that it did not make is a leaf
  IntrusivePtr<FakeModeImpl> mode;  // of the tensors without data that the function runs on; it has the symbols

  size_t input_count() const { return layout.primals(); }
  std::vector<size_t> differentiable_primals() const;
  bool needs_gradients() const;
  /// The same, but for views of inputs: these are taken again at each call, and get their history there.
  bool computes_gradients() const;
  /// What outputs can be or be views of: the arguments, then the primals that are closed over.
  std::vector<Tensor> sources(const std::vector<Tensor>& arguments, const std::vector<Tensor>& primals) const;
};

/// The tensor without its history; no operator is called, so that it can be used while modes are active.
Tensor untracked(const Tensor& tensor);

struct AnalysisOptions {
  /// Sizes of inputs, and integers, become symbols: the graphs are for all calls that keep the guards of
  /// `CallInfo::mode`'s ShapeEnv. Those of the first `fixed_inputs` (a model's parameters), of inputs that share memory
  /// which is written, and of what is closed over stay numbers.
  bool dynamic = false;
  size_t fixed_inputs = 0;
  bool keep_writes = false;  // graphs may write inputs
  bool tokens = true;        // calls with effects hand on tokens; else they stand in the graphs as they are
};

/// While a function is analysed: whether the tensor stands, unchanged, for an input or for a tensor that is closed over
/// and requires gradients, and whether that one is a leaf.
bool stands_for_input(const Tensor& tensor);
bool stands_for_leaf(const Tensor& tensor);
/// Whether the node is where the history of such a stand-in begins.
bool is_origin(const autograd::Node& node);
/// Makes the stand-in of a tensor that requires gradients one too, whatever becomes of gradients; what it was computed
/// from gets them.
void begin_history(const Tensor& stand_in, const Tensor& real);

/// A primal as it is when a graph is captured: a tensor without data, or a plain value.
Value stand_in_for(const CallInfo& info, const PrimalInfo& primal);

/// Runs the function once on fake tensors and reports.
CallInfo analyse(const ValueFunction& function, const std::vector<Value>& inputs, const AnalysisOptions& options = {});
std::string to_string(const CallInfo& info);

}  // namespace aot
}  // namespace umbra
