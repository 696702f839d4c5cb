"""Which functions tell handlers (`__torch_function__`) of their calls, and which do not."""
import functools
import inspect
import keyword
import types

import umbra
from umbra import _C
from umbra._modules import torch_names
from umbra.overrides import _heard, _places

_function_kind, _method_kind = type(umbra.add), type(_C.Tensor.add)
_slot_kinds = types.WrapperDescriptorType, types.MethodDescriptorType

# What handlers hear of and PyTorch counts among the functions that they do not hear of.
_counted_as_ignored = {
    "torch": set("as_strided cudnn_is_acceptable fill mkldnn_convolution normal rand_like randint_like randn_like result_type vander".split()),
    "torch.nn.functional": set("hardsigmoid hardswish sigmoid tanh upsample upsample_bilinear upsample_nearest".split()),
    "torch.Tensor": set("new new_empty new_empty_strided new_full new_ones new_tensor new_zeros stride to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr "
                        "unflatten __delattr__ __delitem__ __dict__ __dir__ __getattribute__ __getstate__ __hash__ __init__ __iter__ __setattr__ "
                        "__sizeof__ __str__ __del__".split())}
_without_arguments = set("_is_view data_ptr dim element_size get_device is_complex is_conj is_floating_point is_inference is_neg is_pinned item ndimension nelement "
                         "numel storage_offset tolist".split())
_private_methods = set("_base _cdata _coalesced_ _dimI _dimV _grad _indices _is_view _nnz _sparse_mask_projection _values _version _nested_tensor_size "
                       "_nested_tensor_storage_offsets _nested_tensor_strides _autocast_to_full_precision _autocast_to_reduced_precision".split())


def _schemas(function):
    """The parameters of an operator's overloads as its documentation writes them: "Tensor self, Tensor other, *, Scalar alpha=1"."""
    return [line[line.index("(") + 1:line.rindex(") ->")] for line in (function.__doc__ or "").split("\n") if ") ->" in line]


def _takes_tensors(function):
    """Whether an operator's function reads tensors: what has them as outputs alone makes tensors."""
    return "Tensor" in next(iter(_schemas(function)), "")


def _is_heard(path, name, value):
    """Whether handlers hear of the function or, of a descriptor, of its reads."""
    if name in _counted_as_ignored.get(path, ()):
        return False
    if isinstance(value, _function_kind):
        return _takes_tensors(value)
    if isinstance(value, types.FunctionType):
        return value in _heard
    return path == "torch.Tensor" and isinstance(value, (_method_kind, types.GetSetDescriptorType, *_slot_kinds))


def _is_public(path, name):
    if path == "torch.Tensor":
        return name.startswith("__") or name in _private_methods or name in torch_names()[path]
    if path == "torch.foreach":
        return name in umbra.foreach.__all__
    return name in torch_names()[path] and name[0].islower() and not name.endswith("_")


@functools.cache
def _public_values(path):
    """The names and values of a place that people may call or read."""
    place = dict(_places())[path]
    found = []
    for name in sorted({*dir(place), *torch_names().get(path, ())}):
        if not _is_public(path, name) or not hasattr(place, name):
            continue
        value = inspect.getattr_static(place, name, None) or getattr(place, name)
        own = not isinstance(value, types.ModuleType) and getattr(value, "__module__", "") != "umbra.overrides"
        inherited = path == "torch.Tensor" and getattr(object, name, None) is getattr(place, name)
        if own and not inherited and (callable(value) or hasattr(value, "__get__")):
            found.append((name, value))
    return found


def _function_of(value):
    """What a handler is given for a call of it, or for a read."""
    return value if callable(value) else value.__get__


def overridable_functions():
    found = {}
    for path, place in _places():
        functions = found.setdefault(place, [])
        for name, value in _public_values(path):
            if _is_heard(path, name, value):
                (functions if callable(value) else found.setdefault(value, [])).append(_function_of(value))
    return found


def ignored_functions():
    return {_function_of(value) for path, _ in _places() for name, value in _public_values(path)
            if not _is_heard(path, name, value) and not isinstance(value, (classmethod, staticmethod))}


def _heading(function):
    """The parameters as Python writes them, or None where nothing tells them."""
    if getattr(function, "__name__", "") == "__get__":
        return "self"
    if isinstance(function, (_function_kind, _method_kind)):
        return _heading_of_schemas(_schemas(function), "self" if isinstance(function, _method_kind) else "input")
    if isinstance(function, types.MethodDescriptorType):
        return "self" if function.__name__ in _without_arguments else "self, *args, **kwargs"
    parameters = inspect.signature(function).parameters.values()
    return str(inspect.Signature([p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else None) for p in parameters]))[1:-1]


def _heading_of_schemas(schemas, first):
    """What fits every overload: a parameter is optional where it is in one, or where one does without it."""
    readings = [_positional(schema) for schema in schemas if "(a!) out" not in schema]
    longest = max(readings, key=len)
    needed = min(sum(not optional for _, optional in reading) for reading in readings)
    names = [first if name == "self" else f"{name}_" if keyword.iskeyword(name) else name for name, _ in longest]
    if any([name for name, _ in longest[:len(reading)]] != [name for name, _ in reading] for reading in readings):
        return ", ".join([first, "*args", "**kwargs"])
    return ", ".join([*names[:needed], *(f"{name}=None" for name in names[needed:]), "**kwargs"])


def _positional(schema):
    """The names of the arguments that have places, and whether each has a default."""
    found = []
    for part in filter(None, _parts(schema)):
        if part == "*":
            break
        declared, _, default = part.partition("=")
        found.append((declared.rpartition(" ")[2], bool(default)))
    return found


def _parts(schema):
    """The arguments of a schema, apart: defaults may hold commas."""
    written = ""
    for part in schema.split(","):
        written += "," * bool(written) + part
        if all(written.count(opening) == written.count(closing) for opening, closing in ("()", "[]")):
            yield written.strip()
            written = ""


def testing_overrides():
    found = {function: _minus_one(_heading(function)) for functions in overridable_functions().values() for function in functions}
    return found | {function: _minus_one(_heading(function)) for function in vars(umbra.nn.init).values() if isinstance(function, types.FunctionType) and function in _heard}


@functools.cache
def _minus_one(heading):
    return eval(f"lambda {heading}: -1")
