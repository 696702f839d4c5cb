"""Gradients of operators of the user's own: the kernel that stands at Autograd for them."""
import umbra
from umbra import _C
from umbra._C import Tensor


def _is_tensor_list(value):
    return isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value)


def _flatten(values):
    """Lists of tensors item by item; and what it takes to undo that."""
    flat, lengths = [], []
    for value in values:
        if _is_tensor_list(value):
            flat.extend(value)
            lengths.append(len(value))
        else:
            flat.append(value)
            lengths.append(None)
    return flat, lengths


def _unflatten(flat, lengths):
    items = iter(flat)
    return [next(items) if length is None else [next(items) for _ in range(length)] for length in lengths]


def in_schema_order(overload, args, kwargs):
    """All arguments of a call, defaults filled in: positional ones, and keyword-only ones by name."""
    arguments = overload._schema.arguments
    values = list(args)
    for argument in arguments[len(args):]:
        values.append(kwargs[argument.name] if argument.name in kwargs else argument._default)
    positional = [value for argument, value in zip(arguments, values) if not argument.kwarg_only]
    keywords = {argument.name: value for argument, value in zip(arguments, values) if argument.kwarg_only}
    return positional, keywords


def _count_defaults(overload, positional):
    """How many of the last arguments are what they are where nothing is given."""
    count = 0
    for argument, value in reversed(list(zip(overload._schema.arguments, positional))):
        if isinstance(value, Tensor) or not argument.has_default_value() or value != argument._default:
            break
        count += 1
    return count


def has_tensors(schema):
    """Whether an argument is, or may be, a tensor or a list of them."""
    return any("Tensor" in str(a.type) for a in schema.arguments)


def has_tensors_by_name(schema):
    """Whether tensors are among the arguments that are given by name alone."""
    return any(a.kwarg_only and "Tensor" in str(a.type) for a in schema.arguments)


def check_functional(overload, who):
    schema = overload._schema
    aliases = any(a.alias_info is not None for a in list(schema.arguments) + list(schema.returns))
    if aliases or not schema.returns:
        raise RuntimeError(f"Cannot register autograd formula for non-functional operator {who} with schema {schema}. Please create a "
                           "functional operator and register an autograd formula for that.")
    if has_tensors_by_name(schema):
        raise NotImplementedError("register_autograd with kwarg-only Tensor args. In the original definition of the op, please make your tensors not "
                                  f"kwarg-only. Got: {schema}")


class _Call:
    """One recorded call: how its arguments and results come apart into tensors, and back."""

    def __init__(self, overload, positional, keywords, formula):
        self.overload, self.positional, self.keywords, self.formula = overload, positional, keywords, formula
        self.flat, self.lengths = _flatten(positional)
        self.defaults = _count_defaults(overload, positional)  # a formula need not say that they have no gradient

    def forward(self, ctx):
        with _C._AutoDispatchBelowAutograd():
            result = self.overload(*self.positional, **self.keywords)
        self.nested_needs(ctx)
        if self.formula.setup_context is not None:
            if self.keywords:
                self.formula.setup_context(ctx, tuple(self.positional), self.keywords, result)
            else:
                self.formula.setup_context(ctx, tuple(self.positional), result)
        self.several = isinstance(result, tuple)
        outputs, self.result_lengths = _flatten(result if self.several else (result,))
        self.positional = self.keywords = self.flat = None
        return tuple(outputs)

    def nested_needs(self, ctx):
        if any(length is not None for length in self.lengths):
            # After the call itself, which comes first in the flat arguments.
            ctx.needs_input_grad = tuple(_unflatten(ctx.needs_input_grad[1:], self.lengths))
        else:
            ctx.needs_input_grad = ctx.needs_input_grad[1:]

    def backward(self, ctx, grads):
        formula = self.formula
        if formula.backward is None:
            raise RuntimeError(f"Trying to backward through {self.overload} but no autograd formula was registered. Please use "
                               "register_autograd to add one.")
        gradients = formula.backward(ctx, *_unflatten(grads, self.result_lengths))
        gradients = tuple(gradients) if isinstance(gradients, tuple) else (gradients,)
        if len(self.lengths) - self.defaults <= len(gradients) < len(self.lengths):
            gradients += (None,) * (len(self.lengths) - len(gradients))
        if len(gradients) != len(self.lengths):
            raise RuntimeError(f"function {formula.name}Backward returned an incorrect number of gradients (expected "
                               f"{len(self.lengths)}, got {len(gradients)})")
        flat = [None]
        for gradient, length in zip(gradients, self.lengths):
            if length is None:
                flat.append(gradient)
            elif gradient is None:
                flat.extend([None] * length)
            elif not isinstance(gradient, (list, tuple)) or len(gradient) != length:
                raise RuntimeError(f"Expected the return from backward to be of the same structure as the inputs: a list of {length} "
                                   f"gradients, got {gradient}")
            else:
                flat.extend(gradient)
        return tuple(flat)


class Formula:
    """An operator's gradient: `backward(ctx, *grads)`, and `setup_context(ctx, inputs, output)`, which saves what it needs."""

    def __init__(self, overload, backward=None, setup_context=None):
        self.overload, self.backward, self.setup_context = overload, backward, setup_context
        self.name = f"GeneratedBackwardFor_{overload.namespace}_{overload._opname}_{overload._overloadname}"
        self.function = self._make_function()

    def _make_function(self):
        class Generated(umbra.autograd.Function):
            @staticmethod
            def forward(ctx, call, *flat):
                ctx.call = call
                return call.forward(ctx)

            @staticmethod
            def backward(ctx, *grads):
                return ctx.call.backward(ctx, grads)

        Generated.__name__ = self.name
        return Generated

    def __call__(self, /, *args, **kwargs):
        """The kernel at Autograd."""
        positional, keywords = in_schema_order(self.overload, args, kwargs)
        call = _Call(self.overload, positional, keywords, self)
        if not self.overload._schema.returns or not umbra.is_grad_enabled() or not any(isinstance(value, Tensor) and value.requires_grad for value in call.flat):
            with _C._AutoDispatchBelowAutograd():
                return self.overload(*positional, **keywords)
        flat = self.function.apply(call, *call.flat)
        result = tuple(_unflatten(flat, call.result_lengths))
        return result if call.several else result[0]
