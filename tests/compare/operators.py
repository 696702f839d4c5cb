"""Operators at a small, a middle and a large size: `cases(torch)` gives {name: (make, sizes)}, where `make(*size)` gives what is timed.

The same lines run with Umbra and with PyTorch; every case makes its own inputs, from a fixed seed.
"""
import importlib

SIZES = ("small", "middle", "large")
SQUARE, FLAT = ((16, 16), (256, 256), (1024, 1024)), ((256,), (65536,), (1 << 20,))
IMAGE = ((1, 16, 8), (4, 64, 28), (8, 128, 56))


def training_step(torch, widths):
    """One step of a multilayer perceptron with SGD, as people write it."""
    def make(batch):
        layers = []
        for a, b in zip(widths, widths[1:]):
            layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
        model = torch.nn.Sequential(*layers[:-1])
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        x, y = torch.randn(batch, widths[0]), torch.randint(0, widths[-1], (batch,))

        def step():
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        return step
    return make


def unary(torch, f, dtype=None, positive=False):
    """`f` of one tensor of normal, or positive, numbers."""
    def make(*size):
        x = torch.randn(size).abs() + 0.1 if positive else torch.randn(size)
        x = x if dtype is None else x.to(dtype)
        return lambda: f(x)
    return make


def binary(torch, f, dtype=None):
    def make(*size):
        x, y = torch.randn(size), torch.randn(size)
        if dtype is not None:
            x, y = (x * 100).to(dtype), (y * 100).to(dtype)
        return lambda: f(x, y)
    return make


def backward(torch, f):
    """The gradient of `f(x)` with respect to x, given that of the result."""
    def make(*size):
        x = torch.randn(size, requires_grad=True)
        y = f(x)
        g = torch.randn(y.shape)
        return lambda: torch.autograd.grad(y, x, g, retain_graph=True)
    return make


def elementwise(torch):
    F = importlib.import_module(torch.__name__ + ".nn.functional")
    i64, bf16 = torch.int64, torch.bfloat16

    def where(*size):
        x, y = torch.randn(size), torch.randn(size)
        m = x > 0
        return lambda: torch.where(m, x, y)

    def addcmul(*size):
        x, y, z = (torch.randn(size) for _ in range(3))
        return lambda: torch.addcmul(x, y, z, value=0.5)

    def one(f, **options):
        return unary(torch, f, **options), SQUARE

    def two(f, **options):
        return binary(torch, f, **options), SQUARE

    return {
        "add": two(lambda x, y: x + y), "add int64": two(lambda x, y: x + y, dtype=i64), "mul bfloat16": two(lambda x, y: x * y, dtype=bf16),
        "div": two(lambda x, y: x / y), "add_ in place": two(lambda x, y: x.add_(y, alpha=1e-9)), "maximum": two(torch.maximum),
        "gt": two(lambda x, y: x > y), "bitwise_and int64": two(lambda x, y: x & y, dtype=i64), "atan2": two(torch.atan2),
        "lerp": two(lambda x, y: torch.lerp(x, y, 0.3)), "where": (where, SQUARE), "addcmul": (addcmul, SQUARE),
        "relu": one(F.relu), "sigmoid": one(torch.sigmoid), "tanh": one(torch.tanh), "silu": one(F.silu), "softplus": one(F.softplus),
        "leaky_relu": one(lambda x: F.leaky_relu(x, 0.1)), "log": one(torch.log, positive=True), "sqrt": one(torch.sqrt, positive=True),
        "pow 3": one(lambda x: x ** 3), "sin": one(torch.sin), "erf": one(torch.erf), "lgamma": one(torch.lgamma, positive=True),
        "clamp": one(lambda x: x.clamp(-0.5, 0.5)), "round": one(torch.round), "isnan": one(torch.isnan),
        "to float16": one(lambda x: x.half()), "to int64": one(lambda x: x.to(i64)), "clone": one(lambda x: x.clone()),
        "gelu, backward": (backward(torch, F.gelu), SQUARE), "sigmoid, backward": (backward(torch, torch.sigmoid), SQUARE),
    }


def rows_and_places(torch):
    """Reductions, orders, and what moves elements to other places."""
    F = importlib.import_module(torch.__name__ + ".nn.functional")
    randn, randint = torch.randn, torch.randint

    def scatter(rows, columns):
        x, i, s = torch.zeros(rows, columns), randint(0, columns, (rows, columns)), randn(rows, columns)
        return lambda: x.scatter_(1, i, s)

    def index_put(rows, columns):
        x, i, v = torch.zeros(rows, columns), randint(0, rows, (rows,)), randn(rows, columns)
        return lambda: x.index_put_((i,), v, accumulate=True)

    def index_copy(rows, columns):
        x, i, s = torch.zeros(rows, columns), torch.randperm(rows), randn(rows, columns)
        return lambda: x.index_copy_(0, i, s)

    def two_indices(rows, columns):
        x, i, j = randn(rows, columns), randint(0, rows, (rows * 4,)), randint(0, columns, (rows * 4,))
        return lambda: x[i, j]

    def searchsorted(*size):
        x, y = randn(size).sort()[0], randn(size)
        return lambda: torch.searchsorted(x, y)

    def bincount(*size):
        x = randint(0, 100, size)
        return lambda: torch.bincount(x)

    def unique(*size):
        x = randint(0, 1000, size)
        return lambda: torch.unique(x)

    def multinomial(rows, columns):
        x = torch.rand(rows, columns)
        return lambda: torch.multinomial(x, 8, True)

    def batch_norm(batch, channels, side):
        x, w, b, m, v = randn(batch, channels, side, side), randn(channels), randn(channels), torch.zeros(channels), torch.ones(channels)
        return lambda: F.batch_norm(x, m, v, w, b, training=True)

    def embedding_bag(rows, width, count):
        table, i, o = randn(rows, width), randint(0, rows, (count,)), torch.arange(0, count, 10)
        return lambda: F.embedding_bag(i, table, o, mode="sum")

    def one(f, **options):
        return unary(torch, f, **options), SQUARE

    return {
        "mean along 1": one(lambda x: x.mean(1)), "var along 1": one(lambda x: x.var(1)), "std": one(lambda x: x.std()),
        "norm along 1": one(lambda x: torch.linalg.vector_norm(x, dim=1)), "logsumexp along 1": one(lambda x: x.logsumexp(1)),
        "max along 1": one(lambda x: x.max(1)), "any along 1": one(lambda x: x.isnan().any(1)), "prod along 1": one(lambda x: x.prod(1)),
        "sum bfloat16": one(lambda x: x.sum(1), dtype=torch.bfloat16), "sum int64": one(lambda x: x.sum(), dtype=torch.int64),
        "cumprod along 1": one(lambda x: x.cumprod(1)), "logcumsumexp along 1": one(lambda x: x.logcumsumexp(1)),
        "kthvalue along 1": one(lambda x: x.kthvalue(5, 1)), "argsort along 1": one(lambda x: x.argsort(1)),
        "unique": (unique, FLAT), "searchsorted": (searchsorted, FLAT), "bincount": (bincount, FLAT),
        "scatter_ along 1": (scatter, SQUARE), "index_put_, adding": (index_put, SQUARE), "index_copy_": (index_copy, SQUARE),
        "reading at pairs": (two_indices, SQUARE), "flip": one(lambda x: x.flip(1)), "roll": one(lambda x: x.roll(3, 1)),
        "tril": one(torch.tril), "repeat": one(lambda x: x.repeat(2, 2)), "stack": one(lambda x: torch.stack([x, x, x])),
        "pad": one(lambda x: F.pad(x, (1, 1, 1, 1))), "multinomial": (multinomial, SQUARE),
        "batch_norm": (batch_norm, IMAGE), "rms_norm": one(lambda x: F.rms_norm(x, (x.shape[1],))),
        "embedding_bag": (embedding_bag, ((100, 16, 10), (1000, 64, 1000), (10000, 256, 4000))),
        "softmax, backward": (backward(torch, lambda x: torch.softmax(x, 1)), SQUARE),
        "layer_norm, backward": (backward(torch, lambda x: F.layer_norm(x, (x.shape[1],))), SQUARE),
    }


def losses(torch):
    F = importlib.import_module(torch.__name__ + ".nn.functional")

    def of_classes(f):
        def make(rows, columns):
            x, y = torch.randn(rows, columns), torch.randint(0, columns, (rows,))
            return lambda: f(x, y)
        return make

    def of_chances(f):
        def make(rows, columns):
            x, y = torch.randn(rows, columns), torch.rand(rows, columns)
            return lambda: f(x, y)
        return make

    return {
        "cross_entropy": (of_classes(F.cross_entropy), SQUARE), "nll_loss": (of_classes(F.nll_loss), SQUARE),
        "binary_cross_entropy_with_logits": (of_chances(F.binary_cross_entropy_with_logits), SQUARE),
        "l1_loss": (binary(torch, F.l1_loss), SQUARE), "smooth_l1_loss": (binary(torch, F.smooth_l1_loss), SQUARE),
        "huber_loss": (binary(torch, F.huber_loss), SQUARE), "kl_div": (of_chances(lambda x, y: F.kl_div(x, y, reduction="batchmean")), SQUARE),
        "cosine_similarity": (binary(torch, F.cosine_similarity), SQUARE),
    }


def cases(torch):
    F = importlib.import_module(torch.__name__ + ".nn.functional")
    importlib.import_module(torch.__name__ + ".optim")
    randn, rand, randint = torch.randn, torch.rand, torch.randint
    f16, bf16 = torch.float16, torch.bfloat16

    def unary(f, dtype=torch.float32, uniform=False):
        def make(*size):
            x = (rand(size) * 1.98 - 0.99 if uniform else randn(size)).to(dtype)
            return lambda: f(x)
        return make

    def fill(f):
        def make(*size):
            x = torch.empty(size)
            return lambda: f(x)
        return make

    def gather(rows, columns):
        x, i = randn(rows, columns), randint(0, rows, (rows, columns))
        return lambda: torch.gather(x, 0, i)

    def gather_rows(rows, columns):
        x, i = randn(rows, columns), randint(0, columns, (rows, columns))
        return lambda: torch.gather(x, 1, i)

    def scatter_add(rows, columns):
        x, i, s = torch.zeros(rows, columns), randint(0, columns, (rows, columns)), randn(rows, columns)
        return lambda: torch.scatter_add(x, 1, i, s)

    def group_norm(batch, channels, side):
        x, w, b = randn(batch, channels, side, side), randn(channels), randn(channels)
        return lambda: F.group_norm(x, 8, w, b)

    def layer_norm(rows, columns):
        x, w, b = randn(rows, columns), randn(columns), randn(columns)
        return lambda: F.layer_norm(x, (columns,), w, b)

    def column_broadcast(rows, columns):
        x, y = randn(rows, columns), randn(rows, 1)
        return lambda: x + y

    def index_add(dtype):
        def make(rows, columns):
            x, i, s = torch.zeros(rows, columns, dtype=dtype), randint(0, rows, (rows,)), randn(rows, columns).to(dtype)
            return lambda: x.index_add_(0, i, s)
        return make

    def index_select(*size):
        x, i = randn(size), randint(0, size[0], (size[0],))
        return lambda: torch.index_select(x, 0, i)

    def matmul(dtype):
        def make(m, k, n):
            if dtype is torch.int64:
                a, b = randint(-9, 9, (m, k)), randint(-9, 9, (k, n))
            else:
                a, b = randn(m, k).to(dtype), randn(k, n).to(dtype)
            return lambda: a @ b
        return make

    def linear(batch, width):
        x, w, b = randn(batch, width), randn(width, width), randn(width)
        return lambda: F.linear(x, w, b)

    def mask_read(*size):
        x = randn(size)
        m = x > 0
        return lambda: x[m]

    def mask_write(*size):
        x = randn(size)
        m = x > 0

        def write():
            x[m] = 1.0
        return write

    def masked_fill(*size):
        x = randn(size)
        m = x > 0
        return lambda: x.masked_fill(m, 0.0)

    def concatenate(dim):
        def make(rows, columns):
            parts = [randn(rows, columns) for _ in range(4)]
            return lambda: torch.cat(parts, dim)
        return make

    def mse_loss(*size):
        x, y = randn(size), randn(size)
        return lambda: F.mse_loss(x, y)

    def embedding(rows, width, count):
        table, i = randn(rows, width), randint(0, rows, (count,))
        return lambda: F.embedding(i, table)

    return {
        "gather along 0": (gather, SQUARE),
        "gather along 1": (gather_rows, SQUARE),
        "scatter_add along 1": (scatter_add, SQUARE),
        "group_norm": (group_norm, IMAGE),
        "layer_norm": (layer_norm, SQUARE),
        "sum of rows": (unary(lambda x: x.sum(1)), SQUARE),
        "sum of columns": (unary(lambda x: x.sum(0)), SQUARE),
        "sum": (unary(lambda x: x.sum()), SQUARE),
        "amax along 0": (unary(lambda x: x.amax(0)), SQUARE),
        "amax along 1": (unary(lambda x: x.amax(1)), SQUARE),
        "argmax along 1": (unary(lambda x: x.argmax(1)), SQUARE),
        "topk 10 along 1": (unary(lambda x: x.topk(10, 1)), SQUARE),
        "sort along 1": (unary(lambda x: x.sort(1)), SQUARE),
        "sort": (unary(lambda x: x.sort()), FLAT),
        "median along 1": (unary(lambda x: x.median(1)), SQUARE),
        "quantile": (unary(lambda x: x.quantile(0.3)), FLAT),
        "quantile along 1": (unary(lambda x: x.quantile(0.3, 1)), SQUARE),
        "cumsum along 0": (unary(lambda x: x.cumsum(0)), SQUARE),
        "cumsum along 1": (unary(lambda x: x.cumsum(1)), SQUARE),
        "nonzero": (unary(lambda x: x.gt(0).nonzero()), SQUARE),
        "randn": (lambda *size: lambda: randn(size), SQUARE),
        "uniform_": (fill(lambda x: x.uniform_()), SQUARE),
        "normal_": (fill(lambda x: x.normal_(1, 2)), SQUARE),
        "bernoulli_": (fill(lambda x: x.bernoulli_(0.3)), SQUARE),
        "exponential_": (fill(lambda x: x.exponential_()), SQUARE),
        "randint": (lambda *size: lambda: randint(0, 100, size), SQUARE),
        "randperm": (lambda n: lambda: torch.randperm(n), FLAT),
        "dropout": (unary(lambda x: F.dropout(x, 0.3)), SQUARE),
        "broadcast of a column": (column_broadcast, SQUARE),
        "gelu": (unary(F.gelu), SQUARE),
        "gelu bfloat16": (unary(F.gelu, bf16), SQUARE),
        "softmax": (unary(lambda x: F.softmax(x, 1)), SQUARE),
        "log_softmax": (unary(lambda x: F.log_softmax(x, 1)), SQUARE),
        "erfinv": (unary(torch.erfinv, uniform=True), SQUARE),
        "exp": (unary(torch.exp), SQUARE),
        "add float16": (unary(lambda x: x + x, f16), SQUARE),
        "index_add float32": (index_add(torch.float32), SQUARE),
        "index_add float16": (index_add(f16), SQUARE),
        "index_select of a vector": (index_select, FLAT),
        "index_select of rows": (index_select, SQUARE),
        "embedding": (embedding, ((100, 16, 10), (1000, 64, 1000), (10000, 256, 4096))),
        "matmul float16": (matmul(f16), ((8, 8, 8), (64, 64, 64), (256, 256, 256))),
        "matmul bfloat16": (matmul(bf16), ((8, 8, 8), (64, 64, 64), (256, 256, 256))),
        "matmul int64": (matmul(torch.int64), ((8, 8, 8), (64, 64, 64), (256, 256, 256))),
        "matmul float32": (matmul(torch.float32), ((8, 8, 8), (64, 64, 64), (512, 512, 512))),
        "linear": (linear, ((4, 16), (32, 256), (128, 1024))),
        "reading by a mask": (mask_read, SQUARE),
        "writing by a mask": (mask_write, SQUARE),
        "masked_fill": (masked_fill, SQUARE),
        "cat along 0": (concatenate(0), ((16, 16), (128, 256), (512, 1024))),
        "cat along 1": (concatenate(1), ((16, 16), (128, 256), (512, 1024))),
        "copy of a transposed": (unary(lambda x: x.t().contiguous()), SQUARE),
        "mse_loss": (mse_loss, SQUARE),
        "step of an MLP": (training_step(torch, (784, 1024, 1024, 10)), ((4,), (64,), (256,))),
        **elementwise(torch),
        **rows_and_places(torch),
        **losses(torch),
    }
