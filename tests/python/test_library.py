"""Operators and kernels of users: where they stand, how long, and what is refused."""
import gc
from typing import List, Optional, Sequence, Tuple

import pytest

import umbra as torch
from umbra import Tensor, library
from umbra._subclasses.fake_tensor import FakeTensorMode, UnsupportedOperatorException
from umbra.functorch.compile import aot_function, nop
from umbra.fx.experimental.proxy_tensor import make_fx


@pytest.fixture
def lib():
    made = library.Library("testlib", "FRAGMENT")
    yield made
    made._destroy()


def increment_operator():
    @library.custom_op("testops::increment", mutates_args={"x"})
    def increment(x: Tensor, by: int = 1) -> None:
        x.add_(by)
    return increment


# ---- kernels by key ----

def test_an_operator_that_writes_and_gives_nothing_needs_no_fake_kernel(lib):
    lib.define("write_(Tensor(a!) x) -> ()")
    lib.define("filled_(Tensor(a!) x) -> Tensor(a!)", tags=torch.Tag.inplace)
    lib.define("other_(Tensor(a!) x) -> Tensor(a!)")
    for name in ("write_", "filled_", "other_"):
        lib.impl(name, lambda x: None, "CPU")
    with FakeTensorMode():
        x = torch.empty(2)
        version = x._version
        assert torch.ops.testlib.write_(x) is None and x._version == version + 1
        assert torch.ops.testlib.filled_(x) is x
        with pytest.raises(UnsupportedOperatorException, match=r'^testlib.other_.default\n(.|\n)*torch.library.register_fake\("testlib::other_"\)'):
            torch.ops.testlib.other_(x)


@pytest.mark.parametrize("nothing", ["None", "(None)", "()"])
def test_a_schema_may_say_that_an_operator_gives_none(lib, nothing):
    lib.define(f"quiet(Tensor x) -> {nothing}")
    lib.impl("quiet", lambda x: None, "CPU")
    assert torch.ops.testlib.quiet(torch.ones(2)) is None
    with pytest.raises(RuntimeError, match="unknown type 'None'"):
        lib.define("mixed(Tensor x) -> (Tensor, None)")


def test_a_write_may_be_marked_without_a_name(lib):
    lib.define("doubled.out(Tensor x, Tensor! out) -> ()")
    lib.impl("doubled.out", lambda x, out: out.copy_(x * 2) and None, "CPU")
    torch.library.register_fake("testlib::doubled.out", lambda x, out: None)
    out = torch.zeros(1)
    assert torch.ops.testlib.doubled.out(torch.ones(1), out) is None and out.item() == 2
    assert str(torch.ops.testlib.doubled.out._schema) == "testlib::doubled.out(Tensor x, Tensor($0! -> ) out) -> ()"

    def written(x):
        out = torch.zeros(1)
        torch.ops.testlib.doubled.out(x, out)
        return out + 1
    assert torch.compile(written, backend="aot_eager", fullgraph=True)(torch.ones(1)).item() == 3


def test_a_kernel_for_cuda_leaves_the_cpu_alone(lib):
    lib.define("k(Tensor x) -> Tensor")
    lib.impl("k", lambda x: x + 1, "CPU")
    lib.impl("k", lambda x: x + 1000, "CUDA")
    assert torch.ops.testlib.k(torch.ones(1)).item() == 2


def test_register_kernel_is_for_its_device():
    @library.custom_op("testops::k", mutates_args=(), device_types="cuda")
    def k(x: Tensor) -> Tensor:
        return x + 1000
    with pytest.raises(NotImplementedError, match="'CPU' backend"):
        k(torch.ones(1))
    k.register_kernel("cpu", lambda x: x + 1)
    assert k(torch.ones(1)).item() == 2
    k.register_kernel("xpu", lambda x: x)
    assert k(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError):
        k.register_kernel("nonsense", lambda x: x)


def test_a_kernel_at_autograd_is_called_without_requires_grad(lib):
    log = []
    lib.define("k(Tensor x) -> Tensor")

    def above(x):
        log.append("autograd")
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.testlib.k(x) * 10
    lib.impl("k", lambda x: (log.append("cpu"), x + 1)[1], "CPU")
    lib.impl("k", above, "AutogradCPU")
    assert torch.ops.testlib.k(torch.ones(1)).item() == 20
    assert log == ["autograd", "cpu"]


def test_a_kernel_at_autograd_of_aten(lib):
    seen = []
    aten = library.Library("aten", "IMPL")

    def above(x):
        seen.append(x.shape)
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.aten.sin(x)
    aten.impl("sin", above, "Autograd")
    torch.sin(torch.ones(3))
    aten._destroy()
    torch.sin(torch.ones(4))
    assert seen == [(3,)]


def test_fallthrough_at_autograd_records_what_the_kernel_calls(lib):
    lib.define("k(Tensor x) -> Tensor")
    lib.impl("k", lambda x: x * 3, "CPU")
    lib.impl("k", library.fallthrough_kernel, "Autograd")
    x = torch.ones(1, requires_grad=True)
    torch.ops.testlib.k(x).backward()
    assert x.grad.item() == 3


@pytest.mark.parametrize("key", ["AutocastXPU", "FuncTorchBatched", "Python", "SparseCPU", "BackendSelect", "ADInplaceOrView"])
def test_keys_that_are_not_built_are_named(lib, key):
    lib.define("k(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match=key):
        lib.impl("k", lambda x: x, key)


def test_kernels_for_devices_that_are_not_there_are_taken_and_never_asked(lib):
    lib.define("k(Tensor x) -> Tensor")
    lib.impl("k", lambda x: x + 1, "CPU")
    for key in ("MPS", "XPU", "AutogradXPU", "XLA", "HPU", "PrivateUse1", "Vulkan"):
        lib.impl("k", lambda x: x - 1, key)
    torch.library.impl("testlib::k", "mps", lib=lib)(lambda x: x - 1)
    assert torch.ops.testlib.k(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="already a kernel registered"):
        lib.impl("k", lambda x: x, "MPS", allow_override=False)


def test_what_is_no_key_is_an_error(lib):
    lib.define("k(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="could not parse dispatch key: cpu"):
        lib.impl("k", lambda x: x, "cpu")
    with pytest.raises(TypeError, match="callable"):
        lib.impl("k", 3, "CPU")
    with pytest.raises(RuntimeError, match="namespace"):
        lib.impl("aten::relu", lambda x: x, "CPU")


def test_an_aten_kernel_can_be_replaced_and_comes_back():
    x = torch.tensor([-1.0, 2.0])
    aten = library.Library("aten", "IMPL")
    aten.impl("relu", lambda x: x * 0 + 42, "CPU")
    assert torch.relu(x).tolist() == [42, 42] and x.relu().tolist() == [42, 42]
    aten._destroy()
    assert torch.relu(x).tolist() == [0, 2]


def test_an_aten_meta_kernel_is_what_fake_tensors_get():
    aten = library.Library("aten", "IMPL")
    aten.impl("cos", lambda x: x.new_empty(5), "Meta")
    with FakeTensorMode():
        assert torch.cos(torch.ones(2)).shape == (5,)
    assert torch.cos(torch.ones(2)).shape == (2,)
    aten._destroy()
    with FakeTensorMode():
        assert torch.cos(torch.ones(2)).shape == (2,)


def test_a_kernel_may_come_before_its_definition():
    kernels = library.Library("testlib", "IMPL")
    kernels.impl("early", lambda x: x + 5, "CPU")
    definitions = library.Library("testlib", "FRAGMENT")
    definitions.define("early(Tensor x) -> Tensor")
    assert torch.ops.testlib.early(torch.ones(1)).item() == 6
    definitions._destroy()
    kernels._destroy()


def test_an_operator_without_tensors_needs_a_kernel_for_all_backends(lib):
    lib.define("make(int n) -> Tensor")
    lib.impl("make", lambda n: torch.ones(n), "CPU")
    with pytest.raises(NotImplementedError, match="no tensor arguments"):
        torch.ops.testlib.make(2)
    lib.impl("make", lambda n: torch.ones(n), "CompositeExplicitAutograd")


# ---- lifetimes ----

def test_a_library_that_goes_takes_its_operators_along():
    made = library.Library("testlib_gone", "DEF")
    made.define("k(Tensor x) -> Tensor")
    made.impl("k", lambda x: x + 1, "CPU")
    assert torch.ops.testlib_gone.k(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        library.Library("testlib_gone", "DEF")
    del made
    gc.collect()
    assert not hasattr(torch.ops.testlib_gone, "k")
    again = library.Library("testlib_gone", "DEF")
    again.define("k(Tensor x, int n) -> Tensor")
    assert len(torch.ops.testlib_gone.k.default._schema.arguments) == 2


def test_the_kernel_below_comes_back(lib):
    lib.define("k(Tensor x) -> Tensor")
    lib.impl("k", lambda x: x + 1, "CPU")
    other = library.Library("testlib", "IMPL")
    other.impl("k", lambda x: x + 2, "CPU")
    assert torch.ops.testlib.k(torch.ones(1)).item() == 3
    del other
    gc.collect()
    assert torch.ops.testlib.k(torch.ones(1)).item() == 2


def test_a_second_kernel_can_be_forbidden(lib):
    lib.define("k(Tensor x) -> Tensor")
    lib.impl("k", lambda x: x + 1, "CPU")
    with pytest.raises(RuntimeError, match="already a kernel"):
        lib.impl("k", lambda x: x + 2, "CPU", allow_override=False)
    assert torch.ops.testlib.k(torch.ones(1)).item() == 2


def test_only_libraries_that_define_define():
    with pytest.raises(RuntimeError, match="Cannot define"):
        library.Library("testlib", "IMPL").define("z(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="reserved"):
        library.Library("prim", "DEF")
    with pytest.raises(ValueError, match="Unsupported kind"):
        library.Library("testlib", "OTHER")


# ---- custom operators ----

def test_a_schema_is_inferred_as_torch_does():
    def f(x: Tensor, xs: List[Tensor], o: Optional[Tensor], n: int, ns: Sequence[int], s: float = 1.5, t: str = "a",
          d: Optional[torch.dtype] = None, *, v: torch.device, q: Optional[float] = None) -> Tuple[Tensor, int]:
        pass
    assert library.infer_schema(f, mutates_args={"x", "xs"}) == (
        '(Tensor(a0!) x, Tensor(a1!)[] xs, Tensor? o, SymInt n, SymInt[] ns, float s=1.5, str t="a", ScalarType? d=None, *, Device v, '
        'float? q=None) -> (Tensor, SymInt)')
    for mutates in ({"y"}, {"n"}, "x"):
        with pytest.raises(ValueError):
            library.infer_schema(f, mutates_args=mutates)


def _bad_signatures():
    def untyped(x) -> Tensor: ...
    def no_return(x: Tensor): ...
    def variadic(*xs: Tensor) -> Tensor: ...
    def keywords(x: Tensor, **rest) -> Tensor: ...
    def tuples(x: Tuple[int, int]) -> Tensor: ...
    def optional_return(x: Tensor) -> Optional[Tensor]: ...
    def unknown(x: dict) -> Tensor: ...
    def default(x: List[int] = ()) -> Tensor: ...
    return [untyped, no_return, variadic, keywords, tuples, optional_return, unknown, default]


@pytest.mark.parametrize("function", _bad_signatures(), ids=lambda f: f.__name__)
def test_a_signature_that_makes_no_schema_is_refused(function):
    with pytest.raises(ValueError, match="infer_schema"):
        library.infer_schema(function, mutates_args=())


def test_unknown_options_of_custom_op_are_errors():
    def f(x: Tensor) -> Tensor:
        return x.clone()
    with pytest.raises(TypeError):
        library.custom_op("testops::f", f, mutates_args=(), foo=1)
    with pytest.raises(ValueError, match="mutates"):
        library.custom_op("testops::f", f, mutates_args=("x",), schema="(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="unexpected type for op"):
        library.register_torch_dispatch(3, f)
    with pytest.raises(ValueError, match="Unknown device type"):
        library.register_autocast("testlib::f", "nowhere", torch.float16)


def test_keyword_only_arguments_cannot_be_given_by_position():
    with pytest.raises(RuntimeError, match=r"takes 2 positional argument\(s\) but 3"):
        torch.ops.aten.add.Tensor(torch.ones(1), torch.ones(1), 2)


def test_a_kernel_can_be_switched_off():
    @library.custom_op("testops::k", mutates_args=())
    def k(x: Tensor) -> Tensor:
        return x + 1
    k.register_kernel("cpu", lambda x: x + 100)
    with k.set_kernel_enabled("cpu", False):
        assert k(torch.ones(1)).item() == 2
    assert k(torch.ones(1)).item() == 101


def test_a_formula_sees_lists_as_they_were_given():
    seen = []

    @library.custom_op("testops::weighted", mutates_args=())
    def weighted(xs: Sequence[Tensor], w: Tensor, *, twice: bool = False) -> Tuple[List[Tensor], Tensor]:
        return [x * w for x in xs], sum(xs) * w

    def setup(ctx, inputs, keywords, output):
        ctx.count, ctx.w, ctx.twice = len(inputs[0]), inputs[1], keywords["twice"]

    def backward(ctx, grads, total):
        seen.append((ctx.needs_input_grad, len(grads), ctx.twice))
        return [(g + total) * ctx.w for g in grads], None
    weighted.register_autograd(backward, setup_context=setup)
    a, b = torch.ones(1, requires_grad=True), torch.ones(1)
    parts, total = weighted([a, b], torch.full((1,), 10.0), twice=True)
    (parts[0] + total).backward()
    assert a.grad.item() == 20 and b.grad is None
    assert seen == [(([True, False], False), 2, True)]


def test_without_a_formula_the_backward_says_so():
    @library.custom_op("testops::k", mutates_args=())
    def k(x: Tensor) -> Tensor:
        return x * 2
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        k(torch.ones(1, requires_grad=True)).backward()
    with pytest.raises(RuntimeError, match="no fake impl"):
        make_fx(k, tracing_mode="fake")(torch.ones(1))


def test_an_operator_that_writes_has_no_formula():
    with pytest.raises(RuntimeError, match="non-functional"):
        increment_operator().register_autograd(lambda ctx, grad: grad)


def test_a_write_is_functional_in_a_compiled_function():
    from umbra._functorch.aot_autograd import aot_function
    increment, graphs = increment_operator(), []

    def f(x, y):
        increment(x[1:], 10)
        z = y.clone()
        increment(z)
        return z * 2
    compiled = aot_function(f, lambda graph, _: (graphs.append(graph), graph)[1])
    x = torch.zeros(3)
    assert compiled(x, torch.ones(2)).tolist() == [4, 4]
    assert x.tolist() == [0, 10, 10]
    assert "testops.increment.default" not in [str(n.target) for n in graphs[0].graph.nodes]


# ---- opcheck ----

def test_opcheck_finds_what_is_not_declared(lib):
    for name, kernel in (("good", lambda x: x * 2), ("sneaky", lambda x: (x.add_(1), x.clone())[1]), ("same", lambda x: x)):
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, kernel, "CompositeExplicitAutograd")
    ops, x = torch.ops.testlib, torch.ones(2)
    assert set(library.opcheck(ops.good, (x,)).values()) == {"SUCCESS"}
    assert isinstance(library.opcheck(ops.sneaky, (x,), test_utils="test_schema", raise_exception=False)["test_schema"], RuntimeError)
    for name, what in (("sneaky", "was mutated"), ("same", "was aliasing")):
        with pytest.raises(Exception, match=what):
            library.opcheck(getattr(ops, name).default, (x,), test_utils="test_schema")
    with pytest.raises(Exception, match="autograd kernel"):
        library.opcheck(ops.good, (torch.ones(2, requires_grad=True),))
    with pytest.raises(ValueError, match="subset"):
        library.opcheck(ops.good, (x,), test_utils="test_nothing")


def test_opcheck_compares_the_fake_run(lib):
    lib.define("k(Tensor x) -> Tensor")
    lib.impl("k", lambda x: x * 2, "CPU")
    library.register_fake("testlib::k", lambda x: x.new_empty(7), lib=lib)
    with pytest.raises(Exception, match="Shapes"):
        library.opcheck(torch.ops.testlib.k, (torch.ones(1),), test_utils="test_faketensor")


# ---- writes to lists and optional tensors ----

def test_writes_to_lists_and_optional_tensors_are_functional_when_compiled():
    from umbra._functorch.aot_autograd import aot_function

    @library.custom_op("testops::write", mutates_args={"xs", "y"})
    def write(xs: List[Tensor], y: Optional[Tensor], n: int) -> Tensor:
        for x in xs:
            x.add_(n)
        if y is not None:
            y.mul_(n)
        return xs[0] * 1
    write.register_fake(lambda xs, y, n: torch.empty_like(xs[0]))

    def f(x, y):
        a, b, c = x.clone(), x * 2, y.clone()
        r = write([a, b], c, 3)
        write([c], None, 1)
        return a, b, c, r
    graphs = []
    compiled = aot_function(f, lambda graph, _: (graphs.append(graph), graph)[1])
    x, y = torch.ones(2), torch.full((2,), 5.0)
    assert [t.tolist() for t in compiled(x, y)] == [t.tolist() for t in f(x, y)] == [[4, 4], [5, 5], [16, 16], [4, 4]]
    assert "testops.write.default" not in [str(n.target) for n in graphs[0].graph.nodes]


def test_an_in_place_kernel_without_a_formula_records_what_it_calls(lib):
    lib.define("double_(Tensor(a!) x) -> Tensor(a!)")
    lib.impl("double_", lambda x: x.mul_(2), "CPU")
    x = torch.ones(1, requires_grad=True)
    y = x * 3
    assert torch.ops.testlib.double_(y) is y
    y.sum().backward()
    assert x.grad.item() == 6


def test_operators_of_users_are_recorded_by_symbolic_trace(lib):
    lib.define("k(Tensor x, int n=2) -> Tensor")
    lib.impl("k", lambda x, n=2: x * n, "CPU")
    graph = torch.fx.symbolic_trace(lambda x: torch.ops.testlib.k(x) + torch.ops.testlib.k.default(x, 3))
    assert [str(n.target) for n in graph.graph.nodes][1:3] == ["testlib.k", "testlib.k.default"]
    assert graph(torch.ones(1)).item() == 5


def test_operators_take_numbers_for_truth_and_truth_for_numbers():
    x = torch.ones(2, 2)
    assert torch.ops.aten.sum.dim_IntList(x, [0], 1).shape == (1, 2)
    assert torch.ops.aten.select.int(x, True, 0).shape == (2,)


def test_a_tensor_has_no_default_but_none(lib):
    with pytest.raises(RuntimeError):
        lib.define("k(Tensor x=1) -> Tensor")
    lib.define("k(Tensor? x=None) -> Tensor")


def test_a_library_says_what_a_mode_or_class_does_with_an_operator():
    from umbra.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Wrapper(Tensor):
        @staticmethod
        def __new__(cls, inner):
            return Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("the rule comes first")
    with library._scoped_library("rules", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")

        @library.register_torch_dispatch("rules::twice", Mode, lib=lib)
        def _(mode, func, types, args, kwargs):
            return func(*args, **kwargs) + 100
        library.register_torch_dispatch("rules::twice", Wrapper, lambda cls, func, types, args, kwargs: cls(func(args[0].inner)), lib=lib)
        with Mode():
            assert torch.ops.rules.twice(torch.ones(1)).item() == 102
        assert torch.ops.rules.twice(torch.ones(1)).item() == 2
        assert torch.ops.rules.twice(Wrapper(torch.ones(1))).inner.item() == 2
    assert "rules::twice" not in torch._C._torch_dispatch_rules
    with pytest.raises(AttributeError):
        torch.ops.rules.twice


def test_a_kernel_may_ask_for_the_keys_of_its_call(lib):
    seen = []

    def above(keys, x):
        seen.append(str(keys))
        return torch.ops.testlib.keyed.default.redispatch(keys & torch._C._after_autograd_keyset, x)

    def below(keys, x):
        seen.append(str(keys))
        return x * 2
    lib.define("keyed(Tensor x) -> Tensor")
    lib.impl("keyed", below, "CPU", with_keyset=True)
    assert torch.ops.testlib.keyed(torch.ones(2)).tolist() == [2, 2] and seen == ["DispatchKeySet(CPU)"]
    lib.impl("keyed", above, "Autograd", with_keyset=True)
    seen.clear()
    x = torch.ones(2, requires_grad=True)
    torch.ops.testlib.keyed(x).sum().backward()
    assert seen == ["DispatchKeySet(CPU, AutogradCPU)", "DispatchKeySet(CPU)"] and x.grad.tolist() == [2, 2]


def test_defaults_of_operators_may_be_types_and_devices():
    @torch.library.custom_op("test_defaults::cast", mutates_args=())
    def cast(x: torch.Tensor, to: torch.dtype = torch.float64, on: torch.device = torch.device("cpu")) -> torch.Tensor:
        return x.to(to, copy=True).to(on)
    assert cast(torch.ones(2)).dtype == torch.float64 and cast(torch.ones(2), torch.int32).dtype == torch.int32


def test_tensors_by_keyword_alone_are_refused():
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        @torch.library.custom_op("test_defaults::keyword", mutates_args=())
        def keyword(x: torch.Tensor, *, y: torch.Tensor) -> torch.Tensor:
            return x + y
    with torch.library._scoped_library("test_defaults", "FRAGMENT") as library:
        library.define("other(Tensor x, *, Tensor y) -> Tensor")
        with pytest.raises(NotImplementedError, match="register_autograd with kwarg-only Tensor args"):
            torch.library.register_autograd("test_defaults::other", lambda context, gradient: gradient, lib=library)


def test_an_annotation_that_names_nothing_is_refused():
    def f(x: torch.Tensor) -> "NoSuchType":  # noqa: F821
        return x
    with pytest.raises(ValueError, match="NoSuchType"):
        torch.library.infer_schema(f, mutates_args=())


def test_a_triton_operator_is_defined_and_its_launches_are_refused():
    @torch.library.triton_op("test_triton::doubled", mutates_args=())
    def doubled(x: torch.Tensor, launch: bool) -> torch.Tensor:
        if launch:
            torch.library.wrap_triton(doubled)[(1,)](x)
        return x * 2
    assert doubled(torch.ones(2), False).tolist() == [2, 2] and str(torch.ops.test_triton.doubled.default._schema).endswith("(Tensor x, bool launch) -> Tensor")
    with pytest.raises(NotImplementedError, match="Triton"):
        doubled(torch.ones(2), True)


def test_kernels_of_custom_operators_by_name():
    @torch.library.custom_op("kernels_by_name::square", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x

    torch.library.register_kernel("kernels_by_name::square", "cpu", lambda x: x * 100)
    three = torch.tensor([3.0])
    assert square(three).item() == 300
    with square.set_kernel_enabled("cpu", False):
        assert square(three).item() == 9
    torch.library.register_autograd("kernels_by_name::square", lambda ctx, gradient: gradient * 7)
    three.requires_grad_()
    square(three).backward()
    assert three.grad.item() == 7


def test_a_custom_operator_s_write_counts_beside_its_kernel_s():
    @library.custom_op("counted::add", mutates_args={"x"})
    def add(x: Tensor, y: Tensor) -> None:
        x.add_(y)

    @library.custom_op("counted::fill", mutates_args={"x"})
    def fill(x: Tensor) -> None:
        x.numpy()[:] = 3
    x, y = torch.ones(2), torch.ones(2)
    add(x, y)
    fill(y)
    assert (x._version, y._version) == (2, 1) and x.tolist() == [2, 2] and y.tolist() == [3, 3]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_a_captured_write_of_an_operator_that_gives_a_value_counts(mode):
    @library.custom_op("counted::add_and_sum", mutates_args={"x"})
    def add(x: Tensor) -> Tensor:
        x.add_(1)
        return x.sum()
    add.register_fake(lambda x: x.new_empty(()))
    x = torch.ones(2)
    with mode():
        assert aot_function(lambda x: add(x.detach()) + x, nop)(x).tolist() == [6, 6]
    assert x._version == 1 and x.tolist() == [2, 2]


def test_an_operator_that_writes_and_gives_its_argument():
    giver = library.Library("giver", "FRAGMENT")
    giver.define("double_(Tensor(a!) x) -> Tensor(a!)")
    giver.impl("double_", lambda x: x.mul_(2), "CPU")

    def run(x):
        x = x.clone()
        assert torch.ops.giver.double_(x) is x
        return x
    x = torch.arange(6.0).reshape(3, 2)
    assert torch.equal(torch.vmap(run)(x), 2 * x) and torch.equal(torch.vmap(run, in_dims=1)(x), 2 * x.t())
    with pytest.raises(RuntimeError, match="whose output has alias annotations"):
        aot_function(run, fw_compiler=nop)(x)


def test_a_default_device_in_the_text_of_a_schema():
    library = torch.library.Library("own_devices", "DEF")
    library.define("on(Tensor x, Device d=\"cpu:0\") -> Tensor")
    assert str(torch.ops.own_devices.on.default._schema) == "own_devices::on(Tensor x, Device d=cpu:0) -> Tensor"


def test_a_fake_kernel_is_of_an_operator_that_is_there(lib):
    for given in (lib, None):
        with pytest.raises(RuntimeError, match=f"operator {lib.ns}::not_defined does not exist"):
            library.register_fake(f"{lib.ns}::not_defined", torch.empty_like, lib=given)
    lib.define("defined_now.overload(Tensor x) -> Tensor")
    library.register_fake(f"{lib.ns}::defined_now.overload", torch.empty_like, lib=lib)
    with FakeTensorMode():
        assert getattr(torch.ops, lib.ns).defined_now(torch.ones(3)).shape == (3,)
