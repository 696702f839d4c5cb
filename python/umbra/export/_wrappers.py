"""Results that are wrappers around tensors: the program gives the tensors inside, and a call puts them together again."""
import dataclasses

import umbra
from umbra import _C
from umbra._functorch.subclasses import layout_of, make, parts_of
from umbra.autograd.function import Function
from umbra.utils import _pytree as pytree
from umbra.utils._python_dispatch import is_traceable_wrapper_subclass


class _Wrapper:
    """A wrapper as a container of its parts. `shown_by`: the place of the part that it shows the size of, where that varies."""

    def __init__(self, parts, layout, shown_by=None):
        self.parts, self.context = parts, (layout, shown_by)


class _Together(Function):
    """A wrapper of parts that have a gradient, which is made of the parts of its own."""

    @staticmethod
    def forward(_, layout, *parts):
        return make(layout, iter([part.detach() for part in parts]))

    @staticmethod
    def backward(_, grad):
        return None, *parts_of(grad)


def _put_together(parts, context):
    layout, shown_by = context
    if shown_by is not None:
        layout = dataclasses.replace(layout, size=tuple(parts[shown_by].size()), stride=tuple(parts[shown_by].stride()))
    if umbra.is_grad_enabled() and any(isinstance(part, _C.Tensor) and part.requires_grad for part in parts):
        return _Together.apply(layout, *parts)
    return make(layout, iter(parts))


def _refuse_to_save(context):
    raise NotImplementedError(f"a result of the program is a {context[0].type.__name__}, which a file cannot tell how to make: return the tensors inside it "
                              "instead")


pytree.register_pytree_node(_Wrapper, lambda wrapper: (wrapper.parts, wrapper.context), _put_together,
                            serialized_type_name="umbra.export.Wrapper", to_dumpable_context=_refuse_to_save, from_dumpable_context=_refuse_to_save)


def is_wrapper(leaf):
    return isinstance(leaf, _C.Tensor) and is_traceable_wrapper_subclass(leaf)


def _geometry(tensor):
    return [*map(str, tensor.size()), *map(str, tensor.stride())]


def _is_static(layout):
    return layout is None or all(type(number) is int for number in layout.size + layout.stride) and all(map(_is_static, layout.parts.values()))


def take_apart(leaf):
    """The container of a wrapper's parts; of another leaf itself."""
    if not is_wrapper(leaf):
        return leaf
    parts, layout = parts_of(leaf), layout_of(leaf)
    if _is_static(layout):
        return _Wrapper(parts, layout)
    same = [i for i, part in enumerate(parts) if isinstance(part, _C.Tensor) and _geometry(part) == _geometry(leaf)]
    if not same or not all(map(_is_static, layout.parts.values())):
        raise NotImplementedError(f"a result of the program is a {layout.type.__name__} whose sizes vary and are those of no tensor inside it: a call would not "
                                  "know them. Return the tensors inside it instead")
    return _Wrapper(parts, dataclasses.replace(layout, size=(), stride=()), same[0])
