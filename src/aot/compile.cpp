#include "umbra/aot/compile.h"

#include <algorithm>
#include <mutex>

#include "aot/call_record.h"
#include "aot/disk_cache.h"
#include "aot/graph_bytes.h"
#include "aot/guards.h"
#include "aot/runtime.h"
#include "autograd/hooks_off.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/capture/effects.h"

namespace umbra::aot {

namespace {

ValueFunction interpret(const IntrusivePtr<fx::GraphModule>& module) {
  return [module](const std::vector<Value>& inputs) { return module->run(inputs); };
}

ValueFunction compile_graph(const GraphCompiler& compiler, const IntrusivePtr<fx::GraphModule>& module) {
  return compiler ? compiler(module) : interpret(module);
}

/// The same when it is first needed: many a call is never differentiated.
ValueFunction compile_when_needed(const GraphCompiler& compiler, const IntrusivePtr<fx::GraphModule>& module) {
  struct Later {
    std::mutex mutex;
    ValueFunction function;
  };
  return [compiler, module, later = std::make_shared<Later>()](const std::vector<Value>& inputs) {
    std::unique_lock lock(later->mutex);
    ValueFunction function = later->function;
    lock.unlock();  // a compiler may run any code, that of other threads included
    if (!function) {
      function = compile_graph(compiler, module);
      lock.lock();
      later->function = function;
      lock.unlock();
    }
    return function(inputs);
  };
}

std::vector<Tensor> closed_over(const CallInfo& info) {
  std::vector<Tensor> out;
  for (size_t i = info.input_count(); i < info.primals.size(); ++i) out.push_back(info.primals[i].tensor);
  return out;
}

CallInfo analyse_call(const ValueFunction& function, const std::vector<Value>& inputs, const AnalysisOptions& options) {
  CallInfo info = analyse(function, inputs, options);
  if (!is_grad_enabled() && !info.computes_gradients())  // a part of the function may enable gradients
    for (PrimalInfo& p : info.primals) p.requires_grad = false;
  return info;
}

/// Joint graph and partition of a call that has been analysed.
void trace(const ValueFunction& function, const CompileOptions& options, CompiledGraphs& graphs) {
  graphs.joint = trace_joint(function, graphs.info, {options.decompositions, options.keep_writes});
  if (graphs.joint.differentiable) {
    graphs.partition = options.partitioner(graphs.joint);
  } else {
    graphs.partition.forward = graphs.joint.module;
    graphs.partition.forward_outputs = graphs.joint.forward_outputs();
  }
}

/// The name of a partitioner of the library's own, or what it is said to be; empty where nobody knows.
std::string partitioner_key(const CompileOptions& options) {
  if (options.partitioner_key) return options.partitioner_key();
  using Function = Partition (*)(const JointGraph&);
  const Function* function = options.partitioner.target<Function>();
  if (function && *function == min_cut_partition) return "min_cut";
  return function && *function == default_partition ? "default" : "";
}

/// Analysis, joint graph and partition of a call, by way of the cache on disk.
void trace_stored(const ValueFunction& function, const CompileOptions& options, const std::vector<Value>& inputs,
                  const AnalysisOptions& analysis, CompiledGraphs& graphs) {
  CallRecord record;
  graphs.info = analyse_call(record.watch(function), inputs, analysis);
  std::string why_not, recorded = record.finish(graphs.info, why_not), cut = partitioner_key(options);
  if (cut.empty()) why_not = "a partitioner without a key";
  if (!options.decompositions.empty() && !options.decompositions_key) why_not = "a table of decompositions";
  const sym::ShapeEnv* env = graphs.info.mode->shape_env();
  size_t guards = env ? env->guards().size() : 0, assumptions = env ? env->assumptions().size() : 0;
  std::string key;
  try {
    key = concat(library_identity(), "\n", cut, "\n", options.keep_writes, options.dynamic, options.tokens, "\n",
                 options.decompositions_key ? options.decompositions_key() : std::string(), "\n",
                 Guards(inputs, inputs.size()).key(), analysis.fixed_inputs, recorded);
  } catch (const NotStorable& reason) {
    why_not = reason.why;
  }
  if (!why_not.empty()) {
    note_bypass(why_not);
  } else if (std::optional<StoredGraphs> found = load_graphs(key, graphs.info)) {
    graphs.joint = std::move(found->joint);
    graphs.partition = std::move(found->partition);
    return;
  }
  trace(function, options, graphs);
  if (why_not.empty())
    store_graphs(key, graphs.joint, graphs.partition, FoundConditions::since(env, guards, assumptions));
}

/// A graph with effects gets a token at each call, first or last among its inputs, and nobody looks at the one it
/// gives.
ValueFunction with_token(ValueFunction run, bool first) {
  return [run = std::move(run), first](std::vector<Value> inputs) {
    inputs.insert(first ? inputs.begin() : inputs.end(), Value(make_token()));
    std::vector<Value> results = run(inputs);
    results.erase(first ? results.begin() : results.end() - 1);
    return results;
  };
}

ValueFunction prepare_backward(const CompileOptions& options, const CompiledGraphs& graphs) {
  const IntrusivePtr<fx::GraphModule>& module = graphs.partition.backward;
  // A compiler may ask about sizes: the guards that leaves have to be there before another call is let in.
  ValueFunction run = options.dynamic ? compile_graph(options.backward_compiler, module)
                                      : compile_when_needed(options.backward_compiler, module);
  return graphs.joint.backward_tokens > 0 && !options.unlift_tokens ? with_token(std::move(run), false) : run;
}

ValueFunction prepare_forward(const CompileOptions& options, const CompiledGraphs& graphs) {
  bool inference = !graphs.joint.differentiable && options.inference_compiler;
  ValueFunction run =
      compile_graph(inference ? options.inference_compiler : options.forward_compiler, graphs.partition.forward);
  return graphs.joint.tokens > 0 && !options.unlift_tokens ? with_token(std::move(run), true) : run;
}

void unlift_tokens(CompiledGraphs& graphs) {
  if (graphs.joint.tokens > 0) unlift_token(graphs.partition.forward->graph(), true);
  if (graphs.joint.backward_tokens > 0) unlift_token(graphs.partition.backward->graph(), false);
}

/// How many values a graph gives besides its tokens.
size_t output_count(const fx::GraphModule& module, size_t tokens) { return module.graph().outputs().size() - tokens; }

/// All phases, one after the other. `whole`: the joint graph is wanted too, which no file has.
std::shared_ptr<const Executable> build(const ValueFunction& function, const CompileOptions& options,
                                        const std::vector<Value>& inputs, size_t fixed, bool whole) {
  autograd::WithoutSavedTensorHooks of_the_run_alone;
  auto e = std::make_shared<Executable>();
  CompiledGraphs& graphs = e->graphs;
  AnalysisOptions analysis{options.dynamic, fixed, options.keep_writes, options.tokens};
  if (whole || cache_directory().empty()) {
    graphs.info = analyse_call(function, inputs, analysis);
    trace(function, options, graphs);
  } else {
    trace_stored(function, options, inputs, analysis, graphs);
  }
  if (options.unlift_tokens) unlift_tokens(graphs);
  // Before compilers see the graphs, which they may change.
  e->forward_count = output_count(*graphs.partition.forward, options.unlift_tokens ? 0 : graphs.joint.tokens);
  if (graphs.joint.differentiable)
    e->backward_count =
        output_count(*graphs.partition.backward, options.unlift_tokens ? 0 : graphs.joint.backward_tokens);
  e->forward = prepare_forward(options, graphs);
  if (graphs.joint.differentiable) e->backward = prepare_backward(options, graphs);
  if (options.dynamic) e->sizes = DynamicSizes(graphs.info, fixed);
  e->finish();
  graphs.info.inputs.clear();
  graphs.info.mode = nullptr;
  for (size_t i = 0; i < graphs.info.input_count(); ++i) graphs.info.primals[i].tensor = Tensor();
  return e;
}

}  // namespace

class CompiledFunction::Cache {
 public:
  Cache(ValueFunction function, CompileOptions options)
      : function_(std::move(function)), options_(std::move(options)) {}

  /// A call's inputs as the graphs have them: the state comes first.
  std::vector<Value> with_state(const std::vector<Value>& inputs) const {
    if (!options_.state) return inputs;
    std::vector<Tensor> state = options_.state();
    std::vector<Value> all(state.begin(), state.end());
    all.insert(all.end(), inputs.begin(), inputs.end());
    return all;
  }

  /// The graphs for a call of these inputs; null where there are none.
  std::shared_ptr<const Executable> find(const std::vector<Value>& inputs) {
    std::string context = options_.context ? options_.context() : std::string();
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!entries_[i].accept(context, inputs)) continue;
      if (!entries_[i].is_current()) continue;
      if (i > 0)
        std::rotate(entries_.begin(), entries_.begin() + static_cast<ptrdiff_t>(i),
                    entries_.begin() + static_cast<ptrdiff_t>(i) + 1);
      ++counts_.hits;
      return entries_[0].executable;
    }
    return nullptr;
  }

  /// The same, captured where there are none. The last `given` inputs are the function's own.
  std::shared_ptr<const Executable> find_or_build(const std::vector<Value>& inputs, size_t given, bool whole = false) {
    auto found = find(inputs);
    if (found && (found->graphs.joint.module || !whole)) return found;
    size_t fixed =
        options_.dynamic ? std::min(inputs.size() - given + options_.fixed_inputs, inputs.size()) : inputs.size();
    Entry made{options_.context ? options_.context() : std::string(), Guards(inputs, fixed), {}, {}, {}};
    note_miss(made.context, inputs);
    auto function = [this, given](const std::vector<Value>& all) {
      return function_({all.end() - static_cast<ptrdiff_t>(given), all.end()});
    };
    made.executable = build(function, options_, inputs, fixed, whole);
    if (made.executable->graphs.info.asks_for_leaves) made.guards.require_leaves(inputs);
    std::vector<Tensor> closed = closed_over(made.executable->graphs.info);
    made.closed_over.assign(closed.begin(), closed.end());
    made.closed_guards = Guards(made.closed_over, closed.size());
    std::vector<Entry> dropped;  // goes after the lock is released: what it lets go may be anything
    std::lock_guard lock(mutex_);
    auto stale = std::stable_partition(entries_.begin(), entries_.end(), [](const Entry& e) { return e.is_current(); });
    std::move(stale, entries_.end(), std::back_inserter(dropped));
    entries_.erase(stale, entries_.end());
    entries_.insert(entries_.begin(), made);
    for (; entries_.size() > std::max<size_t>(options_.cache_limit, 1); ++counts_.evictions) {
      dropped.push_back(std::move(entries_.back()));
      entries_.pop_back();
    }
    return made.executable;
  }

  std::string why_not(const std::vector<Value>& inputs) {
    std::string context = options_.context ? options_.context() : std::string();
    std::lock_guard lock(mutex_);
    bool known =
        std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.accept(context, inputs); });
    return known ? std::string() : why_not(context, inputs);
  }

  CacheInfo info() {
    std::lock_guard lock(mutex_);
    CacheInfo out = counts_;
    out.size = entries_.size();
    out.limit = std::max<size_t>(options_.cache_limit, 1);
    return out;
  }

  void clear() {
    std::vector<Entry> dropped;
    std::lock_guard lock(mutex_);
    entries_.swap(dropped);
    counts_ = {};
  }

 private:
  struct Entry {
    std::string context;
    Guards guards;
    std::shared_ptr<const Executable> executable;
    std::vector<Value> closed_over;
    Guards closed_guards;  // what the tensors closed over were like
    bool accept(const std::string& given, ArrayRef<Value> inputs) const {
      return given == context && guards.accept(inputs) && executable->sizes.accept(inputs);
    }
    bool is_current() const { return closed_over.empty() || closed_guards.accept_inputs(closed_over); }
  };

  void note_miss(const std::string& context, ArrayRef<Value> inputs) {
    std::lock_guard lock(mutex_);
    ++counts_.misses;
    ++counts_.reasons[why_not(context, inputs)];
  }

  std::string why_not(const std::string& context, ArrayRef<Value> inputs) const {
    if (entries_.empty()) return "first call";
    const Entry& last = entries_.front();
    if (context != last.context) return "context changed";
    std::string reason = last.guards.broken_by(inputs, options_.input_names);
    if (reason.empty()) reason = last.executable->sizes.broken_by(inputs);
    return reason.empty() ? "a tensor that the function closes over changed" : reason;
  }

  ValueFunction function_;
  CompileOptions options_;
  std::mutex mutex_;
  std::vector<Entry> entries_;  // the last used one first
  CacheInfo counts_;
};

CompiledFunction::CompiledFunction(ValueFunction function, CompileOptions options)
    : cache_(std::make_shared<Cache>(std::move(function), std::move(options))) {}

CompiledGraphs CompiledFunction::graphs(const std::vector<Value>& inputs) const {
  return cache_->find_or_build(cache_->with_state(inputs), inputs.size(), true)->graphs;
}

CompiledGraphs CompiledFunction::prepare(const std::vector<Value>& inputs) const {
  return cache_->find_or_build(cache_->with_state(inputs), inputs.size())->graphs;
}

std::string CompiledFunction::why_not(const std::vector<Value>& inputs) const {
  return cache_->why_not(cache_->with_state(inputs));
}
CacheInfo CompiledFunction::cache_info() const { return cache_->info(); }
void CompiledFunction::clear_cache() const { cache_->clear(); }

namespace {
void refuse_levels() {
  check<NotImplementedError>(
      !dispatch_state().include.has(DispatchKey::Level),
      "a compiled function cannot be called inside a transform (grad, vjp, jvp, vmap) yet: compile "
      "the transformed function instead");
}
}  // namespace

std::vector<Value> CompiledFunction::run(const std::vector<Value>& inputs) const {
  refuse_levels();
  std::vector<Value> all = cache_->with_state(inputs);
  return execute(cache_->find_or_build(all, inputs.size()), all);
}

std::optional<std::vector<Value>> CompiledFunction::run_known(const std::vector<Value>& inputs) const {
  refuse_levels();
  std::vector<Value> all = cache_->with_state(inputs);
  std::shared_ptr<const Executable> executable = cache_->find(all);
  if (!executable) return std::nullopt;
  return execute(executable, all);
}

}  // namespace umbra::aot
