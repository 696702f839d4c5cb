"""The files of a .pt2 archive, one by one: a zip file with one folder, which says what it is."""
import io
import os
import secrets
import zipfile

from umbra.export.pt2_archive.constants import ARCHIVE_FORMAT_PATH, ARCHIVE_FORMAT_VALUE, ARCHIVE_ROOT_NAME, ARCHIVE_VERSION_PATH, ARCHIVE_VERSION_VALUE


class PT2ArchiveWriter:
    """Writes an archive to a path or a file object; it is whole when the writer is closed."""

    def __init__(self, archive_path_or_buffer):
        target = archive_path_or_buffer
        root = os.path.splitext(os.path.basename(target))[0] if isinstance(target, (str, os.PathLike)) else ARCHIVE_ROOT_NAME
        self._root, self._zip = root or ARCHIVE_ROOT_NAME, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED)
        self.archive_file = target

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def has_record(self, name):
        return f"{self._root}/{name}" in self._zip.namelist()

    def count_prefix(self, prefix):
        """How many files begin so."""
        return sum(name.startswith(f"{self._root}/{prefix}") for name in self._zip.namelist())

    def write_bytes(self, name, data):
        if type(data) is not bytes:
            raise AssertionError(f"Expected bytes but got {type(data)}")
        self._zip.writestr(zipfile.ZipInfo(f"{self._root}/{name}"), data)

    def write_string(self, name, data):
        if type(data) is not str:
            raise AssertionError(f"Expected string but got {type(data)}")
        self.write_bytes(name, data.encode())

    def write_file(self, name, file_path):
        """A file of the disk."""
        if not os.path.isfile(file_path):
            raise AssertionError(f"{file_path} is not a valid file path")
        with open(file_path, "rb") as file:
            self.write_bytes(name, file.read())

    def write_folder(self, archive_dir, folder_dir):
        """All files below a folder of the disk."""
        if not os.path.isdir(folder_dir):
            raise AssertionError(f"{folder_dir} is not a valid directory path")
        for folder, _, files in sorted(os.walk(folder_dir)):
            for name in sorted(files):
                path = os.path.join(folder, name)
                self.write_file(os.path.join(archive_dir, os.path.relpath(path, folder_dir)), path)

    def close(self):
        if self._zip.fp is None:
            return
        for name, text in ((ARCHIVE_FORMAT_PATH, ARCHIVE_FORMAT_VALUE), (ARCHIVE_VERSION_PATH, ARCHIVE_VERSION_VALUE), (".data/version", "3\n"),
                           ("byteorder", "little"), (".data/serialization_id", f"{secrets.randbelow(10**40):040d}")):
            if not self.has_record(name):
                self.write_string(name, text)
        self._zip.close()


class PT2ArchiveReader:
    """Reads an archive from a path or a file object."""

    def __init__(self, archive_path_or_buffer):
        try:
            self._zip = zipfile.ZipFile(archive_path_or_buffer)
        except zipfile.BadZipFile as error:
            raise RuntimeError(f"not an archive: {error}") from error
        names = self._zip.namelist()
        outside = next((name for name in names if "/" not in name), None)
        if outside is not None or not names:
            raise RuntimeError(f"file in archive is not in a subdirectory: {outside}" if names else "the archive is empty")
        self._root = names[0].split("/")[0]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._zip.close()

    def get_file_names(self):
        prefix = self._root + "/"
        return [name[len(prefix):] for name in self._zip.namelist() if name.startswith(prefix)]

    def read_bytes(self, name):
        try:
            return self._zip.read(f"{self._root}/{name}")
        except KeyError:
            raise RuntimeError(f"the archive has no file {name}") from None

    def read_string(self, name):
        return self.read_bytes(name).decode()

    def archive_version(self):
        """The version of the format; 0 where the archive does not say."""
        return int(self.read_string(ARCHIVE_VERSION_PATH)) if ARCHIVE_VERSION_PATH in self.get_file_names() else 0


def is_pt2_package(serialized_model):
    """Whether a file, by its path or by its bytes, is such an archive."""
    source = io.BytesIO(serialized_model) if isinstance(serialized_model, bytes) else serialized_model
    try:
        with PT2ArchiveReader(source) as reader:
            return ARCHIVE_FORMAT_PATH in reader.get_file_names() and reader.read_string(ARCHIVE_FORMAT_PATH) == ARCHIVE_FORMAT_VALUE
    except (OSError, RuntimeError, UnicodeDecodeError):
        return False
