// fx.Graph and fx.Node: the C++ graph itself, each of its parts one Python object.
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <unordered_set>

#include "graph_objects.h"
#include "lock.h"
#include "operators.h"
#include "umbra/capture/tracer.h"
#include "umbra/core/at_location.h"
#include "umbra/graph/origin.h"
#include "umbra/graph/passes.h"
#include "umbra/graph/print.h"

namespace umbra::python {

namespace {

fx::Node* node_or_null(nb::handle object) { return object.is_none() ? nullptr : nb::cast<NodeHandle&>(object).get(); }

// ---- targets ----

nb::object targets() {
  static PyObject* module = nb::module_::import_("umbra.fx._targets").release().ptr();
  return nb::borrow(module);
}

/// What Python calls a function that graphs name: operator.getitem, umbra.sym_max.
nb::object wrap_target(const fx::Target& target) {
  if (const Operator* op = target.op()) return nb::steal(wrap(*op));
  if (const fx::Function* function = target.function()) return targets().attr("resolve")(function->name);
  return make_text(target.name());
}

/// A subgraph among the arguments is a module to Python's functions.
nb::object wrap_or_module(const Value& value) {
  auto* module = value.tag() == Value::Tag::Object ? dynamic_cast<fx::GraphModule*>(value.object()) : nullptr;
  if (!module) return nb::steal(checked(wrap(value)));
  nb::object type = nb::module_::import_("umbra.fx").attr("GraphModule");
  return type.attr("_wrap")(GraphModuleObject{IntrusivePtr<fx::GraphModule>(module)});
}

Value call_python(const nb::object& function, ArrayRef<Value> arguments) {
  nb::object args = owned(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
  for (size_t i = 0; i < arguments.size(); ++i)
    PyTuple_SET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i), wrap_or_module(arguments[i]).release().ptr());
  return read_any(owned(PyObject_CallObject(function.ptr(), args.ptr())).ptr());
}

/// Functions that graphs call and only Python has.
std::unordered_set<const fx::Function*>& python_functions() {
  static auto* functions = new std::unordered_set<const fx::Function*>();
  return *functions;
}

bool has_slice(const fx::Argument& argument) {
  if (argument.kind() == fx::Argument::Kind::Slice) return true;
  if (!argument.is_container()) return false;
  return std::ranges::any_of(argument.items(), has_slice);
}

/// Whether C++ computes a function of these arguments: its operators are those on numbers, Python's are on anything.
bool computed_natively(const fx::Node& node, const fx::Function& function) {
  if ((!node.kwargs().empty() && !function.positional) || python_functions().contains(&function)) return false;
  if (!function.name.starts_with("operator.")) return true;
  bool selects = function.name == "operator.getitem";
  return std::ranges::all_of(node.inputs(), [&](const fx::Node* input) {
    const Value& value = input->meta.val;
    return selects ? value.is_list() || value.is_tensor_list() : value.is_scalar();
  });
}

/// Whether a graph takes more than the C++ interpreter has: methods, Python's functions and modules with keyword
/// arguments, slices.
bool needs_python(const fx::Graph& graph) {
  for (const fx::Node* node : graph.nodes()) {
    if (node->op() == fx::Op::CallMethod) return true;
    if (node->op() == fx::Op::Placeholder && node->target().name().starts_with('*')) return true;
    if (node->op() == fx::Op::CallModule && !node->kwargs().empty()) return true;
    const fx::Function* function = node->target().function();
    if (function && !computed_natively(*node, *function)) return true;
    if (node->op() != fx::Op::Placeholder && std::ranges::any_of(node->args(), has_slice)) return true;
  }
  return false;
}

fx::Target read_target(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) return fx::Target(std::string(text_of(object.ptr())));
  if (const Operator* op = operator_of(object.ptr())) return fx::Target(*op);
  std::string name = nb::cast<std::string>(targets().attr("name_of")(object));
  const fx::Function* known = fx::find_function(name);
  if (known && known->evaluate) return fx::Target(*known);
  auto* held = new nb::object(nb::borrow(object));  // functions of graphs live as long as the process
  std::string format = known ? known->format : std::string();
  const fx::Function& made =
      fx::define_function({.name = name,
                           .format = std::move(format),
                           .evaluate =
                               [held](ArrayRef<Value> arguments) {
                                 WithLock lock;
                                 return call_python(*held, arguments);
                               },
                           .has_side_effects = nb::cast<bool>(targets().attr("has_side_effects")(object))});
  python_functions().insert(&made);
  return fx::Target(made);
}

fx::Op read_op(const std::string& name) {
  for (fx::Op op : {fx::Op::Placeholder, fx::Op::GetAttr, fx::Op::CallFunction, fx::Op::CallModule, fx::Op::CallMethod,
                    fx::Op::Output})
    if (name == fx::to_string(op)) return op;
  fail<ValueError>("unknown kind of node: ", name);
}

// ---- arguments ----

/// Whether an int is one that a `Value` cannot hold.
bool is_beyond_values(PyObject* number) {
  int overflow = 0;
  return PyLong_AsLongLongAndOverflow(number, &overflow) < -(int64_t{1} << 62) || overflow != 0;
}

fx::Arguments read_arguments(nb::handle sequence) {
  fx::Arguments out;
  for (nb::handle item : nb::borrow<nb::sequence>(sequence)) out.push_back(read_argument(item.ptr()));
  return out;
}
/// A key of a dict as text. What is no text has to be a literal that is written the same everywhere.
std::string read_key(nb::handle key) {
  if (PyUnicode_Check(key.ptr())) return std::string(text_of(key.ptr()));
  bool literal = PyLong_Check(key.ptr()) || PyFloat_Check(key.ptr()) || key.is_none();
  check<NotImplementedError>(literal, "a dict with keys of type ", short_type_name(Py_TYPE(key.ptr())),
                             " cannot be an argument of a graph");
  return fx::kLiteralKey + nb::cast<std::string>(nb::repr(key));
}
nb::object wrap_key(const std::string& key) {
  if (key.empty() || key[0] != fx::kLiteralKey) return make_text(key);
  return nb::module_::import_("ast").attr("literal_eval")(key.substr(1));
}
fx::KeywordArguments read_keywords(nb::handle dict) {
  fx::KeywordArguments out;
  for (auto [key, value] : nb::borrow<nb::dict>(dict)) {
    check(!nb::isinstance<NodeHandle>(key),
          "Keys for dictionaries used as an argument cannot contain a Node. Got key: ", str_of(key.ptr()));
    out.emplace_back(read_key(key), read_argument(value.ptr()));
  }
  return out;
}
nb::object wrap_arguments(const fx::Arguments& arguments) {
  nb::list items;
  for (const fx::Argument& a : arguments) items.append(wrap(a));
  return owned(PyList_AsTuple(items.ptr()));
}

/// A list or dict as one that cannot be changed: it is a copy, and changes would be lost.
nb::object immutable(const char* type, nb::handle value) {
  nb::module_ collections = nb::module_::import_("umbra.fx.immutable_collections");
  return collections.attr(type)(value);
}

nb::object wrap_keywords(const fx::KeywordArguments& keywords) {
  nb::dict out;
  for (const auto& [key, value] : keywords) out[make_text(key)] = wrap(value);
  return immutable("immutable_dict", out);
}

nb::list wrap_nodes(ArrayRef<fx::Node*> nodes) {
  nb::list out;
  for (fx::Node* node : nodes) out.append(wrap(node));
  return out;
}

/// The live neighbour of a node, None past the ends.
nb::object neighbour(fx::Node* node, bool forward) {
  do node = forward ? node->next() : node->previous();
  while (node->is_erased());
  return node->op() == fx::Op::Root ? nb::none() : wrap(node);
}

// ---- metadata ----

nb::object wrap_modules(const fx::ModuleStack& stack) {
  nb::dict out;
  for (const fx::ModuleFrame& frame : stack.frames())
    out[make_text(frame.key)] = nb::make_tuple(frame.path, frame.type);
  return out;
}
/// The same from Python, where classes stand by name or as they are; null for what is no such stack.
IntrusivePtr<fx::ModuleStack> read_modules(nb::handle stack, bool& by_name) {
  if (!PyDict_Check(stack.ptr())) return nullptr;
  std::vector<fx::ModuleFrame> frames;
  for (auto [key, value] : nb::borrow<nb::dict>(stack)) {
    if (!PyTuple_Check(value.ptr()) || PyTuple_GET_SIZE(value.ptr()) != 2) return nullptr;
    nb::handle path = PyTuple_GET_ITEM(value.ptr(), 0), type = PyTuple_GET_ITEM(value.ptr(), 1);
    if (!PyUnicode_Check(type.ptr())) {
      if (!PyType_Check(type.ptr())) return nullptr;
      by_name = false;
    }
    nb::object name = by_name ? nb::borrow(type) : nb::object(type.attr("__qualname__"));
    frames.push_back({str_of(key.ptr()), str_of(path.ptr()), nb::cast<std::string>(name)});
  }
  return make_counted<fx::ModuleStack>(std::move(frames));
}
constexpr const char *kModules = "nn_module_stack", *kOrigins = "from_node", *kNotes = "custom";

/// What a program in Python notes of nodes: an object that it may go on changing.
class PythonAnnotations final : public fx::Annotations {
 public:
  explicit PythonAnnotations(nb::handle notes) : notes_(make_counted<PythonObject>(notes.ptr())) {}
  nb::object notes() const { return nb::borrow(notes_->get()); }
  std::string json() const override { return text_by("annotations_json"); }
  std::string shown() const override { return text_by("annotations_text"); }
  IntrusivePtr<fx::Annotations> copy() const override {
    WithLock gil;
    return make_counted<PythonAnnotations>(nb::module_::import_("copy").attr("copy")(notes()));
  }

 private:
  std::string text_by(const char* function) const {
    WithLock gil;
    return nb::cast<std::string>(nb::module_::import_("umbra.fx.traceback").attr(function)(notes()));
  }
  IntrusivePtr<PythonObject> notes_;
};

/// What is noted of a node, as an object of Python from now on.
nb::object notes_of(fx::Meta& meta) {
  auto* own = dynamic_cast<PythonAnnotations*>(meta.custom.get());
  if (!own) {
    auto read = make_counted<PythonAnnotations>(nb::module_::import_("json").attr("loads")(meta.custom->json()));
    own = read.get();
    meta.custom = std::move(read);
  }
  return own->notes();
}

/// What is no stack of names is kept as it is besides: symbolic tracing has the classes themselves.
void set_modules(fx::Meta& meta, nb::handle stack) {
  bool by_name = true;
  meta.modules = read_modules(stack, by_name);
  std::erase_if(meta.extra, [](const auto& entry) { return entry.first == kModules; });
  if (!meta.modules || !by_name) meta.set(kModules, Value::object(make_counted<PythonObject>(stack.ptr())));
}

/// A call that gives nothing has that for a value, in graphs that have values.
bool holds_value(const fx::Node& node) {
  if (!node.meta.val.is_none()) return true;
  const Operator* op = node.op() == fx::Op::CallFunction ? node.target().op() : nullptr;
  return op && op->schema().returns.empty() && (node.meta.source || node.meta.modules);
}

/// Whether a node's call gives several results, which Python has as a tuple. (A list is one result.)
bool gives_a_tuple(const fx::Node& node) {
  if (const Operator* op = node.target().op()) return op->return_count() > 1;
  const fx::Function* function = node.target().function();
  return function && function->name.starts_with("torch.ops.higher_order.");
}

nb::object value_of(const fx::Node& node) {
  nb::object value = nb::steal(checked(wrap(node.meta.val)));
  return PyList_Check(value.ptr()) && gives_a_tuple(node) ? nb::object(nb::tuple(value)) : value;
}

nb::object meta_get(const NodeHandle& node, const std::string& key) {
  fx::Meta& meta = node->meta;
  if (key == kNotes && meta.custom) return notes_of(meta);
  if (key == "val" && holds_value(*node.get())) return value_of(*node.get());
  if (key == "stack_trace" && meta.source) return make_text(meta.source->text());
  if (key == kOrigins)
    if (std::optional<std::string> origins = fx::origins_text(meta)) return make_text(*origins);
  if (const Value* value = meta.find(key)) {
    nb::object found = nb::steal(wrap(*value));
    return key == "torch_fn" && value->is_list() ? nb::object(nb::tuple(found)) : found;
  }
  if (key == kModules && meta.modules) return wrap_modules(*meta.modules);
  throw nb::key_error(key.c_str());
}
void meta_set(const NodeHandle& node, const std::string& key, nb::handle value) {
  fx::Meta& meta = node->meta;
  if (key == "val") meta.val = read_any(value.ptr());
  else if (key == "stack_trace")
    meta.source = value.is_none()
                      ? nullptr
                      : IntrusivePtr<fx::SourceLocation>(make_counted<fx::TextLocation>(nb::cast<std::string>(value)));
  else if (key == kModules) set_modules(meta, value);
  else if (key == kNotes) meta.custom = make_counted<PythonAnnotations>(value);
  else if (key == kOrigins && PyUnicode_Check(value.ptr())) fx::set_origins_text(meta, nb::cast<std::string>(value));
  else meta.set(key, Value::object(make_counted<PythonObject>(value.ptr())));
}
void meta_delete(const NodeHandle& node, const std::string& key) {
  fx::Meta& meta = node->meta;
  size_t erased = std::erase_if(meta.extra, [&](const auto& entry) { return entry.first == key; });
  if (key == "val") meta.val = Value();
  else if (key == "stack_trace") meta.source = nullptr;
  else if (key == kModules) meta.modules = nullptr;
  else if (key == kNotes && meta.custom) meta.custom = nullptr;
  else if (erased == 0) throw nb::key_error(key.c_str());
}
std::vector<std::string> meta_keys(const NodeHandle& node) {
  std::vector<std::string> keys;
  const fx::Meta& meta = node->meta;
  if (meta.source) keys.push_back("stack_trace");
  if (meta.modules && !meta.find(kModules)) keys.push_back(kModules);
  if (meta.custom) keys.push_back(kNotes);
  if (holds_value(*node.get())) keys.push_back("val");
  for (const auto& [key, value] : meta.extra) keys.push_back(key);
  return keys;
}

std::function<bool(const fx::Node&)> impurity(nb::handle callable) {
  if (callable.is_none()) return {};
  return [callable](const fx::Node& node) { return nb::cast<bool>(callable(wrap(const_cast<fx::Node*>(&node)))); };
}

void bind_node(nb::module_& m) {
  m.def("_set_recomputing", &set_recomputing);
  m.def(
      "_set_annotations",
      [](nb::handle notes) {
        set_annotations(notes.is_none() ? nullptr
                                        : IntrusivePtr<fx::Annotations>(make_counted<PythonAnnotations>(notes)));
      },
      nb::arg("notes").none());
  nb::class_<NodeHandle>(m, "Node", nb::dynamic_attr(), nb::is_weak_referenceable(), nb::type_slots(node_slots))
      .def_prop_ro("op", [](const NodeHandle& n) { return fx::to_string(n->op()); })
      .def_prop_rw(
          "name", [](const NodeHandle& n) { return n->name(); },
          [](NodeHandle& n, const std::string& name) { n->set_name(name); })
      .def_prop_rw(
          "target", [](const NodeHandle& n) { return wrap_target(n->target()); },
          [](NodeHandle& n, nb::handle target) { n->set_target(read_target(target)); })
      .def_prop_rw(
          "args", [](const NodeHandle& n) { return wrap_arguments(n->args()); },
          [](NodeHandle& n, nb::handle args) { n->set_args(read_arguments(args)); })
      .def_prop_rw(
          "kwargs", [](const NodeHandle& n) { return wrap_keywords(n->kwargs()); },
          [](NodeHandle& n, nb::handle kwargs) { n->set_kwargs(read_keywords(kwargs)); })
      .def_prop_ro("graph", [](const NodeHandle& n) { return nb::borrow(n.graph()); })
      .def_prop_ro("_users", [](const NodeHandle& n) { return wrap_nodes(n->users()); })
      .def_prop_ro("all_input_nodes", [](const NodeHandle& n) { return wrap_nodes(n->inputs()); })
      .def_prop_ro("_next", [](const NodeHandle& n) { return neighbour(n.get(), true); })
      .def_prop_ro("_previous", [](const NodeHandle& n) { return neighbour(n.get(), false); })
      .def_prop_ro("_erased", [](const NodeHandle& n) { return n->is_erased(); })
      .def(
          "is_impure", [](const NodeHandle& n, bool) { return n->is_impure(); }, nb::arg("impure_random") = true)
      .def("format_node", [](const NodeHandle& n) { return n->text(); })
      .def(
          "replace_input_with",
          [](NodeHandle& n, const NodeHandle& from, const NodeHandle& to) { n->replace_input(from.get(), to.get()); },
          nb::arg("old_input"), nb::arg("new_input"))
      .def(
          "_replace_all_uses_with",
          [](NodeHandle& n, const NodeHandle& other, nb::handle wanted) {
            std::function<bool(fx::Node*)> choose;
            if (!wanted.is_none()) choose = [&](fx::Node* user) { return nb::cast<bool>(wanted(wrap(user))); };
            return wrap_nodes(n->replace_all_uses_with(other.get(), choose));
          },
          nb::arg("other"), nb::arg("wanted").none())
      .def("prepend", [](NodeHandle& n, NodeHandle& other) { other->move_before(n.get()); })
      .def("append", [](NodeHandle& n, NodeHandle& other) { other->move_after(n.get()); })
      .def(
          "update_arg", [](NodeHandle& n, size_t i, nb::handle value) { n->set_arg(i, read_argument(value.ptr())); },
          nb::arg("idx"), nb::arg("arg").none())
      .def(
          "update_kwarg",
          [](NodeHandle& n, const std::string& key, nb::handle value) {
            n->set_kwarg(key, read_argument(value.ptr()));
          },
          nb::arg("key"), nb::arg("arg").none())
      .def("_call_here",
           [](const NodeHandle& n, bool inherit, nb::handle function, nb::args args) {
             fx::Meta meta = n->meta;  // the function may change the node
             AtLocation at(meta.source.get());
             std::optional<InheritMeta> inherited;
             if (inherit) inherited.emplace(meta);
             return function(*args);
           })
      .def("_meta_get", &meta_get)
      .def("_meta_set", &meta_set, nb::arg("key"), nb::arg("value").none())
      .def("_meta_delete", &meta_delete)
      .def("_meta_keys", &meta_keys)
      .def("_copy_meta", [](NodeHandle& n, const NodeHandle& from) { n->meta = from->meta; })
      .def("__repr__", [](const NodeHandle& n) { return n->name(); });
}

}  // namespace

nb::object wrap(const fx::Argument& argument) {
  using Kind = fx::Argument::Kind;
  switch (argument.kind()) {
    case Kind::Node: return wrap(argument.node());
    case Kind::Value: return nb::steal(checked(wrap(argument.value())));
    case Kind::Tuple: return wrap_arguments(argument.items());
    case Kind::List: {
      nb::list out;
      for (const fx::Argument& a : argument.items()) out.append(wrap(a));
      return immutable("immutable_list", out);
    }
    case Kind::Dict: {
      nb::dict out;
      for (size_t i = 0; i < argument.items().size(); ++i)
        out[wrap_key(argument.keys()[i])] = wrap(argument.items()[i]);
      return immutable("immutable_dict", out);
    }
    case Kind::Slice: {
      nb::object start = wrap(argument.items()[0]), stop = wrap(argument.items()[1]), step = wrap(argument.items()[2]);
      return owned(PySlice_New(start.ptr(), stop.ptr(), step.ptr()));
    }
  }
  return nb::none();
}

fx::Argument read_argument(PyObject* object) {
  if (object == Py_None) return fx::Argument();  // None would be a null pointer to anything
  NodeHandle* node;
  if (nb::try_cast(nb::handle(object), node)) return node->get();
  if (PyTuple_Check(object) || PyList_Check(object)) {
    fx::Arguments items = read_arguments(nb::handle(object));
    return PyTuple_Check(object) ? fx::Argument::tuple(std::move(items)) : fx::Argument::list(std::move(items));
  }
  if (PyDict_Check(object)) return fx::Argument::dict(read_keywords(nb::handle(object)));
  if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    return fx::Argument::slice(read_argument(slice->start), read_argument(slice->stop), read_argument(slice->step));
  }
  // A number that no operator takes is an object like any other: functions of Python take it.
  if (PyLong_CheckExact(object) && is_beyond_values(object)) return Value::object(make_counted<PythonObject>(object));
  return read_any(object);
}

namespace {
std::string object_repr(const RefCounted& object) {
  auto* held = dynamic_cast<const PythonObject*>(&object);
  if (!held) return "<object>";
  WithLock lock;
  return nb::cast<std::string>(nb::repr(nb::handle(held->get())));
}

struct SavedInsertionPoint {
  IntrusivePtr<fx::Graph> graph;
  fx::Graph::InsertionPoint point;
  void restore() const { graph->restore_insertion_point(point); }
};
}  // namespace

void bind_graph(nb::module_& m) {
  fx::set_object_printer(object_repr);
  bind_node(m);
  nb::class_<SavedInsertionPoint>(m, "_SavedInsertionPoint").def("restore", &SavedInsertionPoint::restore);
  nb::class_<GraphHandle>(m, "Graph", nb::dynamic_attr(), nb::is_weak_referenceable(), nb::type_slots(graph_slots))
      .def(
          "__init__",
          [](nb::pointer_and_handle<GraphHandle> self, nb::object owning_module, nb::object tracer_cls,
             nb::object tracer_extras) {
            new (self.p) GraphHandle(self.h, make_counted<fx::Graph>());
            const std::pair<const char*, nb::object> given[] = {
                {"owning_module", owning_module}, {"_tracer_cls", tracer_cls}, {"_tracer_extras", tracer_extras}};
            for (const auto& [name, value] : given)
              if (!value.is_none()) nb::setattr(self.h, name, value);
          },
          nb::arg("owning_module") = nb::none(), nb::arg("tracer_cls") = nb::none(),
          nb::arg("tracer_extras") = nb::none())
      .def("_create_node",
           [](GraphHandle& g, const std::string& op, nb::handle target, nb::handle args, nb::handle kwargs,
              const std::string& name) {
             return wrap(
                 g->create_node(read_op(op), read_target(target), read_arguments(args), read_keywords(kwargs), name));
           })
      .def("_placeholder", [](GraphHandle& g, const std::string& name) { return wrap(g->placeholder(name)); })
      .def(
          "_placeholder_with_default",
          [](GraphHandle& g, const std::string& name, nb::handle value) {
            return wrap(g->placeholder(name, read_argument(value.ptr())));
          },
          nb::arg("name"), nb::arg("value").none())
      .def(
          "_set_insertion_point",
          [](GraphHandle& g, nb::handle node, bool after) { g->set_insertion_point(node_or_null(node), after); },
          nb::arg("node").none(), nb::arg("after"))
      .def("_insertion_point",
           [](GraphHandle& g) {
             return SavedInsertionPoint{IntrusivePtr<fx::Graph>(g.get()), g->insertion_point()};
           })
      .def("erase_node", [](GraphHandle& g, NodeHandle& node) { g->erase_node(node.get()); })
      .def("_copy_node",
           [](GraphHandle& g, const NodeHandle& node, nb::handle map) {
             return wrap(
                 g->copy_node(*node.get(), [&](fx::Node* n) { return read_argument(nb::object(map(wrap(n))).ptr()); }));
           })
      .def("_copy", [](const GraphHandle& g) { return wrap(*g->copy()); })
      .def("_find_nodes",
           [](const GraphHandle& g, const std::vector<std::string>& kinds) {
             nb::list out;
             for (fx::Node* node : g->nodes())
               if (std::ranges::find(kinds, fx::to_string(node->op())) != kinds.end()) out.append(wrap(node));
             return out;
           })
      .def_prop_ro("_root", [](const GraphHandle& g) { return wrap(g->root()); })
      .def_prop_ro("_first", [](const GraphHandle& g) { return g->first() ? wrap(g->first()) : nb::none(); })
      .def_prop_ro("_last", [](const GraphHandle& g) { return g->last() ? wrap(g->last()) : nb::none(); })
      .def_prop_ro("_has_statements", [](const GraphHandle& g) { return fx::has_statements(*g.get()); })
      .def("_count", [](const GraphHandle& g) { return g->size(); })
      .def("_needs_python", [](const GraphHandle& g) { return needs_python(*g.get()); })
      .def(
          "_eliminate_dead_code",
          [](GraphHandle& g, nb::handle is_impure) { return fx::eliminate_dead_code(*g.get(), impurity(is_impure)); },
          nb::arg("is_impure").none())
      .def(
          "_eliminate_common_subexpressions",
          [](GraphHandle& g, nb::handle stays) {
            return fx::eliminate_common_subexpressions(*g.get(), impurity(stays));
          },
          nb::arg("stays") = nb::none())
      .def("_lint", [](const GraphHandle& g) { fx::lint(*g.get()); })
      .def(
          "_code",
          [](const GraphHandle& g, bool verbose, bool stride, bool device) {
            return fx::python_code(*g.get(), {.verbose = verbose, .include_stride = stride, .include_device = device});
          },
          nb::arg("verbose") = false, nb::arg("include_stride") = false, nb::arg("include_device") = false)
      .def("_tabular", [](const GraphHandle& g) { return fx::tabular(*g.get()); })
      .def(
          "_set_pytree",
          [](GraphHandle& g, std::vector<std::string> arguments, std::optional<std::vector<std::string>> keywords,
             bool has_output) {
            g->pytree = fx::PytreeSignature{std::move(arguments), std::move(keywords), has_output};
          },
          nb::arg("arguments"), nb::arg("keywords").none(), nb::arg("has_output"))
      .def("_take_pytree", [](GraphHandle& g, const GraphHandle& other) { g->pytree = other->pytree; })
      .def("_clear_pytree", [](GraphHandle& g) { g->pytree.reset(); })
      .def("__str__", [](const GraphHandle& g) { return fx::to_string(*g.get()); })
      .def("__repr__", [](const GraphHandle& g) { return fx::to_string(*g.get()); })
      .def("_module", [](GraphHandle& g, const std::string& class_name) {
        return GraphModuleObject{make_counted<fx::GraphModule>(IntrusivePtr<fx::Graph>(g.get()), class_name)};
      });
}

}  // namespace umbra::python
