// Recurrent cells: tanh, relu, gru, lstm.
#include "ops/rnn/cells.h"

#include "umbra/dispatch/define.h"
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

CellState tanh_step(const Tensor& input, const CellState& state, const CellParameters& parameters) {
  return {parameters.from_hidden(state.hidden).add_(input).tanh(), {}};
}
CellState relu_step(const Tensor& input, const CellState& state, const CellParameters& parameters) {
  return {parameters.from_hidden(state.hidden).add_(input).relu(), {}};
}

CellState lstm_step(const Tensor& input, const CellState& state, const CellParameters& parameters) {
  std::vector<Tensor> gates = parameters.from_hidden(state.hidden).add_(input).unsafe_chunk(4, 1);
  Tensor in = gates[0].sigmoid_(), forget = gates[1].sigmoid_(), candidate = gates[2].tanh_(),
         out = gates[3].sigmoid_();
  Tensor kept = forget.mul(state.cell);
  Tensor cell = kept.add_(in.mul(candidate));
  return {parameters.projected(out.mul(cell.tanh())), cell};
}

CellState gru_step(const Tensor& input, const CellState& state, const CellParameters& parameters) {
  std::vector<Tensor> own = input.unsafe_chunk(3, 1);
  std::vector<Tensor> past = parameters.from_hidden(state.hidden).unsafe_chunk(3, 1);
  Tensor reset = past[0].add_(own[0]).sigmoid_(), keep = past[1].add_(own[1]).sigmoid_();
  Tensor candidate = own[2].add(past[2].mul_(reset)).tanh_();
  return {state.hidden.sub(candidate).mul_(keep).add_(candidate), {}};
}

namespace {

void check_cell(const Tensor& input, const Tensor& hidden, SymInt input_size, SymInt hidden_size, int which) {
  if (which == 0)
    check(input.sym_size(1) == input_size, "input has inconsistent input_size: got ", input.sym_size(1), " expected ",
          input_size);
  check(input.sym_size(0) == hidden.sym_size(0), "Input batch size ", input.sym_size(0), " doesn't match hidden", which,
        " batch size ", hidden.sym_size(0));
  check(hidden.sym_size(1) == hidden_size, "hidden", which, " has inconsistent hidden_size: got ", hidden.sym_size(1),
        ", expected ", hidden_size);
}

Tensor single_step(Cell cell, const Tensor& input, const Tensor& hx, const CellParameters& parameters) {
  check_cell(input, hx, parameters.w_ih.sym_size(1), parameters.w_hh.sym_size(1), 0);
  return cell(parameters.from_input(input), {hx, {}}, parameters).hidden;
}

UMBRA_OPERATOR(
    "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor")
    .composite([](const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                  const Tensor& b_hh) {
      return single_step(tanh_step, input, hx, {w_ih, w_hh, b_ih, b_hh, {}});
    });
UMBRA_OPERATOR(
    "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor")
    .composite([](const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                  const Tensor& b_hh) {
      return single_step(relu_step, input, hx, {w_ih, w_hh, b_ih, b_hh, {}});
    });
UMBRA_OPERATOR(
    "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor")
    .composite([](const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                  const Tensor& b_hh) {
      return single_step(gru_step, input, hx, {w_ih, w_hh, b_ih, b_hh, {}});
    });
UMBRA_OPERATOR(
    "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, "
    "Tensor)")
    .composite([](const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                  const Tensor& b_hh) {
      check(hx.size() == 2, "lstm_cell expects two hidden states");
      SymInt hidden_size = w_hh.sym_size(1);
      check_cell(input, hx[0], w_ih.sym_size(1), hidden_size, 0);
      check_cell(input, hx[1], w_ih.sym_size(1), hidden_size, 1);
      CellParameters parameters{w_ih, w_hh, b_ih, b_hh, {}};
      CellState next = lstm_step(parameters.from_input(input), {hx[0], hx[1]}, parameters);
      return std::tuple(next.hidden, next.cell);
    });

}  // namespace
}  // namespace umbra::ops
