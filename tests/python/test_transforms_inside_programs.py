"""Derivatives that a captured or exported program takes itself, and what meets them there."""
import pytest
import umbra
import umbra.export
from custom_functions import Cube
from export_functions import Function
from umbra import nn
from umbra.autograd import forward_ad
from umbra.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from umbra.fx.experimental.proxy_tensor import make_fx


def exported(function, x):
    return umbra.export.export(Function(function), (x,))


x = umbra.tensor([1.0, 2.0, 3.0])
DERIVATIVES = {"grad": grad(lambda x: Cube.apply(x).sum()), "vjp": lambda x: vjp(Cube.apply, x)[1](x)[0], "jvp": lambda x: jvp(Cube.apply, (x,), (x,))[1],
               "vmap of grad": vmap(grad(Cube.apply)), "jacrev": jacrev(Cube.apply), "jacfwd": jacfwd(Cube.apply)}


@pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES)
def test_a_custom_function_has_its_gradient_in_programs_recorded_above_autograd(derivative):
    other = x + 1
    assert umbra.equal(make_fx(derivative, pre_dispatch=True)(x)(other), derivative(other))
    program = exported(derivative, x)
    assert umbra.equal(program.module()(other), derivative(other)) and derivative(other).any()
    assert umbra.equal(program.run_decompositions().module()(other), derivative(other))


def test_a_program_makes_tensors_of_numbers_inside_a_derivative():
    function = grad(lambda x: (x[umbra.tensor([0, 0, 1])] * umbra.tensor([1.0, 2.0, 3.0])).sum())
    assert exported(function, x).module()(x).tolist() == [3.0, 3.0, 0.0] == function(x).tolist()


def determinant(x):
    return umbra.linalg.det(x.outer(x) + umbra.eye(3, dtype=x.dtype))


@pytest.mark.parametrize("function", [grad(lambda x: grad(determinant)(x).sum()), hessian(determinant), jacfwd(jacrev(determinant))],
                         ids=["grad", "hessian", "forward"])
def test_second_derivatives_of_determinants_with_equal_singular_values(function):
    point, other = umbra.tensor([-0.6, -0.2, 0.1], dtype=umbra.float64), umbra.tensor([-0.3, 0.1, 0.4], dtype=umbra.float64)
    expected = function(point)  # the determinant is 1 + |x|²
    assert umbra.allclose(expected, (2 * umbra.eye(3, dtype=umbra.float64)) if expected.dim() == 2 else umbra.full((3,), 2.0, dtype=umbra.float64))
    assert umbra.allclose(make_fx(function)(point)(other), expected)


def test_captured_derivatives_of_determinants_of_singular_matrices():
    singular = umbra.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=umbra.float64)
    regular = umbra.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=umbra.float64)
    second = grad(lambda a: (grad(umbra.linalg.det)(a) * umbra.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=umbra.float64)).sum())
    captured = make_fx(second)(regular)
    for matrix in (singular, regular):  # the adjugate's first element is the last of the matrix
        assert umbra.allclose(captured(matrix), umbra.tensor([[0.0, 0.0], [0.0, 1.0]], dtype=umbra.float64))


def test_a_tangent_of_a_transform_can_be_asked_for():
    seen = []

    def function(x):
        seen.append(forward_ad.unpack_dual(x * 2))
        return x * 2
    jvp(function, (x,), (x + 1,))
    assert seen[0].tangent.tolist() == [4.0, 6.0, 8.0] and seen[0].primal.tolist() == [2.0, 4.0, 6.0]
    assert forward_ad.unpack_dual(x).tangent is None


def test_the_place_of_a_single_result_is_a_number_or_a_tuple_of_one():
    assert vmap(lambda x: x, out_dims=(1,))(umbra.ones(2, 3)).shape == (3, 2)
    with pytest.raises(ValueError, match="out_dims is not compatible with the structure of `outputs`"):
        vmap(lambda x: x, out_dims=[1])(umbra.ones(2, 3))


def test_places_of_nonzero_elements_of_nothing_are_none():
    from umbra._subclasses.fake_tensor import FakeTensorMode
    from umbra.fx.experimental.symbolic_shapes import ShapeEnv
    assert FakeTensorMode(shape_env=ShapeEnv()).from_tensor(umbra.ones(0, 4)).nonzero().shape == (0, 2)
    with pytest.raises(umbra._subclasses.fake_tensor.DynamicOutputShapeException):  # as where there are some
        FakeTensorMode().from_tensor(umbra.ones(0, 4)).nonzero()


def test_weights_of_a_loss_have_their_derivative_inside_transforms():
    scores, wanted = umbra.tensor([0.3, -0.7, 1.1], dtype=umbra.float64), umbra.tensor([0.9, 0.6, 0.2], dtype=umbra.float64)
    weights, along = scores.exp(), umbra.ones(3, dtype=umbra.float64)
    for name in ("weight", "pos_weight"):
        def loss(w):
            return nn.functional.binary_cross_entropy_with_logits(scores, wanted, **{name: w})
        step = (loss(weights + 1e-6 * along) - loss(weights - 1e-6 * along)) / 2e-6
        assert umbra.allclose(jvp(loss, (weights,), (along,))[1], step) and umbra.allclose(grad(loss)(weights).sum(), step)
        with pytest.raises(RuntimeError, match=f"is not differentiable with respect to argument '{name}'"):
            loss(weights.clone().requires_grad_())


def test_least_squares_and_connectionist_losses_of_a_batch():
    a, b = umbra.randn(2, 3, 2), umbra.randn(2, 3, 1)
    assert umbra.allclose(vmap(lambda a, b: umbra.linalg.lstsq(a, b).solution)(a, b), umbra.linalg.lstsq(a, b).solution, atol=1e-5)
    scores, one = umbra.randn(2, 3, 1, 3).log_softmax(-1), umbra.tensor([1])

    def loss(scores):
        return nn.functional.ctc_loss(scores, umbra.tensor([[1]]), umbra.tensor([3]), one)
    assert umbra.allclose(vmap(loss)(scores), umbra.stack([loss(part) for part in scores]))
    with pytest.raises(RuntimeError, match="operators that can output dynamic shape. Attempted to vmap over aten::nonzero"):
        vmap(umbra.nonzero)(scores)


def test_autocast_casts_inside_derivatives():
    matrix = (umbra.arange(4.0).reshape(2, 2) - 2) / 4

    def product(x):
        with umbra.autocast("cpu", dtype=umbra.bfloat16):
            return x @ x
    loss = grad(lambda x: product(x).sum())
    assert product(matrix).dtype == umbra.bfloat16
    assert loss(matrix).tolist() == [[-1.25, -0.25], [-0.75, 0.25]] and loss(matrix).dtype == umbra.float32
    assert vmap(loss)(umbra.stack([matrix, matrix]))[1].tolist() == [[-1.25, -0.25], [-0.75, 0.25]]
    value, tangent = jvp(product, (matrix,), (matrix,))
    assert (value.dtype, tangent.dtype) == (umbra.bfloat16, umbra.bfloat16) and umbra.equal(tangent, 2 * value)
    assert make_fx(loss)(matrix)(matrix).tolist() == [[-1.25, -0.25], [-0.75, 0.25]]
    with umbra.autocast("cpu", dtype=umbra.bfloat16):
        assert grad(lambda x: (x @ x).sum())(matrix).tolist() == [[-1.25, -0.25], [-0.75, 0.25]]


def test_dual_numbers_above_autograd_are_refused():
    def function(x):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(forward_ad.make_dual(x, x) * 2).tangent
    assert make_fx(function)(x)(x + 1).tolist() == [4.0, 6.0, 8.0]
    with pytest.raises(NotImplementedError, match="make_dual in a program that is recorded above autograd"):
        make_fx(function, pre_dispatch=True)(x)
