"""Memory that a NumPy array uses stays where it is."""
import pytest

import umbra as torch


def test_a_tensor_whose_memory_numpy_uses_cannot_grow():
    x = torch.ones(5)
    assert x.untyped_storage().resizable()
    array = x.numpy()
    assert not x.untyped_storage().resizable()
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.resize_(1000)
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        torch.add(torch.ones(1000), 1, out=x)
    with pytest.raises(RuntimeError, match="cannot be moved"):
        x.share_memory_()
    assert array.tolist() == [1.0] * 5 and x.shape == (5,)
    x.add_(1)
    assert array.tolist() == [2.0] * 5
    del array
    assert x.resize_(1000).shape == (1000,)
