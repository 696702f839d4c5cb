"""How the sizes and strides of a tensor become symbols when it is converted."""
import dataclasses
import enum

from umbra._options import not_built


class DimDynamic(enum.Enum):
    """What becomes of a size: a symbol of its own, one shared by equal sizes, a number, one that only the run tells. Of a stride: an
    expression of sizes where it follows from them."""
    DYNAMIC = 0
    DUCK = 1
    STATIC = 2
    UNBACKED = 3
    INFER_STRIDE = 4


_POLICIES = {DimDynamic.DYNAMIC: "dynamic", DimDynamic.DUCK: "duck", DimDynamic.STATIC: "static"}


def _policy(dynamic, constraint=None):
    """A dimension's policy, and what its constraint promises, as the converter takes them."""
    if dynamic not in _POLICIES:
        raise ValueError(f"{dynamic} is no policy for a size")
    policy = _POLICIES[dynamic]
    if constraint is None or constraint.warn_only:
        return (policy,)
    if isinstance(constraint, StrictMinMaxConstraint):
        low, high = (int(end) if end is not None and abs(end) < 2**62 else None for end in (constraint.vr.lower, constraint.vr.upper))
        return policy, "", low, high
    return ("kept",) if policy != "static" else (policy,)


@dataclasses.dataclass(frozen=True)
class Constraint:
    """What a dimension promises. `warn_only`: nothing is refused for it."""
    warn_only: bool


@dataclasses.dataclass(frozen=True)
class StrictMinMaxConstraint(Constraint):
    """Every size of a range is taken."""
    vr: object


@dataclasses.dataclass(frozen=True)
class RelaxedUnspecConstraint(Constraint):
    """Some sizes are taken: it does not become a number."""


class SymbolicContext:
    """How a tensor's sizes and strides become symbols when it is converted."""


@dataclasses.dataclass(frozen=True)
class StatelessSymbolicContext(SymbolicContext):
    """One policy, and maybe one constraint, for each size and stride. `view_base_context`: for the base, where the tensor is a view."""
    dynamic_sizes: list
    dynamic_strides: list = None
    constraint_sizes: list = None
    constraint_strides: list = None
    specialize_on: list = None
    view_base_context: object = None
    shape_ids: dict = None
    unbacked_bounds: dict = None

    def __post_init__(self):
        count = len(self.dynamic_sizes)
        defaults = {"dynamic_strides": [DimDynamic.INFER_STRIDE] * count, "constraint_sizes": [None] * count,
                    "constraint_strides": [None] * count, "specialize_on": [[] for _ in range(count)]}
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if not all(stride in (DimDynamic.INFER_STRIDE, DimDynamic.DYNAMIC, DimDynamic.DUCK) for stride in self.dynamic_strides):
            raise AssertionError("dynamic_strides must only contain INFER_STRIDE, DYNAMIC, or DUCK")
        not_built("StatelessSymbolicContext", specialize_on=(any(self.specialize_on), False), shape_ids=(self.shape_ids or None, None),
                  constraint_strides=(any(c is not None for c in self.constraint_strides), False))

    def _dimensions(self, env):
        """What becomes of each size: a policy, or a number that only the run tells."""
        bounds = self.unbacked_bounds or {}
        return [env._unbacked_size(*bounds.get(d, (0, None))) if dynamic is DimDynamic.UNBACKED else _policy(dynamic, constraint)
                for d, (dynamic, constraint) in enumerate(zip(self.dynamic_sizes, self.constraint_sizes))]

    def _strides(self):
        """The policies of strides that are symbols of their own; None of those that follow from sizes where they can."""
        return [None if dynamic is DimDynamic.INFER_STRIDE else _policy(dynamic) for dynamic in self.dynamic_strides]


@dataclasses.dataclass(frozen=True)
class StatefulSymbolicContext(StatelessSymbolicContext):
    """A context that gives one tensor the same symbols whenever it is converted for one environment."""
    tensor_source: object = dataclasses.field(kw_only=True)
    shape_env_to_source_to_symbol_cache: dict = dataclasses.field(default_factory=dict, kw_only=True)
    excluded_sizes: tuple = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        not_built("StatefulSymbolicContext", excluded_sizes=(self.excluded_sizes, None))

    def _dimensions(self, env):
        known = self.shape_env_to_source_to_symbol_cache.get(id(env))
        return super()._dimensions(env) if known is None else list(known.values())

    def _remember(self, env, name, tensor):
        """Keeps the sizes that a tensor was given."""
        sizes = {f"{name}.size()[{d}]": size for d, size in enumerate(tensor.shape)}
        self.shape_env_to_source_to_symbol_cache.setdefault(id(env), sizes)


@dataclasses.dataclass(frozen=True)
class SubclassSymbolicContext(StatefulSymbolicContext):
    """The context of a tensor class: of the outer tensor, and by attribute of the tensors inside."""
    inner_contexts: dict = dataclasses.field(default_factory=dict)
    track_outer_size_stride: bool = True
