// What libtorch calls things that have another name here, so that a program comes over line by line.
//
//     torch::NoGradGuard guard;      x.to(torch::kFloat64);      // there
//     umbra::NoGradGuard guard;      x.to(umbra::kFloat64);      // here, or NoGrad and DType::Float64
//
// docs/from_libtorch.md has what cannot be written the same way.
#pragma once

#include "umbra/autograd/autograd.h"
#include "umbra/autograd/function.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/core/dtype.h"
#include "umbra/io/checkpoint.h"
#include "umbra/nn/module.h"

namespace UMBRA_API umbra {

using NoGradGuard = NoGrad;
using AutoGradMode = SetGradEnabled;
using ScalarType = DType;

struct GradMode {
  static bool is_enabled() { return is_grad_enabled(); }
  static void set_enabled(bool enabled) { set_grad_enabled(enabled); }
};

namespace cuda {
/// Whether this build runs on such devices. It does not; fake tensors may live there all the same.
inline bool is_available() { return false; }
inline int64_t device_count() { return 0; }
}  // namespace cuda

inline constexpr DType kUInt8 = DType::UInt8, kInt8 = DType::Int8, kInt16 = DType::Int16, kInt32 = DType::Int32,
                       kInt64 = DType::Int64, kFloat16 = DType::Float16, kFloat32 = DType::Float32,
                       kFloat64 = DType::Float64, kBFloat16 = DType::BFloat16, kComplex64 = DType::Complex64,
                       kComplex128 = DType::Complex128, kBool = DType::Bool;
inline constexpr DType kByte = kUInt8, kChar = kInt8, kShort = kInt16, kInt = kInt32, kLong = kInt64, kHalf = kFloat16,
                       kFloat = kFloat32, kDouble = kFloat64, kComplexFloat = kComplex64, kComplexDouble = kComplex128;
inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kMeta = DeviceType::Meta;

/// `zeros({2}, dtype(kInt64))`, `ones({2}, requires_grad())`: options of one thing.
inline TensorOptions dtype(DType type) { return {.dtype = type}; }
inline TensorOptions device(Device where) { return {.device = where}; }
inline TensorOptions requires_grad(bool value = true) { return {.requires_grad = value}; }

namespace detail {
/// "Float" for float32.
inline const char* libtorch_name(DType type) {
  switch (type) {
    case kByte: return "Byte";
    case kChar: return "Char";
    case kShort: return "Short";
    case kInt: return "Int";
    case kLong: return "Long";
    case kHalf: return "Half";
    case kFloat: return "Float";
    case kDouble: return "Double";
    case kComplexFloat: return "ComplexFloat";
    case kComplexDouble: return "ComplexDouble";
    case kBool: return "Bool";
    case kBFloat16: return "BFloat16";
    default: return name(type);
  }
}
}  // namespace detail

namespace autograd {

using AutogradContext = FunctionContext;
using tensor_list = std::vector<Tensor>;
using variable_list = std::vector<Tensor>;

/// `grad({y}, {x}, {}, retain_graph, create_graph)`; the options by their names are the better way.
template <class B>
requires(std::same_as<B, bool> || std::same_as<B, std::nullopt_t> ||
         std::same_as<B, std::optional<bool>>) std::vector<Tensor> grad(TensorList outputs, TensorList inputs,
                                                                        TensorList grad_outputs, B retain_graph,
                                                                        bool create_graph = false,
                                                                        bool allow_unused = false) {
  bool retains = std::optional<bool>(retain_graph).value_or(create_graph);
  return grad(outputs, inputs, grad_outputs, BackwardOptions{.retain_graph = retains, .create_graph = create_graph},
              allow_unused);
}

}  // namespace autograd

/// Tensors, weights and optimisers in files that torch.load reads; what is loaded has to be of the same kind. Modules
/// are saved by their state dicts. (A file of libtorch itself is a TorchScript archive: io::load_torchscript.)
inline void save(const Tensor& tensor, const std::string& path) { io::save_pickle(path, tensor); }
inline void save(const nn::Module& module, const std::string& path) { io::save_state_dict(path, module.state_dict()); }
inline void save(const optim::Optimizer& optimizer, const std::string& path) {
  io::save_pickle(path, io::to_pickle(optimizer.state_dict()));
}
inline void load(Tensor& tensor, const std::string& path) { tensor = io::load_pickle(path).as_tensor(); }
inline void load(nn::Module& module, const std::string& path) { module.load_state_dict(io::load_state_dict(path)); }
inline void load(optim::Optimizer& optimizer, const std::string& path) {
  optimizer.load_state_dict(io::to_optimizer_state(io::load_pickle(path)));
}

#ifdef UMBRA_LIBTORCH_METHODS
/// A leaf's gradient that can be assigned and taken away.
class GradientPlace : public Tensor {
 public:
  explicit GradientPlace(const Tensor& of) : Tensor(of.grad()), of_(of) {}
  GradientPlace& operator=(const Tensor& gradient) {
    of_.set_grad(gradient);
    static_cast<Tensor&>(*this) = gradient;
    return *this;
  }
  void reset() { *this = Tensor(); }

 private:
  Tensor of_;
};
inline auto Tensor::mutable_grad() const { return GradientPlace(*this); }
inline void Tensor::set_data(const Tensor& data) const { autograd::set_data(*this, data); }
inline std::string Tensor::toString() const {
  std::string device = umbra::to_string(Device(this->device().type)), type = detail::libtorch_name(dtype());
  std::transform(device.begin(), device.end(), device.begin(), [](unsigned char c) { return std::toupper(c); });
  return device + type + "Type";
}
inline void Tensor::print() const {
  std::fputs(("[" + toString() + " " + umbra::to_string(sizes()) + "]\n").c_str(), stderr);
}
inline bool Tensor::retains_grad() const { return autograd::retains_grad(*this); }
template <int> Tensor::Number Tensor::item() const { return umbra::item(*this); }
inline Tensor Tensor::data() const { return autograd::data_of(*this); }
inline auto Tensor::grad_fn() const { return autograd::grad_fn(*this); }
template <class F> auto Tensor::register_hook(F hook) const {
  return autograd::register_hook(*this, [hook = std::move(hook)](const Tensor& gradient) -> Tensor {
    if constexpr (std::is_void_v<std::invoke_result_t<F, const Tensor&>>) return hook(gradient), Tensor();
    else return hook(gradient);
  });
}
#endif

}  // namespace umbra
