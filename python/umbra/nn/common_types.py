"""Types of arguments that are one number or one for each dimension."""
from typing import Optional, TypeVar, Union

from umbra import Tensor

T = TypeVar("T")
_scalar_or_tuple_any_t = Union[T, tuple[T, ...]]
_scalar_or_tuple_1_t = Union[T, tuple[T]]
_scalar_or_tuple_2_t = Union[T, tuple[T, T]]
_scalar_or_tuple_3_t = Union[T, tuple[T, T, T]]
_scalar_or_tuple_4_t = Union[T, tuple[T, T, T, T]]
_scalar_or_tuple_5_t = Union[T, tuple[T, T, T, T, T]]
_scalar_or_tuple_6_t = Union[T, tuple[T, T, T, T, T, T]]

_size_any_t, _size_1_t, _size_2_t, _size_3_t, _size_4_t, _size_5_t, _size_6_t = (
    kind[int] for kind in (_scalar_or_tuple_any_t, _scalar_or_tuple_1_t, _scalar_or_tuple_2_t, _scalar_or_tuple_3_t, _scalar_or_tuple_4_t,
                           _scalar_or_tuple_5_t, _scalar_or_tuple_6_t))
_size_any_opt_t, _size_2_opt_t, _size_3_opt_t = (
    kind[Optional[int]] for kind in (_scalar_or_tuple_any_t, _scalar_or_tuple_2_t, _scalar_or_tuple_3_t))
_ratio_any_t, _ratio_2_t, _ratio_3_t = (kind[float] for kind in (_scalar_or_tuple_any_t, _scalar_or_tuple_2_t, _scalar_or_tuple_3_t))
_tensor_list_t = _scalar_or_tuple_any_t[Tensor]
_maybe_indices_t = _scalar_or_tuple_2_t[Tensor]
