"""Where the values of a captured program come from, as expressions by which guards find them again."""
import dataclasses
import enum

from umbra._guards import ChainedSource, Source

__all__ = ["AttrSource", "ConstantSource", "GetItemSource", "GlobalSource", "LocalSource", "TensorProperty", "TensorPropertySource"]


class _Named(Source):
    def __str__(self):
        return self.name


@dataclasses.dataclass(frozen=True)
class ConstantSource(_Named):
    """A value with a name of its own."""
    source_name: str

    @property
    def name(self):
        return self.source_name


@dataclasses.dataclass(frozen=True)
class LocalSource(_Named):
    """An argument or a local variable."""
    local_name: str
    is_input: bool = False

    @property
    def name(self):
        return f"L[{self.local_name!r}]"


@dataclasses.dataclass(frozen=True)
class GlobalSource(_Named):
    """A global variable."""
    global_name: str

    @property
    def name(self):
        return f"G[{self.global_name!r}]"


@dataclasses.dataclass(frozen=True)
class _Part(ChainedSource):
    base: Source

    def __str__(self):
        return self.name


@dataclasses.dataclass(frozen=True)
class AttrSource(_Part):
    """An attribute of another value."""
    member: str

    @property
    def name(self):
        return f"{self.base.name}.{self.member}"


@dataclasses.dataclass(frozen=True)
class GetItemSource(_Part):
    """An element of another value."""
    index: object

    @property
    def name(self):
        return f"{self.base.name}[{self.index!r}]"


class TensorProperty(enum.Enum):
    SIZE = 0
    STRIDE = 1
    STORAGE_OFFSET = 2

    def method_name(self):
        return self.name.lower()


@dataclasses.dataclass(frozen=True)
class TensorPropertySource(_Part):
    """A size, a stride or the offset of a tensor."""
    prop: TensorProperty
    idx: int = None

    @property
    def name(self):
        call = f"{self.base.name}.{self.prop.method_name()}()"
        return call if self.idx is None else f"{call}[{self.idx}]"
