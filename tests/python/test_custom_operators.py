"""Operators of users whose sizes or devices no tensor tells, and what they are told."""
import logging
from typing import Tuple

import pytest
import umbra
from umbra import Tensor
from umbra._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode
from umbra.fx.experimental.symbolic_shapes import ShapeEnv


@pytest.fixture
def positive():
    @umbra.library.custom_op("custom_operators::positive", mutates_args=())
    def positive(x: Tensor) -> Tensor:
        return x[x > 0].clone()

    @positive.register_fake
    def _(x):
        return x.new_empty(umbra.library.get_ctx().new_dynamic_size())
    return positive


def test_a_size_that_only_data_tell_needs_a_shape_env(positive):
    with FakeTensorMode(), pytest.raises(DynamicOutputShapeException, match=r"^custom_operators\.positive\.default$"):
        positive(umbra.empty(3))
    with FakeTensorMode(shape_env=ShapeEnv()):
        assert positive(umbra.empty(3)).dim() == 1
    with pytest.raises(RuntimeError, match="may return an output Tensor with data-dependent shape"):
        positive(umbra.empty(3, device="meta"))


def test_outside_of_a_fake_function_there_is_no_context():
    assert umbra.library.get_ctx() is None


def test_opcheck_takes_operators_whose_sizes_only_data_tell(positive):
    assert set(umbra.library.opcheck(positive, (umbra.tensor([1.0, -1.0]),)).values()) == {"SUCCESS"}


def test_an_operator_without_tensors_goes_by_its_device():
    @umbra.library.custom_op("custom_operators::make", mutates_args=(), device_types="cpu")
    def make(device: umbra.device, n: int = 2) -> Tensor:
        return umbra.ones(n, device=device)

    assert make("cpu").tolist() == [1, 1] and make(device=umbra.device("cpu"), n=1).tolist() == [1]
    for device in ("cuda", "meta"):
        with pytest.raises(RuntimeError, match=f"make does not have a kernel registered for {device}. Please use register_kernel"):
            make(device)
    make.register_kernel("meta")(lambda device, n=2: umbra.empty(n, device="meta"))
    assert make("meta").shape == (2,)


def test_an_operator_without_tensors_needs_a_device():
    def bare() -> Tensor:
        return umbra.ones(2)
    with pytest.raises(ValueError, match="required to have a `device: torch.device` argument"):
        umbra.library.custom_op("custom_operators::bare", bare, mutates_args=(), device_types="cpu")
    assert umbra.library.custom_op("custom_operators::bare", bare, mutates_args=())().tolist() == [1, 1]


def test_arguments_may_have_the_names_of_our_own():
    @umbra.library.custom_op("custom_operators::on", mutates_args=())
    def on(x: Tensor, *, device: umbra.device) -> Tensor:
        return x.to(device).clone()
    assert on(umbra.ones(1), device="cpu").tolist() == [1]


def test_switching_what_is_switched_already_is_logged(caplog):
    @umbra.library.custom_op("custom_operators::add", mutates_args=())
    def add(x: Tensor) -> Tensor:
        return x + 1
    add.register_kernel("cpu")(lambda x: x + 2)
    with caplog.at_level(logging.WARNING, "torch._library.custom_ops"):
        with add.set_kernel_enabled("gpu", enabled=False), add.set_kernel_enabled("cpu", enabled=True), add.set_kernel_enabled("cpu", enabled=False):
            with add.set_kernel_enabled("cpu", enabled=False):
                assert add(umbra.ones(1)).item() == 2
            assert add(umbra.ones(1)).item() == 2
    assert [record.getMessage().split(" kernel for ")[1] for record in caplog.records] == [
        "gpu but no kernel was registered for this device type.", "cpu but it was already enabled.", "cpu but it was already disabled."]


def test_what_is_missing_is_told_before_what_is_unknown():
    with umbra.library._scoped_library("custom_operators", "FRAGMENT") as lib:
        lib.define("f(Tensor x, int n=1) -> Tensor")
        with pytest.raises(RuntimeError, match=r"custom_operators::f\(\) is missing value for argument 'x'"):
            umbra.ops.custom_operators.f(y=3)
        with pytest.raises(RuntimeError, match="Unknown keyword argument 'y'"):
            umbra.ops.custom_operators.f(umbra.ones(1), y=3)


def test_a_tuple_could_be_a_list():
    def f(x: Tensor, sizes: Tuple[int, int]) -> Tensor: ...
    with pytest.raises(ValueError, match=r"please try to use List instead. For example, list\[int\]"):
        umbra.library.infer_schema(f, mutates_args=())


def test_define_decorates_with_an_analysis_of_aliases():
    with umbra.library._scoped_library("custom_operators", "FRAGMENT") as lib:
        @umbra.library.define(lib, "twice(Tensor x) -> Tensor", alias_analysis="FROM_SCHEMA")
        def twice(x):
            return x * 2
        assert umbra.ops.custom_operators.twice(umbra.ones(1)).item() == 2
        with pytest.raises(RuntimeError, match="Invalid alias_analysis type other"):
            umbra.library.define(lib, "thrice(Tensor x) -> Tensor", alias_analysis="other")(twice)
