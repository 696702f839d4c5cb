"""Random programs of views and writes: chains of views of inputs and of copies, written in place with and without gradients."""
import random

SHAPES = [(6,), (4, 3), (2, 3, 2), (1, 4), (3, 1, 2)]


def numbers(torch, shape, start):
    count = 1
    for size in shape:
        count *= size
    return torch.arange(start, start + count, dtype=torch.float32).reshape(shape) / 7 - 1


def make_inputs(torch, rng):
    """Leaves, and the inputs made of them: as they are, transposed, parts of something larger, expanded."""
    leaves = [numbers(torch, rng.choice(SHAPES), float(i)).requires_grad_(rng.random() < 0.8) for i in range(2)]
    leaves.append(torch.tensor(0.5, requires_grad=True))
    inputs = []
    for leaf in leaves[:2]:
        x = leaf * 1
        kind = rng.randrange(5)
        if kind == 1:
            x = x.transpose(0, -1)
        elif kind == 2:
            x = torch.cat([x, x])[1:1 + x.shape[0]]
        elif kind == 3:
            x = torch.stack([x, x], -1)[..., 1]
        inputs.append(x)
    return leaves, inputs + [leaves[2]]


class Program:
    """The same steps for every call: which ones follows from the seed and from the shapes met."""

    def __init__(self, torch, seed, length):
        self.torch, self.seed, self.length = torch, seed, length
        self.steps = []

    def __call__(self, *inputs):
        rng = random.Random(self.seed)
        torch = self.torch
        *tensors, weight = inputs
        tensors = list(tensors)
        self.steps = []
        for _ in range(self.length):
            count = len(tensors)
            try:
                self.step(rng, tensors, weight)
            except (RuntimeError, IndexError) as error:  # a program may go on after an error
                if "cannot be captured" in str(error):
                    raise
                self.steps.append(type(error).__name__)
                del tensors[count:]
        kept = [t for t in tensors[2:] if rng.random() < 0.3]
        return [*kept, *[torch.as_tensor(t * 1) for t in tensors]]

    def step(self, rng, tensors, weight):
        torch = self.torch
        number = rng.randrange(len(tensors))
        if rng.random() < 0.5 and len(tensors) > 2:
            number = rng.randrange(2, len(tensors))
        t = tensors[number]
        kind = rng.random()
        if kind < 0.45:
            name, view = self.view(rng, t)
            self.steps.append(f"t{len(tensors)} = t{number}.{name}")
            tensors.append(view())
        elif kind < 0.5:
            self.steps.append(f"t{len(tensors)} = t{number}.clone()")
            tensors.append(t.clone())
        elif kind < 0.55:
            self.steps.append(f"t{len(tensors)} = t{number}.sin()")
            tensors.append(t.sin())
        else:
            other_number = rng.randrange(len(tensors))
            name, write = self.write(rng, t, tensors[other_number], other_number, weight)
            without = rng.random() < 0.25
            self.steps.append(f"t{number}.{name}" + (" without grad" if without else ""))
            if without:
                with torch.no_grad():
                    write()
            else:
                write()

    def view(self, rng, t):
        dim = rng.randrange(max(t.dim(), 1))
        size = t.shape[dim] if t.dim() else 1
        start = rng.randrange(size) if size else 0
        choices = [
            ("view(-1)", lambda: t.view(-1)),
            ("reshape(-1)", lambda: t.reshape(-1)),
            ("unsqueeze(0)", lambda: t.unsqueeze(0)),
            ("squeeze()", lambda: t.squeeze()),
            ("detach()", lambda: t.detach()),
            ("view_as(t)", lambda: t.view_as(t)),
        ]
        if t.dim():
            choices += [
                (f"narrow({dim}, {start}, {size - start})", lambda: t.narrow(dim, start, size - start)),
                (f"select({dim}, {start})", lambda: t.select(dim, start)),
                (f"transpose(0, {dim})", lambda: t.transpose(0, dim)),
                ("[::2]", lambda: t[::2]),
                (f"split(1, {dim})[0]", lambda: t.split(1, dim)[0]),
                (f"as_strided last of dim {dim}", lambda: t.as_strided([size], [t.stride(dim)], t.storage_offset())),
            ]
        if t.dim() > 1:
            choices += [("diagonal()", lambda: t.diagonal()), ("flatten(0, 1)", lambda: t.flatten(0, 1)),
                        ("permute", lambda: t.permute(*reversed(range(t.dim()))))] * 2
        if t.dim() < 3:
            choices.append(("expand(2, ...)", lambda: t.expand(2, *t.shape)))
        return rng.choice(choices)

    def write(self, rng, t, other, other_number, weight):
        torch = self.torch
        factor = rng.choice([2.0, -0.5])

        def set_first():
            t[0] = weight

        def set_mask():
            if t.dim():  # the mask of one number asks for that number
                t[t > 0] = factor
        return rng.choice([
            (f"mul_({factor})", lambda: t.mul_(factor)),
            ("mul_(w)", lambda: t.mul_(weight)),
            ("add_(w)", lambda: t.add_(weight)),
            ("sin_()", lambda: t.sin_()),
            ("zero_()", lambda: t.zero_()),
            ("fill_(w)", lambda: t.fill_(weight)),
            (f"mul_(t{other_number})", lambda: t.mul_(other)),
            (f"copy_(t{other_number})", lambda: t.copy_(other)),
            (f"copy_(t{other_number}.clone())", lambda: t.copy_(other.clone())),
            (f"add_(t{other_number} * w)", lambda: t.add_(other * weight)),
            ("masked_fill_", lambda: t.masked_fill_(t > 0, factor)),
            ("[0] = w", set_first),
            ("[t > 0] = factor", set_mask),
            ("out", lambda: torch.mul(other.detach(), factor, out=t)),
        ])


def observe(torch, program, function, seed):
    """Everything a caller can see of one call, or how it failed."""
    rng = random.Random(seed)
    leaves, inputs = make_inputs(torch, rng)
    try:
        outputs = function(*inputs)
    except (RuntimeError, IndexError, NotImplementedError) as error:
        return type(error).__name__, str(error)
    seen = {"steps": list(program.steps), "outputs": [t.detach().tolist() for t in outputs], "sizes": [list(t.shape) for t in outputs],
            "inputs": [t.detach().tolist() for t in inputs], "input sizes": [t.shape for t in inputs]}
    try:
        seen["requires"] = [t.requires_grad for t in outputs]
        total = sum((t * numbers(torch, t.shape, 2.0 + i)).sum() for i, t in enumerate([*outputs, *inputs]))
        if total.requires_grad:
            total.backward()
        seen["gradients"] = [None if t.grad is None else t.grad.tolist() for t in leaves]
    except RuntimeError as error:
        seen["backward"] = str(error)
    return seen
