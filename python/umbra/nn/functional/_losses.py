"""Losses."""
import math
import warnings

import umbra
from umbra.nn.functional._activations import logsigmoid
from umbra.nn.functional._publish import publish


def _legacy_reduction(size_average, reduce, reduction, warns=True):
    """What `size_average` and `reduce`, which came before `reduction`, ask for."""
    if size_average is None and reduce is None:
        return reduction
    average, reduced = size_average is None or size_average, reduce is None or reduce
    name = "none" if not reduced else "mean" if average else "sum"
    if warns:
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=4)
    return name


def _reduction(name, size_average=None, reduce=None):
    if size_average is not None or reduce is not None:
        name = _legacy_reduction(size_average, reduce, name)
    if name == "mean":
        return 1
    if name not in ("none", "mean", "sum"):
        raise ValueError(f"{name} is not a valid value for reduction")
    return ("none", "mean", "sum").index(name)


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    """The negative log probability of the target class, of logits; or the cross entropy with probabilities."""
    return umbra.cross_entropy_loss(input, target, weight, _reduction(reduction, size_average, reduce), ignore_index, label_smoothing)


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None, label_smoothing=0.0,
                         options=None):
    """The cross entropy of linear(input, linear_weight, linear_bias); a weight of more than two dimensions gives that many results a row.

    With `options` (torch.nn.LinearCrossEntropyOptions) rows are taken in chunks, where there is one result a row.
    """
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(f"expected equal input and linear_weight last dimensions (in_features), got {input.shape[-1]} and "
                           f"{linear_weight.shape[-1]}, respectively")
    if input.dim() == 1 and linear_weight.dim() > 2:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
                           f"(N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}")
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {tuple(linear_weight.shape[:-1])}, got {tuple(linear_bias.shape)}")
    if options is not None and not isinstance(options, umbra.nn.LinearCrossEntropyOptions):
        raise TypeError(f"options must be LinearCrossEntropyOptions or None, not {type(options).__name__}")
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None and input.dim() == linear_weight.dim() == 2:
        _reduction(reduction)
        return _in_chunks(input, linear_weight, target, linear_bias, weight, reduction, ignored, label_smoothing, options)
    logits = umbra.nn.functional.linear(input, linear_weight.reshape(-1, input.shape[-1]), None if linear_bias is None else linear_bias.reshape(-1))
    logits = logits.reshape(*input.shape[:-1], *linear_weight.shape[:-1])
    return cross_entropy(logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing)


def _in_chunks(input, linear_weight, target, linear_bias, weight, reduction, ignored, label_smoothing, options):
    """Row by row the same, with the logits of some rows at a time; they are computed again for the gradient."""
    from umbra.utils.checkpoint import checkpoint

    def losses(rows, targets):
        return cross_entropy(umbra.nn.functional.linear(rows, linear_weight, linear_bias), targets, weight, ignore_index=ignored,
                             reduction="none", label_smoothing=label_smoothing)

    count = options.rows(input.shape[0], input.shape[1], linear_weight.shape[0])
    parts = [checkpoint(losses, *pair, use_reentrant=False) for pair in zip(input.split(count), target.split(count))]
    total = umbra.cat(parts) if parts else losses(input, target)
    if reduction == "none":
        return total
    if reduction == "sum":
        return total.sum()
    if target.is_floating_point():
        return total.sum() / input.shape[0]
    there = target != ignored
    return total.sum() / (there.sum() if weight is None else weight[target.where(there, 0)].where(there, 0).sum())


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """The negative of the target class's log probability."""
    return umbra.nll_loss_nd(input, target, weight, _reduction(reduction, size_average, reduce), ignore_index)


def _alike(input, target):
    """Both in the sizes that they broadcast to, which is rarely what was meant where they differ."""
    for size in (*input.shape, *target.shape):
        if type(size) is not int:
            break  # a symbol: whether they differ is not asked
    else:
        if input.shape != target.shape:
            warnings.warn(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely lead to "
                          "incorrect results due to broadcasting. Please ensure they have the same size.", stacklevel=4)
    return umbra.broadcast_tensors(input, target)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The square of the difference."""
    kind = _reduction(reduction, size_average, reduce)
    if weight is None:
        return umbra.mse_loss(*_alike(input, target), kind)
    return _weighted(umbra.mse_loss(*_alike(input, target), 0), input, weight, kind, lambda losses: losses.sum() / weight.sum())


def _weighted(losses, input, weight, kind, mean):
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    losses = losses * weight
    return losses if kind == 0 else mean(losses) if kind == 1 else losses.sum()


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute difference."""
    kind = _reduction(reduction, size_average, reduce)
    if weight is None:
        return umbra.l1_loss(*_alike(input, target), kind)
    return _weighted(umbra.l1_loss(*_alike(input, target), 0), input, weight, kind, lambda losses: losses.sum() / weight.sum())


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """The square of small differences, and the absolute value of large ones, divided by beta where they meet."""
    return umbra.smooth_l1_loss(*_alike(input, target), _reduction(reduction, size_average, reduce), beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """The square of small differences, and delta times the absolute value of large ones."""
    if weight is None:
        return umbra.huber_loss(*_alike(input, target), _reduction(reduction), delta)
    losses = umbra.huber_loss(*_alike(input, target), 0, delta)
    return _weighted(losses, input, weight, _reduction(reduction), lambda losses: losses.mean())


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Binary cross entropy of probabilities."""
    kind = _reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
                         "Please ensure they have the same size.")
    if weight is not None:
        weight = weight.expand(umbra.broadcast_shapes(target.size(), weight.size()))
    return umbra._C._nn.binary_cross_entropy(input, target, weight, kind)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    """Binary cross entropy of logits."""
    kind = _reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return umbra.binary_cross_entropy_with_logits(input, target, weight, pos_weight, kind)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """The Kullback-Leibler divergence of the target from log probabilities."""
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = umbra.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() > 0 else total
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by the batch "
                      "size, and aligns with the KL div math definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
                      "release.", stacklevel=3)
    return umbra.kl_div(input, target, _reduction(reduction, size_average, reduce), log_target=log_target)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The logistic loss of targets 1 and -1."""
    return umbra._C._nn.soft_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """By how much the first input fails to rank above the second, or below it, as the target says."""
    kind = _reduction(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: "
                           f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} ")
    return umbra.margin_ranking_loss(input1, input2, target, margin, kind)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """Distances where the target is 1, and what they lack to the margin where it is -1."""
    return umbra.hinge_embedding_loss(input, target, margin, _reduction(reduction, size_average, reduce))


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """How far two vectors are from one direction, or from being different, as the target says."""
    return umbra.cosine_embedding_loss(input1, input2, target, margin, _reduction(reduction, size_average, reduce))


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """By how much scores of wrong classes come near those of the right ones, several for each sample."""
    return umbra._C._nn.multilabel_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Binary cross entropy of logits, averaged over classes."""
    kind = _reduction(reduction, size_average, reduce)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.dim() - 1) / input.size(input.dim() - 1)
    return loss if kind == 0 else loss.mean() if kind == 1 else loss.sum()


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """By how much scores of other classes come near that of the right one."""
    kind = _reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return umbra._C._nn.multi_margin_loss(input, target, p, margin, weight, kind)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    """By how much the positive sample fails to be nearer to the anchor than the negative one."""
    kind = _reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return umbra.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, kind)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    """TripletMarginLoss with a distance of the user's own."""
    kind = _reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
                           f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")
    distance = umbra.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = umbra.minimum(far, distance(positive, negative))
    loss = umbra.clamp_min(margin + near - far, 0)
    return loss if kind == 0 else loss.mean() if kind == 1 else loss.sum()


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    """The negative log likelihood of counts under Poisson distributions."""
    return umbra.poisson_nll_loss(input, target, log_input, full, eps, _reduction(reduction, size_average, reduce))


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """The negative log likelihood under a normal distribution; `var` is a number or a tensor."""
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * umbra.ones_like(input)
    elif umbra.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = umbra.unsqueeze(var, -1)
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1) and \
                not all(a == b or b == 1 for a, b in zip(input.size(), var.size(), strict=False)):
            raise ValueError("var is of incorrect size")
    kind = _reduction(reduction)
    var = var.clone()
    with umbra.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (umbra.log(var) + (input - target) ** 2 / var)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return loss if kind == 0 else loss.mean() if kind == 1 else loss.sum()


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """The negative log probability of a sequence of labels under all ways to align it with the input."""
    return umbra.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _reduction(reduction), zero_infinity)


publish(globals())
