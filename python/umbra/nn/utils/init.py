"""Modules without the work of initialising them."""
import inspect


def skip_init(module_cls, *args, **kwargs):
    """A module whose parameters have memory that nobody has written."""
    import umbra
    if not issubclass(module_cls, umbra.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
