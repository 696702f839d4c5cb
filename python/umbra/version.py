"""Versions: of PyTorch, which programs ask for, and of Umbra itself."""
__version__ = "2.15.0+cpu"
umbra = "0.1.0"
debug = False
cuda = hip = rocm = xpu = None
git_version = "Unknown"
