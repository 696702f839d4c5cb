"""Names of types, for annotations."""
import builtins
import os
from typing import IO, Any, Sequence, Union

from umbra._C import Size, SymBool, SymFloat, SymInt, Tensor, device, dtype

Number = Union[builtins.int, builtins.float, builtins.bool]
Device = Union[device, str, builtins.int, None]
Storage = Any
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_dtype = dtype
_device = device
_size = Union[Size, list, tuple]
_int = builtins.int
_float = builtins.float
_bool = builtins.bool
FileLike = Union[str, os.PathLike, IO[bytes]]
IntLikeType = Union[builtins.int, SymInt]
FloatLikeType = Union[builtins.float, SymFloat]
BoolLikeType = Union[builtins.bool, SymBool]
py_sym_types = (SymInt, SymFloat, SymBool)
PySymType = Union[SymInt, SymFloat, SymBool]
