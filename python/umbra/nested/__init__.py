"""Batches of tensors of different lengths.

    nt = torch.nested.nested_tensor([torch.randn(2, 8), torch.randn(5, 8)], layout=torch.jagged)
    nt.shape                                       # torch.Size([2, j1, 8])
    nn.Linear(8, 4)(nt).to_padded_tensor(0.0)      # of sizes (2, 5, 4)

With `layout=torch.jagged` the elements lie one after the other in one strided tensor (`values()`), and `offsets()` says where each
begins; one dimension is ragged. With `layout=torch.strided` every dimension but the first may differ. What is not built refuses by name.
"""
from umbra import _modules
from umbra.nested._create import (  # noqa: F401
    as_nested_tensor, masked_select, narrow, nested_tensor, nested_tensor_from_jagged, to_padded_tensor)

__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor"]

__getattr__ = _modules.lazy_submodules(__name__)
