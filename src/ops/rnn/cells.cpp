// Recurrent cells: tanh, relu, gru, lstm.
#include "ops/rnn/cells.h"

#include "ops/common/batching.h"
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

template <bool kWrites>
CellState lstm_step(const Tensor& input, const CellState& state, const CellParameters& parameters) {
  std::vector<Tensor> gates = plus<kWrites>(parameters.from_hidden(state.hidden), input).unsafe_chunk(4, 1);
  Tensor in = squashed<kWrites>(gates[0]), forget = squashed<kWrites>(gates[1]);
  Tensor candidate = bent<kWrites>(gates[2]), out = squashed<kWrites>(gates[3]);
  Tensor kept = forget.mul(state.cell);
  Tensor cell = plus<kWrites>(kept, in.mul(candidate));
  return {parameters.projected(out.mul(cell.tanh())), cell};
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

}  // namespace

constinit const CellKind kTanhCell{tanh_step<true>, tanh_step<false>}, kReluCell{relu_step<true>, relu_step<false>},
    kLstmCell{lstm_step<true>, lstm_step<false>}, kGruCell{gru_step<true>, gru_step<false>};

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

/// rnn_tanh_cell, rnn_relu_cell and gru_cell.
struct SingleStep {
  CellKind kind;
  void operator()(OperatorBuilder& builder) const {
    auto with = [](Cell cell) {
      return [cell](const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                    const Tensor& b_hh) {
        return single_step(cell, input, hx, {w_ih, w_hh, b_ih, b_hh, {}});
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
    .use(SingleStep{kGruCell});

template <bool kWrites>
std::tuple<Tensor, Tensor> single_lstm_step(const Tensor& input, std::vector<Tensor> hx, const Tensor& w_ih,
                                            const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  check(hx.size() == 2, "lstm_cell expects two hidden states");
  SymInt hidden_size = w_hh.sym_size(1);
  check_cell(input, hx[0], w_ih.sym_size(1), hidden_size, 0);
  check_cell(input, hx[1], w_ih.sym_size(1), hidden_size, 1);
  CellParameters parameters{w_ih, w_hh, b_ih, b_hh, {}};
  CellState next = lstm_step<kWrites>(parameters.from_input(input), {hx[0], hx[1]}, parameters);
  return {next.hidden, next.cell};
}

UMBRA_OPERATOR(
    "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, "
    "Tensor)")
    .composite(single_lstm_step<true>)
    .use(batch_through(single_lstm_step<false>));

}  // namespace
}  // namespace umbra::ops
