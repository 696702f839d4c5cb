"""Stores: what processes leave for one another under keys. Here one process leaves it for itself, so nobody ever has to wait for long."""
import datetime
import os
import pickle
import time

from umbra.distributed._errors import DistNetworkError, DistStoreError, QueueEmptyError

DEFAULT_TIMEOUT = datetime.timedelta(minutes=30)
_PAUSE = 0.01   # seconds between two looks at what another thread, or a file, may have brought


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """Values by key, bytes all of them."""

    def __init__(self):
        self._values, self._queues, self._timeout = {}, {}, datetime.timedelta(minutes=5)

    @property
    def timeout(self):
        return self._timeout

    def set_timeout(self, timeout):
        self._timeout = timeout

    def set(self, key, value):
        self._values[key] = _bytes(value)

    def get(self, key):
        self.wait([key])
        return self._values[key]

    def add(self, key, amount):
        """Adds to a number, which begins at 0, and gives the sum."""
        total = int(self._values.get(key, b"0")) + amount
        self.set(key, str(total))
        return total

    def append(self, key, value):
        self.set(key, self._values.get(key, b"") + _bytes(value))

    def compare_set(self, key, expected, desired):
        """Writes `desired` where `expected` stands, or where nothing does and nothing is expected; gives what stands there then."""
        current = self._values.get(key)
        if (current is None and not expected) or current == _bytes(expected):
            self.set(key, desired)
            current = _bytes(desired)
        return _bytes(expected) if current is None else current

    def check(self, keys):
        return all(key in self._values for key in keys)

    def delete_key(self, key):
        return self._values.pop(key, None) is not None

    def num_keys(self):
        return len(self._values)

    def list_keys(self):
        return list(self._values)

    def multi_get(self, keys):
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        for key, value in zip(keys, values):
            self.set(key, value)

    def wait(self, keys, timeout=None):
        """Until all of the keys are there."""
        end = time.monotonic() + (timeout or self._timeout).total_seconds()
        while not self.check(keys):
            if time.monotonic() >= end:
                raise DistStoreError("Wait timeout")
            time.sleep(_PAUSE)

    def has_extended_api(self):
        return True

    def clone(self):
        """Another way to the same values."""
        return self

    def queue_push(self, key, value):
        self._queues.setdefault(key, []).append(_bytes(value))

    def queue_pop(self, key, block=True):
        end = time.monotonic() + self._timeout.total_seconds()
        while not self._queues.get(key):
            if not block:
                raise QueueEmptyError(f"queue is empty: {key}")
            if time.monotonic() >= end:
                raise DistStoreError("Wait timeout")
            time.sleep(_PAUSE)
        return self._queues[key].pop(0)

    def queue_len(self, key):
        return len(self._queues.get(key, ()))


class HashStore(Store):
    """A store in memory."""


class FileStore(Store):
    """A store that is a file, which is read and written whole."""

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self._path, self.world_size = os.fspath(file_name), world_size
        # torch's counts those who use the file under a key of its own.
        self._values = {**self._read(), "cleanup/": b"1"}

    @property
    def path(self):
        return self._path

    def _read(self):
        try:
            with open(self._path, "rb") as file:
                return {key: bytes(value) for key, value in pickle.load(file).items()}
        except (FileNotFoundError, EOFError):
            return {}

    def set(self, key, value):
        super().set(key, value)
        with open(self._path, "wb") as file:
            pickle.dump(self._values, file)


class TCPStore(Store):
    """The store of a process that serves it to others, of which there are none: no port is opened."""

    _PORT_OF_NOBODY = 29500

    def __init__(self, host_name, port, world_size=None, is_master=False, timeout=datetime.timedelta(minutes=5), wait_for_workers=True,
                 multi_tenant=False, master_listen_fd=None, use_libuv=True):
        if not is_master or (world_size or 1) > 1 and wait_for_workers or master_listen_fd is not None:
            raise DistNetworkError("torch.distributed.TCPStore: stores of other processes are not in Umbra, which has one process")
        super().__init__()
        self.host, self.port, self._timeout = host_name, port or self._PORT_OF_NOBODY, timeout
        self.libuvBackend, self.multi_tenant = use_libuv, multi_tenant
        if wait_for_workers:
            self._values["init/"] = b"1"


class PrefixStore(Store):
    """A part of another store: its keys begin alike."""

    def __init__(self, prefix, store):
        super().__init__()
        self._prefix, self._store = prefix, store
        self._timeout = store.timeout

    @property
    def underlying_store(self):
        return self._store

    def _whole(self, key):
        return f"{self._prefix}/{key}"

    def set_timeout(self, timeout):
        super().set_timeout(timeout)
        self._store.set_timeout(timeout)

    def set(self, key, value):
        self._store.set(self._whole(key), value)

    def get(self, key):
        return self._store.get(self._whole(key))

    def add(self, key, amount):
        return self._store.add(self._whole(key), amount)

    def append(self, key, value):
        self._store.append(self._whole(key), value)

    def compare_set(self, key, expected, desired):
        return self._store.compare_set(self._whole(key), expected, desired)

    def check(self, keys):
        return self._store.check([self._whole(key) for key in keys])

    def delete_key(self, key):
        return self._store.delete_key(self._whole(key))

    def num_keys(self):
        return self._store.num_keys()

    def list_keys(self):
        return self._store.list_keys()

    def wait(self, keys, timeout=None):
        self._store.wait([self._whole(key) for key in keys], timeout)

    def queue_push(self, key, value):
        self._store.queue_push(self._whole(key), value)

    def queue_pop(self, key, block=True):
        return self._store.queue_pop(self._whole(key), block)

    def queue_len(self, key):
        return self._store.queue_len(self._whole(key))
