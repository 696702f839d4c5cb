"""`custom_op`: a Python function as an operator that capture keeps whole."""
import contextlib
import functools
import logging
import re
import weakref

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra._library.autograd import Formula, check_functional, has_tensors
from umbra._library.examples import checked_by_example, draft_report, fake_by_example, written_arguments
from umbra._library.infer_schema import infer_schema
from umbra._library.vmap import register_rule
from umbra.utils._pytree import tree_leaves

_log = logging.getLogger("torch._library.custom_ops")


class NoFakeKernel(RuntimeError):
    """An operator that nobody has said how it runs on fake tensors."""


NoFakeKernel.__name__ = NoFakeKernel.__qualname__ = "RuntimeError"  # as which users see it

_definitions = weakref.WeakValueDictionary()  # by name
_libraries = {}  # of custom operators, by name: a new definition takes the place of the old one


def _storages(value):
    return {_C._storage_id(leaf) for leaf in tree_leaves(value) if isinstance(leaf, Tensor)}


def _without_aliases(name, function, kernel):
    """A kernel whose results share no memory with its arguments or each other; capture relies on it."""
    @functools.wraps(function)
    def checked(*args, **kwargs):
        result = kernel(*args, **kwargs)
        seen = _storages((args, kwargs))
        for value in tree_leaves(result):
            if not isinstance(value, Tensor):
                continue
            if _C._storage_id(value) in seen:
                raise RuntimeError(f"{name} (with implementation in {function.__module__}): The output of this custom operator (1) must not also "
                                   "be an input to this custom operator and (2) may not alias any inputs to this custom operator or other "
                                   "returns. The most common way to trigger this error is if we have y = custom_op(x) and y and x are the same "
                                   "Tensor. Please instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor "
                                   "the custom operator to not return y.")
            seen.add(_C._storage_id(value))
        return result
    return checked


class CustomOpDef:
    """An operator made by `custom_op`; calling it calls the operator."""

    def __init__(self, namespace, name, schema, fn, tags=None):
        from umbra import library
        self._namespace, self._name, self._schema = namespace, name, schema
        self._qualname = f"{namespace}::{name}"
        self._init_fn = fn
        self._kernels, self._disabled = {}, set()
        self._fake = None
        if re.search(r"\*, .*Tensor.*->", schema):
            raise NotImplementedError(f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {name}{schema}")
        if self._qualname in _libraries:
            _libraries.pop(self._qualname)._destroy()
        self._lib = library.Library(namespace, "FRAGMENT")
        tags = [] if tags is None else list(tags) if isinstance(tags, (tuple, list)) else [tags]
        self._lib.define(name + schema, tags=[umbra.Tag.pt2_compliant_tag, *tags])
        _libraries[self._qualname] = self._lib
        _definitions[self._qualname] = self
        self._opoverload = _C._get_overload(self._qualname)
        self._written = written_arguments(self._opoverload)
        self._formula = Formula(self._opoverload)
        self._lib._register_fake(name, self._run_fake)
        self._device_place = None  # of the argument that says the device, where no tensor does
        self._lib.impl(name, self._formula if has_tensors(self._opoverload._schema) else self._on_named_device, "Autograd")
        self.__doc__ = fn.__doc__

    def __call__(self, /, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def _find_device_argument(self):
        arguments = self._opoverload._schema.arguments
        places = [i for i, a in enumerate(arguments) if a.name == "device" and str(a.type) == "Device"]
        if not places:
            raise ValueError("Functions without tensor inputs are required to have a `device: torch.device` argument")
        self._device_place, self._device_default = places[0], arguments[places[0]]._default

    def _on_named_device(self, /, *args, **kwargs):
        """The kernel at Autograd of an operator without tensors: an argument says which device's kernel runs."""
        if self._device_place is not None and _C._active_fake_mode() is None:
            device = args[self._device_place] if self._device_place < len(args) else kwargs.get("device", self._device_default)
            if umbra.device(device).type not in self._kernels:
                raise RuntimeError(f"{self._name} does not have a kernel registered for {umbra.device(device).type}. Please use register_kernel to do so.")
        return self._formula(*args, **kwargs)

    def _run_fake(self, /, *args, **kwargs):
        if self._fake is not None:
            result = self._fake(*args, **kwargs)
            return result if draft_report() is None else checked_by_example(self._opoverload, result, args, kwargs)
        if "meta" in self._kernels:
            return self._run_kernel("meta", *args, **kwargs)
        if not self._opoverload._schema.returns:
            return None
        made = None if draft_report() is None else fake_by_example(self._opoverload, args, kwargs)
        if made is not None:
            return made
        raise NoFakeKernel(f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to work. "
                           f"Please use `{getattr(self._init_fn, '__name__', 'op')}.register_fake` to add an fake impl.")

    def register_kernel(self, device_types, fn=None, /):
        """A kernel for a device ("cpu"), several, or all that have none of their own (None)."""
        from umbra.library import _key_of
        if fn is None:
            return lambda function: self.register_kernel(device_types, function)
        if device_types is not None and not has_tensors(self._opoverload._schema):
            self._find_device_argument()
        for device in [device_types] if device_types is None or isinstance(device_types, str) else device_types:
            key = "CompositeExplicitAutograd" if device is None else _key_of(device)
            if device not in self._kernels:
                self._lib.impl(self._name, _without_aliases(self._qualname, fn, functools.partial(self._run_kernel, device)), key)
            self._kernels[device] = fn
        return fn

    def _run_kernel(self, device, /, *args, **kwargs):
        function = self._init_fn if device in self._disabled else self._kernels[device]
        written = [args[i] if i < len(args) else kwargs.get(name) for i, name in self._written]
        versions = [(leaf, leaf._version) for leaf in tree_leaves(written) if isinstance(leaf, Tensor) and not leaf.is_inference()]
        result = function(*args, **kwargs)
        for tensor, version in versions:  # the call is a write beside those of the kernel that autograd has counted
            if tensor._version != version:
                _C._bump_version(tensor)
        return result

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """Within it, the device's own kernel is on or off; off, the operator's first function runs."""
        action = "enable" if enabled else "disable"
        if device_type not in self._kernels:
            _log.warning("Attempted to %s kernel for %s but no kernel was registered for this device type.", action, device_type)
        if enabled == (device_type not in self._disabled):
            _log.warning("Attempted to %s kernel for %s but it was already %sd.", action, device_type, action)
        before = set(self._disabled)
        (self._disabled.discard if enabled else self._disabled.add)(device_type)
        try:
            yield
        finally:
            self._disabled = before

    def register_fake(self, fn, /):
        """What the operator does on fake tensors: makes results of the right metadata."""
        self._fake = fn
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        check_functional(self._opoverload, self)
        self._formula.backward, self._formula.setup_context = backward, setup_context

    def register_vmap(self, func=None):
        """What vmap does with it: `func(info, in_dims, *args, **kwargs)` gives (output, out_dims)."""
        if func is None:
            return self.register_vmap
        register_rule(self._opoverload, func)
        return func

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """What a mode or a tensor class does with it, instead of its own __torch_dispatch__."""
        if fn is None:
            return lambda function: self.register_torch_dispatch(torch_dispatch_class, function)
        self._lib._register_torch_dispatch_rule(self._qualname, torch_dispatch_class, fn)
        return fn

    def register_autocast(self, device_type, cast_inputs):
        """While autocast is on for a device, the operator's floating tensors become `cast_inputs`, and it runs without autocast."""
        from umbra.library import register_autocast
        register_autocast(self._opoverload, device_type, cast_inputs)

    def register_effect(self, effect):
        """Says that it does something besides computing (`EffectType.ORDERED`): captures keep the order of its calls. None: it does not."""
        self._lib._register_effectful_op(self._qualname, effect)


def _check_mutates_args(schema, name, mutates_args):
    if isinstance(mutates_args, str):
        return
    parsed = _C.parse_schema(name + schema)
    written = {a.name for a in parsed.arguments if a.alias_info is not None and a.alias_info.is_write}
    if written != set(mutates_args):
        raise ValueError(f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The schema suggests that "
                         f"the op mutates {written} which is different from what was provided to us in `mutates_args`. Please make these "
                         "consistent.")


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Makes a Python function an operator that capture keeps whole.

        >>> @torch.library.custom_op("helptext::twice", mutates_args=())
        ... def twice(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> torch.ops.helptext.twice(torch.ones(2))
        tensor([2., 2.])
    """
    from umbra.library import _split

    def make(function):
        text = schema
        if text is None:
            text = infer_schema(function, mutates_args=mutates_args)
        else:
            _check_mutates_args(text, name, mutates_args)
        space, plain = _split(name)
        definition = CustomOpDef(space, plain, text, function, tags)
        definition.register_kernel(device_types, function)
        return definition
    return make if fn is None else make(fn)
