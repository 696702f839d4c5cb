"""How functions read their arguments: numbers, lists, options, and the orders and forms that calls may have."""
import copy
import pickle
import warnings

import pytest
import umbra


def test_a_tensor_that_requires_a_gradient_is_no_number():
    x, number = umbra.ones(2), umbra.tensor(2.0, requires_grad=True)
    for call in (lambda: umbra.add(x, x, alpha=number), lambda: umbra.full((2,), number), lambda: x.uniform_(0, number), lambda: umbra.arange(number)):
        with pytest.raises(TypeError, match="must be (Number|float), not Tensor"):
            call()
    with pytest.raises(RuntimeError, match="Expected a value of type 'number' for argument 'alpha'"):
        umbra.ops.aten.add.Tensor(x, x, alpha=number)
    assert umbra.add(x, x, alpha=number.detach()).tolist() == [3, 3]
    assert (x * number).requires_grad


def test_factors_may_stand_before_tensors():
    x, y, matrix = umbra.ones(2), umbra.tensor([1.0, 2.0]), umbra.eye(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert umbra.add(x, 2, y).tolist() == [3, 5]
        assert x.clone().add_(2, y).tolist() == [3, 5]
        assert umbra.sub(x, 2, y, out=umbra.empty(2)).tolist() == [-1, -3]
        assert umbra.addcmul(x, 2, y, y).tolist() == [3, 9]
        assert x.clone().addcdiv_(-2, y, y).tolist() == [-1, -1]
        assert umbra.addmm(2, matrix, 3, matrix, matrix).tolist() == [[5, 0], [0, 5]]
        assert umbra.addmm(2, matrix, matrix, matrix).tolist() == [[3, 0], [0, 3]]
        assert matrix.addmm(2, 3, matrix, matrix).tolist() == [[5, 0], [0, 5]]
        assert umbra.addmv(2, x, matrix, y).tolist() == [3, 4]
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        umbra.add(x, "2", y)


def test_none_stands_for_a_list_that_is_empty_by_default():
    x = umbra.arange(4.0)
    assert umbra.roll(x, 1, None).tolist() == [3, 0, 1, 2]
    assert x.amax(None).item() == 3
    assert umbra.nn.functional.avg_pool2d(umbra.ones(1, 4, 4), 2, None).shape == (1, 2, 2)
    with pytest.raises(TypeError, match="must be tuple of ints, not NoneType"):
        x.permute(None)


def test_options_of_a_factory_are_compared_with_its_out():
    out = umbra.empty(3)
    assert umbra.linspace(0, 1, 3, dtype=umbra.float32, device="cpu", out=out) is out
    assert umbra.arange(3, dtype=umbra.float32, out=out).tolist() == [0, 1, 2]
    assert umbra.zeros(3, out=out, requires_grad=False).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match=r"dtype Double does not match dtype of out parameter \(Float\)"):
        umbra.zeros(3, dtype=umbra.float64, out=out)
    with pytest.raises(RuntimeError, match=r"device type meta does not match device type of out parameter \(cpu\)"):
        umbra.ones(3, device="meta", out=out)


def test_messages_name_the_argument_where_only_one_signature_has_so_many():
    x = umbra.ones(2)
    for call, message in (
        (lambda: x.cumsum((0, 1)), r"cumsum\(\): argument 'dim' \(position 1\) must be int, not tuple"),
        (lambda: umbra.arange([1]), r"arange\(\): argument 'end' \(position 1\) must be Number, not list"),
        (lambda: umbra.zeros([1.5]), r"must be tuple of ints, but found element of type float at pos 0"),
        (lambda: umbra.zeros((2, "a")), r"failed to unpack the object at pos 2 with error \"type must be tuple of ints,but got str\""),
        (lambda: umbra.cat((1, 2)), r"expected Tensor as element 0 in argument 0, but got int"),
        (lambda: x.prod((0, 0)), r"prod\(\) received an invalid combination of arguments - got \(tuple\), but expected one of"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_sequences_of_any_class_become_tensors():
    class Squares:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            if i >= 3:
                raise IndexError
            return i * i

    assert umbra.tensor(Squares()).tolist() == [0, 1, 4]
    assert umbra.tensor([Squares(), [1, 2, 3]]).shape == (2, 3)
    storage = umbra.tensor([1.5, 2.5]).storage()
    assert umbra.tensor(storage).tolist() == umbra.tensor(storage.untyped(), dtype=umbra.float32).tolist() == [1.5, 2.5]
    with pytest.raises(RuntimeError, match="Expected a Storage of type Float or an UntypedStorage, but got type Int"):
        umbra.tensor(umbra.tensor([1, 2], dtype=umbra.int32).storage())
    itself = []
    itself.append(itself)
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        umbra.tensor(itself)


def test_strides_of_new_memory_are_checked():
    for make in (umbra.empty_strided, umbra.ones(1).new_empty_strided):
        with pytest.raises(RuntimeError, match=r"dimensionality of sizes \(1\) must match dimensionality of strides \(0\)"):
            make([2], [])
        with pytest.raises(RuntimeError, match=r"Storage size calculation overflowed with sizes=\[2, 2\] and strides=\[1, -1\]"):
            make([2, 2], [1, -1])


def test_the_type_of_a_result_follows_the_tensor_that_has_dimensions():
    half, single = umbra.ones(1, dtype=umbra.float16), umbra.ones(1)
    assert umbra.result_type(half, 1j) == umbra.complex32
    assert umbra.result_type(half, umbra.tensor(1j, dtype=umbra.complex128)) == umbra.complex32
    assert umbra.result_type(single, umbra.tensor(1j, dtype=umbra.complex128)) == umbra.complex64
    assert umbra.result_type(1, 1.0) == umbra.float32


def test_a_single_number_can_be_flipped_and_dims_of_a_turn_are_checked():
    assert umbra.tensor(3.0).flip(0).item() == 3
    with pytest.raises(IndexError, match="Dimension out of range"):
        umbra.rot90(umbra.ones(2, 2), 1, [0, 2])
    with pytest.raises(RuntimeError, match="expected rotation dims to be different"):
        umbra.rot90(umbra.ones(2, 2), 1, [0, -2])


def test_only_numbers_with_fractions_require_gradients():
    for make in (lambda: umbra.ones(1, dtype=umbra.int32, requires_grad=True), lambda: umbra.tensor([1], requires_grad=True)):
        with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
            make()


def test_buffers_and_capsules():
    memory = bytearray(8)
    x = umbra.frombuffer(memory, dtype=umbra.float32, requires_grad=True)
    assert x.requires_grad and x.tolist() == [0, 0]
    with pytest.raises(ValueError, match="does not implement Python buffer protocol"):
        umbra.frombuffer([1, 2], dtype=umbra.uint8)
    y = umbra.ones(2)
    alias = umbra.asarray(y.__dlpack__())
    y[0] = 5
    assert alias.tolist() == [5, 1]
    with pytest.raises(ValueError, match="can't alias tensor with dtype 'Float' into dtype 'Double'"):
        umbra.asarray(y, dtype=umbra.float64, copy=False)


def test_functions_over_elements_do_not_lose_gradients():
    x = umbra.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Can't call map_\(\) on Variable that requires grad"):
        x.map_(umbra.ones(2), lambda a, b: a + b)


def test_bounds_of_uniform_numbers_are_numbers_of_the_type():
    with pytest.raises(RuntimeError, match="from is out of bounds for c10::Half"):
        umbra.empty(2, dtype=umbra.float16).uniform_(-70000, 1)
    with pytest.raises(RuntimeError, match="to is out of bounds for float"):
        umbra.empty(2).uniform_(0, float("inf"))
    with pytest.raises(RuntimeError, match="exceed the limit"):
        umbra.empty(2).uniform_(-3e38, 3e38)


def test_nothing_but_empty_rows_can_be_joined_along_any_dimension():
    empty = umbra.empty(0)
    assert umbra.cat([empty, empty], 1).shape == (0,)
    assert umbra.cat([empty, umbra.ones(2, 3)], 1).shape == (2, 3)


def test_an_element_may_fill_what_it_is_part_of():
    x = umbra.arange(6.0).view(2, 3)
    x[0] = x[0][1]
    assert x.tolist() == [[1, 1, 1], [3, 4, 5]]
    x.masked_fill_(x > 3, x[0, 0])
    assert x.tolist() == [[1, 1, 1], [3, 1, 1]]
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[0].copy_(x[0][1])


def test_copies_of_tensors_and_their_storages_share_memory():
    x = umbra.arange(4.0)
    for several in ([x, x.storage(), x.untyped_storage()], [x.untyped_storage(), x.storage(), x]):
        copied = copy.deepcopy(several)
        tensor = next(part for part in copied if isinstance(part, umbra.Tensor))
        tensor[0] = 9
        storages = [part for part in copied if part is not tensor]
        assert all(part.data_ptr() == tensor.data_ptr() for part in storages) and x[0] == 0


def test_a_size_may_be_a_tensor_of_one_element_but_a_dimension_has_none():
    two, x = umbra.tensor([2]), umbra.arange(4.0)
    assert umbra.topk(x, two).values.tolist() == [3, 2] and x.reshape(two, -1).shape == (2, 2) and umbra.zeros(two, 3).shape == (2, 3)
    assert umbra.zeros([two, 3]).shape == (2, 3) and x[:two].tolist() == [0, 1] and umbra.randint(0, two, size=(5,)).max() <= 1
    assert x.sum([umbra.tensor([0])]).item() == 6
    for refused in (lambda: umbra.chunk(x, two), lambda: x.unsqueeze(umbra.tensor([0])), lambda: umbra.topk(x, umbra.tensor([1, 2])),
                    lambda: umbra.topk(x, umbra.tensor([2.0]))):
        with pytest.raises(TypeError, match="must be int, not Tensor"):
            refused()


@pytest.mark.parametrize("function", [umbra.tanh, umbra.Tensor.tanh, umbra.nn.functional.gelu, umbra.special.expit, umbra.linalg.inv])
def test_a_copied_or_pickled_function_is_the_function(function):
    assert copy.copy(function) is function and copy.deepcopy(function) is function and pickle.loads(pickle.dumps(function)) is function
    assert umbra.conv2d is umbra.nn.functional.conv2d


def test_old_tensor_types_have_no_subclasses():
    with pytest.raises(TypeError, match="type 'torch.FloatTensor' is not an acceptable base type"):
        type("Own", (umbra.FloatTensor,), {})


@pytest.mark.parametrize("call, lines", [
    (lambda x: x.view("a"), [" * (torch.dtype dtype)", "      didn't match because some of the arguments have invalid types: (!str!)",
                             " * (tuple of ints size)", "      didn't match because some of the arguments have invalid types: (!str!)"]),
    (lambda x: umbra.squeeze(x, out=x), [" * (Tensor input)", " * (Tensor input, int dim)", "      didn't match because some of the keywords were incorrect: out",
                                         " * (Tensor input, tuple of ints dim)", "      didn't match because some of the keywords were incorrect: out"]),
    (lambda x: umbra.max(x, "a"), [" * (Tensor input, *, Tensor out = None)", " * (Tensor input, Tensor other, *, Tensor out = None)",
                                   " * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)"]),
])
def test_messages_show_signatures_and_what_does_not_fit(call, lines):
    with pytest.raises(TypeError) as caught:
        call(umbra.ones(2))
    assert str(caught.value).splitlines()[1:] == lines


def test_messages_of_single_signatures():
    x = umbra.ones(2)
    options = "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False)"
    for call, text in ((lambda: x.sub(), "sub() received an invalid combination of arguments - got (), but expected (Tensor other, *, Number alpha = 1)"),
                       (lambda: umbra.rand("a"), "rand(): argument 'size' (position 1) must be tuple of ints, not str"),
                       (lambda: umbra.renorm(x, 1), 'renorm() missing 2 required positional argument: "dim", "maxnorm"'),
                       (lambda: umbra.arange(), f" * (Number end, *, Tensor out = None, {options}\n")):
        with pytest.raises(TypeError) as caught:
            call()
        assert text in str(caught.value)


def test_two_ints_are_dimensions_only_where_there_is_nothing_else_to_give():
    x = umbra.ones(2, 3, 1)
    assert x.flip(0, 1).shape == x.shape and x.permute(2, 0, 1).shape == (1, 2, 3) and x.squeeze(0, 2).shape == (2, 3)
    for call in (lambda: x.std(0, 1), lambda: x.var(1, 0), lambda: umbra.std(x, 0, 1)):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            call()


def test_messages_of_too_many_arguments():
    x = umbra.ones(2)
    for call, text in ((lambda: x.abs(1), r"TensorBase.abs\(\) takes no arguments \(1 given\)"), (lambda: x.diag(1, 0), r"diag\(\) takes from 0 to 1 positional arguments but 2 were given"),
                       (lambda: x.float(1), r"^float\(\) takes 0 positional arguments but 1 was given"), (lambda: x.mul(1, 2), r"mul\(\) takes 1 positional argument but 2 were given")):
        with pytest.raises(TypeError, match=text):
            call()
