// Parts of values: subscripts, attributes, and what loops go over.
#include <algorithm>
#include <cmath>
#include <limits>

#include "jit/builtin_rules.h"
#include "jit/emitter.h"

namespace umbra::jit {

// ---- subscripts ----

SugaredPtr Emitter::subscript(const Tree& e, const TypePtr& hint) {
  SugaredPtr whole = expression(*e.children[0]);
  const Tree& index = *e.children[1];
  if (SugaredPtr chosen = chosen_module(e, whole, index, hint)) return chosen;
  SugaredPtr of = modules_of(e, whole);
  bool fixed = of->kind == Sugared::Kind::Values || of->kind == Sugared::Kind::Modules ||
               (of->kind == Sugared::Kind::Constant && of->value.is_list()) ||
               (of->kind == Sugared::Kind::Variable && of->variable->type()->is(TypeKind::Tuple));
  if (of->kind == Sugared::Kind::Type && of->type->is(TypeKind::Enum) && index.kind == Syntax::String)
    return attribute_of(e, of, index.text);
  if (fixed) return part_of(e, of, index);
  Variable* v = as_value(*e.children[0], of);
  if (v->type()->is(TypeKind::Tensor)) {
    Variables indices;
    Variable* part = index_tensor(e, v, index, indices);
    if (indices.empty()) return sugar(part);
    Variable* list = one(e, "prim::ListConstruct", indices, list_type(optional_type(tensor_type())));
    return builtin(e, "aten::index", {{"", part}, {"", list}});
  }
  if (v->type()->is(TypeKind::Class)) return call_method(e, v, "__getitem__", {{"", value(index)}});
  if (v->type()->is(TypeKind::Optional) || is_number(v->type()) || is_bool(v->type()))
    fail_at(e, "'", v->type()->annotation(), "' object is not subscriptable");
  SugaredPtr at = index_of(index);
  auto bounds = bounds_of(index, at);
  if (!bounds) return builtin(e, "aten::__getitem__", {{"", v}, {"", as_value(index, at)}});
  Variable *start = as_value(index, (*bounds)[0]), *stop = as_value(index, (*bounds)[1]);
  return builtin(e, "aten::slice", {{"", v}, {"", start}, {"", stop}, {"", as_value(index, (*bounds)[2])}});
}

/// What an index stands for; null where it is written with colons.
SugaredPtr Emitter::index_of(const Tree& index) {
  if (index.kind == Syntax::Slice) return nullptr;
  Compilation::reach(index);
  return expression(index);
}

std::optional<std::array<SugaredPtr, 3>> Emitter::bounds_of(const Tree& index, const SugaredPtr& made) {
  std::array<SugaredPtr, 3> out;
  if (made) {
    if (made->kind != Sugared::Kind::Range || made->name != "slice") return std::nullopt;
    std::ranges::copy(made->parts, out.begin());
  } else {
    for (size_t i = 0; i < 3; ++i)
      out[i] = index.children[i] ? expression(*index.children[i]) : sugar_constant(Value());
  }
  if (out[2]->kind == Sugared::Kind::Constant && out[2]->value.is_none()) out[2] = sugar_constant(Value(1));
  return out;
}

/// A module that the run chooses, where it is known by the interface that all of a container's modules have; null where
/// this is no such choice.
SugaredPtr Emitter::chosen_module(const Tree& e, const SugaredPtr& of, const Tree& index, const TypePtr& hint) {
  if (!hint || !hint->cls || !hint->cls->is_interface || !hint->cls->is_module || index.kind == Syntax::Slice)
    return nullptr;
  Variable* container =
      of->kind == Sugared::Kind::Variable || of->kind == Sugared::Kind::Modules ? of->variable : nullptr;
  if (!container || !container->type()->cls || !container->type()->cls->is_module) return nullptr;
  Variable* key = value(index);
  if (key->node()->is("prim::Constant")) return nullptr;
  for (const Attribute& a : container->type()->cls->attributes)
    if (a.type->cls && a.type->cls->is_module && !is_subtype(a.type, hint))
      fail_at(e, "Attribute ", a.name, " is not of annotated type ", hint->annotation(), ": ",
              why_not_interface(*a.type->cls, *hint->cls));
  return sugar(one(e, "prim::ModuleContainerIndex", {container, key}, hint));
}

/// A part, or a slice, of something whose parts the compiler knows one by one.
SugaredPtr Emitter::part_of(const Tree& e, const SugaredPtr& of, const Tree& index) {
  bool modules = of->kind == Sugared::Kind::Modules;
  if (modules && index.kind == Syntax::String) {
    for (size_t i = 0; i < of->keys.size(); ++i)
      if (of->keys[i] == index.text) return of->parts[i];
    fail_at(e, "Key Error, ", index.text);
  }
  auto known = [&](const SugaredPtr& s) -> const Value* {
    static const Value none{};
    Variable* v = as_value(index, s);
    if (v->type()->is(TypeKind::None)) return &none;
    return v->node()->is("prim::Constant") ? v->node()->attribute("value") : nullptr;
  };
  std::vector<SugaredPtr> parts = parts_of(e, of);
  SugaredPtr made = index_of(index);
  if (auto bounds = bounds_of(index, made)) {
    auto at = [&](size_t i) {
      const Value* v = known((*bounds)[i]);
      if (!v) fail_at(e, "a tuple's slice needs constant bounds");
      return *v;
    };
    auto s = std::make_shared<Sugared>();
    s->kind = modules ? Sugared::Kind::Modules : Sugared::Kind::Values;
    slice_range(at(0), at(1), at(2), parts.size()).each([&](size_t i) {
      s->parts.push_back(parts[i]);
      if (modules) s->keys.push_back(of->keys[i]);
    });
    return s;
  }
  const Value* place_known = known(made);
  std::optional<int64_t> i;
  if (place_known && place_known->is_int()) i = place_known->to_int();
  if (!i && modules && by_name(*of))
    fail_at(
        e,
        "Unable to extract string literal index. ModuleDict indexing is only supported with string literals. For "
        "example, 'i = \"a\"; self.layers[i](x)' will fail because i is not a literal. Enumeration of ModuleDict is "
        "supported, e.g. 'for k, v in self.items(): out = v(inp)'");
  if (!i && modules)
    fail_at(e,
            "Expected integer literal for index but got a variable or non-integer. ModuleList/Sequential indexing is "
            "only supported with integer literals. For example, 'i = 4; self.layers[i](x)' will fail because i is not "
            "a literal. Enumeration is supported, e.g. 'for index, v in enumerate(self): out = v(inp)'");
  if (!i) return part_at_run_time(e, as_value(e, of), as_value(index, made));
  auto n = static_cast<int64_t>(parts.size());
  int64_t place = *i < 0 ? *i + n : *i;
  bool inside = place >= 0 && place < n;
  if (!inside && modules) fail_at(e, "Index ", *i, " out of range of length ", n);
  if (!inside) fail_at(e, "Tuple index out of range. Tuple is length ", n, " and index is ", *i);
  return parts[static_cast<size_t>(place)];
}

/// Any part of a tuple whose parts are all of one type.
SugaredPtr Emitter::part_at_run_time(const Tree& e, Variable* tuple, Variable* place) {
  TypePtr element = tuple->type()->elements.empty() ? nullptr : tuple->type()->element();
  for (const TypePtr& t : tuple->type()->elements) element = element && same_type(element, t) ? element : nullptr;
  if (element && is_int(place->type())) return sugar(one(e, "prim::TupleIndex", {tuple, place}, element));
  fail_at(e, "Cannot index into a ", tuple->type()->annotation(),
          " with a non-integer literal because we cannot resolve the output type");
}

namespace {

bool is_ellipsis(const Tree& t) {
  return (t.kind == Syntax::Constant && t.text == "...") || (t.kind == Syntax::Name && t.text == "Ellipsis");
}
bool is_whole_slice(const Tree& t) {
  return t.kind == Syntax::Slice && !t.children[0] && !t.children[1] && !t.children[2];
}

/// Where in a tensor an index stands. Behind an ellipsis dimensions are counted from the end.
struct Place {
  int64_t dim = 0;
  bool from_the_end = false;
  /// The dimension that an item takes up; the next item stands behind it.
  int64_t take(bool stays) {
    int64_t here = dim;
    if (from_the_end || stays) ++dim;
    return here;
  }
  /// Where a new dimension goes in front of the next item.
  int64_t insert() { return from_the_end ? dim - 1 : dim++; }
};

}  // namespace

Variable* Emitter::slice_tensor(const Tree& at, Variable* tensor, int64_t dim,
                                const std::array<SugaredPtr, 3>& bounds) {
  std::vector<Argument> arguments{{"", tensor}, {"", constant(Value(dim))}};
  for (const SugaredPtr& b : bounds) arguments.push_back({"", as_value(at, b)});
  return as_value(at, builtin(at, "aten::slice", arguments));
}

/// Slices, numbers and None one after the other; tensors are gathered in `indices`, with None for dimensions they skip.
Variable* Emitter::index_tensor(const Tree& at, Variable* tensor, const Tree& index, Variables& indices) {
  std::vector<TreePtr> items;
  if (index.kind == Syntax::Tuple) items = index.children;
  else items.push_back(std::make_shared<Tree>(index));
  Variables values;  // null for slices and the ellipsis
  std::vector<SugaredPtr> made;
  for (const TreePtr& i : items) {
    made.push_back(is_ellipsis(*i) ? nullptr : index_of(*i));
    bool sliced = !made.back() || (made.back()->kind == Sugared::Kind::Range && made.back()->name == "slice");
    values.push_back(sliced ? nullptr : as_value(*i, made.back()));
  }
  Place place;
  std::vector<std::pair<int64_t, Variable*>> tensors;
  for (size_t i = 0; i < items.size(); ++i) {
    const Tree& item = *items[i];
    if (is_ellipsis(item)) {
      place = {0, true};
      for (size_t k = i + 1; k < items.size(); ++k)
        if (!values[k] || !values[k]->type()->is(TypeKind::None)) --place.dim;
      continue;
    }
    Variable* v = values[i];
    if (!v) {
      int64_t dim = place.take(true);
      if (!is_whole_slice(item) || items.size() == 1) tensor = slice_tensor(at, tensor, dim, *bounds_of(item, made[i]));
    } else if (v->type()->is(TypeKind::None)) {
      tensor = as_value(at, builtin(at, "aten::unsqueeze", {{"", tensor}, {"", constant(Value(place.insert()))}}));
    } else if (is_int(v->type())) {
      Variable* dim = constant(Value(place.take(false)));
      tensor = as_value(at, builtin(at, "aten::select", {{"", tensor}, {"", dim}, {"", v}}));
    } else if (v->type()->is(TypeKind::Tensor) || is_list(v->type())) {
      if (place.from_the_end) fail_at(at, "Ellipses followed by tensor indexing is currently not supported");
      if (is_list(v->type()))  // its elements are numbers of places, whatever they are
        v = as_value(at, builtin(at, "aten::tensor", {{"", v}, {"dtype", constant(Value(number_of(DType::Int64)))}}));
      tensors.emplace_back(place.take(true), v);
    } else {
      fail_at(at, "Unsupported operation: indexing tensor with unsupported index type '", v->type()->annotation(),
              "'. Only ints, slices, lists and tensors are supported");
    }
  }
  for (int64_t d = 0; !tensors.empty() && d <= tensors.back().first; ++d) {
    Variable* here = nullptr;
    for (auto& [where, v] : tensors)
      if (where == d) here = v;
    indices.push_back(here ? here : constant(Value()));
  }
  return tensor;
}

// ---- attributes ----

SugaredPtr Emitter::attribute(const Tree& e) { return attribute_of(e, expression(*e.children[0]), e.text); }

/// The modules of a container, one by one; anything else as it is.
SugaredPtr Emitter::modules_of(const Tree& at, const SugaredPtr& s) {
  bool is_container =
      s->kind == Sugared::Kind::Variable && s->variable->type()->cls && s->variable->type()->cls->is_container;
  if (!is_container) return s;
  auto out = std::make_shared<Sugared>();
  out->kind = Sugared::Kind::Modules;
  out->variable = s->variable;
  for (const Attribute& a : s->variable->type()->cls->attributes) {
    if (!(a.type->cls && a.type->cls->is_module) && !a.is_parameter) continue;
    Node* node = insert(at, "prim::GetAttr", {s->variable}, {a.type});
    node->set_attribute("name", Value(a.name));
    node->output()->set_name(std::isdigit(static_cast<unsigned char>(a.name[0])) ? "_" + a.name : a.name);
    out->keys.push_back(a.name);
    out->parts.push_back(sugar(node->output()));
  }
  return out;
}

SugaredPtr Emitter::attribute_of(const Tree& at, const SugaredPtr& of, const std::string& name) {
  switch (of->kind) {
    case Sugared::Kind::Operators: return name_in_namespace(*of, name);
    case Sugared::Kind::Python: {
      SugaredPtr s = resolver_.attribute(*of, name);
      if (!s) fail_at(at, "module has no attribute '", name, "'");
      return usable(at, s);
    }
    case Sugared::Kind::Type: return attribute_of_type(at, of, name);
    case Sugared::Kind::Modules:
      if (of->variable && of->variable->type()->cls->find(name) >= 0)
        return attribute_of_object(at, sugar(of->variable), of->variable, name);
      return method_of(of, name);
    case Sugared::Kind::Constant:
    case Sugared::Kind::Values:
    case Sugared::Kind::Variable: break;
    case Sugared::Kind::Range:
      if (of->name == "slice") fail_at(at, "attribute lookup is not defined on Python slice value");
      [[fallthrough]];
    default: fail_at(at, "'", of->name, "' has no attribute '", name, "' that programs can use");
  }
  Variable* v = as_value(at, of);
  const TypePtr& t = v->type();
  if (t->is(TypeKind::Class)) return attribute_of_object(at, of, v, name);
  if (t->is(TypeKind::Tuple) && !t->fields.empty()) {
    for (size_t i = 0; i < t->fields.size(); ++i)
      if (t->fields[i] == name) return parts_of(at, sugar(v))[i];
    if (name != "_asdict") fail_at(at, "'", t->annotation(), "' object has no attribute or method '", name, "'.");
  }
  if (t->is(TypeKind::Enum) && name == "value") return sugar(one(at, "prim::EnumValue", {v}, t->cls->enum_value));
  if (t->is(TypeKind::Enum) && name == "name") return sugar(one(at, "prim::EnumName", {v}, string_type()));
  if (t->is(TypeKind::Device) && (name == "type" || name == "index")) return builtin(at, "prim::" + name, {{"", v}});
  if (t->is(TypeKind::Tensor))
    if (SugaredPtr s = property_of_tensor(at, v, name)) return s;
  bool known = !builtins("aten::" + name).empty() || !operator_overloads("aten::" + name).empty() ||
               is_method_of_tensors(name) || t->is(TypeKind::Future);
  bool has_methods = !t->is(TypeKind::Optional) && !is_number(t) && !is_bool(t);
  if (!known || !has_methods) fail_at(at, "'", t->annotation(), "' object has no attribute or method '", name, "'.");
  return method_of(of, name);
}

SugaredPtr Emitter::method_of(const SugaredPtr& self, const std::string& name) {
  auto s = std::make_shared<Sugared>();
  s->kind = Sugared::Kind::Method;
  s->self = self;
  s->name = name;
  return s;
}

SugaredPtr Emitter::name_in_namespace(const Sugared& of, const std::string& name) {
  if (of.name == "torch" || of.name == "torch.ops.aten" || of.name == "ops.aten") return sugar_builtin("aten::" + name);
  if (of.name == "math") {
    static const std::map<std::string, double> numbers = {{"pi", M_PI},
                                                          {"e", M_E},
                                                          {"tau", 2 * M_PI},
                                                          {"inf", std::numeric_limits<double>::infinity()},
                                                          {"nan", std::numeric_limits<double>::quiet_NaN()}};
    if (auto found = numbers.find(name); found != numbers.end()) return sugar(constant(Value(found->second)));
    return sugar_builtin(name == "remainder" ? "aten::mathremainder" : "aten::" + name);
  }
  if (of.name == "ops" || of.name == "torch.ops") return sugar_namespace("ops." + name);
  if (of.name.starts_with("ops.")) return sugar_builtin(of.name.substr(4) + "::" + name);
  return sugar_namespace(of.name + "." + name);
}

SugaredPtr Emitter::attribute_of_type(const Tree& at, const SugaredPtr& of, const std::string& name) {
  const ClassPtr& cls = of->type->cls;
  if (of->type->is(TypeKind::Enum)) {
    for (size_t i = 0; i < cls->constants.size(); ++i)
      if (cls->constants[i].first == name)
        return sugar(constant(Value::object(make_counted<EnumValue>(cls, i)), of->type));
    fail_at(at, "Enum class '", cls->name, "' has no attribute '", name, "'");
  }
  if (cls)
    if (FunctionPtr f = cls->method(name)) return sugar_function(f);
  if (SugaredPtr s = resolver_.attribute(*of, name)) return usable(at, s);
  fail_at(at, "the type ", of->type->annotation(), " has no attribute '", name, "'");
}

SugaredPtr Emitter::attribute_of_object(const Tree& at, const SugaredPtr& of, Variable* v, const std::string& name) {
  const ClassPtr& cls = v->type()->cls;
  if (int i = cls->find(name); i >= 0) {
    Node* node = insert(at, "prim::GetAttr", {v}, {cls->attributes[static_cast<size_t>(i)].type});
    node->set_attribute("name", Value(name));
    node->output()->set_name(name);
    return modules_of(at, sugar(node->output()));
  }
  for (const auto& [key, value] : cls->constants)
    if (key == name) return sugar_constant(value);
  static const char* const views[] = {"keys", "values", "items", "children", "named_children"};
  for (const char* view : views)
    if (cls->is_container && name == view) return method_of(modules_of(at, of), name);
  if (cls->method("__" + name + "_getter")) return call_method(at, v, "__" + name + "_getter", {});
  if (cls->method(name) || cls->overloads.contains(name)) return method_of(of, name);
  if (SugaredPtr s = resolver_.attribute(*sugar(v), name)) {
    bool is_property = s->kind == Sugared::Kind::Method && s->name != name;
    return is_property ? call_method(at, v, s->name, {}) : usable(at, s);
  }
  if (cls->is_module && !cls->is_interface)
    fail_at(at, "Module '", cls->name.substr(cls->name.rfind('.') + 1), "' has no attribute '", name, "' ");
  fail_at(at, "'", cls->name, "' object has no attribute or method '", name,
          "'. Did you forget to initialize an attribute in __init__()?");
}

SugaredPtr Emitter::property_of_tensor(const Tree& at, Variable* v, const std::string& name) {
  static const std::map<std::string, std::string> properties = {{"shape", "aten::size"},
                                                                {"dtype", "prim::dtype"},
                                                                {"device", "prim::device"},
                                                                {"layout", "prim::layout"},
                                                                {"is_cuda", "prim::is_cuda"},
                                                                {"is_cpu", "prim::is_cpu"},
                                                                {"is_meta", "prim::is_meta"},
                                                                {"is_sparse", "prim::is_sparse"},
                                                                {"requires_grad", "prim::requires_grad"},
                                                                {"data", "prim::data"},
                                                                {"grad", "prim::grad"},
                                                                {"T", "aten::numpy_T"},
                                                                {"mT", "aten::mT"},
                                                                {"H", "aten::matrix_H"},
                                                                {"mH", "aten::mH"},
                                                                {"real", "aten::real"},
                                                                {"imag", "aten::imag"},
                                                                {"ndim", "aten::dim"},
                                                                {"is_quantized", "prim::is_quantized"},
                                                                {"is_mkldnn", "prim::is_mkldnn"},
                                                                {"is_sparse_csr", "prim::is_sparse_csr"},
                                                                {"is_leaf", "aten::is_leaf"},
                                                                {"is_xpu", "prim::is_xpu"},
                                                                {"is_mps", "prim::is_mps"},
                                                                {"is_ipu", "prim::is_ipu"},
                                                                {"is_xla", "prim::is_xla"},
                                                                {"is_mtia", "prim::is_mtia"},
                                                                {"is_maia", "prim::is_maia"},
                                                                {"is_vulkan", "prim::is_vulkan"},
                                                                {"nbytes", "prim::nbytes"},
                                                                {"is_nested", "prim::is_nested"},
                                                                {"itemsize", "aten::element_size"}};
  auto found = properties.find(name);
  return found == properties.end() ? nullptr : builtin(at, found->second, {{"", v}});
}

}  // namespace umbra::jit
