"""make_fx: runs a function and records the operators it calls."""
import functools
import inspect
import itertools

import umbra
from umbra import _C
from umbra._C import SymBool, SymFloat, SymInt
from umbra._options import not_built
from umbra.fx.experimental.symbolic_shapes import ShapeEnv
from umbra.fx.graph_module import GraphModule
from umbra.fx.traceback import current_annotations
from umbra.nn import Parameter
from umbra.compiler import _fx_tracing
from umbra.utils import _pytree as pytree


def is_sym_node(node):
    assert hasattr(node, "meta"), "All nodes traced with proxy_tensor should have meta"
    return "val" in node.meta and isinstance(node.meta["val"], (SymInt, SymFloat, SymBool))


def _own_code(function):
    """The code whose parameters are known one by one; None of a callable object, and of one that takes any number."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None or code.co_flags & inspect.CO_VARARGS else code


def _class_name(function):
    return "<lambda>" if _own_code(function) is None else getattr(function, "__name__", type(function).__name__)


def _argument_names(function, count):
    """The names of the function's parameters; arg0, arg1, ... where it takes any number of them."""
    code = _own_code(function)
    if code is None:
        return [f"arg{i}" for i in range(count)]
    names = list(code.co_varnames[:code.co_argcount])
    if inspect.ismethod(function):
        names = names[1:]
    return names[:count] if len(names) >= count else [f"arg{i}" for i in range(count)]


def _check_count(function, args):
    """Every parameter is given an example, those with defaults too: a graph has no defaults."""
    code = _own_code(function)
    if code is None:
        return
    expected = code.co_argcount + code.co_kwonlyargcount - inspect.ismethod(function)
    if expected != len(args):
        raise RuntimeError(f"Tracing expected {expected} arguments but got {len(args)} concrete arguments")


def _is_flat(args):
    return all(pytree.tree_structure(arg).is_leaf() for arg in args)


def _capture(function, args, options):
    _check_count(function, args)
    leaves, in_spec = pytree.tree_flatten(tuple(args))
    names = []
    for name, arg in zip(_argument_names(function, len(args)), args):
        names += [f"{name}_{i + 1}" for i in range(len(pytree.tree_leaves(arg)))]
    out_spec = None

    def run(flat):
        nonlocal out_spec
        results, out_spec = pytree.tree_flatten(function(*pytree.tree_unflatten(flat, in_spec)))
        for result in results:
            if type(result).__module__ == "numpy":  # made of data that the graph does not see
                raise NotImplementedError(f"argument of type: {type(result)}")
        return results

    if current_annotations():
        raise NotImplementedError("make_fx within fx.traceback.annotate is not in Umbra yet")
    handle = _C._make_fx(run, leaves, names, **options)
    flat = _is_flat(args)
    if flat:
        _C._arrange_output(handle, _pattern(out_spec))
    else:
        _C._arrange_output(handle, list(range(out_spec.num_leaves)))
        handle.graph._set_pytree(_argument_names(function, len(args)), None, True)
    handle.class_name = _class_name(function)
    _name_parameters(handle)
    annotation = getattr(function, "__annotations__", {}).get("return")
    if annotation is not None:
        handle.graph.output_node().type = annotation
    module = GraphModule._wrap(handle)
    if not flat:
        object.__setattr__(module, "_specs", (in_spec, out_spec))
        module._in_spec, module._out_spec = in_spec, out_spec
    return module


def _name_parameters(handle):
    """Parameters that the function closes over are parameters of the module, and are called so."""
    renamed = {}
    for path, kind, value in handle.attributes():
        if kind == "constant" and isinstance(value, Parameter):
            renamed[path] = f"_param_constant{len(renamed)}"
    if not renamed:
        return
    others = itertools.count()
    for path, kind, value in handle.attributes():
        if path not in renamed and path.startswith("_tensor_constant"):
            renamed[path] = f"_tensor_constant{next(others)}"
    values = {path: (kind, value) for path, kind, value in handle.attributes()}
    for path in renamed:
        handle.remove(path)
    for path, name in renamed.items():
        kind, value = values[path]
        handle.set(name, value, "parameter" if name.startswith("_param") else kind)
    for node in handle.graph.nodes:
        if node.op == "get_attr" and node.target in renamed:
            node.target = renamed[node.target]
            node.name = node.target


def _pattern(spec):
    """The output's nest with the position of each leaf in its place; nodes of other classes become lists."""
    counter = iter(range(spec.num_leaves))

    def build(part):
        if part.is_leaf():
            return next(counter)
        children = [build(child) for child in part.children_specs]
        if part.type in (dict,) or "Dict" in part.type.__name__ or "dict" in part.type.__name__:
            keys = part.context[1] if isinstance(part.context, (list, tuple)) and len(part.context) == 2 and isinstance(part.context[1], list) \
                else part.context
            return dict(zip(keys, children))
        return children if part.type is list else tuple(children)
    return build(spec)


def _fake_mode(args, shape_env, allow_non_fake_inputs):
    """The mode of the stand-ins; None where an argument is fake already and brings its own."""
    if any(isinstance(leaf, _C.FakeTensor) for leaf in pytree.tree_leaves(args)):
        return None
    return _C._FakeMode(shape_env, allow_non_fake_inputs=allow_non_fake_inputs, allow_scalar_outputs=True, allow_dynamic_output_shapes=True)


def make_fx(f, decomposition_table=None, tracing_mode="real", _allow_non_fake_inputs=False, *, pre_dispatch=False, record_module_stack=False,
            _allow_fake_constant=False, _error_on_data_dependent_ops=True, record_stack_traces=False, proxy_module_inputs=False,
            _disable_torch_fn_metadata_mode=False, dynamic_shapes=None):
    """A function that captures `f` when it is called: `make_fx(f)(*args)` is a GraphModule.

    `tracing_mode`: "real" runs on the arguments themselves, "fake" on stand-ins without data, "symbolic" on stand-ins whose sizes are symbols.
    With stand-ins, other tensors that `f` uses are refused unless `_allow_non_fake_inputs`. What only the run tells (a count, a number read from a tensor) is
    a symbol there. A symbolic capture has its `shape_env`, with the guards that it left.
    """
    # A stack of modules is recorded for what export has wrapped, and for nothing else.
    not_built("make_fx", record_module_stack=(record_module_stack and hasattr(f, "_orig_mod"), False), _allow_fake_constant=(_allow_fake_constant, False),
              _error_on_data_dependent_ops=(_error_on_data_dependent_ops, True), proxy_module_inputs=(proxy_module_inputs, False),
              dynamic_shapes=(dynamic_shapes, None))
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")

    @functools.wraps(f) if hasattr(f, "__name__") else lambda g: g
    def wrapped(*args):
        shape_env = None if tracing_mode == "real" else _C._ShapeEnv(True, True)
        fake_mode = None if shape_env is None else _fake_mode(args, shape_env, _allow_non_fake_inputs)
        # A graph has no gradients to cut. Who gives a table, even an empty one, keeps the cuts.
        table = {umbra.ops.aten.detach.default: umbra.ops.aten.alias.default} if decomposition_table is None and not pre_dispatch else decomposition_table
        options = {"mode": tracing_mode, "pre_dispatch": pre_dispatch, "decompositions": table, "fake_mode": fake_mode,
                   "locations": record_stack_traces}
        with _fx_tracing():
            module = _capture(f, args, options)
        if tracing_mode == "symbolic" and fake_mode is not None:
            module.shape_env = ShapeEnv._of(shape_env)
        return module
    return wrapped


class ProxyTorchDispatchMode:
    """A capture that is under way."""


_under_way = ProxyTorchDispatchMode()


def get_proxy_mode():
    """What stands for the capture that is under way, or None."""
    return _under_way if _C._is_tracing() else None


get_innermost_proxy_mode = get_proxy_mode
