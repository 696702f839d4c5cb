// Connectionist temporal classification: sequences of labels against longer sequences of scores.
#include "kernels/copy.h"
#include "kernels/loss.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/shape.h"
#include "ops/loss/reduction.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/tensor_of.h"

namespace umbra::ops {
namespace {

using Lengths = std::vector<int64_t>;
using Loss = std::tuple<Tensor, Tensor>;

Lengths lengths_of(const Tensor& t, const char* name) {
  check(is_integral(t.dtype(), false), name, " must be integral");
  Tensor dense = kernels::contiguous(kernels::cast(t, DType::Int64));
  return Lengths(dense.data<int64_t>(), dense.data<int64_t>() + dense.numel());
}

constexpr const char* kCaller = " (while checking arguments for ctc_loss_allocate_outputs)";

/// The longest target.
int64_t check_ctc(const Tensor& log_probs, const Tensor& targets, const Lengths& inputs, const Lengths& labels,
                  int64_t blank) {
  check(
      targets.dtype() == DType::Int64 || targets.dtype() == DType::Int32,
      "Expected tensor for argument #2 'targets' to have one of the following scalar types: Long, Int; but got torch.",
      kernel_name(targets.dtype()), "Tensor instead", kCaller);
  check(log_probs.dim() == 3, "Expected 3-dimensional tensor, but got ", log_probs.dim(),
        "-dimensional tensor for argument #1 'log_probs'", kCaller);
  check(targets.dim() == 1 || targets.dim() == 2, "Expected 1 to 2 dimensions, but got ", targets.dim(),
        "-dimensional tensor for argument #2 'targets'", kCaller);
  int64_t time = log_probs.size(0), batch = log_probs.size(1), classes = log_probs.size(2);
  check(blank >= 0 && blank < classes, "blank must be in label range");
  check(static_cast<int64_t>(inputs.size()) == batch, "input_lengths must be of size batch_size");
  check(static_cast<int64_t>(labels.size()) == batch, "target_lengths must be of size batch_size");
  int64_t longest = 0, total = 0;
  for (int64_t length : labels) {
    check(length >= 0, "Expected target_lengths to have value at least 0, but got value ", length, kCaller);
    longest = std::max(longest, length);
    check(!__builtin_add_overflow(total, length, &total), "the sum of target_lengths is too large", kCaller);
  }
  if (targets.dim() == 1)
    check(targets.size(0) == total, "Expected tensor to have size ", total, " at dimension 0, but got size ",
          targets.size(0), " for argument #2 'targets'", kCaller);
  else
    check(targets.size(0) == batch && targets.size(1) >= longest, "Expected tensor to have size at least ", longest,
          " at dimension 1, but got size ", targets.size(1), " for argument #2 'targets'", kCaller);
  // Labels choose where is read: one beyond the classes is refused (PyTorch reads there). What pads a row is no label.
  auto check_labels = [&](const Tensor& some) {
    if (some.numel() > 0 && !some.is_meta())
      check(some.min().item().to_int() >= 0 && some.max().item().to_int() < classes,
            "Expected targets to have labels in [0, ", classes, ")", kCaller);
  };
  if (targets.dim() == 1) check_labels(targets);
  for (int64_t i = 0; targets.dim() == 2 && i < batch; ++i)
    check_labels(targets.select(0, i).narrow(0, 0, labels[static_cast<size_t>(i)]));
  for (int64_t length : inputs)
    check(length >= 0 && length <= time, "Expected input_lengths to have value at most ", time, ", but got value ",
          length, kCaller);
  return longest;
}

bool has_ctc(DType dtype) { return dtype == DType::Float32 || dtype == DType::Float64; }

Loss ctc(const Tensor& log_probs, const Tensor& targets, const Lengths& inputs, const Lengths& labels, int64_t blank,
         bool zero_infinity) {
  check_kernel_type(has_ctc(log_probs.dtype()), "ctc_loss_cpu", log_probs);
  int64_t longest = check_ctc(log_probs, targets, inputs, labels, blank);
  Tensor losses = kernels::scratch({log_probs.size(1)}, log_probs.dtype());
  Tensor alpha = kernels::scratch({log_probs.size(1), log_probs.size(0), 2 * longest + 1}, log_probs.dtype());
  kernels::ctc_loss(losses, alpha, log_probs, targets, {inputs, labels, blank, zero_infinity});
  return {losses, alpha};
}

[[noreturn]] Loss depends_on_lengths(const char* name) { fail<DynamicOutputShapeException>(name); }

UMBRA_OPERATOR(
    "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool "
    "zero_infinity=False) -> (Tensor, Tensor)")
    .generated_out("_ctc_loss.out", {"out0", "out1"})
    .real([](const Tensor& log_probs, const Tensor& targets, Lengths inputs, Lengths labels, int64_t blank,
             bool zero_infinity) { return ctc(log_probs, targets, inputs, labels, blank, zero_infinity); })
    .fake([](const Tensor& log_probs, const Tensor& targets, Lengths inputs, Lengths labels, int64_t blank,
             bool) -> Loss {
      if (log_probs.is_fake() || targets.is_fake()) depends_on_lengths("aten._ctc_loss.default");
      if (!has_ctc(log_probs.dtype())) kernels::unsupported_dtype("ctc_loss_meta", log_probs.dtype());
      int64_t longest = check_ctc(log_probs, targets, inputs, labels, blank);
      check(log_probs.is_meta(),
            "Expected all tensors to be on the same device, but found at least two devices, cpu and meta!");
      return {log_probs.new_empty({log_probs.sym_size(1)}),
              log_probs.new_empty({log_probs.sym_size(1), log_probs.sym_size(0), SymInt(2 * longest + 1)})};
    })
    .gradient("log_probs",
              {"grad", "log_probs", "targets", "input_lengths", "target_lengths", "result0", "result1", "blank",
               "zero_infinity"},
              [](const Tensor& grad, const Tensor& log_probs, const Tensor& targets, Lengths inputs, Lengths labels,
                 const Tensor& losses, const Tensor& alpha, int64_t blank, bool zero_infinity) {
                return _ctc_loss_backward(grad, log_probs, targets, inputs, labels, losses, alpha, blank,
                                          zero_infinity);
              })
    .differentiable_outputs({true, false})
    .tags({Tag::DynamicOutputShape})
    .use(BatchOneByOne{});

UMBRA_OPERATOR(
    "_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, bool "
    "zero_infinity=False) -> (Tensor, Tensor)")
    .generated_out("_ctc_loss.Tensor_out", {"out0", "out1"})
    .real([](const Tensor& log_probs, const Tensor& targets, const Tensor& inputs, const Tensor& labels, int64_t blank,
             bool zero_infinity) {
      return ctc(log_probs, targets, lengths_of(inputs, "input_lengths"), lengths_of(labels, "target_lengths"), blank,
                 zero_infinity);
    })
    .fake([](const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t, bool) -> Loss {
      depends_on_lengths("aten._ctc_loss.Tensor");
    })
    .gradient("log_probs",
              {"grad", "log_probs", "targets", "input_lengths", "target_lengths", "result0", "result1", "blank",
               "zero_infinity"},
              [](const Tensor& grad, const Tensor& log_probs, const Tensor& targets, const Tensor& inputs,
                 const Tensor& labels, const Tensor& losses, const Tensor& alpha, int64_t blank, bool zero_infinity) {
                return _ctc_loss_backward(grad, log_probs, targets, inputs, labels, losses, alpha, blank,
                                          zero_infinity);
              })
    .differentiable_outputs({true, false})
    .tags({Tag::DynamicOutputShape})
    .use(BatchOneByOne{})
    .use(NeedsData{});

TensorSpec backward_spec(const Tensor& grad, const Tensor& log_probs, const Tensor& losses) {
  check_kernel_type(has_ctc(log_probs.dtype()), "ctc_loss_backward_cpu", log_probs);
  for (int64_t d = 0; d < 3; ++d) log_probs.sym_size(d);  // too few dimensions are an IndexError
  check(log_probs.dim() == 3 && grad.sym_numel() == log_probs.sym_size(1) && losses.sym_numel() == grad.sym_numel(),
        "ctc_loss_backward: gradients of ", grad.sym_sizes(), " and losses of ", losses.sym_sizes(),
        " do not fit scores of ", log_probs.sym_sizes());
  return TensorSpec(log_probs.sym_sizes(), log_probs.dtype(), log_probs.device());
}

void ctc_backward(const Tensor& out, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                  const Lengths& inputs, const Lengths& labels, const Tensor& losses, const Tensor& alpha,
                  int64_t blank, bool zero_infinity) {
  int64_t longest = check_ctc(log_probs, targets, inputs, labels, blank);
  check(alpha.dim() == 3 && alpha.size(0) == log_probs.size(1) && alpha.size(1) == log_probs.size(0) &&
            alpha.size(2) >= 2 * longest + 1 && alpha.dtype() == log_probs.dtype(),
        "ctc_loss_backward: log_alpha of size ", alpha.sym_sizes(), " does not fit");
  kernels::ctc_loss_backward(out, grad, log_probs, targets, losses, alpha, {inputs, labels, blank, zero_infinity});
}

UMBRA_OPERATOR(
    "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor")
    .generated_out("_ctc_loss_backward.out")
    .meta([](const Tensor& grad, const Tensor& log_probs, const Tensor&, Lengths, Lengths, const Tensor& losses,
             const Tensor&, int64_t, bool) { return backward_spec(grad, log_probs, losses); })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& log_probs, const Tensor& targets, Lengths inputs,
            Lengths labels, const Tensor& losses, const Tensor& alpha, int64_t blank, bool zero_infinity) {
      ctc_backward(out, grad, log_probs, targets, inputs, labels, losses, alpha, blank, zero_infinity);
    })
    .use(NeedsData{});

UMBRA_OPERATOR(
    "_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
    "target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor")
    .meta([](const Tensor& grad, const Tensor& log_probs, const Tensor&, const Tensor& inputs, const Tensor& labels,
             const Tensor& losses, const Tensor&, int64_t, bool) {
      check(is_integral(inputs.dtype(), false), "input_lengths must be integral");
      check(is_integral(labels.dtype(), false), "target_lengths must be integral");
      return backward_spec(grad, log_probs, losses);
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& log_probs, const Tensor& targets, const Tensor& inputs,
            const Tensor& labels, const Tensor& losses, const Tensor& alpha, int64_t blank, bool zero_infinity) {
      ctc_backward(out, grad, log_probs, targets, lengths_of(inputs, "input_lengths"),
                   lengths_of(labels, "target_lengths"), losses, alpha, blank, zero_infinity);
    })
    .use(NeedsData{});

// ---- as users call it ----

Tensor without_infinity(const Tensor& losses, bool zero_infinity) {
  if (!zero_infinity) return losses;
  Tensor none = zeros({}, losses.options());
  return where(losses.eq(INFINITY), none, losses);
}

Tensor scores_in_batch(const Tensor& log_probs) {
  // 2-dimensional scores are one sample's; of fewer dimensions there is none to take.
  return log_probs.dim() == 3 ? log_probs : log_probs.unsqueeze(1);
}

UMBRA_OPERATOR(
    "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int "
    "reduction=Mean, bool zero_infinity=False) -> Tensor")
    .composite([](const Tensor& log_probs, const Tensor& targets, Lengths inputs, Lengths labels, int64_t blank,
                  int64_t reduction, bool zero_infinity) {
      Tensor scores = scores_in_batch(log_probs);
      Tensor losses = std::get<0>(_ctc_loss(scores, targets.to(DType::Int64), inputs, labels, blank, zero_infinity));
      losses = without_infinity(losses, zero_infinity);
      if (reduction == kReduceMean) {
        Tensor counts = detail::tensor_of(labels.data(), labels.size(), DType::Int64, losses.dtype(), {});
        return losses.div(counts.clamp_min(1)).mean();
      }
      if (reduction == kReduceSum) return losses.sum();
      return log_probs.dim() == 3 ? losses : losses.squeeze(0);
    });

UMBRA_OPERATOR(
    "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int "
    "reduction=Mean, bool zero_infinity=False) -> Tensor")
    .composite([](const Tensor& log_probs, const Tensor& targets, const Tensor& inputs, const Tensor& labels,
                  int64_t blank, int64_t reduction, bool zero_infinity) {
      bool meta = false;  // which is refused below, whatever the type
      for (const Tensor* t : {&log_probs, &targets, &inputs, &labels}) meta |= t->is_meta();
      check(meta || is_integral(inputs.dtype(), false), "input_lengths must be integral");
      check(meta || is_integral(labels.dtype(), false), "target_lengths must be integral");
      Tensor scores = scores_in_batch(log_probs);
      Tensor losses = std::get<0>(_ctc_loss(scores, targets.to(DType::Int64), inputs, labels, blank, zero_infinity));
      losses = without_infinity(losses, zero_infinity);
      if (reduction == kReduceMean) return losses.div(labels.clamp_min(1)).mean();
      if (reduction == kReduceSum) return losses.sum();
      return log_probs.dim() == 3 ? losses : losses.squeeze(0);
    });

}  // namespace
}  // namespace umbra::ops
