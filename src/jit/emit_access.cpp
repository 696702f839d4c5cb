// Parts of values: subscripts, attributes, and what loops go over.
#include <cmath>
#include <limits>

#include "jit/builtin_rules.h"
#include "jit/emitter.h"

namespace umbra::jit {

// ---- subscripts ----

SugaredPtr Emitter::subscript(const Tree& e) {
  SugaredPtr of = modules_of(e, expression(*e.children[0]));
  const Tree& index = *e.children[1];
  bool fixed = of->kind == Sugared::Kind::Values || of->kind == Sugared::Kind::Modules ||
               of->kind == Sugared::Kind::Constant ||
               (of->kind == Sugared::Kind::Variable && of->variable->type()->is(TypeKind::Tuple));
  if (of->kind == Sugared::Kind::Modules && index.kind == Syntax::String) {
    for (size_t i = 0; i < of->keys.size(); ++i)
      if (of->keys[i] == index.text) return of->parts[i];
    fail_at(e, "Key Error, ", index.text);
  }
  if (fixed) {
    auto known_int = [&](const Tree& t) -> std::optional<int64_t> {
      Variable* v = value(t);
      const Value* c = v->node()->is("prim::Constant") ? v->node()->attribute("value") : nullptr;
      return c && c->is_int() ? std::optional<int64_t>(c->to_int()) : std::nullopt;
    };
    if (of->kind == Sugared::Kind::Constant && !of->value.is_list()) of = sugar(as_value(e, of));
    else {
      std::vector<SugaredPtr> parts = parts_of(e, of);
      if (index.kind == Syntax::Slice) {
        auto at = [&](size_t i) {
          if (!index.children[i]) return Value();
          std::optional<int64_t> v = known_int(*index.children[i]);
          if (!v) fail_at(e, "a tuple's slice needs constant bounds");
          return Value(*v);
        };
        auto s = std::make_shared<Sugared>();
        s->kind = of->kind == Sugared::Kind::Modules ? Sugared::Kind::Modules : Sugared::Kind::Values;
        slice_range(at(0), at(1), at(2), parts.size()).each([&](size_t i) {
          s->parts.push_back(parts[i]);
          if (of->kind == Sugared::Kind::Modules) s->keys.push_back(of->keys[i]);
        });
        return s;
      }
      std::optional<int64_t> i = known_int(index);
      if (!i) {
        if (of->kind == Sugared::Kind::Modules)
          fail_at(e, "Unable to index a module list with a value that is not a constant integer");
        return builtin(e, "aten::__getitem__", {{"", as_value(e, of)}, {"", value(index)}});
      }
      auto n = static_cast<int64_t>(parts.size());
      int64_t place = *i < 0 ? *i + n : *i;
      if (place < 0 || place >= n) fail_at(e, "Tuple index out of range. Tuple is length ", n, " and index is ", *i);
      return parts[static_cast<size_t>(place)];
    }
  }
  Variable* v = as_value(*e.children[0], of);
  if (v->type()->is(TypeKind::Tensor)) {
    std::vector<Variable*> indices;
    Variable* part = index_tensor(e, v, index, indices);
    if (indices.empty()) return sugar(part);
    Variable* list = one(e, "prim::ListConstruct", indices, list_type(optional_type(tensor_type())));
    return builtin(e, "aten::index", {{"", part}, {"", list}});
  }
  if (v->type()->is(TypeKind::Class)) return call_method(e, v, "__getitem__", {{"", value(index)}});
  if (index.kind != Syntax::Slice) return builtin(e, "aten::__getitem__", {{"", v}, {"", value(index)}});
  auto bound = [&](size_t i) { return index.children[i] ? value(*index.children[i]) : constant(Value()); };
  Variable *start = bound(0), *stop = bound(1);
  Variable* step = index.children[2] ? value(*index.children[2]) : constant(Value(1));
  return builtin(e, "aten::slice", {{"", v}, {"", start}, {"", stop}, {"", step}});
}

/// Slices, numbers and None one after the other; tensors are gathered in `indices`, with None for dimensions they skip.
Variable* Emitter::index_tensor(const Tree& at, Variable* tensor, const Tree& index, std::vector<Variable*>& indices) {
  std::vector<TreePtr> items;
  if (index.kind == Syntax::Tuple) items = index.children;
  else items.push_back(std::make_shared<Tree>(index));
  int64_t dim = 0;
  bool from_the_end = false;  // behind an ellipsis dimensions are counted from the end
  std::vector<std::pair<int64_t, Variable*>> tensors;
  for (size_t i = 0; i < items.size(); ++i) {
    const Tree& item = *items[i];
    if (item.kind == Syntax::Constant && item.text == "...") {
      from_the_end = i + 1 < items.size();
      dim = -static_cast<int64_t>(items.size() - i - 1);
      continue;
    }
    auto constant_dim = [&] { return constant(Value(dim)); };
    if (item.kind == Syntax::Slice) {
      Variable* start = item.children[0] ? value(*item.children[0]) : constant(Value());
      Variable* stop = item.children[1] ? value(*item.children[1]) : constant(Value());
      Variable* step = item.children[2] ? value(*item.children[2]) : constant(Value(1));
      bool whole = !item.children[0] && !item.children[1] && !item.children[2];
      if (!whole)
        tensor = as_value(
            at, builtin(at, "aten::slice", {{"", tensor}, {"", constant_dim()}, {"", start}, {"", stop}, {"", step}}));
      ++dim;
      continue;
    }
    Variable* v = value(item);
    if (v->type()->is(TypeKind::None)) {
      if (from_the_end) fail_at(item, "None behind an ellipsis in an index is not in Umbra's TorchScript yet");
      tensor = as_value(at, builtin(at, "aten::unsqueeze", {{"", tensor}, {"", constant_dim()}}));
      ++dim;
    } else if (is_int(v->type())) {
      tensor = as_value(at, builtin(at, "aten::select", {{"", tensor}, {"", constant_dim()}, {"", v}}));
      if (from_the_end) ++dim;  // the dimensions after it stay where they are
    } else if (v->type()->is(TypeKind::Tensor)) {
      tensors.emplace_back(dim, v);
      ++dim;
    } else if (is_list(v->type())) {
      Variable* made = as_value(
          at, builtin(at, "aten::tensor",
                      {{"", v}, {"", constant(Value())}, {"", constant(Value())}, {"", constant(Value(false))}}));
      tensors.emplace_back(dim, made);
      ++dim;
    } else {
      fail_at(item, "Unsupported operation: indexing tensor with unsupported index type '", v->type()->annotation(),
              "'. Only ints, slices, lists and tensors are supported");
    }
  }
  if (!tensors.empty()) {
    if (from_the_end) fail_at(at, "tensors behind an ellipsis in an index are not in Umbra's TorchScript yet");
    for (int64_t d = 0; d <= tensors.back().first; ++d) {
      Variable* here = nullptr;
      for (auto& [place, v] : tensors)
        if (place == d) here = v;
      indices.push_back(here ? here : constant(Value()));
    }
  } else if (items.size() == 1 && items[0]->kind == Syntax::Slice && !items[0]->children[0] && !items[0]->children[1] &&
             !items[0]->children[2]) {
    tensor = as_value(at, builtin(at, "aten::slice",
                                  {{"", tensor},
                                   {"", constant(Value(0))},
                                   {"", constant(Value())},
                                   {"", constant(Value())},
                                   {"", constant(Value(1))}}));
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
    if (!a.type->cls || !a.type->cls->is_module) continue;
    Node* node = insert(at, "prim::GetAttr", {s->variable}, {a.type});
    node->set_attribute("name", Value(a.name));
    out->keys.push_back(a.name);
    out->parts.push_back(sugar(node->output()));
  }
  return out;
}

SugaredPtr Emitter::attribute_of(const Tree& at, const SugaredPtr& of, const std::string& name) {
  auto method = [&] {
    auto s = std::make_shared<Sugared>();
    s->kind = Sugared::Kind::Method;
    s->self = of;
    s->name = name;
    return s;
  };
  switch (of->kind) {
    case Sugared::Kind::Operators: {
      if (of->name == "torch" || of->name == "torch.ops.aten" || of->name == "ops.aten")
        return sugar_builtin("aten::" + name);
      if (of->name == "math") {
        if (name == "pi") return sugar(constant(Value(M_PI)));
        if (name == "e") return sugar(constant(Value(M_E)));
        if (name == "inf") return sugar(constant(Value(std::numeric_limits<double>::infinity())));
        if (name == "nan") return sugar(constant(Value(std::numeric_limits<double>::quiet_NaN())));
        return sugar_builtin("aten::" + name);
      }
      if (of->name == "ops" || of->name == "torch.ops") return sugar_namespace("ops." + name);
      if (of->name.starts_with("ops.")) return sugar_builtin(of->name.substr(4) + "::" + name);
      return sugar_namespace(of->name + "." + name);
    }
    case Sugared::Kind::Python: {
      SugaredPtr s = resolver_.attribute(*of, name);
      if (!s) fail_at(at, "module has no attribute '", name, "'");
      return s;
    }
    case Sugared::Kind::Type: {
      if (of->type->is(TypeKind::Enum)) {
        for (size_t i = 0; i < of->type->cls->constants.size(); ++i)
          if (of->type->cls->constants[i].first == name)
            return sugar(constant(Value::object(make_counted<EnumValue>(of->type->cls, i)), of->type));
        fail_at(at, "the enum ", of->type->cls->name, " has no member '", name, "'");
      }
      if (of->type->cls)
        if (FunctionPtr f = of->type->cls->method(name)) return sugar_function(f);
      if (SugaredPtr s = resolver_.attribute(*of, name)) return s;
      break;
    }
    case Sugared::Kind::Modules: return method();
    case Sugared::Kind::Constant:
    case Sugared::Kind::Values:
    case Sugared::Kind::Variable: break;
    default: fail_at(at, "'", of->name, "' has no attribute '", name, "' that programs can use");
  }
  if (of->kind == Sugared::Kind::Type)
    fail_at(at, "the type ", of->type->annotation(), " has no attribute '", name, "'");
  Variable* v = as_value(at, of);
  const TypePtr& t = v->type();
  if (t->is(TypeKind::Class)) {
    const ClassPtr& cls = t->cls;
    if (int i = cls->find(name); i >= 0) {
      const TypePtr& type = cls->attributes[static_cast<size_t>(i)].type;
      Node* node = insert(at, "prim::GetAttr", {v}, {type});
      node->set_attribute("name", Value(name));
      node->output()->set_name(name);
      return modules_of(at, sugar(node->output()));
    }
    for (const auto& [key, value] : cls->constants)
      if (key == name) return sugar_constant(value);
    if (cls->is_container &&
        (name == "keys" || name == "values" || name == "items" || name == "children" || name == "named_children")) {
      auto s = std::make_shared<Sugared>();
      s->kind = Sugared::Kind::Method;
      s->self = modules_of(at, of);
      s->name = name;
      return s;
    }
    if (cls->method(name)) return method();
    if (SugaredPtr s = resolver_.attribute(*of, name)) {
      bool is_property = s->kind == Sugared::Kind::Method && s->name != name;
      return is_property ? call_method(at, v, s->name, {}) : s;
    }
    fail_at(at, "Module '", cls->name.substr(cls->name.rfind('.') + 1), "' has no attribute '", name, "'");
  }
  if (t->is(TypeKind::Tuple) && !t->fields.empty()) {
    for (size_t i = 0; i < t->fields.size(); ++i)
      if (t->fields[i] == name) return parts_of(at, of)[i];
    if (name != "_asdict") fail_at(at, "the named tuple ", t->name, " has no field '", name, "'");
  }
  if (t->is(TypeKind::Enum)) {
    if (name == "value") return sugar(one(at, "prim::EnumValue", {v}, t->cls->enum_value));
    if (name == "name") return sugar(one(at, "prim::EnumName", {v}, string_type()));
  }
  if (t->is(TypeKind::Tensor)) {
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
                                                                  {"is_quantized", "prim::is_quantized"}};
    if (auto found = properties.find(name); found != properties.end()) return builtin(at, found->second, {{"", v}});
  }
  if (t->is(TypeKind::Device) && (name == "type" || name == "index")) return builtin(at, "prim::" + name, {{"", v}});
  if (t->is(TypeKind::Optional))
    fail_at(at, "'", t->annotation(), "' object has no attribute or method '", name,
            "'. Did you forget to check that it is not None?");
  return method();
}

// ---- iterables ----

Emitter::Iterable Emitter::iterable_of(const Tree& e) { return iterable(e, expression(e)); }

Emitter::Iterable Emitter::iterable(const Tree& at, const SugaredPtr& given) {
  Iterable it;
  SugaredPtr s = modules_of(at, given);
  if (s->kind == Sugared::Kind::Values || s->kind == Sugared::Kind::Modules ||
      (s->kind == Sugared::Kind::Constant && s->value.is_list()) ||
      (s->kind == Sugared::Kind::Variable && s->variable->type()->is(TypeKind::Tuple))) {
    it.is_fixed = true;
    it.fixed = parts_of(at, s);
    return it;
  }
  auto paired = [this, &at](std::vector<SugaredPtr> parts) {
    auto out = std::make_shared<Sugared>();
    out->kind = Sugared::Kind::Values;
    out->parts = std::move(parts);
    (void)at;
    return out;
  };
  if (s->kind == Sugared::Kind::Range && s->name == "range") {
    std::vector<Variable*> a;
    for (const SugaredPtr& p : s->parts) {
      a.push_back(as_value(at, p));
      if (a.back()->type()->is(TypeKind::Tensor)) a.back() = one(at, "aten::IntImplicit", {a.back()}, int_type());
      if (!is_int(a.back()->type())) fail_at(at, "range() takes integers, but got ", a.back()->type()->annotation());
    }
    if (a.empty() || a.size() > 3) fail_at(at, "range expected at least 1 arguments, got ", a.size());
    if (a.size() == 1) {
      it.length = a[0];
      it.item = [](Variable* i) { return sugar(i); };
      return it;
    }
    if (a.size() == 2) a.push_back(constant(Value(1)));
    it.length = one(at, "aten::__range_length", a, int_type());
    it.item = [this, a, &at](Variable* i) {
      return sugar(one(at, "aten::__derive_index", {i, a[0], a[2]}, int_type()));
    };
    return it;
  }
  if (s->kind == Sugared::Kind::Range && s->name == "enumerate") {
    Iterable inner = iterable(at, s->parts[0]);
    Variable* start = s->parts.size() > 1 ? as_value(at, s->parts[1]) : nullptr;
    if (inner.is_fixed) {
      it.is_fixed = true;
      for (size_t i = 0; i < inner.fixed.size(); ++i) {
        SugaredPtr number =
            start ? builtin(at, "aten::add", {{"", start}, {"", constant(Value(static_cast<int64_t>(i)))}})
                  : sugar(constant(Value(static_cast<int64_t>(i))));
        it.fixed.push_back(paired({number, inner.fixed[i]}));
      }
      return it;
    }
    it.length = inner.length;
    it.item = [this, inner, start, &at, paired](Variable* i) {
      SugaredPtr number = start ? builtin(at, "aten::add", {{"", start}, {"", i}}) : sugar(i);
      return paired({number, inner.item(i)});
    };
    return it;
  }
  if (s->kind == Sugared::Kind::Range && s->name == "zip") {
    std::vector<Iterable> all;
    bool fixed = false;
    size_t shortest = SIZE_MAX;
    for (const SugaredPtr& p : s->parts) {
      all.push_back(iterable(at, p));
      fixed |= all.back().is_fixed;
      if (all.back().is_fixed) shortest = std::min(shortest, all.back().fixed.size());
    }
    if (all.empty()) fail_at(at, "zip needs something to loop over");
    if (fixed) {
      it.is_fixed = true;
      for (size_t i = 0; i < shortest; ++i) {
        std::vector<SugaredPtr> parts;
        for (Iterable& one_of : all)
          parts.push_back(one_of.is_fixed ? one_of.fixed[i] : one_of.item(constant(Value(static_cast<int64_t>(i)))));
        it.fixed.push_back(paired(parts));
      }
      return it;
    }
    it.length = all[0].length;
    for (size_t i = 1; i < all.size(); ++i)
      it.length = as_value(at, builtin(at, "prim::min", {{"", it.length}, {"", all[i].length}}));
    it.item = [all, paired](Variable* i) {
      std::vector<SugaredPtr> parts;
      for (const Iterable& one_of : all) parts.push_back(one_of.item(i));
      return paired(parts);
    };
    return it;
  }
  if (s->kind == Sugared::Kind::Range && s->name == "reversed") {
    Iterable inner = iterable(at, s->parts[0]);
    if (inner.is_fixed) {
      it = inner;
      std::reverse(it.fixed.begin(), it.fixed.end());
      return it;
    }
    it.length = inner.length;
    it.item = [this, inner, &at](Variable* i) {
      Variable* last = as_value(at, builtin(at, "aten::sub", {{"", inner.length}, {"", constant(Value(1))}}));
      return inner.item(as_value(at, builtin(at, "aten::sub", {{"", last}, {"", i}})));
    };
    return it;
  }
  Variable* v = as_value(at, s);
  if (is_dict(v->type())) v = as_value(at, builtin(at, "aten::keys", {{"", v}}));
  if (v->type()->is(TypeKind::Tensor))
    v = as_value(at, builtin(at, "aten::unbind", {{"", v}, {"", constant(Value(0))}}));
  if (!is_list(v->type()) && !is_string(v->type()))
    fail_at(at, "'", v->type()->annotation(), "' object is not iterable");
  it.length = as_value(at, builtin(at, "aten::len", {{"", v}}));
  it.item = [this, v, &at](Variable* i) { return builtin(at, "aten::__getitem__", {{"", v}, {"", i}}); };
  return it;
}

}  // namespace umbra::jit
