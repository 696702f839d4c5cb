"""Which tensors the operators on lists take at once."""
import umbra


def _get_foreach_kernels_supported_devices():
    """Types of devices where one call of an operator on lists is faster than many: none that Umbra computes on."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices():
    """Types of devices that have optimisers' steps as one operator."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


_foreach_supported_types = [umbra.Tensor, umbra.nn.Parameter]


def _device_has_foreach_support(device):
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu") and not umbra.jit.is_scripting()


def _has_foreach_support(tensors, device):
    return _device_has_foreach_support(device) and all(t is None or type(t) in _foreach_supported_types for t in tensors)


@umbra.no_grad()
def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """Lists of tensors that belong together, by the device and type of the first list's: {(device, dtype): (lists, places)}."""
    groups = {}
    for place, first in enumerate(tensorlistlist[0]):
        lists, places = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for part, tensors in zip(lists, tensorlistlist):
            if tensors:  # a list that nobody needs is empty
                part.append(tensors[place])
        if with_indices:
            places.append(place)
    return groups
