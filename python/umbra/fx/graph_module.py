"""GraphModule: a graph with the tensors and subgraphs it refers to, as a module that can be called."""
import copy
import functools
import inspect

from umbra import _C
from umbra._C import Tensor
from umbra._options import not_built
from umbra.fx._codegen import PytreeCodeGen, code_of, compiled, typed_parameters
from umbra.fx._forward import forward_of_graph, signature_of_placeholders
from umbra.fx.graph import PythonCode, graph_of, nodes_of
from umbra.fx.proxy import Proxy
from umbra.fx.traceback import has_preserved_node_meta
from umbra.nn import Module, Parameter
from umbra.utils import _pytree as pytree


def _kind(owner, name, value):
    if isinstance(value, Module):
        return "module"
    if isinstance(value, Parameter):
        return "parameter"
    if isinstance(value, Tensor):
        return "buffer" if isinstance(owner, Module) and name in owner._buffers else "constant"
    return "object"


def _kind_of_copy(owner, name, value):
    """The same for a module that takes it over: buffers that are not saved stay such."""
    kind = _kind(owner, name, value)
    return "temporary" if kind == "buffer" and name in owner._non_persistent_buffers_set else kind


def _get_path(root, path):
    """The owner of the last part of a dotted path, and its value; (owner, None) where there is none."""
    owner, value = None, root
    for part in path.split("."):
        owner, value = value, getattr(value, part, None)
        if value is None:
            break
    return owner, value


def _require_path(root, path):
    """The same, where it has to be there."""
    owner, value = None, root
    for part in path.split("."):
        owner, value = value, getattr(value, part)
    return owner, value


def _set_path(root, path, kind, value):
    *holders, name = path.split(".")
    for part in holders:
        if not isinstance(getattr(root, part, None), Module):
            root.add_module(part, Module())
        root = getattr(root, part)
    if kind == "parameter":
        root.register_parameter(name, value if isinstance(value, Parameter) else _as_parameter(value))
    elif kind in ("buffer", "temporary", "constant") and isinstance(value, Tensor):
        root.register_buffer(name, value, persistent=kind != "temporary")
    else:
        setattr(root, name, value)


def _copy_attr(from_module, to_module, target):
    """Gives a module what another one has at a dotted path, unless it has something there."""
    owner, value = _require_path(from_module, target)
    if value is not None and _get_path(to_module, target)[1] is None:
        _set_path(to_module, target, _kind_of_copy(owner, target.rpartition(".")[2], value), value)


def _assign_attr(from_obj, to_module, target):
    """Puts an object at a dotted path of a module: a tensor that is no parameter becomes a buffer."""
    _set_path(to_module, target, _kind(None, target.rpartition(".")[2], from_obj), from_obj)


class _CodeOnlyModule(Module):
    """A module of nothing but the attributes that it is given."""

    def __init__(self, body):
        super().__init__()
        self.__dict__ = body


_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # in `meta`: what copies of a module are to have too


def _as_parameter(tensor):
    if isinstance(tensor, Parameter):
        return tensor
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return Parameter(tensor, requires_grad=False)
    return Parameter(tensor.detach(), requires_grad=tensor.requires_grad)


@functools.lru_cache(maxsize=None)
def _class_named(base, name):
    """A class that differs from `base` in its name alone."""
    return type(base)(name, (base,), {"__module__": base.__module__, "_base_class": base})


def _found(root, node):
    """What a node names in the root of a module, and the module that has it."""
    if not isinstance(root, dict):
        return _require_path(root, node.target)
    if node.target not in root:
        raise RuntimeError(f"Node {node} referenced target {node.target} but that target was not provided in ``root``!")
    return None, root[node.target]


class GraphModule(Module):
    """Runs a graph. Its attributes are those that the graph's `get_attr` nodes name."""
    _base_class = None  # of classes made for a name
    _class_name = "GraphModule"

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        self.meta = {}
        if not isinstance(root, (Module, dict)):
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self._set_class_name(class_name)
        if hasattr(root, "training"):
            self.training = root.training
        if isinstance(root, GraphModule):
            self.meta.update(root.meta)
        found = [(node.target, *_found(root, node)) for node in graph._find_nodes(["get_attr", "call_module"])]
        self._attach(graph)  # now that all is there: a module that is refused does not own the graph
        for path, owner, value in found:
            if value is not None and _get_path(self, path)[1] is None:
                _set_path(self, path, _kind_of_copy(owner, path.rpartition(".")[2], value), value)

    @classmethod
    def _wrap(cls, handle):
        """The Python object of a C++ graph module, with its attributes."""
        self = cls.__new__(cls)
        Module.__init__(self)
        self.meta = {}
        self._set_class_name(handle.class_name)
        self._attach(handle.graph, handle)
        for path, kind, value in handle.attributes():
            if isinstance(value, _C._GraphModule):
                value = GraphModule._wrap(value)
            _set_path(self, path, kind, value)
            if kind == "parameter" and _get_path(self, path)[1] is not value:
                handle.set(path, _get_path(self, path)[1], kind)
        return self

    def _set_class_name(self, name):
        self._class_name = name
        base = type(self)._base_class or type(self)
        if name not in ("GraphModule", type(self).__name__):
            self.__class__ = _class_named(base, name)

    def __reduce_ex__(self, protocol):
        """The graph as it was compiled, and the module's attributes; nodes' metadata stay behind, as in PyTorch."""
        attributes = {key: value for key, value in self.__dict__.items() if key not in _OF_GRAPH}
        return _restore, (type(self)._base_class or type(self), self._class_name, nodes_of(self._compiled), self._specs), attributes

    def __setstate__(self, attributes):
        self.__dict__.update(attributes)

    def _attach(self, graph, handle=None):
        """Takes a graph, and compiles it. With a handle it is one that nobody else has seen."""
        object.__setattr__(self, "_graph", graph)
        object.__setattr__(self, "_specs", graph._specs)
        graph.owning_module = self
        if handle is None:
            self._compile()
        else:
            object.__setattr__(self, "_handle", handle)
            object.__setattr__(self, "_compiled", graph)
            object.__setattr__(self, "_source", None)
            object.__setattr__(self, "_known_plan", None)
            object.__setattr__(self, "_known_function", None)
        if isinstance(graph._own_codegen, PytreeCodeGen):  # whose text takes arguments apart by these
            self.__dict__.update(_in_spec=graph._own_codegen._in_spec, _out_spec=graph._own_codegen.out_spec)

    def _compile(self):
        """What runs is the graph as it is now: edits take effect when it is compiled again."""
        object.__setattr__(self, "_known_plan", None)
        if self._graph._own_codegen is not None:  # which says itself how nests are taken apart
            object.__setattr__(self, "_specs", self._graph._specs)
        graph = self._graph._copy_whole()
        object.__setattr__(self, "_compiled", graph)
        object.__setattr__(self, "_handle", graph._module(self._class_name))
        plain = (graph._own_codegen is None or graph._codegen.is_plain()) and not graph._has_statements
        object.__setattr__(self, "_source", code_of(graph, self._handle.code()) if not plain else None)
        object.__setattr__(self, "_known_function", None)

    @property
    def graph(self):
        if self._compiled is self._graph:  # from here on it may be edited
            self._compile()
        return self._graph

    @graph.setter
    def graph(self, graph):
        assert isinstance(graph, _C.Graph), f"Expected a Graph instance, but got {type(graph)}"
        specs = self.__dict__.get("_specs")  # none yet where a class of the user's makes the module its own way
        self._attach(graph)
        if specs is not None:
            object.__setattr__(self, "_specs", specs)

    @property
    def code(self):
        return self._source if self._source is not None else code_of(self._compiled, self._handle.code())

    def _forward_function(self):
        """`forward` as its source defines it: what is traced again, or compiled by `torch.jit.script`."""
        if self.__dict__["_known_function"] is None:
            object.__setattr__(self, "_known_function", compiled(self._compiled, self.code))
        return self.__dict__["_known_function"]

    def _get_name(self):
        return self._class_name

    def recompile(self):
        self._compile()
        return PythonCode(self.code)

    def print_readable(self, print_output=True, include_stride=False, include_device=False, colored=False, *, fast_sympy_print=False,
                       expanded_def=False, additional_meta=None):
        """The graph as code with shapes and types; printed, unless that is not wanted."""
        not_built("GraphModule.print_readable", colored=(colored, False), fast_sympy_print=(fast_sympy_print, False),
                  expanded_def=(expanded_def, False), additional_meta=(additional_meta, None))
        text = _readable(self, self._class_name, include_stride, include_device)
        if print_output:
            print(text)
        return text

    def __str__(self):
        return super().__str__() + "\n" + self.code + "\n# To see more debug info, please use `graph_module.print_readable()`"

    def __repr__(self):
        return super().__repr__()

    # ---- running ----

    def _update_handle(self):
        """Tells the C++ module of attributes that were set since."""
        self._update(self._handle, self._plan.attributes)

    def _update(self, handle, attributes):
        for path, node in attributes.items():
            owner, value = _get_path(self, path)
            if isinstance(value, Tensor):
                if not handle.holds_tensor(path, value):
                    handle.set(path, value, _kind(owner, path.rpartition(".")[2], value))
            elif isinstance(value, GraphModule) and not (node.op == "call_module" and value._compiled._needs_python()):
                value._update_handle()
                handle.set(path, value._handle, "module")
            elif value is not None:
                handle.set(path, value, _kind(owner, "", value))

    @property
    def _plan(self):
        """What every call asks of the compiled graph, which stays as it is."""
        plan = self.__dict__["_known_plan"]
        if plan is None:
            plan = _Plan(self._compiled)
            object.__setattr__(self, "_known_plan", plan)
        return plan

    def _parameters_of_forward(self):
        return self._plan.parameters

    def _bind(self, args, kwargs):
        """Positional arguments in the placeholders' order."""
        names = self._plan.names
        if self._plan.is_starred:
            return self._bind_starred(args, kwargs)
        unknown = [name for name in kwargs if name not in names]
        if unknown:
            raise TypeError(f"forward() got an unexpected keyword argument '{unknown[0]}'")
        twice = [name for name in names[:len(args)] if name in kwargs]
        if twice:
            raise TypeError(f"forward() got multiple values for argument '{twice[0]}'")
        if len(args) > len(names):
            raise TypeError(f"forward() takes {len(names) + 1} positional arguments but {len(args) + 1} were given")
        inputs, missing = list(args), []
        for node in self._parameters_of_forward()[len(inputs):]:
            if node.target in kwargs:
                inputs.append(kwargs[node.target])
            elif node.args:
                inputs.append(node.args[0])
            else:
                missing.append(repr(node.target))
        if missing:
            listed = " and ".join([", ".join(missing[:-1]), missing[-1]] if len(missing) > 1 else missing)
            raise TypeError(f"forward() missing {len(missing)} required positional argument{'s' * (len(missing) > 1)}: {listed}")
        return inputs

    def _bind_starred(self, args, kwargs):
        bound = signature_of_placeholders(self._parameters_of_forward()).bind(*args, **kwargs)
        bound.apply_defaults()
        return list(bound.arguments.values())

    def _run_in_python(self, inputs):
        from umbra.fx.interpreter import SourceInterpreter
        steps = self._plan.steps
        if steps is not None and not _is_recorded() and not any(isinstance(value, Proxy) for value in inputs):
            return steps(self, *inputs)
        values = dict(zip(self._parameters_of_forward(), inputs))
        return SourceInterpreter(self, graph=self._compiled).run(initial_env=values, enable_io_processing=False)

    @forward_of_graph
    def forward(self, *args, **kwargs):
        if self._source is not None:
            return self._forward_function()(self, *args, **kwargs)
        in_spec, out_spec = self._specs
        form = self._compiled._own_codegen
        if isinstance(form, PytreeCodeGen):
            inputs, out_spec = form.leaves(args, kwargs), form.out_spec
        elif in_spec is not None:
            if kwargs and "_in_spec" in self.__dict__:
                return self._forward_function()(self, *args, **kwargs)
            if kwargs:
                raise TypeError(f"forward() got an unexpected keyword argument '{next(iter(kwargs))}'")
            leaves, spec = pytree.tree_flatten(args)
            if spec != in_spec:
                _refuse_missing(args, in_spec)
                raise ValueError(f"the arguments have the structure {spec}, the graph was made for {in_spec}")
            inputs = leaves
        else:
            inputs = self._bind(args, kwargs)
        if self._plan.needs_python or any(isinstance(value, Proxy) for value in inputs):
            results = self._run_in_python(inputs)
            return results if out_spec is None else pytree.tree_unflatten(results, out_spec)
        self._update_handle()
        results = self._handle.run(inputs)
        if out_spec is not None:
            return pytree.tree_unflatten(results, out_spec)
        return _arrange(self._plan.output, results)

    def _plain_handle(self):
        """The C++ module that a call comes down to; None where Python takes part in it."""
        own = type(self).forward is GraphModule.forward and type(self).__call__ is Module.__call__ and "forward" not in self.__dict__
        hooked = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        if not own or hooked or self._modules or self._source is not None or self._specs != (None, None) or self._plan.needs_python:
            return None
        shape = self._plan.output.args[0] if self._plan.output is not None and self._plan.output.args else None
        if not isinstance(shape, (tuple, list)) or any(isinstance(part, (tuple, list, dict)) for part in shape):
            return None
        self._update_handle()
        return self._handle

    def _forward_signature(self):
        """What `forward` takes, as its text says."""
        if self._source is None and self._specs[0] is None and not isinstance(self._compiled._own_codegen, PytreeCodeGen):
            return signature_of_placeholders(self._parameters_of_forward())
        parameters = list(inspect.signature(self._forward_function()).parameters.values())
        return inspect.Signature(parameters[1:])

    # ---- source ----

    def to_folder(self, folder, module_name="FxModule"):
        """Writes the module as a package: its code as the class `module_name`, its tensors, and the modules that it calls."""
        from umbra.fx._folder import write
        write(self, folder, module_name)

    # ---- copies ----

    def __deepcopy__(self, memo):
        own_class = type(self)._base_class or type(self)
        result = own_class.__new__(own_class)
        memo[id(self)] = result
        Module.__init__(result)
        result._set_class_name("GraphModule")
        result._attach(copy.deepcopy(self._graph, memo))
        object.__setattr__(result, "_specs", self._specs)
        for key, value in self.__dict__.items():
            if key not in _OF_GRAPH and not (key.endswith("_hooks") and isinstance(value, dict) and key not in _KEPT_HOOKS):
                result.__dict__[key] = copy.deepcopy(value, memo)
        return result

    def __copy__(self):
        return GraphModule(self, self._graph)

    def add_submodule(self, target, m):
        """Puts a module at a dotted path, making modules on the way; whether that was possible: what stands on the way may be no module."""
        *holders, name = target.split(".")
        owner = self
        for part in holders:
            value = getattr(owner, part, None)
            if value is None:
                owner.add_module(part, Module())
                value = getattr(owner, part)
            if not isinstance(value, Module):
                return False
            owner = value
        owner.add_module(name, m)
        return True

    def delete_submodule(self, target):
        """Whether there was such a module."""
        path, _, name = target.rpartition(".")
        owner = _get_path(self, path)[1] if path else self
        if not isinstance(owner, Module) or name not in owner._modules:
            return False
        del owner._modules[name]
        return True

    def delete_all_unused_submodules(self):
        """Deletes the modules that no node of the graph calls or takes an attribute of."""
        used = set()
        for node in self._graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used |= {".".join(parts[:i]) for i in range(1, len(parts) + 1)}
            if node.op == "call_module":  # and all that it is made of
                called = _get_path(self, node.target)[1]
                used |= {f"{node.target}.{name}" for name, _ in called.named_modules() if name} if isinstance(called, Module) else set()
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)


def _readable(module, name, include_stride, include_device):
    """A graph module as a class with shapes and types, and those within it."""
    text = typed_parameters(module.graph, module.graph._module(name).readable(include_stride, include_device))
    for child_name, child in module.named_children():
        if isinstance(child, GraphModule):
            lines = ("\n" + _readable(child, child_name, include_stride, include_device)).split("\n")
            text += "\n".join([lines[0], *("    " + line if line.strip() else "" for line in lines[1:])])
    return text


# Hooks that copies have too; those of calls stay with the module that they were set on.
_KEPT_HOOKS = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")
_OF_GRAPH = ("_handle", "_graph", "_compiled", "_specs", "_source", "_known_plan", "_known_function")


def _restore(base, name, nodes, specs):
    cls = base if name in ("GraphModule", base.__name__) else _class_named(base, name)
    self = cls.__new__(cls)
    Module.__init__(self)
    self._class_name = name
    self._attach(graph_of(nodes))
    object.__setattr__(self, "_specs", specs)
    return self


def _is_recorded():
    """Whether somebody may ask which nodes calls come from."""
    return _C._is_tracing() or _C._is_capturing() or _C._jit_is_tracing() or has_preserved_node_meta()


class _Plan:
    """What calls ask of a graph: its parameters, the attributes that it refers to, its result."""

    def __init__(self, graph):
        self.parameters = graph._find_nodes(["placeholder"])
        self.names = [node.target for node in self.parameters]
        self.is_starred = any(name.startswith("*") for name in self.names)
        self.attributes = _attributes_of(graph)
        self.needs_python = graph._needs_python()
        self.output = graph._output_node()
        self._graph = graph

    @functools.cached_property
    def steps(self):
        """The graph as a function of Python's, where there is one."""
        from umbra.fx._steps import function_of
        from umbra.fx.interpreter import attribute_at
        return function_of(self._graph, attribute_at)

    def __deepcopy__(self, memo):
        """A copy of a module makes its own, of its own nodes."""
        return None


def _attributes_of(graph):
    """The attributes that a graph refers to, and the first node that does."""
    found = {}
    for node in graph._find_nodes(["get_attr", "call_module"]):
        found.setdefault(node.target, node)
    return found


def _refuse_missing(args, spec):
    """Python's own error where an argument, or an entry of one, is not there."""
    from umbra.fx._pytree import tree_flatten_spec
    count = len(spec.children())
    if len(args) < count:
        raise TypeError(f"forward() missing {count - len(args)} required positional argument{'s' if count - len(args) > 1 else ''}")
    for value, child in zip(args, spec.children()):
        if child.type is not None and isinstance(value, child.type):
            tree_flatten_spec(value, child)


def _arrange(output, results):
    """Flat results in the shape of the graph's output."""
    if output is None:
        return None
    shape = output.args[0] if output.args else None
    if isinstance(shape, (tuple, list)) and len(results) == len(shape):
        nested = [_rebuild(part, result) for part, result in zip(shape, results)]
        return tuple(nested) if isinstance(shape, tuple) else nested
    return _rebuild(shape, results[0]) if results else None


def _rebuild(shape, value):
    if isinstance(shape, tuple) and isinstance(value, (list, tuple)):
        return tuple(_rebuild(s, v) for s, v in zip(shape, value))
    if isinstance(shape, list) and isinstance(value, (list, tuple)):
        return [_rebuild(s, v) for s, v in zip(shape, value)]
    if isinstance(shape, dict) and isinstance(value, (list, tuple)):
        return {key: _rebuild(s, v) for (key, s), v in zip(shape.items(), value)}
    return value
