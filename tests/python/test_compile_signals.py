"""Signals that come while a function is captured, and inside of other operations that change what is around them."""
import builtins
import ctypes
import functools
import gc
import signal
import sys
import threading
import time
import warnings

import pytest

import umbra as torch
from umbra import _C
from umbra._dynamo import breaks, reachable
from umbra.utils._contextlib import whole

send = ctypes.pythonapi.PyErr_SetInterruptEx  # as if it came now; no watch sees who sends it
print_itself, open_itself, time_itself = print, open, time.time


def state():
    return {"capturing": _C._is_capturing(), "compiling": torch.compiler.is_compiling(), "in a call": torch.compiler._in_compiled_call(), "captures": breaks._captures,
            "tracing": _C._is_tracing(), "levels": _C._level_count(), "modes": len(_C._dispatch_modes()), "gradients": torch.is_grad_enabled(),
            "collector": gc.isenabled(), "profiler": sys.getprofile(), "own": (print, open, time.time) == (print_itself, open_itself, time_itself),
            "builtins": (builtins.id.__module__, builtins.getattr.__module__), "handler": signal.getsignal(signal.SIGUSR1)}


@pytest.fixture
def on_signal():
    """Sets the handler of SIGUSR1. Afterwards nothing is left of a capture."""
    before = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    clean = []

    def set_handler(handler, number=signal.SIGUSR1):
        signal.signal(number, handler)
        clean[:] = [state()]
    yield set_handler
    now = state()
    for number, handler in before.items():
        signal.signal(number, handler)
    assert [now] == clean


class Sender:
    """Sends a signal at its first call."""

    def __init__(self, number=signal.SIGUSR1):
        self.number, self.gate = number, threading.Lock()

    def __call__(self):
        if self.gate.acquire(blocking=False):
            send(self.number)


def test_a_handler_runs_as_it_would_without_a_capture(on_signal, capsys):
    seen, sender = [], Sender()

    class Function:
        stop = False

        def __call__(self, x):
            self.last = x * 2
            sender()
            return x + 100 if self.stop else x + 1

    function = Function()

    def handler(number, frame):
        print("saved at", time.time() > 0)
        seen.append((number, frame is not None, (torch.ones(2) * 3).tolist(), torch.compiler.is_compiling(), getattr(function, "last", None)))
        function.stop = True
    on_signal(handler)
    compiled = torch.compile(function)
    assert compiled(torch.ones(2)).tolist() == [101, 101] and capsys.readouterr().out == "saved at True\n"
    assert seen == [(signal.SIGUSR1, True, [3, 3], False, None)] and function.last.tolist() == [2, 2]


@pytest.mark.parametrize("make", [lambda f: f, lambda f: functools.partial(f), lambda f: type("Handler", (), {"handle": lambda self, n, frame: f(n, frame)})().handle,
                                  lambda f: type("Handler", (), {"__call__": lambda self, *args: f(*args)})()], ids=["function", "partial", "method", "object"])
def test_what_a_handler_raises_goes_to_the_caller(on_signal, make):
    sender, count = Sender(), [0]

    def handler(number, frame):
        raise TimeoutError(f"after {number}")

    @torch.compile
    def function(x):
        count[0] += 1
        try:
            sender()
        except Exception:
            return x
        return x * 2
    on_signal(make(handler))
    with pytest.raises(TimeoutError, match=f"after {int(signal.SIGUSR1)}") as caught:
        function(torch.ones(2))
    assert caught.value.__context__ is None and count == [0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert function(torch.ones(2)).tolist() == [2, 2] and count == [1]


def test_a_capture_goes_on_after_a_signal(on_signal):
    sender, seen = Sender(), []

    @torch.compile(fullgraph=True)
    def function(x):
        sender()
        return x * 2
    on_signal(lambda number, frame: seen.append(number))
    assert [function(torch.full((2,), i)).tolist() for i in (1., 2.)] == [[2, 2], [4, 4]] and seen == [signal.SIGUSR1]
    info = torch.compiler.cache_info(function)
    assert (info.hits, info.misses) == (1, 1)


def test_a_function_runs_as_it_is_where_every_capture_gets_a_signal(on_signal):
    seen = []
    on_signal(lambda number, frame: seen.append(number))

    def function(x):
        send(10)
        return x * 2
    assert signal.SIGUSR1 == 10
    with pytest.warns(UserWarning, match="a signal came whenever it was captured"):
        assert torch.compile(function)(torch.ones(2)).tolist() == [2, 2]
    assert len(seen) == 9


def test_what_a_handler_raises_in_a_backend_is_no_failure_of_it(on_signal):
    sender = Sender()

    def backend(module, inputs):
        sender()
        return module

    def handler(number, frame):
        raise TimeoutError
    on_signal(handler)
    function = torch.compile(lambda x: x * 2, backend=backend)
    with pytest.raises(TimeoutError):
        function(torch.ones(2))
    assert function(torch.ones(2)).tolist() == [2, 2]


def test_a_helper_that_is_a_handler_too_is_part_of_the_function_when_that_calls_it(on_signal):
    def helper(number, frame):
        return number * 2
    on_signal(helper)
    function = torch.compile(lambda x: x * helper(3, None), fullgraph=True)
    assert function(torch.ones(2)).tolist() == [6, 6]


def test_a_function_that_sets_an_alarm_runs_as_it_is(on_signal):
    on_signal(signal.SIG_IGN)

    def function(x):
        signal.setitimer(signal.ITIMER_REAL, 0)
        return x * 2
    with pytest.warns(UserWarning, match="call of setitimer"):
        assert torch.compile(function)(torch.ones(2)).tolist() == [2, 2]


def test_an_interrupt_takes_back_what_the_function_changed(on_signal):
    sender = Sender(signal.SIGINT)

    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.last, self.calls = None, 0

        def forward(self, x):
            self.count += 1
            self.calls += 1
            self.last = x * 2
            sender()
            return x + self.count

    module = Counting()
    on_signal(signal.SIG_IGN)
    compiled = torch.compile(module)
    with pytest.raises(KeyboardInterrupt):
        compiled(torch.ones(2))
    assert (module.count.item(), module.calls, module.last) == (0, 0, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert compiled(torch.ones(2)).tolist() == [2, 2] and module.last.tolist() == [2, 2] and module.calls == 1


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
@pytest.mark.parametrize("owner, name", [(breaks, "_begin"), (breaks, "_end"), (breaks._RandomNumbers, "_now"), (breaks._RandomNumbers, "restore"),
                                         (reachable.Caches, "__enter__"), (reachable.Caches, "__exit__")])
def test_an_interrupt_where_a_capture_begins_or_ends_leaves_nothing_behind(on_signal, monkeypatch, owner, name, number, fails):
    sender, function = Sender(number), getattr(owner, name)

    def interrupted(*args):
        sender()
        return function(*args)

    def handler(number, frame):
        raise TimeoutError
    on_signal(handler)

    def program(x):
        if fails:
            raise ValueError
        return x * 2
    compiled = torch.compile(program)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else TimeoutError):
            compiled(torch.ones(2))
    fails = False
    assert compiled(torch.ones(2)).tolist() == [2, 2]


def test_an_interrupt_is_not_lost_where_an_error_gets_its_text(on_signal, monkeypatch):
    import linecache
    sender, getline = Sender(signal.SIGINT), linecache.getline

    def interrupted(*args):
        sender()
        return getline(*args)
    on_signal(signal.SIG_IGN)
    with monkeypatch.context() as patch:
        patch.setattr(linecache, "getline", interrupted)
        with pytest.raises(KeyboardInterrupt):
            torch.compile(lambda x: x + 1 if x.sum() > 0 else x)(torch.ones(2))


@whole
class Manager:
    def __init__(self, at):
        self.at, self.steps = at, []

    def __enter__(self):
        self._step("enter")

    def __exit__(self, *error):
        self._step("exit")

    def _step(self, name):
        if self.at == name:
            send(signal.SIGUSR1)
        self.steps.append(name)


@pytest.mark.parametrize("at", ["enter", "exit"])
def test_a_manager_is_entered_and_left_as_a_whole(on_signal, at):
    manager = Manager(at)

    def handler(number, frame):
        raise TimeoutError
    on_signal(handler)
    with pytest.raises(TimeoutError):
        with manager:
            len("a step that is made inside")
            assert at == "exit"
    assert manager.steps == ["enter", "exit"]


def test_handlers_that_wait_all_run(on_signal):
    seen = []
    on_signal(lambda number, frame: seen.append(number), signal.SIGUSR2)
    on_signal(lambda number, frame: seen.append(number))

    class Sending(Manager):
        def _step(self, name):
            for number in (signal.SIGUSR2, signal.SIGUSR1):
                send(number)
            assert not seen
    with Sending(None):
        len("a step that is made inside")
        assert sorted(seen) == [signal.SIGUSR1, signal.SIGUSR2]
        seen.clear()
    assert sorted(seen) == [signal.SIGUSR1, signal.SIGUSR2]
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)


def test_another_thread_captures_without_a_word_about_signals(on_signal):
    on_signal(signal.SIG_IGN)
    results = []
    thread = threading.Thread(target=lambda: results.append(torch.compile(lambda x: x * 2)(torch.ones(2)).tolist()))
    thread.start()
    thread.join()
    assert results == [[2, 2]]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x):
        with torch.autocast("cpu"):
            return self.layer(x).relu()


def make_fx(x):
    from umbra.fx.experimental.proxy_tensor import make_fx as capture
    capture(Net(), tracing_mode="symbolic", _allow_non_fake_inputs=True, record_module_stack=True)(x)


PROGRAMS = [lambda x: torch.vmap(torch.func.grad(lambda row: (row.sin() * row).sum()))(x), lambda x: torch.fx.symbolic_trace(Net()),
            lambda x: torch.jit.trace(torch.sin, (x,)), make_fx, lambda x: torch.export.export(Net(), (x,)),
            lambda x: torch.optim.SGD([x.requires_grad_()], 0.1).step()]


@pytest.mark.parametrize("program", PROGRAMS, ids=["levels", "symbolic trace", "script", "make_fx", "export", "optimizer"])
def test_an_interrupt_at_any_call_leaves_the_thread_as_it_was(on_signal, program):
    x, calls, interrupted = torch.ones(4, 3), [0, 0], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program(x.clone())
        on_signal(signal.SIG_IGN)
        clean = {**state(), "call": torch.nn.Module.__call__, "maximum": max, "cache": torch.is_autocast_cache_enabled(), "traced": _C._jit_is_tracing()}

        def count(frame, event, argument):
            calls[0] += event == "call"
            if calls[0] == calls[1]:
                send(signal.SIGINT)
        for calls[1] in range(2, 300, 7):
            calls[0] = 0
            try:
                sys.setprofile(count)
                program(x.clone())
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                sys.setprofile(None)
            assert {**state(), "call": torch.nn.Module.__call__, "maximum": max, "cache": torch.is_autocast_cache_enabled(),
                    "traced": _C._jit_is_tracing()} == clean, calls
    assert interrupted > 1


def counts_while(go_on):
    rounds = 0
    while bool(go_on > 0):
        rounds += 1
    return rounds


class Loop(torch.nn.Module):
    def forward(self, go_on):
        return torch.while_loop(lambda go_on, i: go_on > 0, lambda go_on, i: (go_on.clone(), i + 1), (go_on, torch.zeros(())))


def many_nodes():
    base = torch.ones(4_000_000, requires_grad=True)
    return base, sum(base[i] for i in range(1000))  # each fills a gradient of the whole


@pytest.fixture
def alarm(on_signal):
    """Has a handler called soon, in the midst of what runs by then."""
    def set_alarm(handler):
        on_signal(handler, signal.SIGALRM)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
    yield set_alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


@pytest.mark.filterwarnings("ignore:.torch.jit.script:FutureWarning")
@pytest.mark.parametrize("make", [lambda: torch.jit.script(counts_while), lambda: torch.export.export(Loop(), (torch.ones(()),)).module(), lambda: torch.compile(Loop())],
                         ids=["script", "exported", "compiled"])
def test_what_runs_without_python_is_interrupted(alarm, make):
    program = make()
    assert program(torch.zeros(())) is not None
    alarm(signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt) as caught:
        program(torch.ones(()))
    assert caught.value.__context__ is None and program(torch.zeros(())) is not None


@pytest.mark.filterwarnings("ignore:.torch.jit.script:FutureWarning")
def test_a_run_goes_on_after_a_handler_that_returns(alarm):
    go_on, program = torch.ones(()), torch.jit.script(counts_while)
    alarm(lambda number, frame: go_on.zero_())
    assert program(go_on) > 0


def test_a_backward_pass_is_interrupted(alarm):
    base, result = many_nodes()

    def handler(number, frame):
        raise TimeoutError("enough")
    alarm(handler)
    with pytest.raises(TimeoutError, match="enough"):
        result.backward()
    assert base.grad is None
    (base * 2).sum().backward()
    assert base.grad[-1].item() == 2
