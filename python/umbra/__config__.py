"""How the library was built."""
import umbra


def show():
    """A text that says what the library was built with."""
    return f"Umbra {umbra.version.umbra}, compatible with PyTorch {umbra.__version__}\n  - CPU capability usage: {umbra.backends.cpu.get_cpu_capability()}\n"


def parallel_info():
    """A text that says how many threads work."""
    return f"Threads:\n\tget_num_threads() : {umbra.get_num_threads()}\n\tget_num_interop_threads() : {umbra.get_num_interop_threads()}\n"
