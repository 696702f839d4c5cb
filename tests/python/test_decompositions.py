"""The core table and run_decompositions: programs by PyTorch's core operators. The sequences are those of PyTorch 2.15."""
import pytest

import umbra as torch
import umbra.nn.functional as F
from umbra._decomp import core_aten_decompositions, decomposition_table, get_decompositions, register_decomposition, remove_decompositions
from umbra.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten


def operators(graph):
    return [str(node.target).removeprefix("aten.") for node in graph.nodes if node.op == "call_function" and "getitem" not in str(node.target)]


def recorded(function, *inputs):
    module = make_fx(function, decomposition_table=core_aten_decompositions(), tracing_mode="fake")(*inputs)
    module.graph.eliminate_dead_code()
    return operators(module.graph)


X, M, IMAGE, MASK = torch.rand(2, 3, 4), torch.rand(3, 4), torch.rand(1, 4, 8, 8), torch.rand(2, 3) > 0.5
SEQUENCES = [
    (lambda x: x.transpose(0, 1), X, "permute.default"),
    (lambda x: x.new_zeros(2), X, "full.default"),
    (lambda x: torch.zeros_like(x), X, "full_like.default"),
    (lambda x: torch.arange(4) + x, X, "arange.start_step add.Tensor"),
    (lambda x: F.silu(x), X, "sigmoid.default mul.Tensor"),
    (lambda x: F.hardswish(x), X, "add.Tensor clamp.default clamp.default mul.Tensor div.Tensor"),
    (lambda x: F.softplus(x), X, "exp.default log1p.default gt.Scalar where.self"),
    (lambda x: F.softplus(x, 1.0), X, "mul.Tensor exp.default log1p.default div.Tensor gt.Scalar where.self"),
    (lambda x: F.softplus(x, 1, 3), X, "mul.Tensor exp.default log1p.default div.Tensor gt.Scalar where.self"),
    (lambda x: torch.roll(x, 1), torch.ones(4), "arange.start_step add.Tensor fmod.Scalar index_select.default view.default"),
    (lambda x: F.pixel_shuffle(x, 2), torch.ones(1, 4, 1, 1), "view.default permute.default view.default clone.default"),
    (lambda x: F.pixel_shuffle(x, 2), torch.ones(1, 4, 2, 2), "view.default permute.default clone.default view.default clone.default"),
    (lambda x: F.threshold(x, 0.5, 0), X, "le.Scalar scalar_tensor.default where.self"),
    (lambda x: F.logsigmoid(x), X, "full.default minimum.default abs.default neg.default exp.default log1p.default sub.Tensor"),
    (lambda x: F.softshrink(x), X, "abs.default gt.Scalar sign.default mul.Tensor sub.Tensor mul.Tensor where.self"),
    (lambda x: x.sum(), X, "sum.dim_IntList"),
    (lambda x: x.unsqueeze(0).squeeze(0), X, "unsqueeze.default squeeze.dims"),
    (lambda x: x.std(), X, "var.correction sqrt.default"),
    (lambda x: x.logsumexp(1), X, "amax.default abs.default eq.Scalar scalar_tensor.default where.self squeeze.dims sub.Tensor exp.default sum.dim_IntList "
                                  "log.default add.Tensor"),
    (lambda x: torch.linalg.vector_norm(x), X, "pow.Tensor_Scalar sum.dim_IntList pow.Tensor_Scalar"),
    (lambda b: b.all(), MASK, "logical_not.default any.dims logical_not.default"),
    (lambda x: x.masked_fill(x > 0.5, 2.0), X, "gt.Scalar scalar_tensor.default where.self"),
    (lambda m: m.tril(), M, "arange.start_step unsqueeze.default arange.start_step unsqueeze.default sub.Tensor le.Scalar scalar_tensor.default where.self"),
    (lambda x: torch.addcmul(x, x, x, value=2), X, "mul.Tensor mul.Tensor add.Tensor"),
    (lambda x: torch.lerp(x, x, x), X, "abs.default ge.Scalar sub.Tensor where.self where.self sub.Tensor mul.Tensor add.Tensor"),
    (lambda x: torch.xlogy(x, x), X, "eq.Scalar log.default mul.Tensor scalar_tensor.default where.self isnan.default scalar_tensor.default where.self"),
    (lambda x: torch.nan_to_num(x), X, "isnan.default scalar_tensor.default where.self eq.Scalar scalar_tensor.default where.self eq.Scalar "
                                       "scalar_tensor.default where.self"),
    (lambda x: x.split(1, 1), X, "split_with_sizes.default"),
    (lambda x: torch.stack([x, x]), X, "cat.default view.default"),
    (lambda x: F.pad(x, [1, 1], "reflect"), X, "arange.start_step abs.default sub.Tensor abs.default sub.Tensor index.Tensor"),
    (lambda x: aten.select_scatter(x, x[0], 0, 0), X, "select.int arange.start_step view.default eq.Scalar unsqueeze.default expand.default where.self"),
    (lambda m: F.linear(m, m), M, "permute.default mm.default"),
    (lambda x: torch.baddbmm(x[:, :, :3], x, x.transpose(1, 2)), X, "slice.Tensor permute.default bmm.default add.Tensor"),
    (lambda m: torch.mv(m, m[0]), M, "select.int mul.Tensor sum.dim_IntList"),
    (lambda i: F.pixel_shuffle(i, 2), IMAGE, "view.default permute.default clone.default view.default clone.default"),
    (lambda i: F.scaled_dot_product_attention(i, i, i), IMAGE,
     "mul.Scalar permute.default mul.Scalar expand.default view.default expand.default view.default bmm.default view.default _softmax.default eq.Scalar "
     "logical_not.default any.dim logical_not.default full_like.default where.self expand.default view.default expand.default view.default bmm.default "
     "view.default permute.default clone.default permute.default"),
    (lambda x: F.mse_loss(x, x), X, "sub.Tensor pow.Tensor_Scalar mean.default"),
    (lambda x: F.smooth_l1_loss(x, x), X, "sub.Tensor abs.default lt.Scalar pow.Tensor_Scalar mul.Tensor div.Tensor sub.Tensor where.self mean.default"),
    (lambda x: F.binary_cross_entropy(x, x), X, "sub.Tensor neg.default log1p.default full.default maximum.default mul.Tensor log.default full.default "
                                                "maximum.default mul.Tensor sub.Tensor mean.default"),
]


@pytest.mark.parametrize("function, x, expected", SEQUENCES)
def test_what_operators_are_recorded_as(function, x, expected):
    assert recorded(function, x) == expected.split()


@pytest.mark.parametrize("function, x, expected", SEQUENCES)
def test_what_is_recorded_computes_the_same(function, x, expected):
    module = make_fx(function, decomposition_table=core_aten_decompositions(), tracing_mode="fake")(x)
    want, got = function(x), module(x)
    for a, b in zip(want if isinstance(want, (tuple, list)) else [want], got if isinstance(got, (tuple, list)) else [got]):
        assert a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a.double(), b.double(), atol=1e-6)


def test_tables_can_be_asked_changed_and_added_to():
    table = core_aten_decompositions()
    assert aten.silu.default in table and set(table) <= set(decomposition_table)
    assert torch.allclose(table[aten.silu.default](X), F.silu(X))
    remove_decompositions(table, [aten.silu])
    assert aten.silu.default not in table
    assert list(get_decompositions([aten.silu, aten.add])) == [aten.silu.default]
    own = {}

    @register_decomposition(aten.sin, registry=own)
    def sine(x):
        return x.cos()

    assert operators(make_fx(lambda x: x.sin(), decomposition_table=own)(X).graph) == ["cos.default"]
    with pytest.raises(RuntimeError, match="double registrations"):
        register_decomposition(aten.sin, registry=own)(sine)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)
        self.layer = torch.nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x):
        self.count[0] += 1
        return F.silu(self.layer(self.norm(x)))


def test_a_program_by_core_operators():
    program = torch.export.export(Network().eval(), (torch.rand(5, 4),)).run_decompositions()
    assert program.dialect == "ATEN"
    names = operators(program.graph)
    assert "_native_batch_norm_legit_no_training.default" in names
    assert names[-4:] == ["permute.default", "addmm.default", "sigmoid.default", "mul.Tensor"]
    assert not any(name.split(".")[0].endswith("_") for name in names)


def test_writes_to_buffers_become_results():
    network = Network().train()
    x = torch.rand(5, 4)
    program = torch.export.export(network, (x,)).run_decompositions()
    assert set(program.graph_signature.buffers_to_mutate.values()) == {"count", "norm.num_batches_tracked", "norm.running_mean", "norm.running_var"}
    module, want = program.module(), network(x)
    assert torch.allclose(module(x), want)
    for name, buffer in network.named_buffers():
        assert torch.allclose(dict(module.named_buffers())[name], buffer), name


def test_dynamic_sizes_stay():
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(Network().eval(), (torch.rand(5, 4),), dynamic_shapes={"x": {0: batch}})
    module = program.run_decompositions().module()
    assert module(torch.rand(9, 4)).shape == (9, 3)


def test_a_table_of_ones_own():
    program = torch.export.export(Network().eval(), (torch.rand(5, 4),))
    table = torch.export.default_decompositions()
    table.pop(aten.silu.default)
    assert "silu.default" in operators(program.run_decompositions(table).graph)
    assert "silu.default" in operators(program.run_decompositions({}).graph)


def test_a_program_from_a_file(tmp_path):
    batch = torch.export.Dim("batch")
    torch.export.save(torch.export.export(Network().eval(), (torch.rand(5, 4),), dynamic_shapes={"x": {0: batch}}), tmp_path / "network.pt2")
    program = torch.export.load(tmp_path / "network.pt2").run_decompositions()
    torch.export.save(program, tmp_path / "core.pt2")
    x = torch.rand(7, 4)
    assert torch.allclose(torch.export.load(tmp_path / "core.pt2").module()(x), program.module()(x))
