"""What partitioners keep for the backward, and what they compute again: of four models of the sizes of BERT, GPT-2, ViT and ResNet-50.

    python tests/compare/partitions.py --package torch --write tests/compare/partitions.json    # with a Python that has torch
    python tests/compare/partitions.py                                                          # Umbra beside what was written

Models and inputs are fake: nothing is computed. Bytes are those of saved values that are neither inputs nor views of them; work is that of matrix products, convolutions and
attention that the backward does beyond what it does where everything is kept.
"""
import argparse
import json
import math
import pathlib
import sys

FACTS = pathlib.Path(__file__).with_name("partitions.json")


def models(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, width, heads, causal, norm_first):
            super().__init__()
            self.heads, self.causal, self.norm_first = heads, causal, norm_first
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x):
            b, t, w = x.shape
            q, k, v = (p.view(b, t, self.heads, w // self.heads).transpose(1, 2) for p in self.qkv(x).split(w, 2))
            scores = q @ k.transpose(-2, -1) / math.sqrt(w // self.heads)
            if self.causal:
                scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -1e9)
            return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, w))

        def feed(self, x):
            return self.down(F.gelu(self.up(x)))

        def forward(self, x):
            if self.norm_first:
                x = x + self.attend(self.norm1(x))
                return x + self.feed(self.norm2(x))
            x = self.norm1(x + self.attend(x))
            return self.norm2(x + self.feed(x))

    class Text(nn.Module):
        def __init__(self, causal):
            super().__init__()
            self.words, self.places = nn.Embedding(8192, 768), nn.Embedding(256, 768)
            self.blocks = nn.ModuleList([Block(768, 12, causal, causal) for _ in range(12)])
            self.head = nn.Linear(768, 8192)

        def forward(self, ids):
            x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(x).logsumexp(-1).mean()

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, 768, 16, 16)
            self.blocks = nn.ModuleList([Block(768, 12, False, True) for _ in range(12)])
            self.head = nn.Linear(768, 1000)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean(1)).logsumexp(-1).mean()

    class Bottleneck(nn.Module):
        def __init__(self, inside, width, stride):
            super().__init__()
            self.conv1, self.conv2, self.conv3 = (nn.Conv2d(inside, width, 1, bias=False), nn.Conv2d(width, width, 3, stride, 1, bias=False),
                                                  nn.Conv2d(width, 4 * width, 1, bias=False))
            self.norm1, self.norm2, self.norm3 = nn.BatchNorm2d(width), nn.BatchNorm2d(width), nn.BatchNorm2d(4 * width)
            same = inside == 4 * width and stride == 1
            self.short = nn.Identity() if same else nn.Sequential(nn.Conv2d(inside, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)))
            y = F.relu(self.norm2(self.conv2(y)))
            return F.relu(self.norm3(self.conv3(y)) + self.short(x))

    def resnet():
        layers, inside = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                layers.append(Bottleneck(inside, width, stride if i == 0 else 1))
                inside = 4 * width
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))

    return {
        "BERT": lambda: (Text(False), torch.zeros(8, 128, dtype=torch.int64)),
        "GPT-2": lambda: (Text(True), torch.zeros(4, 256, dtype=torch.int64)),
        "ViT": lambda: (ViT(), torch.zeros(8, 3, 224, 224)),
        "ResNet-50": lambda: (resnet(), torch.zeros(8, 3, 224, 224)),
    }


def _flops(node):
    """Of the calls that forward graphs are made of."""
    def shape(n):
        return [int(s) for s in n.meta["val"].shape]
    name, args = str(node.target), node.args
    if name in ("aten.mm.default", "aten.bmm.default"):
        return 2 * math.prod(shape(args[0])) * shape(args[1])[-1]
    if name == "aten.addmm.default":
        return 2 * math.prod(shape(args[1])) * shape(args[2])[-1]
    if name == "aten.convolution.default":
        return 2 * shape(args[0])[0] * math.prod(shape(node)[2:]) * math.prod(shape(args[1]))
    return 0


_VIEWS = {"aten.t.default", "aten.view.default", "aten.transpose.int", "aten.permute.default", "aten.expand.default", "aten.unsqueeze.default",
          "aten.squeeze.dim", "aten.slice.Tensor", "aten.select.int", "aten.detach.default", "aten.alias.default", "aten._unsafe_view.default"}


def _root(node):
    """What a value is a view of: a transposed weight takes no memory."""
    while str(node.target) in _VIEWS:
        node = node.args[0]
    return node


def measure(torch, make, partition, budget):
    """Bytes that are kept, and floating-point operations of the backward."""
    from torch._functorch import config
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._subclasses import FakeTensorMode
    graphs = []

    def compiler(graph, _):
        graphs.append(graph)
        return graph.forward

    def cut(joint, inputs, **options):
        parts = partition(joint, inputs, **options)
        graphs.extend(parts)
        cut.outputs = options["num_fwd_outputs"]
        raise StopIteration
    with FakeTensorMode(allow_non_fake_inputs=True):
        model, x = make()

        class Flat(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, x):
                return (self.model(x).sum(),)
        with config.patch(activation_memory_budget=budget):
            try:
                aot_module_simplified(Flat(), (x,), compiler, bw_compiler=compiler, partition_fn=cut)
            except BaseException as error:
                if not graphs:
                    raise error
    forward, backward = graphs[:2]
    outputs = next(node for node in forward.graph.nodes if node.op == "output").args[0]
    kept = [node for node in dict.fromkeys(outputs[cut.outputs:]) if _root(node).op != "placeholder"]
    kept = list({_root(node): node for node in kept}.values())  # several views of one value keep it once
    size = sum(node.meta["val"].numel() * node.meta["val"].element_size() for node in kept if hasattr(node.meta["val"], "numel"))
    return int(size), sum(_flops(node) for node in backward.graph.nodes if node.op == "call_function")


def facts(torch, name):
    from functorch.compile import default_partition, min_cut_rematerialization_partition
    make = models(torch)[name]
    _, least = measure(torch, make, default_partition, 1.0)
    out = {}
    for budget in (1.0, 0.5):
        size, work = measure(torch, make, min_cut_rematerialization_partition, budget)
        out[str(budget)] = {"bytes": size, "work": work - least}
    return out


def at_bytes(torch, name, most, wanted):
    """What is kept and computed again where no more than `wanted` bytes may be kept; `most` are kept without a budget."""
    from functorch.compile import default_partition, min_cut_rematerialization_partition
    make = models(torch)[name]
    _, least = measure(torch, make, default_partition, 1.0)
    size, work = measure(torch, make, min_cut_rematerialization_partition, min(1.0, wanted / most))
    return size, work - least


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", choices=("umbra", "torch"), default="umbra")
    parser.add_argument("--write", metavar="FILE")
    args = parser.parse_args()
    if args.package == "umbra":
        import umbra.compat
        umbra.compat.install()
    import torch
    stored = json.loads(FACTS.read_text()) if FACTS.exists() and not args.write else {}
    results = {}
    for name in models(torch):
        results[name] = facts(torch, name)
        for budget, found in results[name].items():
            beside = stored.get(name, {}).get(budget, {})
            print(name, f"budget {budget}:", *(f"{what} {value:,}" + (f" ({beside[what]:,})" if beside else "") for what, value in found.items()), flush=True)
        if stored:
            wanted = stored[name]["0.5"]
            size, work = at_bytes(torch, name, results[name]["1.0"]["bytes"], wanted["bytes"])
            print(name, f"in PyTorch's bytes at 0.5: bytes {size:,} ({wanted['bytes']:,}) work {work:,} ({wanted['work']:,})", flush=True)
    if args.write:
        pathlib.Path(args.write).write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
