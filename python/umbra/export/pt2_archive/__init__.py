"""Files of exported programs."""
from umbra.export.pt2_archive import constants  # noqa: F401
from umbra.export.pt2_archive._archive import PT2ArchiveReader, PT2ArchiveWriter, is_pt2_package  # noqa: F401
