"""Where the values of a captured program come from, as expressions by which guards find them again."""
import dataclasses
import enum

from umbra._guards import ChainedSource, Source

__all__ = ["AttrSource", "ConstantSource", "GetItemSource", "GlobalSource", "LocalSource", "TensorProperty", "TensorPropertySource"]

_source = dataclasses.dataclass(frozen=True)


class _Named(Source):
    form = None  # of its name, over its fields

    @property
    def name(self):
        return self.form.format(**vars(self))

    def __str__(self):
        return self.name


@_source
class ConstantSource(_Named):
    """A value with a name of its own."""
    source_name: str
    form = "{source_name}"


@_source
class LocalSource(_Named):
    """An argument or a local variable."""
    local_name: str
    is_input: bool = False
    form = "L[{local_name!r}]"


@_source
class GlobalSource(_Named):
    """A global variable."""
    global_name: str
    form = "G[{global_name!r}]"


@_source
class _Part(_Named, ChainedSource):
    base: Source


@_source
class AttrSource(_Part):
    """An attribute of another value."""
    member: str
    form = "{base.name}.{member}"


@_source
class GetItemSource(_Part):
    """An element of another value."""
    index: object
    form = "{base.name}[{index!r}]"


class TensorProperty(enum.Enum):
    SIZE = 0
    STRIDE = 1
    STORAGE_OFFSET = 2

    def method_name(self):
        return self.name.lower()


@_source
class TensorPropertySource(_Part):
    """A size, a stride or the offset of a tensor."""
    prop: TensorProperty
    idx: int = None

    @property
    def name(self):
        call = f"{self.base.name}.{self.prop.method_name()}()"
        return call if self.idx is None else f"{call}[{self.idx}]"
