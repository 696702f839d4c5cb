"""Extensions in C++: PyTorch's are compiled against its own headers, and none can be built here.

The names are there for packages that try to build one and go on without it.
"""
import shutil

CUDA_HOME = ROCM_HOME = CUDNN_HOME = SYCL_HOME = None
IS_HIP_EXTENSION = False


def _refused(name):
    def function(*args, **kwargs):
        raise RuntimeError(f"torch.utils.cpp_extension.{name}: extensions that are compiled against PyTorch cannot be built for Umbra; "
                           "operators in C++ are registered with umbra/dispatch/library.h, in Python with torch.library")
    function.__name__ = function.__qualname__ = name
    return function


load, load_inline = _refused("load"), _refused("load_inline")
CppExtension, CUDAExtension, SyclExtension = _refused("CppExtension"), _refused("CUDAExtension"), _refused("SyclExtension")


class BuildExtension:
    """A command of setuptools that builds extensions: refused when it is made."""

    @classmethod
    def with_options(cls, **options):
        return cls

    def __init__(self, *args, **kwargs):
        _refused("BuildExtension")()


def is_ninja_available():
    """Whether `ninja` can be run."""
    return shutil.which("ninja") is not None


def verify_ninja_availability():
    """Raises where `ninja` cannot be run."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")
