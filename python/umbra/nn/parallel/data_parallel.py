"""DataParallel without devices to spread over: the module itself is called."""
from umbra.nn.modules.module import Module


class DataParallel(Module):
    """Where there is no accelerator PyTorch calls the module as it is, and so does this."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids or output_device is not None:
            raise AssertionError("Torch not compiled with CUDA enabled")
        self.module, self.device_ids, self.dim = module, [], dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """`module` over parts of its inputs on each device; there is none, so it is called as it is."""
    if device_ids or output_device is not None:
        raise AssertionError("Torch not compiled with CUDA enabled")
    return DataParallel(module, dim=dim)(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
