"""Every operator of the registry on fake tensors, with sizes that are numbers and sizes that are symbols: it works, or says by name why not."""
import pytest

import umbra
from umbra import _C
from umbra._subclasses import fake_tensor
from umbra._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from umbra.fx.experimental.symbolic_shapes import ShapeEnv

SKIP_SPACES = ("higher_order", "auto_functionalized")  # they take functions, or are made of operators that a library has defined


def operators():
    for name in _C._operator_names():
        space, _, rest = name.partition("::")
        if space not in SKIP_SPACES:
            packet, _, overload = rest.partition(".")
            yield getattr(getattr(getattr(umbra.ops, space), packet), overload or "default")


def argument(type, tensors):
    """Some value of a schema's type; whether it makes sense is the operator's to say."""
    text = str(type)
    if text.startswith("Optional["):
        return None
    values = {"Tensor": tensors[0], "int": 1, "float": 0.5, "bool": True, "str": "mean", "number": 1, "Scalar": 1, "Device": umbra.device("cpu"),
              "ScalarType": umbra.float32, "Layout": umbra.strided, "MemoryFormat": umbra.contiguous_format, "complex": 1j, "SymInt": 1}
    if text.startswith("List["):
        inner = text[5:-1].removeprefix("Optional[").removesuffix("]")
        return list(tensors[:2]) if inner == "Tensor" else [values.get(inner, 1)] * 2
    return values.get(text)


def call(op, tensors):
    args, kwargs = [], {}
    for a in op._schema.arguments:
        if a.has_default_value():
            continue
        value = argument(a.type, tensors)
        if a.kwarg_only:
            kwargs[a.name] = value
        else:
            args.append(value)
    return op(*args, **kwargs)


def tensors(mode, integral):
    real = [umbra.ones(3, 4), umbra.ones(3, 4)]
    if integral:
        real = [t.long() for t in real]
    return [mode.from_tensor(t) for t in real]


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("integral", [False, True], ids=["floating", "integral"])
def test_every_operator_works_or_says_why_not(symbolic, integral):
    worked, silent, unnamed, real = 0, [], [], []
    for op in operators():
        mode = FakeTensorMode(shape_env=ShapeEnv() if symbolic else None)
        inputs = tensors(mode, integral)
        try:
            with mode:
                result = call(op, inputs)
        except Exception as error:  # noqa: BLE001
            if not str(error):
                silent.append(f"{op}: {type(error).__name__}")
            name = op._schema.name.partition("::")[2]
            if isinstance(error, fake_tensor.UnsupportedOperatorException) and name not in str(error):
                unnamed.append(f"{op}: {error}")
            continue
        worked += 1
        results = result if isinstance(result, (tuple, list)) else [result]
        real += [str(op) for t in results if isinstance(t, umbra.Tensor) and not isinstance(t, FakeTensor)]
    assert not silent and not unnamed, "an error says what is wrong, and which operator has no way to run without data"
    assert not real, "what a fake mode makes is fake"
    assert worked > 900


def test_constructors_take_their_device_by_name_and_others_are_known():
    for op in operators():
        schema = op._schema
        if not schema.name.startswith("aten::"):
            continue
        devices = [a for a in schema.arguments if str(a.type) in ("Device", "Optional[Device]")]
        if fake_tensor._is_tensor_constructor(op) and schema.name != "aten::_list_to_tensor":
            assert any(a.kwarg_only for a in devices), schema.name
        if schema.name.endswith("_like"):
            assert op in fake_tensor._like_tensor_constructors, schema.name
        if any(not a.kwarg_only for a in devices) and "Tensor" in str(schema):
            assert op in fake_tensor._device_not_kwarg_ops, schema.name
