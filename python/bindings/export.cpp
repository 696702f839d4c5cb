// Exported programs: captured from a Python module, read from and written to files, run.
#include "umbra/export/export.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "autograd.h"
#include "capture.h"
#include "export/used_symbols.h"
#include "tensor_type.h"
#include "umbra/capture/tracer.h"
#include "umbra/export/decompose.h"
#include "umbra/export/input_check.h"
#include "umbra/export/unlift.h"
#include "umbra/io/onnx.h"
#include "umbra/io/program.h"
#include "umbra/io/pt2_program.h"
#include "umbra/io/safetensors.h"
#include "umbra/sym/print.h"
#include "umbra/view/page.h"
#include "values.h"

namespace umbra::python {

namespace {

/// A program behind a Python object.
struct ProgramObject {
  std::shared_ptr<ExportedProgram> program;
  std::shared_ptr<const InputCheck> check = {};  // made at the first call

  void check_inputs(const std::vector<Value>& inputs) {
    if (!check) check = std::make_shared<const InputCheck>(*program);
    check->run(inputs);
    if (Tracer* tracer = active_tracer(DispatchKey::PreProxy); tracer && tracer->sizes_after_inputs) {
      std::vector<fx::Node*> nodes;
      for (const Value& input : inputs)
        nodes.push_back(input.is_tensor() ? tracer->node_of(input.tensor_ref()) : nullptr);
      take_names(check->calls(), tracer->graph(), nodes);
    }
  }
};

// ---- nested arguments: (kind, keys, type, children, context), or None for a leaf ----

constexpr const char* kTreeKinds[] = {"leaf", "tuple", "list", "dict", "namedtuple"};

TreeSpec read_tree(nb::handle description) {
  if (description.is_none()) return TreeSpec::leaf();
  nb::tuple fields = nb::borrow<nb::tuple>(description);
  TreeSpec spec;
  std::string kind = nb::cast<std::string>(fields[0]);
  for (size_t i = 0; i < std::size(kTreeKinds); ++i)
    if (kind == kTreeKinds[i]) spec.kind = static_cast<TreeSpec::Kind>(i);
  spec.keys = nb::cast<std::vector<std::string>>(fields[1]);
  spec.type = nb::cast<std::string>(fields[2]);
  for (nb::handle child : nb::borrow<nb::sequence>(fields[3])) spec.children.push_back(read_tree(child));
  spec.context = nb::cast<std::string>(fields[4]);
  return spec;
}

nb::object describe_tree(const TreeSpec& spec) {
  if (spec.kind == TreeSpec::Kind::Leaf) return nb::none();
  nb::list children;
  for (const TreeSpec& child : spec.children) children.append(describe_tree(child));
  return nb::make_tuple(kTreeKinds[static_cast<int>(spec.kind)], spec.keys, spec.type, children, spec.context);
}

/// (path, leaves given, their tree, leaves returned, their tree)
std::vector<RecordedCall> read_calls(nb::handle calls) {
  std::vector<RecordedCall> out;
  for (nb::handle call : nb::borrow<nb::sequence>(calls)) {
    nb::tuple fields = nb::borrow<nb::tuple>(call);
    out.push_back({nb::cast<std::string>(fields[0]), read_values(fields[1]), read_values(fields[3]),
                   read_tree(fields[2]), read_tree(fields[4])});
  }
  return out;
}

// ---- dimensions: (hint, name, min, max, scale, offset) ----

Dim read_dim(nb::handle description) {
  auto [hint, name, least, most, scale, offset] =
      nb::cast<std::tuple<std::string, std::string, int64_t, std::optional<int64_t>, int64_t, int64_t>>(description);
  Dim::Bounds bounds{least, most.value_or(std::numeric_limits<int64_t>::max())};
  if (hint == "auto") return Dim::automatic(bounds);
  if (hint == "dynamic") return Dim::dynamic(bounds);
  if (hint == "static") return Dim::fixed(bounds);
  return scale * Dim(name, bounds) + offset;
}

DynamicShapes read_dynamic_shapes(nb::handle shapes) {
  DynamicShapes out;
  for (auto [path, dims] : nb::borrow<nb::dict>(shapes))
    for (auto [position, dim] : nb::borrow<nb::dict>(dims))
      out[nb::cast<std::string>(path)].emplace(nb::cast<int64_t>(position), read_dim(dim));
  return out;
}

/// The module's forward as a function from trees to a tree; Python's has leaves in, (leaves, description of their tree)
/// out.
auto forward_function(nb::handle callable) {
  return [function = Callable(callable)](const Tree& arguments, const Tree& keywords) {
    std::vector<Value> leaves = flatten(arguments).first, named = flatten(keywords).first;
    leaves.insert(leaves.end(), named.begin(), named.end());
    nb::tuple result = nb::borrow<nb::tuple>(owned(PyObject_CallOneArg(function.get(), wrap_values(leaves).ptr())));
    return unflatten(read_values(result[0]), read_tree(result[1]));
  };
}

ProgramObject export_module(nb::handle forward, nb::handle leaves, nb::handle in_spec, const NamedTensors& parameters,
                            const std::vector<std::tuple<std::string, Tensor, bool>>& buffers,
                            const NamedTensors& attributes, nb::callable assigned_buffers,
                            const std::vector<std::string>& modules, nb::handle dynamic_shapes,
                            std::vector<std::string> argument_names,
                            std::map<std::string, std::string> argument_sources, nb::callable calls, nb::object draft,
                            bool defer_guards, bool force_specializations, bool flat_names) {
  ExportSource source;
  source.forward = forward_function(forward);
  source.parameters = parameters;
  for (const auto& [name, tensor, persistent] : buffers) source.buffers.push_back({name, tensor, persistent});
  source.attributes = attributes;
  source.assignments = [&] { return nb::cast<std::vector<std::pair<Tensor, Tensor>>>(assigned_buffers()); };
  source.calls = [&] { return read_calls(calls()); };
  for (const std::string& path : modules) source.modules.push_back({path});
  Tree inputs = unflatten(read_values(leaves), read_tree(in_spec));
  ExportOptions options{.dynamic_shapes = read_dynamic_shapes(dynamic_shapes),
                        .argument_names = std::move(argument_names),
                        .argument_sources = std::move(argument_sources),
                        .flat_names = flat_names,
                        .defer_guards = defer_guards,
                        .force_specializations = force_specializations};
  std::vector<sym::DraftAnswer> answers;
  if (!draft.is_none()) options.draft = &answers;
  ProgramObject program{
      std::make_shared<ExportedProgram>(export_program(source, inputs.children[0], inputs.children[1], options))};
  for (const sym::DraftAnswer& answer : answers)
    draft.attr("append")(nb::make_tuple(answer.condition, answer.location ? answer.location->text() : std::string()));
  return program;
}

nb::object wrap_value(const Value& value) { return nb::steal(checked(wrap(value))); }

constexpr const char* kInputKinds[] = {"PARAMETER",  "BUFFER",         "CONSTANT_TENSOR",
                                       "USER_INPUT", "CONSTANT_INPUT", "TOKEN"};

nb::list input_specs(const ProgramObject& p) {
  nb::list out;
  for (const InputSpec& s : p.program->signature.inputs)
    out.append(
        nb::make_tuple(kInputKinds[static_cast<int>(s.kind)], s.name, s.target, s.persistent, wrap_value(s.value)));
  return out;
}
nb::list output_specs(const ProgramObject& p) {
  nb::list out;
  for (const OutputSpec& s : p.program->signature.outputs)
    out.append(nb::make_tuple(to_string(s.kind), s.name, s.target, wrap_value(s.value)));
  return out;
}
/// Takes over a signature that was changed in Python, in the form that `inputs` and `outputs` have it.
void set_signature(ProgramObject& p, nb::sequence inputs, nb::sequence outputs) {
  GraphSignature signature;
  for (nb::handle item : inputs) {
    nb::tuple spec = nb::borrow<nb::tuple>(item);
    auto kind = std::find(std::begin(kInputKinds), std::end(kInputKinds), nb::cast<std::string>(spec[0]));
    check<ValueError>(kind != std::end(kInputKinds), "inputs of the kind ", nb::cast<std::string>(spec[0]),
                      " are not in Umbra yet");
    signature.inputs.push_back({static_cast<InputKind>(kind - std::begin(kInputKinds)), nb::cast<std::string>(spec[1]),
                                nb::cast<std::string>(spec[2]), nb::cast<bool>(spec[3]),
                                read_values(nb::make_tuple(spec[4])).at(0)});
  }
  for (nb::handle item : outputs) {
    nb::tuple spec = nb::borrow<nb::tuple>(item);
    OutputSpec out{OutputKind::UserOutput, nb::cast<std::string>(spec[1]), nb::cast<std::string>(spec[2]),
                   read_values(nb::make_tuple(spec[3])).at(0)};
    std::string name = nb::cast<std::string>(spec[0]);
    bool known = false;
    for (int kind = 0; kind <= static_cast<int>(OutputKind::Token) && !known; ++kind) {
      out.kind = static_cast<OutputKind>(kind);
      known = name == to_string(out.kind);
    }
    check<ValueError>(known, "outputs of the kind ", name, " are not in Umbra yet");
    signature.outputs.push_back(std::move(out));
  }
  p.program->signature = std::move(signature);
  p.check.reset();
}
nb::object call_signature(const ModuleCall& call) {
  if (!call.signature) return nb::none();
  auto arguments = [](const std::vector<CallArgument>& list) {
    nb::list out;
    for (const CallArgument& a : list) out.append(nb::make_tuple(a.name, wrap_value(a.value)));
    return out;
  };
  const CallSignature& s = *call.signature;
  return nb::make_tuple(arguments(s.inputs), arguments(s.outputs), describe_tree(s.in_spec), describe_tree(s.out_spec));
}
nb::list range_constraints(const ProgramObject& p) {
  nb::list out;
  for (const RangeConstraint& r : p.program->ranges)
    out.append(nb::make_tuple(r.expression, integer_object(r.range.lower),
                              r.range.upper == sym::kInfinity ? nb::none() : integer_object(r.range.upper)));
  return out;
}
/// `table`: what operators are recorded as; `own`: operators that come apart as the core table or their definitions
/// say; `kept`: whether a composite, by its name, stays whole.
ProgramObject decompose_program(const ProgramObject& p, nb::handle table, const std::vector<std::string>& own,
                                nb::handle kept) {
  DecomposeOptions options{.table = read_decompositions(table)};
  static const DecompositionTable core = core_decompositions();
  for (const std::string& name : own) {
    const Operator& op = get_operator(name);
    if (const DecompositionTable::Function* parts = core.find(op)) options.table.set(op, *parts);
  }
  if (!kept.is_none())
    options.keeps = [function = Callable(kept)](const Operator& op) {
      WithLock lock;
      return nb::cast<bool>(owned(PyObject_CallOneArg(function.get(), nb::cast(op.name()).ptr())));
    };
  return {std::make_shared<ExportedProgram>(decompose(*p.program, options))};
}

/// A program with a graph of its own and the same weights.
ProgramObject copy_program(const ProgramObject& p) {
  ExportedProgram copy = *p.program;
  copy.graph_module = copy.graph_module->copy();
  return {std::make_shared<ExportedProgram>(std::move(copy))};
}

/// The program with another graph for its own; inputs and outputs are the same by their places.
ProgramObject with_graph(const ProgramObject& p, const GraphModuleObject& module) {
  ExportedProgram made = *p.program;
  made.graph_module = module.module;
  made.graph().keep_alive(made.shape_env);
  std::vector<fx::Node*> inputs = made.graph().placeholders();
  fx::Arguments outputs = made.graph().outputs();
  check<ValueError>(inputs.size() == made.signature.inputs.size() && outputs.size() == made.signature.outputs.size(),
                    "a pass has changed the number of a program's inputs or outputs");
  for (size_t i = 0; i < inputs.size(); ++i) made.signature.inputs[i].name = inputs[i]->name();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].node()) made.signature.outputs[i].name = outputs[i].node()->name();
  return {std::make_shared<ExportedProgram>(std::move(made))};
}

io::OnnxOptions onnx_options(const nb::dict& options) {
  auto given = [&]<class T>(const char* name, T& value) {
    if (options.contains(name)) value = nb::cast<T>(options[name]);
  };
  io::OnnxOptions made;
  given("input_names", made.input_names);
  given("output_names", made.output_names);
  given("dimension_names", made.dimension_names);
  given("parameters", made.parameters);
  given("parameters_are_inputs", made.parameters_are_inputs);
  given("opset", made.opset);
  given("external_data", made.external_data);
  return made;
}

void bind_program(nb::module_& m) {
  nb::class_<ProgramObject>(m, "_ExportedProgram")
      .def_prop_ro("graph_module", [](const ProgramObject& p) { return GraphModuleObject{p.program->graph_module}; })
      .def_prop_ro("inputs", &input_specs)
      .def_prop_ro("outputs", &output_specs)
      .def_prop_ro("state", [](const ProgramObject& p) { return p.program->state; })
      .def_prop_ro("constants", [](const ProgramObject& p) { return p.program->constants; })
      .def_prop_ro("ranges", &range_constraints)
      .def_prop_ro("float_symbols", [](const ProgramObject& p) { return float_symbols(p.program->graph()); })
      .def_prop_ro("guards", [](const ProgramObject& p) { return p.program->guards; })
      .def_prop_ro("in_spec", [](const ProgramObject& p) { return describe_tree(p.program->in_spec); })
      .def_prop_ro("out_spec", [](const ProgramObject& p) { return describe_tree(p.program->out_spec); })
      .def_prop_ro("argument_names", [](const ProgramObject& p) { return p.program->argument_names; })
      .def_prop_ro("modules",
                   [](const ProgramObject& p) {
                     nb::list out;
                     for (const ModuleCall& c : p.program->module_calls)
                       out.append(nb::make_tuple(c.path, call_signature(c)));
                     return out;
                   })
      .def_prop_ro("dialect", [](const ProgramObject& p) { return p.program->dialect; })
      .def("set_signature", &set_signature)
      .def("set_state", [](ProgramObject& p, NamedTensors state) { p.program->state = std::move(state); })
      .def("set_constants",
           [](ProgramObject& p, NamedTensors constants) { p.program->constants = std::move(constants); })
      .def("json",
           [](const ProgramObject& p) {
             std::string text = io::pt2::write_program(io::to_pt2(*p.program).program);
             return nb::bytes(text.data(), text.size());
           })
      .def("keep_used_state", [](ProgramObject& p) { keep_used_state(*p.program); })
      .def("check_inputs", [](ProgramObject& p, nb::handle inputs) { p.check_inputs(read_values(inputs)); })
      .def("decompose", &decompose_program, nb::arg("table"), nb::arg("own"), nb::arg("kept").none())
      .def_prop_ro("missing_operators", [](const ProgramObject& p) { return missing_operators(*p.program); })
      .def("copy", &copy_program)
      .def("unlift", [](const ProgramObject& p) { return GraphModuleObject{unlift(*p.program)}; })
      .def("page",
           [](ProgramObject& p, std::string title) { return program_page(*p.program, {.title = std::move(title)}); })
      .def("with_graph", &with_graph)
      .def("to_onnx",
           [](const ProgramObject& p, nb::dict options) {
             std::string bytes = io::to_onnx(*p.program, onnx_options(options));
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("save_onnx", [](const ProgramObject& p, const std::string& path,
                           nb::dict options) { io::save_onnx(path, *p.program, onnx_options(options)); })
      .def_prop_rw(
          "example_inputs",
          [](const ProgramObject& p) {
            return nb::bytes(p.program->example_inputs.data(), p.program->example_inputs.size());
          },
          [](ProgramObject& p, nb::bytes file) { p.program->example_inputs = std::string(file.c_str(), file.size()); })
      .def("__str__", [](const ProgramObject& p) { return to_string(*p.program); });
}

}  // namespace

void bind_export(nb::module_& m) {
  bind_program(m);
  m.def("_export", &export_module, nb::arg("forward"), nb::arg("leaves"), nb::arg("in_spec").none(),
        nb::arg("parameters"), nb::arg("buffers"), nb::arg("attributes"), nb::arg("assigned_buffers"),
        nb::arg("modules"), nb::arg("dynamic_shapes"), nb::arg("argument_names"), nb::arg("argument_sources"),
        nb::arg("calls"), nb::arg("draft").none(), nb::arg("defer_guards"), nb::arg("force_specializations"),
        nb::arg("flat_names") = false);
  m.def("_load_programs", [](const std::string& path) {
    io::Pt2Archive archive = io::load_pt2(path);
    std::vector<std::pair<std::string, ProgramObject>> programs;
    for (const io::Pt2Program& stored : archive.programs)
      programs.emplace_back(stored.name, ProgramObject{std::make_shared<ExportedProgram>(io::from_pt2(stored))});
    return std::pair(std::move(programs), archive.extra_files);
  });
  m.def("_save_programs",
        [](const std::string& path, const std::vector<std::pair<std::string, ProgramObject>>& programs,
           NamedTexts extra_files) {
          io::Pt2Archive archive;
          for (const auto& [name, program] : programs) {
            archive.programs.push_back(io::to_pt2(*program.program));
            archive.programs.back().name = name;
          }
          archive.extra_files = std::move(extra_files);
          io::save_pt2(path, archive);
        });
  m.def("_core_decompositions", [] {
    std::vector<std::string> names;
    DecompositionTable core = core_decompositions();
    for (const Operator* op : all_operators())
      if (op->is_composite() || core.find(*op)) names.push_back(op->name());
    return names;
  });
  m.def("_load_safetensors", [](const std::string& path) { return io::load_safetensors(path); });
  m.def("_save_safetensors", [](const std::string& path, const NamedTensors& tensors,
                                const std::vector<std::pair<std::string, std::string>>& metadata) {
    io::save_safetensors(path, tensors, metadata);
  });
}

}  // namespace umbra::python
