"""Dropout, of elements and of whole channels."""
import warnings

import umbra
from umbra.nn.functional._publish import publish


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes elements with probability p in training, and scales the others up."""
    _check_probability(p)
    return umbra.dropout_(input, p, training) if inplace else umbra.dropout(input, p, training)


def _dropout_of_channels(input, p, training, inplace, ranks):
    """Whole channels, of examples in a batch or of a single one: `ranks` are those of an input without and with a batch."""
    _check_probability(p)
    batched = input.dim() == ranks[1]
    if not batched:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = umbra.feature_dropout_(input, p, training) if inplace else umbra.feature_dropout(input, p, training)
    return result if batched else result.squeeze_(0) if inplace else result.squeeze(0)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Drops whole channels of sequences."""
    if input.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to provide "
                           "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension "
                           "(i.e. 2D or 3D inputs).")
    return _dropout_of_channels(input, p, training, inplace, (2, 3))


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Drops whole channels of images; the first two dimensions are examples and channels, whatever the rank."""
    _check_probability(p)
    if input.dim() not in (3, 4):
        warnings.warn(f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result in an error in a future "
                      "release. To retain the behavior and silence this warning, please use dropout instead. Note that dropout2d exists to "
                      "provide channel-wise dropout on inputs with 2 spatial dimensions, a channel dimension, and an optional batch dimension "
                      "(i.e. 3D or 4D inputs).", stacklevel=2)
    if input.dim() == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
                      "interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret "
                      "the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, "
                      "please switch to using dropout1d instead.", stacklevel=2)
    return umbra.feature_dropout_(input, p, training) if inplace else umbra.feature_dropout(input, p, training)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Drops whole channels of volumes."""
    if input.dim() not in (4, 5):
        warnings.warn(f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result in an error in a future "
                      "release. To retain the behavior and silence this warning, please use dropout instead. Note that dropout3d exists to "
                      "provide channel-wise dropout on inputs with 3 spatial dimensions, a channel dimension, and an optional batch dimension "
                      "(i.e. 4D or 5D inputs).", stacklevel=2)
    return _dropout_of_channels(input, p, training, inplace, (4, 5))


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of what selu gives."""
    _check_probability(p)
    return umbra.alpha_dropout_(input, p, training) if inplace else umbra.alpha_dropout(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """The same for whole channels."""
    _check_probability(p)
    return umbra.feature_alpha_dropout_(input, p, training) if inplace else umbra.feature_alpha_dropout(input, p, training)


publish(globals())
