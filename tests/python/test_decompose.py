"""run_decompositions: programs without writes and in terms of fewer operators."""
import copy
import io

import pytest

import umbra as torch
from umbra.export import Dim, default_decompositions, export, load, save


class Writing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        self.count.add_(1)
        y = self.linear(x)
        y.relu_()
        x.mul_(2)
        return torch.nn.functional.silu(y) + self.count, x.reshape(-1)


def operators(program):
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


def exported():
    torch.manual_seed(0)
    module = Writing()
    return module, export(module, (torch.randn(2, 3),), dynamic_shapes={"x": {0: Dim("n")}})


class TestTables:
    def test_the_core_table_takes_layers_apart(self):
        _, program = exported()
        assert operators(program.run_decompositions()) == [
            "aten.add.Tensor", "aten.permute.default", "aten.addmm.default", "aten.relu.default", "aten.mul.Tensor", "aten.sigmoid.default",
            "aten.mul.Tensor", "aten.add.Tensor", "aten.view.default"]

    def test_an_empty_table_takes_writes_out_and_nothing_else(self):
        _, program = exported()
        assert operators(program.run_decompositions({})) == [
            "aten.add.Tensor", "aten.linear.default", "aten.relu.default", "aten.mul.Tensor", "aten.silu.default", "aten.add.Tensor", "aten.view.default"]

    def test_operators_taken_out_of_the_table_stay(self):
        _, program = exported()
        table = default_decompositions()
        del table[torch.ops.aten.linear.default]
        assert "aten.linear.default" in operators(program.run_decompositions(table))

    def test_functions_of_the_users(self):
        _, program = exported()
        table = {torch.ops.aten.linear.default: lambda x, w, b: x @ w.t() - b}
        assert "aten.sub.Tensor" in operators(program.run_decompositions(table))


class TestPrograms:
    def test_writes_are_results_that_the_signature_names(self):
        _, program = exported()
        signature = program.run_decompositions().graph_signature
        assert signature.buffers_to_mutate == {"add": "count"} and signature.user_inputs_to_mutate == {"mul": "x"}

    def test_gives_and_writes_what_the_module_does(self):
        module, program = exported()
        decomposed, module = program.run_decompositions().module(), copy.deepcopy(module)
        x = torch.randn(5, 3)
        given, expected = x.clone(), x.clone()
        for mine, theirs in zip(decomposed(given), module(expected)):
            assert torch.allclose(mine, theirs)
        assert torch.equal(given, expected) and torch.equal(decomposed.count, module.count)

    def test_the_program_itself_stays(self):
        _, program = exported()
        before = str(program)
        assert program.run_decompositions().dialect == "ATEN"
        assert str(program) == before and program.dialect == "TRAINING"

    def test_twice_is_once(self):
        _, program = exported()
        once = program.run_decompositions()
        twice = once.run_decompositions()  # which numbers its nodes anew, as in torch
        assert operators(twice) == operators(once)
        x = torch.randn(4, 3)
        assert torch.equal(twice.module()(x.clone())[1], once.module()(x.clone())[1])  # the first holds the buffer that each call changes

    def test_outlives_a_file(self):
        module, program = exported()
        file = io.BytesIO()
        save(program.run_decompositions(), file)
        file.seek(0)
        x = torch.randn(4, 3)
        assert torch.allclose(load(file).module()(x.clone())[0], module(x.clone())[0])

    def test_nodes_keep_their_modules(self):
        _, program = exported()
        node = next(node for node in program.run_decompositions().graph.nodes if node.name == "addmm")
        assert list(node.meta["nn_module_stack"].values())[-1][0] == "linear"

    def test_numbers_from_data_keep_their_assertions(self):
        class Picking(torch.nn.Module):
            def forward(self, x, n):
                count = n.item()
                torch._check(count >= 1)
                torch._check(count <= 4)
                return x[:count]
        program = export(Picking(), (torch.arange(6), torch.tensor(2))).run_decompositions()
        assert sum("_assert_scalar" in name for name in operators(program)) >= 2
        assert torch.equal(program.module()(torch.arange(6), torch.tensor(3)), torch.arange(3))


def test_writes_to_memory_that_inputs_share_are_refused():
    """A program of values would read the other input as it was before."""
    class Write(torch.nn.Module):
        def forward(self, x, y):
            x.add_(1)
            return y + 0

    class Buffers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("whole", torch.zeros(4))
            self.register_buffer("part", self.whole[:2])

        def forward(self, x):
            self.whole.add_(1)
            return self.part + x
    x = torch.ones(4)
    for module, given in ((Write(), (x, x[:2])), (Buffers(), (torch.ones(2),))):
        with pytest.raises(AssertionError, match="shares"):
            torch.export.export(module, given).run_decompositions()
    apart = torch.export.export(Write(), (torch.ones(4), torch.ones(2))).run_decompositions()
    assert apart.module()(torch.ones(4), torch.ones(2)).tolist() == [1, 1]


def test_results_that_are_written_are_the_tensors_themselves():
    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(2))

        def forward(self, x):
            value = x * 2 + self.state
            self.state.copy_(value)
            x.mul_(3)
            return value, self.state, x
    module = torch.export.export(Both(), (torch.ones(2),)).run_decompositions().module()
    x = torch.ones(2)
    value, state, result = module(x)
    assert state is module.state and result is x and value is not module.state
    module(x)
    assert value.tolist() == [2, 2] and state.tolist() == [8, 8] and x.tolist() == [9, 9]


def test_state_that_shares_memory_in_a_file():
    class Buffers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("whole", torch.zeros(4))
            self.register_buffer("part", self.whole[:2])

        def forward(self, x):
            self.whole.add_(1)
            return self.part + x
    file = io.BytesIO()
    save(export(Buffers(), (torch.ones(2),)), file)
    file.seek(0)
    program = load(file)
    with pytest.raises(AssertionError, match="shares"):
        program.run_decompositions()
    module = program.module()
    assert [module(torch.ones(2)).tolist() for _ in range(2)] == [[2, 2], [3, 3]]


def test_bools_are_filled_with_bools():
    class Masks(torch.nn.Module):
        def forward(self, x):
            return torch.ones(2, dtype=torch.bool), torch.zeros_like(x, dtype=torch.bool), x.new_ones(2), torch.ones(2, dtype=torch.int32)
    graph = export(Masks(), (torch.ones(2),)).run_decompositions().graph
    assert [node.args[1] for node in graph.nodes if node.op == "call_function"] == [True, False, 1, 1]
    assert [type(node.args[1]) for node in graph.nodes if node.op == "call_function"] == [bool, bool, int, int]


def test_symbols_of_files_are_read_from_the_inputs_that_name_them():
    class Sizes(torch.nn.Module):
        def forward(self, x, y):
            return torch.zeros(x.shape[0]) + x.sum() + y.sum()
    file, dim = io.BytesIO(), Dim("d")
    save(export(Sizes(), (torch.ones(5), torch.ones(5)), dynamic_shapes=({0: dim}, {0: dim})), file)
    file.seek(0)
    (size,) = [node for node in load(file).run_decompositions().graph.nodes if str(node.target) == "aten.sym_size.int"]
    assert (size.name, str(size.args[0])) == ("sym_size_int_3", "y")


# ---- recurrent networks ----

LSTM_STEP = "view permute addmm view add split_with_sizes getitem getitem getitem getitem sigmoid sigmoid tanh sigmoid mul mul add tanh mul"
GRU_STEP = ("split_with_sizes getitem getitem getitem view permute addmm view split_with_sizes getitem getitem getitem add sigmoid add sigmoid mul add tanh "
            "sub mul add")


def short_names(program):
    return [node.target._schema.name.removeprefix("aten::") if hasattr(node.target, "_schema") else node.target.__name__
            for node in program.graph.nodes if node.op == "call_function"]


def test_recurrent_networks_come_apart_step_by_step():
    x = torch.randn(2, 2, 3)
    lstm = short_names(export(torch.nn.LSTM(3, 4), (x,)).run_decompositions())
    assert lstm == ("full full slice squeeze slice squeeze unsqueeze unsqueeze view permute addmm view slice slice squeeze squeeze "
                    f"{LSTM_STEP} {LSTM_STEP} cat squeeze squeeze cat view cat view").split()
    gru = short_names(export(torch.nn.GRU(3, 4), (x,)).run_decompositions())
    assert gru == ("full slice squeeze view permute addmm view unsqueeze slice slice squeeze squeeze "
                   f"{GRU_STEP} {GRU_STEP} cat squeeze cat view").split()


@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"num_layers": 2, "batch_first": True}, {"bias": False}, {"num_layers": 2, "dropout": 0.5}])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_the_parts_of_a_recurrent_network_compute_what_it_does(kind, options):
    torch.manual_seed(0)
    module = getattr(torch.nn, kind)(3, 4, **options)
    x = torch.randn(3, 2, 3)
    program = export(module, (x,), dynamic_shapes=({0 if options.get("batch_first") else 1: Dim("batch")},))
    parts = program.run_decompositions()
    assert not any(name.startswith(("rnn", "gru", "lstm")) for name in short_names(parts))
    x = torch.randn(5, 2, 3) if options.get("batch_first") else torch.randn(3, 5, 3)
    torch.manual_seed(1)
    expected = torch.utils._pytree.tree_leaves(module(x))
    torch.manual_seed(1)
    given = torch.utils._pytree.tree_leaves(parts.module()(x))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(given, expected, strict=True))


def test_projections_and_given_states_come_apart_too():
    module = torch.nn.LSTM(3, 4, proj_size=2, bidirectional=True)
    inputs = torch.randn(3, 2, 3), (torch.randn(2, 2, 2), torch.randn(2, 2, 4))
    given = torch.utils._pytree.tree_leaves(export(module, inputs).run_decompositions().module()(*inputs))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(given, torch.utils._pytree.tree_leaves(module(*inputs)), strict=True))


# ---- parameters that are trained ----

@pytest.mark.parametrize("mode", ["mean", "sum", "max"])
def test_a_bag_of_trained_embeddings_has_a_gradient_after_decompositions(mode):
    module = torch.nn.EmbeddingBag(5, 3, mode=mode)
    inputs = torch.tensor([1, 2, 3, 4]), torch.tensor([0, 2])
    program = export(module, inputs)
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    for each in (program, load(file)):
        parts = each.run_decompositions()
        assert operators(parts)[0] == "aten._embedding_bag.default"
        run = parts.module()
        run(*inputs).sum().backward()
        module.zero_grad()
        module(*inputs).sum().backward()
        assert torch.equal(next(run.parameters()).grad, module.weight.grad)
    module.weight.requires_grad_(False)
    assert operators(export(module, inputs).run_decompositions())[0] == "aten._embedding_bag_forward_only.default"


def test_products_of_batches_with_trained_matrices_are_products_of_rows():
    class Product(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.layer = torch.nn.Parameter(torch.ones(3, 4)), torch.nn.Linear(3, 2)

        def forward(self, x):
            return x.transpose(0, 1) @ self.weight, self.layer(x.transpose(0, 1))
    program = export(Product(), (torch.ones(2, 5, 3),)).run_decompositions()
    assert short_names(program) == "permute clone view mm view permute permute expand view expand view bmm view add".split()
