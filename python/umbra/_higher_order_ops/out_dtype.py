"""out_dtype: an operator with its result in another type, computed without overflow on the way."""
import umbra
from umbra._higher_order_ops.operator import NamedOperator


_ALLOWED = ("aten.linear.default", "aten.mm.default", "aten.conv2d.default", "aten.convolution.default", "aten.mul.Tensor", "aten.mul.Scalar",
            "aten.div.Tensor", "aten.div.Scalar")


class OutDtype(NamedOperator):
    """`out_dtype(operator, dtype, *args)`: the operator on its tensors as `dtype`; captured, it is one node."""

    def __call__(self, op, output_dtype, *args):
        if not isinstance(op, umbra._ops.OpOverload):
            raise ValueError("out_dtype's first argument must be an OpOverload")
        if op._schema.is_mutable:
            raise ValueError("out_dtype's first argument needs to be a functional operator")
        if len(op._schema.returns) != 1 or str(op._schema.returns[0].type) != "Tensor":
            raise ValueError(f"out_dtype's can only apply to ops that return a single tensor, instead got {[r.type for r in op._schema.returns]}")
        if str(op) not in _ALLOWED:
            raise ValueError(f"out_dtype only allows the following operators: {', '.join(_ALLOWED)}.")
        return umbra._C._out_dtype(op, output_dtype, args, {})


out_dtype = OutDtype("out_dtype")
