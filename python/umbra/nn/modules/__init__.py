"""The layers that networks are made of."""
from umbra.nn.modules.module import Module  # noqa: F401
from umbra.nn.modules.linear import Identity, Linear  # noqa: F401
from umbra.nn.modules.conv import (  # noqa: F401
    Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
from umbra.nn.modules.normalization import GroupNorm, LayerNorm, RMSNorm  # noqa: F401
from umbra.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d  # noqa: F401
from umbra.nn.modules.activation import (  # noqa: F401
    ELU, GELU, GLU, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, LogSigmoid, LogSoftmax, Mish, MultiheadAttention, PReLU, ReLU, ReLU6,
    Sigmoid, SiLU, Softmax, Softplus, Softsign, Tanh, Threshold)
from umbra.nn.modules.layers import (  # noqa: F401
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AlphaDropout, AvgPool1d, AvgPool2d, Dropout, Dropout1d, Dropout2d, Dropout3d, Embedding,
    FeatureAlphaDropout, Flatten, MaxPool1d, MaxPool2d, Unflatten, Upsample)
from umbra.nn.modules.loss import (  # noqa: F401
    BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss, SmoothL1Loss)
from umbra.nn.modules.container import (  # noqa: F401
    ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential)
from umbra.nn.modules.transformer import TransformerEncoder, TransformerEncoderLayer  # noqa: F401
