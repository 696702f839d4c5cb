// torch.save and torch.load: Python objects to and from the plain data that io/ reads and writes. Nothing is unpickled
// by Python.
#include "umbra/io/pickle.h"

#include <unordered_map>

#include "tensor_type.h"
#include "values.h"

namespace umbra::python {

namespace {

using io::PickleValue;

/// Objects to data. What is one object in Python is one in the file.
class ObjectReader {
 public:
  ObjectReader(nb::handle parameter_type, nb::handle ordered_dict)
      : parameter_type_(parameter_type), ordered_dict_(ordered_dict) {}

  PickleValue read(PyObject* object) {
    if (object == Py_None) return {};
    if (PyBool_Check(object)) return PickleValue(object == Py_True);
    if (PyLong_CheckExact(object)) return integer(object);
    if (PyFloat_CheckExact(object)) return PickleValue(PyFloat_AS_DOUBLE(object));
    if (auto known = done_.find(object); known != done_.end()) return known->second;
    PickleValue value = read_object(object);
    done_.emplace(object, value);
    return value;
  }

 private:
  static PickleValue integer(PyObject* object) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    check<ValueError>(!overflow, "cannot save the int ", repr_of(object), ": it does not fit into 64 bits");
    return PickleValue(static_cast<int64_t>(value));
  }

  PickleValue read_object(PyObject* object) {
    DType dtype;
    if (PyUnicode_CheckExact(object)) return PickleValue(std::string(text_of(object)));
    if (PyBytes_CheckExact(object))
      return PickleValue::bytes({PyBytes_AS_STRING(object), static_cast<size_t>(PyBytes_GET_SIZE(object))});
    if (is_tensor(object)) return tensor(object);
    if (Py_TYPE(object) == g_dtype_type && read_dtype(object, dtype)) return PickleValue(dtype);
    if (Py_TYPE(object) == g_device_type) return PickleValue(reinterpret_cast<PyDevice*>(object)->value);
    if (PyList_CheckExact(object)) return PickleValue::list(items(object));
    if (PyTuple_CheckExact(object)) return PickleValue::tuple(items(object));
    if (Py_TYPE(object) == g_size_type) return PickleValue::size(items(object));
    bool ordered = Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(ordered_dict_.ptr());
    if (PyDict_CheckExact(object) || ordered) return PickleValue::dict(pairs(object), ordered);
    fail<TypeError>(
        "cannot save an object of type '", type_name(object),
        "': files hold tensors, numbers, text, dtypes, devices, lists, tuples and dicts of them; of a module "
        "save its state_dict()");
  }

  PickleValue tensor(PyObject* object) const {
    const Tensor& value = tensor_of(object);
    return nb::isinstance(object, parameter_type_) ? PickleValue::parameter(value, value.requires_grad())
                                                   : PickleValue(value);
  }

  /// Marks a container as being read, so that one that contains itself is noticed.
  struct Inside {
    ObjectReader& reader;
    explicit Inside(ObjectReader& r) : reader(r) {
      check<ValueError>(++reader.depth_ <= 500,
                        "cannot save an object that is nested deeper than 500 levels, or contains itself");
    }
    ~Inside() { --reader.depth_; }
  };

  PickleValue::Items items(PyObject* sequence) {
    Inside inside(*this);
    PickleValue::Items out;
    for (nb::handle item : nb::borrow<nb::sequence>(sequence)) out.push_back(read(item.ptr()));
    return out;
  }

  std::vector<PickleValue::Pair> pairs(PyObject* dict) {
    Inside inside(*this);
    std::vector<PickleValue::Pair> out;
    // Through items(): an OrderedDict keeps an order of its own.
    for (nb::handle item : nb::borrow(dict).attr("items")()) {
      PickleValue key = read(item[0].ptr());
      out.emplace_back(std::move(key), read(item[1].ptr()));
    }
    return out;
  }

  nb::handle parameter_type_, ordered_dict_;
  int depth_ = 0;
  std::unordered_map<PyObject*, PickleValue> done_;
};

/// Data to objects. `finish(tensor, is_parameter, requires_grad)` makes of each tensor what the caller wants.
class ObjectMaker {
 public:
  ObjectMaker(nb::handle finish, nb::handle ordered_dict) : finish_(finish), ordered_dict_(ordered_dict) {}

  nb::object make(const PickleValue& value) {
    if (auto known = done_.find(value.identity()); value.identity() && known != done_.end()) return known->second;
    nb::object object = make_new(value);
    if (value.identity()) done_.emplace(value.identity(), object);
    return object;
  }

 private:
  using Kind = PickleValue::Kind;

  nb::object make_new(const PickleValue& value) {
    switch (value.kind()) {
      case Kind::None: return nb::none();
      case Kind::Bool: return nb::bool_(value.as_bool());
      case Kind::Int: return nb::int_(value.as_int());
      case Kind::Float: return nb::float_(value.as_float());
      case Kind::String: return make_text(value.as_string());
      case Kind::Bytes: return nb::bytes(value.as_bytes().data(), value.as_bytes().size());
      case Kind::List: return sequence(value);
      case Kind::Tuple:
        return value.is_special() ? nb::borrow(reinterpret_cast<PyObject*>(g_size_type))(sequence(value))
                                  : nb::object(nb::tuple(sequence(value)));
      case Kind::Dict: return dict(value);
      case Kind::Tensor: return finish_(value.as_tensor(), value.is_parameter(), value.requires_grad());
      case Kind::DType: return owned(wrap(value.as_dtype()));
      case Kind::Device: return owned(wrap(value.as_device()));
      case Kind::Object:
      case Kind::Global:
      case Kind::Storage: break;
    }
    fail<ValueError>("cannot load ", value.kind_name());
  }

  nb::list sequence(const PickleValue& value) {
    nb::list out;
    for (const PickleValue& item : value.items()) out.append(make(item));
    return out;
  }

  nb::object dict(const PickleValue& value) {
    nb::object out = value.is_special() ? ordered_dict_() : nb::object(nb::dict());
    for (const auto& [key, entry] : value.pairs())
      checked(PyObject_SetItem(out.ptr(), make(key).ptr(), make(entry).ptr()));
    return out;
  }

  nb::handle finish_, ordered_dict_;
  std::unordered_map<const void*, nb::object> done_;
};

nb::object ordered_dict() { return nb::module_::import_("collections").attr("OrderedDict"); }

PickleValue read_object(nb::handle object) {
  nb::object parameter = nb::module_::import_("umbra.nn.parameter").attr("Parameter");
  return ObjectReader(parameter, ordered_dict()).read(object.ptr());
}

nb::object make_object(const PickleValue& value, nb::handle finish) {
  return ObjectMaker(finish, ordered_dict()).make(value);
}

}  // namespace

void bind_pickle(nb::module_& m) {
  m.def("_save", [](nb::handle object, const std::string& path) {
    PickleValue value = read_object(object);
    nb::gil_scoped_release unlocked;
    io::save_pickle(path, value);
  });
  m.def("_save_bytes", [](nb::handle object) {
    io::BufferSink sink;
    io::write_pickle(sink, read_object(object));
    return nb::bytes(sink.text.data(), sink.text.size());
  });
  m.def("_load", [](const std::string& path, nb::handle finish) { return make_object(io::load_pickle(path), finish); });
  m.def("_load_bytes", [](nb::bytes bytes, const std::string& label, nb::handle finish) {
    return make_object(io::read_pickle(io::Bytes(std::string(bytes.c_str(), bytes.size())), label), finish);
  });
}

}  // namespace umbra::python
