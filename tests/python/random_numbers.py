"""Draws of every random operator and initialiser; `python random_numbers.py` under PyTorch writes what they give there.

Of each there is a checksum over five seeds, of the numbers drawn and of the ones that follow: the same numbers, and as many draws.
"""
import gzip
import json
import os
import zlib

EXPECTED = os.path.join(os.path.dirname(__file__), "expected", "random_numbers.json.gz")
SEEDS = (0, 1, 42, 1234567, 2**40 + 3)
# Around the sizes at which PyTorch changes over to vectors.
SIZES = (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000, 4099)
SHAPES = [(n,) for n in SIZES] + [(3, 5), (4, 4), (2, 3, 5), (16, 16)]


def fills(torch, dtype, shape):
    """What fills or makes a tensor of a floating type."""
    def empty():
        return torch.empty(shape, dtype=dtype)

    def full(value):
        return torch.full(shape, value, dtype=dtype)
    n = empty().numel()
    draws = {
        "uniform": lambda: empty().uniform_(),
        "uniform between": lambda: empty().uniform_(-2.5, 3.25),
        "normal": lambda: empty().normal_(),
        "normal around": lambda: empty().normal_(1.5, 0.3),
        "exponential": lambda: empty().exponential_(0.7),
        "cauchy": lambda: empty().cauchy_(1.0, 2.0),
        "log_normal": lambda: empty().log_normal_(0.3, 0.4),
        "geometric": lambda: empty().geometric_(0.3),
        "bernoulli": lambda: empty().bernoulli_(0.4),
        "bernoulli of tensor": lambda: empty().bernoulli_(torch.linspace(0, 1, max(n, 1))[:n].reshape(shape)),
        "bernoulli as function": lambda: torch.bernoulli(full(0.3)),
        "random": lambda: empty().random_(),
        "random to": lambda: empty().random_(100),
        "random from": lambda: empty().random_(-7, 91),
        "dropout": lambda: torch.nn.functional.dropout(full(1.0), 0.3, True),
        "alpha_dropout": lambda: torch.alpha_dropout(full(1.0), 0.3, True),
        "rand_like": lambda: torch.rand_like(empty()),
        "randn_like": lambda: torch.randn_like(empty()),
        "poisson, few": lambda: torch.poisson(full(2.5)),
        "poisson, many": lambda: torch.poisson(full(40.25)),
        "normal of tensors": lambda: torch.normal(full(1.0), full(0.5)),
        "normal around a tensor": lambda: torch.normal(full(1.0), 0.5),
        "normal by a tensor": lambda: torch.normal(0.5, full(0.5)),
    }
    if dtype != torch.float16:
        draws["rrelu"] = lambda: torch.rrelu(full(-1.0), 0.1, 0.4, True)
    if dtype in (torch.float32, torch.float64):
        draws |= {
            "gamma": lambda: torch._standard_gamma(full(2.3)),
            "gamma below 1": lambda: torch._standard_gamma(full(0.3)),
            "dirichlet": lambda: torch._sample_dirichlet(full(1.7)),
            "binomial, few": lambda: torch.binomial(full(12.0), full(0.3)),
            "binomial, many": lambda: torch.binomial(full(200.0), full(0.3)),
            "binomial, likely": lambda: torch.binomial(full(200.0), full(0.8)),
        }
    return draws


def whole_numbers(torch, n):
    """Integers, permutations and choices."""
    draws = {}
    for dtype in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8, torch.bool):
        name = str(dtype).split(".")[-1]
        draws[f"random {name}"] = lambda dtype=dtype: torch.empty(n, dtype=dtype).random_()
        draws[f"randint {name}"] = lambda dtype=dtype: torch.randint(0, 2, (n,), dtype=dtype)
        draws[f"bernoulli {name}"] = lambda dtype=dtype: torch.empty(n, dtype=dtype).bernoulli_(0.2)
        if dtype != torch.bool:
            draws[f"geometric {name}"] = lambda dtype=dtype: torch.empty(n, dtype=dtype).geometric_(0.2)
        if dtype in (torch.int64, torch.int32):
            draws[f"randperm {name}"] = lambda dtype=dtype: torch.randperm(n, dtype=dtype)
    draws["randint of 64 bits"] = lambda: torch.randint(-(2**40), 2**50, (n,))
    draws["random above"] = lambda: torch.empty(n, dtype=torch.int64).random_(5, None)
    draws["randn complex"] = lambda: torch.view_as_real(torch.randn(n, dtype=torch.complex64))
    draws["rand complex"] = lambda: torch.view_as_real(torch.rand(n, dtype=torch.complex128))
    for dtype in (torch.float32, torch.float64, torch.float16) if n else ():
        name, p = str(dtype).split(".")[-1], torch.linspace(0.1, 1, n, dtype=torch.float64).to(dtype)
        draws[f"multinomial, one of {name}"] = lambda p=p: torch.multinomial(p, 1)
        draws[f"multinomial, some of {name}"] = lambda p=p: torch.multinomial(p, max(1, n // 2))
        draws[f"multinomial, put back {name}"] = lambda p=p: torch.multinomial(p.expand(3, n), 10, True)
    return draws


def layouts(torch, dtype):
    """Tensors that are not contiguous are filled in the order of their memory; what is made of them is not."""
    def spread(low, high):
        return torch.linspace(low, high, 35, dtype=dtype).reshape(5, 7).t()
    draws = {}
    for name, fill in {"normal": lambda t: t.normal_(), "uniform": lambda t: t.uniform_(), "exponential": lambda t: t.exponential_(),
                       "bernoulli": lambda t: t.bernoulli_(0.3), "random": lambda t: t.random_(50),
                       "bernoulli by a tensor": lambda t: t.bernoulli_(torch.linspace(0, 1, t.numel()).reshape(t.shape)),
                       "bernoulli into an output": lambda t: torch.bernoulli(torch.full(t.shape, 0.4), out=t),
                       "native_dropout": lambda t: torch.native_dropout(t.fill_(1), 0.3, True)[0],
                       "native_dropout of all": lambda t: torch.native_dropout(t.fill_(1), 1.0, True)[0]}.items():
        draws[f"{name}, transposed"] = lambda fill=fill: fill(torch.empty(5, 7, dtype=dtype).t())
        draws[f"{name}, every second"] = lambda fill=fill: fill(torch.empty(5, 40, dtype=dtype)[:, ::2])
        draws[f"{name}, permuted"] = lambda fill=fill: fill(torch.empty(3, 4, 5, dtype=dtype).permute(1, 2, 0))
    return draws | {
        "gamma, transposed": lambda: torch._standard_gamma(spread(0.1, 30)),
        "poisson, transposed": lambda: torch.poisson(spread(0.1, 30)),
        "binomial, transposed": lambda: torch.binomial(spread(1, 300).floor(), spread(0, 1)),
        "dirichlet, transposed": lambda: torch._sample_dirichlet(spread(0.1, 30)),
        "feature_dropout": lambda: torch.feature_dropout(torch.ones(3, 4, 5, dtype=dtype), 0.4, True),
        "feature_alpha_dropout": lambda: torch.feature_alpha_dropout(torch.ones(3, 4, 5, dtype=dtype), 0.4, True),
    }


def generators(torch, seed):
    """Generators of one's own, forks, states that are saved and restored."""
    g = torch.Generator()
    g.manual_seed(seed)

    def forked():
        torch.randn(5)
        with torch.random.fork_rng():
            torch.randn(7)
        return torch.randn(5)

    def restored():
        torch.empty(3).normal_()
        state = torch.get_rng_state()
        first = torch.randn(9)
        torch.set_rng_state(state)
        return torch.stack([first, torch.randn(9)])
    return {
        "rand by generator": lambda: torch.rand(20, generator=g), "randn by generator": lambda: torch.randn(20, generator=g),
        "randint by generator": lambda: torch.randint(9, (20,), generator=g), "randperm by generator": lambda: torch.randperm(20, generator=g),
        "normal by generator": lambda: torch.normal(torch.ones(20), 1.0, generator=g),
        "multinomial by generator": lambda: torch.multinomial(torch.ones(20), 4, generator=g),
        "bernoulli by generator": lambda: torch.bernoulli(torch.ones(20) / 3, generator=g),
        "poisson by generator": lambda: torch.poisson(torch.ones(20), generator=g),
        "exponential by generator": lambda: torch.empty(20).exponential_(generator=g),
        "forked": forked, "restored": restored, "normal of a size": lambda: torch.normal(1.0, 2.0, (33,)),
        "state": lambda: (torch.empty(3).normal_(), torch.get_rng_state())[1],
        "fresh state": lambda: (torch.manual_seed(seed), torch.get_rng_state())[1],
    }


def initialisers(torch):
    names = ("uniform_", "normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "trunc_normal_")
    return {f"init.{n}": lambda n=n: getattr(torch.nn.init, n)(torch.empty(13, 11)) for n in names}


def draws(torch, seed):
    """All of them, by name."""
    cases = {}
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for shape in SHAPES:
            for name, draw in fills(torch, dtype, shape).items():
                cases[f"{name} {str(dtype).split('.')[-1]} {list(shape)}"] = draw
    for n in SIZES:
        cases |= {f"{name} {n}": draw for name, draw in whole_numbers(torch, n).items()}
    for dtype in (torch.float32, torch.float64):
        cases |= {f"{name} {str(dtype).split('.')[-1]}": draw for name, draw in layouts(torch, dtype).items()}
    return cases | generators(torch, seed) | initialisers(torch)


def _bytes(torch, tensor):
    tensor = tensor.detach().contiguous()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy().tobytes()


def checksums(torch):
    """A number for each case: of what is drawn with each seed, and of what is drawn next."""
    sums = {}
    for seed in SEEDS:
        for name, draw in draws(torch, seed).items():
            torch.manual_seed(seed)
            drawn = _bytes(torch, draw())
            sums[name] = zlib.crc32(_bytes(torch, torch.rand(3, dtype=torch.float64)), zlib.crc32(drawn, sums.get(name, 0)))
    return sums


if __name__ == "__main__":
    import torch
    with gzip.GzipFile(EXPECTED, "w", mtime=0) as file:
        file.write(json.dumps(checksums(torch), separators=(",", ":")).encode())
