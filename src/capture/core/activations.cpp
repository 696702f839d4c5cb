// Activations by exponentials, choices and products.
#include "capture/core/core.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::core_table {
namespace {

/// Half-precision inputs are computed with as floats, and the result goes back.
template <class F> Tensor in_compute_type(const Tensor& x, F&& f) {
  DType own = x.dtype(), wide = own == DType::Float16 || own == DType::BFloat16 ? DType::Float32 : own;
  if (wide == own) return f(x);
  return f(x._to_copy({.dtype = wide}))._to_copy({.dtype = own});
}

Tensor zero_to_six(const Tensor& x) { return x.clamp(0).clamp(std::nullopt, 6); }

bool is_whole(const Scalar& value, int64_t number) {
  return value.kind() == Scalar::Kind::Int && value.to_int() == number;
}

/// log(1 + exp(beta * x)) / beta, and x itself from the threshold on. PyTorch scales unless the call says neither,
/// which the schema's whole numbers stand for.
Tensor softplus_of(const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  bool plain = is_whole(beta, 1) && is_whole(threshold, 20);
  Tensor scaled = plain ? x : x * beta, soft = scaled.exp().log1p();
  if (!plain) soft = soft / beta;
  return where(scaled.gt(threshold), x, soft);
}

Tensor shrunk_hard(const Tensor& x, const Scalar& threshold) { return number_where(x.abs().le(threshold), 0, x); }

}  // namespace

void add_activations(DecompositionTable& table) {
  table.add("aten::silu",
            [](const Tensor& self) { return in_compute_type(self, [](const Tensor& x) { return x * x.sigmoid(); }); });
  table.add("aten::hardswish", [](const Tensor& self) {
    return in_compute_type(self, [](const Tensor& x) { return x * zero_to_six(x + 3) / 6; });
  });
  table.add("aten::hardsigmoid", [](const Tensor& self) {
    return in_compute_type(self, [](const Tensor& x) { return zero_to_six(x + 3) / 6; });
  });
  table.add("aten::mish", [](const Tensor& x) { return x * softplus_of(x, 1, 20).tanh(); });
  table.add("aten::softplus", [](const Tensor& self, const Scalar& beta, const Scalar& threshold) {
    return in_compute_type(self, [&](const Tensor& x) { return softplus_of(x, beta, threshold); });
  });
  table.add("aten::selu", [](const Tensor& x) { return elu(x, 1.6732632423543772, 1.0507009873554805); });
  table.add("aten::celu", [](const Tensor& x, const Scalar& alpha) {
    bool plain = alpha.to_double() == 1;
    Tensor below = plain ? x.expm1() : (x / alpha).expm1() * alpha;
    return where(x.gt(0), x, below);
  });
  table.add("aten::_prelu_kernel", [](const Tensor& x, const Tensor& weight) {
    Tensor positive = x.gt(0);
    return where(positive, x, weight.mul(x));
  });
  table.add("aten::threshold", [](const Tensor& x, const Scalar& threshold, const Scalar& value) {
    return number_where(x.le(threshold), value, x);
  });
  table.add("aten::glu", [](const Tensor& x, int64_t dim) {
    int64_t at = dim < 0 ? dim + x.dim() : dim;
    SymInt n = x.sym_size(at), half = n / 2;
    Tensor first = x.slice(at, SymInt(0), half), gate = x.slice(at, half, n);
    return first.mul(gate.sigmoid());
  });
  table.add("aten::log_sigmoid_forward", [](const Tensor& x) {
    TensorOptions options{.dtype = x.dtype(), .layout = Layout::Strided, .device = x.device(), .pin_memory = false};
    Tensor low = full(SymIntArrayRef(), 0, options).minimum(x), z = x.abs().neg().exp();
    return std::make_tuple(low.sub(z.log1p()), x.new_zeros(IntArrayRef({0})));
  });
  table.add("aten::softshrink", [](const Tensor& x, const Scalar& threshold) {
    Tensor far = x.abs().gt(threshold), less = x - x.sign() * threshold;
    return where(far, less, x * 0);
  });
  table.add("aten::hardshrink", shrunk_hard);
  table.add("aten::_safe_softmax", [](const Tensor& x, int64_t dim, std::optional<DType> dtype) {
    Tensor out = softmax(x, dim, dtype);
    Tensor masked = x.eq(-std::numeric_limits<double>::infinity()).logical_not().any(dim, true).logical_not();
    return where(masked, out.zeros_like(), out);
  });
}

}  // namespace umbra::core_table
