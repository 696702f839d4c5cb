"""Tensor subclasses: results keep the class, and __torch_function__ hears of indexing, attributes and printing too."""
import copy
import operator
import pickle

import numpy
import pytest

import umbra
from umbra.overrides import TorchFunctionMode
from umbra.utils._python_dispatch import return_and_correct_aliasing
from umbra.utils._pytree import tree_map


class Plain(umbra.Tensor):
    pass


calls = []


class Logged(umbra.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


KEEPING = {
    "s[0]": lambda s: s[0], "s[0:1]": lambda s: s[0:1], "s[mask]": lambda s: s[s > 0], "iteration": lambda s: next(iter(s)),
    "T": lambda s: s.T, "mT": lambda s: s.mT, "split": lambda s: s.split(1)[0], "data": lambda s: s.data,
    "to": lambda s: s.to(umbra.float64), "long": lambda s: s.long(), "cpu": lambda s: s.cpu(), "new_tensor": lambda s: s.new_tensor([1]),
    "real": lambda s: s.real, "H": lambda s: s.H, "reversed": reversed, "copy": copy.copy,
    "pickle": lambda s: pickle.loads(pickle.dumps(s)), "an index": lambda s: umbra.ones(2, 3)[s.long()], "add": lambda s: 1 + s,
    "max": lambda s: s.max(0)[0],
}


@pytest.mark.parametrize("name", KEEPING)
def test_results_keep_the_class(name):
    assert type(KEEPING[name](umbra.ones(2, 3).as_subclass(Plain))) is Plain


def test_what_is_no_tensor_stays_what_it_is():
    s = umbra.ones(2, 3).as_subclass(Plain)
    assert type(s.shape) is umbra.Size and type(s.size()) is umbra.Size and s.size(1) == 3
    assert type(s._base) is umbra.Tensor
    assert type(s.numpy()) is numpy.ndarray and s.stride() == (3, 1) and len(s) == 2
    assert repr(s).startswith("Plain(")


@pytest.mark.parametrize("call, names", [
    (lambda l: l[0], ["__getitem__"]), (lambda l: l.__setitem__(0, 1), ["__setitem__"]), (lambda l: l.shape, ["__get__"]),
    (lambda l: setattr(l, "grad", None), ["__set__"]), (repr, ["__repr__"]), (lambda l: l.size(), ["size"]), (lambda l: l.dim(), ["dim"]),
    (lambda l: l.to(umbra.float64), ["to"]), (lambda l: l.split(1), ["split"]), (len, ["__len__"]),
    (lambda l: bool(l.sum()), ["sum", "__bool__"]), (lambda l: float(l.sum()), ["sum", "__float__"]), (copy.copy, ["__reduce_ex__"]),
    (lambda l: 1.0 in l, ["__contains__"]), (lambda l: umbra.ones(2, 2)[l.long()], ["long", "__getitem__"]),
    (numpy.asarray, ["__array__"]), (lambda l: l.is_contiguous(), ["is_contiguous"]), (lambda l: l.type(), ["type"])])
def test_handlers_hear_of_everything(call, names):
    tensor = umbra.ones(2, 2).as_subclass(Logged)
    calls.clear()
    call(tensor)
    assert calls == names


def test_modes_hear_of_plain_tensors():
    heard = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            heard.append(func.__name__)
            return func(*args, **(kwargs or {}))

    t = umbra.ones(2, 3)
    with Mode():
        assert t[0].shape == (3,)
        assert t.dim() == 2
    assert heard == ["__getitem__", "__get__", "dim"]


def test_errors_of_handlers_come_through():
    class Refusing(umbra.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise LookupError(func.__name__)

    r = umbra.ones(2).as_subclass(Refusing)
    for call in (lambda: r[0], lambda: r.shape, lambda: len(r), lambda: bool(r), lambda: repr(r), lambda: r.dim(), lambda: r.to("cpu")):
        with pytest.raises(LookupError):
            call()
    with pytest.raises(LookupError):
        r[0] = 1
    with pytest.raises(LookupError):
        r.requires_grad = True


class Boxed(umbra.Tensor):
    """A wrapper that does what the tensor inside does, and makes every result anew."""

    @staticmethod
    def __new__(cls, inner):
        return umbra.Tensor._make_wrapper_subclass(cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        open_box = lambda t: t.inner if isinstance(t, Boxed) else t  # noqa: E731
        out = func(*tree_map(open_box, args), **tree_map(open_box, kwargs or {}))
        if func._schema.is_mutable:
            return args[0]
        return tree_map(lambda t: Boxed(t) if isinstance(t, umbra.Tensor) else t, out)


def boxed_gradient(output, leaf):
    return umbra.autograd.grad(output, leaf, Boxed(umbra.ones(output.shape)), retain_graph=True)[0].inner.tolist()


def test_a_write_to_a_view_of_a_wrapper_has_its_gradient():
    x = Boxed(umbra.ones(4)).requires_grad_()
    y = x * 2
    view = y[:2]
    assert view._is_view() and view._base is y
    view.mul_(3)
    assert view.grad_fn.name() == "SliceBackward0" and y.grad_fn.name() == "torch::autograd::CopySlices"
    assert boxed_gradient(y, x) == [6, 6, 2, 2]


def test_a_write_to_a_wrapper_reaches_the_history_of_its_views():
    x = Boxed(umbra.ones(4)).requires_grad_()
    y = x.clone()
    row = y.view(2, 2).t()[0]
    y.mul_(3)
    assert boxed_gradient(row, x) == [3, 0, 3, 0]
    row.mul_(5)
    assert boxed_gradient(y, x) == [15, 3, 15, 3]


def test_a_wrapper_without_history_gets_one_by_a_write_to_its_view():
    x, buffer = Boxed(umbra.ones(4)).requires_grad_(), Boxed(umbra.zeros(4))
    buffer[1:3] = x[:2] * 5
    assert buffer.requires_grad and buffer.inner.tolist() == [0, 5, 5, 0]
    assert boxed_gradient(buffer, x) == [5, 5, 0, 0]


def test_writes_to_views_of_wrappers_are_refused_where_those_of_tensors_are():
    x = Boxed(umbra.ones(4)).requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[:1].mul_(2)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        x.clone().split(2)[0].mul_(2)
    y = x.exp()
    saved = y * y
    y[:1].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        boxed_gradient(saved, x)


def test_a_wrapper_and_its_views_count_their_writes_together():
    x = Boxed(umbra.ones(4))
    view = x[:2]
    view.add_(1)
    x.mul_(2)
    assert x._version == view._version == 2 and x.inner.tolist() == [4, 4, 2, 2]


def test_a_compiled_function_refuses_writes_to_wrappers_that_share_memory():
    from umbra.functorch.compile import aot_function, nop
    compiled = aot_function(lambda a, b: (a.mul_(2), b + 1)[1], nop)
    x = Boxed(umbra.ones(4))
    assert compiled(Boxed(umbra.ones(4)), x).inner.tolist() == [2, 2, 2, 2]
    with pytest.raises(RuntimeError, match="is a tensor subclass. This is not supported today"):
        compiled(x.view(-1), x.view(-1))


def test_a_wrapper_that_is_a_parameter_stays_one_in_copies():
    class Wrapper(umbra.Tensor):
        @staticmethod
        def __new__(cls, inside):
            return umbra.Tensor._make_wrapper_subclass(cls, inside.size(), dtype=inside.dtype)

        def __init__(self, inside):
            self.inside = inside
        __torch_function__ = umbra._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            return cls(function(*[a.inside if isinstance(a, cls) else a for a in args], **(kwargs or {})))
    parameter = umbra.nn.Parameter(Wrapper(umbra.ones(2)))
    copied = copy.deepcopy(parameter)
    assert isinstance(copied, umbra.nn.Parameter) and type(copied) is Wrapper and copied.requires_grad


def test_the_constructor_keeps_memory_and_history():
    class Plain(umbra.Tensor):
        pass
    x = umbra.ones(2, requires_grad=True)
    made = Plain(x)
    assert type(made) is Plain and made.data_ptr() == x.data_ptr() and made.requires_grad and not made.is_leaf
    (made * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    back = umbra.Tensor(made)
    assert type(back) is umbra.Tensor and back.grad_fn is not None


def test_a_handler_written_as_a_plain_method_is_called_on_the_object():
    class Named:
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            return self.name, func.__name__
    assert umbra.add(Named("it"), 1) == ("it", "add") and umbra.cat([umbra.ones(1), Named("other")]) == ("other", "cat")


def test_what_no_handler_takes_is_told_with_the_classes():
    class Declines:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.add'; all __torch_function__ handlers returned NotImplemented:\n\n"
                                        "  - tensor subclass <class '.*Declines'>"):
        umbra.add(Declines(), 1)


def test_methods_of_autograd_are_offered_to_handlers():
    seen = []

    class Seen(umbra.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})
    x = umbra.ones(2).as_subclass(Seen).requires_grad_()
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda gradient: gradient)
    y.sum().backward()
    assert seen == ["requires_grad_", "mul", "retain_grad", "register_hook", "sum", "backward"]


class Handled:
    """No tensor, but a class that takes part in their operators."""
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, [type(a) for a in args]


@pytest.mark.parametrize("sign, left, right", [
    ("add", "add", "add"), ("mul", "mul", "mul"), ("sub", "sub", "__rsub__"), ("truediv", "div", "__rtruediv__"),
    ("matmul", "matmul", "__rmatmul__"), ("floordiv", "__floordiv__", "__rfloordiv__"), ("mod", "remainder", "__rmod__"),
    ("and_", "__and__", "bitwise_and"), ("xor", "__xor__", "bitwise_xor"), ("lshift", "__lshift__", "__rlshift__"),
    ("lt", "lt", "gt"), ("eq", "eq", "eq"), ("iadd", "add_", "add"), ("ior", "__ior__", "bitwise_or")])
def test_operators_are_members_of_tensor_to_their_handlers(sign, left, right):
    sign, tensor = getattr(operator, sign), umbra.ones(2, 2, dtype=umbra.int64)
    assert sign(tensor, Handled()) == (getattr(umbra.Tensor, left), [umbra.Tensor, Handled])
    assert sign(Handled(), tensor) == (getattr(umbra.Tensor, right), [umbra.Tensor, Handled])


def test_a_table_of_handled_methods_finds_the_operators_of_a_subclass():
    class Table(umbra.Tensor):
        handled = {umbra.Tensor.add: "+", umbra.Tensor.neg: "-", umbra.Tensor.__rtruediv__: "1 /", umbra.Tensor.__eq__: "=="}

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return cls.handled.get(func) or super().__torch_function__(func, types, args, kwargs)

    t = umbra.ones(2).as_subclass(Table)
    assert (t + 1, 1 + t, -t, 1 / t, t == t) == ("+", "+", "-", "1 /", "==")
    assert type(2 ** t) is Table and type(t // 2) is Table


def test_operators_come_to_handlers_as_the_methods_of_tensors():
    seen = []

    class Seen(umbra.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})
    x = umbra.ones(2, 2).as_subclass(Seen)
    x + 1, 1 + x, x - 1, x * 2, x / 2, x @ x, x % 2, -x, abs(x), x < 1, x.add(1)
    x += 1
    names = ["add", "add", "sub", "mul", "div", "matmul", "remainder", "neg", "abs", "lt", "add", "add_"]
    assert all(func is getattr(umbra.Tensor, name) for func, name in zip(seen, names, strict=True))


@pytest.mark.parametrize("function", [umbra.is_complex, umbra.is_floating_point, umbra.numel, umbra.nonzero, umbra.is_conj, umbra.is_neg, umbra.is_signed,
                                      umbra.is_inference, umbra.nn.init.uniform_, umbra.nn.init.normal_, umbra.nn.init.kaiming_uniform_])
def test_questions_about_a_tensor_are_put_to_classes_that_are_none(function):
    assert function(Handled()) == (function, [Handled])


class TestCopies:
    class Plain(umbra.Tensor):
        pass

    class Renewed(umbra.Tensor):
        def new_empty(self, *size, **options):
            return super().new_empty(*size, **options).as_subclass(TestCopies.Renewed)

    def test_deep_copies_need_a_class_that_makes_its_own(self):
        with pytest.raises(RuntimeError, match="implement new_empty"):
            copy.deepcopy(umbra.ones(2).as_subclass(self.Plain))
        assert type(copy.copy(umbra.ones(2).as_subclass(self.Plain))) is self.Plain
        copied = copy.deepcopy(umbra.ones(2).as_subclass(self.Renewed))
        assert type(copied) is self.Renewed and copied.tolist() == [1, 1]


@pytest.mark.parametrize("call, name", [
    (lambda x: umbra.nn.functional.linear(x, x), "torch.nn.functional.linear"), (umbra.linalg.norm, "torch.linalg.norm"),
    (umbra.fft.fft, "torch.fft.fft"), (lambda x: umbra.einsum("ij->i", x), "torch.functional.einsum"), (lambda x: x.norm(), "torch.Tensor.norm"),
    (lambda x: umbra.result_type(x, 1), "torch.result_type"), (lambda x: x.is_shared(), "torch.Tensor.is_shared")])
def test_functions_have_the_names_that_people_know(call, name):
    seen = []

    class Names(umbra.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(umbra.overrides.resolve_name(function))
            return super().__torch_function__(function, types, args, kwargs or {})

    call(umbra.ones(2, 2).as_subclass(Names))
    assert seen == [name]


class Corrected(Boxed):
    """One whose handler leaves to the library what the operator's schema says of memory."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        open_box = lambda t: t.inner if isinstance(t, Boxed) else t  # noqa: E731
        out = func(*tree_map(open_box, args), **tree_map(open_box, kwargs or {}))
        return return_and_correct_aliasing(func, args, kwargs, tree_map(lambda t: Corrected(t) if isinstance(t, umbra.Tensor) else t, out))


@pytest.mark.parametrize("change, size", [(lambda x: x.t_(), (3, 1)), (lambda x: x.squeeze_(0), (3,)), (lambda x: x.unsqueeze_(0), (1, 1, 3)),
                                          (lambda x: x.transpose_(0, 1), (3, 1)), (lambda x: x.squeeze_(), (3,))])
def test_a_wrapper_s_size_follows_what_its_handler_did_in_place(change, size):
    x = Corrected(umbra.arange(3.0).reshape(1, 3))
    y = change(x)
    assert y is x and x.shape == size and x.inner.shape == size and x._version == 1


def test_views_of_wrappers_lie_in_their_memory():
    x = Corrected(umbra.arange(6.0).reshape(2, 3))
    same = lambda y: y.untyped_storage()._cdata == x.untyped_storage()._cdata  # noqa: E731
    assert same(x[0]) and same(x.view(-1)) and all(same(part) for part in x.split(1)) and not same(x.clone())


@pytest.mark.parametrize("write", [lambda y: y.add_(1), lambda y: y.view(-1).add_(1), lambda y: y[0].mul_(2), lambda y: y.detach().add_(1)])
@pytest.mark.parametrize("kind", [Boxed, Corrected])
def test_a_wrapper_that_a_gradient_needs_must_not_be_written(kind, write):
    x = kind(umbra.ones(2, 3)).requires_grad_()
    y = x.exp()
    write(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        umbra.autograd.grad(y, x, kind(umbra.ones(2, 3)))
    z = (x * 2).exp()
    assert umbra.autograd.grad(z, x, kind(umbra.ones(2, 3)))[0].inner.shape == (2, 3)


def declining(*accepted):
    """A class of tensors whose handler takes the functions of these names alone."""
    def handler(cls, func, types, args=(), kwargs=None):
        return cls.__name__ if func.__name__ in accepted else NotImplemented
    return type("Declining", (umbra.Tensor,), {"__torch_function__": classmethod(handler)})


class OwnNumber:
    """Has a handler that takes nothing, and methods of its own for operators."""
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented

    def __radd__(self, other):
        return "radd"

    def __rpow__(self, other):
        return "rpow"

    def __gt__(self, other):
        return "gt"


def test_an_operator_that_handlers_decline_goes_to_the_other_operand():
    for left in (umbra.ones(1), declining()()):
        assert left + OwnNumber() == "radd" and left ** OwnNumber() == "rpow" and (left < OwnNumber()) == "gt"
        right = declining("__rsub__", "__rpow__")()
        assert left - right == "Declining" and left ** right == "Declining"
        with pytest.raises(TypeError, match="unsupported operand"):
            left + right
        with pytest.raises(TypeError, match="unsupported operand"):
            operator.iadd(left, right)
        with pytest.raises(TypeError, match="unsupported operand"):
            operator.iadd(left, object())


def test_functions_in_python_ask_subclasses_first_and_each_class_once():
    asked = []

    class First(umbra.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(cls.__name__)
            return NotImplemented

    class Second(First):
        pass
    for values in ((First(), Second()), (First(), First()), (Second(), First())):
        with pytest.raises(TypeError):
            umbra.nn.functional.cross_entropy(*values)
    assert asked == ["Second", "First", "First", "Second", "First"]


def test_a_mode_that_declines_a_class_hears_of_its_default_handler():
    heard = []

    class Declines(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            heard.append(types)
            return NotImplemented if Plain in types else func(*args, **(kwargs or {}))
    value = Plain([1.0])
    with Declines():
        result = umbra.nn.functional.softmin(value, 0)
    assert type(result) is Plain and heard[:2] == [(Plain,), ()]


def test_differentiation_is_offered_to_handlers():
    class Own:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args, sorted(kwargs)
    own = Own()
    function, args, names = umbra.autograd.grad(own, own)
    assert function is umbra.autograd.grad and args == ((own,), (own,)) and "grad_outputs" in names
    function, args, names = umbra.autograd.backward(own)
    assert function is umbra.autograd.backward and args == ((own,),) and names == ["create_graph", "grad_tensors", "inputs", "retain_graph"]


def test_a_deep_copy_of_a_class_around_a_tensor_without_data():
    class OnMeta(umbra.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = umbra.Tensor._make_subclass(cls, inner.to("meta"))
            made.inner = inner
            return made

        def clone(self):
            return type(self)(self.inner.clone())
    value = OnMeta(umbra.ones(2))
    copied = copy.deepcopy(value)
    assert type(copied) is OnMeta and copied.inner is not value.inner and copied.inner.tolist() == [1, 1]
