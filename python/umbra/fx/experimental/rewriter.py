"""Tracing of functions whose source is rewritten first, for asserts to become calls that a graph keeps."""
import ast
import copy
import inspect
import textwrap
import types

import umbra
from umbra.fx._symbolic_trace import Tracer

__all__ = ["RewritingTracer"]

_PACKAGE = "_package_of_asserts"


class _AssertsAsCalls(ast.NodeTransformer):
    def visit_Assert(self, node):
        check = ast.Attribute(ast.Name(_PACKAGE, ast.Load()), "_assert", ast.Load())
        call = ast.Expr(ast.Call(check, [node.test, node.msg or ast.Constant("")], []))
        return ast.copy_location(call, node)


def _code_named(code, name):
    """The code of the function that `code` defines, however deep."""
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found = inner if inner.co_name == name else _code_named(inner, name)
            if found is not None:
                return found
    return None


def _rewritten(function):
    """The function with its asserts as calls: over the same globals, closure and defaults."""
    if function.__name__ == "<lambda>":
        return function  # which has no asserts
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    _AssertsAsCalls().visit(definition)
    definition.decorator_list = []
    # What the function reads of functions around it, and the package, are names of one around it here.
    around = ast.parse(f"def around({', '.join((_PACKAGE, *function.__code__.co_freevars))}): pass").body[0]
    around.body = [definition]
    tree.body = [around]
    code = _code_named(compile(ast.fix_missing_locations(tree), inspect.getsourcefile(function), "exec"), definition.name)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells[_PACKAGE] = types.CellType(umbra)
    result = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, tuple(cells[name] for name in code.co_freevars))
    result.__kwdefaults__, result.__annotations__ = function.__kwdefaults__, dict(function.__annotations__)
    return result


class RewritingTracer(Tracer):
    """Traces a function, or the forward of a module, with every `assert` in it as a call of `_assert`."""

    def trace(self, root, concrete_args=None):
        if not isinstance(root, umbra.nn.Module):
            return super().trace(_rewritten(root), concrete_args)
        # Another object of the same parts, for the module of the caller to stay what it is.
        module = copy.copy(root)
        module.__class__ = type(type(root).__name__, (type(root),), {"forward": _rewritten(type(root).forward)})
        return super().trace(module, concrete_args)
