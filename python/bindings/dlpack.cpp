// DLPack: tensors to and from other frameworks without copies.
#include "call.h"
#include "construct.h"
#include "lock.h"
#include "tensor_type.h"
#include "values.h"

namespace umbra::python {

namespace {

// The structures of the DLPack standard, version 0.x.
struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
constexpr int32_t kCpu = 1;
constexpr const char* kName = "dltensor";
constexpr const char* kUsed = "used_dltensor";

enum Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBFloat = 4, kComplex = 5, kBool = 6 };
constexpr std::pair<DType, uint8_t> kFloat8Codes[] = {{DType::Float8E4M3, 10},
                                                      {DType::Float8E4M3FNUZ, 11},
                                                      {DType::Float8E5M2, 12},
                                                      {DType::Float8E5M2FNUZ, 13},
                                                      {DType::Float8E8M0FNU, 14}};

DLDataType type_code(DType t) {
  auto bits = static_cast<uint8_t>(8 * item_size(t));
  for (auto [dtype, code] : kFloat8Codes)
    if (dtype == t) return {code, bits, 1};
  Code code = t == DType::Bool                        ? kBool
              : t == DType::BFloat16                  ? kBFloat
              : is_complex(t)                         ? kComplex
              : is_floating(t)                        ? kFloat
              : t >= DType::Int8 && t <= DType::Int64 ? kInt
                                                      : kUInt;
  return {code, bits, 1};
}

DType dtype_of(DLDataType type) {
  check(type.lanes == 1, "ATen does not support lanes != 1");
  for (int i = 0; i < kDTypeCount; ++i) {
    auto t = static_cast<DType>(i);
    DLDataType candidate = type_code(t);
    if (candidate.code == type.code && candidate.bits == type.bits) return t;
  }
  fail("Unsupported type of code ", static_cast<int>(type.code), " and ", static_cast<int>(type.bits), " bits");
}

/// A tensor on its way out, with the arrays that the structure points to.
struct Exported {
  DLManagedTensor managed;
  Tensor tensor;
  std::vector<int64_t> sizes, strides;
};

void release_exported(DLManagedTensor* managed) { delete static_cast<Exported*>(managed->context); }

void release_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kName)) return;  // taken over by a consumer
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
  if (managed->deleter) managed->deleter(managed);
}

void refuse(bool good, const std::string& why) {
  if (good) return;
  PyErr_SetString(PyExc_BufferError, why.c_str());
  throw nb::python_error();
}

nb::object to_dlpack(const Tensor& t) {
  refuse(!t.is_conj(), "Can't export tensors with the conjugate bit set");
  refuse(!t.is_neg(), "Can't export tensors with the negative bit set");
  refuse(t.device().type == DeviceType::CPU, concat("Cannot pack tensors on ", t.device()));
  refuse(t.storage()->has_data() || t.sym_numel().same(0), "Cannot pack tensors without data of their own");
  auto* out = new Exported{{}, t, t.sizes().vec(), t.strides().vec()};
  out->managed = {{t.raw_data(),
                   {kCpu, 0},
                   static_cast<int32_t>(t.dim()),
                   type_code(t.dtype()),
                   out->sizes.data(),
                   out->strides.data(),
                   0},
                  out,
                  release_exported};
  return owned(PyCapsule_New(&out->managed, kName, release_capsule));
}

Tensor from_capsule(PyObject* capsule) {
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
  if (!managed) {
    PyErr_Clear();
    fail(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
        "have already "
        "constructed a tensor from it once.");
  }
  const DLTensor& t = managed->tensor;
  check(t.device.type == kCpu, "Unsupported device type ", t.device.type);
  std::vector<int64_t> sizes(t.shape, t.shape + t.ndim), strides;
  if (t.strides) strides.assign(t.strides, t.strides + t.ndim);
  else strides = guard_ints(contiguous_strides(as_sym(sizes)));
  DType dtype = dtype_of(t.dtype);
  checked(PyCapsule_SetName(capsule, kUsed));
  return from_memory(static_cast<char*>(t.data) + t.byte_offset, sizes, strides, dtype, [managed] {
    if (!managed->deleter || !Py_IsInitialized()) return;
    WithLock lock;
    managed->deleter(managed);
  });
}

}  // namespace

void bind_dlpack(nb::module_& m) {
  m.def("_to_dlpack", &to_dlpack);
  m.def(
      "from_dlpack",
      [](nb::object source, nb::object device, std::optional<bool> copy) {
        if (!device.is_none()) {
          std::string place = str_of(device.ptr());
          refuse(place == "cpu", concat("Cannot pack tensors on ", place));
        }
        if (nb::hasattr(source, "__dlpack__")) source = source.attr("__dlpack__")();
        Tensor taken = from_capsule(source.ptr());
        return call<"aten::lift_fresh">(copy.value_or(false) ? taken.clone() : taken);
      },
      nb::arg("ext_tensor"), nb::kw_only(), nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
      "A tensor that shares the memory of another library's array (`__dlpack__`), or a copy of it.");
}

}  // namespace umbra::python
