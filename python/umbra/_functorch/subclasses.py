"""Compiled functions of tensor classes. Graphs know plain tensors alone: a wrapper is taken apart before the graphs run, and put together after.

Gradients flow between wrappers, not between the tensors inside, so what is traced is the function and its gradient on wrappers that are made of the
graph's inputs; the backward graph gets the parts of the results' gradients and gives the parts of the arguments'.
"""
import dataclasses

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra.autograd.function import Function, once_differentiable
from umbra.autograd.graph import increment_version
from umbra.autograd.grad_mode import _recording
from umbra.fx.graph_module import GraphModule
from umbra.utils._python_dispatch import is_traceable_wrapper_subclass


class HasSubclasses(Exception):
    """A function of plain tensors gave a wrapper."""


@dataclasses.dataclass
class Layout:
    """How a wrapper is made of plain tensors. Parts that are wrappers themselves have a layout, others None."""
    type: type
    parts: dict
    context: object
    size: tuple
    stride: tuple

    @classmethod
    def of(cls, wrapper):
        names, context = wrapper.__tensor_flatten__()
        inner = {name: getattr(wrapper, name) for name in names}
        return cls(type(wrapper), {name: layout_of(value) for name, value in inner.items()}, context, tuple(wrapper.size()), tuple(wrapper.stride()))

    def make(self, tensors):
        inner = {name: make(part, tensors) for name, part in self.parts.items()}
        return self.type.__tensor_unflatten__(inner, self.context, umbra.Size(self.size), self.stride)


def layout_of(value):
    return Layout.of(value) if is_traceable_wrapper_subclass(value) else None


def make(layout, tensors):
    """A value of its parts, which are next in the iterator."""
    return next(tensors) if layout is None else layout.make(tensors)


def parts_of(value):
    """The plain tensors inside a wrapper; a list of the value itself where it is none."""
    if not is_traceable_wrapper_subclass(value):
        return [value]
    return [part for name in value.__tensor_flatten__()[0] for part in parts_of(getattr(value, name))]


def all_parts(values):
    return [part for value in values for part in parts_of(value)]


def has_subclasses(leaves):
    return any(is_traceable_wrapper_subclass(leaf) for leaf in leaves)


def _wants_gradient(value):
    return isinstance(value, Tensor) and value.requires_grad


@dataclasses.dataclass
class _Kind:
    """What has to be the same for graphs to be used again, as far as C++ does not look after it."""
    layouts: list
    first_places: list   # of arguments that are one tensor
    plain: list          # what is known of the plain tensors and other values, where gradients are traced here
    gradients: list      # which arguments need one, also where the mode records none
    leaves: list
    grad_mode: bool
    modes: int           # of the thread: autocast, the default type and others

    @property
    def differentiable(self):
        return self.grad_mode and any(self.gradients)

    @classmethod
    def of(cls, leaves):
        first = [next(j for j, other in enumerate(leaves) if other is leaf) if isinstance(leaf, Tensor) else i for i, leaf in enumerate(leaves)]
        kind = cls([layout_of(leaf) for leaf in leaves], first, [], [_wants_gradient(leaf) for leaf in leaves],
                   [isinstance(leaf, Tensor) and leaf.is_leaf for leaf in leaves], umbra.is_grad_enabled(), _C._thread_modes())
        if kind.differentiable:
            kind.plain = [_look(part) for part in all_parts(leaves)]
        return kind


def _look(value):
    if not isinstance(value, Tensor):
        return type(value), value
    return value.dtype, value.device, tuple(value.shape), tuple(value.stride()), value.storage_offset()


class Compiled:
    """One function of one structure of arguments, some of which (or of whose results) are wrappers."""

    def __init__(self, run, options, partition, forward, backward, moving_after=None):
        """`run(leaves)` gives the leaves of the results and, last, their form. `forward` and `backward` compile graphs. The sizes of plain arguments
        from `moving_after` on are symbols, where no result is a wrapper; None: all are numbers."""
        self.run, self.options, self.partition, self.forward, self.backward = run, options, partition, forward, backward
        self.moving_after, self.entries = moving_after, []

    def __call__(self, leaves):
        return self._find(leaves)(leaves)

    def call_known(self, leaves):
        """The same where graphs are there; else None."""
        entry = self._known(_Kind.of(leaves), leaves)
        return None if entry is None else entry.call_known(leaves)

    def graphs(self, leaves):
        return self._find(leaves).graphs(leaves)

    def _known(self, kind, leaves):
        return next((entry for known, entry in self.entries if known == kind and entry.serves(leaves)), None)

    def _find(self, leaves):
        kind = _Kind.of(leaves)
        entry = self._known(kind, leaves)
        if entry is not None:
            return entry
        entry = _Differentiable(self, kind, leaves) if kind.differentiable else self._plain(kind, leaves)
        self.entries.append((kind, entry))
        return entry

    def _plain(self, kind, leaves):
        if self.moving_after is not None:
            try:
                return _Plain(self, kind, leaves, self.moving_after)
            except HasSubclasses:  # their sizes would be symbols
                pass
        return _Plain(self, kind, leaves, len(leaves))


@dataclasses.dataclass
class _Results:
    """What the function's results are: each a layout, or the place of what it is among the arguments and the results before it."""
    layouts: list
    same_as: list
    form: object
    changed: dict = None  # without gradients: arguments that the function gives other sizes: {place: (size, stride, offset)}
    views: list = None    # and which argument each wrapper is a view of
    counted: list = ()    # places of wrappers whose parts the graph writes, where that is a new version

    def fill(self, leaves, tensors, views):
        """`views`: of which argument each of its own results is a view, if of any."""
        layouts = [layout for layout, same in zip(self.layouts, self.same_as) if same is None]
        return self.placed(leaves, [_viewed(make(layout, tensors), source, leaves) for layout, source in zip(layouts, views)])

    def placed(self, leaves, own):
        own, known = iter(own), list(leaves)
        for same in self.same_as:
            known.append(next(own) if same is None else known[same])
        for i in self.counted:
            increment_version(leaves[i])
        return [*known[len(leaves):], self.form]

    def own(self, values):
        return [value for value, same in zip(values, self.same_as) if same is None]


def _results_of(leaves, results):
    *values, form = results
    known = [*leaves, *values]
    same = [next((i for i, other in enumerate(known[:len(leaves) + k]) if other is value and isinstance(value, Tensor)), None)
            for k, value in enumerate(values)]
    return values, _Results([layout_of(value) for value in values], same, form)


def _overlap(one, other):
    pairs = ((a, b) for a in parts_of(one) for b in parts_of(other) if isinstance(a, Tensor) and isinstance(b, Tensor))
    return any(_C._may_share_elements(a, b) for a, b in pairs)


def _written(leaves, found, copied=()):
    places = [i for i, leaf in enumerate(leaves) for _ in parts_of(leaf)]
    return {i for i, primal in zip(places, found["arguments"]) if found["primals"][primal]["written"]} | set(copied)


def _check_writes(leaves, written, copied=()):
    """What PyTorch refuses to write: a wrapper that is not contiguous, and memory that two arguments share where wrappers are among them."""
    for i in written:
        if is_traceable_wrapper_subclass(leaves[i]) and not leaves[i].is_contiguous():
            raise RuntimeError("Mutations on non-contiguous inputs are currently not allowed on tensor subclasses")
        for other in leaves:
            one_plain = not is_traceable_wrapper_subclass(leaves[i]) or not is_traceable_wrapper_subclass(other)
            if other is leaves[i] or one_plain and i not in copied or not _overlap(leaves[i], other):
                continue
            raise RuntimeError("Encountered aliased inputs that are mutated in the graph, but at least one input/output to the graph is a tensor "
                               "subclass. This is not supported today. You can try to remove the aliasing yourself as a workaround.")


def _storages(leaf):
    return {part.untyped_storage().data_ptr() for part in parts_of(leaf) if isinstance(part, Tensor)}


def _writes_shared(leaves, written):
    """Whether one of the arguments that are written shares elements with another one."""
    if not written:
        return False
    storages = [_storages(leaf) for leaf in leaves]
    return any(other is not leaves[i] and not storages[i].isdisjoint(found) and _overlap(leaves[i], other)
               for i in written for other, found in zip(leaves, storages))


def _place(leaf):
    """Where a wrapper shows itself to lie; None of others."""
    return (tuple(leaf.size()), tuple(leaf.stride()), leaf.storage_offset()) if is_traceable_wrapper_subclass(leaf) else None


class _Plain:
    """Calls without gradients: a compiled function of the plain tensors, which looks after writes and views."""

    def __init__(self, owner, kind, leaves, fixed):
        """`fixed`: how many of the first arguments have sizes that are numbers; those of wrappers are in any case, and go first."""
        self.order = sorted(range(len(leaves)), key=lambda i: kind.layouts[i] is None and i >= fixed)
        self.layouts, self.wrappers_written = kind.layouts, set()  # the latter by their places among the wrappers
        moving = fixed < len(leaves)

        def run(tensors):
            tensors = iter(tensors)
            with umbra.inference_mode(False):  # tensors with versions
                made = {i: make(kind.layouts[i], tensors) for i in self.order}
            leaves = [made[first] for first in kind.first_places]
            with _C._Capturing(False):  # this is not done by the function
                for leaf, layout, wants in zip(leaves, kind.layouts, kind.gradients):
                    if layout and wants:
                        leaf.requires_grad_()
            before, versions = [_place(leaf) for leaf in leaves], [_version(leaf) for leaf in leaves]
            with _recording(kind.grad_mode):
                values, results = _results_of(leaves, owner.run(leaves))
            if moving and any(results.layouts):
                raise HasSubclasses
            results.counted = _newer_wrappers(kind, leaves, versions)
            results.changed = {i: _place(leaf) for i, leaf in enumerate(leaves) if _place(leaf) != before[i]}
            if any(_wants_gradient(value) for value in values):
                raise NotImplementedError("ahead-of-time autograd of tensor classes: the function closes over a tensor that requires gradients; make it "
                                          "an argument")
            results.views = [_view_source(value, leaves) if layout else None for value, layout in zip(values, results.layouts)]
            return [*all_parts(results.own(values)), results]
        options = list(owner.options)
        if moving:
            options[5:7] = True, len(all_parts(leaf for i, leaf in enumerate(leaves) if kind.layouts[i] or i < fixed))
        self.compiled = _C._aot_compile(run, *options, tokens=False)
        self.graphs(leaves)

    def _parts(self, leaves):
        return all_parts(leaves[i] for i in self.order)

    def serves(self, leaves):
        """As far as C++, which knows the parts alone, does not tell what the graphs are for."""
        return not _writes_shared([leaf for leaf, layout in zip(leaves, self.layouts) if layout], self.wrappers_written)

    def __call__(self, leaves):
        known = self.call_known(leaves)
        if known is None:
            self.graphs(leaves)
            known = self.call_known(leaves)
        return known

    def call_known(self, leaves):
        with umbra.no_grad():
            found = self.compiled.call_known(self._parts(leaves))
        if found is None:
            return None
        *tensors, results = found
        for i, (size, stride, offset) in results.changed.items():  # the parts have changed; the wrapper follows
            with _C._DisableTorchDispatch(below_captures=True):
                leaves[i].as_strided_(size, stride, offset)
        views = [None if source and source[0] in results.changed else source for source in results.own(results.views)]
        return results.fill(leaves, iter(tensors), views)

    def graphs(self, leaves):
        with umbra.no_grad():
            found = self.compiled.graphs(self._parts(leaves))
        ordered = [leaves[i] for i in self.order]
        written = _written(ordered, found)
        wrappers = [i for i, layout in enumerate(self.layouts) if layout]
        self.wrappers_written |= {k for k, i in enumerate(wrappers) if self.order.index(i) in written}
        _check_writes(ordered, written)
        return found


class _Differentiable:
    """Calls with gradients: forward and backward graphs of plain tensors behind a function of wrappers."""

    def __init__(self, owner, kind, leaves):
        self.owner, self.kind = owner, kind
        inputs = [part.detach() if isinstance(part, Tensor) else part for part in all_parts(leaves)]
        self.joining = set()  # arguments without a gradient that the function gives a history: they are copies too
        with umbra.no_grad():  # what is differentiated are the wrappers, which are made inside
            while True:
                known = len(self.joining)
                _C._aot_compile(self._look, "default", None, None, None, *owner.options[4:-1], False, tokens=False).graphs(inputs)
                if len(self.joining) == known:
                    break
            tangents = [umbra.empty_strided(size, stride, dtype=dtype, device=device) for dtype, device, size, stride in self.tangent_parts]
            found = _C._aot_compile(self._joint, "default", None, None, None, *owner.options[4:-1], False, tokens=False).graphs([*inputs, *tangents])
        self.leaves_written = _written(leaves, found, self.copied)
        _check_writes(leaves, self.leaves_written, self.copied)
        self._check(found, len(inputs) + len(tangents))
        self._cut(found, len(inputs))

    def _arguments(self, tensors):
        """The leaves of gradients, and what the function is given for them: a tensor that was computed may be written, so it is a copy."""
        tensors, tops, given = iter(tensors), [], []
        with _C._Capturing(False):  # this is not done by the function
            for i, (layout, first, wants, is_leaf) in enumerate(zip(self.kind.layouts, self.kind.first_places, self.kind.gradients, self.kind.leaves)):
                top = make(layout, tensors)
                if first < i:
                    top, value = tops[first], given[first]
                elif wants:
                    top.requires_grad_()
                    value = top if is_leaf else top.clone()
                else:
                    value = top.clone() if i in self.joining else top
                tops.append(top)
                given.append(value)
        return tops, given

    def _look(self, tensors):
        """What the results are like and which arguments are written."""
        with umbra.enable_grad():
            tops, given = self._arguments(tensors)
            versions, histories = [_version(value) for value in given], [getattr(value, "grad_fn", None) for value in given]
            before = [_place(value) for value in given]
            values, self.results = _results_of(given, self.owner.run(given))
        self.joining |= {i for i, (value, wants) in enumerate(zip(given, self.kind.gradients)) if _wants_gradient(value) and not wants}
        if before != [_place(value) for value in given]:
            raise NotImplementedError("ahead-of-time autograd of tensor classes: the function changes the sizes or strides of an argument in place")
        # A write to a copy is carried out on the argument when the call ends, where autograd sees it if it saw it here.
        self.copied = [i for i, value in enumerate(given) if value is not tops[i] and self.kind.first_places[i] == i and _version(value) != versions[i]]
        self.results.counted = [i for i in _newer_wrappers(self.kind, given, versions) if i not in self.copied]
        self.tracked = [given[i].grad_fn is not histories[i] for i in self.copied]
        elsewhere = [value is not tops[i] or _version(value) != versions[i] for i, value in enumerate(given)]
        self.views = [_view_source(value, given) or _detached_source(value, given, elsewhere) for value in self.results.own(values)]
        outputs = [*(given[i] for i in self.copied), *self.results.own(values)]
        self.copied_layouts = [layout_of(given[i]) for i in self.copied]
        self.requires = [*self.tracked, *(_wants_gradient(value) for value in self.results.own(values))]
        self.tangent_layouts = [layout_of(value) for value, requires in zip(outputs, self.requires) if requires]
        self.tangent_parts = [(part.dtype, part.device, tuple(part.shape), _gradient_strides(part))
                              for value, requires in zip(outputs, self.requires) if requires for part in parts_of(value)]
        return []

    def _joint(self, tensors):
        """Parts of arguments, then of gradients of results, to parts of results, then of gradients of arguments."""
        count = len(tensors) - len(self.tangent_parts)
        with umbra.enable_grad():
            with _C._Capturing(False):  # this is not done by the function
                tops, given = self._arguments(tensors[:count])
            values, results = _results_of(given, self.owner.run(given))
            outputs = [*(given[i] for i in self.copied), *results.own(values)]
            incoming = iter(tensors[count:])
            wanted = [i for i, wants in enumerate(self.kind.gradients) if wants and self.kind.first_places[i] == i]
            differentiable = [value for value, requires in zip(outputs, self.requires) if requires]
            with _C._Capturing(False):
                tangents = [make(layout, incoming) for layout in self.tangent_layouts]
                gradients = umbra.autograd.grad(differentiable, [tops[i] for i in wanted], tangents, allow_unused=True) if differentiable else ()
        found = dict(zip(wanted, gradients))
        self.gradients = {i: layout_of(value) for i, value in found.items() if value is not None}
        self.unmoved = {i for i in wanted if i not in self.gradients} if self.gradients else ()
        self.forward_results = len(all_parts(outputs))
        return [*all_parts(outputs), *(part for i in self.gradients for part in parts_of(found[i]))]

    @staticmethod
    def _check(found, inputs):
        if len(found["primals"]) != inputs or len(set(found["arguments"])) != inputs:
            raise NotImplementedError("ahead-of-time autograd of tensor classes: the function closes over tensors, or writes arguments that share memory; "
                                      "make each an argument of its own")
        if any(primal["changes_metadata"] for primal in found["primals"]):
            raise NotImplementedError("ahead-of-time autograd of tensor classes: the function changes the sizes or strides of an argument in place")

    def _cut(self, found, primals):
        self.found, joint = found, GraphModule._wrap(found["joint"])
        self.written = [i for i, primal in enumerate(found["primals"]) if primal["written"]]
        inputs = [node for node in joint.graph.nodes if node.op == "placeholder"]
        for i, node in enumerate(inputs):
            node.name = node.target = f"primals_{i + 1}" if i < primals else f"tangents_{i - primals + 1}"
        joint.recompile()
        self.outputs = len(self.written) + self.forward_results
        self.parts = self.owner.partition(joint, None, num_fwd_outputs=self.outputs)
        for part in self.parts:
            part._update_handle()
        self.forward, self.backward = self.owner.forward(self.parts[0]._handle), None

    def serves(self, leaves):
        return not _writes_shared(leaves, self.leaves_written)

    def call_known(self, leaves):
        return self(leaves)

    def graphs(self, _):
        return {**self.found, "forward": self.parts[0]._handle, "backward": self.parts[1]._handle}

    def __call__(self, leaves):
        # What the results do not depend on hears nothing of their gradients: its hooks are not called.
        outputs = list(_Run.apply(self, *(leaf.detach() if i in self.unmoved else leaf for i, leaf in enumerate(leaves))))
        for i, tracked in zip(self.copied, self.tracked):
            with _recording(tracked):
                leaves[i].copy_(outputs.pop(0))
        return self.results.placed(leaves, [_viewed(value, source, leaves) for value, source in zip(outputs, self.views)])

    def run_forward(self, parts):
        """The results, copied arguments first, and what is saved."""
        with _C._DisableAutocast():  # casts are part of the graphs
            values = self.forward([part.detach() if isinstance(part, Tensor) else part for part in parts])
        saved = [value.clone() if any(value is parts[i] or value._is_view() and _shares(value, parts[i]) for i in self.written) else value
                 for value in values[self.outputs:]]
        for i, value in zip(self.written, values):
            parts[i].copy_(value)
        tensors = iter(values[len(self.written):self.outputs])
        layouts = [*self.copied_layouts, *(layout for layout, same in zip(self.results.layouts, self.results.same_as) if same is None)]
        return [make(layout, tensors) for layout in layouts], saved

    def run_backward(self, saved, incoming):
        if self.backward is None:
            self.backward = self.owner.backward(self.parts[1]._handle)
        given, index = [], 0
        for layout, gradient in zip(self.tangent_layouts, incoming):
            count = len(_places(layout))
            expected = self.tangent_parts[index:index + count]
            given += _tangent(index, layout, gradient, expected)
            index += count
        with _C._DisableAutocast():
            values = iter(self.backward([*saved, *given]))
        gradients = {i: make(layout, values) for i, layout in self.gradients.items()}
        return [gradients.get(i) for i in range(len(self.kind.layouts))]


def _version(value):
    return value._version if isinstance(value, Tensor) and not value.is_inference() else None


def _newer_wrappers(kind, leaves, versions):
    return [i for i, leaf in enumerate(leaves) if kind.layouts[i] and kind.first_places[i] == i and _version(leaf) != versions[i]]


def _shares(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _places(layout):
    return [None] if layout is None else [place for part in layout.parts.values() for place in _places(part)]


def _view_source(value, given):
    """The argument that a result is a view of, and the view. One that a custom function made has a gradient of its own."""
    if not isinstance(value, Tensor) or not value._is_view() or value.requires_grad and _C._is_custom_view(value):
        return None
    return next(((i, value) for i, base in enumerate(given) if value._base is base), None)


def _detached_source(value, given, elsewhere):
    """The argument whose memory a result shows that is no plain view of it for autograd. `elsewhere`: whether the graph has each argument in other memory, or
    leaves its new contents in such; in what it has as it is, parts of results are views."""
    found = (i for i, other in enumerate(given) if elsewhere[i] and isinstance(value, Tensor) and isinstance(other, Tensor) and _overlap(value, other))
    i = next(found, None)
    if i is not None and (type(value) is not type(given[i]) or value.requires_grad or _look(value) != _look(given[i])):
        raise NotImplementedError("ahead-of-time autograd of tensor classes: the function gives back a detached part of an argument, or a view that a "
                                  "custom function made of it; clone() it")
    return None if i is None else (i, None)


def _viewed(value, source, leaves):
    """A result as a view of the argument that it is one of."""
    if source is None:
        return value
    place, view = source
    return leaves[place].detach() if view is None else view._view_func(leaves[place])


def _gradient_strides(part):
    """Those of a result, unless its elements share memory (`expand`): a gradient has one element for each."""
    if all(stride != 0 or size == 1 for size, stride in zip(part.shape, part.stride())):
        return tuple(part.stride())
    return tuple(umbra.empty(part.shape, device="meta").stride())


class IncorrectTangent(RuntimeError, AssertionError):
    """PyTorch 2.15 raises the one, earlier releases the other."""


IncorrectTangent.__name__ = IncorrectTangent.__qualname__ = "RuntimeError"  # as which users see it


def _coerced(layout, gradient):
    """A gradient as what it was taken to be when the graphs were made, where its class can say how; None where not."""
    given = layout_of(gradient)
    if _alike(layout, given):
        return gradient
    coerce = getattr(gradient, "__coerce_same_metadata_as_tangent__", None)
    if coerce is None:
        return None
    context, expected = (None, Tensor) if layout is None else (layout.context, layout.type)
    return coerce(context) if expected is type(gradient) else coerce(context, expected)


def _tangent(index, layout, gradient, expected):
    """The parts of a gradient as the backward graph takes them; zeros where there is none."""
    if gradient is None:
        return [umbra.empty_strided(size, stride, dtype=dtype, device=device).zero_() for dtype, device, size, stride in expected]
    coerced = _coerced(layout, gradient)
    if coerced is None or not _alike(layout, layout_of(coerced)):
        given = layout_of(gradient)
        what = "a plain Tensor" if given is None else f"a {given.type.__name__}"
        raise IncorrectTangent("\nDuring the backward, we encountered a tensor subclass where we guessed its\nmetadata incorrectly.\n"
                               f"Expected a {'plain Tensor' if layout is None else layout.type.__name__} tangent but got {what} (tangent index: {index}).\n"
                               "We incorrectly attempted to compile the backward with incorrect subclass metadata.\n"
                               "A class whose gradients may be of another kind says how to change them by __coerce_same_metadata_as_tangent__.")
    return [part if tuple(part.stride()) == stride else umbra.empty_strided(size, stride, dtype=dtype, device=device).copy_(part)
            for part, (dtype, device, size, stride) in zip(parts_of(coerced), expected)]


def _alike(expected, given):
    if expected is None or given is None:
        return expected is given
    return (expected.type is given.type and expected.context == given.context and expected.parts.keys() == given.parts.keys()
            and all(_alike(part, given.parts[name]) for name, part in expected.parts.items()))


class _Run(Function):
    """One call of the graphs, on the tape of the wrappers."""

    @staticmethod
    def forward(ctx, entry, *leaves):
        ctx.entry = entry
        outputs, saved = entry.run_forward(all_parts(leaves))
        ctx.numbers = [None if isinstance(value, Tensor) else value for value in saved]
        ctx.save_for_backward(*(value for value in saved if isinstance(value, Tensor)))
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(value for value, requires in zip(outputs, entry.requires) if isinstance(value, Tensor) and not requires))
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients):
        tensors = iter(ctx.saved_tensors)
        saved = [next(tensors) if number is None else number for number in ctx.numbers]
        incoming = [gradient for gradient, requires in zip(gradients, ctx.entry.requires) if requires]
        return (None, *ctx.entry.run_backward(saved, incoming))
