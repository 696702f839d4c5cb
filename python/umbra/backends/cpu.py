"""What the processor can do."""


def get_cpu_capability():
    """The widest vectors that kernels are compiled for and this processor has."""
    with open("/proc/cpuinfo") as file:
        flags = next((line for line in file if line.startswith("flags")), "").split()
    return "AVX512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "DEFAULT"
