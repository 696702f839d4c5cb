"""The source of a graph's `forward`: types in it, and classes of the user's that write it in another form."""
import itertools
import linecache
import re
import types
import typing

import umbra
from umbra.utils import _pytree as pytree


_GENERICS = {list: typing.List, dict: typing.Dict, tuple: typing.Tuple, set: typing.Set, frozenset: typing.FrozenSet}


def _type_name(value, names):
    """A type as source names it: torch.Tensor, int, others by a name of their own, which `names` then has."""
    if isinstance(value, str):  # an annotation that nobody has evaluated
        return _named(repr(value), value, names)
    if value is None or value is type(None):
        return "NoneType"
    if value is ...:
        return _named("...", value, names)
    if isinstance(value, types.UnionType):
        value = typing.Union[value.__args__]
    origin = getattr(value, "__origin__", None)
    if value in _GENERICS.values():
        origin = None
    if origin is not None:
        if isinstance(value, typing._GenericAlias):  # written with typing's name
            origin = _GENERICS.get(origin, origin)
        head = _type_name(origin, names)
        arguments = getattr(value, "__args__", ())
        return f"{head}[{','.join(_type_name(part, names) for part in arguments)}]" if arguments else head
    module = getattr(value, "__module__", None) or "builtins"
    text = (getattr(value, "_name", None) if module == "typing" else None) or getattr(value, "__qualname__", None) or str(value)
    if module == "builtins":
        return text
    root, _, rest = module.partition(".")
    if root in ("umbra", "torch"):
        return f"torch.{text}" if hasattr(umbra, text) else f"torch.{rest}.{text}"
    return _named(f"{module}.{text}", value, names)


def _named(text, value, names):
    """An identifier made of a text, which stands for the value from now on."""
    name = re.sub(r"[^0-9a-zA-Z_]+", "_", text)
    names[name] = value
    return name


class Source:
    """The parts of a graph's code: what `forward` takes, its lines, and the type of its result."""

    def __init__(self, graph, text):
        lines = text.split("\n")
        self.first = next(i for i, line in enumerate(lines) if line.startswith("def "))
        self.before = lines[:self.first]
        self.body = [line.removeprefix("    ") for line in lines[self.first + 1:]]
        self.names = {}  # what the types refer to
        types = {node.name: _type_name(node.type, self.names) for node in graph.nodes if node.type is not None}
        self.parameters = [self._parameter(node, types) for node in graph.nodes if node.op == "placeholder"]
        output = graph._output_node()
        self.annotation = "" if output is None or output.type is None else f" -> {types[output.name]}"
        if types:
            self.body = [self._typed(line, types) for line in self.body]

    @staticmethod
    def _parameter(node, types):
        text = node.target if node.target.startswith("*") else node.name
        if node.name in types:
            text += f" : {types[node.name]}"
        return text + (f" = {node.args[0]!r}" if node.args else "")

    @staticmethod
    def _typed(line, types):
        name, equals, rest = line.partition(" = ")
        return f"{name} : {types[name]} = {rest}" if equals and name in types else line

    def text(self, codegen):
        body = [line + "\n" for line in self.body[:-1]] + self.body[-1:]
        if codegen._body_transformer is not None:
            body = codegen._body_transformer(body)
        lines = "".join(body).split("\n")
        prologue = codegen.gen_fn_def(list(self.parameters), self.annotation).lstrip("\n")
        return "\n".join([*self.before, prologue, *("    " + line for line in lines)])


class CodeGen:
    """Writes the source of `forward`. Subclasses change its head (`gen_fn_def`), its result (`generate_output`) and what it finds by name; then what runs is
    that source."""

    def __init__(self):
        self._body_transformer = None

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        """The head of the function; `free_vars` are its parameters as they are written."""
        variables = free_vars if free_vars[:1] == ["self"] else ["self", *free_vars]
        return f"def forward({', '.join(variables)}){maybe_return_annotation}:"

    def generate_output(self, output_args):
        """The line that gives the result."""
        return f"return {output_args!r}"

    def process_inputs(self, *args):
        """Arguments of `forward` as the graph's inputs."""
        return args

    def process_outputs(self, outputs):
        """The graph's outputs as the result of `forward`."""
        return outputs

    def additional_globals(self):
        """Names and values that the source refers to."""
        return []

    def is_plain(self):
        """Whether the graph runs as it is."""
        return type(self) is CodeGen and self._body_transformer is None


class PytreeCodeGen(CodeGen):
    """For graphs whose `forward` takes arguments and gives results in trees, which the text of such graphs takes apart and puts together by itself."""

    def __init__(self, in_spec, out_spec):
        super().__init__()
        self._in_spec, self.out_spec = in_spec, out_spec

    def leaves(self, args, kwargs):
        """The graph's inputs for a call."""
        return pytree.tree_leaves((args, {key: kwargs[key] for key in self._in_spec.children_specs[1].context}))

    def process_inputs(self, *args):
        return pytree.tree_leaves(args)

    def process_outputs(self, outputs):
        return outputs if self.out_spec is None else pytree.tree_unflatten(list(outputs), self.out_spec)

    def is_plain(self):
        return self._body_transformer is None


def code_of(graph, text):
    """The text of a graph's code, with types and in the form that its code generator gives it."""
    codegen = graph._codegen
    if codegen.is_plain() and all(node.type is None for node in graph.nodes):
        return text
    source = Source(graph, text)
    if type(codegen).generate_output is not CodeGen.generate_output:
        output = graph._output_node()
        source.body = [line if not line.startswith("return ") else codegen.generate_output(output.args[0]) for line in source.body]
    return source.text(codegen)


def typed_parameters(graph, text):
    """The text of a graph's code, with the types of parameters of whose values nothing is known."""
    types = {node.name: _type_name(node.type, {}) for node in graph.nodes if node.op == "placeholder" and node.type is not None and "val" not in node.meta}
    if not types:
        return text
    before, head, rest = text.partition("def forward(")
    line, end, body = rest.partition("\n")
    for name, type_name in types.items():
        line = re.sub(rf"\b{name}\b(?= = |, |\))", f"{name} : {type_name}", line, count=1)
    return before + head + line + end + body


def names_of_types(graph):
    """What the types in a graph's source refer to, by name."""
    names = {}
    for node in graph.nodes:
        if node.type is not None:
            _type_name(node.type, names)
    return names


_sources = itertools.count()


def compiled(graph, text):
    """The function that a graph's source defines. Its lines can be shown, as those of a file."""
    from umbra.fx.graph import _names_in
    names = {**_names_in(graph), **dict(graph._codegen.additional_globals())}
    file = f"<eval_with_key>.{next(_sources)}"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return names["forward"]


class _BodyTransformer:
    """Takes effect at once; as a context manager it puts the one before back."""

    def __init__(self, codegen, transformer):
        self.codegen, self.before = codegen, codegen._body_transformer
        codegen._body_transformer = transformer

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.codegen._body_transformer = self.before


def on_generate_code(graph, make_transformer):
    """`make_transformer(the one before)` gives a function from the lines of the source to other lines: from now on, or within a `with`."""
    return _BodyTransformer(graph._codegen, make_transformer(graph._codegen._body_transformer))
