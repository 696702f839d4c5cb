// Batch normalisation where a tensor is on the meta device: by operators over sizes and types, which refuse what does
// not fit as they come to it. Fake tensors go by the definitions' own metadata.
#include "ops/norm/batch_norm_on_meta.h"

#include "dispatch/layers.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

/// A frame's arguments of a batch normalisation, as far as the operator has them.
struct Arguments {
  Tensor input, weight, bias, mean, var;
  bool training;
  double momentum, eps;
};

struct Results {
  Tensor out, save_mean, save_invstd, mean, var;
};

DType computed_in(DType type) {
  if (type == DType::Complex32) return DType::Complex64;
  return is_reduced_floating(type) ? DType::Float32 : type;
}

/// With dimensions of size 1 behind, until there are so many.
Tensor unsqueezed_to(Tensor t, int64_t rank) {
  while (t.dim() < rank) t = t.unsqueeze(-1);
  return t;
}

std::vector<int64_t> all_but_channels(const Tensor& input) {
  std::vector<int64_t> dims{0};
  for (int64_t d = 2; d < input.dim(); ++d) dims.push_back(d);
  return dims;
}

Tensor moved(const Tensor& running, const Tensor& seen, double momentum, bool written) {
  Tensor next = seen.mul(momentum).add(running.mul(1 - momentum));
  if (written) running.alias().copy_(next);
  return next;
}

/// Elements to a channel over one less: what makes a variance unbiased.
double unbiased(const Tensor& input) {
  check<IndexError>(input.dim() > 1, "tuple index out of range");
  auto channels = static_cast<double>(input.sym_size(1).guard_int());
  double count = static_cast<double>(input.sym_numel().guard_int()) / channels;
  check<ZeroDivisionError>(channels != 0 && count != 1, "division by zero");
  return count / (count - 1);
}

Results describe(const Arguments& a, bool written) {
  DType type = computed_in(a.input.dtype());
  int64_t rank = a.input.dim() - 1;
  Results r{.mean = a.mean, .var = a.var};
  if (a.training) {
    std::vector<int64_t> dims = all_but_channels(a.input);
    auto [var, mean] = var_mean(a.input.to(type), dims, Scalar(0), true);
    Tensor invstd = var.add(a.eps).rsqrt();
    r.out = a.input.sub(mean).mul(invstd);
    r.save_mean = mean.squeeze(dims);
    r.save_invstd = invstd.squeeze(dims);
    if (a.mean.defined()) r.mean = moved(a.mean, r.save_mean, a.momentum, written);
    if (a.var.defined()) {
      double factor = unbiased(a.input);
      r.var = moved(a.var, var.squeeze(dims).mul(factor), a.momentum, written);
    }
  } else {
    check<AssertionError>(a.mean.defined() && a.var.defined(),
                          "running_mean and running_var must not be None in eval mode");
    r.mean = a.mean.to(type);
    r.var = a.var.to(type);
    Tensor invstd = r.var.add(a.eps).rsqrt();
    bool cpu = a.input.device().type == DeviceType::CPU;
    r.save_mean = cpu ? a.input.new_zeros({SymInt(0)}) : r.mean;
    r.save_invstd = cpu ? a.input.new_zeros({SymInt(0)}) : invstd;
    r.out = a.input.sub(unsqueezed_to(r.mean, rank)).mul(unsqueezed_to(invstd, rank));
  }
  if (a.weight.defined()) r.out = r.out.mul(unsqueezed_to(a.weight.flatten(), rank));
  if (a.bias.defined()) r.out = r.out.add(unsqueezed_to(a.bias.flatten(), rank));
  r.out = r.out.to(a.input.dtype());
  return r;
}

void give(Value* frame, std::initializer_list<Tensor> results) {
  for (const Tensor& t : results) *frame++ = Value(t);
}

/// An argument by its name; nothing where the operator has none of that name.
Tensor tensor_named(const Operator& op, const Value* frame, const char* name) {
  int at = op.schema().find(name);
  return at < 0 ? Tensor() : frame[at].tensor();
}

Arguments arguments_of(const Operator& op, const Value* frame) {
  auto tensor = [&](const char* name) { return tensor_named(op, frame, name); };
  int training = op.schema().find("training");
  return {.input = tensor("input"),
          .weight = tensor("weight"),
          .bias = tensor("bias"),
          .mean = tensor("running_mean"),
          .var = tensor("running_var"),
          .training = training >= 0 && frame[training].to_bool(),
          .momentum = frame[op.schema().find("momentum")].to_double(),
          .eps = frame[op.schema().find("eps")].to_double()};
}

void describe_norm(const Operator& op, DispatchKeySet, Value* frame) {
  Results r = describe(arguments_of(op, frame), true);
  give(frame, {r.out, r.save_mean, r.save_invstd});
}

void describe_functional_norm(const Operator& op, DispatchKeySet, Value* frame) {
  Results r = describe(arguments_of(op, frame), false);
  give(frame, {r.out, r.save_mean, r.save_invstd, r.mean, r.var});
}

template <bool training> void describe_reserved_norm(const Operator& op, DispatchKeySet, Value* frame) {
  Arguments a = arguments_of(op, frame);
  a.training = training;
  Results r = describe(a, true);
  Tensor reserve = empty({SymInt(0)}, {.dtype = DType::UInt8, .device = a.input.device()});
  give(frame, {r.out, r.save_mean, r.save_invstd, reserve});
}

// ---- backward ----

/// With a dimension of size 1 wherever the other has one and the tensor has none.
Tensor broadcast_like(Tensor t, const Tensor& input) {
  for (int64_t d = 0; d < input.dim(); ++d) {
    bool one = d != 1 || input.sym_size(1) == 1;
    if (one && !(d < t.dim() && t.sym_size(d) == 1)) t = t.unsqueeze(d);
  }
  return t;
}

void describe_norm_backward(const Operator& op, DispatchKeySet, Value* frame) {
  auto tensor = [&](const char* name) { return tensor_named(op, frame, name); };
  Tensor input = tensor("input"), weight = tensor("weight");
  DType type = computed_in(input.dtype()), weight_type = weight.defined() ? weight.dtype() : input.dtype();
  auto computed = [&](const char* name) {
    Tensor t = tensor(name);
    return t.defined() ? t.to(type) : t;
  };
  bool with_reserve = op.schema().find("update") >= 0;
  bool train = frame[op.schema().find(with_reserve ? "update" : "train")].to_bool();
  double eps = frame[op.schema().find("eps")].to_double();
  std::vector<bool> mask = frame[op.schema().find("output_mask")].bool_list();
  Tensor grad = computed("grad_out"), x = computed("input"), gain = computed("weight");
  check<AssertionError>(input.dim() >= 2, "rank of the input must be at least 2, got ", input.dim());
  Tensor mean = computed(train ? "save_mean" : "running_mean"), invstd = computed(!train         ? "running_var"
                                                                                  : with_reserve ? "save_var"
                                                                                                 : "save_invstd");
  check<ZeroDivisionError>(input.sym_size(1) != 0, "division by zero");
  check<AssertionError>(mean.defined() && invstd.defined(),
                        train ? "mean and invstd must not be None in training mode"
                              : "running_mean_cast and running_var_cast must not be None in eval mode");
  if (!train) invstd = invstd.add(eps).rsqrt();
  check<ZeroDivisionError>(input.sym_numel() != 0, "float division by zero");
  std::vector<int64_t> dims = all_but_channels(input);
  mean = broadcast_like(mean, input);
  Tensor sum = grad.sum(dims), product = grad.mul(x.sub(mean)).sum(dims);
  Tensor grad_mean = broadcast_like(sum.mul(1.0), input);
  Tensor projection = broadcast_like(product.mul(1.0).mul(invstd.mul(invstd)), input);
  Tensor scale = broadcast_like(gain.defined() ? invstd.mul(gain) : invstd, input);
  Tensor of_input = train ? grad.sub(x.sub(mean).mul(projection)).sub(grad_mean).mul(scale) : grad.mul(scale);
  give(frame, {of_input.to(input.dtype()), mask[1] ? product.mul(invstd).to(weight_type) : Tensor(),
               mask[2] ? sum.to(weight_type) : Tensor()});
}

}  // namespace

void BatchNormOnMeta::operator()(OperatorBuilder& builder) const {
  const std::string& name = builder.op().schema().name;
  LayerFunction function = name.ends_with("backward")                      ? describe_norm_backward
                           : name == "_native_batch_norm_legit_functional" ? describe_functional_norm
                           : name == "_batch_norm_no_update"               ? describe_reserved_norm<false>
                           : name == "_batch_norm_with_update"             ? describe_reserved_norm<true>
                                                                           : describe_norm;
  set_own_layer(builder.op(), DispatchKey::Meta, function);
}

}  // namespace umbra::ops
