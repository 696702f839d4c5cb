"""torch.testing: messages say what differs most and where; tensors to test with are PyTorch's."""
import numpy
import pytest

import umbra as torch
from umbra.testing import assert_close, make_tensor


def message(actual, expected, **options):
    with pytest.raises(AssertionError) as raised:
        assert_close(actual, expected, **options)
    return str(raised.value)


def test_the_greatest_differences_are_told():
    assert message(torch.tensor([[1.0, 2], [3, 4]]), torch.tensor([[1.0, 2.5], [3, 5]])) == (
        "Tensor-likes are not close!\n\nMismatched elements: 2 / 4 (50.0%)\n"
        "Greatest absolute difference: 1.0 at index (1, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.20000000298023224 at index (0, 1) (up to 1.3e-06 allowed)")
    assert message(torch.tensor([1, 2]), torch.tensor([1, 3])) == (
        "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 1 at index (1,)\n"
        "Greatest relative difference: 0.3333333432674408 at index (1,)")


@pytest.mark.parametrize("actual, expected, text", [
    (1, 2, "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"),
    (1, 1.0, "The (d)types do not match: <class 'int'> != <class 'float'>."),
    (True, False, "Booleans mismatch: True is not False"),
    (None, 1, "None mismatch: None is not 1"),
    ([1], [1, 2], "The length of the sequences mismatch: 1 != 2"),
    ({"a": 1}, {"b": 1}, "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\nAdditional keys in the actual mapping: ['a']"),
    ([1, {"x": 2}], [1, {"x": 3}], "Scalars are not equal!\n\nExpected 3 but got 2.\nAbsolute difference: 1\nRelative difference: 0.3333333333333333\n\n"
                                   "The failure occurred for item [1]['x']"),
])
def test_other_differences(actual, expected, text):
    assert message(actual, expected) == text


def test_messages_of_ones_own():
    assert message(1, 2, msg="no") == "no"
    assert message(1, 2, msg=lambda text: text.split("!")[0]) == "Scalars are not equal"


@pytest.mark.parametrize("actual, expected", [("a", "a"), (numpy.ones(1), torch.ones(1)), (1.0, torch.tensor(1.0)), ([1], "a")])
def test_what_cannot_be_compared_is_named(actual, expected):
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close(actual, expected)


def test_tolerances_come_in_pairs():
    with pytest.raises(ValueError, match="must be either specified or omitted, but got no atol"):
        assert_close(1.0, 1.0, rtol=0.1)


def test_numbers_to_test_with():
    torch.manual_seed(0)
    assert make_tensor(2, 3, dtype=torch.int64, device="cpu", noncontiguous=True).tolist() == [[-5, -9, -2], [0, -5, -8]]
    torch.manual_seed(0)
    x = make_tensor((2, 3), dtype=torch.bfloat16, device="cpu", noncontiguous=True)
    assert x.tolist() == [[4.8125, -6.625, 2.40625], [7.125, 2.375, -1.765625]] and x.stride() == (6, 2)
    with pytest.raises(ValueError, match="`low` must be less than `high`, but got 3 >= 1"):
        make_tensor(2, dtype=torch.float32, device="cpu", low=3, high=1)


TEXT = "x = foo(1)\n    ~~~ <--- HERE\nfoo bar\nfoo\n"


def test_pieces_of_a_text_in_their_order():
    FileCheck = torch.testing.FileCheck
    FileCheck().check("foo").check_next("HERE").check_same("\n").check("bar").check_not("x =").run(TEXT)
    FileCheck().check_count("foo", 3, exactly=True).run(TEXT)
    FileCheck().check_source_highlighted("foo").check_regex("fo+ bar").run(TEXT)
    FileCheck().run("# CHECK: foo\n# CHECK-COUNT-EXACTLY-2: foo\n", TEXT)


@pytest.mark.parametrize("add, text", [
    (lambda c: c.check("bar").check("x ="), 'Expected to find "x =" but did not find it'),
    (lambda c: c.check("x =").check_not("foo").check("bar"), 'Expected to not find "foo" but found it\nx = foo(1)\n    ~~~ <--- HERE'),
    (lambda c: c.check("foo").check_next("bar"), 'Expected to not find "\\n" but found it'),
    (lambda c: c.check("foo").check_same("bar"), 'Expected to not find "\\n" but found it'),
    (lambda c: c.check_count("foo", 4), 'Expected to find "foo" but did not find it'),
    (lambda c: c.check_count("foo", 2, exactly=True), 'Expected to not find "foo" but found it'),
    (lambda c: c.check_source_highlighted("bar"), 'Expected to find "bar"highlighted but it is not.'),
    (lambda c: c, "No checks have been added to this instance ofFilecheck!")])
def test_what_a_text_does_not_have(add, text):
    with pytest.raises(RuntimeError) as error:
        add(torch.testing.FileCheck()).run(TEXT)
    assert str(error.value).startswith(text)


@pytest.mark.parametrize("dtype,low,high,supported", [
    (torch.uint8, 10 ** 6, 10 ** 7, "[0, 256)"), (torch.int8, -1000, -200, "[-128, 128)"), (torch.bool, 2, 3, "[0, 2)"),
    (torch.float16, 10 ** 6, 10 ** 7, "[-65504.0, 65504.0)")])
def test_ranges_that_a_type_does_not_have(dtype, low, high, supported):
    with pytest.raises(ValueError) as error:
        make_tensor(3, dtype=dtype, device="cpu", low=low, high=high)
    assert str(error.value).endswith(f"[{low}, {high}), but {dtype} only supports {supported}")


def test_the_largest_number_of_a_type_can_be_drawn():
    assert make_tensor(3, dtype=torch.int8, device="cpu", low=127, high=1000).tolist() == [127, 127, 127]
    assert make_tensor(3, dtype=torch.uint8, device="cpu", low=255, high=256).tolist() == [255, 255, 255]


def _diagonal(*values):
    return torch.diag(torch.tensor(values))


_FLIPPED = torch.tensor([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize("actual,expected,text", [
    (torch.ones(2, 2).to_sparse(), _diagonal(1.0, 1.0).to_sparse(), "number of specified values in sparse COO tensors does not match: 4 != 2"),
    (torch.sparse_coo_tensor([[0]], torch.ones(1, 2), (2, 2)), _diagonal(1.0, 1.0).to_sparse(), "number of sparse dimensions .* 1 != 2"),
    (_FLIPPED.to_sparse(), _diagonal(1.0, 1.0).to_sparse(), "Sparse COO indices are not equal!"),
    (_diagonal(1.0, 2.0).to_sparse(), _diagonal(1.0, 1.0).to_sparse(), "Sparse COO values are not close!"),
    (_FLIPPED.to_sparse_csr(), _diagonal(1.0, 1.0).to_sparse_csr(), "Sparse CSR col_indices are not equal!"),
    (_FLIPPED.to_sparse_csc(), _diagonal(1.0, 1.0).to_sparse_csc(), "Sparse CSC row_indices are not equal!"),
    (_diagonal(1.0, 2.0).to_sparse_bsr((1, 1)), _diagonal(1.0, 1.0).to_sparse_bsr((1, 1)), "Sparse BSR values are not close!")])
def test_sparse_tensors_differ_in_their_parts(actual, expected, text):
    assert_close(actual, actual.clone())
    with pytest.raises(AssertionError, match=text):
        assert_close(actual, expected)


def test_an_explicit_zero_is_a_difference_between_sparse_tensors():
    actual, expected = torch.sparse_coo_tensor([[0, 1]], [1.0, 0.0], (2,)), torch.sparse_coo_tensor([[0]], [1.0], (2,))
    with pytest.raises(AssertionError, match="2 != 1"):
        assert_close(actual, expected)
    assert_close(actual, expected.to_dense(), check_layout=False)
