"""DLPack: tensors to and from other frameworks without copies."""
import enum

from umbra._C import _to_dlpack as to_dlpack, from_dlpack  # noqa: F401


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers of devices."""
    kDLCPU, kDLCUDA, kDLCUDAHost, kDLOpenCL = 1, 2, 3, 4
    kDLVulkan, kDLMetal, kDLVPI, kDLROCM, kDLROCMHost, kDLExtDev, kDLCUDAManaged, kDLOneAPI, kDLWebGPU = range(7, 16)
