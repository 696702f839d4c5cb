"""Random expressions over three sizes as PyTorch prints them and as Umbra does, and the values of both texts.

    python tests/compare/expressions.py --torch PYTHON_WITH_TORCH --count 2000 --store FILE
    python tests/compare/expressions.py --torch PYTHON_WITH_TORCH --count 20000 --seed 7

Without a FILE what PyTorch prints is parsed and evaluated at once, and what Umbra prints has the values of the expression.
Each line of FILE is an expression in Python, the text that PyTorch's sympy prints for it, and its values at some sizes. `tests/python/test_symbolic_text.py`
reads a stored one: what Umbra prints for the expression, and what it parses of PyTorch's text, has these values.
"""
import argparse
import json
import random
import re
import subprocess

HINTS = (5, 7, 11)
POINTS = [(2, 3, 4), (5, 7, 11), (6, 6, 2), (13, 2, 9), (31, 17, 8), (4, 12, 25)]


def draw(rng, depth):
    """An expression over a, b, c as Python text."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(["a", "b", "c", "a", "b", "c", str(rng.randint(-3, 9))])
    one, other, kind = draw(rng, depth - 1), draw(rng, depth - 1), rng.randrange(12)
    k = rng.randint(2, 6)
    if kind < 3:
        return f"({one} + {other})"
    if kind < 5:
        return f"({one} - {other})"
    if kind < 7:
        return f"({one}*{other})"
    return [f"({one} // {k})", f"({one} % {k})", f"larger({one}, {other})", f"smaller({one}, {other})", f"({one} // ({rng.choice('abc')} + {k}))"][kind - 7]


FUNCTIONS = {"Max": max, "Min": min, "Mod": lambda a, b: a % b, "PythonMod": lambda a, b: a % b, "FloorDiv": lambda a, b: a // b}


def of_text(text, point):
    """The value of what was printed."""
    return eval(text, {**FUNCTIONS, **dict(zip("abc", point))})


def is_parsed(printed, point, expected):
    """Whether Umbra reads a text as an expression of this value."""
    from umbra import _C
    code = re.sub(r"\b[abc]\b", lambda letter: f"L['{letter[0]}']", printed)
    return _C._evaluate_guard_code(f"Eq({code}, {expected})", {f"L['{letter}']": size for letter, size in zip("abc", point)})


def value(text, sizes, larger=max, smaller=min):
    return eval(text, {**dict(zip("abc", sizes)), "larger": larger, "smaller": smaller})


def expressions(count, seed=0):
    rng, seen = random.Random(seed), set()
    while len(seen) < count:
        text = draw(rng, rng.randint(1, 4))
        if text not in seen and any(letter in text for letter in "abc"):
            seen.add(text)
            yield text


def texts(torch, count, seed=0):
    """(expression, its text over s_a, s_b and s_c) in a package."""
    from importlib import import_module
    fakes, shapes = (import_module(f"{torch.__name__}.{name}") for name in ("_subclasses.fake_tensor", "fx.experimental.symbolic_shapes"))
    for number, text in enumerate(expressions(count, seed)):
        if number % 500 == 0:  # what is known of earlier expressions has no part in later ones for long
            sizes = fakes.FakeTensorMode(shape_env=shapes.ShapeEnv()).from_tensor(torch.empty(HINTS, device="meta")).shape
            names = {str(size): letter for size, letter in zip(sizes, "abc")}
        printed = str(value(text, sizes, torch.sym_max, torch.sym_min))
        yield text, re.sub(r"\bs\d+\b", lambda name: names[name[0]], printed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        import torch
        for line in texts(torch, options.count, options.seed):
            print(json.dumps(line))
        return
    command = [options.torch, __file__, "--inside", "--count", str(options.count), "--seed", str(options.seed)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    import umbra
    pairs = [(text, printed, ours) for (text, printed), (_, ours) in zip(map(json.loads, lines), texts(umbra, options.count, options.seed))]
    if options.store:
        with open(options.store, "w") as file:
            for text, printed, _ in pairs:
                file.write(json.dumps([text, printed, [value(text, point) for point in POINTS]]) + "\n")
    else:
        for text, printed, ours in pairs:
            for point in POINTS:
                expected, theirs = value(text, point), of_text(printed, point)
                if of_text(ours, point) != expected or not is_parsed(printed, point, theirs):
                    print(f"WRONG {text} at {point}: {expected}; ours {ours}, PyTorch's {printed}")
                elif theirs != expected:
                    print(f"PyTorch's text of {text} has another value at {point}: {theirs}, not {expected}")
    print(f"{sum(printed == ours for _, printed, ours in pairs)} of {len(pairs)} texts are the same")


if __name__ == "__main__":
    main()
