// Ahead-of-time autograd: a function in, a callable with forward and backward graphs out.
//
//     auto step = aot::compile([&](const Tensor& x) { return model(x).square().mean(); });
//     step(x).backward();            // gradients reach x and the model's parameters
#pragma once

#include <memory>

#include "umbra/aot/partition.h"

namespace umbra::aot {

/// Turns a graph into something to run: `(graph, example inputs) -> function`. The default interprets it.
using GraphCompiler = std::function<ValueFunction(const IntrusivePtr<fx::GraphModule>& module)>;

struct CompileOptions {
  Partitioner partitioner = min_cut_partition;
  GraphCompiler forward_compiler = {}, backward_compiler = {};
  DecompositionTable decompositions = {};
};

/// The graphs of one set of input shapes.
struct CompiledGraphs {
  CallInfo info;
  JointGraph joint;
  Partition partition;
};

/// A compiled function; copies share the graphs. Other shapes, types or needs for gradients are captured anew.
class CompiledFunction {
 public:
  CompiledFunction(ValueFunction function, CompileOptions options);
  std::vector<Value> run(const std::vector<Value>& inputs) const;
  template <class... Tensors> Tensor operator()(const Tensors&... inputs) const { return run({Value(inputs)...}).at(0).tensor(); }
  /// The graphs for inputs like these, captured if need be.
  const CompiledGraphs& graphs(const std::vector<Tensor>& inputs) const;

 private:
  struct Cache;
  std::shared_ptr<Cache> cache_;
};

inline CompiledFunction compile(ValueFunction function, CompileOptions options = {}) {
  return CompiledFunction(std::move(function), std::move(options));
}
template <class F>
  requires(!std::is_convertible_v<F, ValueFunction>)
CompiledFunction compile(F function, CompileOptions options = {}) {
  return CompiledFunction(umbra::detail::value_function(std::move(function)), std::move(options));
}

}  // namespace umbra::aot
