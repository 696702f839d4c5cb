// Lists, dicts, tuples and enums.
#include <algorithm>

#include "jit/builtin_rules.h"
#include "umbra/generated/functions.h"
#include "umbra/jit/interpreter.h"

namespace umbra::jit {

SliceRange slice_range(const Value& start, const Value& stop, const Value& step, size_t size) {
  auto n = static_cast<int64_t>(size);
  SliceRange r{0, n, step.is_none() ? 1 : step.to_int()};
  check<ValueError>(r.step != 0, "slice step cannot be zero");
  int64_t low = r.step > 0 ? 0 : -1, high = r.step > 0 ? n : n - 1;
  auto bring = [&](const Value& v, int64_t absent) {
    if (v.is_none()) return absent;
    int64_t i = v.to_int();
    if (i < 0) i += n;
    return std::clamp(i, low, high);
  };
  r.start = bring(start, r.step > 0 ? low : high);
  r.stop = bring(stop, r.step > 0 ? high : low);
  return r;
}

namespace {

bool fits(const Types& t, std::initializer_list<bool (*)(const TypePtr&)> tests) {
  if (t.size() != tests.size()) return false;
  size_t i = 0;
  for (auto test : tests)
    if (!test(t[i++])) return false;
  return true;
}
bool anything(const TypePtr&) { return true; }
bool optional_int(const TypePtr& t) {
  return is_int(t) || t->is(TypeKind::None) || (t->is(TypeKind::Optional) && is_int(t->element()));
}
bool takes_element(const Types& t, size_t list, size_t element) { return is_subtype(t[element], t[list]->element()); }

TypePtr first(const Types& t) { return t.size() == 1 && (is_list(t[0]) || is_dict(t[0])) ? t[0] : nullptr; }
TypePtr length(const Types& t) {
  bool sized = t.size() == 1 && (is_list(t[0]) || is_dict(t[0]) || is_string(t[0]) || t[0]->is(TypeKind::Tuple));
  return sized ? int_type() : nullptr;
}
TypePtr list_item(const Types& t) { return fits(t, {is_list, is_int}) ? t[0]->element() : nullptr; }
TypePtr dict_item(const Types& t) {
  return t.size() == 2 && is_dict(t[0]) && is_subtype(t[1], t[0]->element(0)) ? t[0]->element(1) : nullptr;
}
TypePtr tuple_item(const Types& t) {  // of elements of one type; other tuples need an index that the compiler knows
  if (!(t.size() == 2 && t[0]->is(TypeKind::Tuple) && is_int(t[1])) || t[0]->elements.empty()) return nullptr;
  TypePtr type = t[0]->element(0);
  for (const TypePtr& e : t[0]->elements) type = type ? unify(type, e) : nullptr;
  return type;
}
TypePtr list_slice(const Types& t) {  // list, start, stop, step
  if (t.empty() || t.size() > 4 || !is_list(t[0])) return nullptr;
  return std::all_of(t.begin() + 1, t.end(), optional_int) ? t[0] : nullptr;
}
TypePtr add_element(const Types& t) {
  return t.size() == 2 && is_list(t[0]) && takes_element(t, 0, 1) ? none_type() : nullptr;
}
TypePtr joined_lists(const Types& t) { return fits(t, {is_list, is_list}) && same_type(t[0], t[1]) ? t[0] : nullptr; }
TypePtr extend_rule(const Types& t) { return joined_lists(t) ? none_type() : nullptr; }
TypePtr repeated(const Types& t) {
  return fits(t, {is_list, is_int}) ? t[0] : fits(t, {is_int, is_list}) ? t[1] : nullptr;
}
TypePtr insert_rule(const Types& t) {
  return fits(t, {is_list, is_int, anything}) && takes_element(t, 0, 2) ? none_type() : nullptr;
}
TypePtr set_list_item(const Types& t) {
  return fits(t, {is_list, is_int, anything}) && takes_element(t, 0, 2) ? none_type() : nullptr;
}
TypePtr set_dict_item(const Types& t) {
  return fits(t, {is_dict, anything, anything}) && is_subtype(t[1], t[0]->element(0)) &&
                 is_subtype(t[2], t[0]->element(1))
             ? none_type()
             : nullptr;
}
TypePtr nothing_of_list(const Types& t) { return fits(t, {is_list}) ? none_type() : nullptr; }
TypePtr sort_rule(const Types& t) {
  return (fits(t, {is_list}) || fits(t, {is_list, is_bool})) ? none_type() : nullptr;
}
TypePtr element_of_list(const Types& t) {
  return fits(t, {is_list}) || fits(t, {is_list, is_int}) ? t[0]->element() : nullptr;
}
TypePtr find_in_list(const Types& t) {
  return fits(t, {is_list, anything}) && takes_element(t, 0, 1) ? int_type() : nullptr;
}
TypePtr contains(const Types& t) {
  if (t.size() != 2) return nullptr;
  if (is_list(t[0]) && t[0]->element()->is(TypeKind::Tensor)) return nullptr;  // of tensors it would be no one answer
  bool known = is_list(t[0]) ? takes_element(t, 0, 1) : is_dict(t[0]) && is_subtype(t[1], t[0]->element(0));
  return known ? bool_type() : nullptr;
}
TypePtr list_of_numbers(const Types& t) {
  return fits(t, {is_list}) && (is_number(t[0]->element()) || is_bool(t[0]->element()))
             ? (is_bool(t[0]->element()) ? int_type() : t[0]->element())
             : nullptr;
}
TypePtr any_all(const Types& t) {
  return fits(t, {is_list}) && (is_number(t[0]->element()) || is_bool(t[0]->element())) ? bool_type() : nullptr;
}
TypePtr any_rule(const Types& t) { return fits(t, {is_list}) && is_string(t[0]->element()) ? bool_type() : any_all(t); }
TypePtr list_extreme(const Types& t) {
  bool ordered = fits(t, {is_list}) && (is_real(t[0]->element()) || is_bool(t[0]->element()));
  return ordered ? t[0]->element() : nullptr;
}
/// Lists are compared by their elements; tuples are, where their elements are of one type (as lists).
TypePtr same_kind(const Types& t) {
  if (t.size() != 2 || t[0]->kind != t[1]->kind) return nullptr;
  bool lists = is_list(t[0]) && same_type(t[0], t[1]) && t[0]->element()->elements.empty();
  bool whole = t[0]->is(TypeKind::Enum) || t[0]->is(TypeKind::Device) || t[0]->is(TypeKind::None);
  return lists || whole ? bool_type() : nullptr;
}
bool is_pair(const TypePtr& t) { return t->is(TypeKind::Tuple) && t->elements.size() == 2; }
TypePtr dict_of_pairs(const Types& t) {
  if (fits(t, {is_dict})) return t[0];
  return fits(t, {is_list}) && is_pair(t[0]->element())
             ? dict_type(t[0]->element()->element(0), t[0]->element()->element(1))
             : nullptr;
}
TypePtr identity_rule(const Types& t) { return t.size() == 2 ? bool_type() : nullptr; }
TypePtr dict_keys(const Types& t) { return fits(t, {is_dict}) ? list_type(t[0]->element(0)) : nullptr; }
TypePtr dict_values(const Types& t) { return fits(t, {is_dict}) ? list_type(t[0]->element(1)) : nullptr; }
TypePtr dict_items(const Types& t) {
  return fits(t, {is_dict}) ? list_type(tuple_type({t[0]->element(0), t[0]->element(1)})) : nullptr;
}
TypePtr get_rule(const Types& t) {
  if (t.size() < 2 || t.size() > 3 || !is_dict(t[0]) || !is_subtype(t[1], t[0]->element(0))) return nullptr;
  if (t.size() == 2) return optional_type(t[0]->element(1));
  return unify(t[0]->element(1), t[2]);
}
TypePtr dict_pop(const Types& t) {
  if (t.size() < 2 || t.size() > 3 || !is_dict(t[0]) || !is_subtype(t[1], t[0]->element(0))) return nullptr;
  return t[0]->element(1);
}
TypePtr delete_rule(const Types& t) { return dict_item(t) || fits(t, {is_list, is_int}) ? none_type() : nullptr; }
TypePtr update_rule(const Types& t) { return fits(t, {is_dict, is_dict}) ? none_type() : nullptr; }
TypePtr clear_rule(const Types& t) { return first(t) ? none_type() : nullptr; }
TypePtr enum_value(const Types& t) {
  return t.size() == 1 && t[0]->is(TypeKind::Enum) ? t[0]->cls->enum_value : nullptr;
}
TypePtr enum_name(const Types& t) { return t.size() == 1 && t[0]->is(TypeKind::Enum) ? string_type() : nullptr; }
TypePtr no_item(const Types& t) {
  return fits(t, {is_dict}) ? tuple_type({t[0]->element(0), t[0]->element(1)}) : nullptr;
}

bool less(const Value& a, const Value& b) {
  if (auto* object = object_as<Instance>(a))
    if (FunctionPtr own = object->cls->method("__lt__")) return run(*own, {a, b}).to_bool();
  if (a.is_string() && b.is_string()) return a.to_string() < b.to_string();
  if (a.is_int() && b.is_int()) return a.to_int() < b.to_int();
  if (a.is_tensor() && b.is_tensor()) return a.tensor_ref().lt(b.tensor_ref()).item().to_bool();
  if (a.is_list() && b.is_list()) {
    for (size_t i = 0; i < std::min(a.list().size(), b.list().size()); ++i) {
      if (less(a.list()[i], b.list()[i])) return true;
      if (less(b.list()[i], a.list()[i])) return false;
    }
    return a.list().size() < b.list().size();
  }
  if (auto* object = object_as<Instance>(a))
    if (FunctionPtr method = object->cls->method("__lt__"))
      fail<NotImplementedError>("TorchScript: sorting objects of ", object->cls->name);
  return a.to_double() < b.to_double();
}

size_t length_of(const Value& v) {
  if (v.is_string()) return v.to_string().size();
  if (v.is_list()) return v.list().size();
  if (auto* dict = object_as<DictObject>(v)) return dict->items.size();
  return items_of(v).size();
}

Value sorted_list(const Value& value, bool reverse) {
  auto& list = expect_object<ListObject>(value, "a list");
  std::vector<Value> items = list.items;
  std::stable_sort(items.begin(), items.end(),
                   [&](const Value& a, const Value& b) { return reverse ? less(b, a) : less(a, b); });
  return make_list(list.element, std::move(items));
}

/// Whether lists take one for the other: tensors of one element by their values.
bool matches(const Value& a, const Value& b) {
  if (!a.is_tensor() || !b.is_tensor()) return equal(a, b);
  Tensor same = eq(a.tensor_ref(), b.tensor_ref());
  check(same.numel() == 1, "Boolean value of Tensor with ", same.numel() == 0 ? "no values" : "more than one value",
        " is ambiguous");
  return same.item().to_bool();
}

bool contained(const std::vector<Value>& items, const Value& wanted) {
  return std::any_of(items.begin(), items.end(), [&](const Value& v) { return matches(v, wanted); });
}

[[noreturn]] void missing_key(const Value& key) { fail<KeyError>("KeyError: ", to_text(key, true)); }

bool identical(const Value& a, const Value& b) {
  if (a.is_tensor() && b.is_tensor()) return a.tensor_impl() == b.tensor_impl();
  if (a.is_object() && b.is_object()) return a.object() == b.object();
  return a.tag() == b.tag() && equal(a, b);
}

Value extreme_of(const Value& list, bool greatest) {
  auto& items = items_of(list);
  check<ValueError>(!items.empty(), greatest ? "max() arg is an empty sequence" : "min() arg is an empty sequence");
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i)
    if (greatest ? less(items[best], items[i]) : less(items[i], items[best])) best = i;
  return items[best];
}

bool truth(const Value& v) {
  if (v.is_string()) return !v.to_string().empty();
  return v.is_bool() ? v.to_bool() : v.to_double() != 0;
}

}  // namespace

const std::vector<Builtin> kContainerBuiltins = {
    {"aten::len", length, [](Value* a, size_t) { return Value(static_cast<int64_t>(length_of(a[0]))); }},
    {"aten::__getitem__", list_item,
     [](Value* a, size_t) {
       auto& items = items_of(a[0]);
       return items[static_cast<size_t>(wrapped_index(a[1].to_int(), items.size()))];
     }},
    {"aten::__getitem__", dict_item,
     [](Value* a, size_t) {
       Value* found = dict_of(a[0]).find(a[1]);
       if (!found) missing_key(a[1]);
       return *found;
     }},
    {"aten::__getitem__", tuple_item,
     [](Value* a, size_t) {
       return a[0]
           .list()[static_cast<size_t>(wrapped_index(a[1].to_int(), a[0].list().size(), "Tuple index out of range"))];
     }},
    {"prim::TupleIndex", tuple_item,
     [](Value* a, size_t) {
       return a[0]
           .list()[static_cast<size_t>(wrapped_index(a[1].to_int(), a[0].list().size(), "Tuple index out of range"))];
     }},
    {"aten::slice", list_slice,
     [](Value* a, size_t n) {
       auto& list = expect_object<ListObject>(a[0], "a list");
       std::vector<Value> out;
       auto bound = [&](size_t i) { return n > i ? a[i] : Value(); };
       slice_range(bound(1), bound(2), bound(3), list.items.size()).each([&](size_t i) {
         out.push_back(list.items[i]);
       });
       return make_list(list.element, std::move(out));
     }},
    {"aten::_set_item", set_list_item,
     [](Value* a, size_t) {
       auto& items = items_of(a[0]);
       items[static_cast<size_t>(wrapped_index(a[1].to_int(), items.size(), "list assignment index out of range"))] =
           a[2];
       return Value();
     }},
    {"aten::_set_item", set_dict_item, [](Value* a, size_t) { return dict_of(a[0]).set(a[1], a[2]), Value(); }},
    {"aten::append", add_element, [](Value* a, size_t) { return items_of(a[0]).push_back(a[1]), Value(); }},
    {"aten::extend", extend_rule,
     [](Value* a, size_t) {
       std::vector<Value> more = items_of(a[1]);
       items_of(a[0]).insert(items_of(a[0]).end(), more.begin(), more.end());
       return Value();
     }},
    {"aten::add", joined_lists,
     [](Value* a, size_t) {
       std::vector<Value> out = items_of(a[0]);
       out.insert(out.end(), items_of(a[1]).begin(), items_of(a[1]).end());
       return make_list(expect_object<ListObject>(a[0], "a list").element, std::move(out));
     }},
    {"aten::add_", joined_lists,
     [](Value* a, size_t) {
       std::vector<Value> more = items_of(a[1]);
       items_of(a[0]).insert(items_of(a[0]).end(), more.begin(), more.end());
       return a[0];
     }},
    {"aten::mul", repeated,
     [](Value* a, size_t) {
       const Value& list = a[0].is_int() ? a[1] : a[0];
       int64_t count = a[0].is_int() ? a[0].to_int() : a[1].to_int();
       std::vector<Value> out;
       for (int64_t i = 0; i < count; ++i) out.insert(out.end(), items_of(list).begin(), items_of(list).end());
       return make_list(expect_object<ListObject>(list, "a list").element, std::move(out));
     }},
    {"aten::insert", insert_rule,
     [](Value* a, size_t) {
       auto& items = items_of(a[0]);
       auto n = static_cast<int64_t>(items.size());
       int64_t i = a[1].to_int() < 0 ? std::max<int64_t>(a[1].to_int() + n, 0) : std::min(a[1].to_int(), n);
       items.insert(items.begin() + i, a[2]);
       return Value();
     }},
    {"aten::pop", element_of_list,
     [](Value* a, size_t n) {
       auto& items = items_of(a[0]);
       check<IndexError>(!items.empty(), "pop from empty list");
       int64_t i = wrapped_index(n == 2 ? a[1].to_int() : -1, items.size(), "pop index out of range");
       Value out = items[static_cast<size_t>(i)];
       items.erase(items.begin() + i);
       return out;
     }},
    {"aten::reverse", nothing_of_list,
     [](Value* a, size_t) { return std::reverse(items_of(a[0]).begin(), items_of(a[0]).end()), Value(); }},
    {"aten::sort", sort_rule,
     [](Value* a, size_t n) {
       items_of(a[0]) = items_of(sorted_list(a[0], n == 2 && a[1].to_bool()));
       return Value();
     }},
    {"aten::sorted", first, [](Value* a, size_t) { return sorted_list(a[0], false); }},
    {"aten::index", find_in_list,
     [](Value* a, size_t) {
       auto& items = items_of(a[0]);
       for (size_t i = 0; i < items.size(); ++i)
         if (matches(items[i], a[1])) return Value(static_cast<int64_t>(i));
       fail<ValueError>("'", to_text(a[1]), "' is not in list");
     }},
    {"aten::count", find_in_list,
     [](Value* a, size_t) {
       auto& items = items_of(a[0]);
       return Value(static_cast<int64_t>(
           std::count_if(items.begin(), items.end(), [&](const Value& v) { return matches(v, a[1]); })));
     }},
    {"aten::remove", add_element,
     [](Value* a, size_t) {
       auto& items = items_of(a[0]);
       auto found = std::find_if(items.begin(), items.end(), [&](const Value& v) { return matches(v, a[1]); });
       check<ValueError>(found != items.end(), "list.remove(x): x not in list");
       items.erase(found);
       return Value();
     }},
    {"aten::__contains__", contains,
     [](Value* a, size_t) {
       if (auto* dict = object_as<DictObject>(a[0])) return Value(dict->find(a[1]) != nullptr);
       return Value(contained(items_of(a[0]), a[1]));
     }},
    {"aten::clear", clear_rule,
     [](Value* a, size_t) {
       if (auto* dict = object_as<DictObject>(a[0])) dict->items.clear();
       else items_of(a[0]).clear();
       return Value();
     }},
    {"aten::copy", first,
     [](Value* a, size_t) {
       if (auto* dict = object_as<DictObject>(a[0])) {
         auto out = make_counted<DictObject>(dict->key, dict->value);
         out->items = dict->items;
         return Value::object(out);
       }
       return make_list(expect_object<ListObject>(a[0], "a list").element, items_of(a[0]));
     }},
    {"aten::dict", dict_of_pairs,
     [](Value* a, size_t) {
       if (auto* dict = object_as<DictObject>(a[0])) {
         auto out = make_counted<DictObject>(dict->key, dict->value);
         out->items = dict->items;
         return Value::object(out);
       }
       auto& list = expect_object<ListObject>(a[0], "a list");
       auto out = make_counted<DictObject>(list.element->element(0), list.element->element(1));
       for (const Value& pair : list.items) out->set(pair.list()[0], pair.list()[1]);
       return Value::object(out);
     }},
    {"aten::list", [](const Types& t) { return fits(t, {is_list}) ? t[0] : nullptr; },
     [](Value* a, size_t) { return make_list(expect_object<ListObject>(a[0], "a list").element, items_of(a[0])); }},
    {"aten::sum", list_of_numbers,
     [](Value* a, size_t) {
       auto& list = expect_object<ListObject>(a[0], "a list");
       if (is_float(list.element)) {
         double total = 0;
         for (const Value& v : list.items) total += v.to_double();
         return Value(total);
       }
       int64_t total = 0;
       for (const Value& v : list.items) total += v.to_int();
       return Value(total);
     }},
    {"aten::any", any_rule,
     [](Value* a, size_t) { return Value(std::any_of(items_of(a[0]).begin(), items_of(a[0]).end(), truth)); }},
    {"aten::all", any_all,
     [](Value* a, size_t) { return Value(std::all_of(items_of(a[0]).begin(), items_of(a[0]).end(), truth)); }},
    {"prim::max", list_extreme, [](Value* a, size_t) { return extreme_of(a[0], true); }},
    {"prim::min", list_extreme, [](Value* a, size_t) { return extreme_of(a[0], false); }},
    {"aten::eq", same_kind, [](Value* a, size_t) { return Value(equal(a[0], a[1])); }},
    {"aten::ne", same_kind, [](Value* a, size_t) { return Value(!equal(a[0], a[1])); }},
    {"aten::__is__", identity_rule, [](Value* a, size_t) { return Value(identical(a[0], a[1])); }},
    {"aten::__isnot__", identity_rule, [](Value* a, size_t) { return Value(!identical(a[0], a[1])); }},
    {"aten::keys", dict_keys,
     [](Value* a, size_t) {
       std::vector<Value> out;
       for (auto& [k, v] : dict_of(a[0]).items) out.push_back(k);
       return make_list(dict_of(a[0]).key, std::move(out));
     }},
    {"aten::values", dict_values,
     [](Value* a, size_t) {
       std::vector<Value> out;
       for (auto& [k, v] : dict_of(a[0]).items) out.push_back(v);
       return make_list(dict_of(a[0]).value, std::move(out));
     }},
    {"aten::items", dict_items,
     [](Value* a, size_t) {
       std::vector<Value> out;
       DictObject& dict = dict_of(a[0]);
       for (auto& [k, v] : dict.items) out.emplace_back(std::vector<Value>{k, v});
       return make_list(tuple_type({dict.key, dict.value}), std::move(out));
     }},
    {"aten::get", get_rule,
     [](Value* a, size_t n) {
       Value* found = dict_of(a[0]).find(a[1]);
       return found ? *found : n == 3 ? a[2] : Value();
     }},
    {"aten::pop", dict_pop,
     [](Value* a, size_t n) {
       Value* found = dict_of(a[0]).find(a[1]);
       if (!found && n == 2) missing_key(a[1]);
       Value out = found ? *found : a[2];
       dict_of(a[0]).erase(a[1]);
       return out;
     }},
    {"aten::popitem", no_item,
     [](Value* a, size_t) {
       auto& items = dict_of(a[0]).items;
       check<KeyError>(!items.empty(), "popitem(): dictionary is empty");
       Value out(std::vector<Value>{items.front().first, items.front().second});
       items.erase(items.begin());
       return out;
     }},
    {"aten::setdefault", get_rule,
     [](Value* a, size_t n) {
       if (!dict_of(a[0]).find(a[1])) dict_of(a[0]).set(a[1], n == 3 ? a[2] : Value());
       return *dict_of(a[0]).find(a[1]);
     }},
    {"aten::Delete", delete_rule,
     [](Value* a, size_t) {
       if (auto* dict = object_as<DictObject>(a[0])) {
         if (!dict->erase(a[1])) missing_key(a[1]);
         return Value();
       }
       auto& items = items_of(a[0]);
       items.erase(items.begin() + wrapped_index(a[1].to_int(), items.size(), "list assignment index out of range"));
       return Value();
     }},
    {"aten::update", update_rule,
     [](Value* a, size_t) {
       auto more = dict_of(a[1]).items;
       for (auto& [k, v] : more) dict_of(a[0]).set(k, v);
       return Value();
     }},
    {"prim::EnumValue", enum_value,
     [](Value* a, size_t) {
       auto& member = expect_object<EnumValue>(a[0], "an enum's member");
       return member.cls->constants[member.member].second;
     }},
    {"prim::EnumName", enum_name,
     [](Value* a, size_t) {
       auto& member = expect_object<EnumValue>(a[0], "an enum's member");
       return Value(member.cls->constants[member.member].first);
     }},
};

}  // namespace umbra::jit
