"""What `run_decompositions` makes of an operator computes what the operator computes: values, types, and sizes that the program was not captured with."""
import pytest
import umbra
import umbra.nn.functional as F
from export_functions import Function
from umbra.export import Dim, export


def numbers(*sizes, dtype=umbra.float32):
    count = 1
    for size in sizes:
        count *= size
    return (umbra.arange(count) * 7 % 11).to(dtype).reshape(sizes) / 3


def assert_same(actual, expected):
    for a, b in zip(umbra.utils._pytree.tree_leaves(actual), umbra.utils._pytree.tree_leaves(expected), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        umbra.testing.assert_close(a, b, equal_nan=True)


FIXED = {
    "steps of float64": (lambda x: umbra.linspace(0, 9, 4, dtype=umbra.float64) + x, (4,)),
    "steps of integers": (lambda x: umbra.linspace(0, 9, 4, dtype=umbra.int64), (4,)),
    "one step": (lambda x: umbra.linspace(3, 5, 1), (1,)),
    "no steps": (lambda x: umbra.linspace(3, 5, 0, dtype=umbra.int32), (1,)),
    "powers": (lambda x: umbra.logspace(0, 2, 5) + umbra.logspace(0, 2, 5, base=2.0), (1,)),
    "windows": (lambda x: umbra.hann_window(6) + umbra.hann_window(6, periodic=False) + umbra.hann_window(1), (1,)),
    "affine grids": (lambda x: F.affine_grid(x, (2, 3, 4, 5), align_corners=False), (2, 2, 3)),
    "affine grids, corners": (lambda x: F.affine_grid(x, (2, 3, 4, 1), align_corners=True), (2, 2, 3)),
    "affine grids of volumes": (lambda x: F.affine_grid(x, (2, 3, 4, 5, 2), align_corners=False), (2, 3, 4)),
    "cubic": (lambda x: F.interpolate(x, size=(7, 3), mode="bicubic"), (1, 2, 4, 5)),
    "cubic, corners": (lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic", align_corners=True), (1, 2, 4, 5)),
    "trilinear": (lambda x: F.interpolate(x, size=(3, 5, 2), mode="trilinear"), (1, 2, 2, 3, 4)),
    "nearest of volumes": (lambda x: F.interpolate(x, scale_factor=2), (1, 2, 2, 3, 2)),
    "nearest, exact": (lambda x: F.interpolate(x, size=(7, 2), mode="nearest-exact"), (1, 2, 4, 5)),
    "images of columns": (lambda x: F.fold(x, (6, 5), (3, 2), padding=1, stride=2), (1, 12, 9)),
    "rolls": (lambda x: x.roll((1, -2), (0, -1)) + x.roll(3), (3, 4)),
    "traces": (lambda x: x.trace(), (3, 4)),
    "renorm": (lambda x: x.renorm(2, 0, 1.0) + x.renorm(3, 1, 0.5) + x.renorm(float("inf"), -1, 2.0), (3, 4)),
    "blocks": (lambda x: umbra.block_diag(x, umbra.tensor([[1.0, 2.0]]), umbra.tensor(3.0)), (2, 3)),
    "channels": (lambda x: F.channel_shuffle(x, 2), (1, 4, 2, 3)),
    "diagonals": (lambda x: umbra.diag_embed(x) + umbra.diag_embed(x, 0, 0, 1).sum(), (2, 3)),
    "diagonals beside": (lambda x: (umbra.diag_embed(x, 1), umbra.diag_embed(x, -2, 0, 2), umbra.diag_embed(x > 1)), (2, 3)),
    "unpooling": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), (2, 2, 4, 4)),
    "cross products": (lambda x: umbra.linalg.cross(x, x.flip(0) + 1) + umbra.linalg.cross(x, umbra.tensor([[1.0, 2.0, 3.0]])), (4, 3)),
    "dots": (lambda x: umbra.vdot(x, x + 1), (4,)),
    "bounds that are tensors": (lambda x: umbra.clamp_min(x, x.flip(0)) + umbra.clamp_max(x, x.mean()), (4,)),
    "all of dimensions": (lambda x: (umbra.all(x > 0, dim=(0, 1)), umbra.all((x > 0).to(umbra.uint8), dim=(0,), keepdim=True)), (3, 4)),
    "sums of powers": (lambda x: umbra.logaddexp2(x, x.flip(0)) + umbra.logaddexp(x, x - 2), (4,)),
    "logarithms of the normal distribution": (lambda x: umbra.special.log_ndtr(x - 2), (6,)),
    "gammas of several variables": (lambda x: umbra.mvlgamma(x + 3, 3), (4,)),
    "fills at an index": (lambda x: x.index_fill(0, umbra.tensor([0, 2]), umbra.tensor(5.0)), (4, 2)),
    "margins": (lambda x: F.multi_margin_loss(x, umbra.tensor([1, 0]), p=2, weight=umbra.tensor([1.0, 2.0, 3.0])), (2, 3)),
    "margins one by one": (lambda x: F.multi_margin_loss(x, umbra.tensor([1, 0]), margin=0.5, reduction="none"), (2, 3)),
    "norms of weights": (lambda x: umbra._weight_norm(x, x[:, :1] + 1, 0), (4, 3)),
    "copies of views": (lambda x: (umbra.t_copy(x), umbra.squeeze_copy(x[:1]), umbra.expand_copy(x[:1], (3, 4)), umbra.diagonal_copy(x),
                                   umbra.unfold_copy(x, 0, 2, 1), umbra.transpose_copy(x, 0, 1), umbra.unsqueeze_copy(x, 1), umbra.alias_copy(x)), (3, 4)),
    "parts of unsafe splits": (lambda x: (*umbra.unsafe_split(x, 2), *umbra.unsafe_chunk(x, 3), *umbra.unsafe_split_with_sizes(x, [1, 4])), (5,)),
    "least and most": (lambda x: tuple(umbra.aminmax(x, dim=1)), (3, 4)),
}


@pytest.mark.parametrize("name", FIXED)
def test_parts_compute_what_the_operator_computes(name):
    function, sizes = FIXED[name]
    x = numbers(*sizes)
    program = export(Function(function), (x,)).run_decompositions()
    assert_same(program.module()(x), function(x))


@pytest.mark.parametrize("mode", ["nearest", "linear", "nearest-exact"])
def test_halves_are_resampled_as_floats(mode):
    x = numbers(1, 2, 6).to(umbra.bfloat16)
    program = export(Function(lambda x: F.interpolate(x, size=9, mode=mode)), (x,)).run_decompositions()
    assert_same(program.module()(x), F.interpolate(x, size=9, mode=mode))


DYNAMIC = {
    "nearest to a size": lambda x: F.interpolate(x[None], size=7),
    "linear to a size": lambda x: F.interpolate(x[None], size=7, mode="linear"),
    "linear by a scale": lambda x: F.interpolate(x[None], scale_factor=1.5, mode="linear"),
    "rolls": lambda x: x.roll(1, 1) + x.roll(2),
    "reflections": lambda x: F.pad(x, (1, 2), mode="reflect"),
    "repetitions of the edge": lambda x: F.pad(x, (1, 2), mode="replicate"),
    "diagonals": lambda x: umbra.diag_embed(x, 1),
    "renorm": lambda x: x.renorm(2, 1, 1.0),
    "blocks": lambda x: umbra.block_diag(x, x),
    "traces": lambda x: x.trace(),
    "padding to a size": lambda x: F.pad(x, (0, 8 - x.shape[1])),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_parts_hold_for_other_sizes(name):
    program = export(Function(DYNAMIC[name]), (numbers(3, 4),), dynamic_shapes=({1: Dim.DYNAMIC},)).run_decompositions()
    for size in (4, 5, 9):
        x = numbers(3, size)
        assert_same(program.module()(x), DYNAMIC[name](x))


def test_a_decomposition_that_reads_a_size_narrows_the_program():
    def fixed(x):
        return x * 0 + int(x.shape[0])

    program = export(Function(lambda x: x.sin()), (numbers(3),), dynamic_shapes=({0: Dim.DYNAMIC},))
    table = {umbra.ops.aten.sin.default: fixed}
    decomposed = program.run_decompositions(table)
    assert decomposed.module()(numbers(3)).tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(AssertionError, match=r"x\.size\(\)\[0\] == 3"):
        decomposed.module()(numbers(4))


def test_bytes_are_resampled_to_bytes():
    x = (numbers(1, 2, 5, 6) * 60).to(umbra.uint8)
    program = export(Function(lambda x: F.interpolate(x, size=(9, 4), mode="bicubic")), (x,)).run_decompositions()
    result, expected = program.module()(x), F.interpolate(x, size=(9, 4), mode="bicubic")
    assert_same(result, expected)


def test_attention_whose_keys_are_shared_by_groups_of_heads_comes_apart():
    class Attention(umbra.nn.Module):
        def forward(self, q, k, v):
            return umbra.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    example = umbra.randn(1, 8, 3, 4), umbra.randn(1, 2, 3, 4), umbra.randn(1, 2, 3, 4)
    program = umbra.export.export(Attention(), example).run_decompositions()
    assert "scaled_dot_product" not in program.graph_module.code
    assert umbra.allclose(program.module()(*example), Attention()(*example), atol=1e-6)


@pytest.mark.parametrize("n, m", [(255, 255), (256, 256), (300, 7), (3, 300)])
def test_large_identities_have_ones_on_the_diagonal_alone(n, m):
    program = export(Function(lambda x: umbra.eye(n, m)), (umbra.ones(1),)).run_decompositions()
    assert umbra.equal(program.module()(umbra.ones(1)), umbra.eye(n, m))
    dynamic = export(Function(lambda x: umbra.eye(x.shape[0], 3)), (umbra.ones(5),), dynamic_shapes={"x": {0: Dim.AUTO}}).run_decompositions()
    assert umbra.equal(dynamic.module()(umbra.ones(n)), umbra.eye(n, 3))


@pytest.mark.parametrize("function", [
    lambda x: x.t().index_add(0, umbra.tensor([0]), umbra.ones(1, 3)),
    lambda x: x.t().index_copy(0, umbra.tensor([0]), umbra.ones(1, 3)),
    lambda x: x.t().masked_fill(x.t() > 0, 1),
    lambda x: x.t().masked_fill(x.t() > 0, umbra.tensor(2)),
    lambda x: x.t().renorm(2, 0, 1.0),
    lambda x: x.reshape(2, 3, 2).transpose(0, 1).triu(1),
    lambda x: (x.reshape(3, 2, 2).transpose(0, 1) > 1).tril(),
    lambda x: x[:, :2].take(umbra.tensor([0, 3])),
])
def test_results_are_laid_out_as_those_of_the_operator(function):
    x = numbers(3, 4)
    result = export(Function(function), (x,)).run_decompositions().module()(x)
    assert_same(result, function(x))
    assert result.stride() == function(x).stride()


@pytest.mark.parametrize("dtype, written", [(umbra.float32, 1.0), (umbra.float16, 1.0), (umbra.int32, 1), (umbra.bool, True)])
def test_a_number_that_fills_is_written_as_an_element(dtype, written):
    program = export(Function(lambda x: x.masked_fill(x > 1, 1)), (numbers(3, 4).to(dtype),)).run_decompositions()
    (number,) = [node.args[0] for node in program.graph.nodes if str(node.target) == "aten.scalar_tensor.default"]
    assert number == written and type(number) is type(written)
