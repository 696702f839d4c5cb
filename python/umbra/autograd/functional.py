"""Derivatives of functions: jacobians, hessians, and products with them, by backward passes.

`vectorize` asks for all rows at once. Results are part of a graph with `create_graph`, and in forward mode, where nothing is cut off.
"""
import umbra
from umbra._C import Tensor


_OUTPUTS = "outputs of the user-provided function"


def _tuple_of(value, what, function):
    """The tensors as a tuple, and whether they came as one."""
    if isinstance(value, Tensor):
        return (value,), False
    if not isinstance(value, tuple):
        raise TypeError(f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the given {what} has type "
                        f"{type(value)}.")
    for i, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise TypeError(f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the value at index {i} has "
                            f"type {type(item)}.")
    return value, True


def _single_element(function, outputs, are_tuple):
    if are_tuple:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return outputs[0].reshape(())


class _Call:
    """One call of a user's function on inputs of its own, which are differentiated."""

    def __init__(self, function, func, inputs, create_graph, strict):
        given, self.inputs_are_tuple = _tuple_of(inputs, "inputs", function)
        self.function, self.create_graph, self.strict = function, create_graph, strict
        with umbra.enable_grad():
            self.inputs = tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in given)
            self.outputs, self.outputs_are_tuple = _tuple_of(func(*self.inputs), _OUTPUTS, function)
        for i, output in enumerate(self.outputs):
            if strict and not output.requires_grad:
                raise RuntimeError(f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
                                   "differentiable manner from the input when running in strict mode.")

    def single_output(self):
        with umbra.enable_grad():
            return _single_element(self.function, self.outputs, self.outputs_are_tuple)

    def gradients(self, outputs, inputs, weights, create_graph, stage="first"):
        """Gradients by input, zeros where nothing depends on it, which strict mode refuses in the words for `stage`."""
        wanted = [(o, w) for o, w in zip(outputs, weights) if o.requires_grad]
        found = (None,) * len(inputs)
        if wanted:
            with umbra.enable_grad():
                found = umbra.autograd.grad([o for o, _ in wanted], inputs, [w for _, w in wanted], retain_graph=True, create_graph=create_graph,
                                            allow_unused=True)
        if self.strict:
            self.refuse_independence(found, create_graph and self.create_graph, stage)
        return tuple(umbra.zeros_like(x) if g is None else g for g, x in zip(found, inputs))

    @staticmethod
    def refuse_independence(found, create_graph, stage):
        for i, gradient in enumerate(found):
            if gradient is None:
                raise RuntimeError(_INDEPENDENT[stage].format(i))
            if create_graph and not gradient.requires_grad:
                what = "hessian" if stage.startswith("second") else "jacobian"
                raise RuntimeError(f"The {what} of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
                                   "create_graph=True.")

    def twice_differentiable(self, first):
        """The first derivatives, which strict mode wants to depend on the inputs."""
        for i, gradient in enumerate(first):
            if self.strict and not gradient.requires_grad:
                raise RuntimeError(_LINEAR.format(i))
        return first

    def checked(self, output, found):
        """Gradients of one output; in strict mode none of them may be missing."""
        if self.strict:
            for i, gradient in enumerate(found):
                if gradient is None:
                    raise RuntimeError(f"Output {output} of the user-provided function is independent of input {i}. This is not allowed in "
                                       "strict mode.")
            self.refuse_independence(found, self.create_graph, "first")
        return tuple(umbra.zeros_like(x) if g is None else g for g, x in zip(found, self.inputs))

    def finished(self, tensors, as_tuple):
        tensors = tuple(t if self.create_graph else t.detach() for t in tensors)
        return tensors if as_tuple else tensors[0]

    def vector(self, v, like, missing):
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise RuntimeError(f"The vector v can only be None if {missing}.")
            return (umbra.ones_like(like[0]),)
        v, _ = _tuple_of(v, "v", self.function)
        if len(v) != len(like):
            if len(like) == 1:
                raise RuntimeError("The given v should contain a single Tensor.")
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
        for i, (a, b) in enumerate(zip(v, like)):
            if a.size() != b.size():
                entry = f"Entry {i} in " if len(like) > 1 else ""
                raise RuntimeError(f"{entry}v has invalid size: should be {b.size()} but got {a.size()}.")
        return v


_INDEPENDENT = {
    "first": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "first along": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double backward trick to compute "
                   "forward mode gradients. This is not allowed in strict mode.",
    "second": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "second along": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is not allowed in strict mode as it "
                    "prevents from using the double backward trick to replace forward mode AD."}
_LINEAR = ("While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is independent of the input. This "
           "is not allowed in strict mode. You should ensure that your function is twice differentiable and that the jacobian depends on the inputs (this "
           "would be violated by a linear function for example).")
_FROM_OUTPUT = "the user-provided function returns a single Tensor with a single element"
_FROM_INPUT = "the input to the user-provided function is a single Tensor with a single element"


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The derivative of each output by each input: of sizes output.size() + input.size(), in tuples where there are tuples."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError("Expected strategy to be either \"forward-mode\" or \"reverse-mode\". Hint: If your function has more outputs than inputs, "
                             "\"forward-mode\" tends to be more performant. Otherwise, prefer to use \"reverse-mode\".")
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError("torch.autograd.functional.jacobian: `create_graph=True` and `strategy=\"forward-mode\"` are not supported "
                                  "together (yet). Please either set `create_graph=False` or `strategy=\"reverse-mode\"`.")
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`.")
    if strict and vectorize:
        raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either "
                           "set `strict=False` or `vectorize=False`.")
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs)
    call = _Call("jacobian", func, inputs, create_graph, strict)
    rows = _all_rows(call) if vectorize else [_rows(call, number, output) for number, output in enumerate(call.outputs)]
    finished = tuple(call.finished(row, call.inputs_are_tuple) for row in rows)
    return finished if call.outputs_are_tuple else finished[0]


def _rows(call, number, output):
    """The derivatives of one output by each input."""
    parts = [[] for _ in call.inputs]
    with umbra.enable_grad():
        elements = output.reshape(-1)
        for i in range(output.numel()):
            found = (None,) * len(parts)
            if output.requires_grad:
                found = umbra.autograd.grad(elements[i], call.inputs, retain_graph=True, create_graph=call.create_graph, allow_unused=True)
            for part, gradient in zip(parts, call.checked(number, found)):
                part.append(gradient)
        return [umbra.stack(part).reshape(output.size() + x.size()) if part else x.new_zeros(output.size() + x.size())
                for part, x in zip(parts, call.inputs)]


def _basis(tensors):
    """Each element's direction, as rows: one tensor of rows for each of the tensors, flat."""
    counts = [t.numel() for t in tensors]
    parts = [t.new_zeros(sum(counts), count) for t, count in zip(tensors, counts)]
    start = 0
    for part, count in zip(parts, counts):
        part.diagonal(-start).fill_(1)
        start += count
    return tuple(parts), counts


def _all_rows(call):
    """The derivatives of all outputs by each input, by one backward pass of a batch."""
    weights, counts = _basis(call.outputs)
    wanted = [(output.reshape(-1), weight) for output, weight in zip(call.outputs, weights) if output.requires_grad]
    found = (None,) * len(call.inputs)
    if wanted:
        found = umbra.autograd.grad([o for o, _ in wanted], call.inputs, [w for _, w in wanted], create_graph=call.create_graph, allow_unused=True,
                                    is_grads_batched=True)
    found = [umbra.zeros_like(x).expand(sum(counts), *x.shape) if g is None else g for g, x in zip(found, call.inputs)]
    parts = [[rows.reshape(output.shape + x.shape) for rows, output in zip(g.split(counts), call.outputs)] for g, x in zip(found, call.inputs)]
    return list(zip(*parts))


def _forward_jacobian(func, inputs):
    """Derivatives along all directions of the inputs, which are columns, by one run of the function."""
    given, inputs_are_tuple = _tuple_of(inputs, "inputs", "jacobian")
    directions, counts = _basis(given)
    runs = []

    def along(*tangents):
        def results(*values):
            outputs, are_tuple = _tuple_of(func(*values), _OUTPUTS, "jacobian")
            runs.append(([output.shape for output in outputs], are_tuple))
            return outputs
        return umbra.func.jvp(results, given, tuple(tangent.view_as(x) for x, tangent in zip(given, tangents)))[1]

    columns = umbra.func.vmap(along)(*directions)
    sizes, outputs_are_tuple = runs[0]
    rows = tuple(tuple(part.movedim(0, -1).reshape(size + x.shape) for part, x in zip(column.split(counts), given)) for column, size in zip(columns, sizes))
    rows = rows if inputs_are_tuple else tuple(row[0] for row in rows)
    return rows if outputs_are_tuple else rows[0]


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of a function with one element as its result, by each pair of inputs."""
    as_tuple = _tuple_of(inputs, "inputs", "hessian")[1]

    def gradient(*values):
        if outer_jacobian_strategy == "forward-mode":  # a call of its own would cut tangents off
            output, pull_back = umbra.func.vjp(lambda *values: _single_element("hessian", *_tuple_of(func(*values), _OUTPUTS, "hessian")), *values)
            return pull_back(umbra.ones_like(output))
        call = _Call("hessian", func, values if as_tuple else values[0], True, strict)
        call.strict = False  # nothing is asked of the first derivatives but that they depend on the inputs
        found = call.gradients([call.single_output()], call.inputs, [None], True)
        call.strict = strict
        return call.twice_differentiable(found)

    result = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if as_tuple else result[0]


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """The function's outputs, and the product of `v` with its jacobian."""
    call = _Call("vjp", func, inputs, create_graph, strict)
    weights = call.vector(v, call.outputs, _FROM_OUTPUT)
    found = call.gradients(call.outputs, call.inputs, weights, create_graph)
    return call.finished(call.outputs, call.outputs_are_tuple), call.finished(found, call.inputs_are_tuple)


def _forward_product(call, outputs, directions, create_graph, stage):
    """The products of the outputs' jacobians with directions of the inputs: the product with weights is linear in them, and its
    derivative by them along the directions is what is wanted."""
    weights = tuple(umbra.zeros_like(o).requires_grad_() for o in outputs)
    pulled = call.gradients(outputs, call.inputs, weights, True, stage)
    return call.gradients(pulled, weights, directions, create_graph, stage + " along")


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The function's outputs, and the product of its jacobian with `v`."""
    call = _Call("jvp", func, inputs, create_graph, strict)
    directions = call.vector(v, call.inputs, _FROM_INPUT)
    found = _forward_product(call, call.outputs, directions, create_graph, "first")
    return call.finished(call.outputs, call.outputs_are_tuple), call.finished(found, call.outputs_are_tuple)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The function's output, and the product of `v` with its hessian."""
    call = _Call("vhp", func, inputs, create_graph, strict)
    output = call.single_output()
    directions = call.vector(v, call.inputs, _FROM_INPUT)
    first = call.twice_differentiable(call.gradients([output], call.inputs, [None], True))
    found = call.gradients(first, call.inputs, directions, create_graph, "second")
    return call.finished(call.outputs, False), call.finished(found, call.inputs_are_tuple)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The function's output, and the product of its hessian with `v`."""
    call = _Call("hvp", func, inputs, create_graph, strict)
    output = call.single_output()
    directions = call.vector(v, call.inputs, _FROM_INPUT)
    first = call.twice_differentiable(call.gradients([output], call.inputs, [None], True))
    found = _forward_product(call, first, directions, create_graph, "second")
    return call.finished(call.outputs, False), call.finished(found, call.inputs_are_tuple)
