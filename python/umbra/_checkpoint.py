"""The files of torch.save: zip archives of a pickle and the bytes of storages, and streams of pickles and bytes, which came before.

Names in pickles are torch's: what Umbra writes under `torch.nn...` PyTorch reads, and the other way round.
"""
import importlib
import io
import pickle
import struct
import sys
import types
import zipfile

import umbra
from umbra._modules import torch_name

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001


# ---- pickles with torch's names ----

class _Pickler(pickle._Pickler):
    """Pickles classes and functions of Umbra under the names that torch has for them."""

    def save_global(self, obj, name=None):
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        if "<locals>" in name:
            raise AttributeError(f"Can't pickle local object '{name}'")
        module = pickle.whichmodule(obj, name)
        if module.partition(".")[0] != "umbra":
            return super().save_global(obj, name)
        self._check_can_be_found(obj, module, name)
        if self.proto >= 4:
            self.save(torch_name(module))
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{torch_name(module)}\n{name}\n".encode())
        self.memoize(obj)

    def _check_can_be_found(self, obj, module, name):
        try:
            found, _ = pickle._getattribute(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            found = None
        if found is not obj:
            raise pickle.PicklingError(f"Can't pickle {obj!r}: it is not found as {module}.{name}")

    dispatch = {**pickle._Pickler.dispatch, types.FunctionType: save_global}


def _pickler_class(pickle_module):
    return _Pickler if pickle_module is pickle else pickle_module.Pickler


def _dump(obj, pickle_module, protocol, persistent_id):
    class Pickler(_pickler_class(pickle_module)):
        def persistent_id(self, obj):
            return persistent_id(obj)

    file = io.BytesIO()
    Pickler(file, protocol=protocol).dump(obj)
    return file.getvalue()


def unpickler(pickle_module, file, persistent_load, **options):
    """An unpickler of a trusted file: it finds `torch.x` in Umbra."""
    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            from umbra.serialization import StorageType
            root, _, rest = module.partition(".")
            if root == "torch" and name in umbra.storage._STORAGE_TYPES:
                return StorageType(name)
            if root == "torch":
                module = f"umbra.{rest}" if rest else "umbra"
                importlib.import_module(module)
            return super().find_class(module, name)

    made = Unpickler(file, **options)
    made.persistent_load = persistent_load
    return made


# ---- storages by key ----

class _Storages:
    """The storages of a file that is written, in the order they were met."""

    def __init__(self, key_of):
        self.by_key, self._key_of, self._dtypes = {}, key_of, {}

    def describe(self, obj):
        """What a pickle says of a storage; None for any other object."""
        from umbra.serialization import _serialization_tls, location_tag
        if isinstance(obj, umbra.storage.TypedStorage):
            storage, dtype, kind = obj._untyped_storage, obj.dtype, getattr(umbra, obj.pickle_storage_type())
        elif isinstance(obj, umbra.UntypedStorage):
            storage, dtype, kind = obj, umbra.uint8, umbra.UntypedStorage
        else:
            return None
        if not storage._has_data() and not _serialization_tls.materialize_fake_tensors:
            raise TypeError(f"cannot save a storage on {storage.device}: it has no data")
        if storage.nbytes() and self._dtypes.setdefault(storage.data_ptr(), dtype) != dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        key = self._key_of(storage)
        self.by_key[key] = storage, dtype
        return "storage", kind, key, location_tag(storage), storage.nbytes() // dtype.itemsize


def _numbered():
    keys = {}
    return lambda storage: keys.setdefault(storage._cdata, str(len(keys)))


def _contents(storage, skip_data):
    return bytes(storage.nbytes()) if skip_data else memoryview(storage._buffer())


# ---- archives ----

class _Archive:
    """Writes records of a zip archive, each at a multiple of the alignment."""

    def __init__(self, target, root, alignment):
        self._zip = zipfile.ZipFile(target, "w", zipfile.ZIP_STORED)
        self._root, self._alignment = root, alignment

    def add(self, name, data):
        record = zipfile.ZipInfo(f"{self._root}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
        record.file_size = len(data)
        record.extra = self._padding(record)
        with self._zip.open(record, "w") as file:
            file.write(data)

    def _padding(self, record):
        """A field without meaning that moves the contents behind it to where they should stand."""
        sizes = 20 if record.file_size * 1.05 > zipfile.ZIP64_LIMIT else 0  # zipfile adds this field to large records
        header = 30 + len(record.filename.encode()) + sizes + 4
        missing = -(self._zip.fp.tell() + header) % self._alignment
        return b"FB" + struct.pack("<H", missing) + b"Z" * missing

    def close(self):
        self._zip.close()


def pickled(obj, pickle_module, protocol):
    """The pickle of an object and the storages in it, which is all of an archive that can fail."""
    storages = _Storages(_numbered())
    return _dump(obj, pickle_module, protocol, storages.describe), storages.by_key


def write_archive(target, root, data, storages, *, byte_order, alignment, skip_data):
    archive = _Archive(target, root, alignment)
    archive.add("data.pkl", data)
    archive.add(".format_version", b"1")
    archive.add(".storage_alignment", str(alignment).encode())
    if byte_order:
        archive.add("byteorder", sys.byteorder.encode())
    for key, (storage, _) in storages.items():
        archive.add(f"data/{key}", _contents(storage, skip_data))
    archive.add("version", b"3\n")
    archive.add(".data/serialization_id", b"0" * 40)
    archive.close()


def _fill(buffer, file):
    """Fills a buffer from where a file stands, and says how many bytes there were."""
    at = 0
    if hasattr(file, "readinto"):
        while at < len(buffer) and (count := file.readinto(buffer[at:])):
            at += count
        return at
    while chunk := file.read(min(1 << 20, len(buffer) - at)):
        buffer[at:at + len(chunk)] = chunk
        at += len(chunk)
    return at


class ArchiveReader:
    """torch.PyTorchFileReader: the records of an archive, without the name of the folder that they are in."""

    def __init__(self, file):
        try:
            self._zip = zipfile.ZipFile(file)
            first = self._zip.infolist()[0].filename
        except (zipfile.BadZipFile, IndexError, struct.error, OSError) as error:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: {error}. The file is corrupted: it was not saved whole, or changed "
                               "since") from None
        # Of several archives in one file the last is found, whose records do not begin where the file does.
        if min(record.header_offset for record in self._zip.infolist()) != 0:
            raise RuntimeError("PytorchStreamReader failed reading zip archive: what begins here is another archive than what ends here")
        self._file, self._root = file, first.partition("/")[0]

    def has(self, name):
        return f"{self._root}/{name}" in self._zip.NameToInfo

    def _record(self, name):
        record = self._zip.NameToInfo.get(f"{self._root}/{name}")
        if record is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        return record

    def read(self, name):
        try:
            return self._zip.read(self._record(name))
        except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {error}") from None

    def size(self, name):
        return self._record(name).file_size

    def read_into(self, name, buffer):
        """Fills a buffer of the record's size. Checksums are not looked at: a file may have been written without them, or through a mapping."""
        if self._record(name).compress_type != zipfile.ZIP_STORED:
            buffer[:] = self.read(name)
            return
        self._file.seek(self.offset(name))
        at = _fill(buffer, self._file)
        if at != len(buffer):
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it has {at} of {len(buffer)} bytes")

    # PyTorch's names.
    has_record, get_record = has, read

    def get_all_records(self):
        return [name.partition("/")[2] for name in self._zip.namelist()]

    def offset(self, name):
        """Where the bytes of a record stand in the file."""
        record = self._record(name)
        if record.compress_type != zipfile.ZIP_STORED:
            raise RuntimeError(f"{name} is compressed, so that it cannot be mapped")
        self._file.seek(record.header_offset)
        header = self._file.read(30)
        if len(header) != 30 or header[:4] != b"PK\x03\x04":
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: no header where the directory says")
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        return record.header_offset + 30 + name_length + extra_length


PyTorchFileReader = ArchiveReader


# ---- streams, the old format ----

def write_stream(file, obj, pickle_module, protocol):
    storages = _Storages(lambda storage: str(storage._cdata))

    def persistent_id(obj):
        described = storages.describe(obj)
        return described and (*described, None)  # the last says which part of another storage it is: none

    system = {"protocol_version": _PROTOCOL, "little_endian": sys.byteorder == "little",
              "type_sizes": {"short": 2, "int": 4, "long": struct.calcsize("=l")}}
    data = _dump(obj, pickle_module, protocol, persistent_id)
    for head in (_MAGIC, _PROTOCOL, system):
        pickle_module.dump(head, file, protocol=protocol)
    file.write(data)
    keys = sorted(storages.by_key)
    pickle_module.dump(keys, file, protocol=protocol)
    for key in keys:
        storage, dtype = storages.by_key[key]
        file.write(struct.pack("<q", storage.nbytes() // dtype.itemsize))
        file.write(_contents(storage, False))


def read_stream_head(load):
    """Checks the first three pickles; `load` reads the next one."""
    if load() != _MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = load()
    if version != _PROTOCOL:
        raise RuntimeError(f"Invalid protocol version: {version}")
    system = load()
    if isinstance(system, dict) and not system.get("little_endian", True):
        raise NotImplementedError("a file of the old format with big-endian numbers is not in Umbra yet")


def fill_from_stream(file, storage, dtype):
    """Reads the contents of a storage from where a stream stands."""
    head = file.read(8)
    if len(head) != 8 or struct.unpack("<q", head)[0] * dtype.itemsize != storage.nbytes():
        raise RuntimeError(f"unexpected EOF or another size of a storage than the {storage.nbytes()} bytes that tensors have. The file might be corrupted.")
    has_data = storage.nbytes() and storage._has_data()
    read = _fill(memoryview(storage._buffer()), file) if has_data else len(file.read(storage.nbytes()))
    if read != storage.nbytes():
        raise RuntimeError(f"unexpected EOF, expected {storage.nbytes() - read} more bytes. The file might be corrupted.")
