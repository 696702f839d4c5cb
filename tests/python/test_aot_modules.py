"""Every module of umbra.nn, compiled ahead of time: outputs, gradients and buffers are those of the module itself, in train and eval, with sizes that are numbers and sizes that are symbols."""
import copy

import pytest

import umbra as torch
from umbra import nn
from umbra._functorch.aot_autograd import aot_module

R = torch.randn


def line(n=2):
    return (R(n, 4, 6),)


def image(n=2):
    return (R(n, 4, 6, 6),)


def volume(n=2):
    return (R(n, 4, 6, 6, 6),)


def rows(n=2):
    return (R(n, 6),)


def pair(n=2):
    return R(n, 6), R(n, 6)


def signs(n=2):
    return R(n, 6), torch.where(R(n, 6) > 0, 1.0, -1.0)


def whole_signs(n=2):
    x, y = signs(n)
    return x, y.long()  # a target without a gradient


def classes(n=2):
    return R(n, 6), torch.randint(6, (n,))


def probabilities(n=2):
    return torch.rand(n, 6), torch.rand(n, 6)


def maxima(dims):
    def inputs(n=2):
        x = R(n, 4, *[6] * dims)
        pool = [nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d][dims - 1]
        return pool(2, return_indices=True)(x)

    return inputs


ACTIVATIONS = ["CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "LeakyReLU", "LogSigmoid", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6",
               "SELU", "SiLU", "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "AlphaDropout", "Dropout"]

# Name: (how it is made, how its inputs are made for a batch of n), or a list of them.
TABLE = {name: (getattr(nn, name), rows) for name in ACTIVATIONS}
TABLE |= {
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(3), line), "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, 2)), image),
    "AdaptiveAvgPool3d": (lambda: nn.AdaptiveAvgPool3d(3), volume), "AdaptiveMaxPool1d": (lambda: nn.AdaptiveMaxPool1d(3), line),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d(3, return_indices=True), image), "AdaptiveMaxPool3d": (lambda: nn.AdaptiveMaxPool3d(3), volume),
    "AvgPool1d": (lambda: nn.AvgPool1d(2), line), "AvgPool2d": (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), image),
    "AvgPool3d": (lambda: nn.AvgPool3d(2), volume), "BCELoss": (nn.BCELoss, probabilities),
    "BCEWithLogitsLoss": (lambda: nn.BCEWithLogitsLoss(pos_weight=torch.rand(6)), probabilities), "BatchNorm1d": (lambda: nn.BatchNorm1d(4), line),
    "BatchNorm2d": [(lambda: nn.BatchNorm2d(4), image), (lambda: nn.BatchNorm2d(4, track_running_stats=False), image)],
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), volume), "Bilinear": (lambda: nn.Bilinear(6, 6, 3), pair),
    "CTCLoss": (nn.CTCLoss, lambda n=2: (R(6, n, 5).log_softmax(2), torch.randint(1, 5, (n, 3)), torch.full((n,), 6), torch.full((n,), 3))),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), image), "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss, lambda n=2: (*pair(n), signs(n)[1][:, 0])),
    "CosineSimilarity": (nn.CosineSimilarity, pair), "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(3), image),
    "CrossEntropyLoss": [(nn.CrossEntropyLoss, classes), (lambda: nn.CrossEntropyLoss(weight=torch.rand(6), label_smoothing=0.1), classes)],
    "Dropout1d": (nn.Dropout1d, line), "Dropout2d": (nn.Dropout2d, image), "Dropout3d": (nn.Dropout3d, volume), "FeatureAlphaDropout": (nn.FeatureAlphaDropout, image),
    "Embedding": (lambda: nn.Embedding(10, 4, padding_idx=1), lambda n=2: (torch.randint(10, (n, 3)),)),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(10, 4, mode="mean"), lambda n=2: (torch.randint(10, (n, 3)),)),
    "Flatten": (nn.Flatten, image), "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), image), "Fold": (lambda: nn.Fold((4, 4), 2), lambda n=2: (R(n, 8, 9),)),
    "Unfold": (lambda: nn.Unfold(2), image), "FractionalMaxPool2d": (lambda: nn.FractionalMaxPool2d(2, output_size=3), image),
    "FractionalMaxPool3d": (lambda: nn.FractionalMaxPool3d(2, output_size=3), volume), "GLU": (nn.GLU, rows),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, lambda n=2: (*pair(n), torch.rand(n, 6) + 0.1)), "GroupNorm": (lambda: nn.GroupNorm(2, 4), image),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, signs), "HuberLoss": (nn.HuberLoss, pair),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4, affine=True), line), "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4, track_running_stats=True), image),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(4), volume), "KLDivLoss": (lambda: nn.KLDivLoss(reduction="batchmean"), probabilities), "L1Loss": (nn.L1Loss, pair),
    "LPPool1d": (lambda: nn.LPPool1d(2, 2), line), "LPPool2d": (lambda: nn.LPPool2d(2, 2), image), "LPPool3d": (lambda: nn.LPPool3d(2, 2), volume),
    "LayerNorm": (lambda: nn.LayerNorm(6), line), "RMSNorm": (lambda: nn.RMSNorm(6), line), "Linear": (lambda: nn.Linear(6, 3), line),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), image), "LogSoftmax": (lambda: nn.LogSoftmax(1), image), "MSELoss": (nn.MSELoss, pair),
    "MarginRankingLoss": (nn.MarginRankingLoss, lambda n=2: (*pair(n), signs(n)[1])), "MaxPool1d": (lambda: nn.MaxPool1d(2), line),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), image), "MaxPool3d": (lambda: nn.MaxPool3d(2), volume),
    "MaxUnpool1d": (lambda: nn.MaxUnpool1d(2), maxima(1)), "MaxUnpool2d": (lambda: nn.MaxUnpool2d(2), maxima(2)), "MaxUnpool3d": (lambda: nn.MaxUnpool3d(2), maxima(3)),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, lambda n=2: (R(n, 6), torch.tensor([[3, 1, -1, 0, 0, 0]] * n))),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, probabilities), "MultiMarginLoss": (nn.MultiMarginLoss, classes),
    "MultiheadAttention": [(lambda: nn.MultiheadAttention(6, 2, batch_first=True), lambda n=2: (R(n, 3, 6), R(n, 5, 6), R(n, 5, 6))),
                           (lambda: nn.MultiheadAttention(6, 2, kdim=4, vdim=5, add_bias_kv=True), lambda n=2: (R(3, n, 6), R(5, n, 4), R(5, n, 5)))],
    "NLLLoss": (nn.NLLLoss, classes), "NLLLoss2d": (nn.NLLLoss2d, lambda n=2: (R(n, 4, 3, 3), torch.randint(4, (n, 3, 3)))), "PairwiseDistance": (nn.PairwiseDistance, pair),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), image), "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), image), "PoissonNLLLoss": (nn.PoissonNLLLoss, probabilities),
    "SmoothL1Loss": (nn.SmoothL1Loss, pair), "SoftMarginLoss": (nn.SoftMarginLoss, whole_signs), "Softmax": (lambda: nn.Softmax(1), image), "Softmax2d": (nn.Softmax2d, image),
    "Softmin": (lambda: nn.Softmin(1), image), "Threshold": (lambda: nn.Threshold(0.1, 2.0), rows),
    "TripletMarginLoss": (nn.TripletMarginLoss, lambda n=2: (*pair(n), R(n, 6))),
    "TripletMarginWithDistanceLoss": (nn.TripletMarginWithDistanceLoss, lambda n=2: (*pair(n), R(n, 6))),
    "Sequential": (lambda: nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2)), rows),
    "AdaptiveLogSoftmaxWithLoss": (lambda: nn.AdaptiveLogSoftmaxWithLoss(6, 8, [2, 4]), lambda n=2: (R(n, 6), torch.randint(8, (n,)))),
    "Transformer": (lambda: nn.Transformer(4, 2, 1, 1, 8, dropout=0.0, batch_first=True), lambda n=2: (R(n, 3, 4), R(n, 2, 4))),
    "TransformerEncoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2), lambda n=2: (R(n, 3, 4),)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, norm_first=True), lambda n=2: (R(3, n, 4),)),
    "TransformerDecoder": (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 1), lambda n=2: (R(3, n, 4), R(2, n, 4))),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(4, 2, 8), lambda n=2: (R(3, n, 4), R(2, n, 4))),
    "Upsample": [(lambda: nn.Upsample(scale_factor=2, mode="bicubic"), image), (lambda: nn.Upsample(size=4), line)], "UpsamplingBilinear2d": (lambda: nn.UpsamplingBilinear2d(scale_factor=2), image),
    "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d(scale_factor=2), image),
    "RNNCell": (lambda: nn.RNNCell(6, 3), rows), "GRUCell": (lambda: nn.GRUCell(6, 3), rows), "LSTMCell": (lambda: nn.LSTMCell(6, 3), rows),
    "LinearCrossEntropyLoss": (lambda: nn.LinearCrossEntropyLoss(6, 4), lambda n=2: (R(n, 6), torch.randint(4, (n,)))),
}
for dims, inputs in ((1, line), (2, image), (3, volume)):
    TABLE |= {
        f"Conv{dims}d": (lambda dims=dims: getattr(nn, f"Conv{dims}d")(4, 6, 3, padding=1, groups=2), inputs),
        f"ConvTranspose{dims}d": (lambda dims=dims: getattr(nn, f"ConvTranspose{dims}d")(4, 6, 3, stride=2), inputs),
        f"LazyConv{dims}d": (lambda dims=dims: getattr(nn, f"LazyConv{dims}d")(6, 3), inputs),
        f"LazyConvTranspose{dims}d": (lambda dims=dims: getattr(nn, f"LazyConvTranspose{dims}d")(6, 3), inputs),
        f"LazyBatchNorm{dims}d": (getattr(nn, f"LazyBatchNorm{dims}d"), inputs), f"LazyInstanceNorm{dims}d": (getattr(nn, f"LazyInstanceNorm{dims}d"), inputs),
        f"ConstantPad{dims}d": (lambda dims=dims: getattr(nn, f"ConstantPad{dims}d")(1, 0.5), inputs),
    }
    for kind in ("CircularPad", "ReflectionPad", "ReplicationPad", "ZeroPad"):
        TABLE[f"{kind}{dims}d"] = (lambda kind=kind, dims=dims: getattr(nn, f"{kind}{dims}d")(1), inputs)
TABLE["LazyLinear"] = (lambda: nn.LazyLinear(3), line)
for name in ("RNN", "GRU", "LSTM"):
    TABLE[name] = [(lambda name=name: getattr(nn, name)(6, 3, num_layers=2, batch_first=True), lambda n=2: (R(n, 4, 6),)),
                   (lambda name=name: getattr(nn, name)(6, 3, bidirectional=True), lambda n=2: (R(4, n, 6),))]

LEFT_OUT = {
    "Module": "has no forward", "Container": "has no forward", "RNNBase": "has no forward", "RNNCellBase": "has no forward", "ModuleDict": "has no forward",
    "ModuleList": "has no forward", "ParameterDict": "has no forward", "ParameterList": "has no forward", "DataParallel": "spreads a module over devices",
    "SyncBatchNorm": "needs a group of processes",
}

# These decide by data, so that there is no graph of them; PyTorch refuses them too.
REFUSED = {"AdaptiveLogSoftmaxWithLoss": "which rows go to which cluster", "CTCLoss": "lengths are read from a tensor", "GaussianNLLLoss": "variances are checked"}


def leaves(tree):
    return [t for t in torch.utils._pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def call(function, module, inputs, seed):
    """Outputs, gradients of inputs and parameters, and buffers, after one call."""
    inputs = [x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
    module.zero_grad()
    torch.manual_seed(seed)
    outputs = leaves(function(*inputs))
    torch.manual_seed(0)
    loss = sum((t * R(t.shape)).sum() for t in outputs if t.requires_grad)
    if isinstance(loss, torch.Tensor):
        loss.backward()
    gradients = [x.grad for x in inputs] + [p.grad for p in module.parameters()]
    return [t.detach() for t in outputs], gradients, [b.clone() for b in module.buffers()]


def assert_same(got, want):
    for ours, theirs in zip(got, want, strict=True):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert (a is None) == (b is None)
            if a is not None:
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


CASES = [(name, i, training, dynamic) for name, entry in TABLE.items() if name not in REFUSED for i in range(len(entry) if isinstance(entry, list) else 1)
         for training in (True, False) for dynamic in (False, True)]


def test_every_module_is_in_the_table_or_has_a_reason():
    modules = {name for name in dir(nn) if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module)}
    assert modules == TABLE.keys() | LEFT_OUT.keys()
    assert not TABLE.keys() & LEFT_OUT.keys()


@pytest.mark.parametrize("name, number, training, dynamic", CASES, ids=lambda v: str(v))
def test_a_compiled_module_is_the_module(name, number, training, dynamic):
    entry = TABLE[name][number] if isinstance(TABLE[name], list) else TABLE[name]
    make, inputs = entry
    torch.manual_seed(1)
    module = make()
    if isinstance(module, nn.modules.lazy.LazyModuleMixin):
        module(*inputs())
    module.train(training)
    twin = copy.deepcopy(module)
    compiled = aot_module(twin, fw_compiler=lambda graph, _: graph, dynamic=dynamic)
    for seed, batch in ((2, 2), (3, 2), (4, 3)):
        torch.manual_seed(seed)
        given = inputs(batch)
        assert_same(call(compiled, twin, given, seed), call(module, module, given, seed))


@pytest.mark.parametrize("name", REFUSED)
def test_a_module_that_decides_by_data_is_refused(name):
    make, inputs = TABLE[name]
    with pytest.raises(RuntimeError):
        aot_module(make(), fw_compiler=lambda graph, _: graph)(*inputs())


def test_a_buffer_that_the_module_replaces_is_refused():
    class Counting(nn.Module):
        def __init__(self, in_place):
            super().__init__()
            self.in_place = in_place
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            self.seen = self.seen.add_(x.detach()) if self.in_place else self.seen + x.detach()
            return x + self.seen
    replacing, writing = Counting(False), Counting(True)
    with pytest.raises(NotImplementedError, match="gives itself another tensor as its seen"):
        aot_module(replacing, fw_compiler=lambda graph, _: graph)(torch.ones(3))
    assert replacing.seen.tolist() == [0, 0, 0]
    aot_module(writing, fw_compiler=lambda graph, _: graph)(torch.ones(3))
    torch.compile(replacing, backend="aot_eager")(torch.ones(3))
    assert writing.seen.tolist() == replacing.seen.tolist() == [1, 1, 1]
