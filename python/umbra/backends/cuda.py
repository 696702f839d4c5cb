"""CUDA is not part of this build; the switches of its libraries can be set and have no effect."""
import contextlib


def is_built():
    return False


class _Matmul:
    """Switches of cuBLAS."""
    allow_tf32 = False
    fp32_precision = "none"
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    def __getattr__(self, name):
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name, value):
        if not hasattr(type(self), name):
            raise AttributeError(f"Unknown attribute {name}")
        super().__setattr__(name, value)


matmul = _Matmul()
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def _switch(name):
    def is_enabled():
        return _attention[name]

    def enable(enabled):
        _attention[name] = bool(enabled)
    is_enabled.__name__, enable.__name__ = f"{name}_sdp_enabled", f"enable_{name}_sdp"
    return is_enabled, enable


flash_sdp_enabled, enable_flash_sdp = _switch("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient")
math_sdp_enabled, enable_math_sdp = _switch("math")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn")


@contextlib.contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Sets which implementations of attention may be chosen, for a region: the old form of torch.nn.attention.sdpa_kernel."""
    before = dict(_attention)
    _attention.update(flash=bool(enable_flash), math=bool(enable_math), mem_efficient=bool(enable_mem_efficient), cudnn=bool(enable_cudnn))
    try:
        yield {}
    finally:
        _attention.update(before)


def is_flash_attention_available():
    return False
