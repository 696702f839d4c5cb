"""A mode that compares what operators do with what their schemas say."""
import itertools
from typing import NamedTuple

from umbra import _C
from umbra._C import Tensor
from umbra._library.opcheck import _by_name, _same, _tensors
from umbra.utils._python_dispatch import TorchDispatchMode
from umbra.utils._pytree import tree_map

# Views by what they do, though their schemas have no alias: whoever calls them promises not to write.
_UNSAFE = ("aten::_unsafe_view", "aten::unsafe_split", "aten::unsafe_split_with_sizes")
_RETURN_THEIR_ARGUMENT = ("aten::lift", "aten::lift_fresh")


class Mutation(NamedTuple):
    op_name: str
    arg_name: str


class Aliasing(NamedTuple):
    op_name: str
    arg_name: str
    output_number: str


class _Before:
    """A tensor before a call: its elements and how it lies in memory."""

    def __init__(self, tensor):
        self.copy, self.stride, self.storage = tensor.detach().clone(), tensor.stride(), _C._storage_id(tensor)

    def differs(self, now):
        return self.copy.shape != now.shape or self.stride != now.stride() or self.storage != _C._storage_id(now) or not _same(self.copy, now)


def _may_alias(one, other):
    """Whether two places of a schema are said to share memory."""
    if one is None or other is None:
        return False
    sets = one.before_set | one.after_set, other.before_set | other.after_set
    return any("*" in names or any(name.endswith("*") for name in names) for names in sets) or bool(sets[0] & sets[1])


def _share_memory(one, other):
    memory = {_C._storage_id(tensor) for tensor in _tensors(one)}
    return any(_C._storage_id(tensor) in memory for tensor in _tensors(other))


class SchemaCheckMode(TorchDispatchMode):
    """Refuses a call that writes an argument, gives one back or shares memory with one where the operator's schema does not say so. What was seen is in `ops`,
    `mutated` and `aliasing`."""

    def __init__(self):
        super().__init__()
        self.ops, self.mutated, self.aliasing = [], [], []

    def reset_cache(self):
        for seen in (self.ops, self.mutated, self.aliasing):
            seen.clear()

    def display_ops(self):
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.ops.append(func._schema.name)
        before = [tree_map(lambda leaf: _Before(leaf) if isinstance(leaf, Tensor) else None, value) for _, value in _by_name(func, args, kwargs)]
        out = func(*args, **kwargs)
        results = out if isinstance(out, tuple) else (out,)
        for (argument, value), then in zip(_by_name(func, args, kwargs), before):
            self._check_aliases(func._schema, argument, value, results)
            self._check_writes(func._schema, argument, value, then)
        for (i, one), (j, other) in itertools.combinations(enumerate(func._schema.returns), 2):
            if _share_memory(results[i], results[j]) and not _may_alias(one.alias_info, other.alias_info):
                raise RuntimeError(f"Outputs {i} and {j} alias unexpectedly")
        return out

    def _check_aliases(self, schema, argument, value, results):
        name = _shown(argument)
        written = argument.alias_info is not None and argument.alias_info.is_write
        for i, (declared, result) in enumerate(zip(schema.returns, results)):
            if _share_memory(result, value) and schema.name not in _UNSAFE:
                if not _may_alias(declared.alias_info, argument.alias_info):
                    raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")
                self.aliasing.append(Aliasing(schema.name, name, f"output_{i}"))
            if result is value and isinstance(value, Tensor) and not written and schema.name not in _RETURN_THEIR_ARGUMENT:
                raise RuntimeError(f"An operator below autograd may not give its argument back: `outputs[{i}] is {name}`")

    def _check_writes(self, schema, argument, value, before):
        if not any(then.differs(now) for then, now in zip(_befores(before), _tensors(value))):
            return
        if argument.alias_info is None or not argument.alias_info.is_write:
            raise RuntimeError(f"Argument {_shown(argument)} is not defined as mutable but was mutated")
        self.mutated.append(Mutation(schema.name, _shown(argument)))


def _shown(argument):
    return "input" if argument.name == "self" else argument.name


def _befores(value):
    if isinstance(value, (tuple, list)):
        return [one for part in value for one in _befores(part)]
    return [value] if isinstance(value, _Before) else []
