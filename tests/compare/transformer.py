"""A transformer of either package: what several comparisons and tests run."""
import importlib


def transformer(torch):
    """The classes Block and Gpt, over the modules of `torch`."""
    nn = importlib.import_module(torch.__name__ + ".nn")
    F = importlib.import_module(torch.__name__ + ".nn.functional")

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length, width = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(width, dim=2)
            q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Gpt(nn.Module):
        def __init__(self, vocabulary=1000, context=128, width=768, heads=12, layers=12):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, x):
            h = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
            for block in self.blocks:
                h = block(h)
            return self.head(self.norm(h))

    return Block, Gpt


def llama(torch):
    """The class of a transformer in the form of Llama 3; as it stands, that of 70 billion parameters."""
    nn = importlib.import_module(torch.__name__ + ".nn")
    F = importlib.import_module(torch.__name__ + ".nn.functional")

    class Layer(nn.Module):
        def __init__(self, width, heads, key_heads, hidden):
            super().__init__()
            self.heads, self.key_heads, self.size = heads, key_heads, width // heads
            self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
            self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.k, self.v = (nn.Linear(width, key_heads * self.size, bias=False) for _ in range(2))
            self.gate, self.up, self.down = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)

        def attention(self, x, cos, sin):
            batch, length, width = x.shape

            def rotate(t):
                first, second = t.chunk(2, -1)
                return t * cos + torch.cat((-second, first), -1) * sin
            q, k, v = (linear(x).view(batch, length, -1, self.size).transpose(1, 2) for linear in (self.q, self.k, self.v))
            y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=True)
            return self.o(y.transpose(1, 2).reshape(batch, length, width))

        def forward(self, x, cos, sin):
            x = x + self.attention(self.norm1(x), cos, sin)
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Llama(nn.Module):
        def __init__(self, vocabulary=128256, width=8192, heads=64, key_heads=8, hidden=28672, layers=80):
            super().__init__()
            self.size = width // heads
            self.tokens, self.norm, self.head = nn.Embedding(vocabulary, width), nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.layers = nn.ModuleList(Layer(width, heads, key_heads, hidden) for _ in range(layers))

        def forward(self, tokens):
            rates = 5e5 ** (-torch.arange(0, self.size, 2) / self.size)
            angles = torch.cat([torch.arange(tokens.shape[1]).unsqueeze(1) * rates] * 2, 1)
            cos, sin, x = angles.cos(), angles.sin(), self.tokens(tokens)
            for layer in self.layers:
                x = layer(x, cos, sin)
            return self.head(self.norm(x))

    return Llama
