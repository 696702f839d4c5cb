"""Operators of users under transforms: batching rules, derivatives inside of them, and writes that shared memory sees."""
from typing import List, Tuple

import pytest

import umbra as torch
from umbra import Tensor, library


def test_a_batching_rule_gets_values_and_dimensions():
    seen = []

    @library.custom_op("testops::scale", mutates_args=())
    def scale(x: Tensor, f: float) -> Tensor:
        return x * f

    @scale.register_vmap
    def _(info, in_dims, x, f):
        seen.append((info.batch_size, in_dims, x.dim()))
        return scale(x, f) + 100, in_dims[0]
    out = torch.func.vmap(lambda x: scale(x, 2.0), in_dims=1)(torch.arange(6.0).view(2, 3))
    assert out.tolist() == [[100, 106], [102, 108], [104, 110]]
    assert seen == [(3, (1, None), 2)]


def test_a_batching_rule_may_not_name_a_dimension_that_its_result_has_not():
    op = library.custom_op("testops::misplaced", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    for place, error, message in ((5, IndexError, "dimension 5 of its result is the mapped one, and the result has 1"),
                                  (-2, IndexError, "dimension -2"), ("a", TypeError, "ints and None as out_dims")):
        op.register_vmap(lambda info, in_dims, x: (x, place))
        with pytest.raises(error, match=message):
            torch.vmap(op)(torch.ones(2))
    op.register_vmap(lambda info, in_dims, x: (x, -1))
    assert torch.vmap(op)(torch.ones(2)).tolist() == [1, 1]


def test_a_batching_rule_of_lists_and_several_results():
    @library.custom_op("testops::pair", mutates_args=())
    def pair(xs: List[Tensor], y: Tensor) -> Tuple[Tensor, Tensor]:
        return xs[0] + xs[1], y.clone()

    @pair.register_vmap
    def _(info, in_dims, xs, y):
        assert in_dims == ([0, None], None)
        return pair(xs, y), (0, None)
    first, second = torch.func.vmap(lambda x, c: pair([x, c], c), in_dims=(0, None), out_dims=(0, None))(torch.ones(3, 2), torch.ones(2))
    assert first.shape == (3, 2) and second.shape == (2,)


def test_custom_operators_on_values_without_derivatives_inside_transforms():
    @torch.library.custom_op("inside::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2
    doubled.register_fake(torch.empty_like)
    x = torch.tensor([1.0, 2.0])
    assert torch.func.grad(lambda x: (doubled(torch.ones(2)) * x).sum())(x).tolist() == [2, 2]
    assert torch.func.grad(lambda x: (doubled(x.detach()) * x).sum())(x).tolist() == [2, 4]
    assert torch.func.vmap(torch.func.grad(lambda x: doubled(x.detach()) * x))(x).tolist() == [2, 4]
    assert torch.func.jvp(lambda x: doubled(torch.ones(2)) * x, (x,), (x,))[1].tolist() == [2, 4]


def test_a_rule_of_vmap_takes_no_tensors_by_name():
    with library._scoped_library("named_tensors", "FRAGMENT") as own:
        own.define("foo(Tensor x, *, Tensor y) -> Tensor")
        with pytest.raises(NotImplementedError, match="register_vmap with kwarg-only Tensor args"):
            library.register_vmap("named_tensors::foo", lambda info, in_dims, x, *, y: (x, 0))


def test_a_batching_rule_lives_as_long_as_its_library():
    with library._scoped_library("ruled", "DEF") as owner:
        owner.define("scale(Tensor x, *, float by) -> Tensor")
        owner.impl("scale", lambda x, by: x * by, "CPU")
        seen, x = [], torch.ones(3, 2)

        def rule(info, in_dims, x, *, by):
            seen.append((info.batch_size, in_dims))
            return x * by, in_dims[0]
        with library._scoped_library("ruled", "FRAGMENT") as guest:
            library.register_vmap("ruled::scale", rule, lib=guest)
            assert torch.vmap(lambda x: torch.ops.ruled.scale(x, by=2.))(x).sum() == 12 and seen == [(3, (0,))]
        assert torch.vmap(lambda x: torch.ops.ruled.scale(x, by=2.))(x).sum() == 12 and len(seen) == 1


def test_a_written_tensor_that_shares_memory_with_another_argument_is_not_lost():
    @library.custom_op("testops::add_both", mutates_args=("x",))
    def add_both(x: Tensor, y: Tensor) -> None:
        x.add_(1)
        x.add_(y)

    @library.custom_op("testops::double_all", mutates_args=("xs",))
    def double_all(xs: List[Tensor]) -> None:
        for x in xs:
            x.mul_(2)

    def same(x):
        add_both(x, x)
        return x + 0

    def overlapping(x):
        double_all([x[:2], x[1:]])
        return x + 0

    def side_by_side(x):
        double_all([x[:1], x[1:]])
        add_both(x[::2], x[1::2])
        return x + 0
    for function, expected in ((same, [4., 6., 8., 10.]), (overlapping, [2., 8., 6., 8.])):
        x = torch.tensor([1., 2., 3., 4.])
        with pytest.warns(UserWarning, match="shares memory with another argument"):
            compiled = torch.compile(function, backend="aot_eager")(x)
        assert compiled.tolist() == x.tolist() == expected
        with pytest.raises(NotImplementedError, match="^testops::(add_both|double_all): a tensor that it writes shares memory"):
            torch.compile(function, backend="aot_eager", fullgraph=True)(x)
    x = torch.tensor([1., 2., 3., 4.])
    assert torch.compile(side_by_side, backend="aot_eager", fullgraph=True)(x).tolist() == x.tolist() == [7., 4., 15., 8.]


def test_parts_side_by_side_are_written_whatever_their_sizes_are():
    @library.custom_op("testops::double_first", mutates_args=("x",))
    def double_first(x: Tensor, y: Tensor) -> None:
        x.mul_(2).add_(y)

    @torch.compile(backend="aot_eager", fullgraph=True, dynamic=True)
    def compiled(cache):
        double_first(cache[0], cache[1])
        return cache + 0
    for size in (3, 4, 5):
        cache = torch.ones(2, size, 2)
        assert compiled(cache).tolist() == cache.tolist() == [[[3., 3.]] * size, [[1., 1.]] * size]
