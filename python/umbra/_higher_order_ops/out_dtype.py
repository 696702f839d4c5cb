"""out_dtype: an operator with its result in another type."""


def out_dtype(op, output_dtype, *args):
    import umbra
    promoted = [a.to(output_dtype) if isinstance(a, umbra.Tensor) else a for a in args]
    return op(*promoted)
