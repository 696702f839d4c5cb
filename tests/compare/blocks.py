"""The large blocks of models at a small, a middle and a large size: convolutions, pooling, attention, rnn, linear algebra, Fourier transforms.

`blocks(torch)` gives what `operators.cases(torch)` gives.
"""
import importlib


def blocks(torch):
    return {**convolutions(torch), **attentions(torch), **recurrent(torch), **matrices(torch), **transforms(torch)}


def convolutions(torch):
    F = importlib.import_module(torch.__name__ + ".nn.functional")
    randn = torch.randn
    image = ((1, 16, 8), (4, 64, 28), (8, 128, 56))
    middle = ((1, 16, 8), (2, 64, 28), (4, 64, 56))

    def convolution(kernel, groups=1, gradient=False):
        def make(batch, channels, side):
            x, w, b = randn(batch, channels, side, side), randn(channels, channels // groups if groups == 1 else 1, kernel, kernel), randn(channels)
            count = 1 if groups == 1 else channels
            if not gradient:
                return lambda: F.conv2d(x, w, b, padding=kernel // 2, groups=count)
            x.requires_grad_()
            w.requires_grad_()
            y = F.conv2d(x, w, b, padding=kernel // 2)
            g = randn(y.shape)
            return lambda: torch.autograd.grad(y, (x, w), g, retain_graph=True)
        return make

    def convolution1d(batch, channels, length):
        x, w = randn(batch, channels, length), randn(channels, channels, 3)
        return lambda: F.conv1d(x, w, padding=1)

    def convolution3d(batch, channels, side):
        x, w = randn(batch, channels, side, side, side), randn(channels, channels, 3, 3, 3)
        return lambda: F.conv3d(x, w, padding=1)

    def transposed(batch, channels, side):
        x, w = randn(batch, channels, side, side), randn(channels, channels, 2, 2)
        return lambda: F.conv_transpose2d(x, w, stride=2)

    def of_image(f):
        def make(batch, channels, side):
            x = randn(batch, channels, side, side)
            return lambda: f(x)
        return make

    return {
        "convolution 1x1": (convolution(1), image), "convolution 3x3": (convolution(3), middle),
        "convolution 3x3 of each channel": (convolution(3, groups=2), image), "convolution 3x3, backward": (convolution(3, gradient=True), middle),
        "convolution in 1 dimension": (convolution1d, ((1, 16, 32), (4, 64, 256), (8, 128, 1024))),
        "convolution in 3 dimensions": (convolution3d, ((1, 4, 4), (2, 16, 12), (2, 32, 24))),
        "transposed convolution": (transposed, ((1, 16, 8), (2, 64, 14), (4, 64, 28))),
        "max_pool2d": (of_image(lambda x: F.max_pool2d(x, 2)), image), "avg_pool2d": (of_image(lambda x: F.avg_pool2d(x, 3, 2, 1)), image),
        "adaptive_avg_pool2d": (of_image(lambda x: F.adaptive_avg_pool2d(x, 1)), image),
        "interpolate, bilinear": (of_image(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")), middle),
        "interpolate, nearest": (of_image(lambda x: F.interpolate(x, scale_factor=2)), middle),
    }


def attentions(torch):
    F = importlib.import_module(torch.__name__ + ".nn.functional")
    randn = torch.randn
    tokens = ((1, 2, 16, 16), (2, 8, 128, 64), (2, 8, 512, 64))

    def attention(causal, gradient=False):
        def make(batch, heads, length, width):
            q, k, v = (randn(batch, heads, length, width, requires_grad=gradient) for _ in range(3))
            if not gradient:
                return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            g = randn(y.shape)
            return lambda: torch.autograd.grad(y, (q, k, v), g, retain_graph=True)
        return make

    def module(batch, length, width):
        layer, x = torch.nn.MultiheadAttention(width, 4, batch_first=True), randn(batch, length, width)
        return lambda: layer(x, x, x, need_weights=False)[0]

    return {
        "attention": (attention(False), tokens), "attention, causal": (attention(True), tokens), "attention, backward": (attention(True, True), tokens),
        "MultiheadAttention": (module, ((1, 8, 16), (2, 64, 128), (4, 256, 256))),
    }


def recurrent(torch):
    def layer(kind):
        def make(length, batch, width):
            model, x = getattr(torch.nn, kind)(width, width), torch.randn(length, batch, width)

            def run():
                with torch.no_grad():
                    return model(x)
            return run
        return make

    def step(length, batch, width):
        model, x = torch.nn.LSTM(width, width), torch.randn(length, batch, width)

        def run():
            model.zero_grad()
            model(x)[0].sum().backward()
        return run

    sizes = ((4, 2, 16), (16, 8, 64), (32, 16, 256))
    return {"RNN": (layer("RNN"), sizes), "LSTM": (layer("LSTM"), sizes), "GRU": (layer("GRU"), sizes), "LSTM, with its backward": (step, sizes)}


def matrices(torch):
    randn = torch.randn
    sizes = ((8,), (64,), (256,))

    def of_matrix(f, positive=False):
        def make(n):
            x = randn(n, n)
            x = x @ x.t() + n * torch.eye(n) if positive else x
            return lambda: f(x)
        return make

    def solve(n):
        a, b = randn(n, n), randn(n, 4)
        return lambda: torch.linalg.solve(a, b)

    def triangular(n):
        a, b = randn(n, n).tril() + n * torch.eye(n), randn(n, 4)
        return lambda: torch.linalg.solve_triangular(a, b, upper=False)

    def bmm(batch, n):
        a, b = randn(batch, n, n), randn(batch, n, n)
        return lambda: torch.bmm(a, b)

    def batched_inverse(batch, n):
        a = randn(batch, n, n) + n * torch.eye(n)
        return lambda: torch.linalg.inv(a)

    def einsum(batch, n):
        a, b = randn(batch, n, n), randn(n, n)
        return lambda: torch.einsum("bij,jk->bik", a, b)

    def matmul64(n):
        a = randn(n, n).double()
        return lambda: a @ a

    def cdist(n):
        a, b = randn(n, 16), randn(n, 16)
        return lambda: torch.cdist(a, b)

    batches = ((2, 8), (16, 32), (64, 64))
    return {
        "bmm": (bmm, batches), "einsum": (einsum, batches), "mv": (lambda n: (lambda a, v: lambda: a.mv(v))(randn(n, n), randn(n)), sizes),
        "matmul float64": (matmul64, sizes), "cdist": (cdist, sizes),
        "cholesky": (of_matrix(torch.linalg.cholesky, True), sizes), "qr": (of_matrix(torch.linalg.qr), sizes), "svd": (of_matrix(torch.linalg.svd), sizes),
        "eigh": (of_matrix(torch.linalg.eigh, True), sizes), "inv": (of_matrix(torch.linalg.inv, True), sizes), "det": (of_matrix(torch.linalg.det), sizes),
        "solve": (solve, sizes), "solve_triangular": (triangular, sizes), "inv of a batch": (batched_inverse, batches),
    }


def transforms(torch):
    def transform(f, complex_input=False):
        def make(*size):
            x = torch.randn(size)
            x = torch.complex(x, x) if complex_input else x
            return lambda: f(x)
        return make

    rows = ((4, 64), (64, 1024), (256, 4096))
    return {
        "fft": (transform(lambda x: torch.fft.fft(x), True), rows), "rfft": (transform(lambda x: torch.fft.rfft(x)), rows),
        "irfft": (transform(lambda x: torch.fft.irfft(x), True), rows), "fft2": (transform(lambda x: torch.fft.fft2(x), True), ((16, 16), (128, 128), (512, 512))),
        "fft of length 1000": (transform(lambda x: torch.fft.fft(x), True), ((4, 100), (64, 1000), (256, 3000))),
    }
