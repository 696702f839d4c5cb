"""Nodes of the backward graph: hooks on them, calls of them, what they keep, gradients from and to places in the graph."""
import math

import pytest
import umbra as torch
from umbra import autograd


def watched():
    a = torch.tensor(1., requires_grad=True)
    b = a * 2
    log = []
    a.register_hook(lambda g: log.append("a"))
    b.register_hook(lambda g: log.append("b"))
    b.grad_fn.register_prehook(lambda *_: log.append("before b"))
    b.grad_fn.register_hook(lambda *_: log.append("after b"))
    accumulator = b.grad_fn.next_functions[0][0]
    accumulator.register_prehook(lambda *_: log.append("before a"))
    accumulator.register_hook(lambda *_: log.append("after a"))
    a.register_post_accumulate_grad_hook(lambda t: log.append("kept"))
    return a, b, b * 2, log, accumulator


def test_a_pass_to_a_leaf_runs_its_accumulator():
    a, b, c, log, _ = watched()
    c.backward(inputs=[a])
    assert log == ["b", "before b", "after b", "a", "before a", "kept", "after a"]
    assert a.grad == 4 and b._grad is None


def test_a_pass_to_a_computed_tensor_runs_its_node_and_no_further():
    a, b, c, log, _ = watched()
    c.backward(inputs=[b])
    assert log == ["b", "before b", "after b"]
    assert b.grad == 2 and a.grad is None and b.retains_grad


def test_gradients_of_a_leaf_do_not_run_its_accumulator():
    a, _, c, log, _ = watched()
    assert autograd.grad(c, a)[0] == 4
    assert log == ["b", "before b", "after b", "a"]


def test_hooks_on_an_accumulator_see_the_gradient_that_was_kept():
    x = torch.ones(2, requires_grad=True)
    accumulator = x.view_as(x).grad_fn.next_functions[0][0]
    x.register_hook(lambda g: g - 2)
    accumulator.register_prehook(lambda given: (given[0] / 5,))

    def add_half(leaf):
        leaf.grad.add_(0.5)

    def ten_times(inputs, outputs):
        x.grad = outputs[0] * 10
    x.register_post_accumulate_grad_hook(add_half)
    accumulator.register_hook(ten_times)
    x.sum().backward()
    assert x.grad.tolist() == pytest.approx([3, 3])


def test_hooks_are_called_where_no_gradient_flows():
    x = torch.ones(2, requires_grad=True)
    first, second = x.unbind()
    seen = []
    first.register_hook(seen.append)
    first.backward()
    second.backward()
    assert seen == [torch.tensor(1.), None]


@pytest.mark.parametrize("register, text", [
    (lambda y: y.grad_fn.register_prehook(lambda g: (g[0], g[0])), "hook '<lambda>' has returned an incorrect number of values (got 2, but expected 1)"),
    (lambda y: y.grad_fn.register_hook(lambda i, o: (i[0],)), "hook '<lambda>' has returned an incorrect number of values (got 1, but expected 2)"),
    (lambda y: y.grad_fn.register_hook(lambda i, o: 3), "expected tuple, but hook returned 'int'"),
    (lambda y: y.register_hook(lambda g: 3), "expected Variable, but hook returned 'int'"),
    (lambda y: y.register_hook(lambda g: g.double()), "hook '<lambda>' has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)"),
    (lambda y: y.register_hook(lambda g: g[:1]), "hook '<lambda>' has changed the size of value")])
def test_what_a_hook_may_not_return(register, text):
    y = torch.ones(2, requires_grad=True) * 2
    register(y)
    with pytest.raises((RuntimeError, TypeError)) as error:
        y.sum().backward()
    assert str(error.value) == text


def test_a_view_that_keeps_its_gradient_keeps_it_after_a_write():
    base = torch.ones(1, requires_grad=True).clone()
    one, other = base[:], base[:]
    one.retain_grad()
    other.retain_grad()
    one.mul_(2)
    (one + other).sum().backward()
    assert one.grad.tolist() == other.grad.tolist() == [1]


def test_nodes_are_called():
    x = torch.tensor([3.], requires_grad=True)
    y = x ** 2
    assert y.grad_fn(torch.ones(1)).tolist() == [6]
    with pytest.raises(TypeError, match="expected 1 arguments, got 0 instead"):
        y.grad_fn()
    metadata, = y.grad_fn._input_metadata
    assert (list(metadata.shape), metadata.dtype, metadata.device) == ([1], torch.float32, torch.device("cpu"))


def test_places_in_the_graph_stand_for_tensors():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    edge = autograd.graph.get_gradient_edge(y)
    assert autograd.grad((y * 3).sum(), edge)[0].tolist() == [3, 3]
    assert autograd.grad(edge, x, torch.ones(2))[0].tolist() == [2, 2]
    other = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        autograd.grad((x * 1).sum(), autograd.graph.get_gradient_edge(other))
    y = x * 5
    autograd.backward(autograd.graph.get_gradient_edge(y), torch.ones(2))
    assert x.grad.tolist() == [5, 5]


def test_hooks_on_one_tensor_that_is_kept():
    x = torch.ones(1, requires_grad=True)
    y = x * x
    saved = y.grad_fn._raw_saved_self
    saved.register_hooks(lambda t: t * 2, lambda t: t * 3)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        saved.register_hooks(lambda t: t, lambda t: t)
    y.backward()
    assert x.grad.tolist() == [7]


def test_numbers_are_not_handed_to_hooks():
    packed = []
    with autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        x = torch.ones(1, requires_grad=True)
        (x * 3.0).backward()
    assert packed == [] and x.grad.tolist() == [3]


def test_a_tensor_that_was_detached_in_place_is_not_used():
    a = torch.ones(1, requires_grad=True).clone()
    b = a.sin()
    a.detach_()
    with pytest.raises(RuntimeError, match="Trying to use a saved tensor that has been detached in-place"):
        b.backward()


def test_functions_at_the_end_bring_others():
    done = []

    def hook(_):
        autograd.graph.queue_callback(lambda: (done.append(1), autograd.graph.queue_callback(lambda: done.append(2))))
    x = torch.ones(1, requires_grad=True)
    x.register_hook(hook)
    (x * 2).backward()
    assert done == [1, 2]


def test_what_users_are_warned_of():
    x = torch.ones(1, requires_grad=True)
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        (x * 2).grad
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        detection = autograd.detect_anomaly()
    with detection:
        y = torch.tensor(-1., requires_grad=True).sqrt()
        with pytest.warns(UserWarning, match="Error detected in SqrtBackward0. Traceback of forward call(.|\n)*test_autograd_nodes.py(.|\n)*sqrt"):
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output."):
                y.backward()


def test_zeros_in_the_place_of_nothing_can_be_differentiated():
    x, a = torch.tensor(.5, requires_grad=True), torch.tensor(1., requires_grad=True)
    first = autograd.grad(x * a, x, create_graph=True)
    second = autograd.grad(first, x, create_graph=True, materialize_grads=True)
    assert second[0].requires_grad and autograd.grad(second, x, materialize_grads=True)[0] == 0


def test_data_is_of_a_type_that_has_gradients():
    a = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="data set to a tensor that requires gradients must be floating point or complex dtype"):
        a.data = torch.tensor([3])
    b = torch.ones(2)
    b.add_(1)
    b.data = torch.zeros(3)
    assert b._version == 1


@pytest.mark.parametrize("function", [torch.min, torch.max, torch.median, torch.nanmedian])
def test_equal_values_share_a_gradient(function):
    for values in ([1., 0., 1., 0., 1., 0.], [float("nan")] * 3):
        x = torch.tensor(values, requires_grad=True)
        function(x).backward()
        assert x.grad.sum() == 1 and (x.grad == 1 / 3).sum() == 3


def test_batched_gradients_have_one_more_dimension():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first dimension"):
        autograd.grad(x * 2, x, torch.ones(2), is_grads_batched=True)


def test_generators_run_in_their_own_mode():
    @torch.no_grad()
    def modes():
        try:
            yield torch.is_grad_enabled()
        except ValueError:
            yield torch.is_grad_enabled()
        finally:
            closed.append(torch.is_grad_enabled())
    closed = []
    it = modes()
    assert next(it) is False and torch.is_grad_enabled()
    assert it.throw(ValueError()) is False
    it.close()
    assert closed == [False]
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        @torch.no_grad()
        class Thing:
            def __init__(self):
                self.mode = torch.is_grad_enabled()
    assert Thing().mode is False


def test_edges_of_one_element_begin_with_one():
    x = torch.ones(2, requires_grad=True)
    assert autograd.grad(autograd.graph.get_gradient_edge((x * 2).sum()), x)[0].tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        autograd.grad(autograd.graph.get_gradient_edge(x * 2), x)


def test_views_of_inference_tensors_have_no_history():
    with torch.inference_mode():
        x = torch.ones(2, requires_grad=True)
    view = x.view(-1)
    assert not view.requires_grad and view.is_leaf and view.is_inference()


def test_writes_through_views_that_cannot_be_followed():
    class Same(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)
    source = torch.rand(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="with grad mode enabled. This view was created inside a custom Function"):
        Same.apply(torch.rand(1)).add_(source)
    with pytest.raises(RuntimeError, match="with grad mode enabled. This view is the output of a function that returns multiple views"):
        torch.rand(2, 1).unbind()[0].copy_(source)


def test_forward_mode_names_what_it_refuses():
    import umbra.autograd.forward_ad as forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with add_out that does not support it because it is an out= function"):
            torch.add(dual, 1, out=torch.empty(2))
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
            forward_ad.enter_dual_level()


def test_a_real_base_to_complex_powers_has_gradients():
    for base in (torch.tensor([-1.0, -2.0], dtype=torch.float64), -2.5):
        exponent = torch.tensor([1 + 2j, 2 - 1j], dtype=torch.complex128, requires_grad=True)
        assert torch.autograd.gradcheck(lambda e, base=base: torch.pow(base, e), (exponent,), check_forward_ad=True)


def test_a_parameter_that_got_other_sizes_gets_gradients_of_them():
    weight, alive = torch.nn.Parameter(torch.ones(4)), []
    for size in (3, 2):
        with torch.no_grad():
            weight.set_(weight[1:])
            weight.grad = None
        alive.append(torch.cat((weight, weight)))
        alive[-1].sum().backward()
        assert weight.grad.tolist() == [2.0] * size


def test_a_tangent_lies_as_its_primal_does():
    whole = torch.arange(6.0)
    primal, tangent = whole[:4].view(2, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(primal, tangent)
        row = torch.autograd.forward_ad.unpack_dual(dual.as_strided((2,), (1,), 2)).tangent
        assert row.tolist() == [2.0, 4.0]


def test_gathered_gradients_are_sparse_for_single_elements_too():
    x = torch.arange(4.0, requires_grad=True)
    torch.gather(x, 0, torch.tensor(2), sparse_grad=True).backward()
    assert x.grad.to_dense().tolist() == [0.0, 0.0, 1.0, 0.0]
    x = torch.tensor(5.0, requires_grad=True)
    torch.gather(x, 0, torch.tensor([0, 0]), sparse_grad=True).sum().backward()
    assert x.grad.to_dense().item() == 2


def test_hooks_that_a_pass_enters_or_leaves_are_as_they_were_after_it():
    inner = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    packed = []

    def unpack(value):
        inner.__exit__()
        return value
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, unpack):
        x.sin().sum().backward()
        x.cos()
    assert len(packed) == 2


def test_a_gradient_for_an_edge_must_have_the_sizes_of_its_tensor():
    x = torch.ones(2, requires_grad=True)
    edge = torch.autograd.graph.get_gradient_edge(x * 2)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        torch.autograd.grad(edge, x, torch.ones(4))


def test_nodes_list_what_they_keep():
    x = torch.ones(2, requires_grad=True)
    names = dir((x * x).grad_fn)
    assert {"_saved_self", "_saved_other", "_raw_saved_self", "_raw_saved_other", "next_functions", "name"} <= set(names)
    assert "_raw_saved_dim" not in dir(x.sum(0).grad_fn) and "_saved_dim" in dir(x.sum(0).grad_fn)


def test_hooks_of_nodes_have_handles():
    x = torch.ones(2, requires_grad=True)
    y, seen = x * 2, []
    with y.grad_fn.register_hook(lambda inputs, outputs: seen.append(1)):
        y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen == [1]
    assert isinstance(y.grad_fn.register_prehook(lambda outputs: None), torch.utils.hooks.RemovableHandle)


def test_as_many_gradients_as_tensors():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        torch.autograd.backward([x.sum(), x.prod()], [torch.tensor(1.0)])


def test_gradients_for_an_edge_are_of_its_shape_and_kind():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    edge = torch.autograd.graph.get_gradient_edge(x.sin())
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        torch.autograd.grad(edge, (x,), torch.ones(4))
    with pytest.raises(RuntimeError, match="required to have the same dtype"):
        torch.autograd.grad(edge, (x,), torch.ones(2, dtype=torch.complex64))


def test_an_out_form_does_not_write_a_tensor_of_inference_mode():
    with torch.inference_mode():
        out = torch.ones(3)
        torch.mul(torch.ones(3), 2, out=out)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        torch.mul(torch.ones(3), 3, out=out)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"), torch.no_grad():
        torch.mul(torch.ones(3), 3, out=out)


def test_a_tangent_has_no_tangent_of_its_own_level():
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(RuntimeError, match="has a forward gradient at the same level"):
            forward_ad.make_dual(torch.ones(2), dual)


def test_a_tangent_is_printed():
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.full((2,), 3.0))
        assert str(dual) == "tensor([1., 1.], tangent=tensor([3., 3.]))"
        assert "tangent" not in str(forward_ad.unpack_dual(dual).primal)


@pytest.mark.parametrize("lazy", [lambda t: t.conj(), lambda t: t._neg_view()])
def test_a_lazy_tangent_of_a_tensor_that_is_not(lazy):
    forward_ad = torch.autograd.forward_ad
    tangent = lazy(torch.tensor([5 + 7j, 1j]))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.tensor([1 + 2j, 3 - 1j]), tangent)
        assert torch.equal(forward_ad.unpack_dual(torch.imag(dual)).tangent, tangent.resolve_conj().resolve_neg().imag)


def test_resizing_to_the_same_size_is_no_write():
    x, like = torch.rand(1), torch.rand(3)
    versions = []
    for resize in (lambda: x.resize_(1, 2), lambda: x.resize_as_(like), lambda: x.resize_(3), lambda: x.resize_as_(like)):
        resize()
        versions.append(x._version)
    assert versions == [1, 2, 2, 2]


def test_inputs_by_name():
    x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3.0, requires_grad=True)
    found = autograd.grad((x * y).sum(), {"x": x, "y": y})
    assert list(found) == ["x", "y"] and found["x"].tolist() == [3, 3]
    (x * y).sum().backward(inputs={"y": y})
    assert x.grad is None and y.grad.tolist() == [1, 1]


def test_what_is_given_in_the_place_of_tensors_and_switches():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got float"):
        (x * 2).backward([1.0, 2.0])
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges, but got str"):
        torch.autograd.grad(x.sum(), "a")
    with pytest.raises(TypeError, match=r"requires_grad_\(\): argument 'requires_grad' \(position 1\) must be bool, not str"):
        x.requires_grad_("a")
    with pytest.raises(TypeError, match=r"set_grad_enabled\(\): argument 'enabled' \(position 1\) must be bool, not int"):
        torch.set_grad_enabled(1)
    with pytest.raises(TypeError, match=r"Tensor.register_hook\(\) missing 1 required positional argument: 'hook'"):
        x.register_hook()
    x.register_post_accumulate_grad_hook(lambda leaf: 5)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        x.sum().backward()


def test_types_that_are_younger_than_their_classes():
    x, mask = torch.ones(3, requires_grad=True), torch.tensor([True, False, True])
    y = torch.where(mask, x, x * 2)
    mask.logical_not_()
    with pytest.raises(RuntimeError, match=r"\[CPUBoolType \[3\]\] is at version 1"):
        y.sum().backward()


def test_an_anomaly_in_a_gradient_of_a_gradient_shows_the_first_forward_too():
    import warnings
    x = torch.zeros(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as seen, autograd.detect_anomaly():
        warnings.simplefilter("always")
        y = x ** 1.5
        first, = torch.autograd.grad(y.sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="'PowBackward0' returned nan values"):
            (first * 0).sum().backward()
    texts = [str(warning.message) for warning in seen if "nomaly Detection has" not in str(warning.message)]
    assert "first, = torch.autograd.grad(" in texts[0] and "y = x ** 1.5" not in texts[0]
    assert "part of the gradient of PowBackward0" in texts[1] and "y = x ** 1.5" in texts[1]


def test_an_anomaly_whose_warning_is_an_error_is_raised_itself(capsys):
    import warnings
    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(), autograd.detect_anomaly(check_nan=False):
        warnings.simplefilter("error")
        y = x + 1
        z = y ** 2
        y += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()
    assert "Error detected in PowBackward0" in capsys.readouterr().err


def test_hooks_of_a_saved_tensor_are_functions():
    y = torch.ones(2, requires_grad=True).exp()
    with pytest.raises(TypeError, match="register_hooks"):
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t, 3)


def test_a_gradient_edge_may_keep_something_alive():
    x = torch.ones(2, requires_grad=True) * 2
    edge = autograd.graph.get_gradient_edge(x)
    assert edge.ownership_token is None
    kept = autograd.graph.GradientEdge(edge.node, edge.output_nr, x)
    assert torch.autograd.grad((x * 3).sum(), kept)[0].tolist() == [3.0, 3.0]


def test_the_primal_of_a_computed_dual_has_no_tangent():
    forward_ad = autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.full((2,), 3.0))
        for computed in (dual * dual, (dual * dual)[:1], dual.sin().view(2, 1)):
            primal, tangent = forward_ad.unpack_dual(computed)
            assert tangent is not None and primal.data_ptr() == computed.data_ptr()
            assert [forward_ad.unpack_dual(t).tangent for t in (primal, primal * 2, primal[0])] == [None] * 3
        x = torch.ones(2, requires_grad=True)
        primal, tangent = forward_ad.unpack_dual(forward_ad.make_dual(x, torch.ones(2)).exp())
        (primal + 2 * tangent).sum().backward()
        torch.testing.assert_close(x.grad, torch.full((2,), 3 * math.e))


class _Doubles(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*tensors[1:])
        return tensors

    @staticmethod
    def backward(ctx, *gradients):
        return tuple(2 * g for g in gradients)


def test_a_hook_sees_what_a_custom_function_gave_to_inputs_without_gradients():
    x, y, index = torch.ones(2, requires_grad=True), torch.ones(3), torch.ones(1, dtype=torch.long)
    seen = []
    result = _Doubles.apply(x, y, index)[0]
    result.grad_fn.register_hook(lambda given, incoming: seen.extend([given, incoming]))
    result.sum().backward()
    given, incoming = seen
    assert [g.tolist() for g in given] == [[2, 2], [0, 0, 0], [0]] and given[2].dtype is torch.int64
    assert incoming[1:] == (None, None)
    assert x.grad.tolist() == [2, 2] and y.grad is None


def test_a_backward_hook_of_a_module_sees_zeros_for_inputs_without_gradients():
    class Sum(torch.nn.Module):
        def forward(self, a, b, index, number):
            return 2 * a + b + index.float() + number

    module, seen = Sum(), []
    module.register_full_backward_hook(lambda m, given, incoming: seen.append(given))
    a = torch.ones(2, requires_grad=True)
    module(a, torch.ones(2), torch.ones(2, dtype=torch.long), 3).sum().backward()
    (given,) = seen
    assert [g.tolist() for g in given[:3]] == [[2, 2], [0, 0], [0, 0]] and given[3] is None
    assert given[2].dtype is torch.int64


def test_a_backward_hook_of_a_module_leaves_zeros_where_an_input_or_a_result_took_no_part():
    class Both(torch.nn.Module):
        def forward(self, a, b, unused):
            return 2 * a, 3 * b

    module, seen = Both(), []
    module.register_full_backward_hook(lambda m, given, incoming: seen.extend([given, incoming]))
    a, b, unused = (torch.ones(2, requires_grad=True) for _ in range(3))
    module(a, b, unused)[0].sum().backward()
    given, incoming = seen
    assert [g.tolist() for g in given] == [[2, 2], [0, 0], [0, 0]]
    assert incoming[0].tolist() == [1, 1] and incoming[1] is None
    assert b.grad.tolist() == [0, 0] and unused.grad.tolist() == [0, 0]
