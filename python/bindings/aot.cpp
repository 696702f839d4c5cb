// Ahead-of-time autograd for Python: functions of lists of tensors, with compilers for the graphs written in Python.
#include "aot/guards.h"
#include "autograd.h"
#include "capture.h"
#include "compiled_call.h"
#include "tensor_type.h"
#include "umbra/aot/disk_cache.h"
#include "umbra/core/deterministic.h"
#include "umbra/dispatch/writes.h"

namespace umbra::python {

namespace {

/// `compiler(module) -> (callable, takes a list, graph module or None)`; None interprets the graph.
aot::GraphCompiler graph_compiler(nb::handle compiler) {
  if (compiler.is_none()) return {};
  return [compile = Callable(compiler)](const IntrusivePtr<fx::GraphModule>& module) {
    WithLock lock;
    return run_compiled(nb::handle(compile.get())(GraphModuleObject{module}));
  };
}

fx::GraphModule& module_of(nb::handle object) { return *nb::cast<GraphModuleObject&>(object).module; }

/// Min-cut, in the memory that the configuration allows at this moment.
aot::Partition within_budget(const aot::JointGraph& joint) {
  WithLock lock;
  nb::object budget = nb::module_::import_("umbra._functorch.config").attr("activation_memory_budget");
  return aot::budget_partition(joint, nb::cast<double>(budget));
}

/// "default", "min_cut", or `function(joint graph, primals, forward outputs) -> (forward graph, backward graph)`.
aot::Partitioner partitioner_of(nb::handle partitioner) {
  if (nb::isinstance<nb::str>(partitioner))
    return nb::cast<std::string>(partitioner) == "default" ? aot::default_partition : within_budget;
  return [cut = Callable(partitioner)](const aot::JointGraph& joint) {
    WithLock lock;
    size_t outputs = joint.tokens + joint.forward_outputs();
    nb::object parts = nb::handle(cut.get())(GraphModuleObject{joint.module}, joint.tokens + joint.primals, outputs);
    IntrusivePtr<fx::GraphModule> forward(&module_of(parts[0])), backward(&module_of(parts[1]));
    return aot::partition_of(std::move(forward), std::move(backward), outputs);
  };
}

/// A joint graph, as make_fx or an export may have made it, cut in two.
nb::tuple cut(const GraphModuleObject& module, const std::string& partitioner, size_t primals, size_t outputs) {
  aot::JointGraph joint;
  joint.module = module.module;
  joint.primals = primals;
  joint.tangents = module.module->graph().placeholders().size() - primals;
  joint.differentiable = true;
  joint.results.resize(outputs);
  aot::Partition parts = partitioner_of(nb::cast(partitioner))(joint);
  return nb::make_tuple(GraphModuleObject{parts.forward}, GraphModuleObject{parts.backward});
}

/// What a table of decompositions is made of, where all of it is the library's own; else nothing.
std::optional<std::string> key_of_table(nb::handle table) {
  std::string key;
  if (table.is_none()) return key;
  for (auto [op, function] : nb::borrow<nb::dict>(table)) {
    std::string module = str_of(nb::getattr(function, "__module__", nb::str("")).ptr()),
                name = str_of(nb::getattr(function, "__qualname__", nb::str("<>")).ptr());
    bool core = PyObject_HasAttrString(function.ptr(), "_core_operator");
    if (!core && (!module.starts_with("umbra.") || name.find('<') != std::string::npos)) return std::nullopt;
    key += concat(str_of(op.ptr()), " ", core ? std::string("core") : module + "." + name, "\n");
  }
  return key;
}

CompiledObject compile(nb::handle function, nb::handle partitioner, nb::handle forward, nb::handle backward,
                       nb::handle inference, nb::handle decompositions, bool dynamic, size_t fixed_inputs,
                       bool keep_writes, std::vector<std::string> names, bool unlift_tokens, bool tokens) {
  aot::CompileOptions options;
  options.partitioner = partitioner_of(partitioner);
  options.forward_compiler = graph_compiler(forward);
  options.backward_compiler = graph_compiler(backward);
  options.inference_compiler = graph_compiler(inference);
  options.decompositions = read_decompositions(decompositions);
  options.dynamic = dynamic;
  options.fixed_inputs = fixed_inputs;
  options.keep_writes = keep_writes;
  options.unlift_tokens = unlift_tokens;
  options.tokens = tokens;
  options.input_names = std::move(names);
  if (std::optional<std::string> key = key_of_table(decompositions))
    options.decompositions_key = [key = std::move(*key)] { return key; };
  if (nb::isinstance<nb::str>(partitioner))
    options.partitioner_key = [name = nb::cast<std::string>(partitioner)] {
      WithLock lock;
      nb::object budget = nb::module_::import_("umbra._functorch.config").attr("activation_memory_budget");
      return concat(name, " ", nb::cast<double>(budget));
    };
  return {std::make_shared<aot::CompiledFunction>(value_function(function), std::move(options))};
}

nb::dict wrap_graphs(const aot::CompiledGraphs& graphs) {
  nb::dict out;
  auto put = [&](const char* name, const IntrusivePtr<fx::GraphModule>& module) {
    out[name] = module ? nb::cast(GraphModuleObject{module}) : nb::none();
  };
  put("joint", graphs.joint.module);
  put("forward", graphs.partition.forward);
  put("backward", graphs.partition.backward);
  out["tokens"] = graphs.joint.tokens;
  out["backward_tokens"] = graphs.joint.backward_tokens;
  out["forward_outputs"] = graphs.joint.tokens + graphs.joint.forward_outputs();
  out["saved"] = graphs.partition.saved;
  out["saved_bytes"] = graphs.partition.saved_bytes;
  out["info"] = to_string(graphs.info);
  nb::list primals, outputs, arguments;
  for (const aot::ArgumentInfo& a : graphs.info.layout.arguments) arguments.append(a.primal);
  out["arguments"] = arguments;
  for (const aot::PrimalInfo& p : graphs.info.primals) {
    nb::dict primal;
    primal["requires_grad"] = p.requires_grad;
    primal["written"] = p.written;
    primal["tracked"] = p.tracked;
    primal["changes_metadata"] = p.changed || p.replaced;
    primal["is_fake"] = p.tensor.defined() && fake_mode_of(p.tensor) != nullptr;
    primals.append(primal);
  }
  for (const aot::OutputInfo& o : graphs.info.outputs) {
    nb::dict output;
    output["is_tensor"] = o.kind != aot::OutputInfo::Kind::Plain && o.kind != aot::OutputInfo::Kind::Computed;
    output["aliases_input"] = o.kind == aot::OutputInfo::Kind::Input || o.kind == aot::OutputInfo::Kind::InputView;
    output["requires_grad"] = o.requires_grad;
    nb::list sizes;
    for (SymInt s : o.spec.sizes) sizes.append(nb::steal(wrap(Value(s))));
    output["sizes"] = sizes;
    outputs.append(output);
  }
  out["primals"] = primals;
  out["outputs"] = outputs;
  return out;
}

nb::dict wrap_counts(const std::map<std::string, size_t>& counts) {
  nb::dict out;
  for (const auto& [text, count] : counts) out[text.c_str()] = count;
  return out;
}

nb::dict wrap_disk_info() {
  aot::DiskCacheInfo info = aot::disk_cache_info();
  nb::dict out;
  out["hits"] = info.hits;
  out["misses"] = info.misses;
  out["stored"] = info.stored;
  out["damaged"] = info.damaged;
  out["bypassed"] = wrap_counts(info.bypassed);
  return out;
}

nb::dict wrap_info(const aot::CacheInfo& info) {
  nb::dict out;
  out["hits"] = info.hits;
  out["misses"] = info.misses;
  out["evictions"] = info.evictions;
  out["size"] = info.size;
  out["limit"] = info.limit;
  out["reasons"] = wrap_counts(info.reasons);
  return out;
}

}  // namespace

void bind_aot(nb::module_& m) {
  nb::class_<CompiledObject>(m, "_CompiledFunction")
      .def("__call__",
           [](const CompiledObject& c, nb::handle inputs) { return wrap_values(c.function->run(read_values(inputs))); })
      .def("call_known",
           [](const CompiledObject& c, nb::handle inputs) -> nb::object {
             std::optional<std::vector<Value>> results = c.function->run_known(read_values(inputs));
             return results ? nb::object(wrap_values(*results)) : nb::none();
           })
      .def("why_not",
           [](const CompiledObject& c, nb::handle inputs) { return c.function->why_not(read_values(inputs)); })
      .def("cache_info", [](const CompiledObject& c) { return wrap_info(c.function->cache_info()); })
      .def("prepare", [](const CompiledObject& c,
                         nb::handle inputs) { return wrap_graphs(c.function->prepare(read_values(inputs))); })
      .def("graphs", [](const CompiledObject& c, nb::handle inputs) {
        return wrap_graphs(c.function->graphs(read_values(inputs)));
      });
  m.def("_aot_cut", &cut);
  m.def("_thread_modes", &aot::thread_modes);
  m.def("_may_share_elements", &may_share_elements);
  m.def("_aot_compile", &compile, nb::arg("function"), nb::arg("partitioner"), nb::arg("forward").none(),
        nb::arg("backward").none(), nb::arg("inference").none(), nb::arg("decompositions").none(), nb::arg("dynamic"),
        nb::arg("fixed_inputs"), nb::arg("keep_writes"), nb::arg("names") = std::vector<std::string>(),
        nb::arg("unlift_tokens") = false, nb::arg("tokens") = true);
  m.def("_cache_directory", &aot::cache_directory);
  m.def("_set_cache_directory", &aot::set_cache_directory);
  m.def("_disk_cache_info", &wrap_disk_info);
  m.def("_set_deterministic", &set_deterministic_algorithms, nb::arg("enabled"), nb::arg("warn_only") = false);
  m.def("_set_fill_uninitialized_memory", &set_fill_uninitialized_memory);
  m.def("_fill_uninitialized_memory", &fill_uninitialized_memory);
}

}  // namespace umbra::python
