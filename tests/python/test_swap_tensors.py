"""torch.utils.swap_tensors, and modules whose conversions and loads exchange parameters by it."""
import contextlib
import weakref

import pytest

import umbra as torch
from umbra.utils import swap_tensors


@contextlib.contextmanager
def exchanging():
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def test_tensors_are_exchanged_with_class_attributes_and_gradient():
    class Marked(torch.Tensor):
        pass
    a = torch.ones(2).as_subclass(Marked)
    a.note = "a"
    b = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
    b.grad = torch.full((3,), 5.0, dtype=torch.float64)
    swap_tensors(a, b)
    assert type(a) is torch.nn.Parameter and a.dtype == torch.float64 and a.shape == (3,) and a.requires_grad
    assert a.grad.tolist() == [5.0] * 3
    assert type(b) is Marked and b.note == "a" and b.tolist() == [1.0, 1.0] and not hasattr(a, "note")


def test_who_holds_the_object_has_the_other_tensor():
    a, b = torch.ones(2), torch.zeros(3, 3)
    held = [a]
    swap_tensors(a, b)
    assert held[0] is a and held[0].shape == (3, 3)
    a.add_(1)
    assert a.sum() == 9 and b.tolist() == [1.0, 1.0]
    swap_tensors(a, a)
    assert a.sum() == 9


def test_slots_are_exchanged():
    class Slotted(torch.Tensor):
        __slots__ = ("mark",)
    a, b = torch.ones(2).as_subclass(Slotted), torch.zeros(3).as_subclass(Slotted)
    a.mark = 3
    swap_tensors(a, b)
    assert not hasattr(a, "mark") and b.mark == 3
    with pytest.raises(RuntimeError, match="Cannot swap t1 and t2 if they have different slots"):
        swap_tensors(a, torch.ones(2))


def test_a_weak_reference_refuses():
    a, b = torch.ones(2), torch.ones(3)
    reference = weakref.ref(b)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref associated with it"):
        swap_tensors(a, b)
    assert reference() is b


def test_other_holders_refuse():
    a = torch.ones(3, requires_grad=True)
    view = a[:2]
    with pytest.raises(RuntimeError, match="Expected use_count of t1 to be 1 or 2 with an AccumulateGrad node"):
        swap_tensors(a, torch.zeros(2))
    assert view.shape == (2,) and a.shape == (3,)


def test_a_gradient_for_what_was_swapped_is_refused():
    a, b = torch.ones(3, requires_grad=True), torch.zeros(2)
    loss = (a * 2).sum()
    swap_tensors(a, b)
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        loss.backward()
    assert a.grad is None and b.grad is None


def test_module_conversions_keep_the_objects():
    module = torch.nn.Linear(2, 3)
    module(torch.ones(1, 2)).sum().backward()
    weight, gradient = module.weight, module.weight.grad
    expected = gradient.double()
    with exchanging():
        module.double()
    assert module.weight is weight and weight.dtype == torch.float64
    assert weight.grad is gradient and gradient.dtype == torch.float64 and torch.equal(gradient, expected)
    (module(torch.ones(1, 2, dtype=torch.float64)).sum()).backward()
    assert torch.equal(weight.grad, 2 * expected)


def test_a_module_in_a_running_graph_is_refused():
    module = torch.nn.Linear(2, 3)
    part = module.weight[0]
    with exchanging(), pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
        module.double()
    assert part.dtype == torch.float32


@pytest.mark.parametrize("assign", [False, True])
def test_load_state_dict_exchanges(assign):
    module, other = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3).double()
    weight, memory = module.weight, module.weight.data_ptr()
    with exchanging():
        module.load_state_dict(other.state_dict(), assign=assign)
    assert module.weight is weight and isinstance(weight, torch.nn.Parameter) and weight.requires_grad
    assert weight.dtype == (torch.float64 if assign else torch.float32)
    assert torch.equal(weight.double(), other.weight.to(weight.dtype).double())
    assert (weight.data_ptr() == memory) == (not assign)


def test_module_load_that_gives_an_input_back_is_refused():
    class Loads(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if function is torch.Tensor.module_load:
                return args[1]
            return super().__torch_function__(function, types, args, kwargs or {})
    module = torch.nn.Module()
    module.register_buffer("b", torch.ones(2).as_subclass(Loads))
    with exchanging(), pytest.raises(RuntimeError, match="While swapping the parameter named \"b\".*module_load returned one of self or other"):
        module.load_state_dict({"b": torch.zeros(2)})
