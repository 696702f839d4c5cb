"""What pipes share: checks of the functions they are given, files, streams that are closed in time."""
import fnmatch
import functools
import inspect
import os
import warnings
from collections.abc import Iterable, Sized
from io import IOBase

from umbra.utils.data.datapipes.datapipe import HAS_DILL as DILL_AVAILABLE

__all__ = ["validate_input_col", "StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root", "match_masks",
           "validate_pathname_binary_tuple"]


def _length(pipe, source):
    """The length of a source; an error in the name of the pipe where it has none."""
    if not isinstance(source, Sized):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return len(source)


def validate_input_col(fn, input_col):
    """Checks that a function can be called with so many columns."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # a function without a signature, such as some that are built in
        return
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    required = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    named = fn.func if isinstance(fn, functools.partial) else fn
    name = getattr(named, "__name__", repr(named))
    if required:
        raise ValueError(f"The function {name} takes {len(required)} non-default keyword-only parameters, which is not allowed.")
    if len(parameters) < count and not takes_more:
        raise ValueError(f"The function {name} takes {len(parameters)} parameters, but {count} are required.")
    too_few = len(places) < count and not takes_more
    if too_few or any(p.default is p.empty for p in places[count:]):
        raise ValueError(f"The function {name} takes {len(places)} positional parameters, but {count} are required.")


def _is_local_fn(fn):
    if hasattr(fn, "__code__"):
        return bool(fn.__code__.co_flags & inspect.CO_NESTED)
    return "<locals>" in getattr(fn, "__qualname__", getattr(type(fn), "__qualname__", ""))


def _check_unpickable_fn(fn):
    """Warns of functions that cannot go to another process."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    if isinstance(fn, functools.partial):
        fn = fn.func
    kind = "Local" if _is_local_fn(fn) else "Lambda" if getattr(fn, "__name__", None) == "<lambda>" else None
    if kind and not DILL_AVAILABLE:
        warnings.warn(f"{kind} function is not supported by pickle, please use regular python function or functools.partial instead.", stacklevel=2)


def match_masks(name, masks):
    """Whether a file's name fits one of the patterns. No pattern fits all."""
    return not masks or any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(root, masks, recursive=False, abspath=False, non_deterministic=False):
    """The files of a folder, in order unless `non_deterministic`."""

    def refuse(error):
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    for path, folders, files in os.walk(root, onerror=refuse):
        path = os.path.abspath(path) if abspath else path
        for name in files if non_deterministic else sorted(files):
            if match_masks(name, masks):
                yield os.path.join(path, name)
        if not recursive:
            return
        if not non_deterministic:
            folders.sort()


def get_file_binaries_from_pathnames(pathnames, mode, encoding=None):
    """(name, opened file) of each name."""
    for name in pathnames if isinstance(pathnames, Iterable) else [pathnames]:
        if not isinstance(name, str):
            raise TypeError(f"Expected string type for pathname, but got {type(name)}")
        yield name, StreamWrapper(open(name, "r" + mode if mode in ("b", "t") else mode, encoding=encoding))


def validate_pathname_binary_tuple(data):
    """Checks for (name, opened file)."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}")
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError(f"binary stream within the tuple should have IOBase orits subclasses as type, but it is type {type(data[1])}")


class StreamWrapper:
    """An opened file that is closed with its last reader. `debug_unclosed_streams` notes those that are open in `session_streams`."""

    session_streams = {}
    debug_unclosed_streams = False

    def __init__(self, file_obj, parent_stream=None, name=None):
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name
        self.child_counter, self.close_on_last_child, self.closed = 0, False, False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v, depth=0):
        """Closes the streams in a sample that nobody wants."""
        if depth > 10:  # a list that contains itself
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, (dict, list, tuple)):
            for value in v.values() if isinstance(v, dict) else v:
                cls.close_streams(value, depth + 1)

    def __getattr__(self, name):
        if name == "file_obj":
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def close(self, *args, **kwargs):
        if self.closed:
            return
        StreamWrapper.session_streams.pop(self, None)
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        if hasattr(self.file_obj, "close"):
            self.file_obj.close(*args, **kwargs)
        self.closed = True

    def autoclose(self):
        """Closes it with the last stream that is read from it."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __dir__(self):
        return sorted({*self.__dict__, *StreamWrapper.__dict__, *dir(self.file_obj)})

    def __del__(self):
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self):
        yield from self.file_obj

    def __next__(self):
        return next(self.file_obj)

    def __repr__(self):
        return f"StreamWrapper<{'' if self.name is None else f'{self.name},'}{self.file_obj!r}>"

    def __getstate__(self):
        return self.file_obj

    def __setstate__(self, state):
        self.__init__(state)
