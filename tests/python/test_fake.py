"""Fake tensors and symbolic numbers from Python."""
import math

import pytest

import umbra
from umbra._subclasses.fake_tensor import (
    DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode)
from umbra.fx.experimental.symbolic_shapes import ShapeEnv, statically_known_true


def symbols(*hints):
    env = ShapeEnv()
    return [env.create_symbol(hint, f"L[{i}]") for i, hint in enumerate(hints)] + [env]


def test_data_dependent_errors_name_the_line_and_what_to_do():
    with FakeTensorMode():
        x = umbra.ones(3)
        with pytest.raises(DataDependentOutputException) as error:
            bool(x.sum() > 0)  # the line
        text = str(error.value)
        assert text.startswith("aten._local_scalar_dense.default\n") and "torch.cond" in text
        assert "test_fake.py" in text and "# the line" in text and "_C." not in text
        with pytest.raises(DynamicOutputShapeException, match="^aten.nonzero.default\n"):
            x.nonzero()


def test_factories_and_operators():
    with FakeTensorMode() as mode:
        x = umbra.empty(1_000_000, 1_000_000, device="cuda")
        y = x @ x
    assert type(y) is FakeTensor and y.device.type == "cuda" and y.shape == (1_000_000, 1_000_000) and y.fake_mode is mode
    assert repr(mode.from_tensor(umbra.ones(2))) == "FakeTensor(..., size=(2,))"


def test_from_tensor_remembers():
    x = umbra.ones(2, 3)
    mode = FakeTensorMode()
    assert mode.from_tensor(x) is mode.from_tensor(x)
    with mode:
        assert (mode.from_tensor(x).t() + 1).shape == (3, 2)


def test_data_dependence_is_an_error():
    mode = FakeTensorMode()
    x = mode.from_tensor(umbra.ones(2))
    with pytest.raises(DataDependentOutputException), mode:
        x.sum().item()
    with pytest.raises(DynamicOutputShapeException), mode:
        umbra.nonzero(x)


def test_literals_are_fake_and_known():
    with FakeTensorMode():
        literal = umbra.tensor([1, 2, 3])
        assert type(literal) is FakeTensor and literal.tolist() == [1, 2, 3] and (literal + 1)[1].item() == 3
        assert literal[1:].tolist() == [2, 3]
        assert umbra.tensor([0.5], device="cuda").device.type == "cuda"


def test_a_known_write_through_a_view_is_known_to_all_that_share_the_memory():
    with FakeTensorMode():
        literal = umbra.tensor([1, 2, 3])
        before = literal.clone()
        view = literal[1:]
        view.fill_(5)
        assert literal.tolist() == [1, 5, 5] and view.tolist() == [5, 5] and before.tolist() == [1, 2, 3]


def test_an_unknown_write_through_a_view_makes_a_literal_unknown():
    with FakeTensorMode():
        literal = umbra.tensor([1., 2, 3])
        literal[1:].copy_(umbra.rand(2))
        with pytest.raises(DataDependentOutputException):
            literal[0].item()


def test_a_literal_whose_elements_share_memory_is_unknown():
    with FakeTensorMode():
        literal = umbra.tensor([1])
        wide = literal.expand(4)
        assert wide.constant is None and literal.constant is not None
        wide[0] = 1
        assert literal.constant is None


def test_symbolic_sizes():
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    x = mode.from_tensor(umbra.ones(5, 7))
    with mode:
        s0, s1 = x.shape
        assert isinstance(s0, umbra.SymInt)
        y = x.reshape(s0 * s1)
        assert str(y.shape[0]) == "s26*s49"
        assert x.sum(0).shape[0] == s1


def test_sym_int_arithmetic():
    a, b, _ = symbols(6, 9)
    assert str(a + b * 2 - 1) == "2*s29 + s34 - 1" and str(a // 2) == "(s34//2)" and str(-a) == "-s34"
    assert isinstance(a / 2, umbra.SymFloat) and isinstance(a + 0.5, umbra.SymFloat) and str(3 + a) == "s34 + 3"
    assert isinstance(a < b, umbra.SymBool) and bool(a < b)
    assert isinstance(math.floor(a / 2), umbra.SymInt) and int(a) == 6 and float(b) == 9.0 and list(range(a))[-1] == 5
    with pytest.raises(TypeError, match="unhashable type: non-nested SymInt"):
        hash(a)
    with pytest.raises(ZeroDivisionError):
        a // 0


def test_a_branch_leaves_a_guard():
    a, env = symbols(6)
    assert not statically_known_true(a > 4)
    if a > 4:
        pass
    assert [str(guard.expr) for guard in env.guards] == ["s34 > 4"]
    assert statically_known_true(a > 3)


def test_row_major_strides_of_a_size_that_only_the_run_tells():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    with mode:
        u = mode.shape_env.create_unbacked_symint()
        umbra._check(u >= 0)
        x = umbra.empty(3, u)
        for y in (x, x + 1, x + x, x + umbra.empty(u), x.relu()):  # without elements a stride is that of one
            assert [str(stride) for stride in y.stride()] == ["Max(1, u0)", "1"]
        assert (x.t() + 1).stride()[0] == 1


def test_unbacked_symbols_and_checks():
    env = ShapeEnv()
    u = env.create_unbacked_symint()
    with pytest.raises(umbra.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode):
        bool(u > 3)
    umbra._check(u > 3)
    assert bool(u > 3)
    with pytest.raises(RuntimeError, match="no good"):
        umbra._check(1 > 2, lambda: "no good")


def test_symbols_outlive_the_environment():
    a = symbols(6)[0]
    assert str(a * 2) == "2*s34"


def test_sym_functions():
    a, b, _ = symbols(6, 9)
    assert int(umbra.sym_max(a, b)) == 9 and int(umbra.sym_min(a, 3)) == 3
    assert umbra.sym_not(True) is False and isinstance(umbra.sym_float(a), umbra.SymFloat) and umbra.sym_int(2.7) == 2


def test_gradients_are_converted_too():
    x = umbra.ones(3, requires_grad=True)
    x.grad = umbra.ones(3)
    fake = FakeTensorMode().from_tensor(x)
    assert type(fake.grad) is FakeTensor and fake.grad.shape == (3,)


def test_tensors_of_another_mode():
    first, second = FakeTensorMode(), FakeTensorMode()
    with first:
        x = umbra.ones(2, 3)
    y = second.from_tensor(x)
    assert y is not x and y.fake_mode is second and y.shape == (2, 3)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        x + y
    with FakeTensorMode(allow_non_fake_inputs=True) as third:
        assert (x + umbra.ones(3)).fake_mode is third


def test_writes_to_constants():
    with FakeTensorMode():
        x = umbra.tensor(4.0)
        y = x.add_(1)
        assert x.item() == 5 and y.item() == 5
        z = umbra.tensor([1])
        wide = z.expand([4])
        wide[0] = umbra.ones(1, dtype=umbra.int64)[0]
        with pytest.raises(DataDependentOutputException):
            z.item()
        assert umbra.div(4, 4, rounding_mode="trunc").item() == 1


def test_sym_nodes():
    env = ShapeEnv()
    size = FakeTensorMode(shape_env=env).from_tensor(umbra.ones(5, 7)).shape[0]
    assert size.node.shape_env is env and size.node.hint == 5 and str(size.node.expr) == str(size)


# ---- what conversion keeps ----

def test_converted_parameters_are_parameters():
    from umbra.nn import Parameter
    fake = FakeTensorMode().from_tensor(Parameter(umbra.ones(2)))
    assert isinstance(fake, Parameter) and fake.requires_grad and fake.is_leaf


def test_converted_results_are_no_leaves():
    mode = FakeTensorMode()
    result = umbra.ones(2, requires_grad=True) * 2
    fake = mode.from_tensor(result)
    assert fake.requires_grad and not fake.is_leaf
    assert (fake * 2).requires_grad
    with pytest.raises(RuntimeError, match="history"):
        (fake * 2).sum().backward()


def test_a_converted_view_leads_to_its_converted_base():
    for mode in (FakeTensorMode(), FakeTensorMode(shape_env=ShapeEnv())):
        x = umbra.ones(4, 3, requires_grad=True)
        view = mode.from_tensor(x.t()[1:])
        assert not view.is_leaf and view.grad_fn.name() == "AsStridedBackward0" and view._base is mode.from_tensor(x)
        view.sum().backward()
        assert mode.from_tensor(x).grad.shape == mode.from_tensor(x).shape
    written = umbra.ones(4, requires_grad=True) * 1
    part = written[1:]
    part.mul_(2)
    assert not FakeTensorMode().from_tensor(part).is_leaf and FakeTensorMode().from_tensor(umbra.ones(4)[1:].requires_grad_()).is_leaf


def test_converted_inference_tensors_are_inference_tensors():
    with umbra.inference_mode():
        real = umbra.ones(2)
    ordinary = umbra.ones(2)
    mode = FakeTensorMode()
    assert mode.from_tensor(real).is_inference()
    with umbra.inference_mode():
        assert not mode.from_tensor(ordinary).is_inference()


@pytest.mark.parametrize("real", [umbra.tensor(1.0), umbra.ones(2)])
def test_real_tensors_are_refused(real):
    mode = FakeTensorMode()
    fake = mode.from_tensor(umbra.ones(2))
    with pytest.raises(AssertionError, match=r"Please convert all Tensors to FakeTensors first .* Found in aten\.add\.Tensor\("):
        fake + real
    with mode, pytest.raises(AssertionError, match="Please convert all"):
        fake + real
    assert (fake + 1).shape == (2,)


def test_one_fake_for_one_meta_tensor():
    mode, meta = FakeTensorMode(), umbra.ones(2, device="meta")
    converter = mode.fake_tensor_converter
    fake = converter.from_meta_and_device(mode, meta, "cpu")
    assert fake is converter.from_meta_and_device(mode, meta, "cpu") and fake.device.type == "cpu"
    assert converter.from_meta_and_device(mode, meta, "cuda") is not fake


def test_indices_on_another_device():
    with FakeTensorMode():
        table, host = umbra.empty(4, 4, device="cuda"), umbra.empty(4, 4)
        places, here = umbra.zeros(2, dtype=umbra.int64, device="cuda"), umbra.zeros(2, dtype=umbra.int64)
        square = umbra.zeros(4, 4, dtype=umbra.int64)
        assert table[here].device.type == "cuda" and host[places].device.type == "cpu"  # indexing takes them from anywhere
        table[here] = umbra.zeros(2, 4, device="cuda")
        table[here] = umbra.zeros(())
        for refused in (lambda: table.index_select(0, here), lambda: host.index_select(0, places), lambda: table.gather(0, square),
                        lambda: table.scatter(0, square, 1.0), lambda: table.index_add(0, here, umbra.zeros(2, 4, device="cuda")),
                        lambda: umbra.nn.functional.embedding(here, table), lambda: umbra.nn.functional.embedding(places, host),
                        lambda: umbra.nn.functional.cross_entropy(table, umbra.zeros(4, dtype=umbra.int64)),
                        lambda: host.fill_(umbra.zeros((), device="cuda")), lambda: table.masked_scatter(umbra.ones(4, 4) > 0, table)):
            with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
                refused()
        with pytest.raises(RuntimeError, match=r"device between self \(cuda:0\) and values \(cpu\)"):
            table[places] = umbra.zeros(2, 4)


def test_fake_runs_are_compared_with_real_ones():
    from umbra._subclasses import CrossRefFakeMode
    from umbra._subclasses.fake_tensor import MetadataMismatchError
    lib = umbra.library.Library("cross_reference", "DEF")
    for name, real, fake in (("right", lambda x: x * 2, lambda x: umbra.empty_like(x)), ("larger", lambda x: x * 2, lambda x: x.new_empty(4)),
                             ("wider", lambda x: x.double(), lambda x: umbra.empty_like(x)), ("same", lambda x: x * 2, lambda x: x.view(3))):
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, real, "CPU")
        lib.impl(name, fake, "Meta")
    x = umbra.ones(3)
    with CrossRefFakeMode():
        assert umbra.ops.cross_reference.right(x).tolist() == [2, 2, 2] and x.nonzero().shape == (3, 1)
        for name, text in (("larger", "Shapes"), ("wider", "Dtypes"), ("same", "outputs_alias_inputs")):
            with pytest.raises(MetadataMismatchError, match=text):
                getattr(umbra.ops.cross_reference, name)(x)
    with CrossRefFakeMode(ignore_op_fn=lambda func: True):
        umbra.ops.cross_reference.larger(x)


def test_a_fake_tensor_is_made_of_a_meta_tensor():
    from umbra._subclasses import FakeTensor, FakeTensorMode
    mode = FakeTensorMode()
    fake = FakeTensor(mode, umbra.empty(4, 2, device="meta").t(), umbra.device("cuda"))
    assert fake.device.type == "cuda" and fake.stride() == (1, 2) and fake.fake_mode is mode and (fake @ fake.t()).shape == (2, 2)
    with pytest.raises(AssertionError, match="meta"):
        FakeTensor(mode, umbra.empty(2), umbra.device("cuda"))
