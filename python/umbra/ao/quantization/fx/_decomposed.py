"""Quantisation written out over plain tensors of integers: the operators of `torch.ops.quantized_decomposed` by their names."""
import umbra
from umbra.library import Library

quantized_decomposed_lib = Library("quantized_decomposed", "FRAGMENT")

_ops = umbra.ops.quantized_decomposed
quantize_per_tensor = _ops.quantize_per_tensor.default
quantize_per_tensor_tensor = _ops.quantize_per_tensor.tensor
quantize_per_tensor_tensor2 = _ops.quantize_per_tensor.tensor2
dequantize_per_tensor = _ops.dequantize_per_tensor.default
dequantize_per_tensor_tensor = _ops.dequantize_per_tensor.tensor
dequantize_per_tensor_tensor2 = _ops.dequantize_per_tensor.tensor2
choose_qparams_tensor = _ops.choose_qparams.tensor
choose_qparams_symmetric_tensor = _ops.choose_qparams_symmetric.tensor
quantize_per_channel = _ops.quantize_per_channel.default
dequantize_per_channel = _ops.dequantize_per_channel.default
choose_qparams_per_token = _ops.choose_qparams_per_token.default
choose_qparams_per_token_asymmetric = _ops.choose_qparams_per_token_asymmetric.default
quantize_per_token = _ops.quantize_per_token.default
dequantize_per_token = _ops.dequantize_per_token.default
quantize_per_channel_group = _ops.quantize_per_channel_group.default
dequantize_per_channel_group = _ops.dequantize_per_channel_group.default
fake_quant_per_channel = _ops.fake_quant_per_channel.default
convert_element_type = _ops.convert_element_type.no_fuse
