"""What a function's interface promises."""
__all__ = ["compatibility"]


def compatibility(is_backward_compatible):
    """Marks a function or class: whether its interface stays as it is. Changes nothing else."""
    def mark(target):
        target._backward_compatible = is_backward_compatible
        return target
    return mark
