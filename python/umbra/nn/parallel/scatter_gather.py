"""Tensors to several devices and back; there is one, the CPU."""


def is_namedtuple(obj):
    return hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def scatter(inputs, target_gpus, dim=0):
    raise AssertionError("Torch not compiled with CUDA enabled")


def gather(outputs, target_device, dim=0):
    """Tensors, or trees of them, joined along `dim`. The device is the CPU."""
    import umbra
    if umbra.device("cpu" if target_device == -1 else target_device).type != "cpu":
        raise AssertionError("Torch not compiled with CUDA enabled")
    first = outputs[0]
    if isinstance(first, umbra.Tensor):
        return umbra.cat(list(outputs), dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)((key, gather([o[key] for o in outputs], target_device, dim)) for key in first)
    parts = [gather(list(part), target_device, dim) for part in zip(*outputs)]
    return type(first)._make(parts) if is_namedtuple(first) else type(first)(parts)
