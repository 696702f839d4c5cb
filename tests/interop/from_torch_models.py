"""Models of torchvision and transformers, with random weights, through umbra.from_torch: equal outputs at two batch sizes, and the time of a capture.

usage: from_torch_models.py [NAME] [--time]     (a Python with torch, torchvision and transformers; --time measures torch.export beside it, both in seconds of the processor)
"""
import sys
import time
import warnings

import torch

import umbra
from umbra.export import Dim

warnings.simplefilter("ignore")


def picture_models():
    import torchvision.models as tv
    for name in ("resnet18", "resnet50", "mobilenet_v3_small", "densenet121", "squeezenet1_1", "shufflenet_v2_x0_5", "convnext_tiny", "efficientnet_b0",
                 "vit_b_16", "swin_t"):
        size = 224 if name.startswith(("vit", "swin")) else 64
        yield name, lambda name=name: getattr(tv, name)(weights=None), lambda batch, size=size: (torch.randn(batch, 3, size, size),), ({0: Dim("batch")},)


def text_models():
    import transformers as hf
    small = {"vocab_size": 500}
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    made = {
        "bert": lambda: hf.BertModel(hf.BertConfig(**small, **sizes)), "gpt2": lambda: hf.GPT2Model(hf.GPT2Config(**small, n_embd=64, n_layer=2, n_head=4)),
        "llama": lambda: hf.LlamaModel(hf.LlamaConfig(**small, **sizes, num_key_value_heads=2)),
        "distilbert": lambda: hf.DistilBertModel(hf.DistilBertConfig(**small, dim=64, n_layers=2, n_heads=4, hidden_dim=128)),
        "roberta": lambda: hf.RobertaModel(hf.RobertaConfig(**small, **sizes)),
        "opt": lambda: hf.OPTModel(hf.OPTConfig(**small, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128, word_embed_proj_dim=64)),
        "bert_base": lambda: hf.BertModel(hf.BertConfig()), "gpt2_base": lambda: hf.GPT2Model(hf.GPT2Config()),
    }
    for name, make in made.items():
        yield name, make, lambda batch: (torch.randint(0, 500, (batch, 16)),), ({0: Dim("batch")},)
    yield "vit_base", lambda: hf.ViTModel(hf.ViTConfig()), lambda batch: (torch.randn(batch, 3, 224, 224),), ({0: Dim("batch")},)


def first(result):
    """The first tensor of what a model gives."""
    return result if isinstance(result, (torch.Tensor, umbra.Tensor)) else first(next(iter(result.values() if isinstance(result, dict) else result)))


def check(model, inputs, shapes):
    example = inputs(2)
    start = time.process_time()
    program = umbra.from_torch(model, example, dynamic_shapes=shapes)
    took = time.process_time() - start
    module = program.module()
    for batch in (2, 5):
        given = inputs(batch)
        with torch.no_grad():
            want = first(model(*given))
        with umbra.no_grad():
            got = torch.from_dlpack(first(module(*[umbra.from_dlpack(x) for x in given])).detach())
        difference = (got - want).abs().max().item()
        assert difference < 1e-3 * (1 + want.abs().max().item()), f"batch {batch}: differs by {difference}"
    return took, len(program.graph.nodes)


def main(wanted="", *flags):
    good = total = 0
    for name, make, inputs, shapes in [*picture_models(), *text_models()]:
        if wanted not in name:
            continue
        total += 1
        torch.manual_seed(0)
        model = make().eval()
        if hasattr(model, "config"):
            model.config.use_cache = False
        try:
            checked = [check(model, inputs, shapes) for _ in range(4 if "--time" in flags else 1)]
            took, nodes = min(checked)
        except Exception as error:  # noqa: BLE001 - counted and named
            print(f"{name:20} {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)
            continue
        good += 1
        text = f"{name:20} equal, {nodes} nodes, from_torch {took * 1e3:.1f} ms"
        if "--time" in flags:
            dims = tuple({d: torch.export.Dim("batch") for d in shape} for shape in shapes)
            spent = []
            for _ in range(2):
                start = time.process_time()
                torch.export.export(model, inputs(2), dynamic_shapes=dims)
                spent.append(time.process_time() - start)
            spent = min(spent)
            text += f", torch.export {spent * 1e3:.0f} ms: {spent / took:.0f} times"
        print(text, flush=True)
    print(f"from_torch equals torch: {good} of {total}")


main(*sys.argv[1:])
