"""autocast, and the scaling of losses."""
import warnings

import pytest

import umbra
from umbra import nn
from umbra.nn import functional as F

BF16, F32, F64 = umbra.bfloat16, umbra.float32, umbra.float64
a, v = umbra.ones(2, 2), umbra.ones(2)
A = a.to(BF16)


def region(**options):
    return umbra.autocast("cpu", **options)


@pytest.mark.parametrize("compute, expected", [
    (lambda: a @ a, BF16), (lambda: F.linear(a, a, v), BF16), (lambda: umbra.einsum("ij,jk", a, a), BF16),
    (lambda: nn.Conv2d(1, 1, 1)(umbra.ones(1, 1, 2, 2)), BF16), (lambda: F.scaled_dot_product_attention(a[None], a[None], a[None]), BF16),
    (lambda: umbra.mv(a, v), F32), (lambda: umbra.dot(v, v), F32), (lambda: a.clone().addmm_(a, a), F32),
    (lambda: F.mse_loss(A, a), F32), (lambda: F.cross_entropy(A, umbra.tensor([0, 1])), F32), (lambda: umbra.inverse(umbra.eye(2, dtype=BF16)), F32),
    (lambda: umbra.prod(A, 0), F32), (lambda: umbra.cat([A, a]), F32), (lambda: umbra.cat([A, A]), BF16), (lambda: umbra.stack([A, a]), F32),
    (lambda: A.sum(), BF16), (lambda: A.softmax(0), BF16), (lambda: F.layer_norm(A, (2,)), BF16), (lambda: a.double() @ a.double(), F64),
    (lambda: nn.LSTM(2, 2)(a)[0], BF16), (lambda: nn.GRU(2, 2)(a)[0], F32), (lambda: nn.LSTM(2, 2)(A)[0], BF16),
    (lambda: nn.MultiheadAttention(2, 1)(a, a, a)[0], BF16),
])
def test_the_types_that_operators_compute_in(compute, expected):
    with region():
        assert compute().dtype == expected


def test_types_that_do_not_go_together_are_refused():
    with region(), pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
        umbra.cat([a.half(), a])


def test_regions_nest_and_leave_nothing_behind():
    assert not umbra.is_autocast_enabled("cpu")
    with region(dtype=umbra.float16):
        assert (a @ a).dtype == umbra.float16
        with region(enabled=False):
            assert (a @ a).dtype == F32
            with region():
                assert (a @ a).dtype == umbra.float16
        assert umbra.get_autocast_dtype("cpu") == umbra.float16
    with pytest.raises(ZeroDivisionError), region():
        1 / 0
    assert not umbra.is_autocast_enabled("cpu") and umbra.get_autocast_dtype("cpu") == BF16 and (a @ a).dtype == F32


def test_a_decorated_function_may_call_itself():
    @region()
    def product(n):
        return product(n - 1) if n else a @ a
    assert product(3).dtype == BF16 and not umbra.is_autocast_enabled("cpu")


def test_weights_are_cast_once_a_region_and_get_gradients_of_their_type():
    w = umbra.ones(2, 2, requires_grad=True)
    with region():
        first, second = a @ w, a @ w
        assert first.grad_fn.next_functions[1][0] is second.grad_fn.next_functions[1][0]
    with region(cache_enabled=False):
        third, fourth = a @ w, a @ w
        assert third.grad_fn.next_functions[1][0] is not fourth.grad_fn.next_functions[1][0]
    (first + second).sum().backward()
    assert w.grad.dtype == F32 and w.grad.tolist() == [[4, 4], [4, 4]]


def test_a_cast_made_without_recording_is_not_kept():
    w = umbra.ones(2, 2, requires_grad=True)
    with region():
        with umbra.no_grad():
            a @ w
        (a @ w).sum().backward()
    assert w.grad is not None


def test_a_training_step():
    umbra.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = umbra.optim.SGD(net.parameters(), lr=0.1)
    x, y = umbra.randn(16, 4), umbra.randn(16, 1)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        with region():
            loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2 and all(p.grad.dtype == F32 for p in net.parameters())


def test_captured_functions_have_the_casts():
    from umbra.fx.experimental.proxy_tensor import make_fx

    def function(x):
        with region():
            return F.mse_loss(x @ x, x)
    targets = [str(node.target) for node in make_fx(function)(a).graph.nodes if node.op == "call_function"]
    assert targets == ["aten._to_copy.default", "aten._to_copy.default", "aten.mm.default", "aten._to_copy.default", "aten.mse_loss.default"]


def test_what_is_recorded_above_it_is_not_silently_wrong():
    class Net(nn.Module):
        def forward(self, x):
            with umbra.autocast("cpu"):
                return x @ x
    try:
        program = umbra.export.export(Net(), (a,))
    except NotImplementedError as error:
        assert "autocast" in str(error)
    else:
        assert program.module()(a).dtype == BF16


def test_transforms_see_it():
    with region():
        assert umbra.vmap(lambda x: x @ x)(umbra.ones(3, 2, 2)).dtype == BF16
        assert umbra.func.grad(lambda x: (x @ x).sum().float())(a).dtype == F32


def test_options_that_cannot_be():
    with pytest.warns(UserWarning, match="CPU Autocast only supports"):
        assert not region(dtype=F32)._enabled
    with pytest.warns(UserWarning, match="CUDA is not available"):
        with umbra.autocast("cuda"):
            assert (a @ a).dtype == F32
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        umbra.autocast(3)
    with pytest.raises(RuntimeError, match="device"):
        umbra.autocast("foo")


def test_custom_functions():
    from umbra.amp import custom_bwd, custom_fwd
    seen = []

    class Product(umbra.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=F32)
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            seen.append((x.dtype, umbra.is_autocast_enabled("cpu")))
            return x @ y

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            seen.append(umbra.is_autocast_enabled("cpu"))
            return grad @ y.T, x.T @ grad
    x = A.clone().requires_grad_()
    with region():
        Product.apply(x, a).sum().backward()
    assert seen == [(F32, False), False] and x.grad.dtype == BF16


def test_operators_of_the_user():
    @umbra.library.custom_op("amp_test::double", mutates_args=())
    def double(x: umbra.Tensor) -> umbra.Tensor:
        return x * 2
    double.register_autocast("cpu", BF16)
    with region():
        assert double(a).dtype == BF16
    assert double(a).dtype == F32


def test_grad_scaler():
    w = nn.Parameter(umbra.tensor([1.0, 2.0]))
    optimizer = umbra.optim.SGD([w], lr=0.5)
    scaler = umbra.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    for gradient, scale in ((1.0, 8.0), (1.0, 16.0), (float("inf"), 8.0)):
        optimizer.zero_grad()
        scaler.scale((w * gradient).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == scale
    assert w.tolist() == [0.0, 1.0]
    other = umbra.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8.0 and other.state_dict() == scaler.state_dict()


def test_grad_scaler_in_the_wrong_order():
    w = nn.Parameter(umbra.ones(1))
    optimizer = umbra.optim.SGD([w], lr=0.5)
    scaler = umbra.amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad.item() == 1.0
    with pytest.raises(RuntimeError, match="unscale_.. has already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="step.. has already been called"):
        scaler.step(optimizer)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        disabled = umbra.amp.GradScaler()
    assert "CUDA is not available" in str(seen[0].message) and disabled.scale(w) is w


def test_the_first_float_decides_for_what_comes_after_it():
    x = umbra.ones(2)
    with umbra.autocast("cpu", dtype=umbra.float16):
        assert umbra.cat([x, x.bfloat16()]).dtype == umbra.float32
        with pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
            umbra.cat([x.bfloat16(), x])


def test_a_view_whose_history_is_refused_is_cast_without_recording():
    base = umbra.ones(2, 2, requires_grad=True).tan()
    with umbra.no_grad():
        view = base.t()
        view.neg_()
        with umbra.autocast("cpu", dtype=umbra.bfloat16):
            product = view @ view
    assert product.dtype == umbra.bfloat16 and not product.requires_grad


class Unscaling(umbra.optim.SGD):
    """An optimiser that unscales gradients itself."""
    _step_supports_amp_scaling = True

    def step(self, closure=None):
        self.seen = (self.grad_scale if self.grad_scale is None else self.grad_scale.item(), self.found_inf.item())


def test_an_optimizer_that_unscales_is_shown_the_scale_and_the_infinities():
    weight = nn.Parameter(umbra.ones(2))
    optimizer, scaler = Unscaling([weight], lr=0.1), umbra.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale((weight * 3).sum()).backward()
    scaler.step(optimizer)
    assert optimizer.seen == (4.0, 0.0) and not hasattr(optimizer, "grad_scale") and weight.grad.tolist() == [12.0, 12.0]
    scaler.update()
    weight.grad[0] = float("inf")
    scaler.step(optimizer)
    assert optimizer.seen == (4.0, 1.0)
    scaler.update()
    assert scaler.get_scale() == 2.0
    weight.grad = umbra.ones(2)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert optimizer.seen == (None, 0.0)


def test_an_older_optimizer_is_given_the_scaler():
    class Older(Unscaling):
        def step(self, closure=None, *, grad_scaler=None):
            self.seen = grad_scaler

    weight = nn.Parameter(umbra.ones(2))
    optimizer, scaler = Older([weight], lr=0.1), umbra.amp.GradScaler("cpu")
    scaler.scale(weight.sum()).backward()
    with pytest.warns(FutureWarning, match="passes itself"):
        scaler.step(optimizer)
    assert optimizer.seen is scaler


def test_an_operator_of_a_users_falls_through_autocast():
    with umbra.library._scoped_library("uncast", "FRAGMENT") as own:
        own.define("same(Tensor x) -> Tensor")
        own.impl("same", lambda x: x.clone(), "CPU")
        own.impl("same", umbra.library.fallthrough_kernel, "AutocastCPU")
        with umbra.autocast("cpu"):
            assert umbra.ops.uncast.same(a).dtype is F32


def test_a_kernel_has_the_key_of_its_library():
    with umbra.library._scoped_library("aten", "IMPL", "CPU") as own, pytest.raises(RuntimeError, match="inconsistent with the dispatch key"):
        own.impl("sum", lambda x: x, "Meta")


def test_a_kernel_for_autocast_does_the_casting():
    with umbra.library._scoped_library("casting", "FRAGMENT") as own:
        own.define("same(Tensor x) -> Tensor")
        own.impl("same", lambda x: x.clone(), "CPU")

        def cast(x):
            with umbra._C._ExcludeDispatchKeyGuard(umbra._C.DispatchKeySet(umbra._C.DispatchKey.AutocastCPU)):
                return umbra.ops.casting.same(x.to(BF16))
        own.impl("same", cast, "AutocastCPU")
        with umbra.autocast("cpu"):
            inside = umbra.ops.casting.same(a.double())
        assert (inside.dtype, umbra.ops.casting.same(a).dtype) == (BF16, F32)


def test_an_operator_of_the_librarys_that_falls_through_autocast_is_not_cast():
    with umbra.library._scoped_library("aten", "IMPL") as own:
        own.impl("mm", umbra.library.fallthrough_kernel, "AutocastCPU")
        with umbra.autocast("cpu"):
            assert umbra.mm(a, a).dtype is F32
    with umbra.autocast("cpu"):
        assert umbra.mm(a, a).dtype is BF16


def test_a_scaler_asks_its_own_methods_whether_to_step():
    class Agreeing(umbra.amp.GradScaler):
        def _maybe_opt_step(self, optimizer, optimizer_state, *args, **kwargs):
            self.found = sum(found.item() for found in optimizer_state["found_inf_per_device"].values())
            return optimizer.step(*args, **kwargs)

    weight = umbra.ones(2, requires_grad=True)
    optimizer, scaler = umbra.optim.SGD([weight], lr=0.0), Agreeing("cpu", init_scale=2.0)
    (scaler.scale(weight.sum()) * float("inf")).backward()
    found = scaler._check_inf_per_device(optimizer)
    assert [value.item() for value in found.values()] == [1.0] and scaler._found_inf_per_device(optimizer) is found and weight.grad[0] == float("inf")
    scaler.step(optimizer)
    assert scaler.found == 1.0 and scaler._get_scale_async().item() == 2.0
