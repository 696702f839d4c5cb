// Generators and seeds.
#include "generator.h"

#include <sstream>

#include "tensor_type.h"
#include "umbra/core/tensor.h"
#include "values.h"

namespace umbra::python {

namespace {

/// The Python class: a counted pointer to the generator.
struct GeneratorObject {
  GeneratorPointer pointer;
};

// The state as bytes: seed, engine, and the half-used draw of the normal distribution.
std::string save_state(Generator& g) {
  std::lock_guard lock(g.mutex());
  std::ostringstream out;
  out << g.seed() << ' ' << g.engine() << ' ' << g.cached_normal.has_value() << ' ';
  double cached = g.cached_normal.value_or(0);
  uint64_t bits;
  std::memcpy(&bits, &cached, sizeof(bits));
  out << bits;
  return out.str();
}

void load_state(Generator& g, const std::string& text) {
  std::lock_guard lock(g.mutex());
  std::istringstream in(text);
  uint64_t seed = 0, bits = 0;
  bool cached = false;
  std::mt19937 engine;
  in >> seed >> engine >> cached >> bits;
  check(!in.fail(), "RNG state is wrong size");
  g.set_seed(seed);
  g.engine() = engine;
  if (cached) {
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    g.cached_normal = value;
  }
}

Tensor to_bytes(const std::string& text) {
  int64_t size = static_cast<int64_t>(text.size());
  Tensor out = allocate_tensor({SymInt(size)}, {SymInt(1)}, DType::UInt8, Device());
  std::memcpy(out.raw_data(), text.data(), text.size());
  return out;
}
std::string from_bytes(const Tensor& state) {
  check<TypeError>(state.defined() && state.dtype() == DType::UInt8 && state.is_contiguous(),
                   "RNG state must be a torch.ByteTensor");
  return {reinterpret_cast<const char*>(state.data<std::byte>()), static_cast<size_t>(state.numel())};
}

uint64_t seed_of(nb::handle object) {
  nb::object number = owned(PyNumber_Index(object.ptr()));
  // 64 bits, read as a signed number or as an unsigned one.
  uint64_t seed = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    seed = static_cast<uint64_t>(PyLong_AsLongLong(number.ptr()));
  }
  if (PyErr_Occurred()) {
    PyErr_Clear();
    fail<ValueError>("Overflow when unpacking long long");
  }
  return seed;
}

}  // namespace

bool read_generator(PyObject* object, GeneratorPointer& out) {
  if (object == Py_None) return true;
  GeneratorObject* generator = nullptr;
  if (!nb::try_cast(nb::handle(object), generator)) return false;
  out = generator->pointer;
  return true;
}

PyObject* wrap_generator(GeneratorPointer generator) {
  if (!generator) return Py_NewRef(Py_None);
  return nb::cast(GeneratorObject{std::move(generator)}).release().ptr();
}

void bind_generator(nb::module_& m) {
  nb::class_<GeneratorObject>(m, "Generator")
      .def(
          "__init__",
          [](GeneratorObject* self, nb::handle where) {
            Device device;
            check<TypeError>(read_device(where.ptr(), device), "Generator(): argument 'device' must be a device");
            check(device.type == DeviceType::CPU, "Device type ", device,
                  " is not supported for torch.Generator(): this build draws on the CPU alone");
            new (self) GeneratorObject{make_counted<Generator>()};
          },
          nb::arg("device") = "cpu")
      .def("manual_seed",
           [](nb::object self, nb::handle seed) {
             nb::cast<GeneratorObject&>(self).pointer->set_seed(seed_of(seed));
             return self;
           })
      .def("initial_seed", [](const GeneratorObject& g) { return g.pointer->seed(); })
      .def("seed",
           [](const GeneratorObject& g) {
             uint64_t seed = std::random_device{}();
             g.pointer->set_seed(seed);
             return seed;
           })
      .def("get_state", [](const GeneratorObject& g) { return to_bytes(save_state(*g.pointer)); })
      .def("set_state",
           [](nb::object self, const Tensor& state) {
             load_state(*nb::cast<GeneratorObject&>(self).pointer, from_bytes(state));
             return self;
           })
      .def_prop_ro("device", [](const GeneratorObject&) { return nb::steal(wrap(Device())); });
  m.attr("default_generator") = nb::cast(GeneratorObject{default_generator()});
  m.def("_manual_seed", [](nb::handle seed) { manual_seed(seed_of(seed)); });
}

}  // namespace umbra::python
