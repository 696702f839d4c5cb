"""Functions of neural networks. Most are operators of the library under their own names."""
from umbra import _C
from umbra._modules import raise_missing
from umbra.nn._attention import multi_head_attention_forward  # noqa: F401
from umbra.nn.functional._activations import *  # noqa: F401, F403
from umbra.nn.functional._dropout import *  # noqa: F401, F403
from umbra.nn.functional._embeddings import *  # noqa: F401, F403
from umbra.nn.functional._images import *  # noqa: F401, F403
from umbra.nn.functional._losses import *  # noqa: F401, F403
from umbra.nn.functional._normalization import *  # noqa: F401, F403
from umbra.nn.functional._pooling import *  # noqa: F401, F403
from umbra.overrides import has_torch_function, has_torch_function_unary, has_torch_function_variadic  # noqa: F401

_OPERATORS = """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc avg_pool1d avg_pool2d avg_pool3d
adaptive_avg_pool1d linear bilinear relu_ celu_ selu_ gelu softplus hardshrink softshrink pixel_shuffle pixel_unshuffle channel_shuffle
native_channel_shuffle one_hot pairwise_distance pdist cosine_similarity scaled_dot_product_attention pad prelu hardtanh_ elu_ leaky_relu_ rrelu_
threshold_""".split()


def __getattr__(name):
    """Operators that the build has under torch.nn.functional's names."""
    if name in _OPERATORS and _C._overload_names("aten::" + name):
        function = _C._find_function("aten::" + name, 1)
        globals()[name] = function
        return function
    if name == "__all__":
        return [name for name in __dir__() if not name.startswith("_")]
    raise_missing(__name__, name)


def __dir__():
    return sorted({*globals(), *_OPERATORS})
