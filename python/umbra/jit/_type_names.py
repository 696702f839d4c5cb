"""TorchScript's types by the names of torch's classes: `torch.ListType(torch.IntType.get())`, `isinstance(type, torch.TensorType)`."""
from umbra import _C


class _Kind(type):
    """A class of types: a type is of it that says so."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, _C._jit_Type) and instance.kind() == cls.__name__


_TEXTS = {"TensorType": "a tensor", "IntType": "an integer", "FloatType": "a float", "BoolType": "a truth value", "ComplexType": "a complex number",
          "NumberType": "a number of any kind", "StringType": "a text", "NoneType": "None", "AnyType": "anything", "DeviceObjType": "a device",
          "OptionalType": "a value of another type or None", "ListType": "a list of one type", "DictType": "a dictionary of one type of keys and one of values",
          "TupleType": "a tuple of given types", "UnionType": "a value of one of several types", "FutureType": "a value that is still computed",
          "ClassType": "an object of a scripted class", "EnumType": "a member of an enumeration", "InterfaceType": "an object with given methods"}
_PLAIN = {"TensorType": "Tensor", "IntType": "int", "FloatType": "float", "BoolType": "bool", "ComplexType": "complex", "NumberType": "number",
          "StringType": "str", "NoneType": "NoneType", "AnyType": "Any", "DeviceObjType": "Device"}
_OF_OTHERS = {"OptionalType": _C._jit_optional_type, "ListType": _C._jit_list_type, "DictType": _C._jit_dict_type, "TupleType": _C._jit_tuple_type,
              "UnionType": _C._jit_union_type, "FutureType": _C._jit_future_type}


def _kind(name, **members):
    return _Kind(name, (), {**members, "__module__": "torch", "__doc__": f"The type of {_TEXTS[name]} in TorchScript."})


def _plain(name, annotation):
    return _kind(name, get=staticmethod(lambda: _C._jit_simple_type(annotation)))


def _of_others(name, make):
    return _kind(name, __new__=lambda cls, *parts: make(*parts))


NAMES = {**{name: _plain(name, annotation) for name, annotation in _PLAIN.items()}, **{name: _of_others(name, make) for name, make in _OF_OTHERS.items()},
         **{name: _kind(name) for name in ("ClassType", "EnumType", "InterfaceType")}}
globals().update(NAMES)
