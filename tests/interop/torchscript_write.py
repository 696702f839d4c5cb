"""Models of torchvision, traced and scripted by real torch: archives, inputs and outputs for Umbra to repeat. Needs torch and torchvision.

usage: torchscript_write.py FOLDER
"""
import os
import sys
import warnings

import torch
from torchvision import models

warnings.simplefilter("ignore")
NAMES = ["resnet18", "resnet50", "resnext50_32x4d", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "shufflenet_v2_x0_5",
         "shufflenet_v2_x1_0", "squeezenet1_0", "squeezenet1_1", "mnasnet0_5", "efficientnet_b0", "efficientnet_v2_s", "regnet_y_400mf",
         "regnet_x_400mf", "densenet121", "googlenet", "convnext_tiny", "swin_t", "swin_v2_t", "lraspp_mobilenet_v3_large",
         "deeplabv3_mobilenet_v3_large", "small_vit"]


def make(name):
    if name == "small_vit":
        return models.VisionTransformer(image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128)
    if name == "googlenet":
        return models.googlenet(weights=None, aux_logits=False, init_weights=False)
    if name.startswith(("lraspp", "deeplab")):
        return models.get_model(name, weights=None, weights_backbone=None)
    return models.get_model(name, weights=None)


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in (value.values() if isinstance(value, dict) else value) for t in tensors(v)]


def main(folder):
    for name in NAMES:
        torch.manual_seed(0)
        model = make(name).eval()
        with torch.no_grad():  # random weights give outputs near zero in deep models; these keep their size
            for m in model.modules():
                if isinstance(m, torch.nn.BatchNorm2d):
                    m.running_mean.normal_(0, 0.1)
                    m.running_var.uniform_(0.5, 1.5)
        x = torch.randn(2, 3, 64, 64)
        with torch.no_grad():
            expected = tensors(model(x))
        for kind in ("traced", "scripted"):
            try:
                program = torch.jit.trace(model, x, strict=False, check_trace=False) if kind == "traced" else torch.jit.script(model)
            except Exception as error:  # noqa: BLE001 - torch's own limits are named and left out
                print(f"{name} {kind}: torch refuses it ({type(error).__name__})")
                continue
            base = os.path.join(folder, f"{name}.{kind}")
            torch.jit.save(program, base + ".pt")
            torch.save({"x": x, **{f"o{i}": t for i, t in enumerate(expected)}}, base + ".tensors.pth")


if __name__ == "__main__":
    main(sys.argv[1])
