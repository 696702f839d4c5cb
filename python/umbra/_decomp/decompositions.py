"""Decompositions beside the library's own table. Each is the operator's definition in terms of others, in the type that the operator computes in."""
import functools
import math

import umbra

aten = umbra.ops.aten
FUNCTIONS = {}  # by overload


def _define(*overloads):
    def register(function):
        FUNCTIONS.update(dict.fromkeys(overloads, function))
        return function
    return register


def _in_float(function):
    """Half precision is computed in float, and rounded once at the end."""
    @functools.wraps(function)
    def compute(*args, **kwargs):
        half = [a.dtype for a in args if isinstance(a, umbra.Tensor) and a.dtype in (umbra.float16, umbra.bfloat16)]
        if not half:
            return function(*args, **kwargs)
        wide = [a.to(umbra.float32) if isinstance(a, umbra.Tensor) and a.dtype == half[0] else a for a in args]
        return function(*wide, **kwargs).to(half[0])
    return compute


# ---- activations and their gradients ----

@_define(aten.silu.default)
@_in_float
def silu(self):
    return self * umbra.sigmoid(self)


@_define(aten.silu_backward.default)
@_in_float
def silu_backward(grad_output, self):
    gate = 1 / (1 + umbra.exp(-self))
    return grad_output * gate * (1 + self * (1 - gate))


@_define(aten.hardswish.default)
@_in_float
def hardswish(self):
    return self * umbra.clamp(self + 3, 0, 6) / 6


@_define(aten.hardswish_backward.default)
@_in_float
def hardswish_backward(grad_output, self):
    inner = umbra.where(self <= 3, grad_output * (self / 3 + 0.5), grad_output)
    return umbra.where(self <= -3, umbra.zeros_like(grad_output), inner)


@_define(aten.hardsigmoid.default)
@_in_float
def hardsigmoid(self):
    return umbra.clamp(self + 3, 0, 6) / 6


@_define(aten.hardsigmoid_backward.default)
@_in_float
def hardsigmoid_backward(grad_output, self):
    return umbra.where((self > -3) & (self < 3), grad_output / 6, umbra.zeros_like(grad_output))


@_define(aten.softplus.default)
@_in_float
def softplus(self, beta=1, threshold=20):
    scaled = self * beta
    return umbra.where(scaled > threshold, self, umbra.log1p(umbra.exp(scaled)) / beta)


@_define(aten.softplus_backward.default)
@_in_float
def softplus_backward(grad_output, self, beta, threshold):
    power = umbra.exp(self * beta)
    return umbra.where(self * beta > threshold, grad_output, grad_output * power / (power + 1))


@_define(aten.hardtanh.default)
def hardtanh(self, min_val=-1, max_val=1):
    return umbra.clamp(self, min_val, max_val)


@_define(aten.hardtanh_backward.default)
@_in_float
def hardtanh_backward(grad_output, self, min_val, max_val):
    return umbra.where((self <= min_val) | (self >= max_val), umbra.zeros_like(grad_output), grad_output)


@_define(aten.elu.default)
@_in_float
def elu(self, alpha=1, scale=1, input_scale=1):
    return umbra.where(self > 0, self * scale, umbra.expm1(self * input_scale) * (alpha * scale))


@_define(aten.leaky_relu.default)
def leaky_relu(self, negative_slope=0.01):
    return umbra.where(self > 0, self, self * negative_slope)


@_define(aten.leaky_relu_backward.default)
def leaky_relu_backward(grad_output, self, negative_slope, _):
    return umbra.where(self > 0, grad_output, grad_output * negative_slope)


@_define(aten.gelu.default)
@_in_float
def gelu(self, *, approximate="none"):
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (self + 0.044715 * self * self * self)
        return 0.5 * self * (1 + umbra.tanh(inner))
    return self * 0.5 * (1 + umbra.erf(self * math.sqrt(0.5)))


@_define(aten.gelu_backward.default)
@_in_float
def gelu_backward(grad, self, *, approximate="none"):
    if approximate == "tanh":
        factor = math.sqrt(2 / math.pi)
        bent = umbra.tanh(factor * (self + 0.044715 * self * self * self))
        slope = factor * (1 + 3 * 0.044715 * self * self)
        return grad * (0.5 * (1 + bent) + 0.5 * self * (1 - bent * bent) * slope)
    normal = 0.5 * (1 + umbra.erf(self * math.sqrt(0.5)))
    return grad * (normal + self * umbra.exp(self * self * -0.5) * (1 / math.sqrt(2 * math.pi)))


@_define(aten.mish_backward.default)
@_in_float
def mish_backward(grad_output, self):
    bent = umbra.tanh(softplus(self))
    gate = umbra.sigmoid(self)
    return grad_output * (bent + self * gate * (1 - bent * bent))


@_define(aten.sigmoid_backward.default)
def sigmoid_backward(grad_output, output):
    return grad_output * (output * (1 - output)).conj()


@_define(aten.tanh_backward.default)
def tanh_backward(grad_output, output):
    return grad_output * (1 - output * output).conj()


@_define(aten.threshold_backward.default)
def threshold_backward(grad_output, self, threshold):
    return umbra.where(self <= threshold, 0, grad_output)


@_define(aten.log_sigmoid_backward.default)
@_in_float
def log_sigmoid_backward(grad_output, self, _):
    return grad_output * (1 - umbra.sigmoid(self))


@_define(aten._softmax_backward_data.default)
def softmax_backward(grad_output, output, dim, input_dtype):
    weighted = grad_output * output
    result = weighted - output * umbra.sum(weighted, dim, keepdim=True)
    return result.to(input_dtype).contiguous()


@_define(aten._log_softmax_backward_data.default)
def log_softmax_backward(grad_output, output, dim, input_dtype):
    result = grad_output - umbra.exp(output) * umbra.sum(grad_output, dim, keepdim=True)
    return result.to(input_dtype)


def _refuse_conversion(half_to_float):
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")


@_define(aten._softmax.default)
@_in_float
def softmax(self, dim, half_to_float):
    _refuse_conversion(half_to_float)
    raised = umbra.exp(self - umbra.amax(self, dim, keepdim=True) if self.numel() else self)
    return raised / umbra.sum(raised, dim, keepdim=True)


@_define(aten._log_softmax.default)
@_in_float
def log_softmax(self, dim, half_to_float):
    _refuse_conversion(half_to_float)
    shifted = self - umbra.amax(self, dim, keepdim=True) if self.numel() else self
    return shifted - umbra.log(umbra.sum(umbra.exp(shifted), dim, keepdim=True))


# ---- losses ----

def _reduced(loss, reduction):
    return loss if reduction == 0 else umbra.mean(loss) if reduction == 1 else umbra.sum(loss)


@_define(aten.mse_loss.default)
@_in_float
def mse_loss(self, target, reduction=1):
    return _reduced((self - target) ** 2, reduction)


@_define(aten.smooth_l1_loss.default)
@_in_float
def smooth_l1_loss(self, target, reduction=1, beta=1.0):
    distance = (self - target).abs()
    return _reduced(distance if beta == 0 else umbra.where(distance < beta, 0.5 * distance ** 2 / beta, distance - 0.5 * beta), reduction)


@_define(aten.huber_loss.default)
@_in_float
def huber_loss(self, target, reduction=1, delta=1.0):
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    distance = (self - target).abs()
    return _reduced(umbra.where(distance <= delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta)), reduction)


@_define(aten.soft_margin_loss.default)
@_in_float
def soft_margin_loss(self, target, reduction=1):
    return _reduced(umbra.log1p(umbra.exp(-self * target)), reduction)


@_define(aten.binary_cross_entropy.default)
@_in_float
def binary_cross_entropy(self, target, weight=None, reduction=1):
    loss = (target - 1) * umbra.clamp(umbra.log1p(-self), min=-100) - target * umbra.clamp(umbra.log(self), min=-100)
    return _reduced(loss if weight is None else loss * weight, reduction)


# ---- sums of products ----

def _scaled(value, factor):
    return value if factor == 1 else value * factor


@_define(aten.addmm.default)
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    product = _scaled(umbra.mm(mat1, mat2), alpha)
    return product if beta == 0 else product + _scaled(self, beta)


@_define(aten.addmv.default)
def addmv(self, mat, vec, *, beta=1, alpha=1):
    product = _scaled(umbra.mv(mat, vec), alpha)
    return product if beta == 0 else product + _scaled(self, beta)


@_define(aten.addr.default)
def addr(self, vec1, vec2, *, beta=1, alpha=1):
    product = _scaled(umbra.outer(vec1, vec2), alpha)
    return product if beta == 0 else product + _scaled(self, beta)


@_define(aten.baddbmm.default)
def baddbmm(self, batch1, batch2, *, beta=1, alpha=1):
    product = _scaled(umbra.bmm(batch1, batch2), alpha)
    return product if beta == 0 else product + _scaled(self, beta)


@_define(aten.addcmul.default)
@_in_float
def addcmul(self, tensor1, tensor2, *, value=1):
    return self + _scaled(tensor1 * tensor2, value)


@_define(aten.addcdiv.default)
@_in_float
def addcdiv(self, tensor1, tensor2, *, value=1):
    return self + _scaled(tensor1 / tensor2, value)


@_define(aten.lerp.Scalar, aten.lerp.Tensor)
@_in_float
def lerp(self, end, weight):
    return self + weight * (end - self)


@_define(aten.rsub.Tensor)
def rsub(self, other, *, alpha=1):
    return other - _scaled(self, alpha)


@_define(aten.rsub.Scalar)
def rsub_scalar(self, other, alpha=1):
    return self * -alpha + other


# ---- elementwise ----

@_define(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(self, mask, value):
    return umbra.where(mask, value if isinstance(value, umbra.Tensor) else umbra.scalar_tensor(value, dtype=self.dtype, device=self.device), self)


@_define(aten.logit.default)
@_in_float
def logit(self, eps=None):
    inside = self if eps is None else umbra.clamp(self, eps, 1 - eps)
    return umbra.log(inside / (1 - inside))


@_define(aten.frac.default)
def frac(self):
    return self - umbra.trunc(self)


@_define(aten.heaviside.default)
def heaviside(self, values):
    return umbra.where(self == 0, values, umbra.where(self < 0, 0, 1).to(self.dtype))


@_define(aten.sinc.default)
def sinc(self):
    angle = self * math.pi
    return umbra.where(self == 0, 1, umbra.sin(angle) / angle)


@_define(aten.deg2rad.default)
def deg2rad(self):
    return self * (math.pi / 180)


@_define(aten.rad2deg.default)
def rad2deg(self):
    return self * (180 / math.pi)


# ---- shapes ----

@_define(aten.constant_pad_nd.default)
def constant_pad_nd(self, pad, value=0):
    sizes, source, inner = list(self.shape), self, []
    for i in range(len(pad) // 2):
        dim, (before, after) = self.dim() - 1 - i, pad[2 * i:2 * i + 2]
        source = source.narrow(dim, max(-before, 0), source.shape[dim] - max(-before, 0) - max(-after, 0))
        sizes[dim] += before + after
        inner.append((dim, max(before, 0), source.shape[dim]))
    result = umbra.full(sizes, value, dtype=self.dtype, device=self.device)
    place = result
    for dim, start, length in inner:
        place = place.narrow(dim, start, length)
    place.copy_(source)
    return result


@_define(aten.t.default)
def t(self):
    return umbra.permute(self, (1, 0)) if self.dim() == 2 else self.view(self.shape)


@_define(aten.transpose.int)
def transpose(self, dim0, dim1):
    order = list(range(self.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return umbra.permute(self, order)


# ---- normalisation ----

@_define(aten.native_layer_norm.default)
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    wide = input.to(umbra.float32) if input.dtype in (umbra.float16, umbra.bfloat16) else input
    mean = umbra.mean(wide, dims, keepdim=True)
    centred = wide - mean
    rstd = umbra.rsqrt(umbra.mean(centred * centred, dims, keepdim=True) + eps)
    result = centred * rstd
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result.to(input.dtype), mean, rstd
