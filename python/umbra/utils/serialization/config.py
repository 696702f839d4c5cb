"""What torch.save and torch.load do unless they are told otherwise."""


class load:
    """`mmap`: whether files at paths are mapped. `endianness`: the byte order of files that do not say. `mmap_flags`: as those of mmap.mmap."""
    mmap = False
    endianness = None
    mmap_flags = 2  # mmap.MAP_PRIVATE
    calculate_storage_offsets = False


class save:
    """`storage_alignment`: a tensor's bytes begin at a multiple of it in the file. Checksums are always written."""
    compute_crc32 = True
    use_pinned_memory_for_d2h = False
    storage_alignment = 64
