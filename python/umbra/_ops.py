"""`umbra.ops`: namespaces, operators and their overloads."""
import enum
import sys
import types

from umbra import _C
from umbra._C import OpOverload, Tensor
from umbra._modules import torch_names

__all__ = ["OpOverload", "OpOverloadPacket", "Tag", "ops"]

READ_AS_OPERATOR, READ_AS_METHOD = 0, 2

# The numbers are torch's: they are written to files.
_TAG_NAMES = ["core", "cudagraph_unsafe", "data_dependent_output", "dynamic_output_shape", "flexible_layout", "generated",
              "inplace", "inplace_view", "maybe_aliasing_or_mutating", "needs_contiguous_strides", "needs_exact_strides", "needs_fixed_stride_order",
              "nondeterministic_bitwise", "nondeterministic_seeded", "out", "out_variant", "pointwise", "pt2_compliant_tag",
              "reduction", "view_copy"]
Tag = enum.Enum("Tag", {name: number for number, name in enumerate(_TAG_NAMES)})
Tag.__doc__ = "What is known of an operator: torch.Tag.pointwise, torch.Tag.nondeterministic_seeded and the like."


class OpOverloadPacket:
    """All overloads of one operator: `ops.aten.add`. Calling it chooses one by the arguments."""

    def __init__(self, qualified_name):
        space, name = qualified_name.split("::")
        self._qualified_op_name = qualified_name
        self.__name__ = name
        self.__qualname__ = f"torch.ops.{space}.{name}"
        self.__module__ = f"torch._ops.{space}"
        self._call = _C._find_function(qualified_name, READ_AS_OPERATOR)

    def __call__(self, /, *args, **kwargs):
        if _C._has_torch_function(*args, *kwargs.values()):
            result = _C._offer_torch_function(self, args, kwargs)
            if result is not NotImplemented:
                return result
        return self._call(*args, **kwargs)

    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(f"'{self}' can't have an overload name beginning with '__' and the underlying op {self!r} has no "
                                 f"attribute {key} either.")
        name = self._qualified_op_name if key == "default" else f"{self._qualified_op_name}.{key}"
        overload = _C._find_overload(name) or _define_questions() or _C._find_overload(name)
        if overload is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{key}'")
        setattr(self, key, overload)
        return overload

    def overloads(self):
        return _C._overload_names(self._qualified_op_name)

    @property
    def _overload_names(self):
        return self.overloads()

    @property
    def op(self):
        return self._call

    def __iter__(self):
        return iter(self.overloads())

    def __str__(self):
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self}')>"

    def __hash__(self):
        return hash(self._qualified_op_name)

    def __eq__(self, other):
        return self is other

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _get_packet, (self._qualified_op_name,)


def _define_questions():
    """Operators that only handlers of tensor classes know are made when somebody asks for one that is not there."""
    from umbra import _metadata_policy  # noqa: F401  (which is built on what is here)


class UnbuiltOperator:
    """An operator of torch's that is not built here: it has a name, for tables of operators, and its overloads; calling it is refused."""

    def __init__(self, name):
        self.__name__ = self._name = name

    def __getattr__(self, overload):
        if overload.startswith("_"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{overload}'")
        part = UnbuiltOperator(f"{self._name}.{overload}")
        setattr(self, overload, part)
        return part

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"torch.ops.{self._name} is not in Umbra yet")

    def __str__(self):
        return self._name

    def __repr__(self):
        return f"<UnbuiltOperator(op='{self._name}')>"


class _OpNamespace(types.ModuleType):
    """`ops.aten`: operators by name."""

    def __init__(self, name):
        super().__init__("torch.ops." + name)
        self.name = name
        self.__file__ = "torch.ops"

    def __getattr__(self, op_name):
        if op_name.startswith("__") and not _C._overload_names(f"{self.name}::{op_name}"):
            raise AttributeError(f"Invalid attribute '{op_name}' for '_OpNamespace' '{self.name}'")
        qualified = f"{self.name}::{op_name}"
        if not _C._overload_names(qualified) and not (_define_questions() or _C._overload_names(qualified)):
            if self.name == "aten" and op_name in torch_names()["torch.ops.aten"]:
                unbuilt = UnbuiltOperator(f"aten.{op_name}")
                setattr(self, op_name, unbuilt)
                return unbuilt
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'")
        packet = OpOverloadPacket(qualified)
        setattr(self, op_name, packet)
        return packet

    def __dir__(self):
        prefix = self.name + "::"
        names = {n[len(prefix):].split(".")[0] for n in _C._operator_names() if n.startswith(prefix)}
        return sorted(names | set(self.__dict__))

    def __iter__(self):
        return iter(self.__dir__())


class _Ops(types.ModuleType):
    __file__ = "_ops.py"

    def __init__(self):
        super().__init__("torch.ops")
        self.loaded_libraries = set()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "higher_order":
            from umbra._higher_order_ops import namespace as space
        else:
            space = _OpNamespace(name)
        setattr(self, name, space)
        return space

    def load_library(self, path):
        import ctypes
        ctypes.CDLL(path)
        self.loaded_libraries.add(path)


ops = sys.modules["umbra.ops"] = _Ops()  # a module without a file


def _get_packet(qualified_name):
    space, name = qualified_name.split("::")
    return getattr(getattr(ops, space), name)


def forget_packet(qualified_name):
    """The operator's overloads have changed: whoever asks next finds those that are there now."""
    space, name = qualified_name.split("::")
    getattr(ops, space).__dict__.pop(name, None)


# ---- how operators and functions are pickled: by name ----

def _get_overload(name):
    return _C._get_overload(name)


def _find_function(name, reading):
    """What a pickle names: the method, or the function that everybody has."""
    if reading == READ_AS_METHOD:
        found = getattr(Tensor, name.partition("::")[2], None)
        if type(found) is type(Tensor.add):
            return found
    return _C._find_function(name, reading)


# ---- what OpOverload has besides the call itself ----

def _overload_packet(self):
    return _get_packet(self._qualified_op_name)


def _tags(self):
    return [Tag[name] for name in self._tag_names]


OpOverload.overloadpacket = property(_overload_packet)
OpOverload._overloadpacket = property(_overload_packet)
OpOverload._opname = property(lambda self: self._qualified_op_name.split("::")[1])
OpOverload.tags = property(_tags)
OpOverload._name = property(lambda self: self.name())


def __getattr__(name):
    if name in ("HigherOrderOperator", "OperatorBase"):  # which are built on what is here
        from umbra._higher_order_ops import dispatch
        return getattr(dispatch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
