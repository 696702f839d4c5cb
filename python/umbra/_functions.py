"""Functions of the package that are no operators: data in, seeds, threads, dtypes, checks of symbolic sizes."""
import builtins
import math
from collections.abc import Sequence

import umbra
from umbra import _C
from umbra._C import SymBool, SymFloat, SymInt, Tensor, can_cast, get_num_threads, promote_types, set_flush_denormal, set_num_threads
from umbra._options import not_built
from umbra.overrides import handle_torch_function, heard, heard_by_modes, overridable

__all__ = [
    "as_tensor", "asarray", "broadcast_shapes", "broadcast_tensors", "can_cast", "cond", "einsum", "from_file", "get_default_device", "get_num_interop_threads",
    "get_num_threads", "get_rng_state", "guard_or_false", "guard_or_true", "initial_seed", "is_complex", "is_floating_point",
    "is_tensor", "manual_seed", "nonzero", "numel", "promote_types", "result_type", "seed",
    "set_default_device", "set_num_interop_threads", "set_num_threads", "set_rng_state", "split", "sym_fresh_size", "sym_int", "sym_sum",
    "typename", "is_conj", "is_neg", "is_same_size", "is_signed", "is_inference", "_check", "_check_is_size", "_constrain_as_size", "_check_value",
    "_check_index", "_check_type", "_check_not_implemented", "_check_with", "_check_tensor_all", "_check_tensor_all_with", "_assert",
    "while_loop", "use_deterministic_algorithms", "are_deterministic_algorithms_enabled", "is_deterministic_algorithms_warn_only_enabled", "set_flush_denormal",
]


# ---- data ----

def is_tensor(obj):
    """Whether it is a tensor."""
    return isinstance(obj, Tensor)


def _has_buffer(obj):
    try:
        memoryview(obj)
    except TypeError:
        return False
    return type(obj).__module__ != "numpy"


def _is_numpy_array(obj):
    """Whether it is an array of NumPy's, or of a class derived from it (np.matrix)."""
    return any(cls.__module__ == "numpy" and cls.__name__ == "ndarray" for cls in type(obj).__mro__)


@heard_by_modes
def as_tensor(data, dtype=None, device=None):
    """The tensor itself, the memory of a NumPy array, or a new tensor; nothing is copied that need not be."""
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype)
    if _is_numpy_array(data):
        return umbra.from_numpy(data).to(device=device, dtype=dtype)
    return umbra.tensor(data, dtype=dtype, device=device)


def _kernel_name(dtype):
    """A dtype as messages name it: Float, Long."""
    return umbra.empty(0, dtype=dtype).type().removeprefix("torch.").removesuffix("Tensor")


@heard_by_modes
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """A tensor of an array, a storage, a buffer, a number or a list; memory is shared where it can be and `copy` does not say otherwise."""
    if isinstance(obj, Tensor):
        result = obj if copy is not True else obj.clone()
    elif isinstance(obj, (_C.UntypedStorage, umbra.storage.TypedStorage)):
        result = umbra.storage._flat(obj.untyped(), getattr(obj, "dtype", None) or dtype or umbra.get_default_dtype())
    elif type(obj).__name__ == "PyCapsule" or (hasattr(obj, "__dlpack__") and not _is_numpy_array(obj) and type(obj).__module__ != "numpy"):
        result = umbra.from_dlpack(obj)
    elif _is_numpy_array(obj):
        result = umbra.from_numpy(obj)
    elif _has_buffer(obj):
        result = umbra.frombuffer(obj, dtype=dtype) if dtype else _C._tensor_from_buffer(obj)
    else:
        if copy is False and type(obj).__module__ == "numpy":
            raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return umbra.tensor(obj, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    converted = result.to(device=device, dtype=dtype)
    if copy is False and converted.device != result.device:
        raise ValueError(f"can't alias tensor from device '{result.device}' to '{converted.device}'.")
    if copy is False and converted.dtype != result.dtype:
        raise ValueError(f"can't alias tensor with dtype '{_kernel_name(result.dtype)}' into dtype '{_kernel_name(dtype)}'.")
    if copy is True and converted is result and not isinstance(obj, Tensor):
        converted = result.clone()
    if requires_grad is False and converted.requires_grad:
        return converted.detach()
    return converted.requires_grad_() if requires_grad and not converted.requires_grad else converted


def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False):
    """A tensor over the first `size` elements of a file: written through to it where `shared`, which also makes a file that is not there."""
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    not_built("torch.from_file", layout=(layout or umbra.strided, umbra.strided), device=(umbra.device(device or "cpu").type, "cpu"))
    dtype = dtype or umbra.get_default_dtype()
    storage = umbra.UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    return umbra.empty(0, dtype=dtype).set_(storage, 0, (size,), (1,))


@overridable
def split(tensor, split_size_or_sections, dim=0):
    """Parts along a dimension: of one size, the last one of what is left, or of the sizes in a list."""
    return tensor.split(split_size_or_sections, dim)


def _equation_of_lists(arguments):
    """The text that stands for tensors and lists of subscripts."""
    if len(arguments) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")

    def letters(subscripts):
        out = ""
        for subscript in subscripts:
            if subscript is not Ellipsis and not 0 <= subscript < 52:
                raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
            out += "..." if subscript is Ellipsis else chr(ord("A") + subscript) if subscript < 26 else chr(ord("a") + subscript - 26)
        return out
    equation = ",".join(letters(subscripts) for subscripts in arguments[1::2])
    if len(arguments) % 2:
        equation += "->" + letters(arguments[-1])
    return equation, arguments[:-1:2] if len(arguments) % 2 else arguments[::2]


@heard
def einsum(*args):
    """`einsum("bij,bjk->bik", a, b)`; the tensors may also come as one list, or with lists of numbers: `einsum(a, [0, 1], b, [1, 2], [0, 2])`."""
    if len(args) < 2 or len(args) == 2 and not isinstance(args[0], Tensor) and isinstance(args[1], (list, tuple)) and not args[1]:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
    equation, *operands = args
    if umbra.overrides.is_tensor_like(equation):
        equation, operands = _equation_of_lists((equation, *operands))
    elif not isinstance(equation, str):
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    for i, operand in enumerate(operands):
        if not umbra.overrides.is_tensor_like(operand):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type(operand).__name__}")
    if _C._has_torch_function(*operands):
        return handle_torch_function(einsum, tuple(operands), equation, *operands)
    return umbra.ops.aten.einsum.default(equation, list(operands))


_nonzero = Tensor.nonzero
_find_result_type = _C._find_function("aten::result_type", 1)
_find_nonzero = _C._find_function("aten::nonzero", 1)
_broadcast_tensors = _C._find_function("aten::broadcast_tensors", 1)


@overridable
def nonzero(input, *, out=None, as_tuple=False):
    """The places of elements that are not zero: rows of indices, or with as_tuple one tensor of indices for each dimension."""
    if not isinstance(as_tuple, bool) or not umbra.is_tensor(input):
        raise TypeError("nonzero() received an invalid combination of arguments: expected (Tensor input, *, bool as_tuple = False, Tensor out = None)")
    if out is not None:
        if as_tuple:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return _find_nonzero(input, out=out)
    if not as_tuple:
        return _find_nonzero(input)
    return _nonzero(input if input.dim() else input.unsqueeze(0)).unbind(1)


Tensor.nonzero = nonzero


@overridable
def numel(input):
    """How many elements it has."""
    return _asked(input, "numel").numel()


def _asked(input, name):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input


@overridable
def is_floating_point(input):
    """Whether its elements are floats."""
    return _asked(input, "is_floating_point").is_floating_point()


@overridable
def is_complex(input):
    """Whether its elements are complex."""
    return _asked(input, "is_complex").is_complex()


@overridable
def is_conj(input):
    """Whether it stands for the conjugates of what lies in its memory."""
    return _asked(input, "is_conj").is_conj()


@overridable
def is_neg(input):
    """Whether the tensor's negation is yet to be carried out."""
    return _asked(input, "is_neg").is_neg()


@overridable
def is_signed(input):
    """Whether the type of the elements has negative numbers."""
    return input.is_signed()


@overridable
def is_inference(input):
    """Whether it was made in inference mode."""
    return input.is_inference()


@overridable
def is_same_size(input, other):
    """Whether two tensors have the same sizes."""
    return _asked(input, "is_same_size").is_same_size(other)


def typename(obj):
    """The name of a tensor's type, `torch.FloatTensor`; of a function or class its own, with its module; of any other object that of its class."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") or hasattr(obj, "__name__") else type(obj)
    module = getattr(named, "__module__", None) or ""
    name = getattr(named, "__qualname__", None) or named.__name__
    return name if module in ("", "builtins") else f"{module}.{name}"


@overridable
def broadcast_tensors(*tensors):
    """The tensors as views of the sizes that they have together."""
    return tuple(_broadcast_tensors(list(tensors)))


def _are_equal(size, other):
    """Whether they are, by a guard if need be; not where only the run can tell."""
    return _C._sym_guard_or(size == other, False)


def broadcast_shapes(*shapes):
    """The sizes that tensors of these sizes have together."""
    shapes = [(shape,) if isinstance(shape, (builtins.int, SymInt)) else shape for shape in shapes]
    for shape in shapes:
        if not isinstance(shape, Sequence):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
    result = [1] * max((len(shape) for shape in shapes), default=0)
    for place, shape in enumerate(shapes):
        for i in range(-1, -1 - len(shape), -1):
            if _are_equal(shape[i], 1) or _are_equal(result[i], shape[i]):
                continue
            if not _are_equal(result[i], 1):
                if _C._sym_expect_true(result[i] == shape[i], ""):  # what only the run tells is checked then
                    continue
                raise RuntimeError(f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching argument at index {place} had "
                                   f"{shape}; but expected shape should be broadcastable to {result}")
            if _C._sym_guard_or(shape[i] < 0, False):
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            result[i] = shape[i]
    return umbra.Size(result)


# ---- dtypes and devices ----

@overridable
def result_type(tensor1, tensor2):
    """The dtype of tensor1 + tensor2, where numbers and 0-d tensors have less weight."""
    return _find_result_type(tensor1, tensor2)


def get_default_device():
    """The device that factories make tensors on."""
    from umbra.utils import _device
    return _device.current() or umbra.device("cpu")


def set_default_device(device):
    """From here on factories make tensors on this device."""
    from umbra.utils import _device
    _device.set_default(device)


# ---- threads, determinism ----

def get_num_interop_threads():
    """How many threads run operators side by side."""
    return 1


def set_num_interop_threads(count):
    """How many threads may run operators side by side; to be said once, before the first one does."""
    if count < 1:
        raise RuntimeError("expected positive number of threads")


_deterministic = [False, False]


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Umbra's kernels are deterministic whatever this says; it is remembered for those who ask, and what PyTorch refuses then is refused."""
    for place, (name, given) in enumerate((("mode", mode), ("warn_only", warn_only)), 1):
        if not isinstance(given, builtins.bool):
            where = f" (position {place})" if place == 1 else ""
            raise TypeError(f"_set_deterministic_algorithms(): argument '{name}'{where} must be bool, not {type(given).__name__}")
    _deterministic[:] = mode, warn_only
    _C._set_deterministic(mode, warn_only)


def are_deterministic_algorithms_enabled():
    """Whether operators that may give other results in each run are refused."""
    return _deterministic[0]


def is_deterministic_algorithms_warn_only_enabled():
    """Whether such operators warn instead."""
    return _deterministic[1]


# ---- random numbers ----

def manual_seed(seed):
    """Starts the default generator from `seed`, and gives it."""
    _C._manual_seed(builtins.int(seed))
    return umbra.default_generator


def seed():
    """Starts the default generator from a number that nobody knows, and gives the number."""
    return umbra.default_generator.seed()


def initial_seed():
    """What the default generator was started from."""
    return umbra.default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator, as bytes."""
    return umbra.default_generator.get_state()


def set_rng_state(new_state):
    """Puts the default generator in a state that get_rng_state gave."""
    umbra.default_generator.set_state(new_state)


# ---- symbolic numbers ----

def _sym_node(value):
    from umbra.fx.experimental.sym_node import SymNode
    return SymNode(value)


def _as_method(function):
    return lambda self, *args: function(self, *args)


for _kind in (SymInt, SymFloat, SymBool):
    _kind.__copy__, _kind.__deepcopy__ = (lambda value: value), (lambda value, memo: value)  # they do not change
    _kind.node = property(_sym_node)
    _kind.hint = property(lambda value: value.node.hint)
for _kind in (SymInt, SymFloat):
    _kind.has_hint = lambda value: value.node.has_hint()
    _kind.as_integer_ratio = lambda value: (value, 1) if isinstance(value, SymInt) else float(value).as_integer_ratio()
    for _name in ("sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "log2"):
        setattr(_kind, f"__sym_{_name}__", _as_method(getattr(_C, f"_sym_{_name}")))
    for _name in ("sym_float", "sym_max", "sym_min"):
        setattr(_kind, f"__{_name}__", _as_method(getattr(_C, _name)))
SymBool.__sym_not__, SymBool.__sym_ite__ = _as_method(_C.sym_not), _as_method(_C.sym_ite)
SymInt.bit_length = lambda value: int(value).bit_length()
SymFloat.hex = lambda value: float(value).hex()


def sym_int(a):
    """The integer part of a number that may be symbolic."""
    if isinstance(a, SymInt):
        return a
    if isinstance(a, SymFloat):
        return math.trunc(a)
    return builtins.int(a)


def sym_fresh_size(expr):
    """An integer by way of a tensor: what is known of it is forgotten where only the run tells it."""
    return umbra.tensor(expr).item()


def sym_sum(args):
    """The sum of numbers that may be symbolic, made at once: of many symbols it is quicker than adding them one by one."""
    values = list(args)
    if any(isinstance(value, SymInt) for value in values) and all(isinstance(value, (int, SymInt)) for value in values):
        return _C._sym_sum(values)
    return builtins.sum(values)


def guard_or_false(condition):
    """The truth, by a guard if need be; False where only the run can tell."""
    from umbra.fx.experimental import symbolic_shapes
    return symbolic_shapes.guard_or_false(condition)


def guard_or_true(condition):
    """The truth, by a guard if need be; True where only the run can tell."""
    from umbra.fx.experimental import symbolic_shapes
    return symbolic_shapes.guard_or_true(condition)


def _message_of(message, default):
    """What an error says: a text, or a function that makes it only where it is needed."""
    if message is None:
        return default
    return str(message() if callable(message) else message)


def _check_with(error_type, condition, message):
    if isinstance(condition, _C.Tensor):
        raise TypeError("cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() "
                        "to assert that all elements are true.")
    if not isinstance(condition, (builtins.bool, SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(condition)}")
    default = ("Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement "
               "request to PyTorch.)")
    if isinstance(condition, SymBool):
        holds = _C._sym_expect_true(condition, _message_of(message, ""))
    else:
        holds = condition
    if not holds:
        raise error_type(_message_of(message, default))


def _check(cond, message=None):
    _check_with(RuntimeError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    _check_with(RuntimeError, i >= 0, message)
    if isinstance(i, SymInt):
        _C._sym_mark_size_like(i)
    if max is not None:
        _check_with(RuntimeError, i <= max, message)


def _check_index(cond, message=None):
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type, cond, message=None):
    """Raises where an element of a tensor of bools does not hold."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != _C.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, cond._is_all_true().item(), message)


def _check_tensor_all(cond, message=None):
    _check_tensor_all_with(RuntimeError, cond, message)


@overridable
def _assert(condition, message):
    """Raises an AssertionError where the condition does not hold; captured, a tensor's is checked when the program runs."""
    if isinstance(condition, _C.Tensor) and umbra.compiler.is_exporting():
        return _C._find_overload("aten::_assert_async.msg")(condition, message)
    assert condition, message


def _constrain_as_size(symbol, min=None, max=None):
    """Says that a number that only the run tells is a size, and between which ends it lies; the program checks it."""
    _C._find_overload("aten::sym_constrain_range_for_size")(symbol, min=min, max=max)


def cond(pred, true_fn, false_fn, operands=()):
    """`true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`. Captured, both become graphs."""
    from umbra._higher_order_ops.cond import cond as run
    return run(pred, true_fn, false_fn, operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """`carried = body_fn(*carried)` while `cond_fn(*carried)`; gives what is carried in the end. Captured, both become graphs."""
    from umbra._higher_order_ops.while_loop import while_loop as run
    return run(cond_fn, body_fn, carried_inputs)
