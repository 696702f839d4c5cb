"""spectral_norm by a hook, as it was before parametrisations: `name_orig` is the parameter, `name` is computed before each forward."""
import umbra
from umbra.nn import functional as F
from umbra.nn.parameter import Parameter, is_lazy
from umbra.nn.utils.weight_norm import remove_hook


class SpectralNorm:
    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module, do_power_iteration):
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with umbra.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(umbra.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(umbra.mv(matrix, v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()  # a second forward before the backward changes the buffers
        return weight / umbra.dot(u, umbra.mv(matrix, v))

    def remove(self, module):
        with umbra.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for part in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + part)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, _):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        if any(isinstance(hook, SpectralNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError("The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward before applying "
                             "spectral normalization")
        with umbra.no_grad():
            rows, columns = fn.reshape_weight_to_matrix(weight).size()
            u, v = (F.normalize(weight.new_empty(size).normal_(0, 1), dim=0, eps=eps) for size in (rows, columns))
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(fn)
        module._register_state_dict_hook(SpectralNormStateDictHook(fn))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(fn))
        return fn


class SpectralNormStateDictHook:
    """Notes in a state dict which form of the buffers it has."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata):
        versions = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Reads state dicts of the time before `name_v` was kept: it follows from the weights and `name_u`."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        fn, key = self.fn, prefix + self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(f"{fn.name}.version")
        if version is not None and version >= 1:
            return
        needed = [key + part for part in ("_orig", "", "_u")]
        if version is None and key + "_v" in state_dict and all(k in state_dict for k in (key + "_orig", key + "_u")):
            return
        missing = [k for k in needed if k not in state_dict]
        if strict:
            missing_keys.extend(missing)
        if missing:
            return
        with umbra.no_grad():
            original, weight, u = state_dict[needed[0]], state_dict.pop(needed[1]), state_dict[needed[2]]
            sigma = (original / weight).mean()
            # u came of a v as normalize(matrix v); of all such v, the one for which u . (matrix v) is sigma.
            matrix = fn.reshape_weight_to_matrix(original)
            v = umbra.linalg.pinv(matrix) @ u
            state_dict[key + "_v"] = v * (sigma / umbra.dot(u, matrix @ v))


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides `module.name` by its largest singular value before each forward."""
    if dim is None:
        dim = 1 if isinstance(module, (umbra.nn.ConvTranspose1d, umbra.nn.ConvTranspose2d, umbra.nn.ConvTranspose3d)) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Makes `module.name` a parameter again, with the value it has."""
    remove_hook(module, SpectralNorm, name, "spectral_norm")
    for hooks, kind in ((module._state_dict_hooks, SpectralNormStateDictHook), (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook)):
        for key, hook in list(hooks.items()):
            if isinstance(hook, kind) and hook.fn.name == name:
                del hooks[key]
                break
    return module
