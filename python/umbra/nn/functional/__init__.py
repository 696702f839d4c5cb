"""Functions of neural networks. Most are operators of the library under their own names."""
from umbra import _modules
from umbra.nn import grad  # noqa: F401
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

_modules.add_operators(__name__, _OPERATORS)
