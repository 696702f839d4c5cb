"""Several threads capture and run side by side; errors and modes left open leave nothing behind."""
import gc
import threading
import weakref

import pytest

import umbra
import umbra.export
from umbra import nn
from umbra._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from umbra.fx.experimental.proxy_tensor import make_fx


def in_threads(*bodies):
    """Runs the functions at the same time, each in a thread; gives what they return, or the exception that ended them."""
    results = [None] * len(bodies)
    start = threading.Barrier(len(bodies))

    def run(i):
        start.wait()
        try:
            results[i] = bodies[i]()
        except Exception as error:  # noqa: BLE001
            results[i] = error
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive()
    return results


class Fault(Exception):
    pass


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(4, width), nn.Linear(width, 4)

    def forward(self, x):
        return self.down(umbra.relu(self.up(x)))


def export_and_check(width):
    net, x = Net(width), umbra.randn(3, 4)
    batch = umbra.export.Dim("batch", max=64)
    for _ in range(5):
        program = umbra.export.export(net, (x,), dynamic_shapes=({0: batch},))
        other = umbra.randn(7, 4)
        assert umbra.allclose(program.module()(other), net(other))
    return str(program.graph_module.code)


def trace_and_check(count):
    def chain(x):
        for _ in range(count):
            x = x.sin()
        return x
    for _ in range(5):
        graph = make_fx(chain)(umbra.ones(3))
        assert sum(node.op == "call_function" for node in graph.graph.nodes) == count
        assert umbra.equal(graph(umbra.ones(3)), chain(umbra.ones(3)))
    return count


def train(steps):
    net, x = Net(8), umbra.ones(2, 4)
    optimizer = umbra.optim.SGD(net.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fail_while_captured():
    def function(x):
        y = x.sin()
        raise Fault(y.shape)
    caught = 0
    for capture in (lambda: make_fx(function)(umbra.ones(3)), lambda: make_fx(function, tracing_mode="symbolic")(umbra.ones(3))):
        with pytest.raises(Fault):
            capture()
        caught += 1
        assert type(umbra.ones(2)) is umbra.Tensor
    return caught


def test_capture_and_run_at_the_same_time():
    results = in_threads(lambda: export_and_check(8), lambda: export_and_check(16), lambda: trace_and_check(3), lambda: trace_and_check(50),
                         lambda: train(20), fail_while_captured)
    for result in results:
        assert not isinstance(result, Exception), result
    assert results[0] == results[1]  # the same program but for the sizes of its weights
    assert results[2:4] == [3, 50]
    assert results[4][-1] < results[4][0]


def test_modes_belong_to_their_thread():
    entered, done = threading.Event(), threading.Event()

    def hold_mode():
        with FakeTensorMode():
            entered.set()
            done.wait(60)
            return type(umbra.ones(2))

    def run_outside():
        entered.wait(60)
        try:
            return type(umbra.ones(2)), umbra.is_grad_enabled()
        finally:
            done.set()
    assert in_threads(hold_mode, run_outside) == [FakeTensor, (umbra.Tensor, True)]


def test_a_shape_environment_per_thread_gives_the_same_program():
    texts = in_threads(*[lambda: export_and_check(8)] * 4)
    assert len(set(texts)) == 1


def test_mode_left_open_ends_with_its_thread():
    def leave_open():
        FakeTensorMode().__enter__()
        return type(umbra.ones(2))
    assert in_threads(leave_open) == [FakeTensor]
    assert type(umbra.ones(2)) is umbra.Tensor


def test_mode_left_open_can_be_closed_later():
    mode = FakeTensorMode()
    mode.__enter__()
    assert type(umbra.ones(2)) is FakeTensor
    with FakeTensorMode():  # another inside, which closes as it should
        pass
    assert type(umbra.ones(2)) is FakeTensor
    mode.__exit__(None, None, None)
    assert type(umbra.ones(2)) is umbra.Tensor
    with pytest.raises(RuntimeError):  # once too often: an error, and nothing else is closed
        mode.__exit__(None, None, None)
    assert type(umbra.ones(2)) is umbra.Tensor


def test_modes_closed_in_the_wrong_order():
    outer, inner = FakeTensorMode(), FakeTensorMode()
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(RuntimeError):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)
    assert type(umbra.ones(2)) is umbra.Tensor


def live_tensors_after(run):
    """Weak references to the tensors that `run` made, those that are still alive."""
    made = []
    run(lambda tensor: made.append(weakref.ref(tensor)) or tensor)
    assert made
    gc.collect()
    return [reference for reference in made if reference() is not None]


def capture_make_fx(function, mode):
    return make_fx(function, tracing_mode=mode, _allow_non_fake_inputs=True)(umbra.ones(3))


def capture_export(function, _):
    class Module(nn.Module):
        def forward(self, x):
            return function(x)
    return umbra.export.export(Module(), (umbra.ones(3),))


def capture_fake(function, _):
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        return function(mode.from_tensor(umbra.ones(3)))


def capture_aot(function, _):
    from umbra._functorch.aot_autograd import aot_function
    return aot_function(function, lambda graph, inputs: graph)(umbra.ones(3, requires_grad=True))


@pytest.mark.parametrize("capture, mode", [(capture_make_fx, "real"), (capture_make_fx, "fake"), (capture_make_fx, "symbolic"), (capture_export, None),
                                           (capture_fake, None), (capture_aot, None)])
def test_exception_in_captured_code_leaks_nothing(capture, mode):
    weight = umbra.ones(3, requires_grad=True)

    def run(note):
        def function(x):
            y = note(x * weight)
            raise Fault(note(y.sin()).shape)
        with pytest.raises(Fault):
            capture(function, mode)
    assert live_tensors_after(run) == []
    assert type(umbra.ones(2)) is umbra.Tensor
    assert umbra.is_grad_enabled()


def test_captured_graph_keeps_no_intermediate_tensors():
    graphs = []

    def run(note):
        graphs.append(make_fx(lambda x: note(note(x.sin()).cos()).sum())(umbra.ones(3)))
    assert live_tensors_after(run) == []


def test_whether_a_backward_pass_may_have_threads_can_be_asked():
    assert umbra.autograd.is_multithreading_enabled()
    with umbra.autograd.set_multithreading_enabled(False):
        assert not umbra.autograd.is_multithreading_enabled()
    assert umbra.autograd.is_multithreading_enabled()
