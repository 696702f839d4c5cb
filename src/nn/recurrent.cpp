#include "umbra/nn/recurrent.h"

#include <cmath>

#include "umbra/generated/functions.h"
#include "umbra/nn/init.h"
#include "umbra/ops/operators.h"

namespace umbra::nn {

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

Tensor RecurrentLayer::zeros_for(const Tensor& input) const {
  check<ValueError>(input.dim() == 3, "expected input to be 3D, got ", input.dim(), "D instead");
  int64_t count = options_.num_layers * (options_.bidirectional ? 2 : 1);
  return zeros({SymInt(count), input.sym_size(options_.batch_first ? 0 : 1), SymInt(hidden_size_)},
               {.dtype = input.dtype(), .device = input.device()});
}

RNN::RNN(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentLayer("torch.nn.modules.rnn.RNN", 1, input_size, hidden_size, options) {}
RecurrentResult RNN::run_sequence(const Tensor& input, Tensor hidden) {
  if (!hidden.defined()) hidden = zeros_for(input);
  auto [output, last] = rnn_tanh(input, hidden, weights_, options_.bias, options_.num_layers, options_.dropout,
                                 is_training(), options_.bidirectional, options_.batch_first);
  return {output, last};
}

GRU::GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentLayer("torch.nn.modules.rnn.GRU", 3, input_size, hidden_size, options) {}
RecurrentResult GRU::run_sequence(const Tensor& input, Tensor hidden) {
  if (!hidden.defined()) hidden = zeros_for(input);
  auto [output, last] = gru(input, hidden, weights_, options_.bias, options_.num_layers, options_.dropout,
                            is_training(), options_.bidirectional, options_.batch_first);
  return {output, last};
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentLayer("torch.nn.modules.rnn.LSTM", 4, input_size, hidden_size, options) {}
LSTMResult LSTM::run_sequence(const Tensor& input, Tensor hidden, Tensor cell) {
  if (!hidden.defined()) hidden = zeros_for(input);
  if (!cell.defined()) cell = zeros_for(input);
  auto [output, last_hidden, last_cell] =
      lstm(input, {hidden, cell}, weights_, options_.bias, options_.num_layers, options_.dropout, is_training(),
           options_.bidirectional, options_.batch_first);
  return {output, last_hidden, last_cell};
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
    : RecurrentCell("torch.nn.modules.rnn.RNNCell", 1, input_size, hidden_size, options) {}
Tensor RNNCell::forward(Tensor input) { return forward(input, zeros_for(input)); }
Tensor RNNCell::forward(Tensor input, Tensor hidden) {
  return rnn_tanh_cell(input, hidden, weight_ih, weight_hh, bias_ih, bias_hh);
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
