#!/usr/bin/env python3
"""Writes the list of PyTorch's public names, which Umbra uses to say what it does not have yet.

    PYTHON_WITH_TORCH tools/torch_names.py > python/umbra/_torch_names.txt
    PYTHON_WITH_TORCH tools/torch_names.py all > python/umbra/_torch_all.txt
    PYTHON_WITH_TORCH tools/torch_names.py distributed > python/umbra/distributed/_names.txt

A line is a module (or one of some classes, or the operators) and its names: `torch.fft fft fft2 ...`. A module of a part of torch whose contents are not listed
stands alone. `all` writes what `from module import *` gives where a module says so itself, of the modules that the package has.
"""
import importlib
import inspect
import pathlib
import pkgutil
import sys
import types
import warnings

import torch

# Parts of torch of which the modules are listed, but not what is in them.
NOT_LISTED = ("torch.ao", "torch.contrib", "torch.csrc", "torch.distributed", "torch.lib", "torch.onnx", "torch.package", "torch.quantization",
              "torch.utils.benchmark", "torch.utils.bottleneck", "torch.utils.tensorboard", "torch.utils.data.datapipes",
              "torch.utils.data.graph", "torch.utils.data.backward_compatibility", "torch.utils.hipify", "torch.utils.jit", "torch.utils.model_dump",
              "torch.utils.viz", "torch.fx.passes", "torch.fx.experimental", "torch.for_onnx", "torch.nn.backends", "torch.nn.intrinsic",
              "torch.nn.qat", "torch.nn.quantizable", "torch.nn.quantized", "torch.optim.adadelta", "torch.testing", "torch.jit.", "torch.sparse.",
              "torch.nativert", "torch.numa", "torch.headeronly", "torch.cuda.", "torch.xpu.", "torch.masked.", "torch.export.experimental")
LISTED = ("torch.fx.experimental.proxy_tensor", "torch.fx.experimental.symbolic_shapes", "torch.fx.passes.shape_prop", "torch.testing",
          "torch.cuda.amp")
# Classes whose attributes are listed.
CLASSES = ("torch.Tensor", "torch.export.exported_program.ExportedProgram", "torch.fx.graph.Graph", "torch.fx.graph_module.GraphModule",
           "torch.fx.node.Node", "torch.nn.modules.module.Module", "torch.optim.optimizer.Optimizer")


def is_public_path(name):
    return all(not part.startswith("_") for part in name.split("."))


def modules():
    """Names of torch's public modules."""
    found = ["torch"]
    for info in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
        if is_public_path(info.name) and not info.name.endswith("__main__"):
            found.append(info.name)
    return found


def is_listed(module):
    return module in LISTED or not any(module == part or module.startswith(part.rstrip(".") + ".") for part in NOT_LISTED)


def is_own(module, name, value, declared):
    """Whether a name belongs to torch rather than to what a module happened to import."""
    if name in declared:
        return value is not torch.Tensor or module == "torch"
    if name.startswith("_"):
        return False
    if isinstance(value, types.ModuleType):
        return value.__name__ == f"{module}.{name}"
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return module == "torch"
    owner = getattr(value, "__module__", None)
    if inspect.isclass(value) or inspect.isfunction(value):
        # `from torch import Tensor` in a submodule does not make it a name of that submodule.
        return str(owner).startswith("torch") and (not declared or module == "torch") and (
            owner == module or module.count(".") < 2 and str(owner).startswith(module))
    return inspect.isbuiltin(value) and (owner is None or owner.startswith(("torch", "_")))


def names(module):
    declared = {name for name in getattr(module, "__all__", ()) if not name.startswith("_")}
    found = []
    for name in sorted(set(dir(module)) | declared):
        try:
            value = getattr(module, name)
        except Exception:
            continue
        if is_own(module.__name__, name, value, declared):
            found.append(name)
    return found


def distributed_names():
    """The classes and functions of torch.distributed's modules, those that they import from each other too. Private modules, which packages import all
    the same, are among them."""
    import torch.distributed
    found = []
    for info in pkgutil.walk_packages(torch.distributed.__path__, "torch.distributed.", onerror=lambda name: None):
        if "flight_recorder" not in info.name and not info.name.endswith("__main__"):
            found.append(info.name)
    for name in sorted({"torch.distributed", *found}):
        try:
            module = importlib.import_module(name)
        except Exception as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        own = [n for n, value in sorted(vars(module).items()) if not n.startswith("__") and (inspect.isclass(value) or callable(value))
               and str(getattr(value, "__module__", "")).startswith(("torch.distributed", "torch._C._distributed"))]
        print(" ".join([name, *own]))


def names_of_all():
    """The `__all__` of each module that the package has, too."""
    package = pathlib.Path(__file__).resolve().parent.parent / "python" / "umbra"
    for name in sorted(set(modules())):
        place = package.joinpath(*name.split(".")[1:])
        if not (place.with_suffix(".py").exists() or (place / "__init__.py").exists()):
            continue
        try:
            declared = getattr(importlib.import_module(name), "__all__", None)
        except Exception as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        if declared is not None:
            print(" ".join([name, *dict.fromkeys(declared)]))


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["all"]:
        return names_of_all()
    if sys.argv[1:] == ["distributed"]:
        return distributed_names()
    print(f"# PyTorch {torch.__version__.partition('+')[0].partition('.dev')[0]}: its public names, written by tools/torch_names.py")
    for name in sorted(set(modules())):
        line = name
        if is_listed(name):
            try:
                line = " ".join([name, *names(importlib.import_module(name))])
            except Exception as error:
                print(f"{name}: {error}", file=sys.stderr)
        print(line)
    operators = {schema.name.partition("::")[2] for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("aten::")}
    print(" ".join(["torch.ops.aten", *sorted(name for name in operators if not name.startswith("__"))]))
    for path in CLASSES:
        module, _, name = path.rpartition(".")
        print(" ".join([path, *(n for n in dir(getattr(importlib.import_module(module), name)) if not n.startswith("_"))]))


if __name__ == "__main__":
    main()
