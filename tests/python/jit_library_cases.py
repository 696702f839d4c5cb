"""Modules and functions that torch.jit.script takes, each with arguments: name -> (what makes it, what makes the arguments).

PyTorch 2.15 compiles every one of them, and the outcomes were compared with its own. Functions are written out, because the compiler reads source.
"""
import math
from typing import Tuple

import umbra as torch
from umbra import Tensor, nn
from umbra.nn import functional as F

CASES = {}


def X(*sizes):
    return (torch.arange(math.prod(sizes)).reshape(sizes) % 7 - 3) * 0.3


def P(*sizes):
    return torch.sigmoid(X(*sizes))


def I(count, below, *sizes):  # noqa: E743
    return torch.arange(count).reshape(sizes or (count,)) % below


def T(*shapes):
    return lambda: tuple(X(*s) for s in shapes)


def mod(name, make, args):
    assert name not in CASES, name
    CASES[name] = (make, args)


for a in ["ELU","Hardshrink","Hardsigmoid","Hardtanh","Hardswish","LeakyReLU","LogSigmoid","ReLU","ReLU6","RReLU","SELU","CELU","GELU","Sigmoid","SiLU","Mish","Softplus","Softshrink","Softsign","Tanh","Tanhshrink","Softmin","Softmax","LogSoftmax","Identity","Flatten"]:
    mod(a, lambda a=a: getattr(nn,a)(*([-1] if a.endswith("max") or a=="Softmin" else [])), T((2,3,4)))
mod("RReLU_eval", lambda: nn.RReLU().eval(), T((2,3)))
mod("RReLU_inplace", lambda: nn.RReLU(0.1,0.3,True), T((2,3)))
mod("PReLU", lambda: nn.PReLU(3), T((2,3,4)))
mod("Threshold", lambda: nn.Threshold(0.1,20.), T((2,3)))
mod("GLU", lambda: nn.GLU(), T((2,4)))
mod("Softmax2d", lambda: nn.Softmax2d(), T((2,3,4,4)))
mod("GELU_tanh", lambda: nn.GELU("tanh"), T((2,3)))
mod("ReLU_inplace", lambda: nn.ReLU(True), T((2,3)))
mod("Unflatten", lambda: nn.Unflatten(1,(2,2)), T((3,4)))
mod("Unflatten_size", lambda: nn.Unflatten(1,torch.Size([2,2])), T((3,4)))
mod("MultiheadAttention", lambda: nn.MultiheadAttention(4,2).eval(), lambda: (X(3,2,4),X(3,2,4),X(3,2,4)))
mod("MultiheadAttention_train", lambda: nn.MultiheadAttention(4,2), lambda: (X(3,2,4),X(3,2,4),X(3,2,4)))
mod("MultiheadAttention_bf_noweights", lambda: nn.MultiheadAttention(4,2,batch_first=True).eval(), lambda: (X(3,2,4),X(3,2,4),X(3,2,4),None,False))
mod("MultiheadAttention_kdim", lambda: nn.MultiheadAttention(4,2,kdim=3,vdim=5).eval(), lambda: (X(3,2,4),X(3,2,3),X(3,2,5)))
mod("MultiheadAttention_mask", lambda: nn.MultiheadAttention(4,2,batch_first=True).eval(), lambda: (X(2,3,4),X(2,3,4),X(2,3,4),torch.tensor([[False,False,True],[False,False,False]])))
mod("MultiheadAttention_biaskv", lambda: nn.MultiheadAttention(4,2,add_bias_kv=True,add_zero_attn=True).eval(), lambda: (X(3,2,4),X(3,2,4),X(3,2,4)))
for d in (1,2,3):
    s=(8,)*d
    mod(f"Conv{d}d", lambda d=d: getattr(nn,f"Conv{d}d")(2,4,3,stride=2,padding=1), T((2,2)+s))
    mod(f"Conv{d}d_same", lambda d=d: getattr(nn,f"Conv{d}d")(2,4,3,padding='same',bias=False), T((2,2)+s))
    mod(f"Conv{d}d_circular", lambda d=d: getattr(nn,f"Conv{d}d")(2,4,3,padding=1,padding_mode='circular'), T((2,2)+s))
    mod(f"Conv{d}d_groups", lambda d=d: getattr(nn,f"Conv{d}d")(4,4,3,groups=2,dilation=2), T((2,4)+s))
    mod(f"ConvTranspose{d}d", lambda d=d: getattr(nn,f"ConvTranspose{d}d")(2,4,3,stride=2,padding=1,output_padding=1), T((2,2)+s))
    mod(f"BatchNorm{d}d", lambda d=d: getattr(nn,f"BatchNorm{d}d")(2), T((2,2)+s))
    mod(f"BatchNorm{d}d_eval", lambda d=d: getattr(nn,f"BatchNorm{d}d")(2).eval(), T((2,2)+s))
    mod(f"BatchNorm{d}d_nostats", lambda d=d: getattr(nn,f"BatchNorm{d}d")(2,track_running_stats=False,affine=False), T((2,2)+s))
    mod(f"BatchNorm{d}d_cumulative", lambda d=d: getattr(nn,f"BatchNorm{d}d")(2,momentum=None), T((2,2)+s))
    mod(f"InstanceNorm{d}d", lambda d=d: getattr(nn,f"InstanceNorm{d}d")(2), T((2,2)+s))
    mod(f"InstanceNorm{d}d_affine", lambda d=d: getattr(nn,f"InstanceNorm{d}d")(2,affine=True,track_running_stats=True), T((2,2)+s))
    mod(f"MaxPool{d}d", lambda d=d: getattr(nn,f"MaxPool{d}d")(3,2,padding=1), T((2,2)+s))
    mod(f"MaxPool{d}d_indices", lambda d=d: getattr(nn,f"MaxPool{d}d")(2,return_indices=True), T((2,2)+s))
    mod(f"AvgPool{d}d", lambda d=d: getattr(nn,f"AvgPool{d}d")(3,2), T((2,2)+s))
    mod(f"LPPool{d}d", lambda d=d: getattr(nn,f"LPPool{d}d")(2,3,2), lambda s=s: (X(*((2,2)+s)).abs(),))
    mod(f"AdaptiveAvgPool{d}d", lambda d=d: getattr(nn,f"AdaptiveAvgPool{d}d")(3), T((2,2)+s))
    mod(f"AdaptiveMaxPool{d}d", lambda d=d: getattr(nn,f"AdaptiveMaxPool{d}d")(3), T((2,2)+s))
    mod(f"AdaptiveMaxPool{d}d_indices", lambda d=d: getattr(nn,f"AdaptiveMaxPool{d}d")(3,return_indices=True), T((2,2)+s))
    mod(f"ConstantPad{d}d", lambda d=d: getattr(nn,f"ConstantPad{d}d")(1,2.5), T((2,2)+s))
    mod(f"ZeroPad{d}d", lambda d=d: getattr(nn,f"ZeroPad{d}d")(1), T((2,2)+s))
    mod(f"ReflectionPad{d}d", lambda d=d: getattr(nn,f"ReflectionPad{d}d")(1), T((2,2)+s))
    mod(f"ReplicationPad{d}d", lambda d=d: getattr(nn,f"ReplicationPad{d}d")(1), T((2,2)+s))
    mod(f"CircularPad{d}d", lambda d=d: getattr(nn,f"CircularPad{d}d")(1), T((2,2)+s))
    mod(f"Dropout{d}d" if d>1 else "Dropout1d", lambda d=d: getattr(nn,f"Dropout{d}d")().eval(), T((2,2)+s))
    mod(f"LazyConv{d}d", lambda d=d: getattr(nn,f"LazyConv{d}d")(4,3), T((2,2)+s))
    mod(f"LazyBatchNorm{d}d", lambda d=d: getattr(nn,f"LazyBatchNorm{d}d")(), T((2,2)+s))
mod("FractionalMaxPool2d", lambda: nn.FractionalMaxPool2d(2,output_size=(3,3)), T((2,2,8,8)))
mod("FractionalMaxPool2d_ratio", lambda: nn.FractionalMaxPool2d(2,output_ratio=0.5,return_indices=True), T((2,2,8,8)))
mod("FractionalMaxPool3d", lambda: nn.FractionalMaxPool3d(2,output_size=(3,3,3)), T((2,2,8,8,8)))
for a in ["Dropout","AlphaDropout","FeatureAlphaDropout"]:
    mod(a, lambda a=a: getattr(nn,a)(0.3), T((4,5)))
    mod(a+"_eval", lambda a=a: getattr(nn,a)(0.3).eval(), T((4,5)))
mod("Dropout_inplace", lambda: nn.Dropout(0.4,True), T((4,5)))
mod("GroupNorm", lambda: nn.GroupNorm(2,4), T((2,4,3)))
mod("LayerNorm", lambda: nn.LayerNorm([3,4]), T((2,3,4)))
mod("LayerNorm_plain", lambda: nn.LayerNorm(4,elementwise_affine=False), T((2,3,4)))
mod("RMSNorm", lambda: nn.RMSNorm(4), T((2,3,4)))
mod("LocalResponseNorm", lambda: nn.LocalResponseNorm(2), T((2,4,3)))
mod("Linear", lambda: nn.Linear(4,3), T((2,4)))
mod("Linear_nobias", lambda: nn.Linear(4,3,bias=False), T((2,4)))
mod("LazyLinear", lambda: nn.LazyLinear(3), T((2,4)))
mod("Bilinear", lambda: nn.Bilinear(4,3,2), T((2,4),(2,3)))
mod("Embedding", lambda: nn.Embedding(5,3,padding_idx=1), lambda: (I(6,5,2,3),))
mod("Embedding_maxnorm", lambda: nn.Embedding(5,3,max_norm=0.5), lambda: (I(6,5,2,3),))
for m in ("sum","mean","max"):
    mod(f"EmbeddingBag_{m}", lambda m=m: nn.EmbeddingBag(5,3,mode=m), lambda: (I(6,5),torch.tensor([0,2,5])))
mod("EmbeddingBag_2d", lambda: nn.EmbeddingBag(5,3), lambda: (I(6,5,2,3),))
mod("EmbeddingBag_weights", lambda: nn.EmbeddingBag(5,3,mode="sum",include_last_offset=True), lambda: (I(6,5),torch.tensor([0,2,6]),X(6)))
mod("CosineSimilarity", lambda: nn.CosineSimilarity(), T((2,4),(2,4)))
mod("PairwiseDistance", lambda: nn.PairwiseDistance(), T((2,4),(2,4)))
mod("PixelShuffle", lambda: nn.PixelShuffle(2), T((2,8,3,3)))
mod("PixelUnshuffle", lambda: nn.PixelUnshuffle(2), T((2,2,4,4)))
mod("ChannelShuffle", lambda: nn.ChannelShuffle(2), T((2,4,3,3)))
mod("Fold", lambda: nn.Fold((4,5),(2,2)), T((1,12,12)))
mod("Unfold", lambda: nn.Unfold((2,3)), T((2,5,3,4)))
for mode in ("nearest","nearest-exact","bilinear","bicubic"):
    mod(f"Upsample_{mode}", lambda mode=mode: nn.Upsample(scale_factor=2.0,mode=mode), T((1,2,3,3)))
mod("Upsample_size", lambda: nn.Upsample(size=(5,5)), T((1,2,3,3)))
mod("Upsample_linear", lambda: nn.Upsample(size=5,mode="linear",align_corners=True), T((1,2,3)))
mod("Upsample_trilinear", lambda: nn.Upsample(scale_factor=2,mode="trilinear"), T((1,2,3,3,3)))
mod("UpsamplingNearest2d", lambda: nn.UpsamplingNearest2d(scale_factor=2), T((1,2,3,3)))
mod("UpsamplingBilinear2d", lambda: nn.UpsamplingBilinear2d(size=(5,6)), T((1,2,3,3)))
for r in ("RNN","LSTM","GRU"):
    mod(r+"Cell", lambda r=r: getattr(nn,r+"Cell")(3,4), T((2,3)))
mod("LSTMCell_state", lambda: nn.LSTMCell(3,4), lambda: (X(2,3),(X(2,4),X(2,4))))
mod("TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(4,2,8).eval(), T((3,2,4)))
mod("TransformerEncoderLayer_train", lambda: nn.TransformerEncoderLayer(4,2,8,dropout=0.0,norm_first=True), T((3,2,4)))
mod("TransformerEncoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4,2,8,batch_first=True),2).eval(), T((3,2,4)))
mod("TransformerDecoderLayer", lambda: nn.TransformerDecoderLayer(4,2,8).eval(), T((3,2,4),(3,2,4)))
mod("TransformerDecoder", lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4,2,8),2).eval(), T((3,2,4),(3,2,4)))
mod("Transformer", lambda: nn.Transformer(4,2,1,1,8).eval(), T((3,2,4),(3,2,4)))
# losses
mod("L1Loss", lambda: nn.L1Loss(), T((2,3),(2,3)))
mod("MSELoss", lambda: nn.MSELoss(reduction="sum"), lambda: (X(2,3),P(2,3)))
mod("CrossEntropyLoss", lambda: nn.CrossEntropyLoss(label_smoothing=0.1), lambda: (X(3,4),I(3,4)))
mod("CrossEntropyLoss_weight", lambda: nn.CrossEntropyLoss(weight=torch.tensor([1.,2.,3.,4.]),ignore_index=1), lambda: (X(3,4),I(3,4)))
mod("CTCLoss", lambda: nn.CTCLoss(), lambda: (X(5,2,4).log_softmax(-1),torch.tensor([[1,2],[3,1]]),torch.tensor([5,5]),torch.tensor([2,2])))
mod("NLLLoss", lambda: nn.NLLLoss(), lambda: (X(3,4).log_softmax(-1),I(3,4)))
mod("NLLLoss2d", lambda: nn.NLLLoss2d(), lambda: (X(2,4,2,2).log_softmax(1),I(8,4,2,2,2)))
mod("PoissonNLLLoss", lambda: nn.PoissonNLLLoss(full=True), lambda: (X(2,3),P(2,3)*4))
mod("KLDivLoss", lambda: nn.KLDivLoss(reduction="batchmean"), lambda: (X(2,3).log_softmax(-1),P(2,3)))
mod("KLDivLoss_log", lambda: nn.KLDivLoss(log_target=True), lambda: (X(2,3).log_softmax(-1),P(2,3).log()))
mod("BCELoss", lambda: nn.BCELoss(), lambda: (P(2,3),P(2,3)))
mod("BCEWithLogitsLoss", lambda: nn.BCEWithLogitsLoss(pos_weight=torch.ones(3)*2), lambda: (X(2,3),P(2,3)))
mod("MarginRankingLoss", lambda: nn.MarginRankingLoss(0.1), lambda: (X(3),P(3),torch.tensor([1.,-1.,1.])))
mod("HingeEmbeddingLoss", lambda: nn.HingeEmbeddingLoss(), lambda: (X(3),torch.tensor([1.,-1.,1.])))
mod("MultiLabelMarginLoss", lambda: nn.MultiLabelMarginLoss(), lambda: (X(1,4),torch.tensor([[3,0,-1,1]])))
mod("HuberLoss", lambda: nn.HuberLoss(delta=0.3), lambda: (X(2,3),P(2,3)))
mod("SmoothL1Loss", lambda: nn.SmoothL1Loss(beta=0.5), lambda: (X(2,3),P(2,3)))
mod("SoftMarginLoss", lambda: nn.SoftMarginLoss(), lambda: (X(3),torch.tensor([1.,-1.,1.])))
mod("MultiLabelSoftMarginLoss", lambda: nn.MultiLabelSoftMarginLoss(), lambda: (X(2,3),(P(2,3)>0.5).float()))
mod("CosineEmbeddingLoss", lambda: nn.CosineEmbeddingLoss(), lambda: (X(2,3),P(2,3),torch.tensor([1.,-1.])))
mod("MultiMarginLoss", lambda: nn.MultiMarginLoss(), lambda: (X(3,4),I(3,4)))
mod("TripletMarginLoss", lambda: nn.TripletMarginLoss(swap=True), lambda: (X(2,3),P(2,3),P(2,3)*2))
mod("Sequential", lambda: nn.Sequential(nn.Linear(4,4),nn.ReLU(),nn.Sequential(nn.Linear(4,2))), T((2,4)))
mod("Sequential_empty", lambda: nn.Sequential(), T((2,4)))


def f_conv1d(x, w):
    return F.conv1d(x, w, stride=2, padding=1)


CASES["F.conv1d"] = (lambda: f_conv1d, lambda: (X(2,3,8), X(4,3,3),))


def f_conv2d_same(x, w):
    return F.conv2d(x, w, padding="same")


CASES["F.conv2d_same"] = (lambda: f_conv2d_same, lambda: (X(2,3,8,8), X(4,3,3,3),))


def f_conv_transpose2d(x, w):
    return F.conv_transpose2d(x, w, stride=2)


CASES["F.conv_transpose2d"] = (lambda: f_conv_transpose2d, lambda: (X(2,3,4,4), X(3,2,3,3),))


def f_conv_tbc(x, w, b):
    return F.conv_tbc(x, w, b)


CASES["F.conv_tbc"] = (lambda: f_conv_tbc, lambda: (X(5,2,3), X(2,3,4), X(4),))


def f_avg_pool2d(x):
    return F.avg_pool2d(x, 2, ceil_mode=True)


CASES["F.avg_pool2d"] = (lambda: f_avg_pool2d, lambda: (X(1,2,5,5),))


def f_max_pool2d(x):
    return F.max_pool2d(x, 2, 2)


CASES["F.max_pool2d"] = (lambda: f_max_pool2d, lambda: (X(1,2,5,5),))


def f_max_pool2d_idx(x):
    return F.max_pool2d(x, 2, return_indices=True)


CASES["F.max_pool2d_idx"] = (lambda: f_max_pool2d_idx, lambda: (X(1,2,4,4),))


def f_max_pool1d_with_indices(x):
    return F.max_pool1d_with_indices(x, 2)


CASES["F.max_pool1d_with_indices"] = (lambda: f_max_pool1d_with_indices, lambda: (X(1,2,4),))


def f_lp_pool1d(x):
    return F.lp_pool1d(x, 2.0, 2)


CASES["F.lp_pool1d"] = (lambda: f_lp_pool1d, lambda: (X(1,2,6).abs(),))


def f_lp_pool2d(x):
    return F.lp_pool2d(x, 3, 2, 2)


CASES["F.lp_pool2d"] = (lambda: f_lp_pool2d, lambda: (X(1,2,6,6).abs(),))


def f_lp_pool2d_list(x):
    return F.lp_pool2d(x, 2, [2, 3])


CASES["F.lp_pool2d_list"] = (lambda: f_lp_pool2d_list, lambda: (X(1,2,6,6).abs(),))


def f_lp_pool3d(x):
    return F.lp_pool3d(x, 2.0, 2)


CASES["F.lp_pool3d"] = (lambda: f_lp_pool3d, lambda: (X(1,2,4,4,4).abs(),))


def f_adaptive_max_pool1d(x):
    return F.adaptive_max_pool1d(x, 2)


CASES["F.adaptive_max_pool1d"] = (lambda: f_adaptive_max_pool1d, lambda: (X(1,2,6),))


def f_adaptive_max_pool2d_idx(x):
    return F.adaptive_max_pool2d(x, [2, 2], return_indices=True)


CASES["F.adaptive_max_pool2d_idx"] = (lambda: f_adaptive_max_pool2d_idx, lambda: (X(1,2,6,6),))


def f_adaptive_avg_pool2d(x):
    return F.adaptive_avg_pool2d(x, [2, 3])


CASES["F.adaptive_avg_pool2d"] = (lambda: f_adaptive_avg_pool2d, lambda: (X(1,2,6,6),))


def f_adaptive_avg_pool3d(x):
    return F.adaptive_avg_pool3d(x, [2, 3, 1])


CASES["F.adaptive_avg_pool3d"] = (lambda: f_adaptive_avg_pool3d, lambda: (X(1,2,6,6,6),))


def f_fractional_max_pool2d(x, r):
    return F.fractional_max_pool2d(x, [2, 2], output_size=[3, 3], _random_samples=r)


CASES["F.fractional_max_pool2d"] = (lambda: f_fractional_max_pool2d, lambda: (X(1,2,7,7), P(1,2,2),))


def f_unfold(x):
    return F.unfold(x, [2, 2])


CASES["F.unfold"] = (lambda: f_unfold, lambda: (X(1,2,4,4),))


def f_fold(x):
    return F.fold(x, [4, 5], [2, 2])


CASES["F.fold"] = (lambda: f_fold, lambda: (X(1,12,12),))


def f_sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


CASES["F.sdpa"] = (lambda: f_sdpa, lambda: (X(1,2,3,4), X(1,2,3,4), X(1,2,3,4),))


def f_threshold(x):
    return F.threshold(x, 0.1, 20.0)


CASES["F.threshold"] = (lambda: f_threshold, lambda: (X(2,3),))


def f_relu_inplace(x):
    return F.relu(x.clone(), inplace=True)


CASES["F.relu_inplace"] = (lambda: f_relu_inplace, lambda: (X(2,3),))


def f_hardtanh(x):
    return F.hardtanh(x, -0.5, 0.5)


CASES["F.hardtanh"] = (lambda: f_hardtanh, lambda: (X(2,3),))


def f_hardswish(x):
    return F.hardswish(x)


CASES["F.hardswish"] = (lambda: f_hardswish, lambda: (X(2,3),))


def f_relu6(x):
    return F.relu6(x)


CASES["F.relu6"] = (lambda: f_relu6, lambda: (X(2,3),))


def f_elu(x):
    return F.elu(x, 0.5)


CASES["F.elu"] = (lambda: f_elu, lambda: (X(2,3),))


def f_selu(x):
    return F.selu(x)


CASES["F.selu"] = (lambda: f_selu, lambda: (X(2,3),))


def f_celu(x):
    return F.celu(x, 0.7)


CASES["F.celu"] = (lambda: f_celu, lambda: (X(2,3),))


def f_leaky_relu(x):
    return F.leaky_relu(x, 0.2)


CASES["F.leaky_relu"] = (lambda: f_leaky_relu, lambda: (X(2,3),))


def f_prelu(x, w):
    return F.prelu(x, w)


CASES["F.prelu"] = (lambda: f_prelu, lambda: (X(2,3), X(3),))


def f_rrelu(x):
    return F.rrelu(x, 0.1, 0.3, False)


CASES["F.rrelu"] = (lambda: f_rrelu, lambda: (X(2,3),))


def f_rrelu_train(x):
    return F.rrelu(x, 0.1, 0.3, True)


CASES["F.rrelu_train"] = (lambda: f_rrelu_train, lambda: (X(2,3),))


def f_glu(x):
    return F.glu(x, -1)


CASES["F.glu"] = (lambda: f_glu, lambda: (X(2,4),))


def f_gelu(x):
    return F.gelu(x, approximate="tanh")


CASES["F.gelu"] = (lambda: f_gelu, lambda: (X(2,3),))


def f_logsigmoid(x):
    return F.logsigmoid(x)


CASES["F.logsigmoid"] = (lambda: f_logsigmoid, lambda: (X(2,3),))


def f_hardshrink(x):
    return F.hardshrink(x, 0.4)


CASES["F.hardshrink"] = (lambda: f_hardshrink, lambda: (X(2,3),))


def f_tanhshrink(x):
    return F.tanhshrink(x)


CASES["F.tanhshrink"] = (lambda: f_tanhshrink, lambda: (X(2,3),))


def f_softsign(x):
    return F.softsign(x)


CASES["F.softsign"] = (lambda: f_softsign, lambda: (X(2,3),))


def f_softplus(x):
    return F.softplus(x, 2, 10)


CASES["F.softplus"] = (lambda: f_softplus, lambda: (X(2,3),))


def f_softmin(x):
    return F.softmin(x, dim=1)


CASES["F.softmin"] = (lambda: f_softmin, lambda: (X(2,3),))


def f_softmax(x):
    return F.softmax(x, dim=1)


CASES["F.softmax"] = (lambda: f_softmax, lambda: (X(2,3),))


def f_softmax_dtype(x):
    return F.softmax(x, dim=1, dtype=torch.float64)


CASES["F.softmax_dtype"] = (lambda: f_softmax_dtype, lambda: (X(2,3),))


def f_softmax_nodim(x):
    return F.softmax(x)


CASES["F.softmax_nodim"] = (lambda: f_softmax_nodim, lambda: (X(2,3),))


def f_log_softmax(x):
    return F.log_softmax(x, dim=-1)


CASES["F.log_softmax"] = (lambda: f_log_softmax, lambda: (X(2,3),))


def f_softshrink(x):
    return F.softshrink(x, 0.3)


CASES["F.softshrink"] = (lambda: f_softshrink, lambda: (X(2,3),))


def f_gumbel_softmax(x):
    return F.gumbel_softmax(x, hard=True)


CASES["F.gumbel_softmax"] = (lambda: f_gumbel_softmax, lambda: (X(2,3),))


def f_tanh(x):
    return F.tanh(x)


CASES["F.tanh"] = (lambda: f_tanh, lambda: (X(2,3),))


def f_sigmoid(x):
    return F.sigmoid(x)


CASES["F.sigmoid"] = (lambda: f_sigmoid, lambda: (X(2,3),))


def f_hardsigmoid(x):
    return F.hardsigmoid(x)


CASES["F.hardsigmoid"] = (lambda: f_hardsigmoid, lambda: (X(2,3),))


def f_silu(x):
    return F.silu(x)


CASES["F.silu"] = (lambda: f_silu, lambda: (X(2,3),))


def f_mish(x):
    return F.mish(x)


CASES["F.mish"] = (lambda: f_mish, lambda: (X(2,3),))


def f_batch_norm(x, m, v):
    return F.batch_norm(x, m, v, training=True)


CASES["F.batch_norm"] = (lambda: f_batch_norm, lambda: (X(4,3), X(3), X(3).abs()+1,))


def f_group_norm(x):
    return F.group_norm(x, 2)


CASES["F.group_norm"] = (lambda: f_group_norm, lambda: (X(2,4,3),))


def f_instance_norm(x):
    return F.instance_norm(x)


CASES["F.instance_norm"] = (lambda: f_instance_norm, lambda: (X(2,4,3),))


def f_layer_norm(x):
    return F.layer_norm(x, [3])


CASES["F.layer_norm"] = (lambda: f_layer_norm, lambda: (X(2,4,3),))


def f_rms_norm(x):
    return F.rms_norm(x, [3])


CASES["F.rms_norm"] = (lambda: f_rms_norm, lambda: (X(2,4,3),))


def f_local_response_norm(x):
    return F.local_response_norm(x, 2)


CASES["F.local_response_norm"] = (lambda: f_local_response_norm, lambda: (X(2,4,3),))


def f_normalize(x):
    return F.normalize(x, p=2.0, dim=1)


CASES["F.normalize"] = (lambda: f_normalize, lambda: (X(2,3),))


def f_linear(x, w, b):
    return F.linear(x, w, b)


CASES["F.linear"] = (lambda: f_linear, lambda: (X(2,3), X(4,3), X(4),))


def f_bilinear(x, y, w):
    return F.bilinear(x, y, w)


CASES["F.bilinear"] = (lambda: f_bilinear, lambda: (X(2,3), X(2,4), X(5,3,4),))


def f_dropout(x):
    return F.dropout(x, 0.5, False)


CASES["F.dropout"] = (lambda: f_dropout, lambda: (X(2,3),))


def f_dropout_train(x):
    return F.dropout(x, 0.5, True)


CASES["F.dropout_train"] = (lambda: f_dropout_train, lambda: (X(4,5),))


def f_alpha_dropout(x):
    return F.alpha_dropout(x, 0.5, True)


CASES["F.alpha_dropout"] = (lambda: f_alpha_dropout, lambda: (X(4,5),))


def f_feature_alpha_dropout(x):
    return F.feature_alpha_dropout(x, 0.5, True)


CASES["F.feature_alpha_dropout"] = (lambda: f_feature_alpha_dropout, lambda: (X(4,5),))


def f_dropout1d(x):
    return F.dropout1d(x, 0.5, True)


CASES["F.dropout1d"] = (lambda: f_dropout1d, lambda: (X(4,5,2),))


def f_dropout2d(x):
    return F.dropout2d(x, 0.5, True)


CASES["F.dropout2d"] = (lambda: f_dropout2d, lambda: (X(4,5,2,2),))


def f_dropout3d(x):
    return F.dropout3d(x, 0.5, True)


CASES["F.dropout3d"] = (lambda: f_dropout3d, lambda: (X(4,5,2,2,2),))


def f_embedding(i, w):
    return F.embedding(i, w, padding_idx=0)


CASES["F.embedding"] = (lambda: f_embedding, lambda: (I(6,4), X(4,3),))


def f_embedding_bag(i, w, o):
    return F.embedding_bag(i, w, o, mode="sum")


CASES["F.embedding_bag"] = (lambda: f_embedding_bag, lambda: (I(6,4), X(4,3), torch.tensor([0,3]),))


def f_one_hot(i):
    return F.one_hot(i, 5)


CASES["F.one_hot"] = (lambda: f_one_hot, lambda: (I(6,4),))


def f_cosine_similarity(x, y):
    return F.cosine_similarity(x, y)


CASES["F.cosine_similarity"] = (lambda: f_cosine_similarity, lambda: (X(2,3), P(2,3),))


def f_pdist(x):
    return F.pdist(x)


CASES["F.pdist"] = (lambda: f_pdist, lambda: (X(4,3),))


def f_pairwise_distance(x, y):
    return F.pairwise_distance(x, y, keepdim=True)


CASES["F.pairwise_distance"] = (lambda: f_pairwise_distance, lambda: (X(2,3), P(2,3),))


def f_binary_cross_entropy(x, y):
    return F.binary_cross_entropy(x, y)


CASES["F.binary_cross_entropy"] = (lambda: f_binary_cross_entropy, lambda: (P(2,3), P(2,3),))


def f_binary_cross_entropy_with_logits(x, y):
    return F.binary_cross_entropy_with_logits(x, y)


CASES["F.binary_cross_entropy_with_logits"] = (lambda: f_binary_cross_entropy_with_logits, lambda: (X(2,3), P(2,3),))


def f_poisson_nll_loss(x, y):
    return F.poisson_nll_loss(x, y)


CASES["F.poisson_nll_loss"] = (lambda: f_poisson_nll_loss, lambda: (X(2,3), P(2,3),))


def f_cosine_embedding_loss(x, y, t):
    return F.cosine_embedding_loss(x, y, t)


CASES["F.cosine_embedding_loss"] = (lambda: f_cosine_embedding_loss, lambda: (X(2,3), P(2,3), torch.tensor([1.,-1.]),))


def f_cross_entropy(x, t):
    return F.cross_entropy(x, t, reduction="sum")


CASES["F.cross_entropy"] = (lambda: f_cross_entropy, lambda: (X(3,4), I(3,4),))


def f_cross_entropy_prob(x, t):
    return F.cross_entropy(x, t, label_smoothing=0.1)


CASES["F.cross_entropy_prob"] = (lambda: f_cross_entropy_prob, lambda: (X(3,4), P(3,4),))


def f_ctc_loss(x, t, a, b):
    return F.ctc_loss(x, t, a, b)


CASES["F.ctc_loss"] = (lambda: f_ctc_loss, lambda: (X(5,2,4).log_softmax(-1),torch.tensor([[1,2],[3,1]]),torch.tensor([5,5]),torch.tensor([2,2]),))


def f_hinge_embedding_loss(x, t):
    return F.hinge_embedding_loss(x, t)


CASES["F.hinge_embedding_loss"] = (lambda: f_hinge_embedding_loss, lambda: (X(3),torch.tensor([1.,-1.,1.]),))


def f_kl_div(x, y):
    return F.kl_div(x, y, reduction="batchmean")


CASES["F.kl_div"] = (lambda: f_kl_div, lambda: (X(2,3).log_softmax(-1), P(2,3),))


def f_l1_loss(x, y):
    return F.l1_loss(x, y, reduction="none")


CASES["F.l1_loss"] = (lambda: f_l1_loss, lambda: (X(2,3), P(2,3),))


def f_mse_loss(x, y):
    return F.mse_loss(x, y)


CASES["F.mse_loss"] = (lambda: f_mse_loss, lambda: (X(2,3), P(2,3),))


def f_mse_loss_weight(x, y, w):
    return F.mse_loss(x, y, weight=w)


CASES["F.mse_loss_weight"] = (lambda: f_mse_loss_weight, lambda: (X(2,3), P(2,3), P(2,3),))


def f_margin_ranking_loss(x, y, t):
    return F.margin_ranking_loss(x, y, t, margin=0.2)


CASES["F.margin_ranking_loss"] = (lambda: f_margin_ranking_loss, lambda: (X(3), P(3), torch.tensor([1.,-1.,1.]),))


def f_multilabel_margin_loss(x, t):
    return F.multilabel_margin_loss(x, t)


CASES["F.multilabel_margin_loss"] = (lambda: f_multilabel_margin_loss, lambda: (X(1,4), torch.tensor([[3,0,-1,1]]),))


def f_multilabel_soft_margin_loss(x, t):
    return F.multilabel_soft_margin_loss(x, t)


CASES["F.multilabel_soft_margin_loss"] = (lambda: f_multilabel_soft_margin_loss, lambda: (X(2,3), (P(2,3)>0.5).float(),))


def f_multi_margin_loss(x, t):
    return F.multi_margin_loss(x, t)


CASES["F.multi_margin_loss"] = (lambda: f_multi_margin_loss, lambda: (X(3,4), I(3,4),))


def f_nll_loss(x, t):
    return F.nll_loss(x, t)


CASES["F.nll_loss"] = (lambda: f_nll_loss, lambda: (X(3,4).log_softmax(-1), I(3,4),))


def f_huber_loss(x, y):
    return F.huber_loss(x, y, delta=0.2)


CASES["F.huber_loss"] = (lambda: f_huber_loss, lambda: (X(2,3), P(2,3),))


def f_smooth_l1_loss(x, y):
    return F.smooth_l1_loss(x, y, beta=0.0)


CASES["F.smooth_l1_loss"] = (lambda: f_smooth_l1_loss, lambda: (X(2,3), P(2,3),))


def f_soft_margin_loss(x, t):
    return F.soft_margin_loss(x, t)


CASES["F.soft_margin_loss"] = (lambda: f_soft_margin_loss, lambda: (X(3),torch.tensor([1.,-1.,1.]),))


def f_triplet_margin_loss(x, y, z):
    return F.triplet_margin_loss(x, y, z)


CASES["F.triplet_margin_loss"] = (lambda: f_triplet_margin_loss, lambda: (X(2,3), P(2,3), P(2,3)*2,))


def f_pixel_shuffle(x):
    return F.pixel_shuffle(x, 2)


CASES["F.pixel_shuffle"] = (lambda: f_pixel_shuffle, lambda: (X(1,4,2,2),))


def f_pixel_unshuffle(x):
    return F.pixel_unshuffle(x, 2)


CASES["F.pixel_unshuffle"] = (lambda: f_pixel_unshuffle, lambda: (X(1,1,4,4),))


def f_channel_shuffle(x):
    return F.channel_shuffle(x, 2)


CASES["F.channel_shuffle"] = (lambda: f_channel_shuffle, lambda: (X(1,4,2,2),))


def f_pad(x):
    return F.pad(x, [1, 2])


CASES["F.pad"] = (lambda: f_pad, lambda: (X(1,2,4),))


def f_pad_mode(x):
    return F.pad(x, [1, 2], "reflect")


CASES["F.pad_mode"] = (lambda: f_pad_mode, lambda: (X(1,2,4),))


def f_pad_value(x):
    return F.pad(x, [1, 2, 0, 1], "constant", 1.5)


CASES["F.pad_value"] = (lambda: f_pad_value, lambda: (X(1,2,4),))


def f_interpolate(x):
    return F.interpolate(x, scale_factor=2.0)


CASES["F.interpolate"] = (lambda: f_interpolate, lambda: (X(1,2,3,3),))


def f_interpolate_size(x):
    return F.interpolate(x, size=[5, 5], mode="bilinear", align_corners=False)


CASES["F.interpolate_size"] = (lambda: f_interpolate_size, lambda: (X(1,2,3,3),))


def f_interpolate_int(x):
    return F.interpolate(x, size=5)


CASES["F.interpolate_int"] = (lambda: f_interpolate_int, lambda: (X(1,2,3,3),))


def f_interpolate_aa(x):
    return F.interpolate(x, size=[2, 2], mode="bilinear", antialias=True)


CASES["F.interpolate_aa"] = (lambda: f_interpolate_aa, lambda: (X(1,2,5,5),))


def f_interpolate_rsf(x):
    return F.interpolate(x, scale_factor=[2.0, 1.5], mode="bilinear", recompute_scale_factor=True)


CASES["F.interpolate_rsf"] = (lambda: f_interpolate_rsf, lambda: (X(1,2,3,3),))


def f_interpolate_area(x):
    return F.interpolate(x, size=[2, 2], mode="area")


CASES["F.interpolate_area"] = (lambda: f_interpolate_area, lambda: (X(1,2,4,4),))


def f_upsample(x):
    return F.upsample(x, scale_factor=2.0)


CASES["F.upsample"] = (lambda: f_upsample, lambda: (X(1,2,3,3),))


def f_grid_sample(x, g):
    return F.grid_sample(x, g, align_corners=False)


CASES["F.grid_sample"] = (lambda: f_grid_sample, lambda: (X(1,2,3,3), X(1,2,2,2),))


def f_grid_sample_mode(x, g):
    return F.grid_sample(x, g, mode="nearest", padding_mode="border", align_corners=True)


CASES["F.grid_sample_mode"] = (lambda: f_grid_sample_mode, lambda: (X(1,2,3,3), X(1,2,2,2),))


def f_grid_sample_none(x, g):
    return F.grid_sample(x, g)


CASES["F.grid_sample_none"] = (lambda: f_grid_sample_none, lambda: (X(1,2,3,3), X(1,2,2,2),))


def f_affine_grid(t):
    return F.affine_grid(t, [1, 1, 2, 2], align_corners=False)


CASES["F.affine_grid"] = (lambda: f_affine_grid, lambda: (X(1,2,3),))


def f_max_unpool2d(x, i):
    return F.max_unpool2d(x, i, [2, 2])


CASES["F.max_unpool2d"] = (lambda: f_max_unpool2d, lambda: (X(1,1,2,2), torch.tensor([[[[0,3],[8,11]]]]),))


def f_max_unpool1d(x, i):
    return F.max_unpool1d(x, i, [2])


CASES["F.max_unpool1d"] = (lambda: f_max_unpool1d, lambda: (X(1,1,2), torch.tensor([[[0,3]]]),))


def f_cdist(x, y):
    return torch.cdist(x, y)


CASES["F.cdist"] = (lambda: f_cdist, lambda: (X(3,4), X(2,4),))


def f_einsum(x, y):
    return torch.einsum("ij,jk->ik", x, y)


CASES["F.einsum"] = (lambda: f_einsum, lambda: (X(3,4), X(4,2),))


def f_tensordot(x, y):
    return torch.tensordot(x, y, dims=1)


CASES["F.tensordot"] = (lambda: f_tensordot, lambda: (X(3,4), X(4,2),))


def f_norm(x):
    return torch.norm(x, dim=1)


CASES["F.norm"] = (lambda: f_norm, lambda: (X(3,4),))


def f_norm_p(x):
    return torch.norm(x, p="fro")


CASES["F.norm_p"] = (lambda: f_norm_p, lambda: (X(3,4),))


def f_split(x):
    return torch.split(x, 2)


CASES["F.split"] = (lambda: f_split, lambda: (X(5,2),))


def f_split_sizes(x):
    return torch.split(x, [1, 4])


CASES["F.split_sizes"] = (lambda: f_split_sizes, lambda: (X(5,2),))


def f_meshgrid(x, y):
    return torch.meshgrid([x, y], indexing="ij")


CASES["F.meshgrid"] = (lambda: f_meshgrid, lambda: (X(3), X(2),))


def f_unique(x):
    return torch.unique(x, return_counts=True)


CASES["F.unique"] = (lambda: f_unique, lambda: (X(6),))


def f_unique_consecutive(x):
    return torch.unique_consecutive(x)


CASES["F.unique_consecutive"] = (lambda: f_unique_consecutive, lambda: (X(6),))


def f_broadcast_tensors(x, y):
    return torch.broadcast_tensors(x, y)


CASES["F.broadcast_tensors"] = (lambda: f_broadcast_tensors, lambda: (X(3,1), X(1,2),))


def f_atleast(x):
    return torch.atleast_2d(x)


CASES["F.atleast"] = (lambda: f_atleast, lambda: (X(3),))


def f_block_diag(x, y):
    return torch.block_diag(x, y)


CASES["F.block_diag"] = (lambda: f_block_diag, lambda: (X(2,2), X(1,3),))


def f_cartesian_prod(x, y):
    return torch.cartesian_prod(x, y)


CASES["F.cartesian_prod"] = (lambda: f_cartesian_prod, lambda: (X(2), X(3),))


def f_chain_matmul(x, y):
    return torch.chain_matmul(x, y)


CASES["F.chain_matmul"] = (lambda: f_chain_matmul, lambda: (X(2,3), X(3,2),))


def f_stack(x):
    return torch.stack([x, x], 1)


CASES["F.stack"] = (lambda: f_stack, lambda: (X(2,3),))


def f_where(x):
    return torch.where(x > 0, x, 0.0)


CASES["F.where"] = (lambda: f_where, lambda: (X(2,3),))


def f_topk(x):
    return torch.topk(x, 2)


CASES["F.topk"] = (lambda: f_topk, lambda: (X(5),))


def f_sort(x):
    return torch.sort(x, descending=True)


CASES["F.sort"] = (lambda: f_sort, lambda: (X(5),))


def f_max_dim(x):
    return torch.max(x, 1)


CASES["F.max_dim"] = (lambda: f_max_dim, lambda: (X(2,3),))


def f_lu(x):
    return torch.lu(x)


CASES["F.lu"] = (lambda: f_lu, lambda: (X(3,3)+torch.eye(3)*5,))


def f_svd_vals(x):
    return torch.linalg.svdvals(x)


CASES["F.svd_vals"] = (lambda: f_svd_vals, lambda: (X(3,2),))


def f_inv(x):
    return torch.linalg.inv(x)


CASES["F.inv"] = (lambda: f_inv, lambda: (X(3,3)+torch.eye(3)*5,))


def f_fft(x):
    return torch.fft.rfft(x).abs()


CASES["F.fft"] = (lambda: f_fft, lambda: (X(8),))


def f_special(x):
    return torch.special.expit(x)


CASES["F.special"] = (lambda: f_special, lambda: (X(3),))


def f_tensor_split(x):
    return torch.tensor_split(x, 2)


CASES["F.tensor_split"] = (lambda: f_tensor_split, lambda: (X(5),))


def f_hsplit(x):
    return torch.hsplit(x, 2)


CASES["F.hsplit"] = (lambda: f_hsplit, lambda: (X(2,4),))


def f_istft(x):
    return torch.istft(torch.view_as_complex(x), 4)


CASES["F.istft"] = (lambda: f_istft, lambda: (X(3,5,2),))


def f_nan_to_num(x):
    return torch.nan_to_num(x / 0.0)


CASES["F.nan_to_num"] = (lambda: f_nan_to_num, lambda: (X(4),))


def f_bucketize(x, b):
    return torch.bucketize(x, b)


CASES["F.bucketize"] = (lambda: f_bucketize, lambda: (X(4), torch.tensor([-0.5,0.1,0.6]),))


def f_gather(x, i):
    return torch.gather(x, 1, i)


CASES["F.gather"] = (lambda: f_gather, lambda: (X(2,3), torch.tensor([[0],[2]]),))


def f_scatter(x, i):
    return x.scatter(1, i, 1.5)


CASES["F.scatter"] = (lambda: f_scatter, lambda: (X(2,3), torch.tensor([[0],[2]]),))


def f_index_put(x, i):
    return torch.index_put(x, [i], torch.ones(3))


CASES["F.index_put"] = (lambda: f_index_put, lambda: (X(2,3), torch.tensor([1]),))


def f_full_like(x):
    return torch.full_like(x, 2.0)


CASES["F.full_like"] = (lambda: f_full_like, lambda: (X(2),))


def f_arange(x):
    return torch.arange(x.size(0), dtype=x.dtype)


CASES["F.arange"] = (lambda: f_arange, lambda: (X(3),))


def f_linspace(x):
    return torch.linspace(0.0, 1.0, x.size(0))


CASES["F.linspace"] = (lambda: f_linspace, lambda: (X(3),))


def f_sparse(x):
    return x.to_sparse().to_dense()


CASES["F.sparse"] = (lambda: f_sparse, lambda: (X(2,3),))


def f_cat_names(x):
    return torch.cat((x, x), dim=-1)


CASES["F.cat_names"] = (lambda: f_cat_names, lambda: (X(2,3),))


def f_vander(x):
    return torch.vander(x)


CASES["F.vander"] = (lambda: f_vander, lambda: (X(3),))


def f_trapezoid(x):
    return torch.trapezoid(x)


CASES["F.trapezoid"] = (lambda: f_trapezoid, lambda: (X(3),))


def f_kaiser(x):
    return torch.hann_window(4) + x


CASES["F.kaiser"] = (lambda: f_kaiser, lambda: (X(4),))


def f_searchsorted(x):
    return torch.searchsorted(torch.sort(x)[0], x)


CASES["F.searchsorted"] = (lambda: f_searchsorted, lambda: (X(4),))


def f_diff(x):
    return torch.diff(x)


CASES["F.diff"] = (lambda: f_diff, lambda: (X(4),))


def f_cov(x):
    return torch.cov(x)


CASES["F.cov"] = (lambda: f_cov, lambda: (X(2,4),))


def f_roll(x):
    return torch.roll(x, [1], [0])


CASES["F.roll"] = (lambda: f_roll, lambda: (X(4),))


def f_rot90(x):
    return torch.rot90(x, 1, [0, 1])


CASES["F.rot90"] = (lambda: f_rot90, lambda: (X(2,3),))


def f_repeat_interleave(x):
    return torch.repeat_interleave(x, 2, dim=0)


CASES["F.repeat_interleave"] = (lambda: f_repeat_interleave, lambda: (X(2,3),))


def f_rand(x):
    return torch.rand(3) + x


CASES["F.rand"] = (lambda: f_rand, lambda: (X(3),))


def f_randperm(x):
    return torch.randperm(4)


CASES["F.randperm"] = (lambda: f_randperm, lambda: (X(3),))


def f_multinomial(x):
    return torch.multinomial(x.abs() + 0.1, 2)


CASES["F.multinomial"] = (lambda: f_multinomial, lambda: (X(4),))


def f_bernoulli(x):
    return torch.bernoulli(x.abs().clamp(0.0, 1.0))


CASES["F.bernoulli"] = (lambda: f_bernoulli, lambda: (X(4),))


def f_normal(x):
    return torch.normal(x, 1.0)


CASES["F.normal"] = (lambda: f_normal, lambda: (X(4),))


class One(nn.Module):
    def __init__(self, m): super().__init__(); self.m = m
    def forward(self, x): return self.m(x)
class State(nn.Module):
    def __init__(self, m): super().__init__(); self.m = m
    def forward(self, x, h: Tensor): return self.m(x, h)
class State2(nn.Module):
    def __init__(self, m): super().__init__(); self.m = m
    def forward(self, x, h: Tuple[Tensor, Tensor]): return self.m(x, h)
class Packed(nn.Module):
    def __init__(self, m): super().__init__(); self.m = m
    def forward(self, x, n: Tensor):
        p = torch.nn.utils.rnn.pack_padded_sequence(x, n)
        y, h = self.m(p)
        out, lengths = torch.nn.utils.rnn.pad_packed_sequence(y)
        return out, lengths
class PackedGru(nn.Module):
    def __init__(self, m): super().__init__(); self.m = m
    def forward(self, x, n: Tensor):
        p = torch.nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True, enforce_sorted=False)
        y, h = self.m(p)
        return torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=6)[0], h
class Holder(nn.Module):
    def __init__(self):
        super().__init__(); self.b=nn.Buffer(torch.ones(4)); self.pl=nn.ParameterList([torch.ones(4)*2, torch.ones(4)])
    def forward(self,x):
        for p in self.pl: x = x*p
        return x+self.b
class MDict(nn.Module):
    def __init__(self):
        super().__init__(); self.md=nn.ModuleDict({"a": nn.Linear(4,4), "b": nn.ReLU()})
    def forward(self,x):
        for k, m in self.md.items(): x = m(x)
        return self.md["a"](x), "a" in self.md, len(self.md)
class MList(nn.Module):
    def __init__(self):
        super().__init__(); self.ml=nn.ModuleList([nn.Linear(4,4), nn.Linear(4,4), nn.Linear(4,2)])
    def forward(self,x):
        for i, m in enumerate(self.ml): x = m(x) + i
        return x, self.ml[-1](torch.ones(4)), len(self.ml)
class SeqIter(nn.Module):
    def __init__(self):
        super().__init__(); self.s=nn.Sequential(nn.Linear(4,4), nn.ReLU())
    def forward(self,x):
        for m in self.s: x = m(x)
        return self.s[0](x) + len(self.s)
class ZipMods(nn.Module):
    def __init__(self):
        super().__init__(); self.a=nn.ModuleList([nn.Linear(4,4), nn.Linear(4,4)]); self.b=nn.ModuleList([nn.ReLU(), nn.Tanh()])
    def forward(self,x):
        for m, n in zip(self.a, self.b): x = n(m(x))
        return x

CASES.update({"W.RNN":(lambda: One(nn.RNN(3,4,2)), lambda:(X(5,2,3),)),
"W.RNN_relu":(lambda: One(nn.RNN(3,4,nonlinearity="relu")), lambda:(X(5,2,3),)),
"W.LSTM":(lambda: One(nn.LSTM(3,4,2)), lambda:(X(5,2,3),)),
"W.LSTM_bi_bf":(lambda: One(nn.LSTM(3,4,2,bidirectional=True,batch_first=True)), lambda:(X(2,5,3),)),
"W.LSTM_unbatched":(lambda: One(nn.LSTM(3,4)), lambda:(X(5,3),)),
"W.LSTM_proj":(lambda: One(nn.LSTM(3,4,proj_size=2)), lambda:(X(5,2,3),)),
"W.GRU":(lambda: One(nn.GRU(3,4,2)), lambda:(X(5,2,3),)),
"W.GRU_unbatched":(lambda: One(nn.GRU(3,4)), lambda:(X(5,3),)),
"W.GRU_state":(lambda: State(nn.GRU(3,4)), lambda:(X(5,2,3),X(1,2,4))),
"W.RNN_state":(lambda: State(nn.RNN(3,4)), lambda:(X(5,2,3),X(1,2,4))),
"W.LSTM_state":(lambda: State2(nn.LSTM(3,4)), lambda:(X(5,2,3),(X(1,2,4),X(1,2,4)))),
"W.LSTM_packed":(lambda: Packed(nn.LSTM(3,4)), lambda:(X(5,2,3),torch.tensor([5,3]))),
"W.GRU_packed":(lambda: PackedGru(nn.GRU(3,4,batch_first=True)), lambda:(X(2,5,3),torch.tensor([3,5]))),
"W.Holder":(Holder, lambda:(X(2,4),)),"W.MDict":(MDict, lambda:(X(2,4),)),"W.MList":(MList, lambda:(X(2,4),)),
"W.SeqIter":(SeqIter, lambda:(X(2,4),)),"W.ZipMods":(ZipMods, lambda:(X(2,4),)),
})
