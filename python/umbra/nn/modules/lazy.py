"""Modules whose sizes are those of their first input."""

from umbra.nn.parameter import is_lazy


class LazyModuleMixin:
    """For modules with UninitializedParameters: `initialize_parameters(*input)` gives them sizes before the first forward.

    `cls_to_become`: the class that the module is afterwards.
    """
    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            if tensor is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()

    def _lazy_load_hook(self, state_dict, prefix, *rest):
        """What a state dict knows the sizes of gets them."""
        import umbra
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if given is not None and tensor is not None and is_lazy(tensor) and not is_lazy(given):
                with umbra.no_grad():
                    tensor.materialize(given.shape)

    def initialize_parameters(self, *args, **kwargs):
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether a parameter or buffer still has no sizes."""
        return any(is_lazy(tensor) for tensor in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
