"""Unpickling that runs nothing but what is known to be harmless: what torch.load does unless it is told that the file can be trusted.

A pickle is a program for a small stack machine. This one knows the instructions that files of tensors need; of the names that a pickle may ask
for, it knows those that build tensors and plain containers, and those that the user has allowed. It never looks a name up in a module.
"""
import collections
import functools
import pickle
import pickletools
import struct
import warnings
from _codecs import encode
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from pickle import UnpicklingError

from umbra._modules import torch_name

# What is in these modules stays forbidden, whatever the user allows.
_BLOCKED_MODULES = ("sys", "os", "posix", "nt")

_safe_globals = set()


def _add_safe_globals(safe_globals):
    global _safe_globals
    _safe_globals = _safe_globals | set(safe_globals)


def _remove_safe_globals(safe_globals):
    global _safe_globals
    _safe_globals = _safe_globals - set(safe_globals)


def _get_safe_globals():
    return list(_safe_globals)


def _clear_safe_globals():
    global _safe_globals
    _safe_globals = set()


# ---- the names that are allowed ----

def path_of(obj):
    """The full name of a class or function in a pickle: that of torch for what is Umbra's."""
    module = obj.__module__
    if module.partition(".")[0] == "umbra":
        module = torch_name(module)
    return f"{module}.{obj.__qualname__}"


def _user_allowed():
    names = {}
    for item in _safe_globals:
        if not isinstance(item, tuple):
            names[path_of(item)] = item
            continue
        if len(item) != 2:
            raise ValueError(f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(item)}")
        if type(item[1]) is not str:
            raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}")
        names[item[1]] = item[0]
    return names


def _bytes_of_text(text, encoding):
    """How protocol 2 writes bytes."""
    if type(text) is not str or encoding != "latin1":
        raise UnpicklingError("Only text in the encoding latin1 can stand for bytes")
    return encode(text, encoding)


@functools.cache
def _allowed():
    import umbra
    from umbra import _tensor, _utils, serialization, storage
    from umbra.nested._internal.nested_tensor import _rebuild_njt
    names = {
        "collections.OrderedDict": collections.OrderedDict, "collections.Counter": collections.Counter, "builtins.bytearray": bytearray,
        "builtins.set": set, "builtins.complex": complex, "_codecs.encode": _bytes_of_text, "torch.Size": umbra.Size, "torch.device": umbra.device,
        "torch.Tensor": umbra.Tensor, "torch.nn.parameter.Parameter": umbra.nn.Parameter, "torch.serialization._get_layout": serialization._get_layout,
        "torch.storage.UntypedStorage": storage.UntypedStorage, "torch.storage.TypedStorage": storage.TypedStorage,
        "torch._tensor._rebuild_from_type_v2": _tensor._rebuild_from_type_v2,
        "torch.nested._internal.nested_tensor._rebuild_njt": _rebuild_njt,
    }
    for name in ("_rebuild_parameter", "_rebuild_parameter_with_state", "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3",
                 "_rebuild_sparse_tensor", "_rebuild_nested_tensor", "_rebuild_meta_tensor_no_storage", "_rebuild_wrapper_subclass", "_rebuild_device_tensor_from_numpy",
                 "_rebuild_device_tensor_from_cpu_tensor"):
        names[f"torch._utils.{name}"] = getattr(_utils, name)
    for value in vars(umbra).values():
        if isinstance(value, umbra.dtype):
            names[str(value)] = value
    for name in storage._STORAGE_TYPES:
        names[f"torch.{name}"] = serialization.StorageType(name)
    return names


def _name_of(module, name):
    """Protocol 2 writes the names of Python 2."""
    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[module, name]
    return IMPORT_MAPPING.get(module, module), name


def _is_one_of(obj, known):
    return any(obj is item for item in known.values())


class Unpickler:
    """Reads one pickle from a file. `persistent_load` is set by whoever knows where storages are."""

    def __init__(self, file, *, encoding="bytes"):
        self._read, self._readline, self._encoding = file.read, file.readline, encoding
        self._stack, self._outer, self._memo = [], [], {}

    def load(self):
        while True:
            code = self._read(1)
            if not code:
                raise EOFError("Ran out of input")
            if code == pickle.STOP:
                return self._stack.pop()
            instruction = _INSTRUCTIONS.get(code)
            if instruction is None:
                raise UnpicklingError(f"Unsupported operand {code[0]}")
            instruction(self)

    def persistent_load(self, pid):
        raise UnpicklingError("unsupported persistent id encountered")

    def _bytes(self, count):
        data = self._read(count)
        if len(data) != count:
            raise EOFError("Ran out of input")
        return data

    def _number(self, form):
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _since_mark(self):
        items, self._stack = self._stack, self._outer.pop()
        return items

    # ---- what could do harm ----

    def _global(self):
        module, name = _name_of(*(self._readline()[:-1].decode() for _ in range(2)))
        path = f"{module}.{name}"
        if module in _BLOCKED_MODULES:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked.")
        for known in (_allowed(), _user_allowed()):
            if path in known:
                self._stack.append(known[path])
                return
        path = path.removeprefix("builtins.")
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {path} was not an allowed global by default. Please use `torch.serialization.add_safe_globals([{path}])` "
            f"or the `torch.serialization.safe_globals([{path}])` context manager to allowlist this global if you trust this class/function.")

    def _is_allowed(self, obj):
        return _is_one_of(obj, _allowed()) or _is_one_of(obj, _user_allowed())

    def _new_object(self):
        args, cls = self._stack.pop(), self._stack.pop()
        if not isinstance(cls, type) or not self._is_allowed(cls):
            raise UnpicklingError(f"Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got {cls}")
        self._stack.append(cls.__new__(cls, *args))

    def _reduce(self):
        args, function = self._stack.pop(), self._stack[-1]
        if not self._is_allowed(function) or not callable(function):
            owner = f" which belongs to {function.__self__}" if hasattr(function, "__self__") else ""
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {function}{owner}")
        self._stack[-1] = function(*args)

    def _build(self):
        state, instance = self._stack.pop(), self._stack[-1]
        if type(instance) is collections.OrderedDict:
            instance.__dict__.update(state)
        elif not _is_one_of(type(instance), _user_allowed()):
            raise UnpicklingError("Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                                  f"{type(instance)}")
        elif hasattr(instance, "__setstate__"):
            instance.__setstate__(state)
        else:
            fields, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            instance.__dict__.update(fields or {})
            for name, value in (slots or {}).items():
                setattr(instance, name, value)

    def _persistent(self):
        pid = self._stack.pop()
        if type(pid) not in (tuple, int):
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(pid)}")
        if type(pid) is tuple and pid and pid[0] not in ("storage", b"storage"):
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {type(pid[0])}")
        self._stack.append(self.persistent_load(pid))

    # ---- containers ----

    def _list_to_extend(self, what):
        if type(self._stack[-1]) is not list:
            raise UnpicklingError(f"Can only {what} lists, but got {type(self._stack[-1])}")
        return self._stack[-1]

    def _append(self):
        item = self._stack.pop()
        self._list_to_extend("append to").append(item)

    def _extend(self):
        items = self._since_mark()
        self._list_to_extend("extend").extend(items)

    def _mapping_to_set(self, code):
        if type(self._stack[-1]) not in (dict, collections.OrderedDict, collections.Counter):
            raise UnpicklingError(f"Can only {code} for dict, collections.OrderedDict, collections.Counter, but got {type(self._stack[-1])}")
        return self._stack[-1]

    def _set_item(self):
        value, key = self._stack.pop(), self._stack.pop()
        self._mapping_to_set("SETITEM")[key] = value

    def _set_items(self):
        items = self._since_mark()
        mapping = self._mapping_to_set("SETITEMS")
        for i in range(0, len(items), 2):
            mapping[items[i]] = items[i + 1]

    def _mark(self):
        self._outer.append(self._stack)
        self._stack = []

    def _tuple(self):
        items = self._since_mark()
        self._stack.append(tuple(items))

    def _tuple_of(self, count):
        items = tuple(self._stack[-count:])
        if len(items) != count:
            raise IndexError("a tuple of more items than there are")
        self._stack[-count:] = [items]

    # ---- plain values ----

    def _push(self, value):
        self._stack.append(value)

    def _text(self):
        self._stack.append(str(self._bytes(self._number("<I")), "utf-8", "surrogatepass"))

    def _old_text(self):
        data = self._bytes(self._number("<B"))
        self._stack.append(data if self._encoding == "bytes" else data.decode(self._encoding))

    def _long(self):
        self._stack.append(pickle.decode_long(self._bytes(self._number("<B"))))

    def _get(self, form):
        self._stack.append(self._memo[self._number(form)])

    def _put(self, form):
        self._memo[self._number(form)] = self._stack[-1]

    def _protocol(self):
        protocol = self._number("<B")
        if protocol != 2:
            warnings.warn(f"Detected pickle protocol {protocol} in the checkpoint, which was not the default pickle protocol used by `torch.load` (2). "
                          "The weights_only Unpickler might not support all instructions implemented by this protocol.", stacklevel=4)


def _pushing(make):
    return lambda unpickler: unpickler._push(make())


def _pushing_number(form):
    return lambda unpickler: unpickler._push(unpickler._number(form))


_INSTRUCTIONS = {
    pickle.GLOBAL: Unpickler._global, pickle.NEWOBJ: Unpickler._new_object, pickle.REDUCE: Unpickler._reduce, pickle.BUILD: Unpickler._build,
    pickle.BINPERSID: Unpickler._persistent, pickle.APPEND: Unpickler._append, pickle.APPENDS: Unpickler._extend,
    pickle.SETITEM: Unpickler._set_item, pickle.SETITEMS: Unpickler._set_items, pickle.MARK: Unpickler._mark, pickle.TUPLE: Unpickler._tuple,
    pickle.TUPLE1: lambda u: u._tuple_of(1), pickle.TUPLE2: lambda u: u._tuple_of(2), pickle.TUPLE3: lambda u: u._tuple_of(3),
    pickle.NONE: _pushing(lambda: None), pickle.NEWFALSE: _pushing(lambda: False), pickle.NEWTRUE: _pushing(lambda: True),
    pickle.EMPTY_TUPLE: _pushing(tuple), pickle.EMPTY_LIST: _pushing(list), pickle.EMPTY_DICT: _pushing(dict), pickle.EMPTY_SET: _pushing(set),
    pickle.BININT: _pushing_number("<i"), pickle.BININT1: _pushing_number("<B"), pickle.BININT2: _pushing_number("<H"),
    pickle.BINFLOAT: _pushing_number(">d"), pickle.BINUNICODE: Unpickler._text, pickle.SHORT_BINSTRING: Unpickler._old_text,
    pickle.LONG1: Unpickler._long, pickle.BINGET: lambda u: u._get("<B"), pickle.LONG_BINGET: lambda u: u._get("<I"),
    pickle.BINPUT: lambda u: u._put("<B"), pickle.LONG_BINPUT: lambda u: u._put("<I"), pickle.PROTO: Unpickler._protocol,
}


def load(file, *, encoding="ASCII"):
    return Unpickler(file, encoding=encoding).load()


def unsafe_names(data):
    """The names that a pickle asks for and that are not allowed, each once."""
    names = {}
    for instruction, argument, _ in pickletools.genops(data):
        code = instruction.code.encode("latin1")
        if code != pickle.STOP and code not in _INSTRUCTIONS:
            raise UnpicklingError(f"Unsupported operand {code[0]}")
        if code == pickle.GLOBAL:
            names[".".join(_name_of(*argument.split(" ", 1)))] = True
    return [name for name in names if name not in _allowed() and name not in _user_allowed()]
