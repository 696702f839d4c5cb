#include "umbra/aot/compile.h"

#include <map>
#include <mutex>

#include "aot/runtime.h"
#include "aot/signature.h"
#include "autograd/hooks_off.h"
#include "umbra/autograd/grad_mode.h"

namespace umbra::aot {

namespace {

ValueFunction interpret(const IntrusivePtr<fx::GraphModule>& module) {
  return [module](const std::vector<Value>& inputs) { return module->run(inputs); };
}

ValueFunction prepare(const GraphCompiler& compiler, const IntrusivePtr<fx::GraphModule>& module) {
  return compiler ? compiler(module) : interpret(module);
}

/// The same when it is first needed: many a call is never differentiated.
ValueFunction prepare_later(const GraphCompiler& compiler, const IntrusivePtr<fx::GraphModule>& module) {
  struct Later {
    std::mutex mutex;
    ValueFunction function;
  };
  return [compiler, module, later = std::make_shared<Later>()](const std::vector<Value>& inputs) {
    std::unique_lock lock(later->mutex);
    ValueFunction function = later->function;
    lock.unlock();  // a compiler may run any code, that of other threads included
    if (!function) {
      function = prepare(compiler, module);
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

/// All phases, one after the other.
std::shared_ptr<const Executable> build(const ValueFunction& function, const CompileOptions& options,
                                        const std::vector<Value>& inputs, size_t fixed) {
  autograd::WithoutSavedTensorHooks of_the_run_alone;
  auto e = std::make_shared<Executable>();
  CompiledGraphs& graphs = e->graphs;
  graphs.info = analyse(function, inputs, {options.dynamic, fixed, options.keep_writes});
  if (!is_grad_enabled())
    for (PrimalInfo& p : graphs.info.primals) p.requires_grad = false;
  graphs.joint = trace_joint(function, graphs.info, {options.decompositions, options.keep_writes});
  if (graphs.joint.differentiable) {
    graphs.partition = options.partitioner(graphs.joint);
    e->forward = prepare(options.forward_compiler, graphs.partition.forward);
    // A compiler may ask about sizes: the guards that leaves have to be there before another call is let in.
    e->backward = options.dynamic ? prepare(options.backward_compiler, graphs.partition.backward)
                                  : prepare_later(options.backward_compiler, graphs.partition.backward);
  } else {
    graphs.partition.forward = graphs.joint.module;
    graphs.partition.forward_outputs = graphs.joint.forward_outputs();
    e->forward = prepare(options.inference_compiler ? options.inference_compiler : options.forward_compiler,
                         graphs.partition.forward);
  }
  if (options.dynamic) e->sizes = DynamicSizes(graphs.info, fixed);
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
    std::vector<Tensor> state = options_.state ? options_.state() : std::vector<Tensor>();
    std::vector<Value> all(state.begin(), state.end());
    all.insert(all.end(), inputs.begin(), inputs.end());
    return all;
  }

  /// The graphs for a call of these inputs, of which the last `given` are the function's own.
  std::shared_ptr<const Executable> find(const std::vector<Value>& inputs, size_t given) {
    size_t fixed =
        options_.dynamic ? std::min(inputs.size() - given + options_.fixed_inputs, inputs.size()) : inputs.size();
    Signature key{options_.context ? options_.context() : "", describe_inputs(inputs, fixed)};
    {
      std::lock_guard lock(mutex_);
      std::vector<Entry>& known = entries_[key];
      std::erase_if(known, [](const Entry& e) { return !e.is_current(); });
      for (const Entry& e : known)
        if (e.executable->sizes.accept(inputs)) return e.executable;
    }
    auto function = [this, given](const std::vector<Value>& all) {
      return function_({all.end() - static_cast<ptrdiff_t>(given), all.end()});
    };
    Entry made{build(function, options_, inputs, fixed), {}};
    made.closed_over = describe_tensors(closed_over(made.executable->graphs.info));
    std::lock_guard lock(mutex_);
    entries_[std::move(key)].push_back(made);
    return made.executable;
  }

 private:
  struct Entry {
    std::shared_ptr<const Executable> executable;
    std::vector<int64_t> closed_over;  // what the tensors closed over were like
    bool is_current() const { return closed_over == describe_tensors(aot::closed_over(executable->graphs.info)); }
  };
  ValueFunction function_;
  CompileOptions options_;
  std::mutex mutex_;
  std::map<Signature, std::vector<Entry>> entries_;
};

CompiledFunction::CompiledFunction(ValueFunction function, CompileOptions options)
    : cache_(std::make_shared<Cache>(std::move(function), std::move(options))) {}

CompiledGraphs CompiledFunction::graphs(const std::vector<Value>& inputs) const {
  return cache_->find(cache_->with_state(inputs), inputs.size())->graphs;
}

std::vector<Value> CompiledFunction::run(const std::vector<Value>& inputs) const {
  check<NotImplementedError>(
      !dispatch_state().include.has(DispatchKey::Level),
      "a compiled function cannot be called inside a transform (grad, vjp, jvp, vmap) yet: compile "
      "the transformed function instead");
  std::vector<Value> all = cache_->with_state(inputs);
  return execute(cache_->find(all, inputs.size()), all);
}

}  // namespace umbra::aot
