"""The memory behind tensors."""
from umbra._C import UntypedStorage  # noqa: F401

TypedStorage = UntypedStorage
