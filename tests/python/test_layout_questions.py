"""Programs that go by how tensors lie in memory, captured for sizes of two and more: at 0 and 1 they give what the eager run gives, or refuse."""
import pytest

import umbra
from umbra import nn
from umbra.export import Dim, export


def write_to_a_reshape(x):
    y = x.t().reshape(-1)  # a copy, and where a size is 1 a view of x
    y.add_(1)
    return x * 2, y


def write_to_a_contiguous_one(x):
    y = x.t().contiguous()
    y.add_(1)
    return x * 2, y


def write_to_what_was_copied(x):
    y = x.t().flatten()
    x.mul_(3)
    return y + 1


def write_to_a_sum_to_size(x):
    y = x.sum_to_size(1, x.shape[1])
    y.add_(1)
    return x * 2, y


def write_between_copies(x):
    y = x.clone()
    y.t().contiguous().mul_(3)
    return y


def write_to_a_reshape_that_was_contiguous(x):
    y = x[:, :-1].reshape(-1)  # where one column is left, a view of x, which is not contiguous
    y.contiguous().add_(1)
    return x * 2, y


def write_to_a_padded_one(x):
    y = umbra.nn.functional.pad(x.t(), (0, x.shape[0] % 2))  # lies as x.t() does where there is nothing to pad
    z = y.contiguous()
    y.add_(1)
    return y * 2, z


def write_to_a_copy_of_a_reshape(x):
    y = x.unsqueeze(0).expand(2, -1, -1).reshape(-1, x.shape[1]).t().clone()  # row by row, where the reshape is a view
    y.t().reshape(-1)[:1] = 7.
    return y


def write_to_a_part_of_an_expanded_one(x):
    x.expand(2, *x.shape).diagonal().add_(1)
    x.expand(3, *x.shape)[1].mul_(2)
    return x + 1


PROGRAMS = {
    "a write to a reshape": write_to_a_reshape, "a write to contiguous()": write_to_a_contiguous_one, "a write to what was copied": write_to_what_was_copied,
    "a write to sum_to_size": write_to_a_sum_to_size, "a write to a copy of a copy": write_between_copies,
    "a write to a reshape that was contiguous": write_to_a_reshape_that_was_contiguous, "a write to a padded tensor": write_to_a_padded_one,
    "a write to a copy of a reshape": write_to_a_copy_of_a_reshape, "a write to a part of an expanded tensor": write_to_a_part_of_an_expanded_one,
    "a stride of one element": lambda x: x + x.select(1, 0).view(1, -1).sort(1)[0][:, :1].stride(0),
    "contiguity": lambda x: x + 1 if x.t().is_contiguous() else x * 2,
    "contiguity of a reshape": lambda x: x + 1 if x.unsqueeze(0).expand(3, -1, -1).reshape(-1, x.shape[1]).is_contiguous() else x * 2,
    "contiguity of what a reshape became": lambda x: x + 1 if (x.unsqueeze(0).permute(2, 0, 1).reshape(x.shape[1], -1) + 1).is_contiguous() else x * 2,
    "contiguity of overlapping windows": lambda x: x * 3 if (umbra.cat([x, x]).flatten().unfold(0, 3, 1) + 1).is_contiguous() else x - 1,
    "contiguity as an operator": lambda x: x + 1 if umbra.ops.aten.is_contiguous(x.t()) else x * 2,
    "contiguity of a part": lambda x: x + 1 if x[:, 2:].is_contiguous() else x * 2,
    "a stride": lambda x: x * x.t().contiguous().stride(1), "an input's strides": lambda x: x * x.stride(0),
    "a stride of a part": lambda x: x + x[:, 2:].contiguous().stride(0),
    "an offset": lambda x: x + x[:, 1:].contiguous().storage_offset(),
    "being a view": lambda x: x + 1 if x.t().reshape(-1)._is_view() else x * 2, "a base": lambda x: x + 1 if x.t().reshape(-1)._base is not None else x * 2,
    "the same memory": lambda x: x + 1 if x.t().contiguous().is_set_to(x.t()) else x * 2,
    "the size of a storage": lambda x: x + x[:, 1:].reshape(-1).untyped_storage().nbytes(),
    "elements by their place": lambda x: x[:, :-1].reshape(-1).as_strided((2,), (1,)) if x.numel() > 2 else x,
}
SIZES = [0, 1, 2, 3, 5]


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def outcome(function, rows, columns):
    x = umbra.arange(float(rows * columns)).view(rows, columns)
    try:
        result = function(x)
    except (RuntimeError, ValueError, IndexError, AssertionError):
        return "refused"
    return [t.tolist() for t in (result if isinstance(result, tuple) else (result,))] + [x.tolist()]


@pytest.mark.parametrize("dim", [Dim.AUTO, Dim("a", min=0)], ids=["AUTO", "min=0"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_go_by_layouts_are_right_or_refuse(name, dim):
    model = Model(PROGRAMS[name])
    program = export(model, (umbra.ones(3, 4),), dynamic_shapes=({0: dim, 1: Dim.AUTO},))
    accepted = 0
    for module in (program.module(), program.run_decompositions().module()):
        for rows in SIZES:
            for columns in SIZES:
                got = outcome(module, rows, columns)
                accepted += got != "refused"
                assert got in ("refused", outcome(model, rows, columns)), (rows, columns)
    assert accepted >= 4  # those of two and more


def test_what_does_not_ask_for_layouts_takes_sizes_of_one():
    program = export(Model(lambda x: x.t().reshape(-1).view(-1, 1) + x.t().contiguous().sum()), (umbra.ones(3, 4),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    for module in (program.module(), program.run_decompositions().module()):
        assert module(umbra.ones(1, 4)).shape == (4, 1) and module(umbra.ones(3, 1)).shape == (3, 1)


def test_an_input_that_is_contiguous_takes_sizes_of_one():
    program = export(Model(lambda x: x + 1 if x.is_contiguous() else x * 2), (umbra.ones(3, 4),), dynamic_shapes=({0: Dim.AUTO},))
    assert program.module()(umbra.ones(1, 4)).tolist() == [[2.0] * 4]


@pytest.mark.parametrize("number", [
    lambda n, m: round(n * 0.75 + m * 0.25), lambda n, m: umbra.sym_ite(n < m, n, m + 2), lambda n, m: round(n / 3, 1), lambda n, m: umbra._sym_cos(n * 1.0),
    lambda n, m: umbra.sym_ite(n < m, n * 0.5, m / 2), lambda n, m: umbra._sym_log2(n * m)], ids=["round", "ite", "decimal", "cos", "ite of floats", "log2"])
def test_decomposed_programs_compute_with_sizes_as_the_model_does(number):
    model = Model(lambda x: x * number(x.shape[0], x.shape[1]))
    program = export(model, (umbra.ones(3, 4),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    for module in (program.module(), program.run_decompositions().module()):
        for sizes in [(2, 4), (4, 2), (5, 5), (3, 7)]:
            assert module(umbra.ones(sizes)).tolist() == model(umbra.ones(sizes)).tolist()


def test_decomposed_programs_refuse_sizes_for_which_a_comparison_that_they_took_for_known_does_not_hold():
    def choose(x):
        y = x.view(-1, 3).mean(1, keepdim=True).clone()
        y.view(-1, 2)[:3] = 7.
        return umbra.zeros(umbra.sym_ite(y.shape[0] > 1, 1, 3)) + y.sum()
    program = export(Model(choose), (umbra.ones(3, 2),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    for module in (program.module(), program.run_decompositions().module()):
        for rows, columns in [(0, 0), (0, 2), (3, 2), (6, 2), (1, 6)]:
            assert outcome(module, rows, columns) in ("refused", outcome(choose, rows, columns))


def test_decomposed_programs_keep_what_the_model_checks():
    def check(x):
        count = (x > 0).nonzero().shape[0]
        umbra._check(count >= 3)
        return x * count
    module = export(Model(check), (umbra.ones(3, 4),)).run_decompositions().module()
    assert module(umbra.ones(3, 4)).tolist() == [[12.0] * 4] * 3
    with pytest.raises(RuntimeError, match=">= 3"):
        module(umbra.zeros(3, 4))


def test_contiguous_copies_where_a_reshape_of_a_size_that_only_the_run_tells_was_none():
    def write(x):
        y = (x > 3).nonzero().reshape(2, -1).contiguous()  # two elements: the reshape is a view, of columns
        y.t().contiguous()[:1] = 7
        return y
    program = export(Model(write), (umbra.arange(6.).view(3, 2),), dynamic_shapes=({0: Dim.AUTO},))
    for rows in range(1, 6):
        x = umbra.arange(2. * rows).view(rows, 2)
        assert program.module()(x).tolist() == write(x).tolist()


def test_contiguous_of_what_is_contiguous_is_no_call_where_nothing_is_written():
    program = export(Model(lambda x: x.t().reshape(-1).contiguous() + 1), (umbra.ones(3, 4),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    assert [node.target for node in program.graph.nodes if node.op == "call_function"] == [
        umbra.ops.aten.t.default, umbra.ops.aten.reshape.default, umbra.ops.aten.add.Tensor]


def test_a_tensor_that_is_contiguous_is_asked_as_before_whether_it_is_a_view():
    def ask(x):
        y = x[:, :2].reshape(-1).contiguous()
        return x + 1 if y._is_view() or y._base is not None else x * 2
    module = export(Model(ask), (umbra.ones(3, 4),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},)).module()
    assert module(umbra.ones(4, 3)).tolist() == ask(umbra.ones(4, 3)).tolist()


def test_what_is_padded_by_nothing_lies_as_before():
    def ask(x):
        return x + umbra.nn.functional.pad(x[::4, ::4], (0, x.shape[0] % 3)).stride(0)  # one element, far from the next row
    module = export(Model(ask), (umbra.ones(3, 4),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},)).module()
    for rows, columns in [(3, 4), (3, 3), (3, 2), (2, 4), (4, 4)]:
        assert outcome(module, rows, columns) in ("refused", outcome(ask, rows, columns))
    assert outcome(module, 3, 4) != "refused"


def test_a_size_that_follows_from_another_may_follow_to_be_one():
    def ask(x):
        y = x[:, x.shape[0] % 4:]  # one column
        return y + 1 if y.t().reshape(-1).is_contiguous() else y * 2
    module = export(Model(ask), (umbra.ones(6, 3),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},)).module()
    for rows, columns in [(6, 3), (7, 4), (5, 2), (8, 1)]:
        assert outcome(module, rows, columns) in ("refused", outcome(ask, rows, columns))
    assert outcome(module, 7, 4) != "refused"


def test_an_order_of_dimensions_that_only_the_run_tells_is_checked():
    def ask(x):
        y = umbra.cat([x, x[x > 3]]).unfold(0, 3, 1) + 1  # the longer dimension lies further out
        return x * 3 if y.is_contiguous() else x - 1
    module = export(Model(lambda x: ask(x.flatten())), (umbra.arange(8.).view(2, 4),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},)).module()
    outcomes = {(rows, columns): outcome(module, rows, columns) for rows in (2, 3) for columns in (2, 3, 4)}
    for (rows, columns), got in outcomes.items():
        assert got in ("refused", outcome(lambda x: ask(x.flatten()), rows, columns))
    assert outcomes[3, 4] != "refused"


def test_a_layout_that_only_the_run_tells_is_refused():
    def write(x):
        y = x[x.sum(1) > 1]
        y.t().contiguous().mul_(3)
        return y
    program = export(Model(write), (umbra.ones(3, 4),))
    assert program.module()(umbra.ones(3, 4)).tolist() == umbra.ones(3, 4).tolist()
    with pytest.raises(NotImplementedError, match="only the run tells"):
        program.run_decompositions()


def test_a_size_that_only_the_run_tells_lies_as_more_than_one():
    class Row(umbra.nn.Module):
        def forward(self, x):
            row = x.masked_select(x > 2).reshape(-1, 1).movedim(0, -1)  # strides of 1 and 1
            return row + sum((row * 2).t().contiguous().stride())

    x = umbra.arange(15.0).view(3, 5)
    program = umbra.export.export(Row(), (x,), dynamic_shapes=({0: umbra.export.Dim.AUTO, 1: umbra.export.Dim.AUTO},)).module()
    for example in (x, x[:2], x[:2, :2]):
        try:
            assert program(example).tolist() == Row()(example).tolist()
        except RuntimeError as error:
            assert "u0 >= 2" in str(error) and example.gt(2).sum() < 2
