"""Layers and functions of the package, compiled: each gives what it gives uncompiled, and so does what is saved and loaded again."""
import io

import pytest
import umbra as torch
from jit_library_cases import CASES
from umbra import nn


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors_of(v)]
    return [torch.tensor(value)] if isinstance(value, (bool, int, float)) else []


def same(left, right):
    left, right = tensors_of(left), tensors_of(right)
    return len(left) == len(right) and all(torch.allclose(a, b, atol=1e-5, equal_nan=True) if a.is_floating_point() else torch.equal(a, b)
                                           for a, b in zip(left, right))


def seeded(function, arguments):
    torch.manual_seed(1)
    return function(*arguments)


@pytest.mark.parametrize("name", CASES)
def test_compiled_and_reloaded_it_gives_what_it_gives_uncompiled(name):
    make, arguments = CASES[name]
    torch.manual_seed(0)
    function = make()
    if isinstance(function, nn.Module) and name.startswith("Lazy"):
        function(*arguments())
    buffers = {key: value.clone() for key, value in function.state_dict().items()} if isinstance(function, nn.Module) else {}
    expected = seeded(function, arguments())
    compiled = torch.jit.script(function)

    def restore(module):
        if buffers:
            module.load_state_dict(buffers)

    restore(compiled)
    assert same(seeded(compiled, arguments()), expected)
    buffer = io.BytesIO()
    restore(compiled)
    torch.jit.save(compiled, buffer)
    buffer.seek(0)
    assert same(seeded(torch.jit.load(buffer), arguments()), expected)


def test_a_choice_between_functions_needs_a_constant():
    def pooled(x, indices: bool):
        return torch.nn.functional.max_pool2d(x, 2, return_indices=indices)

    with pytest.raises(RuntimeError, match="return_indices"):
        torch.jit.script(pooled)


def test_a_default_without_an_annotation_says_what_it_is_taken_for():
    def scaled(x, times=3):
        return x * times

    with pytest.raises(RuntimeError, match="it is assumed to be type 'Tensor'"):
        torch.jit.script(scaled)


def test_one_number_for_view_is_a_size_and_no_dtype():
    def flat(x):
        return x.view(-1)

    assert torch.jit.script(flat)(torch.ones(2, 3)).shape == (6,)


def test_tensors_compressed_by_rows_or_columns_are_made_in_scripts():
    def made(starts: torch.Tensor, places: torch.Tensor, values: torch.Tensor):
        rows = torch.sparse_csr_tensor(starts, places, values, size=[2, 2], dtype=values.dtype)
        columns = torch.sparse_csc_tensor(starts, places, values, [2, 2])
        blocks = torch.sparse_bsr_tensor(starts, places, values.reshape(2, 1, 1), size=[2, 2])
        return rows.to_dense(), columns.to_dense(), blocks.to_dense()

    inputs = torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.tensor([1.0, 2.0])
    for got, expected in zip(torch.jit.script(made)(*inputs), made(*inputs)):
        assert torch.equal(got, expected)

    def misnamed(starts: torch.Tensor, places: torch.Tensor, values: torch.Tensor):
        return torch.sparse_csr_tensor(starts, places, values, [2, 2], layout=torch.sparse_csc)
    with pytest.raises(torch.jit.Error, match="sparse csr layout must be SparseCsr"):
        torch.jit.script(misnamed)(*inputs)


def test_functions_are_left_as_they_are_where_the_compiler_is_off():
    from umbra.jit import _state

    def plain(x):
        return x + 1

    module = torch.nn.Linear(1, 1)
    _state.disable()
    try:
        assert torch.jit.script(plain) is plain and torch.jit.trace(plain, (torch.ones(1),)) is plain
        assert torch.jit.script(module) is module and torch.jit.trace_module(module, {"forward": torch.ones(1)}) is module
    finally:
        _state.enable()
    assert isinstance(torch.jit.script(plain), torch.jit.ScriptFunction)


def test_attention_whose_last_projection_changes_the_width():
    class Pool(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.out = (torch.nn.Linear(4, width) for width in (4, 4, 4, 6))

        def forward(self, x):
            return torch.nn.functional.multi_head_attention_forward(
                query=x[:1], key=x, value=x, embed_dim_to_check=x.shape[-1], num_heads=2, in_proj_weight=None,
                in_proj_bias=torch.cat([self.q.bias, self.k.bias, self.v.bias]), bias_k=None, bias_v=None, add_zero_attn=False, dropout_p=0.0,
                out_proj_weight=self.out.weight, out_proj_bias=self.out.bias, training=self.training, need_weights=False,
                use_separate_proj_weight=True, q_proj_weight=self.q.weight, k_proj_weight=self.k.weight, v_proj_weight=self.v.weight)[0]

    pool, x = Pool(), torch.randn(5, 3, 4)
    assert pool(x).shape == (1, 3, 6)
    torch.testing.assert_close(torch.jit.script(pool)(x), pool(x))
