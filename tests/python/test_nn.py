"""Modules and optimisers."""
import copy
import inspect
import math
import subprocess
import sys

import pytest

import umbra
from umbra import nn


def test_registration_and_state():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    other = copy.deepcopy(net)
    with umbra.no_grad():
        for p in other.parameters():
            p.add_(1)
    assert str(other.load_state_dict(net.state_dict())) == "<All keys matched successfully>"
    assert umbra.equal(other[0].weight, net[0].weight)
    with pytest.raises(RuntimeError, match="Missing key"):
        net.load_state_dict({})
    with pytest.raises(TypeError, match="cannot assign"):
        net[0].weight = 3


def test_text():
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
    assert repr(net).splitlines()[1] == "  (0): Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))"
    assert "ReLU(inplace=True)" in repr(net)


def test_hooks():
    seen = []
    layer = nn.Linear(2, 2)
    layer.register_forward_pre_hook(lambda module, args: seen.append("before"))
    handle = layer.register_forward_hook(lambda module, args, output: output * 0)
    assert layer(umbra.ones(1, 2)).abs().sum().item() == 0 and seen == ["before"]
    handle.remove()
    assert layer(umbra.ones(1, 2)).abs().sum().item() != 0


@pytest.mark.parametrize("make", [lambda p: umbra.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: umbra.optim.AdamW(p, lr=0.05),
                                  lambda p: umbra.optim.Adam(p, lr=0.05)])
def test_training_lowers_the_loss(make):
    umbra.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = make(net.parameters())
    x = umbra.randn(32, 3)
    target = x.sum(1, keepdim=True)
    losses = []
    for _ in range(30):
        loss = nn.functional.mse_loss(net(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_batch_norm_keeps_running_statistics():
    norm = nn.BatchNorm2d(3)
    norm(umbra.randn(4, 3, 2, 2) + 5)
    assert norm.num_batches_tracked.item() == 1 and norm.running_mean.mean().item() > 0.3
    norm.eval()
    norm(umbra.randn(4, 3, 2, 2))
    assert norm.num_batches_tracked.item() == 1


def test_attention_layer():
    umbra.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    assert layer(umbra.randn(2, 5, 8)).shape == (2, 5, 8)


def test_attention_needs_the_mask_it_is_told_about():
    attention = umbra.nn.MultiheadAttention(4, 2)
    x = umbra.randn(3, 1, 4)
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        attention(x, x, x, is_causal=True)
    mask = umbra.full((3, 3), float("-inf")).triu(1)
    hinted = attention(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]
    plain = attention(x, x, x, attn_mask=mask)[0]
    assert umbra.allclose(hinted, plain, atol=1e-6)


def test_sums_of_normalisations_do_not_depend_on_which_thread_is_first():
    threads = umbra.get_num_threads()
    umbra.set_num_threads(4)
    try:
        umbra.manual_seed(0)
        image = umbra.randn(8, 16, 40, 40, dtype=umbra.float64).to(memory_format=umbra.channels_last)
        rows = umbra.randn(3000, 64)

        def run():
            weights = [umbra.ones(n, dtype=x.dtype, requires_grad=True) for n, x in ((16, image), (64, rows), (16, image))]
            y = umbra.nn.functional.batch_norm(image, None, None, weights[0], training=True)
            z = umbra.nn.functional.layer_norm(rows, (64,), weights[1])
            g = umbra.nn.functional.group_norm(image, 4, weights[2])
            ((y * image).sum() + (z * rows).sum() + (g * image).sum()).backward()
            return [y.detach()] + [w.grad for w in weights]
        first = run()
        for _ in range(30):
            assert all(umbra.equal(a, b) for a, b in zip(run(), first))
    finally:
        umbra.set_num_threads(threads)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("shift", umbra.zeros(2))

    def forward(self, x):
        return self.second(self.first(x)) + self.shift


def test_functional_call_ties_what_the_module_ties():
    module, x = Tied(), umbra.ones(1, 2)
    twos, threes = umbra.full((2, 2), 2.0), umbra.full((2, 2), 3.0)
    call = umbra.func.functional_call
    for name in ("first.weight", "second.weight"):
        assert call(module, {name: twos}, (x,)).tolist() == [[16, 16]]
    assert call(module, {"first.weight": twos, "second.weight": threes}, x, tie_weights=False).tolist() == [[24, 24]]
    with pytest.raises(ValueError, match="multiple values for keys .*'first.weight', 'second.weight'.* which are tied"):
        call(module, {"first.weight": twos, "second.weight": threes}, x)
    weight = twos.clone().requires_grad_()
    assert umbra.autograd.grad(call(module, {"first.weight": weight}, x).sum(), weight)[0].tolist() == [[8, 8], [8, 8]]
    assert module.second.weight is module.first.weight and isinstance(module.first.weight, nn.Parameter)


def test_functional_call_takes_several_dicts_and_checks_names():
    module, x, twos = Tied(), umbra.ones(1, 2), umbra.full((2, 2), 2.0)
    call = umbra.func.functional_call
    assert call(module, ({"first.weight": twos}, {"shift": umbra.ones(2)}), (x,)).tolist() == [[17, 17]]
    with pytest.raises(ValueError, match="multiple dictionaries"):
        call(module, ({"shift": x}, {"shift": x}), x)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'other'.\n\tMissing key\(s\): 'shift'"):
        call(module, {"first.weight": twos, "other": twos}, x, strict=True)
    with pytest.raises(TypeError, match="3 is not an instance of torch.Tensor"):
        call(module, {"first.weight": 3}, x)
    with pytest.raises(AttributeError, match="Tied has no attribute `third`"):
        call(module, {"third.weight": twos}, x)


def test_functional_call_gives_back_buffers_that_the_module_assigned():
    class Count(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", umbra.zeros(1))

        def forward(self, x):
            self.count = self.count + x.sum()
            return self.count
    module, given = Count(), {"count": umbra.ones(1)}
    umbra.func.functional_call(module, given, (umbra.ones(2),))
    assert given["count"].tolist() == [3] and module.count.tolist() == [0]


def trained(dtype, make, **options):
    parameter = nn.Parameter(umbra.ones(2, dtype=dtype))
    optimizer = make([parameter], lr=0.1, **options)
    (parameter * 2).sum().backward()
    optimizer.step()
    return parameter, optimizer


def test_loaded_state_has_the_type_of_its_parameter():
    for make, options in ((umbra.optim.Adam, {}), (umbra.optim.SGD, {"momentum": 0.9})):
        saved = trained(umbra.float32, make, **options)[1].state_dict()
        parameter, optimizer = trained(umbra.float64, make, **options)
        optimizer.load_state_dict(saved)
        types = {name: value.dtype for name, value in optimizer.state[parameter].items()}
        assert types.pop("step", umbra.float32) == umbra.float32
        assert types and set(types.values()) == {umbra.float64}


def test_loaded_state_of_other_shapes_and_keys():
    parameter, optimizer = trained(umbra.float32, umbra.optim.SGD)
    wide = umbra.ones(1, dtype=umbra.float64)
    optimizer.load_state_dict({"state": {7: {"list": [wide, (wide, 3)], "inner": {"step": wide, "x": wide}}, "extra": 5},
                               "param_groups": [{"lr": 3, "params": [7]}]})
    state = optimizer.state[parameter]
    assert state["list"][0].dtype == state["list"][1][0].dtype == state["inner"]["x"].dtype == umbra.float32
    assert state["inner"]["step"].dtype == umbra.float64 and optimizer.state["extra"] == 5
    group, = optimizer.param_groups
    assert (group["lr"], group["params"]) == (3, [parameter]) and "momentum" not in group  # options that came later are completed, others are not


def test_hooks_around_steps_and_state_dicts():
    parameter, optimizer = trained(umbra.float32, umbra.optim.SGD)
    log = []
    before = optimizer.register_step_pre_hook(lambda opt, args, kwargs: log.append("before"))
    optimizer.register_step_post_hook(lambda opt, args, kwargs: log.append("after"))
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "note": 1})
    optimizer.register_load_state_dict_pre_hook(lambda opt, state: {k: v for k, v in state.items() if k != "note"})
    optimizer.step()
    before.remove()
    optimizer.step()
    saved = optimizer.state_dict()
    optimizer.load_state_dict(saved)
    assert log == ["before", "after", "after"] and saved["note"] == 1


def test_embedding_bounds_the_norms_of_the_rows_it_takes():
    table = umbra.tensor([[3., 4.], [0.3, 0.4], [6., 8.], [0., 0.]])
    weight = table.clone()
    rows = nn.functional.embedding(umbra.tensor([[0, 1], [0, 0]]), weight, max_norm=1.0)
    assert umbra.allclose(rows[0, 0], umbra.tensor([0.6, 0.8])) and umbra.equal(rows[1, 1], rows[0, 0])
    assert umbra.allclose(weight, umbra.tensor([[0.6, 0.8], [0.3, 0.4], [6., 8.], [0., 0.]])) and weight._version == 1
    for norm_type, row in ((1.0, [3 / 7, 4 / 7]), (float("inf"), [0.75, 1.0]), (3.0, [0.66697, 0.88930])):
        scaled = umbra.embedding_renorm_(table.clone(), umbra.tensor([0]), 1.0, norm_type)
        assert umbra.allclose(scaled[0], umbra.tensor(row), rtol=1e-4)
    assert umbra.ops.aten.embedding_renorm(table, umbra.tensor([0]), 1.0, 2.0) is not table
    module = nn.Embedding(4, 2, max_norm=1.0, _weight=table.clone())
    module(umbra.tensor([2])).sum().backward()
    assert umbra.allclose(module.weight[2].detach(), umbra.tensor([0.6, 0.8]))
    assert module.weight.grad.tolist() == [[0, 0], [0, 0], [1, 1], [0, 0]]
    assert repr(module) == "Embedding(4, 2, max_norm=1.0)"


def test_bounding_the_norms_of_rows_is_outside_of_forward_derivatives():
    weight, tangent = umbra.tensor([[3.0, 4.0], [0.3, 0.4]]), umbra.tensor([[1.0, 2.0], [3.0, 4.0]])
    with umbra.autograd.forward_ad.dual_level():
        rows = nn.functional.embedding(umbra.tensor([0, 1]), umbra.autograd.forward_ad.make_dual(weight, tangent), max_norm=1.0)
        value, moved = umbra.autograd.forward_ad.unpack_dual(rows)
    assert moved.tolist() == tangent.tolist() and value.norm(dim=1).max() <= 1


def test_embeddings_may_have_sparse_gradients():
    module = nn.Embedding(4, 2, sparse=True)
    module(umbra.tensor([2])).sum().backward()
    assert module.weight.grad.is_sparse and module.weight.grad.to_dense()[2].tolist() == [1, 1]


def test_gradients_are_clipped_together_or_one_by_one():
    first, second = nn.Parameter(umbra.zeros(2)), nn.Parameter(umbra.zeros(1))
    first.grad, second.grad = umbra.tensor([3., 0.]), umbra.tensor([4.])
    assert nn.utils.clip_grad_norm_([first, second], 1.0).item() == 5
    assert umbra.allclose(first.grad, umbra.tensor([0.6, 0.])) and umbra.allclose(second.grad, umbra.tensor([0.8]))
    first.grad = umbra.tensor([-3., 0.2])
    nn.utils.clip_grad_value_([first, second], 0.5)
    assert umbra.allclose(first.grad, umbra.tensor([-0.5, 0.2])) and second.grad.tolist() == [0.5]
    assert nn.utils.get_total_norm([umbra.tensor([3.]), umbra.tensor([-4.])], 1).item() == 7
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0
    second.grad = umbra.tensor([float("inf")])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(second, 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector():
    module = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(module.parameters())
    assert vector.shape == (6,) and vector.requires_grad
    nn.utils.vector_to_parameters(umbra.arange(6.), module.parameters())
    assert module.weight.tolist() == [[0, 1], [2, 3]] and module.bias.tolist() == [4, 5] and module.weight.is_leaf


def test_a_module_comes_off_the_meta_device_empty():
    module = nn.BatchNorm1d(2, device="meta")
    assert module.to_empty(device="cpu") is module
    assert module.weight.device.type == module.running_mean.device.type == "cpu" and module.weight.requires_grad


def test_sizes_of_transposed_convolutions_are_checked():
    module = nn.ConvTranspose2d(1, 2, 3, stride=2, padding=1)
    x = umbra.ones(1, 1, 2, 2)
    assert module(x, output_size=(4, 4)).shape == module(x, output_size=(1, 2, 4, 4)).shape == (1, 2, 4, 4)
    with pytest.raises(ValueError, match=r"valid sizes range from \[3, 3\] to \[4, 4\]"):
        module(x, output_size=(6, 6))
    with pytest.raises(ValueError, match="output_size must have 2 or 4 elements"):
        module(x, output_size=(4,))


def test_functions_need_no_other_one_to_have_been_looked_up_first():
    program = "import umbra as torch; print(torch.nn.functional.linear_cross_entropy(torch.ones(2, 3), torch.ones(4, 3), torch.tensor([1, 2])).item())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(math.log(4))


@pytest.mark.parametrize("call, text", [
    (lambda: nn.functional.mse_loss(umbra.ones(2), umbra.ones(2, 1)), r"Using a target size \(torch.Size\(\[2, 1\]\)\)"),
    (lambda: nn.functional.huber_loss(umbra.ones(2), umbra.ones(2, 1)), "different to the input size"),
    (lambda: nn.functional.softmax(umbra.ones(2)), "Implicit dimension choice for softmax"),
    (lambda: nn.functional.softmin(umbra.ones(2)), "Implicit dimension choice for softmin"),
    (lambda: nn.functional.kl_div(umbra.zeros(2), umbra.ones(2)), "'batchmean' divides only by the batch size"),
])
def test_what_is_rarely_meant_warns(call, text):
    with pytest.warns(UserWarning, match=text):
        call()


def test_the_package_of_utilities_is_not_that_of_the_modules():
    assert nn.utils.__name__ == "umbra.nn.utils" and nn.modules.utils.__name__ == "umbra.nn.modules.utils"


def test_tables_have_the_size_they_are_said_to_have():
    with pytest.raises(AssertionError, match="Shape of weight"):
        umbra.nn.Embedding(3, 2, _weight=umbra.ones(2, 2))
    with pytest.raises(AssertionError, match="2-dimensional"):
        umbra.nn.Embedding.from_pretrained(umbra.ones(2))


def test_gradients_of_convolutions_are_under_functional_too():
    assert nn.functional.grad is umbra.nn.grad


def test_activations_say_their_arguments():
    def parameters(cls):
        return [(p.name, p.default) for p in inspect.signature(cls).parameters.values()]

    assert parameters(nn.ReLU) == [("inplace", False)] and parameters(nn.Tanh) == []
    assert parameters(nn.LeakyReLU) == [("negative_slope", 0.01), ("inplace", False)]
    assert parameters(nn.Hardtanh)[-2:] == [("min_value", None), ("max_value", None)]
    with pytest.raises(TypeError, match=r"ReLU.__init__\(\) takes from 1 to 2 positional arguments but 3 were given"):
        nn.ReLU(True, 2)
    with pytest.raises(TypeError, match=r"ELU.__init__\(\) got an unexpected keyword argument 'slope'"):
        nn.ELU(slope=2.0)
    with pytest.warns(FutureWarning, match="keyword argument `min_value` is deprecated and renamed to `min_val`"):
        assert nn.Hardtanh(min_value=-3.0).min_val == -3.0


class TestConstructors:
    @pytest.mark.parametrize("name", ["Conv2d", "ConvTranspose1d", "LazyConv3d", "AvgPool2d", "MaxUnpool1d", "ReflectionPad2d", "ZeroPad1d", "FractionalMaxPool2d"])
    def test_what_is_missing_is_said_by_the_layer_that_was_called(self, name):
        with pytest.raises(TypeError, match=rf"^{name}.__init__\(\) missing"):
            getattr(nn, name)()

    def test_constructors_of_a_kind_of_layers_stay_apart(self):
        assert nn.Conv1d.__init__ is not nn.Conv2d.__init__ and nn.Conv2d.__init__.__qualname__ == "Conv2d.__init__"
        with pytest.raises(TypeError, match=r"^_BatchNorm.__init__\(\) missing"):
            nn.BatchNorm2d()
