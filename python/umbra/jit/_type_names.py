"""TorchScript's types by the names of torch's classes: `torch.ListType(torch.IntType.get())`, `isinstance(type, torch.TensorType)`."""
from umbra import _C


class _Kind(type):
    """A class of types: a type is of it that says so."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, _C._jit_Type) and instance.kind() == cls.__name__


_PLAIN = {"TensorType": "Tensor", "IntType": "int", "FloatType": "float", "BoolType": "bool", "ComplexType": "complex", "NumberType": "number",
          "StringType": "str", "NoneType": "NoneType", "AnyType": "Any", "DeviceObjType": "Device"}
_OF_OTHERS = {"OptionalType": _C._jit_optional_type, "ListType": _C._jit_list_type, "DictType": _C._jit_dict_type, "TupleType": _C._jit_tuple_type,
              "UnionType": _C._jit_union_type, "FutureType": _C._jit_future_type}


def _plain(name, annotation):
    return _Kind(name, (), {"get": staticmethod(lambda: _C._jit_simple_type(annotation)), "__module__": "torch"})


def _of_others(name, make):
    return _Kind(name, (), {"__new__": lambda cls, *parts: make(*parts), "__module__": "torch"})


NAMES = {**{name: _plain(name, annotation) for name, annotation in _PLAIN.items()}, **{name: _of_others(name, make) for name, make in _OF_OTHERS.items()},
         **{name: _Kind(name, (), {"__module__": "torch"}) for name in ("ClassType", "EnumType", "InterfaceType")}}
globals().update(NAMES)
