"""Modules and parameters in sequences and mappings."""
import collections
import operator

from umbra._C import Tensor
from umbra.nn.modules._capture import parts_by_name
from umbra.nn.modules.module import Module, _indent
from umbra.nn.parameter import Parameter


class Container(Module):
    """Modules under names. Any module can have others: use Module."""

    def __init__(self, **kwargs):
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Sequence(Module):
    """What lists of modules share: members named by their positions."""

    def _get_abs_string_index(self, index):
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._like(list(self._modules.values())[index])
        return parts_by_name(self)[self._get_abs_string_index(index)]

    def __setitem__(self, index, module):
        setattr(self, self._get_abs_string_index(index), module)

    def __delitem__(self, index):
        kept = list(self._modules.values())
        del kept[index]
        self._modules.clear()
        self._modules.update((str(i), module) for i, module in enumerate(kept))

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(parts_by_name(self).values())

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        kept = list(self._modules.values())
        kept.insert(index, module)
        self._modules.clear()
        self._modules.update((str(i), m) for i, m in enumerate(kept))

    def extend(self, modules):
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key):
        module = self[key]
        del self[key]
        return module


class Sequential(_Sequence):
    """Runs its modules one after the other: `Sequential(Linear(2, 3), ReLU())`."""

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _like(self, modules):
        return type(self)(*modules)

    def _get_item_by_idx(self, iterator, idx):
        """The element of an iterator over names or modules that stands at a position."""
        return list(iterator)[int(super()._get_abs_string_index(idx))]

    def __getitem__(self, index):
        if isinstance(index, slice):  # the modules keep their names
            return type(self)(collections.OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def _get_abs_string_index(self, index):
        return self._get_item_by_idx(self._modules, index)

    def forward(self, input):
        for module in parts_by_name(self).values():
            input = module(input)
        return input

    def insert(self, index, module):
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        super().insert(index, module)
        return self

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, times):
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return Sequential(*(module for _ in range(times) for module in self))

    __rmul__ = __mul__

    def __imul__(self, times):
        more = list(self * times)[len(self):]
        return self.extend(more)


class ModuleList(_Sequence):
    """Modules in a list, which their owner calls."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __repr__(self):
        """Equal neighbours are shown once, with their number."""
        runs = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        if not runs:
            return self._get_name() + "()"
        lines = [_indent(f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}", 2) for first, last, text in runs]
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def _like(self, modules):
        return type(self)(modules)

    def extend(self, modules):
        if not isinstance(modules, collections.abc.Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return ModuleList([*self, *other])


class ModuleDict(Module):
    """Modules by their names, which their owner calls."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return parts_by_name(self)[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        self._modules.clear()

    def pop(self, key):
        return self._modules.pop(key)

    def keys(self):
        return self._modules.keys()

    def items(self):
        return parts_by_name(self).items()

    def values(self):
        return parts_by_name(self).values()

    def update(self, modules):
        if isinstance(modules, (collections.abc.Mapping, ModuleDict)):
            modules = modules.items()
        elif not isinstance(modules, collections.abc.Iterable):
            raise TypeError(f"ModuleDict.update should be called with an iterable of key/value pairs, but got {type(modules).__name__}")
        for i, pair in enumerate(modules):
            if not isinstance(pair, collections.abc.Iterable):
                raise TypeError(f"ModuleDict update sequence element #{i} should be Iterable; is{type(pair).__name__}")
            if len(pair) != 2:
                raise ValueError(f"ModuleDict update sequence element #{i} has length {len(pair)}; 2 is required")
            self[pair[0]] = pair[1]


class ParameterList(Module):
    """Parameters in a list."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return ParameterList([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, self._get_abs_string_index(index))

    def _get_abs_string_index(self, index):
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def __setitem__(self, index, value):
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, self._get_abs_string_index(index), value)

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def append(self, value):
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        if not isinstance(values, collections.abc.Iterable) or isinstance(values, Tensor):  # a tensor's rows are no parameters
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values):
        return self.extend(values)

    def extra_repr(self):
        return _described(enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


def _described(pairs, type_of=lambda tensor: tensor.dtype):
    """Tensors by their types and sizes, other things by their classes."""
    lines = []
    for name, value in pairs:
        if isinstance(value, Tensor):
            kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
            lines.append(f"  ({name}): {kind} containing: [{type_of(value)} of size {'x'.join(map(str, value.shape))}]")
        else:
            lines.append(f"  ({name}): Object of type: {type(value).__name__}")
    return "\n".join(lines)


class ParameterDict(Module):
    """Parameters, and whatever else, under names. Tensors become parameters."""

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key):
        if not isinstance(key, str):
            raise TypeError(f"Index given to ParameterDict cannot be used as a key as it is not a string (type is '{type(key).__name__}'). Open an "
                            "issue on github if you need non-string keys.")
        return key

    def __getitem__(self, key):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key, value):
        self._keys[key] = None
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, self._key_to_attr(key), value)

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(self._keys)

    def __contains__(self, key):
        return key in self._keys

    def keys(self):
        return self._keys.keys()

    def items(self):
        return ((key, self[key]) for key in self._keys)

    def values(self):
        return (self[key] for key in self._keys)

    def copy(self):
        return ParameterDict(collections.OrderedDict(self.items()))

    def get(self, key, default=None):
        return self[key] if key in self else default

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """The last name and its value, which go."""
        key, _ = self._keys.popitem()
        value = self[key]
        self._keys[key] = None
        del self[key]
        return key, value

    def fromkeys(self, keys, default=None):
        """A new dict of these names, each with `default`."""
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters):
        """Takes over a mapping, another ParameterDict, or pairs."""
        if not isinstance(parameters, collections.abc.Iterable):
            raise TypeError(f"ParametersDict.update should be called with an iterable of key/value pairs, but got {type(parameters).__name__}")
        if isinstance(parameters, (collections.OrderedDict, ParameterDict)):
            pairs = parameters.items()
        elif isinstance(parameters, collections.abc.Mapping):
            pairs = sorted(parameters.items())
        else:
            pairs = [self._pair(i, pair) for i, pair in enumerate(parameters)]
        for key, value in pairs:
            self[key] = value

    @staticmethod
    def _pair(i, pair):
        if not isinstance(pair, collections.abc.Iterable):
            raise TypeError(f"ParameterDict update sequence element #{i} should be Iterable; is {type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"ParameterDict update sequence element #{i} has length {len(pair)}; 2 is required")
        return pair

    def __or__(self, other):
        both = self.copy()
        both.update(other)
        return both

    def __ror__(self, other):
        both = other.copy()
        both.update(self)
        return both

    def __ior__(self, other):
        self.update(other)
        return self

    def extra_repr(self):
        return _described(self.items(), lambda tensor: tensor.type())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")
