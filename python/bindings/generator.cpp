// Generators and seeds.
#include "generator.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>

#include "capture_frames.h"
#include "capture_watch.h"
#include "tensor_type.h"
#include "umbra/core/random_engine.h"
#include "umbra/core/tensor.h"
#include "values.h"

namespace umbra::python {

namespace {

/// The Python class: a counted pointer to the generator.
struct GeneratorObject {
  GeneratorPointer pointer;
};

constexpr int kWords = 624;
constexpr const char* kSeeds = "graphs draw random numbers, and do not seed generators";

/// The state as PyTorch lays it out, so that states go from one to the other.
struct SavedState {
  uint64_t seed;
  int32_t left, seeded;
  uint64_t next;
  uint64_t words[kWords];
  double normal_x, normal_y, normal_rho;
  int32_t normal_is_valid;
  int32_t unused;
  float float_normal;
  bool float_normal_is_valid;
};
constexpr size_t kLegacySize = offsetof(SavedState, float_normal);

std::string save_state(Generator& g) {
  std::lock_guard lock(g.engine().mutex);
  SavedState saved;
  std::memset(&saved, 0, sizeof(saved));
  saved.seed = g.seed();
  saved.seeded = 1;
  const Generator::Engine& engine = g.engine();
  std::copy_n(engine.words, kWords, saved.words);
  // The engine has its place behind its words; before the first draw PyTorch's is in front of them.
  saved.next = static_cast<uint64_t>(engine.next);
  Generator::Engine fresh;
  fresh.seed(static_cast<uint32_t>(g.seed()));
  if (engine.next == fresh.next && std::equal(engine.words, engine.words + kWords, fresh.words)) saved.next = 0;
  saved.left = saved.next == 0 ? 1 : static_cast<int32_t>(kWords + 1 - saved.next);
  saved.normal_is_valid = g.cached_normal.has_value();
  saved.normal_y = g.cached_normal.value_or(0);
  return {reinterpret_cast<const char*>(&saved), sizeof(saved)};
}

void load_state(Generator& g, const std::string& bytes) {
  check(bytes.size() == sizeof(SavedState) || bytes.size() == kLegacySize,
        "Expected either a CPUGeneratorImplStateLegacy of size ", kLegacySize, " or a CPUGeneratorImplState of size ",
        sizeof(SavedState), " but found the input RNG state size to be ", bytes.size());
  SavedState saved;
  std::memset(&saved, 0, sizeof(saved));
  std::memcpy(&saved, bytes.data(), bytes.size());
  bool valid = saved.seeded == 1 && saved.next <= kWords && saved.left >= 1 && saved.left <= kWords;
  for (uint64_t word : saved.words) valid = valid && word <= std::numeric_limits<uint32_t>::max();
  check(valid, "Invalid mt19937 state");
  std::lock_guard lock(g.engine().mutex);
  g.manual_seed(saved.seed);
  Generator::Engine& engine = g.engine();
  for (size_t i = 0; i < kWords; ++i) engine.words[i] = static_cast<uint32_t>(saved.words[i]);
  engine.next = static_cast<int>(saved.left == 1 ? kWords : saved.next);
  if (saved.normal_is_valid) g.cached_normal = saved.normal_y;
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
             end_capture("torch.Generator.manual_seed()", kSeeds);
             check(PyIndex_Check(seed.ptr()), "manual_seed expected a long, but got ",
                   short_type_name(Py_TYPE(seed.ptr())));
             nb::cast<GeneratorObject&>(self).pointer->manual_seed(seed_of(seed));
             return self;
           })
      .def("initial_seed", [](const GeneratorObject& g) { return g.pointer->seed(); })
      .def("seed",
           [](const GeneratorObject& g) {
             end_capture("torch.Generator.seed()", kSeeds);
             uint64_t seed = std::random_device{}();
             g.pointer->manual_seed(seed);
             return seed;
           })
      .def("get_state",
           [](const GeneratorObject& g) {
             end_capture_of_question("torch.Generator.get_state()");
             return to_bytes(save_state(*g.pointer));
           })
      .def("clone_state",
           [](const GeneratorObject& g) {
             GeneratorObject copy{make_counted<Generator>()};
             load_state(*copy.pointer, save_state(*g.pointer));
             return copy;
           })
      .def("set_state",
           [](nb::object self, nb::object state) {
             end_capture_of_question("torch.Generator.set_state()");
             check<TypeError>(is_tensor(state.ptr()), "expected a torch.ByteTensor, but got ",
                              short_type_name(Py_TYPE(state.ptr())));
             load_state(*nb::cast<GeneratorObject&>(self).pointer, from_bytes(nb::cast<Tensor>(state)));
             return self;
           })
      .def_prop_ro("device", [](const GeneratorObject&) { return nb::steal(wrap(Device())); });
  m.attr("default_generator") = nb::cast(GeneratorObject{default_generator()});
  m.def("_manual_seed", [](nb::handle seed) {
    end_capture("torch.manual_seed()", kSeeds);
    manual_seed(seed_of(seed));
  });
}

}  // namespace umbra::python
