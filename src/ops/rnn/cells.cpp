// Recurrent cells: tanh, relu, gru, lstm.
#include "ops/rnn/cells.h"

#include "kernels/copy.h"
#include "kernels/recurrent.h"
#include "ops/common/batching.h"
#include "ops/common/may_read.h"
#include "ops/norm/by_parts.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/typed.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

Tensor CellParameters::from_input(const Tensor& input) const { return linear(input, w_ih, b_ih); }
Tensor CellParameters::from_hidden(const Tensor& hidden) const { return linear(hidden, w_hh, b_hh); }
Tensor CellParameters::projected(const Tensor& hidden) const {
  return w_hr.defined() ? hidden.matmul(w_hr.t()) : hidden;
}

CellState CellState::slice(SymInt begin, SymInt end) const {
  auto part = [&](const Tensor& t) { return t.defined() ? t.narrow(0, begin, end - begin) : t; };
  return {part(hidden), part(cell)};
}

CellState CellState::join(const std::vector<CellState>& parts) {
  std::vector<Tensor> hidden, cells;
  for (const CellState& part : parts) {
    hidden.push_back(part.hidden);
    if (part.cell.defined()) cells.push_back(part.cell);
  }
  return {cat(hidden, 0), cells.empty() ? Tensor() : cat(cells, 0)};
}

namespace {

// What a step does to memory that it has made itself, or by values.
template <bool kWrites> Tensor plus(const Tensor& a, const Tensor& b) { return kWrites ? a.add_(b) : a.add(b); }
template <bool kWrites> Tensor times(const Tensor& a, const Tensor& b) { return kWrites ? a.mul_(b) : a.mul(b); }
template <bool kWrites> Tensor squashed(const Tensor& a) { return kWrites ? a.sigmoid_() : a.sigmoid(); }
template <bool kWrites> Tensor bent(const Tensor& a) { return kWrites ? a.tanh_() : a.tanh(); }

template <bool kWrites>
CellState tanh_step(const Tensor& input, const CellState& state, const CellParameters& parameters) {
  return {plus<kWrites>(parameters.from_hidden(state.hidden), input).tanh(), {}};
}
template <bool kWrites>
CellState relu_step(const Tensor& input, const CellState& state, const CellParameters& parameters) {
  return {plus<kWrites>(parameters.from_hidden(state.hidden), input).relu(), {}};
}

/// Whether a step is arithmetic on plain rows whose parts nobody watches, so that all of it can be done in one pass.
bool in_one_pass(const Tensor& past, const Tensor& input, const Tensor& cell) {
  bool full_width = past.dtype() == DType::Float32 || past.dtype() == DType::Float64;
  if (!full_width || !may_read(past) || !may_read(input) || !may_read(cell)) return false;
  bool same = past.dtype() == input.dtype() && past.dtype() == cell.dtype() && past.sym_sizes() == input.sym_sizes();
  return same && cell.dim() == 2 && cell.size(0) == past.size(0) && 4 * cell.size(1) == past.size(1) &&
         past.is_contiguous() && input.is_contiguous() && cell.is_contiguous();
}

template <bool kWrites> CellPair parts_of_step(const Tensor& past, const Tensor& input, const Tensor& cell) {
  std::vector<Tensor> gates = (input.defined() ? plus<kWrites>(past, input) : past).unsafe_chunk(4, 1);
  Tensor in = squashed<kWrites>(gates[0]), forget = squashed<kWrites>(gates[1]);
  Tensor candidate = bent<kWrites>(gates[2]), out = squashed<kWrites>(gates[3]);
  Tensor kept = forget.mul(cell), next = plus<kWrites>(kept, in.mul(candidate));
  return {out.mul(next.tanh()), next};
}

}  // namespace

CellPair lstm_parts(const Tensor& past, const Tensor& input, const Tensor& cell) {
  return parts_of_step<false>(past, input, cell);
}

CellPair lstm_gradient_parts(const Tensor& grad_hidden, const Tensor& grad_cell, const Tensor& past,
                             const Tensor& input, const Tensor& cell) {
  std::vector<Tensor> gates = (input.defined() ? past.add(input) : past).unsafe_chunk(4, 1);
  Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), candidate = gates[2].tanh(), out = gates[3].sigmoid();
  Tensor bent = forget.mul(cell).add(in.mul(candidate)).tanh();
  Tensor of_hidden = grad_hidden.defined() ? grad_hidden : zeros_like(cell);
  Tensor of_cell = tanh_backward(of_hidden.mul(out), bent);
  if (grad_cell.defined()) of_cell = of_cell.add(grad_cell);
  Tensor of_gates = cat({sigmoid_backward(of_cell.mul(candidate), in), sigmoid_backward(of_cell.mul(cell), forget),
                         tanh_backward(of_cell.mul(in), candidate), sigmoid_backward(of_hidden.mul(bent), out)},
                        1);
  return {of_gates, of_cell.mul(forget)};
}

namespace {

TensorSpec spec_of(const Tensor& like) { return TensorSpec(like.sym_sizes(), like.dtype(), like.device()); }

// A step of which the sums of gates, [batch, 4 * features], and the cell are plain rows of one type: one pass over
// memory, and one node of a gradient's graph, in the place of a dozen. Captures and modes see its parts instead.
UMBRA_OPERATOR("umbra::lstm_step(Tensor past, Tensor input, Tensor cell) -> (Tensor hidden, Tensor next)")
    .meta([](const Tensor&, const Tensor&, const Tensor& cell) { return std::tuple(spec_of(cell), spec_of(cell)); })
    .cpu<2>([](const Tensor& hidden, const Tensor& next, const Tensor& past, const Tensor& input, const Tensor& cell) {
      kernels::lstm_cell(hidden, next, past, input, cell);
    })
    .gradient(
        "past, input, cell", {"grad0", "grad1", "past", "input", "cell", "next"},
        [](const Tensor& grad_hidden, const Tensor& grad_cell, const Tensor& past, const Tensor& input,
           const Tensor& cell, const Tensor& next) {
          static const auto fused =
              typed<CellPair(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&)>(
                  "umbra::lstm_step_backward");
          bool apart = wants_derivative({&grad_hidden, &grad_cell, &past, &input, &cell}) || !may_read(past);
          auto [of_gates, of_cell] = apart ? lstm_gradient_parts(grad_hidden, grad_cell, past, input, cell)
                                           : fused(grad_hidden, grad_cell, past, input, cell, next);
          return std::tuple(of_gates, of_gates, of_cell);
        })
    .tangents_through(lstm_parts)
    .use(batch_through(lstm_parts));
UMBRA_OPERATOR(
    "umbra::lstm_step_backward(Tensor? grad_hidden, Tensor? grad_cell, Tensor past, Tensor input, Tensor cell, Tensor "
    "next) -> (Tensor, Tensor)")
    .meta([](const Tensor&, const Tensor&, const Tensor& past, const Tensor&, const Tensor& cell, const Tensor&) {
      return std::tuple(spec_of(past), spec_of(cell));
    })
    .cpu<2>([](const Tensor& of_gates, const Tensor& of_cell, const Tensor& grad_hidden, const Tensor& grad_cell,
               const Tensor& past, const Tensor& input, const Tensor& cell, const Tensor& next) {
      kernels::lstm_cell_gradient(of_gates, of_cell, grad_hidden, grad_cell, past, input, cell, next);
    })
    .not_differentiable();

template <bool kWrites>
CellState lstm_step(const Tensor& input, const CellState& state, const CellParameters& parameters) {
  static const auto fused = typed<CellPair(const Tensor&, const Tensor&, const Tensor&)>("umbra::lstm_step");
  Tensor past = parameters.from_hidden(state.hidden);
  auto [hidden, cell] = in_one_pass(past, input, state.cell) ? fused(past, input, state.cell)
                                                             : parts_of_step<kWrites>(past, input, state.cell);
  return {parameters.projected(hidden), cell};
}

template <bool kWrites>
CellState gru_step(const Tensor& input, const CellState& state, const CellParameters& parameters) {
  std::vector<Tensor> own = input.unsafe_chunk(3, 1);
  std::vector<Tensor> past = parameters.from_hidden(state.hidden).unsafe_chunk(3, 1);
  Tensor reset = squashed<kWrites>(plus<kWrites>(past[0], own[0]));
  Tensor keep = squashed<kWrites>(plus<kWrites>(past[1], own[1]));
  Tensor candidate = bent<kWrites>(own[2].add(times<kWrites>(past[2], reset)));
  return {plus<kWrites>(times<kWrites>(state.hidden.sub(candidate), keep), candidate), {}};
}

// ---- an accelerator's steps ----

/// What comes of the input and of the hidden state without biases, which the fused steps add themselves.
std::pair<Tensor, Tensor> plain_gates(const Tensor& input, const Tensor& hidden, const CellParameters& parameters) {
  return {input.matmul(parameters.w_ih.t()), hidden.matmul(parameters.w_hh.t())};
}

bool is_fused(const Tensor& input) { return input.device().type == DeviceType::CUDA; }

CellState fused_lstm_step(const Tensor& input, const CellState& state, const CellParameters& parameters) {
  static const auto step = typed<std::tuple<Tensor, Tensor, Tensor>(
      const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&)>("aten::_thnn_fused_lstm_cell");
  auto [of_input, of_hidden] = plain_gates(input, state.hidden, parameters);
  auto [hidden, cell, workspace] = step(of_input, of_hidden, state.cell, parameters.b_ih, parameters.b_hh);
  return {hidden, cell};
}

Tensor fused_gru_step(const Tensor& input, const Tensor& hidden, const CellParameters& parameters) {
  static const auto step =
      typed<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&)>(
          "aten::_thnn_fused_gru_cell");
  auto [of_input, of_hidden] = plain_gates(input, hidden, parameters);
  return std::get<0>(step(of_input, of_hidden, hidden, parameters.b_ih, parameters.b_hh));
}

}  // namespace

constinit const CellKind kTanhCell{tanh_step<true>, tanh_step<false>}, kReluCell{relu_step<true>, relu_step<false>},
    kLstmCell{lstm_step<true>, lstm_step<false>}, kGruCell{gru_step<true>, gru_step<false>};

namespace {

void check_input(const Tensor& input, const Tensor& weight) {
  SymInt input_size = weight.sym_size(1);
  check(input.dim() == 2, "Expected 2D input (batch x feature), but got ", input.dim(), "D input");
  check(input.sym_size(1) == input_size, "input has inconsistent input_size: got ", input.sym_size(1), " expected ",
        input_size);
}

/// Weights have the rows of so many gates: a step takes its product apart by them.
void check_weights(const CellParameters& parameters, int64_t gates) {
  SymInt hidden_size = parameters.w_hh.sym_size(1);
  for (const auto& [name, weight] : {std::pair("weight_ih", &parameters.w_ih), {"weight_hh", &parameters.w_hh}})
    check(weight->sym_size(0) == gates * hidden_size, name, " first dim must be ", gates,
          " * hidden_size = ", gates * hidden_size, ", but got ", weight->sym_size(0));
}

void check_hidden(const Tensor& input, const Tensor& hidden, SymInt hidden_size, int which) {
  check(hidden.dim() == 2, "Expected 2D hidden", which, " (batch x hidden_size), but got ", hidden.dim(), "D tensor");
  check(input.sym_size(0) == hidden.sym_size(0), "Input batch size ", input.sym_size(0), " doesn't match hidden", which,
        " batch size ", hidden.sym_size(0));
  check(hidden.sym_size(1) == hidden_size, "hidden", which, " has inconsistent hidden_size: got ", hidden.sym_size(1),
        ", expected ", hidden_size);
}

Tensor single_step(Cell cell, int64_t gates, const Tensor& input, const Tensor& hx, const CellParameters& parameters) {
  if (gates == 1) check_weights(parameters, gates);
  check_input(input, parameters.w_ih);
  check_hidden(input, hx, parameters.w_hh.sym_size(1), 0);
  if (gates > 1) check_weights(parameters, gates);  // which the gates are taken apart by, later
  if (gates == 3 && is_fused(input)) return fused_gru_step(input, hx, parameters);
  return cell(parameters.from_input(input), {hx, {}}, parameters).hidden;
}

/// rnn_tanh_cell, rnn_relu_cell and gru_cell.
struct SingleStep {
  CellKind kind;
  int64_t gates = 1;
  void operator()(OperatorBuilder& builder) const {
    auto with = [gates = gates](Cell cell) {
      return [cell, gates](const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                           const Tensor& b_ih, const Tensor& b_hh) {
        return single_step(cell, gates, input, hx, {w_ih, w_hh, b_ih, b_hh, {}});
      };
    };
    builder.composite(with(kind.step)).use(batch_through(with(kind.values)));
  }
};

UMBRA_OPERATOR(
    "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor")
    .use(SingleStep{kTanhCell});
UMBRA_OPERATOR(
    "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor")
    .use(SingleStep{kReluCell});
UMBRA_OPERATOR(
    "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor")
    .use(SingleStep{kGruCell, 3});

template <bool kWrites>
std::tuple<Tensor, Tensor> single_lstm_step(const Tensor& input, std::vector<Tensor> hx, const Tensor& w_ih,
                                            const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  check(hx.size() == 2, "lstm_cell expects two hidden states");
  CellParameters parameters{w_ih, w_hh, b_ih, b_hh, {}};
  w_ih.sym_size(1), w_hh.sym_size(1);  // too few dimensions are an IndexError
  check_input(input, w_ih);
  check_weights(parameters, 4);
  for (int which : {0, 1}) check_hidden(input, hx[static_cast<size_t>(which)], w_hh.sym_size(1), which);
  CellState next = is_fused(input) ? fused_lstm_step(input, {hx[0], hx[1]}, parameters)
                                   : lstm_step<kWrites>(parameters.from_input(input), {hx[0], hx[1]}, parameters);
  return {next.hidden, next.cell};
}

UMBRA_OPERATOR(
    "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, "
    "Tensor)")
    .composite(single_lstm_step<true>)
    .use(batch_through(single_lstm_step<false>));

}  // namespace
}  // namespace umbra::ops
