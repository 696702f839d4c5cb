"""Values from the bytes of files, by the ends of their names."""
import importlib
import io
import json
import os.path
import pickle
import tempfile

import umbra
from umbra.utils.data.datapipes.utils.common import StreamWrapper

__all__ = ["Decoder", "ImageHandler", "MatHandler", "audiohandler", "basichandlers", "extension_extract_fn", "handle_extension", "imagehandler",
           "mathandler", "videohandler"]


def basichandlers(extension, data):
    """Texts, numbers, JSON, pickles and files of tensors; None for others."""
    if extension in "txt text transcript":
        return data.decode("utf-8")
    if extension in ("cls", "cls2", "class", "count", "index", "inx", "id"):
        try:
            return int(data)
        except ValueError:
            return None
    if extension in "json jsn":
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    if extension == "pt":
        return umbra.load(io.BytesIO(data))
    return None


def handle_extension(extensions, f):
    """A handler that calls f for names with one of these ends: handle_extension("jpg jpeg", read)."""
    ends = [end.split(".") for end in extensions.lower().split()]

    def handler(key, data):
        parts = key.lower().split(".")
        for end in ends:
            if len(end) <= len(parts):  # torch asks the first end that is short enough, and no other
                return f(data) if parts[-len(end):] == end else None
        return None

    return handler


# What an image becomes: a library's array, of bytes or of numbers up to 1, with these colours.
imagespecs = {f"{prefix}{mode}{suffix}": (library, kind, mode)
              for prefix, library in (("", "numpy"), ("torch", "torch"))
              for suffix, kind in (("8", "uint8"), ("", "float")) for mode in ("l", "rgb", "rgba")}
imagespecs |= {"torch": ("torch", "float", "rgb"), "pill": ("pil", None, "l"), "pil": ("pil", None, "rgb"), "pilrgb": ("pil", None, "rgb"),
               "pilrgba": ("pil", None, "rgba")}


def _needed(module, package, purpose):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ModuleNotFoundError(f"Package `{package}` is required to be installed for {purpose}.") from error


class ImageHandler:
    """Reads images; `imagespec` says as what: "rgb", "torchrgb8", "pil", ..."""

    def __init__(self, imagespec):
        if imagespec not in imagespecs:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension, data):
        if extension.lower() not in ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm"):
            return None
        numpy = _needed("numpy", "numpy", "default image decoder")
        reader = _needed("PIL.Image", "PIL", "default image decoder")
        library, kind, mode = imagespecs[self.imagespec]
        with io.BytesIO(data) as stream:
            image = reader.open(stream)
            image.load()
        image = image.convert(mode.upper())
        if library == "pil":
            return image
        values = numpy.asarray(image)
        if library == "numpy":
            return values if kind == "uint8" else values.astype("f") / 255.0
        values = umbra.tensor(numpy.array(values.transpose(2, 0, 1)))
        return values if kind == "uint8" else values / 255.0


def imagehandler(imagespec):
    return ImageHandler(imagespec)


def _read_as_file(read, extension, data):
    """For libraries that read files only."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, f"file.{extension}")
        with open(name, "wb") as stream:
            stream.write(data)
        return read(name)


def videohandler(extension, data):
    if extension not in ("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv"):
        return None
    return _read_as_file(_needed("torchvision.io", "torchvision", "default video file loader").read_video, extension, data)


def audiohandler(extension, data):
    if extension not in ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma"):
        return None
    return _read_as_file(_needed("torchaudio", "torchaudio", "default audio file loader").load, extension, data)


class MatHandler:
    """Reads Matlab's files."""

    def __init__(self, **loadmat_kwargs):
        self.sio, self.loadmat_kwargs = _needed("scipy.io", "scipy", "mat file"), loadmat_kwargs

    def __call__(self, extension, data):
        if extension != "mat":
            return None
        with io.BytesIO(data) as stream:
            return self.sio.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs):
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname):
    """A name's end, without the dot."""
    return os.path.splitext(pathname)[1][1:]


class Decoder:
    """Decodes (name, bytes or stream) by the first handler that gives something; what none knows stays as it is."""

    def __init__(self, *handler, key_fn=extension_extract_fn):
        self.handlers, self.key_fn = list(handler), key_fn

    def add_handler(self, *handler):
        """Handlers that are asked before those that are there."""
        self.handlers = [*handler, *self.handlers]

    @staticmethod
    def _is_stream_handle(data):
        return isinstance(data.file_obj if isinstance(data, StreamWrapper) else data, (io.BufferedIOBase, io.RawIOBase))

    def decode1(self, key, data):
        if not data:
            return data
        if self._is_stream_handle(data):
            stream, data = data, b"".join(data)
            stream.close()
        for handler in self.handlers:
            value = handler(key, data)
            if value is not None:
                return value
        return data

    def decode(self, data):
        result = {}
        for name, value in [data] if isinstance(data, tuple) else data or ():
            if name[0] == "_" and isinstance(value, bytes):
                result[name] = value.decode("utf-8")
            else:
                result[name] = self.decode1(self.key_fn(name), value)
        return result

    def __call__(self, data):
        return self.decode(data)
