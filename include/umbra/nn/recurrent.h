// Recurrent networks: RNN, LSTM and GRU over sequences [length, batch, features], and their single steps.
//
//     nn::LSTM lstm(32, 64, {.num_layers = 2, .batch_first = true});
//     auto [output, hidden, cell] = lstm.run_sequence(x);            // from zeros
//     auto [more, h, c] = lstm.run_sequence(y, hidden, cell);        // and on
//     Tensor alone = lstm(x);                                        // the outputs, as in a Sequential
//
// A sequence without a batch, [length, features], gives outputs and states without one.
#pragma once

#include <utility>

#include "umbra/nn/module.h"
#include "umbra/nn/packed_sequence.h"

namespace UMBRA_API umbra {
namespace nn {

struct RecurrentOptions {
  int64_t num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  TensorOptions tensor = {};
  std::string nonlinearity = "tanh";  // or "relu"; of RNN alone
};

/// What the three share: weights of each layer and direction, with PyTorch's names and order.
class RecurrentLayer : public Layer {
 public:
  std::string extra_repr() const override;
  /// The outputs of the last layer.
  Tensor forward(Tensor input) override;

 protected:
  RecurrentLayer(const char* type, int64_t gates, int64_t input_size, int64_t hidden_size,
                 const RecurrentOptions& options);
  virtual Tensor outputs(const Tensor& input) = 0;

  /// What an operator of the family, given as a function of its first arguments and the ones that all have, gives for
  /// a sequence, or for packed ones: the outputs, then the states.
  template <class Call> std::vector<Tensor> run_call(const Tensor& input, std::vector<Tensor> states, Call call) const;
  template <class Call>
  std::vector<Tensor> run_packed_call(const utils::rnn::PackedSequence& input, std::vector<Tensor> states,
                                      Call call) const;

  int64_t input_size_, hidden_size_;
  RecurrentOptions options_;
  std::vector<Tensor> weights_;

 private:
  Tensor zeros_for(const Tensor& input, const SymInt& batch) const;
};

/// What a network gives: the outputs of the last layer, and the state after the last step.
struct RecurrentResult {
  Tensor output, hidden;
};
struct PackedRecurrentResult {
  utils::rnn::PackedSequence output;
  Tensor hidden;
};

class RNN : public RecurrentLayer {
 public:
  RNN(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {});
  RecurrentResult run_sequence(const Tensor& input, Tensor hidden = {});
  PackedRecurrentResult run_packed(const utils::rnn::PackedSequence& input, Tensor hidden = {});

 private:
  Tensor outputs(const Tensor& input) override { return run_sequence(input).output; }
};

class GRU : public RecurrentLayer {
 public:
  GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {});
  RecurrentResult run_sequence(const Tensor& input, Tensor hidden = {});
  PackedRecurrentResult run_packed(const utils::rnn::PackedSequence& input, Tensor hidden = {});

 private:
  Tensor outputs(const Tensor& input) override { return run_sequence(input).output; }
};

struct LSTMResult {
  Tensor output, hidden, cell;
};
struct PackedLSTMResult {
  utils::rnn::PackedSequence output;
  Tensor hidden, cell;
};

class LSTM : public RecurrentLayer {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {});
  LSTMResult run_sequence(const Tensor& input, Tensor hidden = {}, Tensor cell = {});
  PackedLSTMResult run_packed(const utils::rnn::PackedSequence& input, Tensor hidden = {}, Tensor cell = {});

 private:
  Tensor outputs(const Tensor& input) override { return run_sequence(input).output; }
};

struct RecurrentCellOptions {
  bool bias = true;
  TensorOptions tensor = {};
  std::string nonlinearity = "tanh";  // or "relu"; of RNNCell alone
};

/// What the cells share: weights for the input and for the state.
class RecurrentCell : public Layer {
 public:
  std::string extra_repr() const override;

  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  RecurrentCell(const char* type, int64_t gates, int64_t input_size, int64_t hidden_size,
                const RecurrentCellOptions& options);
  /// The state that a call without one starts from.
  Tensor zeros_for(const Tensor& input) const;
};

/// One step of a network: an input and a state to the next state. Without a state it starts from zeros.
class RNNCell : public RecurrentCell {
 public:
  RNNCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options = {});
  Tensor forward(Tensor input) override;
  Tensor forward(Tensor input, Tensor hidden) override;
  std::string extra_repr() const override;

 private:
  bool relu_;
};

class GRUCell : public RecurrentCell {
 public:
  GRUCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options = {});
  Tensor forward(Tensor input) override;
  Tensor forward(Tensor input, Tensor hidden) override;
};

class LSTMCell : public RecurrentCell {
 public:
  LSTMCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options = {});
  /// The next state: hidden and cell.
  std::pair<Tensor, Tensor> operator()(const Tensor& input, Tensor hidden = {}, Tensor cell = {}) const;
};

}  // namespace nn
}  // namespace umbra
