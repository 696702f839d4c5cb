// Recurrent networks as accelerators compute them, for fake tensors of such a device: metadata and gradients, and no
// kernel. They are no part of the generated functions; who calls one does so by name.
#include "dispatch/layers.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/typed.h"
#include "umbra/generated/functions.h"

namespace umbra {
namespace {

TensorSpec dense(const Tensor& t) { return TensorSpec(t.sym_sizes(), t.dtype(), t.device()); }

// ---- one step ----

/// What a step asks of its inputs, which has so many gates for each number of the state.
void check_gates(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& input_bias,
                 const Tensor& hidden_bias, int64_t gates, const Tensor& state) {
  check(input_gates.dim() == 2, input_gates.dim(), " != 2");
  check(input_gates.sym_sizes() == hidden_gates.sym_sizes(), input_gates.sym_sizes(), " != ", hidden_gates.sym_sizes());
  SymInt width = input_gates.sym_size(1);
  if (input_bias.defined()) {
    check(input_bias.dim() == 1, input_bias.dim(), " != 1");
    check(input_bias.sym_numel() == width, input_bias.sym_numel(), " != ", width);
    check(hidden_bias.defined() && input_bias.sym_sizes() == hidden_bias.sym_sizes(), input_bias.sym_sizes(),
          " is not the size of the other bias");
  }
  check(state.dim() == 2, state.dim(), " != 2");
  SymInt numel = input_gates.sym_size(0) * width / gates;
  check(state.sym_numel() == numel, state.sym_numel(), " != ", numel);
  for (const Tensor* t : {&hidden_gates, &input_bias, &hidden_bias, &state})
    check(!t->defined() || t->device() == input_gates.device(), "expected all inputs to be same device");
}

UMBRA_OPERATOR(
    "_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, Tensor? "
    "hidden_bias=None) -> (Tensor, Tensor, Tensor)")
    .meta([](const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx, const Tensor& input_bias,
             const Tensor& hidden_bias) {
      check_gates(input_gates, hidden_gates, input_bias, hidden_bias, 4, cx);
      return std::tuple(dense(cx), dense(cx), dense(input_gates));
    })
    .gradient("input_gates, hidden_gates, cx, input_bias, hidden_bias",
              {"grad0", "grad1", "cx", "result1", "result2", "input_bias"},
              [](const Tensor& grad_hy, const Tensor& grad_cy, const Tensor& cx, const Tensor& cy,
                 const Tensor& workspace, const Tensor& bias) {
                static const auto backward = typed<std::tuple<Tensor, Tensor, Tensor>(
                    const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool)>(
                    "aten::_thnn_fused_lstm_cell_backward_impl");
                auto [gates, of_cell, of_bias] = backward(grad_hy, grad_cy, cx, cy, workspace, bias.defined());
                return std::tuple(gates, gates, of_cell, of_bias, of_bias);
              })
    .differentiable_outputs({true, true, false});

using CellGradients = std::tuple<Tensor, Tensor, Tensor>;

UMBRA_OPERATOR(
    "_thnn_fused_lstm_cell_backward_impl(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor workspace, "
    "bool has_bias) -> (Tensor, Tensor, Tensor)")
    .fake([](const Tensor& grad_hy, const Tensor& grad_cy, const Tensor& cx, const Tensor& cy, const Tensor& workspace,
             bool has_bias) -> CellGradients {
      if (!grad_hy.defined() && !grad_cy.defined()) return {};
      const Tensor& given = grad_hy.defined() ? grad_hy : grad_cy;
      check(given.dim() == 2, "expected gradients of a batch of states, but got ", to_string(given.sym_sizes()));
      for (const Tensor* t : {&grad_hy, &grad_cy, &cx, &cy})
        if (t->defined() && !(t->sym_sizes() == given.sym_sizes()))
          fail("expected states of sizes ", given.sym_sizes(), ", but got ", t->sym_sizes());
      check(workspace.dim() == 2 && workspace.sym_numel() == given.sym_numel() * 4,
            "expected a workspace of four gates, but got ", to_string(workspace.sym_sizes()));
      return {workspace.new_empty(workspace.sym_sizes()), cx.new_empty(cx.sym_sizes()),
              has_bias ? workspace.new_empty({workspace.sym_size(1)}) : Tensor()};
    });

UMBRA_OPERATOR(
    "_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor? input_bias=None, Tensor? "
    "hidden_bias=None) -> (Tensor, Tensor)")
    .meta([](const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx, const Tensor& input_bias,
             const Tensor& hidden_bias) {
      check_gates(input_gates, hidden_gates, input_bias, hidden_bias, 3, hx);
      return std::tuple(dense(hx), TensorSpec({hx.sym_size(0), hx.sym_size(1) * 5}, hx.dtype(), hx.device()));
    })
    .gradient("input_gates, hidden_gates, hx, input_bias, hidden_bias", {"grad0", "result1", "input_bias"},
              [](const Tensor& grad, const Tensor& workspace, const Tensor& bias) {
                using Gradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;
                static const auto backward =
                    typed<Gradients(const Tensor&, const Tensor&, bool)>("aten::_thnn_fused_gru_cell_backward");
                return backward(grad, workspace, bias.defined());
              })
    .differentiable_outputs({true, false});

UMBRA_OPERATOR(
    "_thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, bool has_bias) -> (Tensor, Tensor, Tensor, "
    "Tensor, Tensor)")
    .fake([](const Tensor& grad, const Tensor& workspace,
             bool has_bias) -> std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> {
      check(grad.dim() == 2, "Expected grad_hy to be 2-D, but got ", grad.dim(), "-D");
      check(workspace.dim() == 2, "Expected workspace to be 2-D, but got ", workspace.dim(), "-D");
      check(workspace.sym_size(0) == grad.sym_size(0), "Expected workspace batch size (", workspace.sym_size(0),
            ") to match grad_hy batch size (", grad.sym_size(0), ")");
      check(workspace.sym_size(1) == grad.sym_size(1) * 5,
            "Expected workspace.size(1) to equal grad_hy.size(1) * 5, but got workspace.size(1)=",
            workspace.sym_size(1), " and grad_hy.size(1)=", grad.sym_size(1));
      SymInt batch = workspace.sym_size(0), gates = workspace.sym_size(1) / 5 * 3;
      auto bias = [&] { return has_bias ? workspace.new_empty({gates}) : Tensor(); };
      return {workspace.new_empty({batch, gates}), workspace.new_empty({batch, gates}),
              grad.new_empty(grad.sym_sizes()), bias(), bias()};
    });

// ---- whole sequences ----

using SequenceGradients = std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>>;

UMBRA_OPERATOR(
    "_cudnn_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor? weight_buf, Tensor hx, Tensor? cx, int "
    "mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool batch_first, float dropout, bool train, bool "
    "bidirectional, SymInt[] batch_sizes, Tensor? dropout_state) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
    .fake([](const Tensor& input, std::vector<Tensor>, int64_t, const Tensor& weight_buf, const Tensor& hx,
             const Tensor& cx, int64_t, SymInt hidden_size, SymInt proj_size, int64_t num_layers, bool batch_first,
             double, bool, bool bidirectional, SymIntArrayRef batch_sizes,
             const Tensor&) -> std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> {
      bool packed = !batch_sizes.empty();
      SymInt first = input.sym_size(0), second = packed ? SymInt(0) : input.sym_size(1);
      SymInt batch = packed ? batch_sizes[0] : batch_first ? first : second;
      SymInt width = proj_size != 0 ? proj_size : hidden_size;
      SymInt directions = bidirectional ? 2 : 1, layers = SymInt(num_layers) * directions;
      SymShape sizes{first};
      if (!packed) sizes.push_back(second);
      sizes.push_back(width * directions);
      Tensor cells = cx.defined() ? cx.new_empty({layers, batch, hidden_size})
                                  : input.new_empty({SymInt(0)}, {.dtype = DType::Float32});
      return {input.new_empty(sizes), hx.new_empty({layers, batch, width}), cells,
              input.new_empty({SymInt(0)}, {.dtype = DType::UInt8}), weight_buf};
    })
    .gradient("input, weight, hx, cx",
              {"grad0",       "grad1",   "grad2",   "input",         "weight",      "weight_stride0", "result4",
               "hx",          "cx",      "result0", "mode",          "hidden_size", "proj_size",      "num_layers",
               "batch_first", "dropout", "train",   "bidirectional", "batch_sizes", "dropout_state",  "result3",
               "needs"},
              [](const Tensor& grad, const Tensor& grad_hy, const Tensor& grad_cy, const Tensor& input,
                 std::vector<Tensor> weight, int64_t stride, const Tensor& weight_buf, const Tensor& hx,
                 const Tensor& cx, const Tensor& output, int64_t mode, SymInt hidden_size, SymInt proj_size,
                 int64_t num_layers, bool batch_first, double dropout, bool train, bool bidirectional,
                 SymIntArrayRef batch_sizes, const Tensor& dropout_state, const Tensor& reserve,
                 std::vector<bool> needs) -> std::tuple<Tensor, std::vector<Tensor>, Tensor, Tensor> {
                static const auto backward = typed<SequenceGradients(
                    const Tensor&, TensorList, int64_t, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                    const Tensor&, const Tensor&, const Tensor&, int64_t, SymInt, SymInt, int64_t, bool, double, bool,
                    bool, SymIntArrayRef, const Tensor&, const Tensor&, std::vector<bool>)>(
                    "aten::_cudnn_rnn_backward");
                auto [of_input, of_hx, of_cx, of_weight] =
                    backward(input, weight, stride, weight_buf, hx, cx, output, grad, grad_hy, grad_cy, mode,
                             hidden_size, proj_size, num_layers, batch_first, dropout, train, bidirectional,
                             batch_sizes, dropout_state, reserve, {needs[0], needs[2], needs[3], needs[1]});
                return {of_input, of_weight, of_hx, of_cx};
              })
    .differentiable_outputs({true, true, true, false, false})
    .tags({Tag::NondeterministicSeeded});

/// Which gradients are wanted is looked at before it is found that nothing computes them.
void refuse_to_compute(const Operator& op, DispatchKeySet, Value* frame) {
  size_t wanted = frame[op.argument_count() - 1].bool_list().size();
  check(wanted == 4, "Tried to convert a List with ", wanted, " elements to a fixed-size array of size 4");
  check(frame[op.schema().find("weight_buf")].is_tensor(),
        "Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #3 'weight_buf'");
  bool meta = false;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) { meta |= t->device().type == DeviceType::Meta; });
  if (!meta)
    fail<NotImplementedError>("Could not run '", op.name(),
                              "' with arguments from the 'CPU' backend: no kernel is defined for it");
  fail<NotImplementedError>(op.name(),
                            ": attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
                            "kernel registered.");
}

// The buffer of all weights is there where the caller made one.
UMBRA_OPERATOR(
    "_cudnn_rnn_backward(Tensor input, Tensor[] weight, int weight_stride0, Tensor? weight_buf, Tensor hx, Tensor? cx, "
    "Tensor output, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, int mode, SymInt hidden_size, SymInt "
    "proj_size, int num_layers, bool batch_first, float dropout, bool train, bool bidirectional, SymInt[] batch_sizes, "
    "Tensor? dropout_state, Tensor reserve, bool[4] output_mask) -> (Tensor, Tensor, Tensor, Tensor[])")
    .fake([](const Tensor& input, std::vector<Tensor> weight, int64_t, const Tensor&, const Tensor& hx,
             const Tensor& cx, const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t, SymInt, SymInt,
             int64_t, bool, double, bool, bool, SymIntArrayRef, const Tensor&, const Tensor&,
             std::vector<bool> mask) -> SequenceGradients {
      check(mask.size() == 4, "Tried to convert a List with ", mask.size(),
            " elements to a fixed-size array of size 4");
      auto like = [](const Tensor& t, bool wanted) {
        return wanted && t.defined() ? t.new_empty(t.sym_sizes()) : Tensor();
      };
      std::vector<Tensor> of_weight;
      for (const Tensor& t : weight) of_weight.push_back(like(t, mask[3]));
      return {like(input, mask[0]), like(hx, mask[1]), like(cx, mask[2]), std::move(of_weight)};
    })
    .use([](OperatorBuilder& builder) {
      for (DispatchKey key : {DispatchKey::CPU, DispatchKey::Meta}) set_own_layer(builder.op(), key, refuse_to_compute);
    });

/// Whether a library of the accelerator computes with a tensor.
UMBRA_OPERATOR("cudnn_is_acceptable(Tensor self) -> bool").composite([](const Tensor& self) {
  return self.device().type == DeviceType::CUDA && !self.sym_numel().same(0);
});

}  // namespace
}  // namespace umbra
