"""Operators from Python: namespaces, overloads, functions, methods, arguments and their errors."""
import copy
import pickle
import threading

import numpy as np
import pytest

import umbra
from call_log import CallLog

aten = umbra.ops.aten


def message(call):
    with pytest.raises(Exception) as caught:
        call()
    return type(caught.value), str(caught.value)


# ---- names ----

def test_overload_object():
    op = aten.add.Tensor
    assert op is aten.add.Tensor and str(op) == "aten.add.Tensor" and repr(op) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert op.name() == "aten::add.Tensor" and op._overloadname == "Tensor" and op.namespace == "aten"
    assert op.overloadpacket is aten.add and str(aten.add) == "aten.add" and "Tensor" in aten.add.overloads()
    assert aten.relu.default.name() == "aten::relu" and aten.relu.default._overloadname == "default"
    assert copy.deepcopy(op) is op and pickle.loads(pickle.dumps(op)) is op and {op: 1}[aten.add.Tensor] == 1


def test_schema_object():
    schema = aten.add.Tensor._schema
    assert str(schema) == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert schema.name == "aten::add" and schema.overload_name == "Tensor"
    alpha = schema.arguments[2]
    assert (alpha.name, alpha.kwarg_only, alpha.default_value, alpha.has_default_value()) == ("alpha", True, 1, True)
    assert aten.add_.Tensor._schema.is_mutable and aten.add_.Tensor._schema.arguments[0].alias_info.is_write
    assert str(aten.sum.dim_IntList._schema.arguments[1].type) == "Optional[List[int]]"


def test_unknown_names():
    assert message(lambda: aten.foo) == (AttributeError, "'_OpNamespace' 'aten' object has no attribute 'foo'")
    assert message(lambda: aten.add.foo) == (AttributeError, "The underlying op of 'aten.add' has no overload name 'foo'")
    assert message(lambda: umbra.foo) == (AttributeError, "module 'umbra' has no attribute 'foo'")
    assert message(lambda: umbra.ones(1).foo) == (AttributeError, "'Tensor' object has no attribute 'foo'")


# ---- calling operators ----

def test_operator_arguments():
    x = umbra.ones(2, 3)
    assert aten.add.Tensor(x, 2).tolist() == [[3] * 3] * 2
    assert aten.add.Tensor(x, other=x, alpha=3).tolist() == [[4] * 3] * 2
    assert aten.sum.dim_IntList(x, 1).tolist() == [3, 3]
    assert aten.sum.dim_IntList(x, [0], dtype=umbra.float64).dtype == umbra.float64
    assert aten.view.default(x, umbra.Size([3, 2])).shape == (3, 2)
    assert aten.split.Tensor(x, 1).__class__ is list
    assert aten.cat.default([x, x]).shape == (4, 3)


def test_operator_errors():
    x = umbra.ones(2)
    schema = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert message(lambda: aten.add.Tensor(x, "s")) == (RuntimeError, (
        "aten::add() Expected a value of type 'Tensor' for argument 'other' but instead found type 'str'.\nPosition: 1\nValue: 's'\n"
        f"Declaration: {schema}\nCast error details: Unable to cast s to Tensor"))
    assert message(lambda: aten.add.Tensor(x)) == (
        RuntimeError, f"aten::add() is missing value for argument 'other'. Declaration: {schema}")
    assert message(lambda: aten.add.Tensor(x, x, x, x)) == (
        RuntimeError, f"aten::add() expected at most 3 argument(s) but received 4 argument(s). Declaration: {schema}")
    assert message(lambda: aten.add.Tensor(x, x, foo=1)) == (
        RuntimeError, f"Unknown keyword argument 'foo' for operator 'aten::add'. Schema: {schema}")
    assert message(lambda: aten.add.Tensor(x, x, self=x)) == (
        RuntimeError, f"Argument 'self' specified both as positional and keyword argument. Schema: {schema}")


def test_packet_chooses_an_overload():
    x = umbra.ones(2)
    assert aten.add(x, 1).tolist() == [2, 2]
    assert aten.sum(x, [0]).item() == 2
    kind, text = message(lambda: aten.add("s", 2))
    assert kind is RuntimeError and text.startswith("Overloaded torch operator invoked from Python failed to match any schema:\n")


# ---- functions and methods ----

def test_function_conveniences():
    x = umbra.ones(2, 3)
    assert umbra.zeros(2, 3).shape == umbra.zeros((2, 3)).shape == umbra.zeros(size=(2, 3)).shape == (2, 3)
    assert x.view(3, 2).shape == x.view((3, 2)).shape == x.view(-1).reshape(3, 2).shape == (3, 2)
    assert umbra.sum(x, axis=1, keepdims=True).shape == (2, 1)
    assert umbra.sum(input=x).item() == 6
    assert x.permute(1, 0).shape == (3, 2) and x.expand(4, 2, 3).shape == (4, 2, 3)
    out = umbra.empty(2, 3)
    assert umbra.add(x, x, out=out) is out and out.tolist() == [[2] * 3] * 2
    assert umbra.zeros(2, requires_grad=True).requires_grad
    assert umbra.ones(2, dtype=int).dtype == umbra.int64 and umbra.ones(2, dtype=float).dtype == umbra.float64
    assert x.sum(np.int64(0)).shape == (3,) and umbra.full((2,), np.float32(1.5)).tolist() == [1.5, 1.5]


def test_number_overloads():
    x = umbra.ones(2)
    with CallLog() as log:
        x + 1, x == 1, x == x, x ** 2, 2 ** x, 2 - x, umbra.where(x > 0, x, x), x.clamp(0, 1)
    assert log.seen == ["aten.add.Tensor", "aten.eq.Scalar", "aten.eq.Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar", "aten.rsub.Scalar",
                    "aten.gt.Scalar", "aten.where.self", "aten.clamp.default"]


def test_named_results():
    x = umbra.tensor([[1., 5.], [7., 2.]])
    result = x.max(1)
    assert result.values.tolist() == [5, 7] and result.indices.tolist() == [1, 0]
    values, indices = result
    assert values is result[0] and type(result).__name__ == "max"
    assert repr(result) == "torch.return_types.max(\nvalues=tensor([5., 7.]),\nindices=tensor([1, 0]))"


def test_function_errors():
    x = umbra.ones(2, 3)
    assert message(lambda: umbra.add(x, "s")) == (TypeError, "add(): argument 'other' (position 2) must be Tensor, not str")
    assert message(lambda: x.add("s")) == (TypeError, "add(): argument 'other' (position 1) must be Tensor, not str")
    assert message(lambda: umbra.add(x, x, x, x)) == (TypeError, "add() takes 2 positional arguments but 4 were given")
    assert message(lambda: umbra.add(x, x, foo=1)) == (TypeError, "add() got an unexpected keyword argument 'foo'")
    assert message(lambda: umbra.sin()) == (TypeError, 'sin() missing 1 required positional arguments: "input"')
    assert message(lambda: umbra.sin(1)) == (TypeError, "sin(): argument 'input' (position 1) must be Tensor, not int")
    assert message(lambda: umbra.cat(x)) == (TypeError, "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    assert message(lambda: umbra.cat([x, 1])) == (TypeError, "expected Tensor as element 1 in argument 0, but got int")
    assert message(lambda: umbra.zeros(2, dtype="float32")) == (TypeError, "zeros(): argument 'dtype' must be torch.dtype, not str")
    assert message(lambda: umbra.eq(x, "s")) == (TypeError, (
        "eq() received an invalid combination of arguments - got (Tensor, str), but expected one of:\n"
        " * (Tensor input, Tensor other, *, Tensor out = None)\n * (Tensor input, Number other, *, Tensor out = None)\n"))
    assert message(lambda: x + "s") == (TypeError, "unsupported operand type(s) for +: 'Tensor' and 'str'")
    assert message(lambda: x < "s") == (TypeError, "'<' not supported between instances of 'Tensor' and 'str'")


def test_errors_of_kernels_have_their_class():
    x = umbra.ones(2, 3)
    assert message(lambda: x.sum(5))[0] is IndexError
    assert message(lambda: x.view(5))[0] is RuntimeError


def test_an_output_that_is_an_input_is_not_resized():
    x = umbra.empty(0)
    kind, text = message(lambda: umbra.cat([x, umbra.ones(4, 6)], out=x))
    assert kind is RuntimeError and "refer to a single memory location" in text and x.shape == (0,)


def test_functions_pickle_by_name():
    assert pickle.loads(pickle.dumps(umbra.add))(umbra.ones(1), 1).item() == 2


# ---- threads ----

def test_threads_call_operators_side_by_side():
    x, results = umbra.ones(300, 300), []

    def work():
        y = x
        for _ in range(20):
            y = (y + 1) * 0.5
        results.append(y.sum().item())
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(set(results)) == 1


def test_grad_mode_belongs_to_its_thread():
    seen = []
    with umbra.no_grad():
        thread = threading.Thread(target=lambda: seen.append(umbra.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


# ---- tags ----

def test_tags_are_torchs_and_variants_have_their_own():
    def names(op):
        return sorted(tag.name for tag in op.tags)
    assert names(aten.add.Tensor) == ["core", "pointwise", "pt2_compliant_tag"]
    assert names(aten.add_.Tensor) == ["inplace", "pointwise", "pt2_compliant_tag"]
    assert names(aten.add.out) == ["out", "pointwise", "pt2_compliant_tag"]
    assert names(aten.relu.out) == ["generated", "out", "pt2_compliant_tag"]
    assert names(aten.item.default) == ["data_dependent_output", "pt2_compliant_tag"]
    assert names(aten.bernoulli.default) == ["nondeterministic_seeded", "pt2_compliant_tag"]
    assert names(aten.sum.dim_IntList) == ["core", "pt2_compliant_tag", "reduction"]


# ---- factors by their place, as old programs give them ----

EYE, VECTOR = umbra.eye(3), umbra.arange(3.0)


@pytest.mark.parametrize("old, new", [
    (lambda: VECTOR.add(2, VECTOR), lambda: VECTOR.add(VECTOR, alpha=2)),
    (lambda: umbra.sub(VECTOR, 2, VECTOR), lambda: umbra.sub(VECTOR, VECTOR, alpha=2)),
    (lambda: VECTOR.clone().add_(0.5, VECTOR), lambda: VECTOR.add(VECTOR, alpha=0.5)),
    (lambda: VECTOR.addcmul(2, VECTOR, VECTOR), lambda: VECTOR.addcmul(VECTOR, VECTOR, value=2)),
    (lambda: VECTOR.clone().addcdiv_(2, VECTOR, VECTOR + 1), lambda: VECTOR.addcdiv(VECTOR, VECTOR + 1, value=2)),
    (lambda: EYE.addmm(2, EYE, EYE), lambda: EYE.addmm(EYE, EYE, beta=2)),
    (lambda: EYE.clone().addmm_(2, 3, EYE, EYE), lambda: EYE.addmm(EYE, EYE, beta=2, alpha=3)),
    (lambda: umbra.addmm(2, EYE, 3, EYE, EYE), lambda: EYE.addmm(EYE, EYE, beta=2, alpha=3)),
    (lambda: umbra.addmv(2, VECTOR, EYE, VECTOR), lambda: VECTOR.addmv(EYE, VECTOR, beta=2)),
    (lambda: umbra.addr(2, EYE, 3, VECTOR, VECTOR), lambda: EYE.addr(VECTOR, VECTOR, beta=2, alpha=3)),
    (lambda: umbra.baddbmm(2, EYE[None], EYE[None], EYE[None]), lambda: umbra.baddbmm(EYE[None], EYE[None], EYE[None], beta=2)),
    (lambda: umbra.add(VECTOR, 2, VECTOR, out=umbra.empty(3)), lambda: VECTOR.add(VECTOR, alpha=2)),
])
def test_a_factor_may_stand_before_what_it_multiplies(old, new):
    assert umbra.equal(old(), new())


def test_other_functions_take_no_factor_before():
    with pytest.raises(TypeError):
        VECTOR.mul(2, VECTOR)
    with pytest.raises(TypeError):
        VECTOR.add(VECTOR, 2)
    with pytest.raises(TypeError, match="add"):
        VECTOR.add(2, VECTOR, VECTOR)


def test_an_array_divided_by_a_tensor_is_a_tensor():
    quotient = np.array([1.0, 3.0]) / umbra.tensor([2.0, 4.0])
    assert isinstance(quotient, umbra.Tensor) and quotient.dtype == umbra.float64 and quotient.tolist() == [0.5, 0.75]


def test_a_tensor_is_no_number_for_an_operator_and_keeps_its_history():
    x, value, ops = umbra.tensor([1., 2.]), umbra.tensor(3.), umbra.ops.aten
    for packet, given in ((ops.fill, (x, value)), (ops.pow, (x, value)), (ops.lerp, (x, x * 2, value)), (ops.masked_fill, (x, x > 1, value))):
        def call(v):
            return packet(*given[:-1], v)
        _, tangent = umbra.func.jvp(call, (value,), (umbra.ones(()),))
        assert umbra.allclose(tangent, umbra.func.jacrev(call)(value)) and tangent.any()
        assert "_local_scalar_dense" not in umbra.fx.experimental.proxy_tensor.make_fx(call)(value).code
    for call in (lambda: ops.fill.Scalar(x, value), lambda: ops.elu(x, value), lambda: ops.hardshrink(x, value)):
        with pytest.raises(RuntimeError):
            call()
    assert umbra.fill(x, value).tolist() == [3, 3] and umbra.nn.functional.elu(-x, 2.).shape == (2,)
