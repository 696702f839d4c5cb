"""Masked tensors of sparse tensors: data and mask have elements at the same places, and operators work on those."""
import umbra

LAYOUTS = (umbra.sparse_coo, umbra.sparse_csr)


def is_sparse(tensor):
    """Whether the data are kept as elements at places."""
    return isinstance(tensor, umbra.Tensor) and tensor.layout in LAYOUTS


def aligned(data, mask):
    """Data and mask with elements at the mask's places."""
    if data.layout is umbra.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data._nnz() != mask._nnz():
        data = data.to_dense().sparse_mask(mask)
    return data, mask


def check_places(data, mask):
    """Refuses data whose elements stand elsewhere than the mask's."""
    if data.layout is umbra.sparse_coo and not umbra.equal(data.indices(), mask.indices()):
        raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
    if data.layout is umbra.sparse_csr and not _same_places(data, mask):
        raise ValueError("data and mask are both sparse CSR tensors but do not share either crow or col indices.")


def with_values(tensor, values):
    """Other elements at the places of a sparse tensor."""
    if tensor.layout is umbra.sparse_coo:
        return umbra.sparse_coo_tensor(tensor.indices(), values, tensor.size(), is_coalesced=True, check_invariants=False)
    return umbra.sparse_csr_tensor(tensor.crow_indices(), tensor.col_indices(), values, tensor.size(), check_invariants=False)


def match(a, b):
    """Whether two sparse tensors are the same, places and elements."""
    return a.layout == b.layout and a.size() == b.size() and _same_places(a, b) and umbra.equal(a.values(), b.values())


def on_values(func, data, *others):
    """`func` of the elements of sparse data; another sparse tensor has to have its elements at the same places."""
    others = list(others)
    if others and is_sparse(others[0]):
        kind = "sparse_coo" if data.layout is umbra.sparse_coo else "sparse_csr"
        if not _same_places(data, others[0]):
            raise ValueError(f"{kind} indices must match. If you need support for this, please open an issue on Github.")
        if data.size() != others[0].size():
            raise ValueError("input1 and input2 must have the same size for binary functions.")
        others[0] = others[0].values()
    elif others and isinstance(others[0], umbra.Tensor) and others[0].dim() > 0:
        raise NotImplementedError("a masked tensor of sparse data with a strided tensor is not in Umbra yet")
    return with_values(data, func(data.values(), *others))


def _same_places(a, b):
    parts = ("indices",) if a.layout is umbra.sparse_coo else ("crow_indices", "col_indices")
    return a.layout == b.layout and all(umbra.equal(getattr(a, part)(), getattr(b, part)()) for part in parts)
