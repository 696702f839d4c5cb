"""Nested tensors: parts of different lengths, what is done with all of them at once, gradients, and refusals."""
import copy
import io
import pickle

import pytest

import umbra as torch
from umbra.nn import functional as F

A = torch.arange(6.0).reshape(2, 3)
B = torch.arange(9.0).reshape(3, 3) + 10


def jagged(**options):
    return torch.nested.nested_tensor([A, B], layout=torch.jagged, **options)


def strided():
    return torch.nested.nested_tensor([A, B])


def same(nested, parts):
    assert nested.is_nested and len(nested.unbind()) == len(parts)
    for have, expected in zip(nested.unbind(), parts):
        torch.testing.assert_close(have, expected)


def test_a_jagged_tensor_has_one_ragged_dimension():
    x = jagged()
    assert x.layout == torch.jagged and x.dim() == 3 and x.numel() == 15 and x.is_contiguous() and isinstance(x, torch.Tensor)
    assert x.size(0) == 2 and x.size(2) == 3 and x.size(1) == (x + 1).size(1) and x.size(1) != jagged().size(1)
    assert torch.equal(x.values(), torch.cat([A, B])) and x.offsets().tolist() == [0, 2, 5] and x.lengths() is None
    same(x, [A, B])
    assert torch.equal(x[1], B) and torch.equal(x[0, 1], A[1])


@pytest.mark.parametrize("make", [jagged, strided])
def test_operators_of_each_element(make):
    x = make()
    same(x + x, [A + A, B + B])
    same((x * 2).relu() - x, [A, B])
    same(F.gelu(x), [F.gelu(A), F.gelu(B)])
    same(x.double(), [A.double(), B.double()])
    x.add_(1)
    same(x, [A + 1, B + 1])


def test_a_strided_tensor_beside_a_jagged_one():
    x = jagged()
    same(x + torch.arange(3.0), [A + torch.arange(3.0), B + torch.arange(3.0)])
    same(x * torch.tensor([2.0, 5.0]).reshape(2, 1, 1), [A * 2, B * 5])
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function"):
        x + torch.ones(5, 3)
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function"):
        x + jagged()
    same(x + torch.nested.nested_tensor_from_jagged(torch.ones(5, 3), x.offsets()), [A + 1, B + 1])


@pytest.mark.parametrize("make", [jagged, strided])
def test_layers_take_the_last_dimension(make):
    x, linear, norm = make(), torch.nn.Linear(3, 2), torch.nn.LayerNorm(3)
    same(linear(x), [linear(A), linear(B)])
    same(norm(x), [norm(A), norm(B)])
    same(F.softmax(x, -1), [A.softmax(-1), B.softmax(-1)])
    same(x @ torch.ones(3, 2), [A @ torch.ones(3, 2), B @ torch.ones(3, 2)])


def test_reductions():
    x = jagged()
    assert x.sum().item() == 141 and abs(x.mean().item() - 9.4) < 1e-5
    same(x.sum(-1), [A.sum(-1), B.sum(-1)])
    same(x.amax(2, keepdim=True), [A.amax(-1, True), B.amax(-1, True)])
    assert torch.equal(x.sum(1), torch.stack([A.sum(0), B.sum(0)])) and torch.equal(x.mean(1), torch.stack([A.mean(0), B.mean(0)]))
    assert torch.equal(x.sum((0, 1)), A.sum(0) + B.sum(0))
    with pytest.raises(RuntimeError, match="reducing along the batch dimension but not the ragged"):
        x.sum(0)
    same(x.softmax(1), [A.softmax(0), B.softmax(0)])


def test_padding():
    expected = torch.stack([F.pad(A, (0, 0, 0, 1), value=-1.0), B])
    for x in (jagged(), strided()):
        assert torch.equal(x.to_padded_tensor(-1.0), expected) and torch.equal(torch.nested.to_padded_tensor(x, -1.0), expected)
    assert jagged().to_padded_tensor(0.0, output_size=(2, 4, 3)).shape == (2, 4, 3)
    assert torch.equal(jagged().to_padded_tensor(0.0, output_size=(2, 2, 3)), torch.stack([A, B[:2]]))
    with pytest.raises(RuntimeError, match="Truncation is not supported"):
        strided().to_padded_tensor(0.0, (2, 2, 3))


def test_gradients():
    x = jagged(requires_grad=True)
    (x * x).sum().backward()
    same(x.grad, [2 * A, 2 * B])
    for layout in (torch.jagged, torch.strided):
        a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
        y = torch.nested.as_nested_tensor([a, b], layout=layout)
        (y * y).to_padded_tensor(0.0).sum().backward()
        assert torch.equal(a.grad, 2 * A) and torch.equal(b.grad, 2 * B)


def test_attention_is_that_of_the_parts():
    parts = [torch.randn(2, 2, 4), torch.randn(3, 2, 4)]
    query = torch.nested.nested_tensor(parts, layout=torch.jagged).transpose(1, 2)
    for causal in (False, True):
        expected = [F.scaled_dot_product_attention(*[p.transpose(0, 1).unsqueeze(0)] * 3, is_causal=causal).squeeze(0) for p in parts]
        same(F.scaled_dot_product_attention(query, query, query, is_causal=causal), expected)


def test_shapes():
    x = jagged()
    same(x.transpose(1, 2), [A.t(), B.t()])
    same(x.unsqueeze(-1), [A.unsqueeze(-1), B.unsqueeze(-1)])
    same(x.unflatten(-1, [3, 1]).flatten(2, 3), [A, B])
    same(x.view(2, -1, 3, 1), [A.unsqueeze(-1), B.unsqueeze(-1)])
    same(torch.cat([x, x], -1), [torch.cat([A, A], -1), torch.cat([B, B], -1)])
    same(x.chunk(3, -1)[1], [A[:, 1:2], B[:, 1:2]])
    same(copy.deepcopy(x), [A, B])


def test_other_ways_to_make_one():
    values = torch.arange(15.0).reshape(5, 3)
    same(torch.nested.nested_tensor_from_jagged(values, lengths=torch.tensor([2, 3])), [values[:2], values[2:]])
    whole = torch.arange(24.0).reshape(2, 4, 3)
    cut = torch.nested.narrow(whole, 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=torch.jagged)
    same(cut, [whole[0, :2], whole[1, 1:]])
    assert cut.sum().item() == whole[0, :2].sum().item() + whole[1, 1:].sum().item()
    same(torch.nested.masked_select(A, A > 1), [torch.tensor([2.0]), torch.tensor([3.0, 4.0, 5.0])])
    same(torch.nested.nested_tensor([[1, 2], [3]], layout=torch.jagged), [torch.tensor([1, 2]), torch.tensor([3])])


def test_it_prints_as_pytorch_does():
    assert repr(strided()) == """nested_tensor([
  tensor([[0., 1., 2.],
          [3., 4., 5.]]),
  tensor([[10., 11., 12.],
          [13., 14., 15.],
          [16., 17., 18.]])
])"""
    text = repr(jagged())
    assert text.startswith("NestedTensor(size=(2, j") and text.endswith(", 3), offsets=tensor([0, 2, 5]), contiguous=True)")


@pytest.mark.parametrize("call, error, text", [
    (lambda: jagged().cumsum(1), NotImplementedError, "cumsum"),
    (lambda: jagged().flatten(1, 2), RuntimeError, "ragged dim"),
    (lambda: F.layer_norm(jagged(), (2, 3)), RuntimeError, "ragged dim"),
    (lambda: torch.nested.nested_tensor(torch.ones(2, 3)), TypeError, "Only lists"),
    (lambda: torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(2)]), RuntimeError, "must have the same dim"),
    (lambda: torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 4)], layout=torch.jagged), RuntimeError, "ragged dim"),
    (lambda: torch.nested.nested_tensor_from_jagged(torch.ones(5, 3)), RuntimeError, "At least one of offsets or lengths"),
    (lambda: strided().size(1), RuntimeError, "is irregular and does not have a size"),
    (lambda: jagged().tolist(), RuntimeError, "not supported for tensor subclasses"),
])
def test_what_is_not_built_or_does_not_fit_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("make", [jagged, strided])
def test_captures_refuse_them(make):
    from umbra.fx.experimental.proxy_tensor import make_fx
    with pytest.raises(NotImplementedError):
        make_fx(lambda x: x * 2, tracing_mode="fake")(make())
    with pytest.raises(NotImplementedError):
        torch.export.export(torch.nn.Linear(3, 2), (make(),))


def test_fake_ones_are_made_of_fake_tensors():
    from umbra._subclasses.fake_tensor import FakeTensorMode, is_fake, maybe_get_fake_mode
    from umbra.fx.experimental.symbolic_shapes import ShapeEnv
    real = jagged()
    for mode in (FakeTensorMode(), FakeTensorMode(shape_env=ShapeEnv())):
        fake = mode.from_tensor(real)
        assert fake.is_nested and fake.layout is torch.jagged and fake.dim() == 3 and is_fake(fake) and maybe_get_fake_mode(fake) is mode
        assert mode.from_tensor(real).values() is fake.values() and not is_fake(real)
    with mode:
        assert [str(t.shape[0]) for t in fake.unbind()] == ["-u0 + u1", "-u1 + u2"]
        doubled = F.linear(fake * 2, torch.ones(5, 3))
        assert is_fake(doubled) and doubled.values().shape[1] == 5 and doubled.size(1) == fake.size(1)


# ---- shapes, parts and files, of both layouts ----

PARTS = [torch.arange(6.0).reshape(2, 3) + 1, torch.arange(9.0).reshape(3, 3) - 2]
OF_PARTS = {
    "select": (lambda x: x.select(-1, 0), lambda t: t.select(-1, 0)), "last index": (lambda x: x[..., 1], lambda t: t[..., 1]),
    "narrow": (lambda x: x.narrow(-1, 1, 2), lambda t: t.narrow(-1, 1, 2)), "permute": (lambda x: x.permute(0, 2, 1), lambda t: t.permute(1, 0)),
    "mT": (lambda x: x.mT, lambda t: t.mT), "squeeze": (lambda x: x.unsqueeze(-1).squeeze(-1), lambda t: t),
    "split": (lambda x: torch.split_with_sizes(x, [1, 2], -1)[1], lambda t: t[:, 1:]), "chunk": (lambda x: x.chunk(3, -1)[2], lambda t: t[:, 2:]),
    "cat": (lambda x: torch.cat([x, x], -1), lambda t: torch.cat([t, t], -1)), "view": (lambda x: x.view(2, -1, 3, 1), lambda t: t.unsqueeze(-1)),
    "argmax": (lambda x: x.argmax(-1), lambda t: t.argmax(-1)), "isposinf": (torch.isposinf, torch.isposinf),
}


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.parametrize("name", OF_PARTS)
def test_functions_give_what_they_give_of_the_parts(name, layout):
    whole, part = OF_PARTS[name]
    result = whole(torch.nested.nested_tensor(PARTS, layout=layout))
    assert result.is_nested and result.layout == layout
    same(result, [part(t) for t in PARTS])


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_in_files_and_copies(layout):
    x = torch.nested.nested_tensor(PARTS, layout=layout)
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    for copied in (torch.load(file)["x"], copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert type(copied) is type(x)
        same(copied, PARTS)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_parts_are_written_through(layout):
    x, y = (torch.nested.nested_tensor(PARTS, layout=layout) for _ in range(2))
    x[0] = 7.0
    same(x, [torch.full((2, 3), 7.0), PARTS[1]])
    same(x.copy_(y * 2), [2 * t for t in PARTS])


def test_masked_select_has_a_part_for_each_row_of_the_last_dimension():
    x, mask = torch.arange(12.0).reshape(2, 2, 3), torch.tensor([[True, False, True], [True, True, True]]).unsqueeze(1)
    assert [t.tolist() for t in torch.nested.masked_select(x, mask).unbind()] == [[0, 2], [3, 5], [6, 7, 8], [9, 10, 11]]


def test_lengths_of_jagged_parts_can_be_asked():
    x = torch.nested.nested_tensor(PARTS, layout=torch.jagged)
    assert (x._ragged_idx, x._get_max_seqlen(), x._get_min_seqlen(), x.transpose(1, 2)._ragged_idx) == (1, 3, 2, 2)


def test_strided_nested_tensors_show_that_they_are_differentiated():
    x = torch.nested.nested_tensor([torch.ones(1)], requires_grad=True)
    assert repr(x) == "nested_tensor([\n  tensor([1.], requires_grad=True)\n], requires_grad=True)"
    assert repr(x * 2) == "nested_tensor([\n  tensor([2.], requires_grad=True)\n], grad_fn=<MulBackward0>)"


def test_offsets_of_ranges_end_where_the_last_range_does():
    x = torch.nested.narrow(torch.arange(12.0).view(3, 4), 1, torch.tensor([0, 1, 0]), torch.tensor([2, 3, 1]), layout=torch.jagged)
    assert x.offsets().tolist() == [0, 5, 8, 9] and [t.tolist() for t in x.unbind()] == [[0, 1], [5, 6, 7], [8]]


def test_a_nested_and_a_plain_tensor_are_not_compared_in_size():
    nested = torch.nested.nested_tensor([A, B])
    with pytest.raises(RuntimeError, match="Expected both self and other to be nested tensors. Self is nested. While Other is not nested."):
        nested.is_same_size(A)
    with pytest.raises(RuntimeError, match="Self is not nested. While Other is nested."):
        A.is_same_size(nested)
