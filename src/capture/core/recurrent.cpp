// Recurrent networks over whole sequences, step by step: a state is [1, batch, features] throughout.
#include <algorithm>

#include "capture/core/core.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::core_table {
namespace {

struct Parameters {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};
struct State {
  Tensor hidden, cell;
};
struct Network {
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional, batch_first;
};
/// One step from what an input contributes.
using Step = State (*)(const Tensor& input, const State& state, const Parameters& p);

std::vector<Parameters> parameters_of(const std::vector<Tensor>& all, bool has_biases, bool projects) {
  size_t each = (has_biases ? 4u : 2u) + (projects ? 1u : 0u);
  check(all.size() % each == 0, "got an incorrect number of RNN parameters");
  std::vector<Parameters> out;
  for (size_t i = 0; i < all.size(); i += each) {
    Parameters p{all[i], all[i + 1], {}, {}, {}};
    if (has_biases) p.b_ih = all[i + 2], p.b_hh = all[i + 3];
    if (projects) p.w_hr = all[i + each - 1];
    out.push_back(p);
  }
  return out;
}

Tensor from_hidden(const State& state, const Parameters& p) { return linear(state.hidden, p.w_hh, p.b_hh); }

State tanh_step(const Tensor& input, const State& state, const Parameters& p) {
  return {(from_hidden(state, p) + input).tanh(), {}};
}
State relu_step(const Tensor& input, const State& state, const Parameters& p) {
  return {(from_hidden(state, p) + input).relu(), {}};
}
State gru_step(const Tensor& input, const State& state, const Parameters& p) {
  std::vector<Tensor> own = input.chunk(3, 1), past = from_hidden(state, p).chunk(3, 2);
  Tensor reset = (past[0] + own[0]).sigmoid(), keep = (past[1] + own[1]).sigmoid();
  Tensor candidate = (own[2] + past[2] * reset).tanh();
  return {(state.hidden - candidate) * keep + candidate, {}};
}
State lstm_step(const Tensor& input, const State& state, const Parameters& p) {
  std::vector<Tensor> gates = (from_hidden(state, p) + input).chunk(4, 2);
  Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), candidate = gates[2].tanh(), out = gates[3].sigmoid();
  Tensor kept = forget * state.cell, cell = kept + in * candidate, hidden = out * cell.tanh();
  return {p.w_hr.defined() ? linear(hidden, p.w_hr, Tensor()) : hidden, cell};
}

/// One direction of a layer: its outputs, and in `state` the last one.
Tensor run_layer(const Tensor& input, State& state, const Parameters& p, Step step, bool backward) {
  bool has_cell = state.cell.defined();
  if (has_cell) state = {state.hidden.unsqueeze(0), state.cell.unsqueeze(0)};
  Tensor contributed = linear(input, p.w_ih, p.b_ih);
  if (backward) contributed = contributed.flip({0});
  if (!has_cell) state.hidden = state.hidden.unsqueeze(0);
  std::vector<Tensor> outputs;
  for (const Tensor& one : contributed.unbind(0)) {
    state = step(one, state, p);
    outputs.push_back(state.hidden);
  }
  check(!outputs.empty(), "Expected sequence length to be larger than 0 in RNN");
  if (backward) std::reverse(outputs.begin(), outputs.end());
  Tensor all = cat(outputs, 0);
  state.hidden = state.hidden.squeeze(0);
  if (has_cell) state.cell = state.cell.squeeze(0);
  return all;
}

Tensor run_network(Tensor input, std::vector<State>& states, const std::vector<Parameters>& parameters, Step step,
                   const Network& network) {
  size_t directions = network.bidirectional ? 2 : 1, count = static_cast<size_t>(network.layers) * directions;
  check(states.size() == count, "Expected more hidden states in stacked_rnn");
  check(parameters.size() == count, "Expected more parameters in stacked_rnn");
  // PyTorch's parts leave the dropout between layers out; the composite does not.
  if (network.train && network.dropout != 0 && network.layers > 1) throw DecompositionDeclined();
  if (network.batch_first) input = input.transpose(0, 1);
  for (size_t first = 0; first < count; first += directions) {
    std::vector<Tensor> outputs;
    for (size_t i = first; i < first + directions; ++i)
      outputs.push_back(run_layer(input, states[i], parameters[i], step, i > first));
    input = outputs.size() == 1 ? outputs[0] : cat(outputs, outputs[0].dim() - 1);
  }
  return network.batch_first ? input.transpose(0, 1) : input;
}

Tensor stacked(const std::vector<State>& states, Tensor State::*part) {
  std::vector<Tensor> all;
  for (const State& state : states) all.push_back(state.*part);
  return stack(all, 0);
}

auto without_cell(Step step) {
  return [step](const Tensor& input, const Tensor& hx, std::vector<Tensor> parameters, bool has_biases, int64_t layers,
                double dropout, bool train, bool bidirectional, bool batch_first) {
    if (input.dim() != 3 || hx.dim() != 3) throw DecompositionDeclined();  // which says what is wrong
    std::vector<State> states;
    for (const Tensor& t : hx.unbind(0)) states.push_back({t, {}});
    Tensor out = run_network(input, states, parameters_of(parameters, has_biases, false), step,
                             {has_biases, layers, dropout, train, bidirectional, batch_first});
    return std::tuple(out, stacked(states, &State::hidden));
  };
}

}  // namespace

void add_recurrent(DecompositionTable& table) {
  table.add("aten::rnn_tanh.input", without_cell(tanh_step));
  table.add("aten::rnn_relu.input", without_cell(relu_step));
  table.add("aten::gru.input", without_cell(gru_step));
  table.add("aten::lstm.input",
            [](const Tensor& input, std::vector<Tensor> hx, std::vector<Tensor> parameters, bool has_biases,
               int64_t layers, double dropout, bool train, bool bidirectional, bool batch_first) {
              if (hx.size() != 2 || input.dim() != 3 || hx[0].dim() != 3 || hx[1].dim() != 3)
                throw DecompositionDeclined();
              std::vector<Tensor> hidden = hx[0].unbind(0), cells = hx[1].unbind(0);
              check(hidden.size() == cells.size(), "lstm expects as many cell states as hidden states");
              std::vector<State> states;
              for (size_t i = 0; i < hidden.size(); ++i) states.push_back({hidden[i], cells[i]});
              bool projects = hx[0].sym_size(2) != hx[1].sym_size(2);
              Tensor out = run_network(input, states, parameters_of(parameters, has_biases, projects), lstm_step,
                                       {has_biases, layers, dropout, train, bidirectional, batch_first});
              return std::tuple(out, stacked(states, &State::hidden), stacked(states, &State::cell));
            });
}

}  // namespace umbra::core_table
