"""The memory behind tensors."""
from umbra._C import UntypedStorage  # noqa: F401


class TypedStorage:
    """A tensor's memory as elements of the tensor's type: what `tensor.storage()` gives.

        umbra.ones(2, 3).storage()[4]      # 1.0
    """

    def __init__(self, tensor):
        self._untyped_storage, self.dtype, self.device = tensor.untyped_storage(), tensor.dtype, tensor.device
        self._tensor = tensor

    @property
    def _elements(self):
        return self._tensor.detach().as_strided((len(self),), (1,), 0)

    @property
    def _cdata(self):
        """What tells one memory from another."""
        return self._untyped_storage._cdata

    def untyped(self):
        return self._untyped_storage

    _untyped = untyped

    def element_size(self):
        return self.dtype.itemsize

    def nbytes(self):
        return self._untyped_storage.nbytes()

    def __len__(self):
        return self.nbytes() // self.element_size()

    size = __len__

    def __getitem__(self, index):
        if isinstance(index, slice):
            return TypedStorage(self._elements[index].clone())
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return self._elements[index].item()

    def __setitem__(self, index, value):
        self._elements[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._elements.tolist()

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    def __repr__(self):
        return "\n".join(f" {value}" for value in self) + f"\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"
