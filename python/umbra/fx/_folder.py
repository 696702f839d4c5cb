"""A graph module as a package of source and tensors."""
import pathlib

import umbra
from umbra.nn import modules as nn

# Modules whose text makes them again; others are saved whole.
_BY_TEXT = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def write(module, folder, class_name):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    umbra.save(module.state_dict(), folder / "state_dict.pt")
    lines = []
    for name, child in module.named_children():
        if type(child) in _BY_TEXT:
            lines.append(f"self.{name} = torch.nn.{child!r}")
        else:
            umbra.save(child, folder / f"{name}.pt")
            lines.append(f"self.{name} = torch.load(folder / '{name}.pt', weights_only=False)")
    for name, tensor in module._parameters.items():
        lines.append(f"self.{name} = torch.nn.Parameter(torch.empty({list(tensor.shape)}, dtype={tensor.dtype}), requires_grad={tensor.requires_grad})")
    for name, tensor in module._buffers.items():
        lines.append(f"self.register_buffer('{name}', torch.empty({list(tensor.shape)}, dtype={tensor.dtype}))")
    body = "\n        ".join(lines)
    code = "\n    ".join(module.code.strip("\n").rstrip().split("\n"))
    (folder / "module.py").write_text(f"""import operator
import pathlib

import umbra as torch
from math import inf, nan
from umbra import device
from umbra.utils import _pytree as pytree

NoneType = type(None)
folder = pathlib.Path(__file__).parent


class {class_name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {body}
        self.load_state_dict(torch.load(folder / 'state_dict.pt'))
        self.train({module.training})

    {code}
""")
    (folder / "__init__.py").write_text("from .module import *\n")
