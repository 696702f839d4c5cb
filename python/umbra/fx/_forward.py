"""`forward` of graph modules: a method with the signature of the module's own text."""
import inspect
import types

_KINDS = {"": inspect.Parameter.POSITIONAL_OR_KEYWORD, "*": inspect.Parameter.VAR_POSITIONAL, "**": inspect.Parameter.VAR_KEYWORD}


class _Signed:
    """A function that says what the module's `forward` takes, when it is asked."""
    __slots__ = ("_function", "_module")

    def __init__(self, function, module):
        self._function, self._module = function, module

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._function, name)

    @property
    def __signature__(self):
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        return inspect.Signature([own, *self._module._forward_signature().parameters.values()])


class forward_of_graph:
    """A decorator for the `forward` of a class of graph modules.

        @forward_of_graph
        def forward(self, *args, **kwargs): ...

        inspect.signature(module.forward)  # (x, y), as in module.code
    """

    def __init__(self, function):
        self._function = function

    def __get__(self, module, *_):
        return self._function if module is None else types.MethodType(_Signed(self._function, module), module)


def signature_of_placeholders(placeholders):
    """The signature of a `forward` with these nodes for parameters."""
    parameters = []
    for node in placeholders:
        name = node.target.lstrip("*")
        parameters.append(inspect.Parameter(name, _KINDS[node.target[:len(node.target) - len(name)]],
                                            default=node.args[0] if node.args else inspect.Parameter.empty,
                                            annotation=inspect.Parameter.empty if node.type is None else node.type))
    return inspect.Signature(parameters)
