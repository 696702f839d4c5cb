// Ahead-of-time autograd: a function in, a callable with forward and backward graphs out.
//
//     auto step = aot::compile([&](const Tensor& x) { return model(x).square().mean(); });
//     step(x).backward();            // gradients reach x and the model's parameters
//
// The function runs when it is captured, not when it is called. Inputs that it writes are written at each call, outputs
// that are views are views, and gradients flow as if it had run. Captured once for each kind of inputs is everything
// else that it decides by: a condition on a number or a flag that it closes over (a module's `training`, too) and which
// tensors it closes over. Their contents may change, and so may their types, shapes and need for gradients; but where
// another tensor takes the place of one of them, the graphs go on with the first. For modules, nn::compile
// (nn/compile.h) looks all this up at each call; `state` and `context` below do so for other functions.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "umbra/aot/partition.h"
#include "umbra/core/only_result.h"

namespace UMBRA_API umbra {
namespace aot {

/// Turns a graph into something to run: `graph -> function`. The default interprets it.
using GraphCompiler = std::function<ValueFunction(const IntrusivePtr<fx::GraphModule>& module)>;

struct CompileOptions {
  Partitioner partitioner = min_cut_partition;
  /// What tells a partitioner from others, for the cache on disk (aot/disk_cache.h). The library's own are known;
  /// graphs that another one has cut are kept only where it has a key.
  std::function<std::string()> partitioner_key = {};
  /// `inference_compiler` gets the graphs of calls that need no gradients; left out, the forward compiler does.
  GraphCompiler forward_compiler = {}, backward_compiler = {}, inference_compiler = {};
  DecompositionTable decompositions = {};
  /// What tells the table from others, for the cache on disk; without it graphs made by a table are not kept.
  std::function<std::string()> decompositions_key = {};
  /// Writes to inputs that are no part of autograd are carried out by the graphs (copy_).
  bool keep_writes = false;
  /// Where calls have effects, compilers get graphs that make their tokens themselves, rather than take and give them.
  bool unlift_tokens = false;
  /// False: such calls stand in the graphs as they are, without tokens.
  bool tokens = true;
  /// Tensors the function closes over, looked up at each call. They come before the inputs among the graph's inputs.
  std::function<std::vector<Tensor>()> state = {};
  /// What else the function decides by: it is captured anew for each text this gives.
  std::function<std::string()> context = {};
  /// Sizes of inputs and integers become symbols. Graphs serve all calls that keep the guards they were captured with;
  /// others are captured anew. The state's sizes, and those of the first `fixed_inputs` inputs, stay numbers.
  bool dynamic = false;
  size_t fixed_inputs = 0;
  /// How many captures are kept. One more takes the place of the one that was used the longest time ago.
  size_t cache_limit = 64;
  /// What the inputs, the state before them, are called where a capture tells why it does not serve a call.
  std::vector<std::string> input_names = {};
};

/// What became of the calls of a compiled function.
struct CacheInfo {
  size_t hits = 0, misses = 0;                 // calls that found graphs; calls that were captured
  size_t evictions = 0;                        // captures that made place for others
  size_t size = 0, limit = 0;                  // captures that are kept, and how many may be
  std::map<std::string, size_t> reasons = {};  // why calls were captured: the condition of the last used graphs that
                                               // they broke, with the user's line where it is known, and how often
};

/// The graphs of one kind of inputs. The tensors that they were captured with are let go, but for those closed over.
struct CompiledGraphs {
  CallInfo info;
  JointGraph joint;
  Partition partition;
};

/// A compiled function; copies share the graphs. Other shapes, types, needs for gradients, sharing of memory or values
/// that are no tensors (numbers, texts) are captured anew.
class CompiledFunction {
 public:
  CompiledFunction(ValueFunction function, CompileOptions options);
  std::vector<Value> run(const std::vector<Value>& inputs) const;
  /// For functions of one result; an error where there are several.
  template <class... Inputs> Tensor operator()(const Inputs&... inputs) const {
    return umbra::detail::only_result(run({Value(inputs)...}));
  }
  /// For functions of a list of tensors.
  Tensor operator()(const std::vector<Tensor>& inputs) const {
    return umbra::detail::only_result(run(umbra::detail::as_values(inputs)));
  }
  /// The same, only where graphs for such inputs are there: nothing is captured.
  std::optional<std::vector<Value>> run_known(const std::vector<Value>& inputs) const;
  /// Why the graphs that were used last are not for such inputs; empty where there are graphs for them.
  std::string why_not(const std::vector<Value>& inputs) const;
  CacheInfo cache_info() const;
  /// Lets all graphs go, and counts anew.
  void clear_cache() const;
  /// The graphs for inputs like these, captured if need be.
  CompiledGraphs graphs(const std::vector<Value>& inputs) const;
  /// The same as a call would have them: where they come from the cache on disk (aot/disk_cache.h) there is no joint
  /// graph.
  CompiledGraphs prepare(const std::vector<Value>& inputs) const;

 private:
  class Cache;
  std::shared_ptr<Cache> cache_;
};

inline CompiledFunction compile(ValueFunction function, CompileOptions options = {}) {
  return CompiledFunction(std::move(function), std::move(options));
}
template <class F>
requires(!std::is_convertible_v<F, ValueFunction>) CompiledFunction compile(F function, CompileOptions options = {}) {
  return CompiledFunction(umbra::detail::value_function(std::move(function)), std::move(options));
}

}  // namespace aot
}  // namespace umbra
