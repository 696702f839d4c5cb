"""Tensors as Python objects: identity, metadata, conversions, indexing, numbers."""
import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import umbra
from umbra import Tensor


# ---- identity and lifetime ----

def test_one_tensor_is_one_object():
    x = umbra.ones(2)
    y = x.add_(1)
    assert y is x


def test_object_with_attributes_survives_while_the_graph_holds_the_tensor():
    x = umbra.ones(2, requires_grad=True)
    x.note = "kept"
    node = (x * 2).grad_fn
    reference = weakref.ref(x)
    del x
    gc.collect()
    leaf = node.next_functions[0][0].variable
    assert leaf.note == "kept"
    assert reference() is leaf


def test_object_is_freed_with_its_tensor():
    x = umbra.ones(2)
    x.note = "gone"
    reference = weakref.ref(x)
    del x
    assert reference() is None


def test_cycle_through_an_attribute_is_collected():
    x = umbra.ones(2)
    x.myself = x
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None


def test_subclass_survives_being_kept_twice():
    class Marked(Tensor):
        pass
    x = umbra.ones(2).as_subclass(Marked).requires_grad_()
    node = (x.as_subclass(Tensor) * 1).grad_fn
    for _ in range(3):
        while node.next_functions[0][0].name() != "torch::autograd::AccumulateGrad":
            node = node.next_functions[0][0]
        leaf = node.next_functions[0][0].variable
        assert type(leaf) is Marked
        del leaf
        gc.collect()


# ---- data in and out ----

@pytest.mark.parametrize("data, dtype, shape", [
    (3, umbra.int64, ()), (2.5, umbra.float32, ()), (True, umbra.bool, ()), (1 + 2j, umbra.complex64, ()),
    ([1, 2], umbra.int64, (2,)), ([1, 2.5], umbra.float32, (2,)), ([[1], [2], [3]], umbra.int64, (3, 1)), ([], umbra.float32, (0,)),
    ([[], []], umbra.float32, (2, 0)), ([True, 2], umbra.int64, (2,)), ((1.0, 2j), umbra.complex64, (2,)), (range(3), umbra.int64, (3,)),
])
def test_tensor_from_data(data, dtype, shape):
    t = umbra.tensor(data)
    assert t.dtype == dtype and t.shape == shape
    if shape:
        assert t.tolist() == list(map(list, data)) if len(shape) == 2 else t.tolist() == list(data)


@pytest.mark.parametrize("data, error, text", [
    ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1 (got 1)"), ([[1, 2], 3], TypeError, "not a sequence"),
    ("a", TypeError, "new(): invalid data type 'str'"), (["a"], ValueError, "too many dimensions 'str'"),
    ([None], RuntimeError, "Could not infer dtype of NoneType"),
])
def test_tensor_refuses(data, error, text):
    with pytest.raises(error) as caught:
        umbra.tensor(data)
    assert str(caught.value) == text


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                                  "bool", "complex64", "complex128"])
def test_numpy_shares_memory_both_ways(name):
    array = np.zeros((2, 3), dtype=name)
    t = umbra.from_numpy(array)
    assert t.dtype == getattr(umbra, name)
    array[0, 1] = 1
    assert t.tolist()[0][1] == 1
    back = t.numpy()
    assert back.dtype == array.dtype and back.shape == (2, 3)
    back[1, 2] = 1
    assert array[1, 2] == 1


def test_numpy_of_a_view_has_its_strides():
    t = umbra.arange(12).reshape(3, 4).t()[1:]
    array = t.numpy()
    assert array.strides == (8, 32)
    assert array.tolist() == t.tolist()


def test_memory_outlives_its_owner():
    array = umbra.arange(3).numpy()
    gc.collect()
    assert array.tolist() == [0, 1, 2]
    t = umbra.from_numpy(np.arange(3))
    gc.collect()
    assert t.tolist() == [0, 1, 2]


def test_dlpack_without_copy():
    array = np.arange(4, dtype=np.float32)
    t = umbra.from_dlpack(array)
    t[0] = 7
    assert array[0] == 7
    assert np.from_dlpack(t).tolist() == t.tolist()


def test_frombuffer():
    data = bytearray(np.arange(4, dtype=np.int32).tobytes())
    t = umbra.frombuffer(data, dtype=umbra.int32, offset=4, count=2)
    assert t.tolist() == [1, 2]
    with pytest.raises(ValueError, match="must be a multiple of element size"):
        umbra.frombuffer(b"abc", dtype=umbra.int32)


def test_deepcopy_and_pickle():
    x = umbra.arange(6.).reshape(2, 3).t()
    x.note = [1]
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.tolist() == x.tolist() and y.stride() == x.stride() and y.note == [1] and y.note is not x.note
        assert not umbra._C._is_alias_of(x, y)


def test_deepcopy_keeps_sharing():
    x = umbra.zeros(4)
    a, b = copy.deepcopy((x, x[1:3]))
    a.fill_(1)
    assert b.tolist() == [1, 1]


# ---- metadata ----

def test_size_is_a_tuple_with_numel():
    size = umbra.zeros(2, 3).shape
    assert isinstance(size, tuple) and size == (2, 3) and size.numel() == 6
    assert repr(size) == "torch.Size([2, 3])"
    assert repr(size[1:] + (4,)) == "torch.Size([3, 4])"
    assert umbra.Size([1, np.int64(2)]) == (1, 2)
    with pytest.raises(TypeError):
        umbra.Size(["a"])


def test_device():
    d = umbra.device("cuda:1")
    assert (d.type, d.index, str(d), repr(d)) == ("cuda", 1, "cuda:1", "device(type='cuda', index=1)")
    assert d == umbra.device("cuda", 1) and hash(d) == hash(umbra.device(1))
    with pytest.raises(RuntimeError, match="device type at start of device string: foo"):
        umbra.device("foo")


def test_dtype():
    assert repr(umbra.float32) == "torch.float32" and umbra.float is umbra.float32
    assert umbra.complex64.to_real() is umbra.float32 and umbra.int8.is_signed and not umbra.uint8.is_signed
    assert pickle.loads(pickle.dumps(umbra.bfloat16)) is umbra.bfloat16
    assert umbra.finfo(umbra.float32).eps == np.finfo(np.float32).eps
    assert (umbra.iinfo(umbra.int8).min, umbra.iinfo(umbra.uint64).max) == (-128, 2**64 - 1)


def test_size_and_stride():
    x = umbra.zeros(2, 3)
    assert (x.size(0), x.size(-1), x.size(dim=1), x.stride(), x.stride(0), x.dim(), x.numel()) == (2, 3, 3, (3, 1), 3, 2, 6)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        x.size(2)


# ---- indexing ----

INDICES = [0, -1, slice(None), slice(1, 3), slice(None, None, 2), None, ..., (0, 1), (..., 0), (slice(None), 1), (0, slice(1), None),
           [0, 1], ([0, 1], [1, 2]), (slice(None), [0, 2]), np.array([1, 0]), (..., [1, 0]), np.int64(1), True, False,
           (True, 0), ((0, 1),)]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_getitem_as_numpy(index):
    array = np.arange(24).reshape(2, 3, 4)
    assert umbra.from_numpy(array)[index].tolist() == array[index].tolist()


def test_an_int_is_no_advanced_index():
    x = umbra.arange(24).reshape(2, 3, 4)
    assert x[0, ..., [1, 2]].tolist() == [[1, 2], [5, 6], [9, 10]]  # NumPy would move the dimension to the front


def test_getitem_with_tensors():
    array = np.arange(24).reshape(2, 3, 4)
    x = umbra.from_numpy(array)
    mask = array % 5 > 2
    assert x[umbra.from_numpy(mask)].tolist() == array[mask].tolist()
    assert x[umbra.tensor([True, False])].tolist() == array[[True, False]].tolist()
    assert x[umbra.tensor(1)].tolist() == array[1].tolist()
    assert x[umbra.tensor([[0, 1], [1, 1]])].tolist() == array[[[0, 1], [1, 1]]].tolist()
    rows = np.ones((2, 3), dtype=bool)
    assert x[umbra.from_numpy(rows), 1:3].tolist() == array[rows, 1:3].tolist()


@pytest.mark.parametrize("index", INDICES[:17], ids=repr)
def test_setitem_as_numpy(index):
    array = np.arange(24).reshape(2, 3, 4)
    x = umbra.from_numpy(array.copy())
    array[index] = 100
    x[index] = 100
    assert x.tolist() == array.tolist()


def test_setitem_with_tensors():
    x = umbra.zeros(2, 3)
    x[0] = umbra.tensor([1., 2., 3.])
    x[:, 1] = umbra.tensor([[5.], [6.]]).reshape(2)
    x[1:] = umbra.ones(1, 1, 3)
    assert x.tolist() == [[1, 5, 3], [1, 1, 1]]
    x[x > 2] = 0
    assert x.tolist() == [[1, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("index, error, text", [
    (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"), ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
    (1.0, IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)"),
    (slice(None, None, -1), ValueError, "step must be greater than zero"), ("a", TypeError, "new(): invalid data type 'str'"),
])
def test_wrong_indices(index, error, text):
    with pytest.raises(error) as caught:
        umbra.zeros(2, 3)[index]
    assert str(caught.value) == text


def test_iteration_and_membership():
    x = umbra.tensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]] and len(x) == 2
    assert 3 in x and 5 not in x
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(umbra.tensor(1))
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(umbra.tensor(1))


# ---- numbers ----

def test_arithmetic_with_numbers_on_either_side():
    x = umbra.tensor([1., 2., 4.])
    assert (x + 1).tolist() == (1 + x).tolist() == [2, 3, 5]
    assert (5 - x).tolist() == [4, 3, 1] and (x - 1).tolist() == [0, 1, 3]
    assert (4 / x).tolist() == [4, 2, 1] and (x / 2).tolist() == [0.5, 1, 2]
    assert (2 ** x).tolist() == [2, 4, 16] and (x ** 2).tolist() == [1, 4, 16]
    assert (-x).tolist() == [-1, -2, -4] and abs(-x).tolist() == [1, 2, 4]
    assert (x > 1).tolist() == [False, True, True] and (1 < x).tolist() == [False, True, True]
    assert (x == "a") is False and (x != None) is True  # noqa: E711


def test_in_place_operators_change_the_tensor():
    x = y = umbra.ones(2)
    x += 1
    x *= 3
    assert x is y and y.tolist() == [6, 6]


def test_conversions_to_numbers():
    assert int(umbra.tensor(3.7)) == 3 and float(umbra.tensor(2)) == 2.0 and bool(umbra.tensor(0)) is False
    assert [10, 20, 30][umbra.tensor(1)] == 20 and complex(umbra.tensor(1j)) == 1j
    assert f"{umbra.tensor(1.5):.3f}" == "1.500"
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        int(umbra.ones(2))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(umbra.ones(2))
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        umbra.ones(2).item()


def test_to():
    x = umbra.ones(2)
    assert x.to(umbra.float32) is x and x.to("cpu") is x and x.float() is x
    assert x.to(umbra.float64).dtype == x.double().dtype == x.to("cpu", umbra.float64).dtype == umbra.float64
    assert x.to(umbra.ones(1, dtype=umbra.int32)).dtype == umbra.int32
    assert x.to("meta").device.type == "meta"
    assert x.type() == "torch.FloatTensor" and x.type(umbra.int64).dtype == umbra.int64
    assert x.to(dtype=umbra.float32, copy=True) is not x


def test_subclass_results_are_of_the_subclass():
    class Named(Tensor):
        pass
    x = umbra.ones(2).as_subclass(Named)
    assert type(x + 1) is Named and type(umbra.add(x, x)) is Named and type(x.sum()) is Named


def test_torch_function_sees_the_call():
    seen = []

    class Loud(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)
    x = umbra.ones(2).as_subclass(Loud)
    umbra.add(x, 1)
    x.mul(2)
    assert seen == ["add", "mul"]


def test_like_functions_keep_the_strides_of_single_elements():
    for sizes, strides in [((3, 1), (1, 3)), ((1, 3), (9, 1)), ((2, 1, 3), (3, 100, 1)), ((1, 2, 3), (0, 3, 1)), ((2, 0, 3), (9, 8, 7))]:
        x = umbra.zeros(200).as_strided(sizes, strides)
        for like in (umbra.empty_like(x), umbra.zeros_like(x), umbra.full_like(x, 2), umbra.rand_like(x), x.clone(), x.double()):
            assert like.stride() == strides
        assert umbra.empty_like(x, memory_format=umbra.contiguous_format).stride() == umbra.empty(sizes).stride()
    gaps = umbra.zeros(200).as_strided((2, 3), (1, 4))
    assert umbra.empty_like(gaps).stride() == (1, 2)


def test_arithmetic_without_elements_is_row_major():
    assert (umbra.empty(2, 0, 3) + 1).stride() == (3, 3, 1)
    assert (umbra.empty(2, 0, 3).permute(2, 1, 0) + 1).stride() == (1, 3, 0)


def test_dlpack_copies_and_gradients():
    array = np.arange(3)
    copied, shared = umbra.from_dlpack(array, copy=True), umbra.from_dlpack(array, device="cpu")
    array[0] = 9
    assert copied[0] == 0 and shared[0] == 9
    with pytest.raises(BufferError, match="Cannot pack tensors on meta"):
        umbra.from_dlpack(array, device="meta")
    weight = umbra.ones(2, requires_grad=True)
    with pytest.raises(BufferError, match="require gradient"):
        umbra.from_dlpack(weight)
    assert not umbra.utils.dlpack.from_dlpack(umbra.utils.dlpack.to_dlpack(weight)).requires_grad  # a capsule is made of anything
    with pytest.raises(BufferError, match="layout other than torch.strided"):
        umbra.eye(2).to_sparse().__dlpack__()


def test_types_of_old_programs_have_the_methods_of_tensors():
    x = umbra.FloatTensor([1, 2])
    assert umbra.FloatTensor.add(x, x).tolist() == [2, 4] and umbra.LongTensor.dtype == umbra.int64
    with pytest.raises(AttributeError):
        umbra.FloatTensor.no_such_method
