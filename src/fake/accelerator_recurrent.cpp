// Recurrent networks as accelerators compute them, for fake tensors of such a device: metadata and gradients, and no
// kernel. They are no part of the generated functions; who calls one does so by name.
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/typed.h"
#include "umbra/generated/functions.h"

namespace umbra {
namespace {

TensorSpec dense(const Tensor& t) { return TensorSpec(t.sym_sizes(), t.dtype(), t.device()); }

// ---- one step ----

UMBRA_OPERATOR(
    "_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, Tensor? "
    "hidden_bias=None) -> (Tensor, Tensor, Tensor)")
    .meta([](const Tensor& input_gates, const Tensor&, const Tensor& cx, const Tensor&, const Tensor&) {
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
    .meta([](const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx, const Tensor&, const Tensor&) {
      check(input_gates.dim() == 2, input_gates.dim(), " != 2");
      check(input_gates.sym_sizes() == hidden_gates.sym_sizes(), to_string(input_gates.sym_sizes()),
            " != ", to_string(hidden_gates.sym_sizes()));
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
      SymInt batch = workspace.sym_size(0), gates = workspace.sym_size(1) / 5 * 3;
      auto bias = [&] { return has_bias ? workspace.new_empty({gates}) : Tensor(); };
      return {workspace.new_empty({batch, gates}), workspace.new_empty({batch, gates}),
              grad.new_empty(grad.sym_sizes()), bias(), bias()};
    });

// ---- whole sequences ----

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
      int64_t directions = bidirectional ? 2 : 1;
      SymShape sizes{first};
      if (!packed) sizes.push_back(second);
      sizes.push_back(width * directions);
      Tensor cells = cx.defined() ? cx.new_empty({num_layers * directions, batch, hidden_size})
                                  : input.new_empty({SymInt(0)}, {.dtype = DType::Float32});
      return {input.new_empty(sizes), hx.new_empty({num_layers * directions, batch, width}), cells,
              input.new_empty({SymInt(0)}, {.dtype = DType::UInt8}), weight_buf};
    })
    .tags({Tag::NondeterministicSeeded});

}  // namespace
}  // namespace umbra
