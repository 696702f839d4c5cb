"""What the compiler reads in the place of functions and modules of this package whose own source is written for Python alone."""
from typing import Any, NamedTuple, Optional

import umbra as torch
from umbra import nn
from umbra.autograd.profiler import record_function
from umbra.jit import _library_functions as functions
from umbra.jit import _library_images as images
from umbra.jit import _library_layers as layers
from umbra.jit import _library_losses as losses
from umbra.jit import _library_sequences as sequences
from umbra.jit import _library_tensors as tensors
from umbra.nn import functional as F


class Choice(NamedTuple):
    """The function that an argument chooses while a program is compiled: by name, place and default."""
    argument: str
    place: int
    if_true: Any
    if_false: Any
    default: bool = False


# ---- classes, by the names that archives have for them ----

class _NoGrad:
    def __init__(self) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        torch.set_grad_enabled(self.prev)


class _RecordFunction:
    def __init__(self, name: str, args: Optional[str] = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self) -> None:
        return None

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        return None


class _Autocast:  # the interpreter makes the region when an object is entered
    def __init__(self, device_type: str, dtype: Optional[int] = None, enabled: bool = True, cache_enabled: Optional[bool] = None) -> None:
        if dtype is None:
            fast_dtype = torch.get_autocast_dtype(device_type)
        else:
            fast_dtype = dtype
        self.fast_dtype = fast_dtype
        self._enabled = enabled
        self.device = device_type

    def __enter__(self):
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        return None


CLASSES = {torch.autocast: _Autocast, torch.no_grad: _NoGrad, record_function: _RecordFunction}


# ---- functions: a function, several of which the first that fits is meant, an operator's name, or a choice ----

def _public(module):
    return {name: value for name, value in vars(module).items() if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__}


def _with_indices(name, place):
    return Choice("return_indices", place, getattr(images, name + "_with_indices"), getattr(images, name))


def _distinct(name, place):
    found = [getattr(tensors, name + end) for end in ("", "_inverse", "_counts", "_both")]
    return Choice("return_counts", place + 1, Choice("return_inverse", place, found[3], found[2]), Choice("return_inverse", place, found[1], found[0]))


FUNCTIONS = {getattr(F, name): value for module in (functions, images, losses) for name, value in _public(module).items() if hasattr(F, name)}
FUNCTIONS.update({getattr(nn.utils.rnn, name): getattr(sequences, name) for name in ("pack_padded_sequence", "pad_packed_sequence")})
for _dims in (1, 2, 3):
    FUNCTIONS[getattr(F, f"max_pool{_dims}d")] = _with_indices(f"max_pool{_dims}d", 6)
    FUNCTIONS[getattr(F, f"adaptive_max_pool{_dims}d")] = _with_indices(f"adaptive_max_pool{_dims}d", 2)
    if _dims > 1:
        FUNCTIONS[getattr(F, f"fractional_max_pool{_dims}d")] = _with_indices(f"fractional_max_pool{_dims}d", 4)
FUNCTIONS.update({
    F.multi_head_attention_forward: sequences.multi_head_attention_forward,
    F.softplus: "aten::softplus",
    torch.norm: (tensors.norm_of_text, tensors.norm_of_text_along, tensors.norm, tensors.norm_along, tensors.norm_of_whole, tensors.norm_of_whole_along),
    torch.tensordot: (tensors.tensordot, tensors.tensordot_of_pair, tensors.tensordot_of_lists),
    torch.stft: tensors.stft,
    torch.sparse_csr_tensor: tensors.sparse_csr_tensor,
    torch.sparse_csc_tensor: tensors.sparse_csc_tensor,
    torch.sparse_bsr_tensor: tensors.sparse_bsr_tensor,
    torch.sparse_bsc_tensor: tensors.sparse_bsc_tensor,
    torch.lu: Choice("get_infos", 2, tensors.lu_with_infos, tensors.lu),
    torch.unique: _distinct("unique", 2),
    torch.unique_consecutive: _distinct("unique_consecutive", 1),
})


# ---- modules: their forward, or two of which the first that fits is meant ----

def _forwards(module):
    return {getattr(nn, name[1:]): cls.forward for name, cls in vars(module).items() if isinstance(cls, type) and "forward" in cls.__dict__ and hasattr(nn, name[1:])}


FORWARDS = {**_forwards(layers), **_forwards(sequences)}
for _dims in (1, 2, 3):
    FORWARDS[getattr(nn, f"BatchNorm{_dims}d")] = layers._BatchNorm.forward
    FORWARDS[getattr(nn, f"InstanceNorm{_dims}d")] = layers._InstanceNorm.forward
for _name in ("RNN", "LSTM", "GRU"):
    FORWARDS[getattr(nn, _name)] = (getattr(sequences, f"_{_name}").forward, getattr(sequences, f"_Packed{_name}").forward)

# Attributes of layers that are constants of programs, as they are in PyTorch's.
_CONSTANTS = frozenset("""
    affine align_corners alpha approximate batch_first beta bias bidirectional blank ceil_mode count_include_pad delta dilation dim divisor_override
    downscale_factor dropout elementwise_affine embedding_dim end_dim eps full groups hidden_size ignore_index in1_features in2_features in_channels
    in_features include_last_offset inplace input_size keepdim kernel_size label_smoothing lambd log_input lower margin max_norm max_val min_val mode
    momentum name negative_slope nonlinearity norm_first norm_type normalized_shape num_channels num_embeddings num_features num_groups num_layers
    num_parameters out_channels out_features output_padding output_ratio output_size p padding padding_idx padding_mode proj_size
    recompute_scale_factor reduction return_indices scale_factor scale_grad_by_freq size sparse start_dim stride swap threshold track_running_stats
    unflattened_size upper upscale_factor value""".split())


def constants_of(module):
    """The attributes of a module that are constants of its program."""
    own = set(getattr(module, "__constants__", ()))
    ours = type(module).__module__.startswith("umbra.nn.") and not isinstance(module, nn.MultiheadAttention)
    return own | (_CONSTANTS & module.__dict__.keys()) if ours else own


def extra_attributes(module):
    """What a module's form reads and the module does not keep in its dict."""
    return {"_flat_weights": list(module._flat_weights)} if isinstance(module, nn.RNNBase) else {}
