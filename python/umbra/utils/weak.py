"""Dictionaries whose keys are objects, told apart by identity, and not kept alive.

    notes = WeakTensorKeyDictionary()
    notes[x] = "the input"      # gone when x is
"""
import collections.abc
import weakref
from weakref import ref

WeakRef = ref


class WeakIdRef(ref):
    """A weak reference that is equal to another one of the same object, whatever the object's own `==` says."""
    __slots__ = ["_id"]

    def __init__(self, key, callback=None):
        self._id = id(key)
        super().__init__(key, callback)

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        mine, theirs = self(), other()
        return mine is theirs if mine is not None and theirs is not None else self is other


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor):
        import umbra
        if not isinstance(tensor, umbra.Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self):
        return self.ref()


class WeakIdKeyDictionary(collections.abc.MutableMapping):
    """A dictionary by the identity of its keys, which leave it when nobody else has them."""

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.data, self.ref_type, self._reading, self._gone = {}, ref_type, 0, []
        own = weakref.ref(self)

        def remove(reference):
            table = own()
            if table is None:
                return
            if table._reading:  # a dictionary that is read must not change its size
                table._gone.append(reference)
            else:
                table.data.pop(reference, None)
        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value):
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key):
        del self.data[self.ref_type(key)]

    def __contains__(self, key):
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __len__(self):
        return sum(reference() is not None for reference in self.data)

    def __iter__(self):
        self._reading += 1
        try:
            for reference in self.data:
                key = reference()
                if key is not None:
                    yield key
        finally:
            self._reading -= 1
            while not self._reading and self._gone:
                self.data.pop(self._gone.pop(), None)

    def __repr__(self):
        return f"<{type(self).__name__} at {id(self):#x}>"

    def copy(self):
        return type(self)(dict(self.items())) if type(self) is not WeakIdKeyDictionary else WeakIdKeyDictionary(dict(self.items()), self.ref_type)

    __copy__ = copy

    def keyrefs(self):
        """The references that are the keys."""
        return list(self.data)

    def __or__(self, other):
        if not isinstance(other, collections.abc.Mapping):
            return NotImplemented
        both = self.copy()
        both.update(other)
        return both

    def __ror__(self, other):
        if not isinstance(other, collections.abc.Mapping):
            return NotImplemented
        both = WeakIdKeyDictionary(other, self.ref_type)
        both.update(self)
        return both

    def __ior__(self, other):
        self.update(other)
        return self

    def __deepcopy__(self, memo):
        """The same keys, with copies of the values."""
        import copy
        return WeakIdKeyDictionary({key: copy.deepcopy(value, memo) for key, value in self.items()}, self.ref_type)

    def __eq__(self, other):
        if not isinstance(other, collections.abc.Mapping):
            return NotImplemented
        return {id(key): value for key, value in self.items()} == {id(key): value for key, value in other.items()}


WeakTensorRef = WeakIdRef
WeakTensorKeyDictionary = WeakIdKeyDictionary
