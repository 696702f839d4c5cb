"""Details of operators in which PyTorch 2.15 was found to differ: layouts, rounding, names of nodes, errors, recorded calls."""
import pytest

import umbra as torch
import umbra.export
import umbra.nn.functional as F
from umbra._subclasses.fake_tensor import FakeTensorMode
from umbra.fx.experimental.proxy_tensor import make_fx


def channels_last():
    return torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)


def calls(graph_module):
    return [str(n.target) for n in graph_module.graph.nodes if n.op == "call_function" and "getitem" not in str(n.target)]


# ---- layouts, with data and without ----

LAYOUTS = {
    "softmax": (lambda x: x.softmax(1), (60, 20, 5, 1)),
    "log_softmax": (lambda x: x.log_softmax(1), (60, 20, 5, 1)),
    "stack": (lambda x: torch.stack([x, x]), (120, 60, 1, 15, 3)),
    "stack of dimension 1": (lambda x: torch.stack([x, x], 1), (120, 3, 1, 30, 6)),
    "stack at the end": (lambda x: torch.stack([x, x], -1), (120, 40, 10, 2, 1)),
    "cumsum": (lambda x: x.cumsum(1), (60, 20, 5, 1)),
    "flip": (lambda x: x.flip(1), (60, 1, 15, 3)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 1), (3, 1, 3, 3)),
    "index of dimension 0": (lambda x: x[torch.tensor([0, 1])], (60, 1, 15, 3)),
    "index of dimension 1": (lambda x: x[:, torch.tensor([0, 1])], (40, 20, 5, 1)),
    "scatter": (lambda x: x.scatter(1, torch.zeros(2, 1, 4, 5, dtype=torch.int64), 1.0), (60, 20, 5, 1)),
    "bernoulli": (lambda x: torch.bernoulli(x.sigmoid()), (60, 20, 5, 1)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_channels_last(name):
    function, strides = LAYOUTS[name]
    x = channels_last()
    assert function(x).stride() == strides
    with FakeTensorMode() as mode:
        assert tuple(function(mode.from_tensor(x)).stride()) == strides


def test_layouts_of_transposed():
    x = torch.randn(3, 4).t()
    positions = torch.tensor([0, 1])
    assert x.softmax(0).stride() == (3, 1)
    assert x[positions].stride() == (3, 1)
    assert x.index_add(0, positions, torch.ones(2, 3)).stride() == (3, 1)
    assert torch.equal(x[positions], x.contiguous()[positions])
    y = channels_last().transpose(2, 3)
    assert y[positions].stride() == (60, 1, 3, 15)
    assert torch.equal(y[positions], y.contiguous()[positions])
    # An index that is laid out by columns brings its order with it.
    by_columns = torch.tensor([[0, 1, 2], [2, 1, 0]]).t()
    z = torch.arange(12).reshape(4, 3)
    assert z[by_columns].stride() == (3, 9, 1)
    assert torch.equal(z[by_columns], z[by_columns.contiguous()])
    assert torch.equal(torch.stack([x, x], 1), torch.stack([x.contiguous(), x.contiguous()], 1))


def test_scatter_forms_keep_gaps():
    x = torch.zeros(3, 8)[:, ::2]
    out = torch.select_scatter(x, torch.ones(4), 0, 1)
    assert out.stride() == (8, 2)
    assert out.tolist() == [[0] * 4, [1] * 4, [0] * 4]
    assert torch.zeros(1, 3).expand(2, 3).slice_scatter(torch.ones(1, 3), 0, 0, 1).stride() == (3, 1)


# ---- narrow types ----

@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_numbers_are_rounded_to_narrow_types(dtype):
    x = torch.tensor([1.13, 0.37, 3.0], dtype=dtype)
    near = x[0].item()
    assert near != 1.13
    assert (x == 1.13).tolist() == [True, False, False]
    assert (x == torch.tensor(1.13, dtype=torch.float64)).tolist() == [True, False, False]
    assert (x - 1.13)[0].item() == 0
    assert torch.equal(torch.add(x, x, alpha=1.13), torch.add(x, x, alpha=near))
    assert torch.equal(F.hardshrink(x, 1.13), torch.tensor([0.0, 0.0, 3.0], dtype=dtype))
    # The second operand of a product or a quotient keeps its digits, the first does not.
    exact = torch.tensor(3.0, dtype=torch.float64)
    assert (x * 1.13)[2] == (exact * 1.13).to(torch.float32).to(dtype)
    assert (x / 1.13)[2] == (exact / 1.13).to(torch.float32).to(dtype)
    assert torch.equal(torch.mul(torch.tensor(1.13), x), torch.mul(torch.tensor(1.13, dtype=dtype), x))


def test_integers_are_rounded_to_narrow_types():
    assert (torch.tensor([257]) + torch.zeros(1, dtype=torch.bfloat16)).item() == 256
    assert torch.equal(torch.tensor([257]) == torch.tensor([256.0], dtype=torch.bfloat16), torch.tensor([True]))


# ---- gradients ----

def test_atan2_at_the_origin():
    a, b = torch.zeros(2, requires_grad=True), torch.tensor([0.0, 1.0], requires_grad=True)
    torch.atan2(a, b).sum().backward()
    assert a.grad.tolist() == [0, 1]
    assert b.grad.tolist() == [0, 0]


def test_complex_silu_has_no_gradient():
    x = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    with pytest.raises(NotImplementedError, match="silu does not support automatic differentiation for outputs with complex dtype"):
        F.silu(x)
    assert F.silu(x.detach()).dtype == torch.complex64


def test_names_of_nodes():
    x = torch.randn(4, 3, requires_grad=True)
    image = torch.randn(2, 3, 4, 4, requires_grad=True)
    target = torch.tensor([0, 1, 2, 0])
    mean, var = torch.zeros(3), torch.ones(3)
    assert F.nll_loss(x, target).grad_fn.name() == "NllLossBackward0"
    assert F.cross_entropy(x, target).grad_fn.next_functions[0][0].name() == "LogSoftmaxBackward0"
    for arguments in ((mean, var, None, None, True), (mean, var, None, None, False), (None, None, None, None, True)):
        assert F.batch_norm(image, *arguments).grad_fn.name() == "NativeBatchNormBackward0"
    assert F.elu_(x.clone()).grad_fn.name() == "EluBackward1"
    assert F.elu(x).grad_fn.name() == "EluBackward0"
    assert x.clone().fill_(1.0).grad_fn.name() == "FillBackward2"
    loss = F.mse_loss(x, torch.ones(4, 3))
    assert loss.grad_fn.name() == "MseLossBackward0"
    assert loss.grad_fn.next_functions[0][0].name().endswith("AccumulateGrad")


# ---- errors and outputs ----

def test_invert_of_floats():
    with pytest.raises(TypeError, match="only implemented on integer and Boolean-type tensors"):
        ~torch.ones(2)
    assert (~torch.tensor([True, False])).tolist() == [False, True]


@pytest.mark.parametrize("name", ["abs", "neg", "floor", "sign"])
def test_unary_outputs_are_not_cast(name):
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        getattr(torch, name)(torch.ones(2), out=torch.ones(2, dtype=torch.float64))
    assert torch.exp(torch.zeros(2), out=torch.ones(2, dtype=torch.float64)).tolist() == [1, 1]


def test_writes_to_expanded_tensors():
    def expanded():
        return torch.ones(1, 3).expand(2, 3)
    assert expanded().zero_().tolist() == [[0] * 3] * 2
    assert expanded().fill_(4).tolist() == [[4] * 3] * 2
    assert expanded().masked_fill_(torch.ones(2, 3, dtype=torch.bool), 5).tolist() == [[5] * 3] * 2
    for write in (lambda t: t.add_(1), lambda t: t.copy_(torch.ones(2, 3)), lambda t: t.relu_()):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write(expanded())


# ---- what is recorded ----

def test_losses_record_no_expansion():
    x = torch.randn(4, 3)
    assert calls(make_fx(lambda a, b: F.mse_loss(a, b))(x, x + 1)) == ["aten.mse_loss.default"]
    assert calls(make_fx(lambda a, b: F.mse_loss(a, b))(x, x[0])) == ["aten.expand.default", "aten.mse_loss.default"]

    class Loss(torch.nn.Module):
        def forward(self, a, b):
            return F.mse_loss(a, b)

    assert calls(torch.export.export(Loss(), (x, x + 1))) == ["aten.broadcast_tensors.default", "aten.mse_loss.default"]


def test_contiguous_of_contiguous_is_not_recorded():
    class Model(torch.nn.Module):
        def forward(self, x):
            return x.contiguous() + x.transpose(0, 1).contiguous()

    assert calls(torch.export.export(Model(), (torch.randn(3, 3),))) == ["aten.transpose.int", "aten.contiguous.default", "aten.add.Tensor"]


def test_numbers_and_ones_carry_their_options():
    def gradient(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(x.clamp(0).sum(), x)

    options = {str(n.target): n.kwargs for n in make_fx(gradient)(torch.randn(3)).graph.nodes}
    assert options["aten.ones_like.default"] == {"pin_memory": False, "memory_format": torch.preserve_format}
    assert options["aten.scalar_tensor.default"]["layout"] == torch.strided


# ---- attention ----

FLASH = "aten._scaled_dot_product_flash_attention_for_cpu.default"


def attention_calls(query, key=None, **options):
    key = query if key is None else key
    return calls(make_fx(lambda q, k: F.scaled_dot_product_attention(q, k, k, **options))(query, key))


def test_attention_chooses_the_fused_kernel():
    query = torch.randn(2, 4, 5, 8)
    assert attention_calls(query) == [FLASH]
    assert attention_calls(query[0]) == ["aten.unsqueeze.default"] * 3 + [FLASH, "aten.squeeze.dim"]
    assert attention_calls(query, torch.randn(2, 2, 5, 8), enable_gqa=True) == [FLASH]
    mask = torch.ones(5, 5, dtype=torch.bool)
    assert attention_calls(query, attn_mask=mask) == ["aten.scalar_tensor.default", "aten.scalar_tensor.default", "aten.where.self", FLASH]
    for options in ({"dropout_p": 0.5}, {"attn_mask": torch.zeros(1, 5, 5)}, {"attn_mask": torch.zeros(5, 5, requires_grad=True)}):
        names = attention_calls(query, **options)
        assert FLASH not in names and "aten._safe_softmax.default" in names
    by_columns = query.transpose(2, 3).contiguous().transpose(2, 3)
    assert FLASH not in attention_calls(by_columns)


def test_grouped_attention_equals_repeated_heads():
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    for t in (query, key, value):
        t.requires_grad_()
    results = []
    for repeat in (False, True):
        k, v = (t.index_select(1, torch.tensor([0, 0, 1, 1])) if repeat else t for t in (key, value))
        out = F.scaled_dot_product_attention(query, k, v, is_causal=True, enable_gqa=not repeat)
        results.append((out, *torch.autograd.grad(out.square().sum(), (query, key, value))))
    for grouped, repeated in zip(*results):
        assert torch.allclose(grouped, repeated, atol=1e-5)


def test_rows_that_are_masked_altogether_are_zero():
    query = torch.randn(1, 2, 3, 4)
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    for attn_mask in (mask, mask.unsqueeze(0)):  # the fused kernel takes the first, products and a softmax the second
        out = F.scaled_dot_product_attention(query, query, query, attn_mask=attn_mask)
        assert out[0, :, 1].abs().sum().item() == 0
        assert not out.isnan().any()


# ---- products and losses by parts ----

def test_products_with_one_matrix_are_folded():
    def names(a, b):
        return calls(make_fx(lambda a, b: a @ b)(a, b))

    batch, matrix = torch.randn(2, 3, 4), torch.randn(4, 5)
    by_columns = batch.transpose(1, 2).contiguous().transpose(1, 2)
    assert names(batch, matrix) == ["aten.view.default", "aten.mm.default", "aten._unsafe_view.default"]
    assert "aten.bmm.default" in names(by_columns, matrix)  # rows that would have to be copied
    assert torch.allclose(by_columns @ matrix, batch @ matrix)
    assert torch.allclose(by_columns @ matrix[:, 0], batch @ matrix[:, 0])
    # A matrix that needs a gradient is not expanded over the batch, on either side.
    left = torch.randn(5, 3, requires_grad=True)
    out = left @ batch
    assert out.grad_fn.name() == "CloneBackward0" and out.stride() == (20, 4, 1)
    assert torch.allclose(out, torch.stack([left @ batch[0], left @ batch[1]]))
    vector = torch.randn(3, requires_grad=True)
    assert torch.allclose(vector @ batch, torch.stack([vector @ batch[0], vector @ batch[1]]))


@pytest.mark.parametrize("space", [(4, 5), (4,), (2, 3, 2)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_nll_loss_over_space(space, reduction):
    torch.manual_seed(0)
    scores = torch.randn(2, 3, *space, requires_grad=True)
    target = torch.randint(0, 3, (2, *space))
    weight = torch.tensor([0.5, 1.0, 2.0])
    loss = F.nll_loss(scores, target, weight, reduction=reduction)
    order = (0, *range(2, scores.dim()), 1)
    rows = F.nll_loss(scores.permute(order).reshape(-1, 3), target.reshape(-1), weight, reduction=reduction)
    assert torch.allclose(loss.reshape(rows.shape), rows)
    for a, b in zip(torch.autograd.grad(loss.sum(), scores), torch.autograd.grad(rows.sum(), scores)):
        assert torch.allclose(a, b)
    if len(space) == 2:
        assert loss.grad_fn.name() == "NllLoss2DBackward0"
