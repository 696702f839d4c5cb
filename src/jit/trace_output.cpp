// What a traced function gave.
#include "umbra/jit/trace.h"

namespace umbra::jit {

namespace {
constexpr const char* kContainers =
    " might cause the trace to be incorrect, this is only valid if the container structure does not change based on "
    "the "
    "module's inputs. Consider using a constant container instead (e.g. for `list`, use a `tuple` instead. for `dict`, "
    "use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass strict=False to trace() "
    "to allow this behavior.";
}  // namespace

/// `place` is where among the outputs it stands.
Variable* Trace::output(const Value& value, bool strict, size_t place) {
  if (value.is_tensor()) {
    const Tensor& t = value.tensor_ref();
    check(knows(t) || paths_.contains(t.impl()), "output ", place, " (", to_string(value),
          ") of traced region did not have observable data dependence with trace inputs; this probably indicates your "
          "program cannot be understood by the tracer.");
    return tensor_variable(t);
  }
  const char* kNot =
      "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions";
  if (value.is_list()) {
    Variables parts;
    std::vector<TypePtr> types;
    for (const Value& v : value.list()) {
      parts.push_back(output(v, strict, place++));
      types.push_back(parts.back()->type());
    }
    Node* node = insert("prim::TupleConstruct", std::move(parts), tuple_type(std::move(types)));
    node->source.clear();
    return node->output();
  }
  if (auto* list = object_as<ListObject>(value)) {
    for (const Value& v : list->items) check(v.is_tensor(), kNot);
    if (strict) trace_warning(concat("Encountering a list at the output of the tracer", kContainers));
    Variables parts;
    for (const Value& v : list->items) parts.push_back(output(v, strict, place));
    return insert("prim::ListConstruct", std::move(parts), list_type(tensor_type()))->output();
  }
  if (auto* dict = object_as<DictObject>(value)) {
    check(!strict, "Encountering a dict at the output of the tracer", kContainers);
    return dict_output(value, *dict, strict);
  }
  if (value.is_object()) {
    if (auto found = objects_.find(value.object()); found != objects_.end()) return found->second.second;
  }
  fail(kNot);
}

Variable* Trace::dict_output(const Value& value, const DictObject& dict, bool strict) {
  Variables parts;
  TypePtr type;
  for (const auto& [k, v] : dict.items) {
    bool fits = v.is_tensor();
    if (v.is_list()) {
      fits = true;
      for (const Value& e : v.list()) fits &= e.is_tensor();
    }
    check(fits, "output 1 (", to_text(value),
          ") of traced region cannot be understood by the tracer, only outputs matching dict[Union[str, Tensor], "
          "Union[Tensor, Tuple[Tensor, ...]]] can be a dictionary output of a traced function");
    parts.push_back(k.is_tensor() ? output(k, strict, 0) : constant(k));
    parts.push_back(output(v, strict, 0));
    TypePtr here = without_details(parts.back()->type());
    type = type ? unify(type, here) : here;
  }
  check(type != nullptr, "a traced function gives a dict that is empty, or whose values are of different types");
  TypePtr key = dict.items.empty() ? simple_type(TypeKind::String) : type_of(dict.items[0].first);
  return insert("prim::DictConstruct", std::move(parts), dict_type(key, type))->output();
}

void Trace::set_output(const Value& result, bool strict) {
  graph_->set_current(&graph_->block());
  check(
      !result.is_none(),
      "The traced function didn't return any values! Side-effects are not captured in traces, so it would be a no-op.");
  graph_->add_output(output(result, strict, 0));
}

}  // namespace umbra::jit
