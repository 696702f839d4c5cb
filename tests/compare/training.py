"""Steps of training MLP, ResNet-18, LSTM and GPT, eager, beside PyTorch: the time of one, and the peak of memory over that of the bare package.

    python tests/compare/training.py --ours .venv/bin/python --theirs /path/to/python/with/torch [--threads 1 2] [--rounds 3]
    python tests/compare/training.py --worker umbra --model mlp --threads 2          # one measurement, as JSON

Each measurement is a process of its own, and the packages take turns: what one model leaves behind does not count for the next.
"""
import argparse
import importlib
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def mlp(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    return model, torch.randn(64, 784), torch.randint(0, 10, (64,))


def resnet18(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.shortcut = None
            if stride != 1 or inputs != outputs:
                self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            y += x if self.shortcut is None else self.shortcut(x)
            return self.relu(y)

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for inputs, outputs, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    return model, torch.randn(4, 3, 96, 96), torch.randint(0, 1000, (4,))


def lstm(torch):
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(128, 256, num_layers=2, batch_first=True)
            self.head = nn.Linear(256, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    return Model(), torch.randn(16, 48, 128), torch.randint(0, 10, (16,))


def gpt(torch):
    _, Gpt = importlib.import_module("transformer").transformer(torch)
    model = Gpt(width=256, heads=8, layers=6)
    return model, torch.randint(0, 1000, (2, 128)), torch.randint(0, 1000, (256,))


MODELS = {"mlp": mlp, "resnet18": resnet18, "lstm": lstm, "gpt": gpt}


def warm(torch, F):
    """A step of a small model of all kinds of layers: what is loaded when it is first used is there before memory counts."""
    nn = torch.nn
    convolve = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    follow, attend = nn.LSTM(8, 8, batch_first=True), nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU())
    optimizer = torch.optim.SGD([*convolve.parameters(), *follow.parameters(), *attend.parameters()], lr=0.01)
    sequence = follow(convolve(torch.randn(4, 3, 8, 8)).unsqueeze(1))[0]
    sequence = F.scaled_dot_product_attention(sequence, sequence, sequence, is_causal=True)
    F.cross_entropy(attend(sequence).squeeze(1), torch.randint(0, 8, (4,))).backward()
    optimizer.step()


def memory(field):
    """VmRSS or VmHWM of this process, in MiB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))


def measure(package, name, threads):
    torch = importlib.import_module(package)
    F = importlib.import_module(package + ".nn.functional")
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    warm(torch, F)
    before = memory("VmRSS")
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # the peak begins here
    model, x, target = MODELS[name](torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).reshape(len(target), -1), target)
        loss.backward()
        optimizer.step()
    times = []
    for _ in range(12):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return {"ms": min(times) * 1e3, "mb": memory("VmHWM") - before}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", metavar="PACKAGE", help="measure this package, here")
    parser.add_argument("--model", choices=MODELS, nargs="*", default=list(MODELS))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3, help="processes of each package; the least of each figure counts")
    parser.add_argument("--ours", default=".venv/bin/python")
    parser.add_argument("--theirs", default="python3")
    given = parser.parse_args()
    if given.worker:
        print(json.dumps(measure(given.worker, given.model[0], given.threads[0])))
        return
    print(f"{'model':<12}{'threads':>8}{'umbra ms':>12}{'torch ms':>12}{'ratio':>8}{'umbra MB':>12}{'torch MB':>12}{'ratio':>8}")
    for threads in given.threads:
        for model in given.model:
            runs = {"umbra": [], "torch": []}
            for _ in range(given.rounds):
                for package, python in (("umbra", given.ours), ("torch", given.theirs)):
                    command = [python, __file__, "--worker", package, "--model", model, "--threads", str(threads)]
                    runs[package].append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
            ours, theirs = ({key: min(run[key] for run in runs[package]) for key in ("ms", "mb")} for package in ("umbra", "torch"))
            print(f"{model:<12}{threads:>8}{ours['ms']:>12.2f}{theirs['ms']:>12.2f}{ours['ms'] / theirs['ms']:>8.2f}"
                  f"{ours['mb']:>12.1f}{theirs['mb']:>12.1f}{ours['mb'] / theirs['mb']:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
