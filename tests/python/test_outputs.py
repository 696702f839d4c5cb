"""Tensors that a caller gives to be written: what is refused, what is said, and what they are afterwards."""
import warnings

import pytest

import umbra as torch


def test_an_output_that_lies_in_an_input_is_refused_as_it_was_given_and_keeps_its_size():
    memory = torch.ones(6)
    part = memory[1:3]
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single memory location"):
        torch.add(memory[2:6], 1, out=part)
    assert part.shape == (2,) and memory.tolist() == [1.0] * 6


def test_an_output_of_another_size_is_given_it_with_a_warning():
    with pytest.warns(UserWarning, match=r"was resized since it had shape \[2\], which does not match the required output shape \[2, 3\]"):
        torch.stack([torch.ones(3), torch.ones(3)], out=torch.ones(2))
    with pytest.warns(UserWarning, match=r"was resized since it had shape \[2\]") as seen:
        torch.sort(torch.ones(3), out=(torch.ones(2), torch.ones(2).long()))
    assert len(seen) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.add(torch.ones(3), 1, out=torch.ones(0))  # an empty one is meant to grow
        torch.zeros(3, out=torch.ones(2))
        torch.bernoulli(torch.ones(3), out=torch.ones(2))


def test_a_copy_that_does_not_fit_names_both_shapes():
    with pytest.raises(RuntimeError, match=r"output with shape \[2, 1\] doesn't match the broadcast shape \[3, 2, 2\]"):
        torch.ones(2, 1).copy_(torch.ones(3, 1, 2))


@pytest.mark.parametrize("change, name", [(lambda y: y.pow(2), "Pow"), (lambda y: 2.0 ** y, "Pow2"), (lambda y: y.sum(0, keepdim=True), "Sum1"),
                                          (lambda y: y.copy_(torch.ones(2, requires_grad=True)), "torch::autograd::CopyBackwards")])
def test_a_write_that_a_gradient_needs_is_named_by_what_made_the_tensor(change, name):
    y = change(torch.ones(2, requires_grad=True) * 1)
    result = y.sin()
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match=f"which is output 0 of {name}, is at version"):
        result.sum().backward()


def test_functions_without_an_out_argument():
    """Variants that exist for functionalisation alone are not offered to Python's functions; torch.ops has them."""
    x, out = torch.tensor([1.0, -2.0]), torch.empty(2)
    for function in (torch.relu, torch.isnan, torch.clone, torch.zeros_like, torch.sum, torch.prod, torch.median):
        with pytest.raises(TypeError):
            function(x, out=out)
    for function in (torch.relu, torch.allclose, x.sum, x.add_):
        with pytest.raises(TypeError):
            function(x, out=None)
    assert torch.sum(x, 0, out=torch.empty(())).item() == -1 and torch.add(x, 1, out=None).tolist() == [2, -1]
    assert torch.unsqueeze_copy(x, 0, out=torch.empty(0)).shape == (1, 2)
    assert torch.ops.aten.relu.out(x, out=out).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.complex64])
def test_matrices_cast_to_an_output_of_another_type_are_not_transposed(dtype):
    factor = torch.tensor([[2.0, 0.0, 0.0], [0.5, 1.5, 0.0], [0.25, 1.0, 1.0]])
    for size in ((3, 3), (0,)):
        out = torch.cholesky_inverse(factor, out=torch.zeros(size, dtype=dtype))
        torch.testing.assert_close(out, torch.cholesky_inverse(factor).to(dtype))
        out = torch.cholesky_inverse(factor.mT, upper=True, out=torch.zeros(size, dtype=dtype))
        torch.testing.assert_close(out, torch.cholesky_inverse(factor).to(dtype))


def test_an_eigenvector_cast_to_an_output_of_another_type_is_a_column():
    matrix = torch.tensor([[1.0, 2.0, 0.5], [0.0, 3.0, 1.0], [0.0, 0.0, 6.0]])
    values, vectors = torch.linalg.eig(matrix, out=(torch.zeros(0, dtype=torch.complex128), torch.zeros(3, 3, dtype=torch.complex128)))
    torch.testing.assert_close(matrix.to(torch.complex128) @ vectors, vectors * values, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name,arguments,expected", [("mse_loss_backward", (1,), 0.25), ("smooth_l1_loss_backward", (1, 1.0), 0.125)])
def test_a_gradient_of_integers_is_written_to_an_output_of_the_common_type(name, arguments, expected):
    grad, self, target = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.int64), torch.full((2, 2), 0.5)
    backward = getattr(torch.ops.aten, name).grad_input
    for dtype in (torch.float64, torch.float32, torch.float16):
        out = backward(grad, self, target, *arguments, grad_input=torch.zeros(2, 2, dtype=dtype))
        assert out.dtype == dtype and out.tolist() == [[expected] * 2] * 2
    with pytest.raises(RuntimeError, match="result type Double can't be cast to the desired output type Long"):
        backward(grad.double(), self, target, *arguments, grad_input=torch.zeros(2, 2, dtype=torch.int64))


def test_logsumexp_is_not_rounded_to_the_input_before_a_wider_output():
    for dtype, tolerance in ((torch.float32, 1e-12), (torch.bfloat16, 1e-12), (torch.int64, 1e-12)):
        x = torch.tensor([[0.37, 0.74], [1.11, 1.48]]).mul(2).to(dtype)
        out = torch.logsumexp(x, 1, out=torch.zeros(2, dtype=torch.float64))
        torch.testing.assert_close(out, torch.logsumexp(x.double(), 1), rtol=tolerance, atol=0)
        single = torch.special.logsumexp(x, (0, 1), out=torch.zeros((), dtype=torch.float16))
        torch.testing.assert_close(single, torch.logsumexp(x.double(), (0, 1)).half(), rtol=2e-3, atol=0)


@pytest.mark.parametrize("call, text", [
    (lambda a, o: torch.linalg.eigvals(a, out=o()), "torch.linalg.eigvals: Expected eigenvalues to be safely castable from ComplexFloat dtype, but got "
                                                    "eigenvalues with dtype Int"),
    (lambda a, o: torch.linalg.eig(a, out=(o(torch.cfloat), o())), "torch.linalg.eig: Expected eigenvectors to be safely castable from ComplexFloat dtype"),
    (lambda a, o: torch.linalg.lstsq(a, a, out=(o(torch.float), o(torch.float), o(), o())), "torch.linalg.lstsq: Expected singular_values to be safely"),
    (lambda a, o: torch.linalg.pinv(a, 0.1, out=o()), "linalg.pinv: Expected result to be safely castable from Float dtype, but got result with dtype Int"),
    (lambda a, o: torch.geqrf(a, out=(o(torch.float), o())), "torch.geqrf: Expected tau to be safely castable from Float dtype"),
    (lambda a, o: torch.cholesky_inverse(a, out=o()), "cholesky_inverse: Expected result to be safely castable from Float dtype"),
    (lambda a, o: torch.linalg.norm(a, out=o(torch.double)), "linalg.norm expected out tensor dtype Float but got: Double"),
    (lambda a, o: torch.linalg.matrix_norm(a, out=o()), "linalg.matrix_norm expected out tensor dtype Float but got: Int")])
def test_outputs_of_linear_algebra_that_cannot_hold_the_result(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(torch.eye(2), lambda dtype=torch.int: torch.empty(0, dtype=dtype))


def test_a_solution_is_cast_to_its_output():
    a, outputs = torch.eye(2), [torch.empty(0, dtype=dtype) for dtype in (torch.double, torch.float, torch.int, torch.float)]
    torch.linalg.lstsq(a, a, out=tuple(outputs))
    assert torch.equal(outputs[0], a.double()) and outputs[2].dtype is torch.int and outputs[2] == 2


def test_complex_absolute_values_are_written_to_their_type():
    numbers = torch.tensor([3 + 4j])
    assert torch.abs(numbers, out=torch.empty(1, dtype=torch.cfloat)).tolist() == [5 + 0j]
    with pytest.raises(RuntimeError, match="Found dtype ComplexDouble but expected ComplexFloat"):
        torch.abs(numbers, out=torch.empty(1, dtype=torch.cdouble))


def test_edges_of_bins_are_written_to_a_list():
    points, outputs = torch.tensor([[0.0, 1.0], [2.0, 5.0]]), [torch.empty(0), torch.empty(0)]
    torch.ops.aten._histogramdd_bin_edges.out(points, [1, 2], out=outputs)
    assert [edges.tolist() for edges in outputs] == [[0.0, 2.0], [1.0, 3.0, 5.0]]


@pytest.mark.parametrize("function, arguments, types", [
    (torch.max, (0,), (torch.float32, torch.int64)), (torch.sort, (), (torch.float32, torch.int64)), (torch.topk, (1,), (torch.float32, torch.int64)),
    (torch.frexp, (), (torch.float32, torch.int32)), (torch.aminmax, (), (torch.float32, torch.float32)),
    (torch.linalg.qr, (), (torch.float32, torch.float32)), (torch.linalg.slogdet, (), (torch.float32, torch.float32)),
])
def test_several_outputs_may_be_given_as_a_list(function, arguments, types):
    x = torch.tensor([[3.0, 0.1], [1.0, 2.0]])
    outputs = [torch.empty(0, dtype=kind) for kind in types]
    results = function(x, *arguments, out=outputs)
    assert all(result is output for result, output in zip(results, outputs))
    assert all(torch.equal(output, wanted) for output, wanted in zip(outputs, function(x, *arguments)))
    with pytest.raises(TypeError):
        function(x, *arguments, out=outputs[:1])


def test_outputs_of_normal_warn_when_they_change_their_size():
    mean, std = torch.zeros(2, 3), torch.ones(2, 3)
    for args in ((mean, std), (mean, 1.0), (0.0, std)):
        with pytest.warns(UserWarning, match=r"was resized since it had shape \[3\], which does not match the required output shape \[2, 3\]"):
            assert torch.normal(*args, out=torch.zeros(3)).shape == (2, 3)


@pytest.mark.parametrize("name, overload, arguments, takes", [
    ("zeros_like", "out", (), True), ("ones_like", "out", (), True), ("full_like", "out", (2,), True), ("empty_like", "out", (), True),
    ("new_zeros", "out", ([3],), True), ("new_ones", "out", ([3],), True), ("new_full", "out", ([3], 2), True), ("new_empty", "out", ([3],), True),
    ("new_empty_strided", "out", ([3], [1]), True), ("rand_like", "out", (), True), ("randn_like", "generator_out", (None,), True),
    ("randint_like", "out", (5,), False), ("randint_like", "low_dtype_out", (1, 5), False),
])
def test_a_tensor_of_given_numbers_is_written_to_an_output_that_requires_gradients(name, overload, arguments, takes):
    out, function = torch.full((3,), 7.0, requires_grad=True), getattr(getattr(torch.ops.aten, name), overload)
    keywords = {"generator": arguments[0]} if arguments == (None,) else {}
    write = lambda: function(torch.ones(3), *(() if keywords else arguments), **keywords, out=out)
    if takes:
        result = write()
        assert result is out and result.requires_grad and result.is_leaf
        wanted = {"zeros": 0.0, "ones": 1.0, "full": 2.0}
        for part, value in wanted.items():
            assert part not in name or out.tolist() == [value] * 3
    else:
        with pytest.raises(RuntimeError, match="don't support automatic differentiation, but one of the arguments requires grad"):
            write()
        assert out.tolist() == [7.0] * 3
