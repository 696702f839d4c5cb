"""Operators that take functions and are dispatched in Python: a rule for each layer, by torch's names."""
import abc
import functools
import inspect

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra.utils import _pytree as pytree

operators = {}  # those that users define, by name: the last one of a name is the one that is found

_BACKENDS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}
# A rule for one of these keys is not asked for: the call passes the layer.
_PASSED = ("PythonDispatcher", "PythonTLSSnapshot", "ADInplaceOrView", "BackendSelect", "AutocastCPU", "AutocastCUDA", "AutocastXPU")


class OperatorBase(abc.ABC):
    """What graphs call and asks each layer in turn: operators of every kind."""


OperatorBase.register(_C.OpOverload)


class HigherOrderOperator(OperatorBase):
    """An operator of a user's own, of which any argument may be a function; graphs call it by `ops.higher_order.NAME`.

        class Twice(HigherOrderOperator):
            def __init__(self):
                super().__init__("twice")

            def __call__(self, function, x):
                return super().__call__(function, x)

        twice = Twice()

        @twice.py_impl(DispatchKey.CompositeExplicitAutograd)
        def run(function, x):
            return function(function(x))

    A layer without a rule refuses the call.
    """

    def __init__(self, name, *, cacheable=False, supports_training_input_mutation=False):
        self._name = self.__name__ = self.__qualname__ = name
        self._ns = "higher_order"
        self.__module__ = "torch.ops.higher_order"
        self._cacheable, self._supports_training_input_mutation = cacheable, supports_training_input_mutation
        self.py_kernels, self.python_key_table, self.functorch_table = {}, {}, {}
        self._passed = set(_PASSED)
        operators[name] = self

    def name(self):
        return self._name

    @property
    def namespace(self):
        return self._ns

    def cacheable(self):
        return self._cacheable

    def __str__(self):
        return self._name

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _by_name, (self._name,)

    # ---- rules ----

    def py_impl(self, k):
        """Registers a rule: for a dispatch key, for a transform, or for a class of modes or tensors."""
        from umbra._functorch.levels import TransformType
        from umbra._library.keys import DispatchKey
        if not (inspect.isclass(k) or isinstance(k, (TransformType, DispatchKey))):
            raise TypeError(f"{self._name}: a rule is registered for a dispatch key, a transform or a class, not for {k!r}")

        def register(function):
            if inspect.isclass(k):
                self.python_key_table[k] = function
            elif isinstance(k, TransformType):
                self.functorch_table[k] = function
            elif k.name in self.py_kernels:
                raise RuntimeError(f"Trying to override a python impl for {k} on operator {self._name}")
            else:
                self.py_kernels[k.name] = function
                self._passed.discard(k.name)
            return function
        return register

    def py_autograd_impl(self, fn):
        """The rule for autograd where something requires gradients; other calls go on below."""
        from umbra._library.keys import DispatchKey

        def differentiate_if_asked(*args, **kwargs):
            tensors = _tensors(args, kwargs)
            if umbra.is_grad_enabled() and any(t.requires_grad for t in tensors):
                return fn(*args, **kwargs)
            with _C._AutoDispatchBelowAutograd():
                return self(*args, **kwargs)
        self.py_impl(DispatchKey.Autograd)(differentiate_if_asked)
        return fn

    def py_functionalize_impl(self, fn):
        """The rule for functionalisation: `fn(ctx, *args)`, where `ctx` wraps and unwraps values."""
        self.py_kernels["Functionalize"] = fn
        return fn

    def fallthrough(self, dispatch_key):
        """Calls pass this layer without a rule."""
        self._passed.add(dispatch_key.name)

    def has_kernel_for_dispatch_key(self, k):
        return k.name in self.py_kernels

    def gen_schema(self, *args, **kwargs):
        raise NotImplementedError(f"schemas of {self._name} are not in Umbra yet")

    # ---- calls ----

    @abc.abstractmethod
    def __call__(self, /, *args, **kwargs):
        leaves = pytree.tree_leaves((args, kwargs))
        if _C._has_torch_function(*leaves):
            result = _C._offer_torch_function(self, args, kwargs)
            if result is not NotImplemented:
                return result
        return _Call(self, args, kwargs).dispatch()


def _by_name(name):
    return operators[name]


def _tensors(args, kwargs):
    return [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]


class _Call:
    """One call of an operator, on its way from layer to layer."""

    def __init__(self, operator, args, kwargs, passed=()):
        self.operator, self.args, self.kwargs = operator, args, kwargs
        self.passed = passed  # the layers that it has behind it
        self.tensors = _tensors(args, kwargs)
        self.backend = _BACKENDS.get(self.tensors[0].device.type, "CPU") if self.tensors else "Undefined"

    def dispatch(self):
        layer = _C._next_layer(self.tensors, self.passed)
        return getattr(self, f"_at_{layer or 'backend'}".lower())()

    def _map_tensors(self, change):
        args, kwargs = pytree.tree_map_only(Tensor, change, (self.args, self.kwargs))
        return _Call(self.operator, args, kwargs, self.passed)

    def _pass(self, layer):
        self.passed = (*self.passed, layer)
        return self.dispatch()

    def _run(self, rule, *first):
        return rule(*first, *self.args, **self.kwargs)

    def _rule(self, *keys):
        return next((self.operator.py_kernels[key] for key in keys if key in self.operator.py_kernels), None)

    def _no_kernel(self, key):
        return NotImplementedError(f"could not find kernel for HigherOrderOperator {self.operator} at dispatch key DispatchKey.{key} "
                                   f"(resolved from DispatchKey.{key})")

    def _at_level(self):
        if not _C._level_count():
            freed = self._map_tensors(_C._value_if_ended)
            if all(a is b for a, b in zip(self.tensors, freed.tensors)):
                raise RuntimeError("Either your tensor may have escaped from inside a function being vmapped and this is a user error (see "
                                   "https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal functorch error in "
                                   "`gen_vmap_plumbing` Please file an issue if it looks like the latter")
            return freed.dispatch()
        from umbra._functorch.levels import innermost_interpreter
        interpreter = innermost_interpreter()
        kind = interpreter.key()
        if kind in self.operator.functorch_table:
            return self._run(self.operator.functorch_table[kind], interpreter)
        if kind.name == "Functionalize" and "Functionalize" in self.operator.py_kernels:
            return self._run(self.operator.py_kernels["Functionalize"], FunctionalizeContext("Level"))
        raise NotImplementedError(f"HigherOrderOperator {self.operator} has no rule for the transform {kind}: register one with py_impl({kind})")

    def _at_lift(self):
        return self._map_tensors(_C._stand_in)._pass("Lift")

    def _at_autograd(self):
        specific = f"Autograd{self.backend}"
        if {"Autograd", specific} & self.operator._passed:
            return self._pass("Autograd")
        rule = self._rule(specific, "Autograd", "CompositeImplicitAutograd")
        if rule is None:
            raise self._no_kernel(specific)
        return self._run(rule)

    def _at_usermode(self):
        mode = _C._innermost_mode()
        if mode is None:  # one of the library's own: it sees what the rules call
            return self._pass("UserMode")
        rule = self.operator.python_key_table.get(type(mode))
        with _C._OutsideLayer("UserMode"):
            if rule is not None:
                result = self._run(rule, mode)
            elif getattr(mode, "supports_higher_order_operators", False):
                result = mode.__torch_dispatch__(self.operator, self._types(), self.args, self.kwargs)
            else:
                raise NotImplementedError(
                    f"There was no rule registered for HigherOrderOperator {self.operator} and mode {mode}. Hint: set {mode}'s "
                    "supports_higher_order_operators to True. All such operators then come to its __torch_dispatch__, which handles them or returns "
                    "NotImplemented.")
        return self._at_subclass() if result is NotImplemented else result

    def _types(self):
        """The classes among the arguments that have a handler of their own."""
        disabled = _C._disabled_torch_dispatch_impl
        return tuple(c for c in dict.fromkeys(map(type, self.tensors)) if getattr(c, "__torch_dispatch__", disabled) is not disabled)

    def _at_subclass(self):
        types = self._types()
        for cls in types:
            rule = self.operator.python_key_table.get(cls)
            if rule is None:
                raise NotImplementedError(f"There was no rule registered for HOP {self.operator} and subclass {cls}: register one with py_impl")
            with _C._OutsideLayer("Autograd"):
                result = self._run(rule)
            if result is not NotImplemented:
                return result
        raise TypeError(f"HOP '{self.operator}': all rules for the classes {list(types)} returned NotImplemented")

    def _at_functionalize(self):
        rule = self._rule("Functionalize")
        if rule is None:
            raise NotImplementedError(f"HigherOrderOperator {self.operator} has no rule for functionalisation: register one with "
                                      "py_functionalize_impl")
        return self._run(rule, FunctionalizeContext("Functionalize"))

    def _at_tracer(self, layer):
        from umbra.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
        rule = self.operator.python_key_table.get(ProxyTorchDispatchMode)
        if rule is None:
            raise NotImplementedError(f"There was no rule registered for HigherOrderOperator {self.operator} and mode ProxyTorchDispatchMode: "
                                      "register one with py_impl(ProxyTorchDispatchMode)")
        mode = ProxyTorchDispatchMode(_C._active_tracer(layer))
        with _C._OutsideLayer(layer):
            return self._run(rule, mode)

    def _at_preproxy(self):
        return self._at_tracer("PreProxy")

    def _at_proxy(self):
        return self._at_tracer("Proxy")

    def _at_fake(self):
        from umbra._subclasses.fake_tensor import FakeTensorMode, maybe_get_fake_mode, _mode_object
        rule = self.operator.python_key_table.get(FakeTensorMode)
        if rule is None:
            raise NotImplementedError(f"There was no rule registered for HigherOrderOperator {self.operator} and mode FakeTensorMode: register one "
                                      "with py_impl(FakeTensorMode)")
        mode = _mode_object(_C._active_fake_mode()) or next(filter(None, map(maybe_get_fake_mode, self.tensors)))
        with _C._OutsideLayer("Fake"):
            return self._run(rule, mode)

    def _at_backend(self):
        rule = self._rule(self.backend, "CompositeExplicitAutograd", "CompositeImplicitAutograd")
        if rule is None:
            raise self._no_kernel(self.backend)
        return self._run(rule)


class FunctionalizeContext:
    """What a rule for functionalisation gets: the way between wrappers and their values, and down to the layers below."""

    def __init__(self, layer):
        self._layer, self._outside = layer, _C._OutsideLayer(layer)

    def wrap_tensors(self, args):
        return pytree.tree_map_only(Tensor, self._outside.wrap, args)

    def unwrap_tensors(self, args):
        return pytree.tree_map_only(Tensor, self._outside.unwrap, args)

    def functionalize(self, inner_f):
        """The function as one of values: it runs on wrappers."""
        @functools.wraps(inner_f)
        def on_values(*args, **kwargs):
            with self._outside.inside():
                args, kwargs = self.wrap_tensors((args, kwargs))
                return self.unwrap_tensors(inner_f(*args, **kwargs))
        return on_values

    def redispatch_to_next(self):
        return _C._OutsideLayer(self._layer)

    def replace(self, input_tensor, output_tensor):
        """Writes a value into a wrapper; to be called where wrappers are, not below."""
        input_tensor.copy_(self.wrap_tensors(output_tensor))

    def commit_update(self, _):
        """A write is known where it is made."""

    def sync(self, _):
        """A wrapper's value is that after all writes."""
