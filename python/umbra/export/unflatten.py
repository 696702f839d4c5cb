"""unflatten: a program as a tree of modules again, each with a graph of its own that can be looked at and swapped."""
import collections
import copy
import operator
import re

import umbra
from umbra import _C
from umbra._subclasses.fake_tensor import FakeTensor
from umbra._options import not_built
from umbra.export import _calls
from umbra.export._tree_utils import reorder_kwargs
from umbra.export.exported_program import ExportedProgram
from umbra.export.graph_signature import ConstantArgument, InputKind, OutputKind
from umbra.fx.graph import Graph
from umbra.fx.graph_module import GraphModule
from umbra.fx.interpreter import Interpreter
from umbra.fx.node import Node
from umbra.nn import Module, Parameter
from umbra.utils import _pytree as pytree


class FlatArgsAdapter:
    """Turns arguments of another structure into those that a program was exported with. Subclasses say how."""

    def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
        raise NotImplementedError

    def get_flat_arg_paths(self):
        return []


class InterpreterModule(Module):
    """A part of a program: runs its own graph, whose calls of parts are calls of its submodules."""

    def __init__(self, graph, ty=None):
        super().__init__()
        self.graph = graph
        self._ty = ty
        self.arg_names = [node.target for node in graph.nodes if node.op == "placeholder"]

    def forward(self, *args, **kwargs):
        if kwargs:
            args = (*args, *(kwargs[name] for name in self.arg_names[len(args):] if name in kwargs))
        return Interpreter(self, graph=self.graph).run(*args, enable_io_processing=False)

    @property
    def graph_module(self):
        """The graph as a module of its own, over the attributes of this one."""
        return GraphModule(self, self.graph)

    def type_name(self):
        return self._ty

    def finalize(self):
        self.arg_names = [node.target for node in self.graph.nodes if node.op == "placeholder"]

    def print_readable(self, print_output=True, include_stride=False, include_device=False, colored=False):
        """The module's graph as code; printed, unless that is not wanted."""
        not_built("print_readable", include_stride=(include_stride, False), include_device=(include_device, False), colored=(colored, False))
        text = f"class {self._get_name()}(torch.nn.Module):\n" + "".join(f"    {line}\n" for line in self.graph._code(verbose=True).strip().splitlines())
        if print_output:
            print(text)
        return text


class InterpreterModuleDispatcher(Module):
    """A module that a program calls several times, each time with a graph of its own: calls take them in turn."""

    def __init__(self, state, call_modules):
        super().__init__()
        _take_over(self, state)
        self._call_modules = call_modules
        self._next_call = 0

    def forward(self, *args, **kwargs):
        module = self._call_modules[self._next_call]
        self._next_call = (self._next_call + 1) % len(self._call_modules)
        return module(*args, **kwargs)

    def call_modules(self):
        return list(self._call_modules)


class _Call:
    """One call of a module, as its graph is put together."""

    def __init__(self, parent, path, number, type_name):
        self.parent, self.path, self.number, self.type_name = parent, path, number, type_name
        self.graph = Graph()
        self.values = {}  # nodes of the program: the nodes here that stand for them
        self.inputs = []  # nodes of the program that come from the caller, in the order of the placeholders here
        self.own = []     # nodes of the program that are computed here or in a part
        self.attributes = {}
        self.subgraphs = {}  # other attributes of the module: graphs that operators take, tree specs

    @property
    def name(self):
        return self.path + (f"@{self.number}" if self.number else "")

    def add_input(self, node):
        """A new parameter, in front of the others."""
        here = self.graph.placeholder(node.name)
        here.meta = dict(node.meta)
        self.inputs.insert(0, node)
        self.values[node] = here
        return here

    def add_attribute(self, node, target):
        """An attribute of the call's module."""
        if target not in self.attributes:
            self.attributes[target] = self.graph.get_attr(target)
            self.attributes[target].meta = dict(node.meta)
        self.values[node] = self.attributes[target]
        return self.attributes[target]

    def arrange(self, attributes=None):
        """Parameters first, then attributes, then what is computed."""
        ahead = [node for node in self.graph.nodes if node.op == "placeholder"] if attributes is not None else [self.values[node] for node in self.inputs]
        ahead += self.attributes.values() if attributes is None else attributes
        anchor = next(node for node in self.graph.nodes if node not in ahead)
        for node in ahead:
            anchor.prepend(node)


class UnflattenedModule(Module):
    """The modules of a program, called as the program calls them."""

    def __init__(self, export_module, flat_args_adapter=None):
        super().__init__()
        if not isinstance(export_module, ExportedProgram):
            raise TypeError(f"Expected an ExportedProgram, got {type(export_module)}")
        self.module_call_graph = copy.copy(export_module.module_call_graph)
        self.flat_args_adapter = flat_args_adapter
        self.graph_signature = export_module.graph_signature
        self.range_constraints = export_module.range_constraints
        self.adapted = False
        self._program = export_module
        self._specs = tuple(export_module.call_spec)
        aliases = _add_state(self, export_module)
        _Builder(self, export_module, aliases).run()
        self.input_placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]

    def forward(self, *args, **kwargs):
        leaves = self._flatten_inputs(args, kwargs)
        results = Interpreter(self, graph=self.graph).run(*leaves, enable_io_processing=False)
        return pytree.tree_unflatten(list(results), self._specs[1])

    def _flatten_inputs(self, args, kwargs):
        program = self._program
        if self.flat_args_adapter is not None:
            given, spec = pytree.tree_flatten((args, kwargs))
            if spec != self._specs[0]:
                leaves = self.flat_args_adapter.adapt(target_spec=self._specs[0], input_spec=spec, input_args=given, metadata=None, obj=self)
                self.adapted = True
                if len(leaves) != self._specs[0].num_leaves:
                    raise TypeError(f"Flat args adaption failed, number of args mismatch Adatped: {len(leaves)} \nExported module: "
                                    f"{self._specs[0].num_leaves}")
                program._check_leaves(leaves, check_guards=False)
                return leaves
        if kwargs:
            kwargs = reorder_kwargs(kwargs, self._specs[0])
        try:
            leaves = program._flatten_inputs(args, kwargs)
        except ValueError as error:
            raise TypeError("There is no flat args adapter specified. Are you sure you are calling this with the right arguments? \n"
                            f"{error}") from error
        program._check_leaves(leaves, check_guards=False)
        return leaves

    def finalize(self):
        pass

    def print_readable(self, print_output=True, include_stride=False, include_device=False, colored=False):
        """The graph as code; printed, unless that is not wanted."""
        return InterpreterModule.print_readable(self, print_output, include_stride, include_device, colored)


def _add_state(module, program):
    """Gives the modules copies of the weights, one for each tensor however many names it has. The names of each input's tensor, by input."""
    signature = program.graph_signature
    tensors = {**program.constants, **program.state_dict}
    kinds = {spec.target: spec for spec in signature.input_specs if spec.target is not None}
    copies, names, copy_of = {}, {}, _Copies(tensors.values())
    for fqn in [*kinds, *(name for name in tensors if name not in kinds)]:
        spec, tensor = kinds.get(fqn), tensors[fqn]
        key = _identity(tensor) if isinstance(tensor, _C.Tensor) else fqn
        names.setdefault(key, []).append(fqn)
        owner = _module_at(module, fqn.rpartition(".")[0])
        leaf = fqn.rpartition(".")[2]
        if isinstance(tensor, Parameter):
            if key not in copies:
                copies[key] = Parameter(copy_of(tensor), requires_grad=tensor.requires_grad)
            owner.register_parameter(leaf, copies[key])
        elif fqn in program.state_dict or spec is not None and spec.kind is InputKind.BUFFER:
            if key not in copies:
                copies[key] = copy_of(tensor)
            owner.register_buffer(leaf, copies[key], persistent=spec is None or spec.persistent)
        else:
            if key not in copies:
                copies[key] = copy_of(tensor) if isinstance(tensor, _C.Tensor) else tensor
            setattr(owner, leaf, copies[key])
    return {spec.arg.name: names.get(_identity(tensors[spec.target]), [spec.target]) for spec in signature.input_specs if spec.target in tensors}


class _Copies:
    """Copies of tensors that share memory where the tensors do."""

    def __init__(self, tensors):
        lying = {_identity(tensor): tensor for tensor in tensors if isinstance(tensor, _C.Tensor) and isinstance(_identity(tensor), tuple)}
        counts = collections.Counter(map(self._place, lying.values()))
        self._wholes = {place: None for place, count in counts.items() if count > 1}

    @staticmethod
    def _place(tensor):
        return tensor.untyped_storage().data_ptr(), tensor.dtype

    def __call__(self, tensor):
        tensor = tensor.detach()
        place = self._place(tensor) if isinstance(_identity(tensor), tuple) else None
        if place not in self._wholes:
            return tensor.clone()
        if self._wholes[place] is None:
            self._wholes[place] = tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0).clone()
        return self._wholes[place].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _identity(tensor):
    """What is equal for tensors that are one, though files may have made several objects of it."""
    if tensor.is_meta or isinstance(tensor, FakeTensor) or tensor.numel() == 0 or tensor.layout is not umbra.strided:
        return id(tensor)
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()


def _module_at(root, path):
    for part in path.split(".") if path else ():
        if part not in root._modules:
            root.add_module(part, Module())
        root = root._modules[part]
    return root


def _stack_of(node):
    """The calls that a node is part of, outermost first: (path, number of the call, type)."""
    stack = []
    for key, (path, kind) in (node.meta.get("nn_module_stack") or {}).items():
        stack.append((path, _number_of_call(key, path), kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"))
    return [entry for entry in stack if entry[0]]


def _number_of_call(key, path):
    """What stands at the end of a stack's key: `@2`, unless that is part of the module's own name, as in modules that were unflattened."""
    number = re.search(r"@(\d+)$", key)
    return 0 if number is None or path.endswith(number[0]) and key.endswith(path) else int(number[1])


def _is_among(signature, names):
    """Whether the program's own graph has what a call was given and gave; that of a region of another mode may have it instead."""
    return all(isinstance(argument, ConstantArgument) or argument.name in names for argument in (*signature.inputs, *signature.outputs))


class _Builder:
    """Goes through a program's nodes in order, entering and leaving modules as their stacks say."""

    def __init__(self, root, program, aliases):
        self.root, self.program, self.aliases = root, program, aliases
        self.made = {}  # path: the modules made for its calls
        names = {node.name for node in program.graph.nodes}
        self.signatures = {entry.fqn: entry.signature for entry in program.module_call_graph if entry.signature is not None and entry.fqn
                           and _is_among(entry.signature, names)}
        self.kept = {}  # path: modules of calls whose signatures are kept
        self.paths = {entry[0] for node in program.graph.nodes for entry in _stack_of(node)}

    def run(self):
        whole = _Call(None, "", 0, None)
        self.open = [whole]
        for entry in self.program.module_call_graph:
            _module_at(self.root, re.sub(r"@\d+$", "", entry.fqn))
        self._add_inputs(whole)
        for node in self.program.graph.nodes:
            if node.op not in ("placeholder", "output"):
                self._enter(node)
                self._add(node)
        self._leave(1)
        self._finish_root(whole)

    # ---- the whole program ----

    def _add_inputs(self, whole):
        """Inputs of the user's first, then attributes, the last first."""
        placeholders = [node for node in self.program.graph.nodes if node.op == "placeholder"]
        for node in placeholders:
            if node.name not in self.aliases:
                here = whole.graph.node_copy(node)
                whole.values[node] = here
        self.lifted = [node for node in placeholders if node.name in self.aliases]

    def _finish_root(self, whole):
        output = next(node for node in reversed(self.program.graph.nodes) if node.op == "output")
        specs = self.program.graph_signature.output_specs
        results = []
        for spec, value in zip(specs, output.args[0]):
            if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT):
                results.append(self._value(whole, value) if isinstance(value, Node) else value)
            elif spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION):
                target = self._written(whole, spec)
                whole.graph.call_function(umbra.ops.aten.copy_.default, (target, self._value(whole, value)))
        whole.graph.output(tuple(results))
        place = {node.name: i for i, node in enumerate(self.lifted)}
        used = {here: place[node.name] for node, here in whole.values.items() if node.name in place}
        whole.arrange(sorted(used, key=lambda here: -used[here]))
        self._share_kept()
        _arrange_modules(self.root, {entry.fqn: place for place, entry in enumerate(self.program.module_call_graph)})
        for path, part in whole.subgraphs.items():
            setattr(self.root, path, part)
        self.root.graph = whole.graph

    def _written(self, whole, spec):
        """What a mutation writes to: an attribute, or an input of the user's."""
        for node in [*self.lifted, *whole.values]:
            names = self.aliases.get(node.name, (node.name,))
            if spec.target in names:
                return self._value(whole, node)
        raise RuntimeError(f"unflatten: nothing in the program is called {spec.target}")

    # ---- entering and leaving ----

    def _enter(self, node):
        if "nn_module_stack" not in node.meta:
            return
        stack = _stack_of(node)
        common = 0
        while common < min(len(stack), len(self.open) - 1) and stack[common][:2] == (self.open[common + 1].path, self.open[common + 1].number):
            common += 1
        self._leave(common + 1)
        for path, number, kind in stack[common:]:
            self.open.append(_Call(self.open[-1], path, number, kind))

    def _leave(self, depth):
        while len(self.open) > depth:
            self._close(self.open.pop())

    def _close(self, call):
        inside = set(call.own)
        results = [node for node in call.own if any(user not in inside for user in node.users)]
        signature = self.signatures.get(call.name)
        if signature is not None:
            _calls.keep_signature(self, call, signature, results)
            return
        if len(results) == 1:
            call.graph.output(call.values[results[0]])
        else:
            call.graph.output([call.values[node] for node in results])
        call.arrange()
        target = self._module_for(call)
        parent = call.parent
        node = parent.graph.call_module(target, tuple(self._value(parent, given) for given in call.inputs))
        _describe(node, results)
        self._give(parent, node, results)

    def _give(self, parent, called, results):
        for place, result in enumerate(results):
            here = called if len(results) == 1 else parent.graph.call_function(operator.getitem, (called, place))
            if here is not called:
                here.meta = dict(result.meta)
            parent.values[result] = here

    # ---- modules ----

    def _module_for(self, call):
        """The name, below the caller, of the module that runs this call; one that was made for an equal call is taken again."""
        relative = self._relative(call)
        existing = self.made.setdefault(call.path, [])
        for number, graph in existing:
            if _same_graph(graph, call.graph):
                return relative + (f"@{number}" if number else "")
        owner, _, leaf = call.path.rpartition(".")
        modules = _module_at(self.root, owner)._modules
        number = call.number if existing else 0
        while number and (f"{leaf}@{number}" in modules or f"{call.path}@{number}" in self.paths):  # another module is called so
            number += 1
        existing.append((number, call.graph))
        suffix = f"@{number}" if number else ""
        modules[leaf + suffix] = self.module_of(call)
        return relative + suffix

    @staticmethod
    def _relative(call):
        owner = call.parent.path
        return call.path[len(owner) + 1:] if owner and call.path.startswith(owner + ".") else call.path

    def module_of(self, call):
        made = InterpreterModule(call.graph, call.type_name)
        _take_over(made, _module_at(self.root, call.path))
        for path, part in call.subgraphs.items():
            setattr(made, path, part)
        return made

    def kept_module(self, call):
        """The name of the module of a call whose signature is kept: one for all calls, which runs their graphs in turn."""
        self.kept.setdefault(call.path, []).append(self.module_of(call))
        return self._relative(call)

    def _share_kept(self):
        for path in sorted(self.kept, key=lambda path: path.count(".")):  # those that have others inside come first
            modules = self.kept[path]
            owner, _, leaf = path.rpartition(".")
            whole = modules[0] if len(modules) == 1 else InterpreterModuleDispatcher(_module_at(self.root, path), modules)
            place = _module_at(self.root, owner)
            for each in (place, *getattr(place, "_call_modules", ())):
                each._modules[leaf] = whole

    # ---- nodes ----

    def _add(self, node):
        call = self.open[-1]
        if node.op == "get_attr":
            here = self._add_subgraph(call, node)
        else:
            here = call.graph.node_copy(node, lambda used: self._value(call, used))
        call.values[node] = here
        for each in self.open:
            each.own.append(node)

    def _add_subgraph(self, call, node):
        """Graphs that operators take move to the module that calls them."""
        value = operator.attrgetter(node.target)(self.program.graph_module)
        name = node.target.replace(".", "_") if isinstance(value, GraphModule) else node.target
        call.subgraphs[name] = value
        return call.graph.create_node("get_attr", name, name=node.name)

    def _value(self, call, node):
        """What stands for a node of the program inside a call."""
        if node in call.values:
            return call.values[node]
        if node.name in self.aliases:
            target = self._attribute_in(call, node)
            if target is not None:
                return call.add_attribute(node, target)
        if call.parent is None:
            raise RuntimeError(f"unflatten: {node.name} is used before it is computed")
        self._value(call.parent, node)
        return call.add_input(node)

    def _attribute_in(self, call, node):
        prefix = call.path + "." if call.path else ""
        for name in self.aliases[node.name]:
            if name.startswith(prefix):
                return name[len(prefix):]
        return None


def _describe(node, results):
    if len(results) == 1 and "val" in results[0].meta:
        node.meta["val"] = results[0].meta["val"]


def _arrange_modules(module, places, prefix="", made=None):
    """Parts stand in the order of the program's list of modules. One that is never called, but holds others that are, is of the same kind as they."""
    made = {} if made is None else made
    for name, part in module._modules.items():
        if part is None:
            continue
        if id(part) in made:  # under several names
            module._modules[name] = made[id(part)]
            continue
        _arrange_modules(part, places, prefix + name + ".", made)
        whole = part
        if type(part) is Module and any(isinstance(inner, (InterpreterModule, InterpreterModuleDispatcher)) for inner in part._modules.values()):
            whole = InterpreterModule(Graph())
            _take_over(whole, part)
        module._modules[name] = made[id(part)] = made[id(whole)] = whole
    order = sorted(module._modules, key=lambda name: places.get(prefix + name, len(places)))
    module._modules.update({name: module._modules.pop(name) for name in order})


def _take_over(made, old):
    """The state and the parts of the module that stood in a place."""
    for registry in ("_parameters", "_buffers", "_modules"):
        made.__dict__[registry].update(old.__dict__[registry])
    made._non_persistent_buffers_set.update(old._non_persistent_buffers_set)
    for name, value in vars(old).items():
        if isinstance(value, _C.Tensor) and name not in made.__dict__:
            setattr(made, name, value)


def _same_graph(a, b):
    """Whether graphs compute the same of the same attributes."""
    if len(a.nodes) != len(b.nodes):
        return False
    match = {}
    for left, right in zip(a.nodes, b.nodes):
        if (left.op, left.target) != (right.op, right.target) and not left.op == right.op == "placeholder":
            return False
        if left.op == "get_attr" and "val" not in left.meta:
            return False  # of a subgraph
        if not _same_arguments((left.args, dict(left.kwargs)), (right.args, dict(right.kwargs)), match):
            return False
        match[left] = right
    return True


def _same_arguments(left, right, match):
    first, spec = pytree.tree_flatten(left)
    second, other = pytree.tree_flatten(right)
    if spec != other:
        return False
    return all(match.get(x) is y if isinstance(x, Node) else type(x) is type(y) and not isinstance(y, Node) and x == y for x, y in zip(first, second))


def unflatten(module, flat_args_adapter=None):
    """The program's modules, by the names they had when it was exported, with graphs instead of code.

        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU())
        >>> parts = torch.export.unflatten(torch.export.export(model, (torch.ones(3, 4),)))
        >>> getattr(parts, "0").weight.shape
        torch.Size([2, 4])
    """
    return UnflattenedModule(module, flat_args_adapter)
