"""What all operators that take functions share: the objects that graphs call, and functions of flat lists."""
from umbra import _C
from umbra._C import Tensor
from umbra._higher_order_ops.dispatch import HigherOrderOperator
from umbra.utils import _pytree as pytree


class NamedOperator(HigherOrderOperator):
    """An operator of the library's own, as graphs call it: one object of one name, `ops.higher_order.NAME`. Rules of users' are for their modes."""

    def __repr__(self):
        return f"torch.ops.higher_order.{self._name}"


class FlatOperator(NamedOperator):
    """One that dispatches: operands stand in flat lists, functions get them one by one.

    `result` is the position of the function whose results have the shape of the operator's, `parameters` the names by which arguments may be given.
    """

    def __init__(self, name, result=0, parameters=()):
        super().__init__(name)
        self._result, self._parameters = result, parameters

    def __call__(self, *args, **named):
        if named:
            args += tuple(named.pop(parameter) for parameter in self._parameters[len(args):] if parameter in named)
        if named:
            raise TypeError(f"{self._name}() got an unexpected keyword argument '{next(iter(named))}'")
        functions = []

        def flat(argument):
            if not callable(argument) or isinstance(argument, Tensor):
                return list(argument) if isinstance(argument, (tuple, list)) else argument
            functions.append(FlatFunction(argument))
            return functions[-1]
        results = call(self._name, *[flat(a) for a in args])
        spec = functions[self._result].spec or next((f.spec for f in functions if f.spec is not None), None)
        return tuple(results) if spec is None or spec.num_leaves != len(results) else pytree.tree_unflatten(results, spec)


class FlatFunction:
    """`function(*tree)` as a function from a list of leaves to a list of leaves; `spec` is that of what it gave last."""

    def __init__(self, function, in_spec=None, check=None):
        self.function, self.in_spec, self.check, self.spec = function, in_spec, check, None

    def __call__(self, leaves):
        args = leaves if self.in_spec is None else pytree.tree_unflatten(leaves, self.in_spec)
        results, spec = pytree.tree_flatten(self.function(*args))
        self.spec = spec
        if self.check is not None:
            self.check(self)
        return results


def call(name, *args):
    """The flat operator: functions of lists, lists of leaves. What a function must not do is an error of PyTorch's kind."""
    try:
        return _C._call_higher_order(name, *args)
    except Exception as error:
        raise _as_known(error)


_INCOMPLETE = ("This higher order operator doesn't work unless it is captured completely with torch.compile. Got graph break/error:\n\n")


def _as_known(error):
    from umbra._dynamo.exc import TorchDynamoException, UncapturedHigherOrderOpError, UserError, is_of_users_code, operator_refusal, refused_without_data
    text = str(error)
    if isinstance(error, UserError) and text.startswith(("When merging two branches", "Unmatched number of outputs")):
        return refused_without_data(error)
    if isinstance(error, UserError):
        return UncapturedHigherOrderOpError(text if " to have same metadata but found:" in text else _INCOMPLETE + text)
    if isinstance(error, TypeError) and "positional argument" in text:
        return UncapturedHigherOrderOpError(_INCOMPLETE + text)
    if isinstance(error, TypeError) and text.startswith("unsupported operand type"):
        return refused_without_data(error)
    if not isinstance(error, TorchDynamoException) and is_of_users_code(error):
        return UncapturedHigherOrderOpError(f"{_INCOMPLETE}raised exception {error!r}")
    return operator_refusal(error)
