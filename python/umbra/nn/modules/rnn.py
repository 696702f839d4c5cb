"""Recurrent networks and their cells."""
import math
import numbers
import warnings

import umbra
from umbra.nn import init
from umbra.nn.modules.module import Module
from umbra.nn.parameter import Parameter
from umbra.nn.utils.rnn import PackedSequence

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor, permutation, dim=1):
    """The rows of a tensor in another order."""
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What RNN, LSTM and GRU share: weights of each layer and direction."""

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0,
                 device=None, dtype=None):
        super().__init__()
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if dropout > 0 and num_layers == 1:
            warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, "
                          f"but got dropout={dropout} and num_layers={num_layers}", stacklevel=2)
        if not isinstance(input_size, int):
            raise TypeError(f"input_size should be of type int, got: {type(input_size).__name__}")
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode, self.input_size, self.hidden_size, self.num_layers, self.bias = mode, input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.proj_size = batch_first, float(dropout), bidirectional, proj_size
        gates = _GATES[mode] * hidden_size
        output = proj_size or hidden_size
        self._all_weights = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:2 if bidirectional else 1]:
                inputs = input_size if layer == 0 else output * (2 if bidirectional else 1)
                shapes = {"weight_ih": (gates, inputs), "weight_hh": (gates, output)}
                if bias:
                    shapes.update(bias_ih=(gates,), bias_hh=(gates,))
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = []
                for kind, shape in shapes.items():
                    name = f"{kind}_l{layer}{suffix}"
                    setattr(self, name, Parameter(umbra.empty(shape, device=device, dtype=dtype)))
                    names.append(name)
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):  # a tuple: what is written into a list that was made here would be lost
        return tuple(getattr(self, name) for names in self._all_weights for name in names)

    @_flat_weights.setter
    def _flat_weights(self, weights):  # packages say again what the attributes are
        if [id(weight) for weight in weights] != [id(weight) for weight in self._flat_weights]:
            raise NotImplementedError("_flat_weights of other tensors than the layer's attributes is not in Umbra yet: set the attributes, as weight_hh_l0")

    def _init_flat_weights(self):
        """Nothing: the flat weights are always the attributes of the moment. Packages call these three after they set weights."""

    _update_flat_weights = _init_flat_weights

    def _weights_have_changed(self):
        return False

    def __getstate__(self):
        """With what PyTorch keeps of the weights besides the parameters."""
        return {**self.__dict__, "_flat_weights_names": self._flat_weights_names, "_flat_weights": list(self._flat_weights)}

    def __setstate__(self, state):
        super().__setstate__({key: value for key, value in state.items() if not key.startswith("_flat_weight")})

    @property
    def all_weights(self):
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Weights lie as they lie: there is nothing to be gained on the CPU."""

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes):
        if input.dtype != self._flat_weights[0].dtype and not umbra.is_autocast_enabled("cpu"):
            kept = self._flat_weights[0].dtype
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({kept}). Convert input: input.to({kept}), "
                             f"or convert model: model.to({input.dtype})")
        rank = 2 if batch_sizes is not None else 3
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def get_expected_hidden_size(self, input, batch_sizes):
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0) if self.batch_first else input.size(1)
        return (self.num_layers * (2 if self.bidirectional else 1), batch, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        return hx if permutation is None else apply_permutation(hx, permutation)

    def extra_repr(self):
        out = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0),
                              ("bidirectional", False)):
            if getattr(self, name) != default:
                out += f", {name}={getattr(self, name)}"
        return out

    def _zeros(self, input, size):
        return umbra.zeros(size, dtype=input.dtype, device=input.device)

    def _options(self):
        return [self.bias, self.num_layers, self.dropout, self.training, self.bidirectional]

    def _batch_of(self, input):
        """A sequence of its own becomes a batch of one."""
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        return batched, input if batched else input.unsqueeze(0 if self.batch_first else 1)

    def _name(self):
        return type(self).__name__

    def forward(self, input, hx=None):
        packed, batched = isinstance(input, PackedSequence), True
        batch_sizes = sorted_indices = unsorted_indices = None
        if packed:
            input, batch_sizes, sorted_indices, unsorted_indices = input
        else:
            batched, input = self._batch_of(input)
            hx = None if hx is None else self._batch_of_states(hx, batched)
        hx = self._zero_states(input, batch_sizes) if hx is None else self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        output, *states = self._run(input, hx, batch_sizes)
        if not batched:
            output, states = output.squeeze(0 if self.batch_first else 1), [state.squeeze(1) for state in states]
        if packed:
            output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return output, self.permute_hidden(states[0] if len(states) == 1 else tuple(states), unsorted_indices)

    def _run(self, input, hx, batch_sizes):
        operators = getattr(umbra.ops.aten, self.mode.lower())
        hx = hx if isinstance(hx, umbra.Tensor) else list(hx)
        if batch_sizes is not None:
            return operators.data(input, batch_sizes, hx, self._flat_weights, *self._options())
        return operators.input(input, hx, self._flat_weights, *self._options(), self.batch_first)


class _SimpleRNN(RNNBase):
    """Networks whose cells keep one state."""

    def _zero_states(self, input, batch_sizes):
        return self._zeros(input, self.get_expected_hidden_size(input, batch_sizes))

    def _batch_of_states(self, hx, batched):
        if hx.dim() != (3 if batched else 2):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(f"For {kind} input, hx should also be {3 if batched else 2}-D but got {hx.dim()}-D tensor")
        return hx if batched else hx.unsqueeze(1)


def _refuse_options(kind, unknown):
    """Projections are LSTM's alone; anything else is nobody's."""
    if "proj_size" in unknown:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    for name in unknown:
        raise TypeError(f"{kind}.__init__() got an unexpected keyword argument '{name}'")


class RNN(_SimpleRNN):
    """A recurrent network of layers whose cells keep one state: tanh or relu of the input's and the state's share."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 device=None, dtype=None, **unknown):
        _refuse_options("RNN", unknown)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         device=device, dtype=dtype)
        self.nonlinearity = nonlinearity


class GRU(_SimpleRNN):
    """A recurrent network of layers of gated units, whose gates say what is kept of the state."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, device=None,
                 dtype=None, **unknown):
        _refuse_options("GRU", unknown)
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device, dtype=dtype)


class LSTM(RNNBase):
    """A recurrent network of layers of long short-term memory: a state that is shown and one that is kept."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0,
                 device=None, dtype=None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype)

    def get_expected_cell_size(self, input, batch_sizes):
        count, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return (count, batch, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        return hx if permutation is None else tuple(apply_permutation(state, permutation) for state in hx)

    def _zero_states(self, input, batch_sizes):
        count, batch, shown = self.get_expected_hidden_size(input, batch_sizes)
        return self._zeros(input, (count, batch, shown)), self._zeros(input, (count, batch, self.hidden_size))

    def _batch_of_states(self, hx, batched):
        rank = 3 if batched else 2
        if any(state.dim() != rank for state in hx):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(f"For {kind} input, hx and cx should also be {rank}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors")
        return tuple(state if batched else state.unsqueeze(1) for state in hx)


# ---- single steps ----

class RNNCellBase(Module):
    """What the cells share: weights for the input and for the state."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(umbra.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(umbra.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(umbra.empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        out = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            out += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            out += f", nonlinearity={self.nonlinearity}"
        return out

    def _step(self, operator, input, states):
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        single = input.dim() == 1
        for i, state in enumerate(states or ()):
            if state.dim() not in (1, 2):
                label = "hidden" if len(states) == 1 else f"hx[{i}]"
                raise ValueError(f"{name}: Expected {label} to be 1D or 2D, got {state.dim()}D instead")
        rows = input.unsqueeze(0) if single else input
        if states is None:
            zeros = umbra.zeros(rows.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            states = (zeros,) * self._states
        elif single:
            states = tuple(state.unsqueeze(0) for state in states)
        hx = states[0] if self._states == 1 else list(states)
        result = operator(rows, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        results = (result,) if self._states == 1 else result
        return tuple(r.squeeze(0) for r in results) if single else tuple(results)

    _states = 1


class RNNCell(RNNCellBase):
    """One step of an RNN."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        operator = umbra.ops.aten.rnn_tanh_cell if self.nonlinearity == "tanh" else umbra.ops.aten.rnn_relu_cell
        return self._step(operator, input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM: from `(hidden, cell)` to the next."""

    _states = 2

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        return self._step(umbra.ops.aten.lstm_cell, input, None if hx is None else tuple(hx))


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._step(umbra.ops.aten.gru_cell, input, None if hx is None else (hx,))[0]
