"""Futures: values that come later, and what follows from them."""
import pickle

import pytest

import umbra as torch
from umbra.futures import Future, collect_all, wait_all


def fails(_):
    raise ValueError("in a callback")


@pytest.mark.parametrize("early", [True, False])
def test_an_error_of_what_follows_is_raised_where_it_is_waited_for(early):
    future = Future()
    if early:
        future.set_result(1)
    following = future.then(fails)
    if not early:
        future.set_result(1)
    with pytest.raises(RuntimeError, match="error when running the callback: ValueError: in a callback"):
        following.wait()
    assert future.wait() == 1


def test_an_error_of_a_callback_is_logged(caplog):
    future, seen = Future(), []
    future.add_done_callback(fails)
    future.add_done_callback(lambda f: seen.append(f.value()))
    future.set_result(2)
    assert seen == [2] and "ValueError: in a callback" in caplog.text


def test_a_collection_has_the_error_of_one_of_its_futures():
    first, second = Future(), Future()
    both = collect_all([first, second])
    first.set_result(1)
    second.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        both.wait()
    with pytest.raises(KeyError):
        wait_all([first, second])


def test_futures_are_not_sent_and_call_what_can_be_called():
    with pytest.raises(RuntimeError, match="Can not pickle"):
        pickle.dumps(Future())
    with pytest.raises(TypeError):
        Future().then(None)


def test_none_is_no_future():
    for wait in (lambda: wait_all((None,)), lambda: collect_all((Future(), None)), lambda: torch.jit.wait(None)):
        with pytest.raises(RuntimeError, match="Future can't be None"):
            wait()
