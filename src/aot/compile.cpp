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
                                        const std::vector<Tensor>& inputs) {
  autograd::WithoutSavedTensorHooks of_the_run_alone;
  auto e = std::make_shared<Executable>();
  CompiledGraphs& graphs = e->graphs;
  graphs.info = analyse(function, inputs);
  if (!is_grad_enabled())
    for (PrimalInfo& p : graphs.info.primals) p.requires_grad = false;
  graphs.joint = trace_joint(function, graphs.info, {options.decompositions});
  if (graphs.joint.is_differentiable()) {
    graphs.partition = options.partitioner(graphs.joint);
    e->forward = prepare(options.forward_compiler, graphs.partition.forward);
    e->backward = prepare_later(options.backward_compiler, graphs.partition.backward);
  } else {
    graphs.partition.forward = graphs.joint.module;
    graphs.partition.forward_outputs = graphs.joint.forward_outputs();
    e->forward = prepare(options.inference_compiler ? options.inference_compiler : options.forward_compiler,
                         graphs.partition.forward);
  }
  graphs.info.inputs.clear();
  for (size_t i = 0; i < graphs.info.input_count(); ++i) graphs.info.primals[i].tensor = Tensor();
  return e;
}

}  // namespace

class CompiledFunction::Cache {
 public:
  Cache(ValueFunction function, CompileOptions options)
      : function_(std::move(function)), options_(std::move(options)) {}

  /// A call's inputs as the graphs have them: the state comes first.
  std::vector<Tensor> with_state(const std::vector<Tensor>& inputs) const {
    std::vector<Tensor> all = options_.state ? options_.state() : std::vector<Tensor>();
    all.insert(all.end(), inputs.begin(), inputs.end());
    return all;
  }

  /// The graphs for a call of these inputs, of which the last `given` are the function's own.
  std::shared_ptr<const Executable> find(const std::vector<Tensor>& inputs, size_t given) {
    Signature key{options_.context ? options_.context() : "", describe_tensors(inputs)};
    {
      std::lock_guard lock(mutex_);
      auto found = entries_.find(key);
      if (found != entries_.end() &&
          found->second.closed_over == describe_tensors(closed_over(found->second.executable->graphs.info)))
        return found->second.executable;
    }
    auto function = [this, given](const std::vector<Value>& all) {
      return function_({all.end() - static_cast<ptrdiff_t>(given), all.end()});
    };
    Entry made{build(function, options_, inputs), {}};
    made.closed_over = describe_tensors(closed_over(made.executable->graphs.info));
    std::lock_guard lock(mutex_);
    return (entries_[std::move(key)] = std::move(made)).executable;
  }

 private:
  struct Entry {
    std::shared_ptr<const Executable> executable;
    std::vector<int64_t> closed_over;  // what the tensors closed over were like
  };
  ValueFunction function_;
  CompileOptions options_;
  std::mutex mutex_;
  std::map<Signature, Entry> entries_;
};

CompiledFunction::CompiledFunction(ValueFunction function, CompileOptions options)
    : cache_(std::make_shared<Cache>(std::move(function), std::move(options))) {}

CompiledGraphs CompiledFunction::graphs(const std::vector<Tensor>& inputs) const {
  return cache_->find(cache_->with_state(inputs), inputs.size())->graphs;
}

std::vector<Value> CompiledFunction::run(const std::vector<Value>& inputs) const {
  check<NotImplementedError>(
      !dispatch_state().include.has(DispatchKey::Level),
      "a compiled function cannot be called inside a transform (grad, vjp, jvp, vmap) yet: compile "
      "the transformed function instead");
  std::vector<Tensor> tensors;
  for (const Value& v : inputs) tensors.push_back(v.tensor());
  std::vector<Tensor> all = cache_->with_state(tensors);
  return execute(cache_->find(all, tensors.size()), all);
}

}  // namespace umbra::aot
