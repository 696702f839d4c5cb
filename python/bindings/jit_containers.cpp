// Lists and dicts of programs as Python holds them: what a function writes to them is seen on both sides.
#include <algorithm>

#include "jit.h"

namespace umbra::python {

namespace {

/// The value for a place of a container; an error with `message` where it is of another type.
Value typed(nb::handle object, const jit::TypePtr& type, const char* message) {
  try {
    return to_jit(object.ptr(), type);
  } catch (const Error&) {
    fail<TypeError>(message);
  }
}

jit::ListObject& items_of(const ScriptList& list) { return jit::expect_object<jit::ListObject>(list.value, "a list"); }
jit::DictObject& items_of(const ScriptDict& dict) { return jit::expect_object<jit::DictObject>(dict.value, "a dict"); }

/// Where a Python index points to.
size_t place_in(const jit::ListObject& list, int64_t index) {
  auto size = static_cast<int64_t>(list.items.size());
  check<IndexError>(index >= -size && index < size, "list index out of range");
  return static_cast<size_t>(index < 0 ? index + size : index);
}

/// A list or dict whose elements' type shows; an empty one is of tensors.
Value inferred(nb::handle object, bool is_list) {
  if (nb::len(object) == 0) {
    if (is_list) return jit::make_list(jit::tensor_type(), {});
    return Value::object(make_counted<jit::DictObject>(jit::simple_type(jit::TypeKind::String), jit::tensor_type()));
  }
  try {
    return to_jit(object.ptr(), nullptr);
  } catch (const Error& error) {
    fail("Unable to infer type of ", is_list ? "list: " : "dictionary: ", error.what());
  }
}

auto place_of(jit::ListObject& list, const Value& value) {
  return std::find_if(list.items.begin(), list.items.end(), [&](const Value& v) { return jit::equal(v, value); });
}

nb::object pop(jit::ListObject& list, int64_t index) {
  auto place = list.items.begin() + static_cast<long>(place_in(list, index));
  nb::object out = from_jit(*place, list.element);
  list.items.erase(place);
  return out;
}

void bind_lists(nb::module_& m) {
  nb::class_<ScriptList>(m, "ScriptList")
      .def("__init__", [](ScriptList* self, nb::list items) { new (self) ScriptList{inferred(items, true)}; })
      .def("__len__", [](const ScriptList& l) { return items_of(l).items.size(); })
      .def("__bool__", [](const ScriptList& l) { return !items_of(l).items.empty(); })
      .def("__repr__", [](const ScriptList& l) { return jit::to_text(l.value); })
      .def("__iter__", [](const ScriptList& l) { return nb::iter(from_jit(l.value)); })
      .def("__contains__",
           [](const ScriptList& l, nb::handle v) {
             auto& list = items_of(l);
             return place_of(list, typed(v, list.element, "list.__contains__(): argument is of the wrong type")) !=
                    list.items.end();
           })
      .def("__getitem__",
           [](const ScriptList& l, int64_t i) {
             return from_jit(items_of(l).items[place_in(items_of(l), i)], items_of(l).element);
           })
      .def("__getitem__",
           [](const ScriptList& l, nb::slice s) {
             nb::object plain = from_jit(l.value);
             return nb::object(plain[s]);
           })
      .def("__setitem__",
           [](const ScriptList& l, int64_t i, nb::handle v) {
             auto& list = items_of(l);
             size_t place = place_in(list, i);
             list.items[place] = typed(v, list.element, "list.__setitem__(): value is of the wrong type");
           })
      .def("__delitem__", [](const ScriptList& l, int64_t i) { pop(items_of(l), i); })
      .def("append",
           [](const ScriptList& l, nb::handle v) {
             auto& list = items_of(l);
             list.items.push_back(typed(v, list.element, "list.append(): argument is of the wrong type"));
           })
      .def("insert",
           [](const ScriptList& l, int64_t i, nb::handle v) {
             auto& list = items_of(l);
             Value value = typed(v, list.element, "list.insert(): argument is of the wrong type");
             auto size = static_cast<int64_t>(list.items.size());
             int64_t place = std::clamp<int64_t>(i < 0 ? i + size : i, 0, size);
             list.items.insert(list.items.begin() + place, std::move(value));
           })
      .def("extend",
           [](const ScriptList& l, nb::handle values) {
             auto& list = items_of(l);
             std::vector<Value> more;
             for (nb::handle v : nb::list(nb::borrow(values)))
               more.push_back(typed(v, list.element, "list.extend(): argument is of the wrong type"));
             list.items.insert(list.items.end(), more.begin(), more.end());
           })
      .def(
          "pop", [](const ScriptList& l, int64_t i) { return pop(items_of(l), i); }, nb::arg("index") = -1)
      .def("remove",
           [](const ScriptList& l, nb::handle v) {
             auto& list = items_of(l);
             auto place = place_of(list, typed(v, list.element, "list.remove(): argument is of the wrong type"));
             check<ValueError>(place != list.items.end(), "list.remove(x): x not in list");
             list.items.erase(place);
           })
      .def("count",
           [](const ScriptList& l, nb::handle v) {
             auto& list = items_of(l);
             Value value = typed(v, list.element, "list.count(): argument is of the wrong type");
             return std::count_if(list.items.begin(), list.items.end(),
                                  [&](const Value& item) { return jit::equal(item, value); });
           })
      .def("clear", [](const ScriptList& l) { items_of(l).items.clear(); });
}

Value key_of(const jit::DictObject& dict, nb::handle key) {
  return typed(key, dict.key, "dict key is of the wrong type");
}

void bind_dicts(nb::module_& m) {
  nb::class_<ScriptDict>(m, "ScriptDict")
      .def("__init__", [](ScriptDict* self, nb::dict items) { new (self) ScriptDict{inferred(items, false)}; })
      .def("__len__", [](const ScriptDict& d) { return items_of(d).items.size(); })
      .def("__bool__", [](const ScriptDict& d) { return !items_of(d).items.empty(); })
      .def("__repr__", [](const ScriptDict& d) { return jit::to_text(d.value); })
      .def("__iter__", [](const ScriptDict& d) { return nb::iter(from_jit(d.value)); })
      .def("keys", [](const ScriptDict& d) { return nb::iter(from_jit(d.value)); })
      .def("items", [](const ScriptDict& d) { return nb::iter(from_jit(d.value).attr("items")()); })
      .def("__contains__",
           [](const ScriptDict& d, nb::handle k) { return items_of(d).find(key_of(items_of(d), k)) != nullptr; })
      .def("__getitem__",
           [](const ScriptDict& d, nb::handle k) {
             Value* found = items_of(d).find(key_of(items_of(d), k));
             check<KeyError>(found != nullptr, repr_of(k.ptr()));
             return from_jit(*found, items_of(d).value);
           })
      .def("__setitem__",
           [](const ScriptDict& d, nb::handle k, nb::handle v) {
             auto& dict = items_of(d);
             Value key = key_of(dict, k);
             dict.set(key, typed(v, dict.value, "dict value is of the wrong type"));
           })
      .def("__delitem__", [](const ScriptDict& d, nb::handle k) {
        check<KeyError>(items_of(d).erase(key_of(items_of(d), k)), repr_of(k.ptr()));
      });
}

}  // namespace

void bind_jit_containers(nb::module_& m) {
  bind_lists(m);
  bind_dicts(m);
}

}  // namespace umbra::python
