"""Operators over lists: kernels of libraries beside their gradients, order of writes under capture."""
import pytest

import umbra as torch
from umbra.fx.experimental.proxy_tensor import make_fx


def test_a_kernel_of_a_library_leaves_the_gradient_and_goes_without_a_trace():
    def gradient():
        x = torch.ones(2, requires_grad=True)
        torch._foreach_exp([x])[0].sum().backward()
        return x.grad.tolist()

    expected = gradient()
    library = torch.library.Library("aten", "IMPL")
    library.impl("_foreach_exp", lambda tensors: [t.exp() for t in tensors], "CPU")
    assert gradient() == expected
    library._destroy()
    assert gradient() == expected


def test_what_reads_an_earlier_write_of_the_same_call_is_refused_when_captured():
    def swap(a, b):
        a, b = a.clone(), b.clone()
        torch._foreach_add_([a, b], [b, a])
        return a, b

    a, b = torch.ones(2), torch.full((2,), 3.0)
    assert [t.tolist() for t in swap(a, b)] == [[4, 4], [7, 7]]
    with pytest.raises(NotImplementedError, match="read after it was written"):
        make_fx(torch.func.functionalize(swap))(a, b)


def test_hooks_after_accumulation_see_gradients_of_chosen_inputs():
    seen = []
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (x * y).sum().backward(inputs=[x])
    assert seen == [[1, 1]] and y.grad is None


def test_complex_factors_under_vmap_are_not_conjugated():
    matrix, vectors, start = torch.ones(2, 2, dtype=torch.complex64), torch.ones(3, 2, dtype=torch.complex64), torch.ones(2, dtype=torch.complex64)
    batched = torch.func.vmap(lambda v: torch.addmv(start, matrix, v, beta=1j, alpha=2j))(vectors)
    assert torch.equal(batched[0], torch.addmv(start, matrix, vectors[0], beta=1j, alpha=2j))
