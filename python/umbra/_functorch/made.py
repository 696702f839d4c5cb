"""Objects that a compiled function makes and gives back: sets, closures, partials, objects of the user's classes. Taken apart they are nodes of the result's
tree, and each call gives one of its own."""
import collections
import enum
import functools
import itertools
import sys
import types

import umbra
from umbra._C import Size, Tensor
from umbra._functorch import objects
from umbra._ops import OpOverload, OpOverloadPacket
from umbra.nn import Module
from umbra.utils import _pytree as pytree


class Made:
    """Stands in a result for an object that was taken apart; `build(values)` makes its like."""
    __slots__ = ("build", "values")

    def __init__(self, build, values):
        self.build, self.values = build, values


pytree.register_pytree_node(Made, lambda found: (found.values, found.build), lambda values, build: build(list(values)))


class Assigned:
    """A result, and the attributes that the function gave its arguments: [(place among the inputs, name, value)]."""

    def __init__(self, result, attributes):
        self.result, self.attributes = result, attributes

    @classmethod
    def taken_apart(cls, result, assigned, taking):
        taking.depth += 1
        values = [taking.tree(value) for _, _, value in assigned]
        taking.depth -= 1
        return Made(functools.partial(cls._build, [(place, name) for place, name, _ in assigned]), [result, *values])

    @staticmethod
    def _build(places, values):
        return Assigned(values[0], [(place, name, value) for (place, name), value in zip(places, values[1:])])


def is_constant(found):
    """Whether an object is given back as itself: nothing can change which one it is."""
    if found is Ellipsis or found is NotImplemented or isinstance(found, types.ModuleType):
        return True
    if isinstance(found, types.BuiltinFunctionType):
        return found.__self__ is None or isinstance(found.__self__, (type, types.ModuleType))
    if isinstance(found, (types.MethodDescriptorType, types.WrapperDescriptorType, type(umbra.add), type(Tensor.add), OpOverload, OpOverloadPacket)):
        return True
    return isinstance(found, types.FunctionType) and _is_of_library(found)


def _is_of_library(function):
    module = sys.modules.get(function.__module__)
    name = str(function.__module__).split(".")[0]
    if module is None or name not in ("umbra", "torch") and name not in sys.stdlib_module_names:
        return False
    return functools.reduce(lambda owner, part: getattr(owner, part, None), function.__qualname__.split("."), module) is function


def taken_apart(result, watched, earlier):
    """A result with the objects that the function made taken apart, and with the attributes that it gave its arguments."""
    taking = TakenApart(watched, earlier)
    result, assigned = taking.tree(result), watched.assigned()
    return Assigned.taken_apart(result, assigned, taking) if assigned else result


class TakenApart:
    """One result. `watched` tells what was there before the function ran; `earlier` are the objects of the run before this one, to which those of this one are
    added: one that is there twice was made by neither."""

    def __init__(self, watched, earlier):
        self.watched, self.before, self.earlier, self.seen = watched, list(earlier), earlier, {}
        self.depth = 0  # of objects around what is looked at

    def tree(self, part):
        return pytree.tree_map(self._leaf, part, is_leaf=self._is_whole)

    def _is_whole(self, part):
        whole = self.watched.is_from_outside(part)
        if whole and self.depth > 0:
            self.watched.stop("a result that is an object which holds an argument's list, dict or object", "these are given back by themselves alone")
        if not whole and isinstance(part, (list, dict)):
            self._meet(part)
        return whole or type(part) is Size

    def _leaf(self, found):
        if isinstance(found, Tensor) and self.watched.has_class_of_its_own(found):
            self._meet(found)
            with umbra._C.DisableTorchFunctionSubclass():
                return Made(functools.partial(_build_tensor, type(found)), [found.as_subclass(Tensor)])
        take = _taker(found)
        if isinstance(found, type) and not self.watched.saw(found):
            self._check_class(found)
        if take is None or self.watched.stays(found):
            return found
        self._meet(found)
        if take is _instance:
            self._check_class(type(found))
        if take is _instance and objects.opens(found):
            return objects.Opened(found, [self.tree(value) for value in vars(found).values()])
        build, values = take(found, self)
        self.depth += 1
        values = [self.tree(value) for value in values]
        self.depth -= 1
        return Made(build, values)

    def _meet(self, found):
        """An object that two parts of the result hold, or that is older than the call, is not to be made anew."""
        if id(found) in self.seen:
            self.watched.stop(f"a result that holds one {type(found).__name__} twice", "each would be an object of its own")
        if self.watched.saw(found) or any(found is other for other in self.before):
            self.watched.stop(f"a result that is a {type(found).__name__} from outside", "graphs give objects of their own")
        self.seen[id(found)] = found
        self.earlier.append(found)

    def _check_class(self, cls):
        """A class that the function makes may hold what belongs to one call."""
        if self.before and not any(cls is other for other in self.before):
            self.watched.stop(f"a result of a class that the function makes, {cls.__name__}", "each call has a class of its own")
        self.earlier.append(cls)

    def new_cells(self, function):
        """The cells of a closure that this run made; those of others are the function's own for good."""
        cells = [cell for cell in function.__closure__ or () if id(cell) not in self.watched.cells]
        for cell in cells:
            self._meet(cell)
            if not _is_filled(cell):
                self.watched.stop("a result that is a closure of a name without a value", "its value may come later")
        return cells


def _is_filled(cell):
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def _build_tensor(cls, values):
    return values[0].as_subclass(cls)


def _collected(kind, found, _):
    return kind, [list(found)]


def _all_of(values):
    return values[0]


def _iterator(found, taking):
    """What it would still give; Python's own iterators and generators of the function's."""
    values = tuple(itertools.islice(found, _LONGEST + 1))
    if len(values) > _LONGEST:
        taking.watched.stop(f"a result that is a {type(found).__name__} of more than {_LONGEST} values", "it may never end")
    return _iterate, [values]


def _iterate(values):
    return iter(values[0])


def _view(found, _):
    return functools.partial(_view_of, type(found)), [dict(found.mapping)]


def _view_of(kind, values):
    return next(view() for view in (values[0].keys, values[0].values, values[0].items) if type(view()) is kind)


def _partial(found, _):
    return _build_partial, [found.func, found.args, found.keywords]


def _build_partial(values):
    return functools.partial(values[0], *values[1], **values[2])


def _method(found, _):
    return _build_method, [found.__func__, found.__self__]


def _build_method(values):
    return types.MethodType(*values)


def _function(found, taking):
    new = taking.new_cells(found)
    cells = [None if any(cell is other for other in new) else cell for cell in found.__closure__ or ()]
    names = found.__code__, found.__globals__, found.__name__, found.__qualname__, found.__doc__, found.__module__, dict(found.__annotations__)
    values = [tuple(cell.cell_contents for cell in new), found.__defaults__, found.__kwdefaults__, dict(found.__dict__)]
    return functools.partial(_build_function, names, cells), values


def _build_function(names, cells, values):
    code, namespace, name, qualname, text, module, annotations = names
    contents, defaults, keyword_defaults, attributes = values
    contents = iter(contents)
    closure = tuple(types.CellType(next(contents)) if cell is None else cell for cell in cells)
    function = types.FunctionType(code, namespace, name, defaults, closure)
    function.__qualname__, function.__doc__, function.__module__, function.__annotations__ = qualname, text, module, dict(annotations)
    function.__kwdefaults__ = keyword_defaults
    function.__dict__.update(attributes)
    return function


def _instance(found, _):
    fields, slots = _attributes(found), [name for name in _slots(type(found)) if hasattr(found, name)]
    return functools.partial(_build_instance, type(found), tuple(fields), tuple(slots)), [*fields.values(), *(getattr(found, name) for name in slots)]


def _build_instance(cls, fields, slots, values):
    found = object.__new__(cls)
    if fields:
        found.__dict__.update(zip(fields, values))
    for name, value in zip(slots, values[len(fields):]):
        object.__setattr__(found, name, value)
    return found


def _attributes(found):
    return getattr(found, "__dict__", {})


def _slots(cls):
    for base in cls.__mro__:
        names = vars(base).get("__slots__", ())
        yield from (name for name in ((names,) if isinstance(names, str) else names) if name not in ("__dict__", "__weakref__"))


def _is_instance(cls):
    """Whether objects of a class are their attributes: one of the user's, whose bases are, too, and which does nothing when an object goes."""
    bases = cls.__mro__[:-1]
    own = any(str(base.__module__).split(".")[0] in ("umbra", "torch") for base in bases)
    plain = all(base.__flags__ & objects._MADE_IN_PYTHON for base in bases)
    return bool(bases) and plain and not own and cls.__getattribute__ is object.__getattribute__ and not hasattr(cls, "__del__")


_DICT = {}
_LONGEST = 1000  # values of an iterator
_TAKERS = {set: functools.partial(_collected, lambda values: set(values[0])), frozenset: functools.partial(_collected, lambda values: frozenset(values[0])),
           functools.partial: _partial, types.MethodType: _method, types.FunctionType: _function, types.GeneratorType: _iterator,
           **dict.fromkeys(map(type, (_DICT.keys(), _DICT.values(), _DICT.items())), _view),
           **dict.fromkeys((type(iter(kind)) for kind in ([], (), range(0), set(), "", _DICT, _DICT.values(), _DICT.items(), reversed([]))), _iterator),
           **dict.fromkeys((map, zip, filter, enumerate, type(iter(collections.deque()))), _iterator)}


def _taker(found):
    """What takes an object apart; None where it stays what it is."""
    cls = type(found)
    if cls in _TAKERS:
        return None if cls is functools.partial and found.__dict__ else _TAKERS[cls]
    if isinstance(found, (Tensor, Module, type, enum.Enum)) or not _is_instance(cls):
        return None
    return _instance
