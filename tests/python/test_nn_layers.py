"""Layers over images and tables: shapes, values that are known, gradients, and what is refused."""
import copy
import math
import pickle
import weakref

import pytest
import umbra as torch
import umbra.nn.functional as F
from umbra import nn
from umbra.autograd import forward_ad
from umbra.nn.utils import parametrizations, parametrize


@pytest.mark.parametrize("mode, size", [("nearest", 6), ("linear", 6), ("nearest-exact", 5), ("area", 2)])
def test_interpolation_of_a_line_keeps_its_ends(mode, size):
    line = torch.arange(4.0).view(1, 1, 4)
    out = F.interpolate(line, size=size, mode=mode)
    assert out.shape[-1] == size and (mode == "area" or (out[0, 0, 0] == 0 and out[0, 0, -1] == 3))


def test_interpolation_refuses_what_torch_refuses():
    with pytest.raises(ValueError, match="only one of size or scale_factor"):
        F.interpolate(torch.zeros(1, 1, 4), size=2, scale_factor=2)
    with pytest.raises(ValueError, match="align_corners option"):
        F.interpolate(torch.zeros(1, 1, 4), size=2, align_corners=True)
    with pytest.raises(NotImplementedError):
        F.interpolate(torch.zeros(1, 1, 4), size=2, mode="bilinear")


def test_the_identity_map_samples_the_image_itself():
    image = torch.randn(2, 3, 4, 5)
    theta = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]]).expand(2, 2, 3)
    grid = F.affine_grid(theta, image.shape, align_corners=True)
    torch.testing.assert_close(F.grid_sample(image, grid, align_corners=True), image)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_grid_sampling_is_differentiable_twice(mode):
    image = torch.randn(1, 2, 5, 5, dtype=torch.double, requires_grad=True)
    grid = (torch.rand(1, 3, 3, 2, dtype=torch.double) * 1.6 - 0.8).requires_grad_()
    out = F.grid_sample(image, grid, mode=mode, align_corners=False)
    of_image, of_grid = torch.autograd.grad(out.square().sum(), (image, grid), create_graph=True)
    step, direction = 1e-6, torch.randn_like(grid)
    second, = torch.autograd.grad((of_grid * direction).sum(), grid)

    def first(g):
        g = g.detach().requires_grad_()
        return torch.autograd.grad(F.grid_sample(image, g, mode=mode, align_corners=False).square().sum(), g)[0]
    numeric = (first(grid + step * direction) - first(grid - step * direction)) / (2 * step)
    torch.testing.assert_close((second * direction).sum(), (numeric * direction).sum(), rtol=1e-4, atol=1e-4)
    assert of_image.shape == image.shape


def test_folding_adds_up_what_unfolding_took_apart():
    image = torch.randn(1, 2, 5, 6)
    columns = F.unfold(image, (2, 3))
    assert columns.shape == (1, 12, 16)
    counts = F.fold(F.unfold(torch.ones_like(image), (2, 3)), (5, 6), (2, 3))
    torch.testing.assert_close(F.fold(columns, (5, 6), (2, 3)), image * counts)


def test_negative_reflection_padding_reflects_the_whole_line():
    line = torch.arange(5.0).view(1, 5)
    assert F.pad(line, (-2, 3), mode="reflect").tolist() == [[2, 3, 4, 3, 2, 1]]
    assert F.pad(line, (-2, 3), mode="replicate").tolist() == [[2, 3, 4, 4, 4, 4]]


def test_pooling_and_back_puts_maxima_in_their_places():
    x = torch.arange(16.0).view(1, 1, 4, 4)
    out, places = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(out, places, 2)
    assert back.flatten().nonzero().flatten().tolist() == [5, 7, 13, 15]
    with pytest.raises(RuntimeError, match="invalid max index"):
        F.max_unpool2d(out, places + 16, 2)


def test_arguments_of_images_that_are_of_another_kind_are_refused_as_the_operators_do():
    image, line = torch.zeros(1, 1, 4, 4), torch.zeros(1, 4, 9)
    for corners in ("a", 1, (), object):
        with pytest.raises(TypeError, match="upsample_bilinear2d.. received an invalid combination of arguments"):
            F.interpolate(image, 3, mode="bilinear", align_corners=corners)
    for wrong in ({"size": 1.5}, {"size": "a"}, {"scale_factor": "a"}, {"scale_factor": (1, None)}):
        with pytest.raises(TypeError, match="upsample_nearest2d"):
            F.interpolate(image, **wrong)
    with pytest.raises(NotImplementedError, match="Input Error"):
        F.interpolate(image, 3, mode=[])
    pair = torch.tensor([2, 2])
    assert F.unfold(image, pair).shape == (1, 4, 9) and F.fold(line, (4, 4), pair).shape == (1, 1, 4, 4)
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        F.unfold(image, torch.tensor(2))
    for wrong in (None, "a", 1.5, {}):
        with pytest.raises(TypeError, match=r"adaptive_max_pool1d\(\): argument 'output_size' \(position 2\) must be tuple of ints, not"):
            F.adaptive_max_pool1d(line, wrong)


def test_layers_of_packages_replace_the_convolution_of_a_layer():
    class Halved(nn.Conv2d):
        def _conv_forward(self, input, weight, bias):
            return super()._conv_forward(input, weight / 2, None)

    layer, image = Halved(2, 3, 3, padding=1, padding_mode="circular"), torch.randn(1, 2, 5, 5)
    plain = nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular", bias=False)
    plain.weight = layer.weight
    torch.testing.assert_close(layer(image), plain(image) / 2)
    grown = nn.ConvTranspose2d(2, 3, 3, stride=2)
    assert list(grown._output_padding(image, [12, 11], [2, 2], [0, 0], [3, 3], 2, [1, 1])) == [1, 0]


def test_layers_of_packages_replace_weights_of_recurrent_layers():
    layer, x = nn.LSTM(3, 4), torch.randn(5, 2, 3)
    weight = layer.weight_hh_l0
    del layer._parameters["weight_hh_l0"]
    layer.weight_hh_l0 = weight * 0.5
    layer._flat_weights = [getattr(layer, name) for name in layer._flat_weights_names]
    halved = nn.LSTM(3, 4)
    halved.load_state_dict({name: getattr(layer, name).detach() for name in layer._flat_weights_names})
    torch.testing.assert_close(layer(x)[0], halved(x)[0])
    with pytest.raises(NotImplementedError, match="_flat_weights of other tensors"):
        layer._flat_weights = [torch.zeros(1)] * 4


@pytest.mark.parametrize("layer", [nn.Embedding, nn.EmbeddingBag])
def test_tables_are_drawn_again_but_for_their_padding(layer):
    table = layer(4, 3, padding_idx=1)
    torch.nn.init.ones_(table.weight)
    table._fill_padding_idx_with_zero()
    assert table.weight.sum(1).tolist() == [3, 0, 3, 3]


def test_adaptive_pools_keep_a_size_that_is_none():
    x = torch.randn(2, 3, 5, 7)
    assert nn.AdaptiveAvgPool2d((None, 3))(x).shape == (2, 3, 5, 3)
    assert nn.AdaptiveMaxPool2d((2, None))(x).shape == (2, 3, 2, 7)


def test_bags_are_sums_means_and_maxima_of_rows():
    table = torch.arange(12.0).view(4, 3)
    indices, offsets = torch.tensor([0, 1, 3]), torch.tensor([0, 2])
    assert F.embedding_bag(indices, table, offsets, mode="sum").tolist() == [[3, 5, 7], [9, 10, 11]]
    assert F.embedding_bag(indices, table, offsets, mode="mean").tolist() == [[1.5, 2.5, 3.5], [9, 10, 11]]
    assert F.embedding_bag(indices, table, offsets, mode="max").tolist() == [[3, 4, 5], [9, 10, 11]]
    with pytest.raises(RuntimeError, match="found idx to be 9"):
        F.embedding_bag(torch.tensor([9]), table, torch.tensor([0]))


def test_instance_norm_is_batch_norm_of_each_sample():
    x = torch.randn(3, 2, 4)
    each = [F.batch_norm(sample.unsqueeze(0), None, None, training=True) for sample in x]
    torch.testing.assert_close(F.instance_norm(x), torch.cat(each))


def test_losses_of_known_values():
    assert F.huber_loss(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none").tolist() == [0.125, 2.5]
    assert F.smooth_l1_loss(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none", beta=2.0).tolist() == [0.0625, 2.0]
    assert F.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])).item() == 2
    assert math.isclose(F.cosine_similarity(torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]])).item(), 0.96, rel_tol=1e-6)
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy_with_logits(torch.zeros(2), torch.zeros(3))
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(torch.tensor([1.5]), torch.tensor([1.0]))


def test_ctc_of_one_label_counts_all_alignments():
    # Two steps, blank and one label, all equally likely: three of four paths spell the label.
    scores = torch.full((2, 1, 2), math.log(0.5), requires_grad=True)
    loss = F.ctc_loss(scores, torch.tensor([[1]]), [2], [1], reduction="sum")
    assert math.isclose(loss.item(), -math.log(0.75), rel_tol=1e-6)
    loss.backward()
    assert scores.grad.abs().sum() > 0


def test_a_parametrised_weight_is_computed_and_can_be_left():
    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert torch.equal(layer.weight, layer.weight.T) and list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    layer(torch.randn(2, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    kept = layer.weight.detach().clone()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and torch.equal(layer.weight, kept)


def test_weight_norm_splits_a_weight_into_length_and_direction():
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    length = layer.parametrizations.weight.original0
    with torch.no_grad():
        length.fill_(2.0)
    torch.testing.assert_close(layer.weight.norm(dim=1), torch.full((2,), 2.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_losses_in_one_pass_are_the_reductions_of_their_terms(dtype):
    torch.manual_seed(0)
    for size in ((0,), (1,), (7,), (100, 131)):
        x, y = 3 * torch.randn(size, dtype=dtype), torch.randn(size, dtype=dtype)
        for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, lambda *a, **k: F.huber_loss(*a, delta=0.3, **k),
                     lambda *a, **k: F.smooth_l1_loss(*a, beta=0.3, **k)):
            terms = loss(x, y, reduction="none")
            torch.testing.assert_close(loss(x, y), terms.mean(), equal_nan=True)
            torch.testing.assert_close(loss(x, y, reduction="sum"), terms.sum())
    broken = torch.tensor([0.0, float("nan")], dtype=dtype)
    assert F.huber_loss(broken, torch.zeros(2, dtype=dtype)).isnan()
    assert F.mse_loss(torch.tensor([math.inf]), torch.zeros(1)).item() == math.inf


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("width", [1, 5, 64, 70])
def test_bags_are_made_of_their_rows(mode, width):
    torch.manual_seed(0)
    table, index, offsets = torch.randn(50, width), torch.randint(0, 50, (23,)), torch.tensor([0, 0, 7, 20])
    ends = [0, 7, 20, 23]
    reduce = {"sum": lambda rows: rows.sum(0), "mean": lambda rows: rows.mean(0), "max": lambda rows: rows.max(0).values}[mode]
    for bags in (F.embedding_bag(index, table, offsets, mode=mode), F.embedding_bag(index, table.t().contiguous().t(), offsets, mode=mode)):
        assert bags[0].eq(0).all()
        for k in range(1, 4):
            torch.testing.assert_close(bags[k], reduce(table[index[ends[k - 1]:ends[k]]]))


# ---- what a layer is ----

def test_layers_are_of_the_classes_that_torch_has_them_of():
    from umbra.nn.modules.batchnorm import _BatchNorm, _NormBase
    from umbra.nn.modules.dropout import _DropoutNd
    from umbra.nn.modules.padding import _ConstantPadNd, _ReflectionPadNd
    from umbra.nn.modules.pooling import _AdaptiveAvgPoolNd, _AvgPoolNd, _MaxPoolNd
    assert isinstance(nn.BatchNorm2d(1), (_BatchNorm)) and isinstance(nn.InstanceNorm2d(1), _NormBase)
    assert not isinstance(nn.InstanceNorm2d(1), _BatchNorm)
    assert isinstance(nn.AvgPool3d(1), _AvgPoolNd) and not isinstance(nn.AvgPool3d(1), nn.AvgPool2d)
    assert isinstance(nn.ZeroPad2d(1), nn.ConstantPad2d) and isinstance(nn.ZeroPad2d(1), _ConstantPadNd)
    assert isinstance(nn.ReflectionPad1d(1), _ReflectionPadNd) and isinstance(nn.Dropout2d(), _DropoutNd)
    assert isinstance(nn.MaxPool1d(1), _MaxPoolNd) and isinstance(nn.AdaptiveAvgPool2d(1), _AdaptiveAvgPoolNd)
    assert not isinstance(nn.BCEWithLogitsLoss(), nn.modules.loss._WeightedLoss)
    lazy = nn.LazyBatchNorm1d()
    assert not isinstance(lazy, nn.BatchNorm1d) and isinstance(lazy, _BatchNorm)
    lazy(torch.ones(2, 3))
    assert type(lazy) is nn.BatchNorm1d


def test_zero_padding_is_padding_by_zero():
    assert nn.ZeroPad1d(1)(torch.ones(1, 1, 1)).tolist() == [[[0.0, 1.0, 0.0]]]
    assert repr(nn.ZeroPad2d((1, 2, 0, 1))) == "ZeroPad2d((1, 2, 0, 1))" and nn.ZeroPad2d(1).value == 0.0


@pytest.mark.parametrize("name, layer, sizes", [
    ("relu", nn.ReLU(), (2,)), ("gelu", nn.GELU(), (2,)), ("softmax", nn.Softmax(0), (2,)), ("dropout", nn.Dropout(), (2,)),
    ("max_pool2d", nn.MaxPool2d(1), (1, 1, 2, 2)), ("avg_pool3d", nn.AvgPool3d(1), (1, 1, 2, 2, 2)), ("linear", nn.Linear(2, 2), (2,)),
    ("adaptive_avg_pool1d", nn.AdaptiveAvgPool1d(1), (1, 1, 2))])
def test_layers_call_the_functions_that_are_there_now(monkeypatch, name, layer, sizes):
    monkeypatch.setattr(F, name, lambda *args, **kwargs: "counted")
    assert layer(torch.ones(sizes)) == "counted"


def test_layers_before_they_are_quantised_compute_with_floats():
    from umbra.ao.quantization import DeQuantStub, QuantStub, QuantWrapper
    x = torch.ones(2, 3)
    assert QuantStub()(x) is x and DeQuantStub()(x) is x
    layer = nn.Linear(3, 3)
    assert torch.equal(QuantWrapper(layer)(x), layer(x))
    f = nn.quantized.FloatFunctional()
    assert torch.equal(f.add_relu(x, -2 * x), torch.zeros(2, 3)) and torch.equal(f.cat([x, x], 1), torch.ones(2, 6))


def told_its_module(module, state_dict, prefix, *rest):
    module.seen = sorted(state_dict)


def test_hooks_of_loading_are_saved_with_their_module():
    model = nn.Linear(2, 2)
    model.register_load_state_dict_pre_hook(told_its_module)
    copied = pickle.loads(pickle.dumps(model))
    copied.load_state_dict(model.state_dict())
    assert copied.seen == ["bias", "weight"] and not hasattr(model, "seen")
    reference = weakref.ref(model)
    del model
    assert reference() is None


def test_state_that_nobody_takes_is_unexpected():
    with pytest.raises(RuntimeError, match="Unexpected key.*_extra_state"):
        nn.Module().load_state_dict({"_extra_state": 1})

    class Keeps(nn.Module):
        def set_extra_state(self, state):
            self.kept = state

    keeps = Keeps()
    keeps.load_state_dict({"_extra_state": 1})
    assert keeps.kept == 1
    with pytest.raises(RuntimeError, match="Missing key.*_extra_state"):
        keeps.load_state_dict({})


def test_lists_of_parameters_know_their_places():
    parameters = nn.ParameterList([nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))])
    parameters[torch.tensor(1)] = nn.Parameter(torch.ones(3))
    assert parameters[torch.tensor(1)].shape == (3,) and len(parameters) == 2
    with pytest.raises(IndexError):
        parameters[5] = nn.Parameter(torch.ones(1))
    assert len(nn.ParameterList(torch.ones(n) for n in range(3))) == 3
    with pytest.raises(TypeError, match="should be called with an iterable, but got Tensor"):
        parameters.extend(torch.ones(2, 3))
    with pytest.raises(IndexError, match="Index out of range: 5"):
        nn.Sequential(nn.ReLU()).insert(5, nn.ReLU())


def test_statistics_of_one_value_are_refused():
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        nn.GroupNorm(2, 2)(torch.rand(1, 2))
    assert nn.GroupNorm(2, 2)(torch.rand(2, 2)).shape == (2, 2)


def test_options_of_layers_are_checked():
    for wrong in ([2, 2.5], {"a": 2}, 5):
        with pytest.raises(TypeError, match="unflattened_size must be"):
            nn.Unflatten(1, wrong)
    for recurrent in (nn.RNN, nn.GRU):
        with pytest.raises(ValueError, match="proj_size argument is only supported for LSTM"):
            recurrent(2, 3, proj_size=1)
        with pytest.raises(TypeError, match="unexpected keyword argument 'unknown'"):
            recurrent(2, 3, unknown=1)
    with pytest.raises(TypeError, match="received an invalid combination of arguments - got .str, str."):
        nn.Linear(2, 2).to("cpu", "cpu")
    with pytest.raises(RuntimeError, match="does not accept copy"):
        nn.Linear(2, 2).to("cpu", copy=True)


def test_spectral_norm_is_saved_and_reads_older_state():
    layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    layer(torch.ones(1, 3))
    assert pickle.loads(pickle.dumps(layer)).weight_u.tolist() == layer.weight_u.tolist()
    older = {"bias": layer.bias.detach(), "weight_orig": layer.weight_orig.detach(), "weight_u": layer.weight_u, "weight": layer.weight.detach()}
    loaded = nn.utils.spectral_norm(nn.Linear(3, 2)).eval()
    loaded.load_state_dict(older)
    x = torch.rand(4, 3)
    assert torch.allclose(loaded(x), layer.eval()(x), atol=1e-5)


def test_buffers_take_no_place_that_is_taken():
    module = nn.Module()
    module.name = 5
    with pytest.raises(KeyError, match="attribute 'name' already exists"):
        module.name = nn.Buffer(torch.ones(1))
    module.register_buffer("kept", torch.ones(1))
    module.kept = nn.Buffer(torch.zeros(1), persistent=False)
    assert list(module.state_dict()) == []


def test_gradients_of_another_type_become_the_results_type():
    layer = nn.Conv2d(2, 3, 3).bfloat16()
    layer(torch.ones(1, 2, 4, 4, dtype=torch.bfloat16)).backward(torch.ones(1, 3, 2, 2))
    assert layer.weight.grad.dtype == torch.bfloat16


def test_parametrised_layers_are_copied_and_read_older_state():
    layer = parametrizations.weight_norm(nn.Linear(2, 3))
    copied = copy.deepcopy(layer)
    assert type(copied) is type(layer) and copied.parametrizations.weight is not layer.parametrizations.weight
    with torch.no_grad():
        layer.parametrizations.weight.original0.mul_(2)
    assert torch.allclose(copied.weight * 2, layer.weight)
    older = nn.utils.weight_norm(nn.Linear(2, 3))
    copied.load_state_dict(older.state_dict())
    assert torch.allclose(copied.weight, older.weight)


def test_elu_and_its_like_in_place_with_a_negative_slope_have_no_gradient():
    for function in (lambda x: F.elu_(x, -2.0), lambda x: F.celu_(x, -2.0), lambda x: F.leaky_relu_(x, -2.0)):
        x = torch.tensor([-1.0, 1.0], requires_grad=True)
        with pytest.raises(RuntimeError, match="please call out-of-place version"):
            function(x.clone()).sum().backward()
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    F.elu_(x.clone(), 2.0).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([2 * math.exp(-1), 1.0]))


def test_a_threshold_may_write_what_is_expanded():
    assert F.threshold_(torch.ones(1, 3).expand(2, 3), 2.0, 0.5).tolist() == [[0.5] * 3] * 2


def test_a_tangent_of_running_statistics_is_not_left_out_silently():
    x, mean = torch.randn(3, 2), torch.zeros(2)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones(3, 2)), forward_ad.make_dual(mean, torch.ones(2))
        with pytest.raises(RuntimeError, match="is not differentiable wrt running_mean and running_var"):
            F.batch_norm(*dual, torch.ones(2))


def test_adaptive_pools_refuse_inputs_without_channels():
    for pool, shape in ((F.adaptive_max_pool1d, (1, 0, 5)), (F.adaptive_max_pool2d, (1, 0, 5, 5)), (F.adaptive_avg_pool3d, (1, 0, 5, 5, 5))):
        with pytest.raises(RuntimeError, match="non-zero size for non-batch dimensions"):
            pool(torch.zeros(shape), 3)
    assert F.adaptive_max_pool2d(torch.zeros(0, 3, 5, 5), 3).shape == (0, 3, 3, 3)


def test_interpolate_names_sizes_that_are_none():
    image = torch.zeros(1, 1, 2, 2)
    with pytest.raises(TypeError, match="expected size to be one of int or Tuple"):
        F.interpolate(image, (2, 2.0))
    with pytest.raises(RuntimeError, match="without overflow"):
        F.interpolate(image, scale_factor=-1e20)


def test_layers_refuse_what_makes_no_sense_of_them():
    x = torch.randn(2, 3)
    for make, error, text in ((lambda: nn.Softmax(1.0), TypeError, "dim must be an int or None"),
                              (lambda: nn.LogSoftmax(True), TypeError, "dim must be an int or None"),
                              (lambda: nn.HuberLoss(delta=1j), TypeError, "delta must be a float or int"),
                              (lambda: nn.GRU(2.0, 3), TypeError, "input_size should be of type int"),
                              (lambda: nn.GroupNorm(3, 10), ValueError, r"num_channels \(10\) must be divisible by num_groups \(3\)"),
                              (lambda: nn.BatchNorm1d(3, eps=0.0)(x), ValueError, "eps must be positive during training"),
                              (lambda: nn.BatchNorm1d(3, eps=-1.0).eval()(x), ValueError, "eps must be non-negative")):
        with pytest.raises(error, match=text):
            make()
    nn.BatchNorm1d(3, eps=0.0).eval()(x)


def test_probabilities_as_targets_ignore_no_class():
    scores, target = torch.zeros(2, 3), torch.full((2, 3), 1 / 3)
    F.cross_entropy(scores, target)
    with pytest.raises(RuntimeError, match="ignore_index is not supported for floating point target"):
        F.cross_entropy(scores, target, ignore_index=0)
    with pytest.raises(RuntimeError, match="either for all 3 classes or no classes"):
        F.cross_entropy(scores, target, weight=torch.ones(2))


# ---- refusals and corners of layers ----

def test_bags_of_a_matrix_are_its_rows_whatever_ends_the_offsets():
    rows = torch.tensor([[0, 1, 2], [3, 4, 0]])
    weight = torch.arange(15.0).reshape(5, 3)
    bags = torch.nn.EmbeddingBag(5, 3, mode="sum", include_last_offset=True, _weight=weight)
    assert bags(rows).tolist() == weight[rows].sum(1).tolist()


@pytest.mark.parametrize("pad, want", [
    ([-1, 2], [1, 2, 1, 2]), ([2, -1], [0, 1, 0, 1]), ([-2, 3], [2, 2, 2, 2]), ([3, -2], [0, 0, 0, 0]), ([-1, -2], []), ([3, 3], [0, 1, 2] * 3),
])
def test_circular_padding_repeats_what_negative_padding_leaves(pad, want):
    x = torch.arange(3.0).reshape(1, 3)
    assert F.pad(x, pad, mode="circular").tolist() == [want]


def test_circular_padding_needs_something_to_repeat():
    with pytest.raises(RuntimeError, match="leaves nothing to wrap around in dimension 1"):
        F.pad(torch.ones(1, 2), [2, -2], mode="circular")
    with pytest.raises(RuntimeError, match="resulting in an empty dimension"):
        F.pad(torch.ones(1, 2), [-2, -1], mode="circular")
    with pytest.raises(RuntimeError, match="wrapping around more than once"):
        F.pad(torch.ones(1, 2), [3, 0], mode="circular")


@pytest.mark.parametrize("call, error, text", [
    (lambda: F.pad(torch.ones(3), [1, 1], mode="reflect"), NotImplementedError, "Padding size 2 is not supported for 1D input tensor."),
    (lambda: F.pad(torch.ones(3), [-2, -2]), RuntimeError, r"narrow\(\): length must be non-negative."),
    (lambda: torch.nn.Hardtanh(1.0, -1.0), AssertionError, r"max_val \(-1.0\) must be greater than min_val \(1.0\)"),
    (lambda: F.conv_transpose1d(torch.ones(1, 3, 4), torch.ones(2, 3, 2)), RuntimeError, r"Given transposed=1, weight of size \[2, 3, 2\], expected input\[1, 3, 4\]"),
    (lambda: F.conv_transpose1d(torch.ones(1, 2, 4), torch.ones(2, 3, 2), stride=2, output_padding=2), RuntimeError,
     "output_padding_height: 0 output_padding_width: 2 stride_height: 1 stride_width: 2 dilation_height: 1 dilation_width: 1"),
    (lambda: F.interpolate(torch.ones(1, 1, 4), scale_factor=2, mode="bicubic"), NotImplementedError, "Only 3D, 4D and 5D input Tensors supported"),
    (lambda: F.interpolate(torch.ones(1, 1, 4), scale_factor=2, mode="bilinear"), NotImplementedError, "Got 3D input, but bilinear mode needs 4D input"),
    (lambda: F.interpolate(torch.ones(1, 1, 4, 4), scale_factor=2, mode="lanczos"), ValueError, "Lanczos mode requires antialias=True"),
])
def test_layers_refuse_in_pytorchs_words(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_rms_norm_lies_row_by_row():
    x = torch.rand(2, 3, 4).transpose(1, 2)
    assert F.rms_norm(x, (3,)).stride() == (12, 3, 1)


def test_norms_in_programs_are_for_no_device():
    class Norms(nn.Module):
        def forward(self, x):
            return F.layer_norm(x, (4,)), F.group_norm(x, 2)
    code = torch.export.export(Norms(), (torch.ones(3, 4),)).graph_module.code
    assert "layer_norm.default(x, [4], None, None, 1e-05, False)" in code and "group_norm.default(x, 2, None, None, 1e-05, False)" in code


def test_values_of_one_dimensional_pools_lie_together():
    lines = torch.randn(2, 3, 8).transpose(1, 2).contiguous().transpose(1, 2)
    pooled = F.max_pool1d(lines, 2)
    assert pooled.stride() == (12, 4, 1)
    assert torch.equal(pooled, F.max_pool1d(lines.contiguous(), 2))
    assert F.max_pool1d(lines.clone().requires_grad_(), 2).stride() == (12, 1, 3)


def test_layouts_of_weights_of_one_channel():
    convert = torch.nn.utils.convert_conv2d_weight_memory_format
    assert convert(torch.nn.Conv2d(1, 1, 2), torch.channels_last).weight.stride() == (4, 1, 2, 1)


def test_names_of_arguments_are_torchs():
    assert nn.RMSNorm(3)(x=torch.ones(2, 3)).shape == (2, 3) and nn.SyncBatchNorm(3, bias=False).bias is None
    hooks, marks = {}, {}
    handle = torch.utils.hooks.RemovableHandle(hooks, extra_dict=marks)
    hooks[handle.id] = marks[handle.id] = True
    handle.remove()
    assert not hooks and not marks


def test_a_kernel_without_elements_is_refused():
    for function, image, kernel in ((F.conv1d, (1, 1, 8), (1, 1, 0)), (F.conv2d, (1, 1, 8, 8), (1, 1, 0, 3)), (F.conv_transpose2d, (1, 1, 8, 8), (1, 1, 3, 0))):
        with pytest.raises(RuntimeError, match="kernel size should be greater than zero, but got kernel_height: [013] kernel_width: [03]$"):
            function(torch.ones(image), torch.ones(kernel))


@pytest.mark.parametrize("name", ["AlphaDropout", "FeatureAlphaDropout"])
def test_alpha_dropout_never_writes_its_input(name):
    x = torch.ones(4, 3)
    layer = getattr(nn, name)(0.5, inplace=True)
    y = layer(x)
    assert y is not x and (x == 1).all() and "inplace=True" in repr(layer)


def test_hard_activations_do_not_show_that_they_write():
    x = torch.tensor([-4.0, 1.0])
    assert repr(nn.Hardswish(True)) == "Hardswish()" and repr(nn.Hardsigmoid(inplace=True)) == "Hardsigmoid()"
    assert nn.Hardswish(True)(x) is x and repr(nn.SiLU(True)) == "SiLU(inplace=True)"


def test_weights_of_a_binary_cross_entropy_may_be_of_another_type_and_never_widen_it():
    p, t = torch.tensor([0.2, 0.7], requires_grad=True), torch.tensor([0.0, 1.0])
    weight = torch.tensor([2.0, 3.0], dtype=torch.float64)
    loss = F.binary_cross_entropy(p, t, weight)
    assert loss.dtype == torch.float32
    (slope,) = torch.autograd.grad(loss, p)
    torch.testing.assert_close(slope, torch.tensor([1.25, -2.142857]))
    assert F.binary_cross_entropy(p.detach().half(), t.half(), weight).dtype == torch.float16
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[2, 2\]"):
        F.binary_cross_entropy(p, t, torch.ones(2, 1))
    with pytest.raises(RuntimeError, match="ComplexFloat can't be cast"):
        F.binary_cross_entropy(p, t, torch.tensor([1j, 2]))


@pytest.mark.parametrize("shape", [(1, 1, 0, 3), (1, 1, 0)])
def test_convolutions_of_images_without_pixels_are_refused(shape):
    weight = torch.ones(1, 1, *[1] * (len(shape) - 2))
    convolve = F.conv2d if len(shape) == 4 else F.conv1d
    with pytest.raises(RuntimeError, match="Only zero batch or zero channel inputs are supported"):
        convolve(torch.zeros(shape), weight, padding=1)
    assert convolve(torch.zeros(0, *shape[1:]), weight, padding=1).shape[0] == 0


def test_fractional_windows_of_narrow_types_lie_where_rounding_puts_them():
    x = torch.arange(20.0).reshape(1, 1, 20, 1)
    samples = torch.tensor([[[0.0, 0.33]]])

    def largest(dtype):
        return F.fractional_max_pool2d(x.to(dtype), (2, 1), (9, 1), _random_samples=samples.to(dtype)).flatten().tolist()

    assert largest(torch.float32) == [1, 3, 6, 8, 10, 12, 15, 17, 19]
    assert largest(torch.bfloat16) == [1, 3, 6, 8, 10, 13, 15, 17, 19]
