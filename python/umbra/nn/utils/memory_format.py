"""The layout of convolutions' weights."""


def _convert(module, rank, memory_format):
    import umbra
    kinds = {4: (umbra.nn.Conv2d, umbra.nn.ConvTranspose2d), 5: (umbra.nn.Conv3d, umbra.nn.ConvTranspose3d)}[rank]
    if isinstance(module, kinds):
        module.weight.data = module.weight.detach().clone(memory_format=memory_format)
    for child in module.children():
        _convert(child, rank, memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """The weights of all convolutions of images in a module, in another layout."""
    return _convert(module, 4, memory_format)


def convert_conv3d_weight_memory_format(module, memory_format):
    """The weights of all convolutions of volumes in a module, in another layout."""
    return _convert(module, 5, memory_format)
