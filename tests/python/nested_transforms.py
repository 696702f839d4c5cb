"""Functions and transforms nested in every order; `python nested_transforms.py` under PyTorch writes what they give there."""
import itertools
import json
import os

EXPECTED = os.path.join(os.path.dirname(__file__), "expected", "nested_transforms.json")


def functions(torch):
    """Functions of a vector of three numbers: arithmetic, views, reductions, writes, indexing, closures."""
    F = torch.nn.functional
    weight = torch.tensor([[0.3, -0.2, 0.5], [0.1, 0.7, -0.4]], dtype=torch.float64)
    picked, placed = torch.tensor([2, 0, 0]), torch.tensor([1, 3, 1])

    def layer_norm(x):
        if torch.__name__ == "torch":  # there derivatives of derivatives along a tangent take the statistics for constants
            return (x - x.mean()) / (x.var(unbiased=False) + 1e-5).sqrt()
        return F.layer_norm(x, (3,))

    def written(x):
        y = x.clone()
        y.mul_(x)
        y[0] = y[1] * 2
        y[1:].add_(x.sin()[:2])
        return y
    return {
        "product": lambda x: x.sin() * x,
        "scan": lambda x: x.exp().cumsum(0),
        "power": lambda x: (x ** 3).sum() * x,
        "outer": lambda x: x.tanh().unsqueeze(1) * x,
        "softmax": lambda x: torch.softmax(x, 0),
        "logarithm": lambda x: (x * x + 1).log(),
        "matmul": lambda x: (weight @ x).relu() * x.sum(),
        "layer_norm": layer_norm,
        "written": written,
        "cat": lambda x: torch.cat([x, x.sin()]) ** 2,
        "expanded": lambda x: x.view(3, 1).expand(3, 2).reshape(-1) * x.repeat(2),
        "where": lambda x: torch.where(x > 0.5, x * x, x.sin()),
        "prod": lambda x: x.prod() * x,
        "stack": lambda x: torch.stack([x, x * x]) @ x,
        "variance": lambda x: x.sigmoid().mean() + x.var(),
        "indexed": lambda x: x[picked] ** 3,
        "sorted": lambda x: x.sort(descending=True).values * x * x,
        "gelu": lambda x: F.gelu(F.linear(x, weight)),
        "logsumexp": lambda x: torch.logsumexp(x, 0) * x,
        "index_add": lambda x: torch.zeros(4, dtype=torch.float64).index_add(0, placed, x * x) ** 2,
    }


def transforms(torch):
    """Each makes of a function of a vector another one."""
    grad, vjp, jvp, vmap, jacrev, jacfwd = (getattr(torch.func, n) for n in ("grad", "vjp", "jvp", "vmap", "jacrev", "jacfwd"))

    def pulled(f, x):
        y, pull = vjp(f, x)
        return pull(y.cos())[0]
    return {
        "grad": lambda f: grad(lambda x: f(x).sum()),
        "vjp": lambda f: lambda x: pulled(f, x),
        "jvp": lambda f: lambda x: jvp(f, (x,), (x * 0.5 + 1,))[1],
        "vmap": lambda f: lambda x: vmap(f)(torch.stack([x, x * 0.5])).sum(0),
        "jacrev": jacrev,
        "jacfwd": jacfwd,
    }


def orders(torch):
    return [order for depth in (1, 2, 3) for order in itertools.product(transforms(torch), repeat=depth)]


def value(torch, function, order):
    """One number for the result of a nesting: every element counts, with a weight of its own."""
    table = transforms(torch)
    for name in reversed(order):
        function = table[name](function)
    result = function(torch.tensor([0.4, -0.7, 1.3], dtype=torch.float64)).reshape(-1)
    weights = torch.arange(result.numel(), dtype=torch.float64).cos()
    return float((result * weights).sum()), bool(result.requires_grad)


if __name__ == "__main__":
    import torch
    out = {name: [float(f"{value(torch, f, order)[0]:.9g}") for order in orders(torch)] for name, f in functions(torch).items()}
    with open(EXPECTED, "w") as file:
        json.dump(out, file, separators=(",", ":"))
