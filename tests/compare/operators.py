"""Operators at a small, a middle and a large size: `cases(torch)` gives {name: (make, sizes)}, where `make(*size)` gives what is timed.

The same lines run with Umbra and with PyTorch; every case makes its own inputs, from a fixed seed.
"""
import importlib

SIZES = ("small", "middle", "large")


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

    def convolution(kernel):
        def make(batch, channels, side):
            x, w, b = randn(batch, channels, side, side), randn(channels, channels, kernel, kernel), randn(channels)
            return lambda: F.conv2d(x, w, b, padding=kernel // 2)
        return make

    def group_norm(batch, channels, side):
        x, w, b = randn(batch, channels, side, side), randn(channels), randn(channels)
        return lambda: F.group_norm(x, 8, w, b)

    def layer_norm(rows, columns):
        x, w, b = randn(rows, columns), randn(columns), randn(columns)
        return lambda: F.layer_norm(x, (columns,), w, b)

    def column_broadcast(rows, columns):
        x, y = randn(rows, columns), randn(rows, 1)
        return lambda: x + y

    def attention(causal):
        def make(batch, heads, length, width):
            q, k, v = (randn(batch, heads, length, width) for _ in range(3))
            return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return make

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

    def transform(f, complex_input=False):
        def make(*size):
            x = randn(size)
            x = torch.complex(x, x) if complex_input else x
            return lambda: f(x)
        return make

    square, flat = ((16, 16), (256, 256), (1024, 1024)), ((256,), (65536,), (1 << 20,))
    image = ((1, 16, 8), (4, 64, 28), (8, 128, 56))
    tokens = ((1, 2, 16, 16), (2, 8, 128, 64), (2, 8, 512, 64))
    return {
        "gather along 0": (gather, square),
        "gather along 1": (gather_rows, square),
        "scatter_add along 1": (scatter_add, square),
        "convolution 1x1": (convolution(1), image),
        "convolution 3x3": (convolution(3), ((1, 16, 8), (2, 64, 28), (4, 64, 56))),
        "group_norm": (group_norm, image),
        "layer_norm": (layer_norm, square),
        "sum of rows": (unary(lambda x: x.sum(1)), square),
        "sum of columns": (unary(lambda x: x.sum(0)), square),
        "sum": (unary(lambda x: x.sum()), square),
        "amax along 0": (unary(lambda x: x.amax(0)), square),
        "amax along 1": (unary(lambda x: x.amax(1)), square),
        "argmax along 1": (unary(lambda x: x.argmax(1)), square),
        "topk 10 along 1": (unary(lambda x: x.topk(10, 1)), square),
        "sort along 1": (unary(lambda x: x.sort(1)), square),
        "sort": (unary(lambda x: x.sort()), flat),
        "median along 1": (unary(lambda x: x.median(1)), square),
        "quantile": (unary(lambda x: x.quantile(0.3)), flat),
        "quantile along 1": (unary(lambda x: x.quantile(0.3, 1)), square),
        "cumsum along 0": (unary(lambda x: x.cumsum(0)), square),
        "cumsum along 1": (unary(lambda x: x.cumsum(1)), square),
        "nonzero": (unary(lambda x: x.gt(0).nonzero()), square),
        "randn": (lambda *size: lambda: randn(size), square),
        "uniform_": (fill(lambda x: x.uniform_()), square),
        "normal_": (fill(lambda x: x.normal_(1, 2)), square),
        "bernoulli_": (fill(lambda x: x.bernoulli_(0.3)), square),
        "exponential_": (fill(lambda x: x.exponential_()), square),
        "randint": (lambda *size: lambda: randint(0, 100, size), square),
        "randperm": (lambda n: lambda: torch.randperm(n), flat),
        "dropout": (unary(lambda x: F.dropout(x, 0.3)), square),
        "broadcast of a column": (column_broadcast, square),
        "gelu": (unary(F.gelu), square),
        "gelu bfloat16": (unary(F.gelu, bf16), square),
        "softmax": (unary(lambda x: F.softmax(x, 1)), square),
        "log_softmax": (unary(lambda x: F.log_softmax(x, 1)), square),
        "erfinv": (unary(torch.erfinv, uniform=True), square),
        "exp": (unary(torch.exp), square),
        "add float16": (unary(lambda x: x + x, f16), square),
        "attention": (attention(False), tokens),
        "attention, causal": (attention(True), tokens),
        "index_add float32": (index_add(torch.float32), square),
        "index_add float16": (index_add(f16), square),
        "index_select of a vector": (index_select, flat),
        "index_select of rows": (index_select, square),
        "embedding": (embedding, ((100, 16, 10), (1000, 64, 1000), (10000, 256, 4096))),
        "matmul float16": (matmul(f16), ((8, 8, 8), (64, 64, 64), (256, 256, 256))),
        "matmul bfloat16": (matmul(bf16), ((8, 8, 8), (64, 64, 64), (256, 256, 256))),
        "matmul int64": (matmul(torch.int64), ((8, 8, 8), (64, 64, 64), (256, 256, 256))),
        "matmul float32": (matmul(torch.float32), ((8, 8, 8), (64, 64, 64), (512, 512, 512))),
        "linear": (linear, ((4, 16), (32, 256), (128, 1024))),
        "reading by a mask": (mask_read, square),
        "writing by a mask": (mask_write, square),
        "masked_fill": (masked_fill, square),
        "cat along 0": (concatenate(0), ((16, 16), (128, 256), (512, 1024))),
        "cat along 1": (concatenate(1), ((16, 16), (128, 256), (512, 1024))),
        "copy of a transposed": (unary(lambda x: x.t().contiguous()), square),
        "mse_loss": (mse_loss, square),
        "fft": (transform(lambda x: torch.fft.fft(x), True), ((4, 64), (64, 1024), (256, 4096))),
        "rfft": (transform(lambda x: torch.fft.rfft(x)), ((4, 64), (64, 1024), (256, 4096))),
        "fft2": (transform(lambda x: torch.fft.fft2(x), True), ((16, 16), (128, 128), (512, 512))),
        "step of an MLP": (training_step(torch, (784, 1024, 1024, 10)), ((4,), (64,), (256,))),
    }
