"""Modules as functions of their parameters and buffers."""
import umbra
from umbra.nn.utils.stateless import _one_dict, _reparametrize_module


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Calls the module with the named tensors (a dict, or several) in place of its own. `tie_weights`: a tensor stands in for all names of
    the one it replaces. `strict`: all tensors of the module have to be given, and no others."""
    if isinstance(module, umbra.jit.ScriptModule):
        raise RuntimeError("The stateless API can't be used with Jitted modules")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, _one_dict(parameter_and_buffer_dicts), tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


def stack_module_state(models):
    """The parameters and the buffers of modules of one class, stacked along a new first dimension: an ensemble for vmap.

        >>> models = [torch.nn.Linear(2, 1) for _ in range(3)]
        >>> parameters, buffers = torch.func.stack_module_state(models)
        >>> parameters["weight"].shape
        torch.Size([3, 1, 2])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(name, tensors, leaf):
        if len({t.requires_grad for t in tensors}) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        out = umbra.stack([t.detach() for t in tensors]) if leaf else umbra.stack(tensors)
        return out.requires_grad_(tensors[0].requires_grad) if leaf else out
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return ({name: stacked(name, [p[name] for p in parameters], True) for name in parameters[0]},
            {name: stacked(name, [b[name] for b in buffers], False) for name in buffers[0]})


def replace_all_batch_norm_modules_(root):
    """Lets every batch norm below `root` forget its running statistics, which it would have to write in place."""
    for module in root.modules():
        if isinstance(module, umbra.nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
