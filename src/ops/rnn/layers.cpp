// Recurrent networks of several layers, over whole sequences and over packed ones.
#include <algorithm>

#include "ops/common/batching.h"
#include "ops/rnn/batch_sizes.h"
#include "ops/rnn/cells.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/typed.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

/// Sequences to one layer: [time, batch, features], or packed, [rows, features] with the batch size of each step.
struct Sequence {
  Tensor data;
  std::vector<int64_t> batch_sizes;  // empty: not packed
  bool packed = false;
};

struct LayerResult {
  Tensor outputs;
  CellState last;
};

// ---- one direction of one layer ----

LayerResult run_full(const Tensor& data, CellState state, const CellParameters& parameters, Cell cell, bool backward) {
  if (state.cell.defined()) {
    if (std::optional<LstmLayer> layer = lstm_layer(data, state, parameters, backward)) {
      auto last = [&](const Tensor& t) { return t.select(0, backward ? 0 : -1); };
      return {layer->hidden, {last(layer->hidden), last(layer->cells)}};
    }
  }
  std::vector<Tensor> steps = parameters.from_input(data).unbind(0), outputs;
  check(!steps.empty(), "Expected sequence length to be larger than 0 in RNN");
  if (backward) std::reverse(steps.begin(), steps.end());
  for (const Tensor& step : steps) {
    state = cell(step, state, parameters);
    outputs.push_back(state.hidden);
  }
  if (backward) std::reverse(outputs.begin(), outputs.end());
  return {stack(outputs, 0), state};
}

// Samples are sorted by length: those that have ended are the last, and their states are put aside.
LayerResult run_packed_forward(const Sequence& input, const CellState& initial, const CellParameters& parameters,
                               Cell cell) {
  Tensor data = parameters.from_input(input.data);
  std::vector<Tensor> outputs;
  std::vector<CellState> ended;
  CellState state = initial;
  int64_t offset = 0, before = input.batch_sizes.front();
  for (int64_t size : input.batch_sizes) {
    Tensor step = data.narrow(0, offset, size);
    offset += size;
    if (size < before) {
      ended.push_back(state.slice(size, before));
      state = state.slice(0, size);
    }
    before = size;
    state = cell(step, state, parameters);
    outputs.push_back(state.hidden);
  }
  ended.push_back(state);
  std::reverse(ended.begin(), ended.end());
  return {cat(outputs, 0), CellState::join(ended)};
}

// From the end: the longest samples begin, the others join.
LayerResult run_packed_backward(const Sequence& input, const CellState& initial, const CellParameters& parameters,
                                Cell cell) {
  Tensor data = parameters.from_input(input.data);
  std::vector<Tensor> outputs;
  int64_t offset = 0, before = input.batch_sizes.back();
  for (int64_t size : input.batch_sizes) offset += size;
  CellState state = initial.slice(0, before);
  for (size_t i = input.batch_sizes.size(); i-- > 0;) {
    int64_t size = input.batch_sizes[i];
    if (size > before) state = CellState::join({state, initial.slice(before, size)});
    offset -= size;
    before = size;
    state = cell(data.narrow(0, offset, size), state, parameters);
    outputs.push_back(state.hidden);
  }
  std::reverse(outputs.begin(), outputs.end());
  return {cat(outputs, 0), state};
}

LayerResult run_direction(const Sequence& input, const CellState& initial, const CellParameters& parameters, Cell cell,
                          bool backward) {
  if (!input.packed) return run_full(input.data, initial, parameters, cell, backward);
  return backward ? run_packed_backward(input, initial, parameters, cell)
                  : run_packed_forward(input, initial, parameters, cell);
}

// ---- the stack of layers ----

struct NetworkOptions {
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;
};

std::vector<CellParameters> parameters_of(TensorList all, bool has_biases, bool projects) {
  size_t each = (has_biases ? 4u : 2u) + (projects ? 1u : 0u);
  check(all.size() % each == 0, "got an incorrect number of RNN parameters");
  std::vector<CellParameters> out;
  for (size_t i = 0; i < all.size(); i += each) {
    CellParameters p{all[i], all[i + 1], {}, {}, {}};
    if (has_biases) p.b_ih = all[i + 2], p.b_hh = all[i + 3];
    if (projects) p.w_hr = all[i + each - 1];
    out.push_back(p);
  }
  return out;
}

struct NetworkResult {
  Tensor outputs;
  std::vector<CellState> last;
};

NetworkResult run_network(Sequence input, const std::vector<CellState>& initial,
                          const std::vector<CellParameters>& parameters, Cell cell, const NetworkOptions& options) {
  size_t directions = options.bidirectional ? 2 : 1, count = static_cast<size_t>(options.layers) * directions;
  check(initial.size() == count, "Expected more hidden states in stacked_rnn");
  check(parameters.size() == count, "Expected more parameters in stacked_rnn");
  NetworkResult result;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (size_t d = 0; d < directions; ++d) {
      size_t i = static_cast<size_t>(layer) * directions + d;
      LayerResult one = run_direction(input, initial[i], parameters[i], cell, d == 1);
      outputs.push_back(one.outputs);
      result.last.push_back(one.last);
    }
    input.data = outputs.size() == 1 ? outputs[0] : cat(outputs, outputs[0].dim() - 1);
    if (options.dropout != 0 && options.train && layer + 1 < options.layers)
      input.data = dropout(input.data, options.dropout, true);
  }
  result.outputs = input.data;
  return result;
}

void check_packed(const Tensor& batch_sizes) { check(batch_sizes.dim() == 1, "batch_sizes tensor should be 1D"); }

/// Batch sizes are read: what follows depends on them.
std::vector<int64_t> sizes_of(const Tensor& batch_sizes) {
  check(batch_sizes.dim() == 1 && batch_sizes.dtype() == DType::Int64, "batch_sizes should always be on CPU");
  std::vector<int64_t> out = read_batch_sizes(batch_sizes);
  check(!out.empty(), "batch_sizes must not be empty");
  for (size_t i = 0; i < out.size(); ++i)
    check(out[i] > 0 && (i == 0 || out[i] <= out[i - 1]), "batch_sizes must be positive and not increase");
  return out;
}

Tensor stack_hidden(const std::vector<CellState>& states, Tensor CellState::*part) {
  std::vector<Tensor> all;
  for (const CellState& state : states) all.push_back(state.*part);
  return stack(all, 0);
}

using Result = std::tuple<Tensor, Tensor>;
using LstmResult = std::tuple<Tensor, Tensor, Tensor>;

std::vector<CellState> states_of(const Tensor& hx) {
  std::vector<CellState> states;
  for (const Tensor& t : hx.unbind(0)) states.push_back({t, {}});
  return states;
}
std::vector<CellState> lstm_states_of(TensorList hx) {
  check(hx.size() == 2, "lstm expects two hidden states");
  std::vector<Tensor> hidden = hx[0].unbind(0), cells = hx[1].unbind(0);
  check(hidden.size() == cells.size(), "lstm expects as many cell states as hidden states");
  std::vector<CellState> states;
  for (size_t i = 0; i < hidden.size(); ++i) states.push_back({hidden[i], cells[i]});
  return states;
}
bool projects(TensorList hx) { return hx[0].sym_size(2) != hx[1].sym_size(2); }

/// All tensors of a network are on one device.
void check_devices(const Tensor& input, TensorList states, TensorList parameters) {
  auto check_list = [&](const char* what, TensorList list) {
    for (const Tensor& t : list) {
      if (!t.defined()) continue;
      check(t.device() == input.device(), "Input and ", what,
            " tensors are not at the same device, found input tensor at ", input.device(), " and ", what, " tensor at ",
            t.device());
    }
  };
  check_list("hidden", states);
  check_list("parameter", parameters);
}

// Sequences have a time, a batch and features, and states a dimension of layers.
Tensor time_first(const Tensor& input, const Tensor& hx, bool batch_first) {
  Tensor sequence = batch_first ? input.transpose(0, 1) : input;
  wrap_dim(0, hx.dim(), false);
  check(input.dim() == 3, "rnn: expected input to have 3 dimensions, got ", input.dim());
  return sequence;
}

Result run(Cell cell, const Sequence& input, const Tensor& hx, TensorList parameters, const NetworkOptions& options) {
  NetworkResult result =
      run_network(input, states_of(hx), parameters_of(parameters, options.has_biases, false), cell, options);
  return {result.outputs, stack_hidden(result.last, &CellState::hidden)};
}
LstmResult run_lstm(Cell cell, const Sequence& input, TensorList hx, TensorList parameters,
                    const NetworkOptions& options) {
  std::vector<CellState> states = lstm_states_of(hx);
  NetworkResult result =
      run_network(input, states, parameters_of(parameters, options.has_biases, projects(hx)), cell, options);
  return {result.outputs, stack_hidden(result.last, &CellState::hidden), stack_hidden(result.last, &CellState::cell)};
}

// ---- by an accelerator's library ----

enum class LibraryNetwork : int64_t { Relu = 0, Tanh = 1, Lstm = 2, Gru = 3 };

/// Whether a network is one call of the library: its tensors are on such a device, and therefore fake.
bool is_library_network(const Tensor& input) {
  static const auto acceptable = typed<bool(const Tensor&)>("aten::cudnn_is_acceptable");
  return input.device().type == DeviceType::CUDA && acceptable(input);
}

/// `cells`: undefined but for lstm. The last three results are what the gradient needs.
LstmResult run_library_network(LibraryNetwork kind, const Tensor& input, const Tensor& hidden, const Tensor& cells,
                               TensorList parameters, const NetworkOptions& options, bool batch_first) {
  static const auto network = typed<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>(
      const Tensor&, TensorList, int64_t, const Tensor&, const Tensor&, const Tensor&, int64_t, SymInt, SymInt, int64_t,
      bool, double, bool, bool, SymIntArrayRef, const Tensor&)>("aten::_cudnn_rnn");
  bool projected = cells.defined() && hidden.sym_size(2) != cells.sym_size(2);
  SymInt width = cells.defined() ? cells.sym_size(2) : hidden.sym_size(2);
  int64_t each = (options.has_biases ? 4 : 2) + (projected ? 1 : 0);
  bool drops = options.train && options.dropout != 0;
  Tensor dropped = drops ? input.new_empty({SymInt(0)}, {.dtype = DType::UInt8}) : Tensor();
  auto [out, last, last_cells, reserve, weights] =
      network(input, parameters, each, Tensor(), hidden, cells, static_cast<int64_t>(kind), width,
              projected ? hidden.sym_size(2) : SymInt(0), options.layers, batch_first, options.dropout, options.train,
              options.bidirectional, SymIntArrayRef(), dropped);
  return {out, last, last_cells};
}

/// The two forms of tanh, relu and gru networks.
struct WholeNetwork {
  const CellKind& kind;
  LibraryNetwork library;
  void operator()(OperatorBuilder& builder) const {
    auto with = [library = library](Cell cell) {
      return [cell, library](const Tensor& input, const Tensor& hx, std::vector<Tensor> parameters, bool has_biases,
                             int64_t layers, double dropout, bool train, bool bidirectional, bool batch_first) {
        check_devices(input, {&hx, 1}, parameters);
        if (batch_first) wrap_dim(1, input.dim());
        parameters_of(parameters, has_biases, false);  // refuses a number of them that does not fit
        if (is_library_network(input)) {
          auto [out, hidden, cells] = run_library_network(
              library, input, hx, {}, parameters, {has_biases, layers, dropout, train, bidirectional}, batch_first);
          return Result(out, hidden);
        }
        auto [out, hidden] = run(cell, {time_first(input, hx, batch_first), {}, false}, hx, parameters,
                                 {has_biases, layers, dropout, train, bidirectional});
        return Result(batch_first ? out.transpose_(0, 1) : out, hidden);
      };
    };
    builder.composite(with(kind.step)).use(batch_through(with(kind.values))).tags({Tag::NondeterministicSeeded});
  }
};
struct PackedNetwork {
  const CellKind& kind;
  void operator()(OperatorBuilder& builder) const {
    auto with = [](Cell cell) {
      return [cell](const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, std::vector<Tensor> parameters,
                    bool has_biases, int64_t layers, double dropout, bool train, bool bidirectional) {
        check_devices(data, {&hx, 1}, parameters);
        check_packed(batch_sizes);
        check(parameters.size() % (has_biases ? 4 : 2) == 0, "got an incorrect number of RNN parameters");
        wrap_dim(0, hx.dim(), false);  // a number has no layers: an IndexError
        return run(cell, {data, sizes_of(batch_sizes), true}, hx, parameters,
                   {has_biases, layers, dropout, train, bidirectional});
      };
    };
    builder.composite(with(kind.step)).use(batch_through(with(kind.values))).tags({Tag::NondeterministicSeeded});
  }
};

UMBRA_OPERATOR(
    "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
    "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)")
    .use(WholeNetwork{kTanhCell, LibraryNetwork::Tanh});
UMBRA_OPERATOR(
    "rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
    "dropout, bool train, bool bidirectional) -> (Tensor, Tensor)")
    .use(PackedNetwork{kTanhCell});
UMBRA_OPERATOR(
    "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
    "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)")
    .use(WholeNetwork{kReluCell, LibraryNetwork::Relu});
UMBRA_OPERATOR(
    "rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
    "dropout, bool train, bool bidirectional) -> (Tensor, Tensor)")
    .use(PackedNetwork{kReluCell});
UMBRA_OPERATOR(
    "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
    "bool bidirectional, bool batch_first) -> (Tensor, Tensor)")
    .use(WholeNetwork{kGruCell, LibraryNetwork::Gru});
UMBRA_OPERATOR(
    "gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
    "dropout, bool train, bool bidirectional) -> (Tensor, Tensor)")
    .use(PackedNetwork{kGruCell});

auto whole_lstm(Cell cell) {
  return [cell](const Tensor& input, std::vector<Tensor> hx, std::vector<Tensor> parameters, bool has_biases,
                int64_t layers, double dropout, bool train, bool bidirectional, bool batch_first) {
    check(hx.size() == 2, "lstm expects two hidden states");
    projects(hx);  // too few dimensions are an IndexError
    check_devices(input, hx, parameters);
    if (is_library_network(input)) {
      parameters_of(parameters, has_biases, projects(hx));
      return run_library_network(LibraryNetwork::Lstm, input, hx[0], hx[1], parameters,
                                 {has_biases, layers, dropout, train, bidirectional}, batch_first);
    }
    auto [out, hidden, cells] = run_lstm(cell, {time_first(input, hx[0], batch_first), {}, false}, hx, parameters,
                                         {has_biases, layers, dropout, train, bidirectional});
    return LstmResult(batch_first ? out.transpose(0, 1) : out, hidden, cells);
  };
}
auto packed_lstm(Cell cell) {
  return [cell](const Tensor& data, const Tensor& batch_sizes, std::vector<Tensor> hx, std::vector<Tensor> parameters,
                bool has_biases, int64_t layers, double dropout, bool train, bool bidirectional) {
    check(hx.size() == 2, "lstm expects two hidden states");
    check_packed(batch_sizes);
    projects(hx);  // too few dimensions are an IndexError
    return run_lstm(cell, {data, sizes_of(batch_sizes), true}, hx, parameters,
                    {has_biases, layers, dropout, train, bidirectional});
  };
}

UMBRA_OPERATOR(
    "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
    "train, "
    "bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)")
    .composite(whole_lstm(kLstmCell.step))
    .use(batch_through(whole_lstm(kLstmCell.values)))
    .tags({Tag::NondeterministicSeeded});
UMBRA_OPERATOR(
    "lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float "
    "dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)")
    .composite(packed_lstm(kLstmCell.step))
    .use(batch_through(packed_lstm(kLstmCell.values)))
    .tags({Tag::NondeterministicSeeded});

}  // namespace
}  // namespace umbra::ops
