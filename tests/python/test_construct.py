"""Tensors out of Python's and NumPy's numbers, and the two libraries' values in one expression."""
import array
import decimal

import numpy
import pytest

import umbra


def test_integers_beyond_64_bits():
    for wrong in (2**63, [2**63], -2**63 - 1):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            umbra.tensor(wrong)
    assert umbra.tensor(2**63 - 1).item() == 2**63 - 1
    assert umbra.tensor(2**63, dtype=umbra.float64).item() == 2.0**63
    assert umbra.tensor(2**64, dtype=umbra.float64).item() == 2.0**64
    assert umbra.tensor([2**63, 1.5]).dtype == umbra.float32
    assert umbra.tensor(2**63, dtype=umbra.bool).item() is True
    wide = umbra.tensor(2**63, dtype=umbra.uint64)
    assert wide.item() == int(wide) == wide.__index__() == wide.tolist() == 2**63
    for wrong in (-1, 2**64):
        with pytest.raises(OverflowError):
            umbra.tensor(wrong, dtype=umbra.uint64)


@pytest.mark.parametrize("data, dtype, values", [
    ([numpy.float32(1), 2], umbra.float32, [1, 2]),
    ([numpy.float64(1), 2], umbra.float64, [1, 2]),
    ([numpy.ones(2), numpy.ones(2)], umbra.float64, [[1, 1], [1, 1]]),
    ([2, numpy.array(3)], umbra.int64, [2, 3]),
    (bytearray(b"ab"), umbra.int64, [97, 98]),
    (array.array("d", [1.5]), umbra.float32, [1.5]),
    ([[], [1]], umbra.float32, [[], []]),
    ([[1, 2], umbra.tensor([3, 4])], umbra.int64, [[1, 2], [3, 4]]),
    ([numpy.int64(1), 2.5], umbra.float32, [1, 2.5]),
    ([umbra.tensor(1), 2.0], umbra.float32, [1, 2]),
    ([umbra.ones(1), 2.0], umbra.float32, [1, 2]),
    ([[umbra.tensor(1)], [2]], umbra.int64, [[1], [2]]),
    ([range(2), range(2)], umbra.int64, [[0, 1], [0, 1]]),
])
def test_mixed_elements(data, dtype, values):
    made = umbra.tensor(data)
    assert made.dtype == dtype and made.tolist() == values


def test_tensors_of_several_elements_are_no_elements():
    with pytest.raises(ValueError, match="only one element tensors"):
        umbra.tensor([umbra.ones(2), umbra.ones(2)])


@pytest.mark.parametrize("call, expected", [
    (lambda a, n: a + n, [2, 2]), (lambda a, n: a * n, [1, 1]), (lambda a, n: a - n, [0, 0]), (lambda a, n: a / n, [1, 1]),
    (lambda a, n: a ** n, [1, 1]), (lambda a, n: a @ n, 2), (lambda a, n: numpy.add(n, a), [2, 2])])
def test_arithmetic_with_arrays(call, expected):
    result = call(umbra.ones(2), numpy.ones(2))
    assert isinstance(result, umbra.Tensor) and result.dtype == umbra.float64
    assert result.tolist() == expected


def test_comparison_with_arrays():
    a, n = umbra.ones(2), numpy.array([1.0, 2.0])
    assert (a == n).tolist() == [True, False] and (a != n).tolist() == [False, True]
    assert (n == a).tolist() == [True, False]
    assert (a + numpy.float64(1)).dtype == umbra.float32


@pytest.mark.parametrize("index, shape", [
    ([[0, 1], [1, 0]], (2, 4)), ([slice(None), 0], (2, 4)), ([0, None], (1, 3, 4)), ([], (0, 3, 4)), (range(2), (2, 3, 4)),
    ([0, 1], (2, 3, 4)), ([[0, 1]], (2, 3, 4)), ([[0, 1], 1], (2, 4)), ([..., 0], (2, 3)), ([None], (1, 2, 3, 4)),
    ([True, False], (1, 3, 4)), ((0, range(2)), (2, 4)), ([range(2)], (2, 3, 4)), ([0.5], (1, 3, 4)), (range(0), (0, 3, 4)),
    (numpy.array([0, 1]), (2, 3, 4)), (numpy.array(1), (3, 4)), ([umbra.tensor([0, 1]), 1], (2, 4))])
def test_sequences_as_indices(index, shape):
    x = umbra.arange(24).reshape(2, 3, 4)
    assert x[index].shape == shape
    x[index] = -1
    assert (x[index] == -1).all()


@pytest.mark.parametrize("index, error", [("a", TypeError), (b"a", TypeError), ({}, IndexError), (1.0, IndexError), (object(), IndexError),
                                          ([[0, 1]] * 4, IndexError), ({0}, IndexError)])
def test_what_is_no_index(index, error):
    with pytest.raises(error):
        umbra.ones(2, 3, 4)[index]


def test_arrays_of_derived_classes_are_arrays():
    class Matrix(numpy.ndarray):
        pass
    matrix = numpy.array([[1.0, 2.0]]).view(Matrix)
    for made in (umbra.from_numpy(matrix), umbra.as_tensor(matrix), umbra.asarray(matrix), umbra.tensor(matrix)):
        assert made.tolist() == [[1.0, 2.0]] and made.dtype == umbra.float64
    umbra.from_numpy(matrix)[0, 0] = 5
    assert matrix[0, 0] == 5
    with pytest.raises(TypeError, match="expected np.ndarray .got list."):
        umbra.from_numpy([1.0])


@pytest.mark.parametrize("call, text", [
    (lambda: umbra.tensor(), 'tensor() missing 1 required positional arguments: "data"'),
    (lambda: umbra.tensor(dtype=umbra.int32), 'tensor() missing 1 required positional arguments: "data"'),
    (lambda: umbra.tensor(1, 2, 3), "tensor() takes 1 positional argument but 3 were given"),
    (lambda: umbra.tensor(data=[1], foo=2), "tensor() got an unexpected keyword argument 'foo'"),
    (lambda: umbra.tensor([1], data=2), "tensor() got multiple values for argument 'data'"),
    (lambda: umbra.tensor([1.0], requires_grad=1), "tensor(): argument 'requires_grad' must be bool, not int")])
def test_arguments_that_tensor_does_not_take(call, text):
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value) == text


def test_a_range_with_its_end_is_deprecated():
    with pytest.warns(UserWarning, match="torch.range is deprecated and will be removed"):
        assert umbra.range(0, 3).tolist() == [0, 1, 2, 3]


def test_tensors_over_files(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(16)))
    private = umbra.from_file(str(path), size=8, dtype=umbra.int16)
    assert private[1] == 2 + 3 * 256
    private.zero_()
    assert path.read_bytes()[:2] == b"\x00\x01"
    shared = umbra.from_file(str(path), shared=True, size=2, dtype=umbra.int32)
    shared.fill_(7)
    assert path.read_bytes()[:8] == b"\x07\0\0\0" * 2
    assert shared.untyped_storage().filename == str(path) and shared[1:].untyped_storage().filename == str(path)
    assert private.untyped_storage().filename is None and umbra.ones(2).untyped_storage().filename is None
    assert umbra.from_file(str(tmp_path / "new"), shared=True, size=2).tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="size <16> is smaller than the required mapping size <400>"):
        umbra.from_file(str(path), size=100)
    with pytest.raises(RuntimeError, match="unable to open file .* in read-only mode: No such file or directory .2."):
        umbra.from_file(str(tmp_path / "none"), size=1)
    with pytest.raises(RuntimeError, match="cannot be pinned"):
        umbra.from_file(str(path), size=1, pin_memory=True)


def test_data_that_has_no_shape_is_refused():
    class Broken:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            raise TypeError("no items")
    with pytest.raises(ValueError, match="could not determine the shape of object type 'Broken'"):
        umbra.tensor(Broken())
    endless = [0]
    endless.append(endless)
    with pytest.raises(TypeError, match="self-referential lists are incompatible"):
        umbra.tensor(endless)


def test_old_constructors_of_a_tensor_take_no_device():
    given = umbra.tensor([1.0])
    with pytest.raises(RuntimeError, match=r"torch.Tensor\(tensor, device=device\) is not supported"):
        umbra.Tensor(given, device="cpu")
    with pytest.raises(RuntimeError, match=r"tensor.new\(tensor, device=device\) is not supported"):
        given.new(given, device="cpu")


def test_storage_is_of_the_default_type():
    assert umbra.Storage is umbra.FloatStorage
    umbra.set_default_dtype(umbra.float64)
    try:
        assert umbra.Storage is umbra.DoubleStorage
    finally:
        umbra.set_default_dtype(umbra.float32)


@pytest.mark.parametrize("data", [numpy.datetime64("2020"), numpy.timedelta64(3), numpy.array("2020", dtype="M8[s]")])
def test_times_are_refused(data):
    for make in (umbra.tensor, umbra.as_tensor, umbra.asarray):
        with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy.(datetime|timedelta)64. The only supported"):
            make(data)


def test_messages_name_the_classes_of_numpy():
    with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy.longdouble"):
        umbra.tensor(numpy.longdouble(1))
    with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy.object_"):
        umbra.from_numpy(numpy.array([None]))
    with pytest.raises(TypeError, match="expected np.ndarray .got numpy.float32."):
        umbra.from_numpy(numpy.float32(1))
    with pytest.raises(ValueError, match="At least one stride in the given numpy array is negative"):
        umbra.from_numpy(numpy.arange(3)[::-1])


def test_a_storage_is_no_number():
    storage = umbra.ones(2).untyped_storage()
    assert storage == storage and not storage == 3 and storage != None  # noqa: E711


class Index:
    def __index__(self):
        return 3

    def __rmul__(self, tensor):
        return "its own product"


@pytest.mark.parametrize("value, dtype, made", [
    (Index(), umbra.int8, 3), (Index(), umbra.float32, 3.0), (decimal.Decimal("1.5"), umbra.float32, 1.5), (2.5, umbra.int64, 2), (-1, umbra.uint8, 255),
])
def test_elements_are_read_by_the_protocol_of_their_type(value, dtype, made):
    assert umbra.tensor(value, dtype=dtype).item() == made and umbra.tensor([value], dtype=dtype).tolist() == [made]


@pytest.mark.parametrize("value, dtype, message", [
    (numpy.float32(1), umbra.int64, "'numpy.float32' object cannot be interpreted as an integer"),
    (decimal.Decimal("1.5"), umbra.bool, "'decimal.Decimal' object cannot be interpreted as an integer"),
    (None, umbra.float32, "must be real number, not NoneType"),
    (1.5, umbra.uint64, "an integer is required"),
    (umbra.tensor(1.5), umbra.int64, "only integer tensors of a single element can be converted to an index"),
    ([1, [2]], umbra.int64, "'list' object cannot be interpreted as an integer"),
])
def test_elements_without_the_protocol_are_refused(value, dtype, message):
    with pytest.raises(TypeError, match=message):
        umbra.tensor([value] if not isinstance(value, list) else value, dtype=dtype)


def test_what_only_has_an_index_is_no_operand():
    x = umbra.ones(2)
    assert x * Index() == "its own product"
    with pytest.raises(TypeError):
        x.fill_(Index())
    for value in (Index(), numpy.float32(2), numpy.bool_(True)):
        with pytest.raises(TypeError, match="can't assign a .* to a torch.FloatTensor"):
            x[0] = value
    x[0] = numpy.int8(2)
    x[1] = numpy.float64(0.5)
    assert x.tolist() == [2, 0.5] and (umbra.arange(2) + numpy.bool_(True)).dtype == umbra.float32
    with pytest.raises(RuntimeError, match="Could not infer dtype of Index"):
        umbra.tensor([Index()])


def test_asarray_of_buffers_has_their_type():
    assert umbra.asarray(b"ab").dtype == umbra.uint8 and umbra.asarray(array.array("d", [1.5])).tolist() == [1.5]
    assert umbra.asarray(array.array("d", [1.5])).dtype == umbra.float64
    assert umbra.asarray(b"\0\0\x80?", dtype=umbra.float32).tolist() == [1]


@pytest.mark.parametrize("make", [umbra.Tensor, umbra.FloatTensor, umbra.ones(1).new, lambda n: umbra.Tensor(size=(n,))])
def test_old_constructors_take_integers_of_numpy_for_sizes(make):
    assert make(numpy.int64(3)).shape == (3,)
    assert make(numpy.array(3)).shape == (3,)


def test_old_constructors_refuse_a_number_that_is_no_size():
    for number in (numpy.float32(1), numpy.bool_(True), True, 2.5, {1: 2}):
        with pytest.raises(TypeError, match="data must be a sequence"):
            umbra.Tensor(number)
    with pytest.raises(TypeError, match="data must be a sequence"):
        umbra.ones(1).new(2.5)


def test_storages_take_integers_of_numpy_for_sizes():
    assert umbra.FloatStorage(numpy.int32(3)).size() == 3 and umbra.UntypedStorage(numpy.int64(3)).size() == 3


@pytest.mark.parametrize("make", [
    lambda: umbra.as_tensor(umbra.ones(2, device="cpu")), lambda: umbra.as_tensor(numpy.ones(2)), lambda: umbra.asarray([1]),
    lambda: umbra.asarray(numpy.ones(1)), lambda: umbra.kaiser_window(3), lambda: umbra.hamming_window(3), lambda: umbra.tril_indices(2, 2),
    lambda: umbra.empty_permuted((2, 3), (0, 1)), lambda: umbra.fft.fftfreq(3), lambda: umbra.sparse_coo_tensor([[0]], [1.0], (2,))])
def test_the_default_device_is_that_of_all_factories(make):
    with umbra.device("meta"):
        assert make().device.type == "meta"
    assert make().device.type == "cpu"


def test_old_constructors_make_tensors_of_the_cpu_whatever_the_default_device_is():
    with umbra.device("meta"):
        assert {umbra.Tensor(2, 3).device.type, umbra.Tensor([1.0]).device.type, umbra.FloatTensor(2).device.type} == {"cpu"}


@pytest.mark.parametrize("name,args", [("sparse_coo_tensor", ([[0]], [1.0], (2,))), ("sparse_csr_tensor", ([0, 1], [0], [1.0], (1, 1))),
                                       ("as_tensor", ([1],)), ("asarray", ([1],)), ("unravel_index", (umbra.tensor([0, 1]), (2, 2)))])
def test_modes_hear_of_what_makes_tensors(name, args):
    class Refused(umbra.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func.__name__

    with Refused():
        assert getattr(umbra, name)(*args) == name


@pytest.mark.parametrize("make", [umbra.Tensor, umbra.FloatTensor, umbra.ones(1).new])
def test_old_constructors_take_one_thing_by_its_name(make):
    assert make(size=(2, 3)).shape == (2, 3) and make(data=[1, 2]).tolist() == [1, 2] and make(other=umbra.ones(2)).tolist() == [1, 1]
    assert make(storage=umbra.ones(2).untyped_storage()).tolist() == [1, 1] and make(2, True).shape == (2, 1)
    assert make(umbra.tensor(2), umbra.tensor(3)).shape == (2, 3)


@pytest.mark.parametrize("make", [umbra.Tensor, umbra.LongTensor, umbra.ones(1).new, type("Mine", (umbra.Tensor,), {})])
@pytest.mark.parametrize("args,kwargs,given,why", [
    (([1],), {"dtype": umbra.int8}, "(list, dtype=torch.dtype)", "keywords were incorrect: dtype"),
    (([1],), {"requires_grad": True}, "(list, requires_grad=bool)", "keywords were incorrect: requires_grad"),
    (((6, 0), 1), {}, "(tuple, int)", "arguments have invalid types: (!tuple of (int, int)!, !int!)"),
    (((6, 0), 1, 1, 0), {}, "(tuple, int, int, int)", ""),
    ((), {"size": 2}, "(size=int, )", "keywords were incorrect: size"),
    (((2,),), {"size": (3,)}, "(tuple, size=tuple)", "keywords were incorrect: size"),
    ((umbra.ones(2), 3), {}, "(Tensor, int)", "arguments have invalid types: (!Tensor!, !int!)")])
def test_old_constructors_refuse_what_has_none_of_their_forms(make, args, kwargs, given, why):
    with pytest.raises(TypeError) as refused:
        make(*args, **kwargs)
    assert str(refused.value).startswith(f"new() received an invalid combination of arguments - got {given}, but expected one of:\n * (*, torch.device")
    assert why in str(refused.value)


def test_old_constructors_say_which_size_is_none():
    with pytest.raises(TypeError, match=r"new\(\): argument 'size' failed to unpack the object at pos 2 with error .type must be tuple of ints,but got float"):
        umbra.Tensor(2, 2.5)
