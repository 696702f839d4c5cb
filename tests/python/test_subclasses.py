"""Tensor subclasses: results keep the class, and __torch_function__ hears of indexing, attributes and printing too."""
import copy
import pickle

import numpy
import pytest

import umbra
from umbra.overrides import TorchFunctionMode


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
    (copy.deepcopy, ["__deepcopy__"]), (lambda l: 1.0 in l, ["__contains__"]), (lambda l: umbra.ones(2, 2)[l.long()], ["long", "__getitem__"]),
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
