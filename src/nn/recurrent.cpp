#include "umbra/nn/recurrent.h"

#include <cmath>

#include "umbra/generated/functions.h"
#include "umbra/nn/init.h"
#include "umbra/ops/operators.h"

namespace umbra::nn {

using utils::rnn::PackedSequence;

namespace {
/// Whether a network's nonlinearity is relu; else it is tanh.
bool is_relu(const std::string& nonlinearity) {
  check<ValueError>(nonlinearity == "tanh" || nonlinearity == "relu", "Unknown nonlinearity '", nonlinearity,
                    "'. Select from 'tanh' or 'relu'.");
  return nonlinearity == "relu";
}
/// States have a batch where the input has one; those that are left out have what is asked of them.
void check_ranks(const std::vector<Tensor>& states, bool has_batch) {
  int64_t rank = has_batch ? 3 : 2;
  bool right = true;
  std::string found;
  for (const Tensor& state : states) {
    int64_t dims = state.defined() ? state.dim() : rank;
    right = right && dims == rank;
    found += concat(found.empty() ? "" : ", ", dims, "-D");
  }
  bool several = states.size() > 1;
  check(right, "For ", has_batch ? "batched" : "unbatched", " ", rank, "-D input, ", several ? "hx and cx" : "hx",
        " should also be ", rank, "-D but got ", several ? "(" : "", found, several ? ") tensors" : " tensor");
}
Tensor in_order(const Tensor& state, const Tensor& order) {
  return order.defined() ? state.index_select(1, order) : state;
}
}  // namespace

RecurrentLayer::RecurrentLayer(const char* type, int64_t gates, int64_t input_size, int64_t hidden_size,
                               const RecurrentOptions& options)
    : Layer(type), input_size_(input_size), hidden_size_(hidden_size), options_(options) {
  check<ValueError>(hidden_size > 0, "hidden_size must be greater than zero");
  check<ValueError>(options.num_layers > 0, "num_layers must be greater than zero");
  check<ValueError>(
      options.dropout >= 0 && options.dropout <= 1,
      "dropout should be a number in range [0, 1] representing the probability of an element being zeroed");
  int64_t directions = options.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    for (int64_t direction = 0; direction < directions; ++direction) {
      std::string suffix = concat("_l", layer, direction ? "_reverse" : "");
      int64_t inputs = layer == 0 ? input_size : hidden_size * directions;
      auto add_weight = [&](const char* name, SymIntArrayRef sizes) {
        weights_.push_back(parameter(name + suffix, empty(sizes, options.tensor)));
      };
      add_weight("weight_ih", {gates * hidden_size, inputs});
      add_weight("weight_hh", {gates * hidden_size, hidden_size});
      if (!options.bias) continue;
      add_weight("bias_ih", {gates * hidden_size});
      add_weight("bias_hh", {gates * hidden_size});
    }
  }
  double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  for (const Tensor& weight : weights_) init::uniform_(weight, -bound, bound);
}

std::string RecurrentLayer::extra_repr() const {
  std::string out = concat(input_size_, ", ", hidden_size_);
  if (options_.num_layers != 1) out += concat(", num_layers=", options_.num_layers);
  if (!options_.bias) out += ", bias=False";
  if (options_.batch_first) out += ", batch_first=True";
  if (options_.dropout != 0) out += concat(", dropout=", options_.dropout);
  if (options_.bidirectional) out += ", bidirectional=True";
  return out;
}

Tensor RecurrentLayer::forward(Tensor input) { return outputs(input); }

Tensor RecurrentLayer::zeros_for(const Tensor& input, const SymInt& batch) const {
  int64_t count = options_.num_layers * (options_.bidirectional ? 2 : 1);
  return zeros({SymInt(count), batch, SymInt(hidden_size_)}, {.dtype = input.dtype(), .device = input.device()});
}

template <class Call>
std::vector<Tensor> RecurrentLayer::run_call(const Tensor& input, std::vector<Tensor> states, Call call) const {
  check<ValueError>(input.dim() == 2 || input.dim() == 3, type_name().substr(type_name().rfind('.') + 1),
                    ": Expected input to be 2D or 3D, got ", input.dim(), "D instead");
  int64_t batch_dim = options_.batch_first ? 0 : 1;
  bool has_batch = input.dim() == 3;
  Tensor batched = has_batch ? input : input.unsqueeze(batch_dim);
  check_ranks(states, has_batch);
  for (Tensor& state : states)
    state = !state.defined() ? zeros_for(batched, batched.sym_size(batch_dim)) : has_batch ? state : state.unsqueeze(1);
  std::vector<Tensor> results = call(batched, states, weights_, options_.bias, options_.num_layers, options_.dropout,
                                     is_training(), options_.bidirectional, options_.batch_first);
  if (has_batch) return results;
  results[0] = results[0].squeeze(batch_dim);
  for (size_t i = 1; i < results.size(); ++i) results[i] = results[i].squeeze(1);
  return results;
}

template <class Call>
std::vector<Tensor> RecurrentLayer::run_packed_call(const PackedSequence& input, std::vector<Tensor> states,
                                                    Call call) const {
  for (Tensor& state : states)
    state = state.defined() ? in_order(state, input.sorted_indices())
                            : zeros_for(input.data(), input.batch_sizes()[0].item<int64_t>());
  std::vector<Tensor> results = call(input.data(), input.batch_sizes(), states, weights_, options_.bias,
                                     options_.num_layers, options_.dropout, is_training(), options_.bidirectional);
  for (size_t i = 1; i < results.size(); ++i) results[i] = in_order(results[i], input.unsorted_indices());
  return results;
}

// An operator of the family as a function that takes states in a list, and gives a list. The form for packed sequences
// has the sizes of the batches behind the data.
#define UMBRA_OF_ONE_STATE(op)                                                      \
  [](const Tensor& input, const std::vector<Tensor>& states, const auto&... rest) { \
    auto [output, hidden] = op(input, states[0], rest...);                          \
    return std::vector<Tensor>{output, hidden};                                     \
  }
#define UMBRA_PACKED_OF_ONE_STATE(op)                                                                         \
  [](const Tensor& data, const Tensor& batch_sizes, const std::vector<Tensor>& states, const auto&... rest) { \
    auto [output, hidden] = op(data, batch_sizes, states[0], rest...);                                        \
    return std::vector<Tensor>{output, hidden};                                                               \
  }

namespace {
RecurrentResult as_result(const std::vector<Tensor>& results) { return {results[0], results[1]}; }
PackedSequence packed_like(const PackedSequence& input, const Tensor& data) {
  return {data, input.batch_sizes(), input.sorted_indices(), input.unsorted_indices()};
}
PackedRecurrentResult as_packed_result(const PackedSequence& input, const std::vector<Tensor>& results) {
  return {packed_like(input, results[0]), results[1]};
}
}  // namespace

RNN::RNN(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentLayer("torch.nn.modules.rnn.RNN", 1, input_size, hidden_size, options) {
  is_relu(options.nonlinearity);
}
RecurrentResult RNN::run_sequence(const Tensor& input, Tensor hidden) {
  if (is_relu(options_.nonlinearity)) return as_result(run_call(input, {hidden}, UMBRA_OF_ONE_STATE(rnn_relu)));
  return as_result(run_call(input, {hidden}, UMBRA_OF_ONE_STATE(rnn_tanh)));
}
PackedRecurrentResult RNN::run_packed(const PackedSequence& input, Tensor hidden) {
  return as_packed_result(input, is_relu(options_.nonlinearity)
                                     ? run_packed_call(input, {hidden}, UMBRA_PACKED_OF_ONE_STATE(rnn_relu))
                                     : run_packed_call(input, {hidden}, UMBRA_PACKED_OF_ONE_STATE(rnn_tanh)));
}

GRU::GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentLayer("torch.nn.modules.rnn.GRU", 3, input_size, hidden_size, options) {}
RecurrentResult GRU::run_sequence(const Tensor& input, Tensor hidden) {
  return as_result(run_call(input, {hidden}, UMBRA_OF_ONE_STATE(gru)));
}
PackedRecurrentResult GRU::run_packed(const PackedSequence& input, Tensor hidden) {
  return as_packed_result(input, run_packed_call(input, {hidden}, UMBRA_PACKED_OF_ONE_STATE(gru)));
}
#undef UMBRA_PACKED_OF_ONE_STATE
#undef UMBRA_OF_ONE_STATE

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentLayer("torch.nn.modules.rnn.LSTM", 4, input_size, hidden_size, options) {}
LSTMResult LSTM::run_sequence(const Tensor& input, Tensor hidden, Tensor cell) {
  auto call = [](const Tensor& sequence, const std::vector<Tensor>& states, const auto&... rest) {
    auto [output, last_hidden, last_cell] = lstm(sequence, states, rest...);
    return std::vector<Tensor>{output, last_hidden, last_cell};
  };
  std::vector<Tensor> results = run_call(input, {hidden, cell}, call);
  return {results[0], results[1], results[2]};
}
PackedLSTMResult LSTM::run_packed(const PackedSequence& input, Tensor hidden, Tensor cell) {
  auto call = [](const Tensor& data, const Tensor& batch_sizes, const std::vector<Tensor>& states,
                 const auto&... rest) {
    auto [output, last_hidden, last_cell] = lstm(data, batch_sizes, states, rest...);
    return std::vector<Tensor>{output, last_hidden, last_cell};
  };
  std::vector<Tensor> results = run_packed_call(input, {hidden, cell}, call);
  return {packed_like(input, results[0]), results[1], results[2]};
}

// ---- single steps ----

RecurrentCell::RecurrentCell(const char* type, int64_t gates, int64_t input_size, int64_t hidden_size,
                             const RecurrentCellOptions& options)
    : Layer(type) {
  check<ValueError>(hidden_size > 0, "hidden_size must be greater than zero");
  weight_ih = parameter("weight_ih", empty({gates * hidden_size, input_size}, options.tensor));
  weight_hh = parameter("weight_hh", empty({gates * hidden_size, hidden_size}, options.tensor));
  bias_ih = parameter("bias_ih", options.bias ? empty({gates * hidden_size}, options.tensor) : Tensor());
  bias_hh = parameter("bias_hh", options.bias ? empty({gates * hidden_size}, options.tensor) : Tensor());
  double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  for (const Tensor& weight : {weight_ih, weight_hh, bias_ih, bias_hh})
    if (weight.defined()) init::uniform_(weight, -bound, bound);
}

std::string RecurrentCell::extra_repr() const {
  return concat(weight_ih.size(1), ", ", weight_hh.size(1), bias_ih.defined() ? "" : ", bias=False");
}

Tensor RecurrentCell::zeros_for(const Tensor& input) const {
  check<ValueError>(input.dim() == 1 || input.dim() == 2, type_name().substr(type_name().rfind('.') + 1),
                    ": Expected input to be 1D or 2D, got ", input.dim(), "D instead");
  SymShape sizes(input.sym_sizes());
  sizes.back() = weight_hh.sym_size(1);
  return zeros(sizes, {.dtype = input.dtype(), .device = input.device()});
}

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options)
    : RecurrentCell("torch.nn.modules.rnn.RNNCell", 1, input_size, hidden_size, options),
      relu_(is_relu(options.nonlinearity)) {}
std::string RNNCell::extra_repr() const { return RecurrentCell::extra_repr() + (relu_ ? ", nonlinearity=relu" : ""); }
Tensor RNNCell::forward(Tensor input) { return forward(input, zeros_for(input)); }
Tensor RNNCell::forward(Tensor input, Tensor hidden) {
  return (relu_ ? rnn_relu_cell : rnn_tanh_cell)(input, hidden, weight_ih, weight_hh, bias_ih, bias_hh);
}

GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options)
    : RecurrentCell("torch.nn.modules.rnn.GRUCell", 3, input_size, hidden_size, options) {}
Tensor GRUCell::forward(Tensor input) { return forward(input, zeros_for(input)); }
Tensor GRUCell::forward(Tensor input, Tensor hidden) {
  return gru_cell(input, hidden, weight_ih, weight_hh, bias_ih, bias_hh);
}

LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options)
    : RecurrentCell("torch.nn.modules.rnn.LSTMCell", 4, input_size, hidden_size, options) {}
std::pair<Tensor, Tensor> LSTMCell::operator()(const Tensor& input, Tensor hidden, Tensor cell) const {
  return run([&]() -> std::pair<Tensor, Tensor> {
    if (!hidden.defined()) hidden = zeros_for(input);
    if (!cell.defined()) cell = zeros_for(input);
    auto [next_hidden, next_cell] = lstm_cell(input, {hidden, cell}, weight_ih, weight_hh, bias_ih, bias_hh);
    return {next_hidden, next_cell};
  });
}

}  // namespace umbra::nn
