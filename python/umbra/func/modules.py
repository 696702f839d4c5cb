"""Modules as functions of their parameters and buffers."""
import umbra
from umbra.nn.utils import stateless


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Calls the module with the given tensors in place of its parameters and buffers: a dictionary by name, or several that share no name."""
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        if not isinstance(given, (list, tuple)):
            raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}")
        if not all(isinstance(d, dict) for d in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in given for name in d]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: value for d in given for name, value in d.items()}
    return stateless.functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models):
    """The parameters and the buffers of modules of one class, stacked along a new first dimension: an ensemble for vmap."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(tensors, leaf):
        out = umbra.stack([t.detach() for t in tensors]) if leaf else umbra.stack(tensors)
        return out.requires_grad_(tensors[0].requires_grad) if leaf else out
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return ({name: stacked([p[name] for p in parameters], True) for name in parameters[0]},
            {name: stacked([b[name] for b in buffers], False) for name in buffers[0]})


def replace_all_batch_norm_modules_(root):
    """Lets every batch norm below `root` forget its running statistics, which it would have to write in place."""
    for module in root.modules():
        if isinstance(module, umbra.nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
