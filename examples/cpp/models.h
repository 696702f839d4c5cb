// Models that the examples, tests and benchmarks share, written as a user would write them.
#pragma once

#include <umbra/umbra.h>

namespace umbra::examples {

/// Two linear layers.
struct Mlp : nn::Module {
  nn::Linear up = add("up", nn::Linear(64, 256)), down = add("down", nn::Linear(256, 64));
  Tensor forward(Tensor x) override { return down(gelu(up(x))); }
};

/// A small image classifier with batch normalisation.
struct Cnn : nn::Module {
  nn::Conv2d conv1 = add("conv1", nn::Conv2d(3, 16, 3, {.padding = 1}));
  nn::BatchNorm2d bn1 = add("bn1", nn::BatchNorm2d(16));
  nn::Conv2d conv2 = add("conv2", nn::Conv2d(16, 32, 3, {.stride = 2, .padding = 1, .bias = false}));
  nn::BatchNorm2d bn2 = add("bn2", nn::BatchNorm2d(32));
  nn::MaxPool2d pool = add("pool", nn::MaxPool2d(2));
  nn::AdaptiveAvgPool2d average = add("average", nn::AdaptiveAvgPool2d(1));
  nn::Linear head = add("head", nn::Linear(32, 10));

  Tensor forward(Tensor x) override {
    x = pool(relu(bn1(conv1(x))));
    x = relu(bn2(conv2(x)));
    return head(average(x).flatten(1));
  }
};

// ---- a transformer in the form of GPT-2 ----

struct GptConfig {
  int64_t vocabulary = 50257, context = 1024, width = 768, heads = 12, layers = 12;
};

struct Attention : nn::Module {
  int64_t heads;
  nn::Linear qkv, proj;

  Attention(int64_t width, int64_t head_count)
      : heads(head_count), qkv(add("qkv", nn::Linear(width, 3 * width))), proj(add("proj", nn::Linear(width, width))) {}

  Tensor forward(Tensor x) override {
    SymInt batch = x.sym_size(0), length = x.sym_size(1), width = x.sym_size(2);
    auto by_head = [&](const Tensor& t) { return t.view({batch, length, heads, width / heads}).transpose(1, 2); };
    std::vector<Tensor> parts = qkv(x).split(width, 2);
    // One after the other: compilers take arguments of a call in orders of their own, and the graph would show it.
    Tensor query = by_head(parts[0]), key = by_head(parts[1]), value = by_head(parts[2]);
    Tensor y = scaled_dot_product_attention(query, key, value, {}, 0.0, true);
    return proj(y.transpose(1, 2).reshape({batch, length, width}));
  }
};

struct Block : nn::Module {
  nn::LayerNorm ln1;
  Attention attention;
  nn::LayerNorm ln2;
  nn::Linear up, down;

  Block(int64_t width, int64_t heads)
      : ln1(add("ln1", nn::LayerNorm(width))),
        attention(add("attention", Attention(width, heads))),
        ln2(add("ln2", nn::LayerNorm(width))),
        up(add("up", nn::Linear(width, 4 * width))),
        down(add("down", nn::Linear(4 * width, width))) {}

  Tensor forward(Tensor x) override {
    x = x + attention(ln1(x));
    return x + down(gelu(up(ln2(x)), "tanh"));
  }
};

struct Gpt : nn::Module {
  nn::Embedding tokens, positions;
  nn::ModuleList<Block> layers;
  nn::LayerNorm norm;
  nn::Linear head;

  explicit Gpt(const GptConfig& config = {})
      : tokens(add("tokens", nn::Embedding(config.vocabulary, config.width))),
        positions(add("positions", nn::Embedding(config.context, config.width))),
        layers(add("layers", nn::ModuleList<Block>())),
        norm(add("norm", nn::LayerNorm(config.width))),
        head(add("head", nn::Linear(config.width, config.vocabulary, {.bias = false}))) {
    for (int64_t i = 0; i < config.layers; ++i) layers.push_back(Block(config.width, config.heads));
  }

  Tensor forward(Tensor x) override {
    Tensor place = positions(arange(x.sym_size(1)));
    x = tokens(x) + place;
    for (Block& layer : layers) x = layer(x);
    return head(norm(x));
  }
};

// ---- a transformer in the form of Llama 3 ----

struct LlamaConfig {
  int64_t vocabulary = 128256, width = 8192, heads = 64, key_heads = 8, hidden = 28672, layers = 80;
  TensorOptions tensor = {.dtype = DType::BFloat16};
};

struct RmsNorm : nn::Module {
  Tensor weight;
  RmsNorm(int64_t width, const TensorOptions& options) : weight(parameter("weight", ones({width}, options))) {}
  Tensor forward(Tensor x) override { return x * rsqrt(x.square().mean({{-1}}, true) + 1e-5) * weight; }
};

struct LlamaAttention : nn::Module {
  int64_t heads, key_heads, size;
  nn::Linear q, k, v, o;

  explicit LlamaAttention(const LlamaConfig& c)
      : heads(c.heads),
        key_heads(c.key_heads),
        size(c.width / c.heads),
        q(add("q_proj", linear_of(c, c.width, c.width))),
        k(add("k_proj", linear_of(c, c.width, key_heads * size))),
        v(add("v_proj", linear_of(c, c.width, key_heads * size))),
        o(add("o_proj", linear_of(c, c.width, c.width))) {}
  static nn::Linear linear_of(const LlamaConfig& c, int64_t in, int64_t out) {
    return nn::Linear(in, out, {.bias = false, .tensor = c.tensor});
  }

  // Turns pairs of features by an angle that grows with the position.
  Tensor rotate(const Tensor& x) const {
    Tensor steps = arange(x.sym_size(2), {.dtype = x.dtype(), .device = x.device()}).unsqueeze(1);
    Tensor rates =
        pow(5e5, arange(0, size, 2, {.dtype = x.dtype(), .device = x.device()}) / static_cast<double>(-size));
    Tensor angles = cat({steps * rates, steps * rates}, 1);
    std::vector<Tensor> halves = x.chunk(2, -1);
    return x * angles.cos() + cat({-halves[1], halves[0]}, -1) * angles.sin();
  }

  Tensor forward(Tensor x) override {
    SymInt batch = x.sym_size(0), length = x.sym_size(1), width = x.sym_size(2);
    auto by_head = [&](const Tensor& t, int64_t count) { return t.view({batch, length, count, size}).transpose(1, 2); };
    auto repeated = [&](const Tensor& t) {
      return t.unsqueeze(2)
          .expand({batch, key_heads, heads / key_heads, length, size})
          .reshape({batch, heads, length, size});
    };
    Tensor query = rotate(by_head(q(x), heads)), key = rotate(by_head(k(x), key_heads)),
           value = by_head(v(x), key_heads);
    key = repeated(key);
    value = repeated(value);
    Tensor y = scaled_dot_product_attention(query, key, value, {}, 0.0, true);
    return o(y.transpose(1, 2).reshape({batch, length, width}));
  }
};

struct LlamaBlock : nn::Module {
  RmsNorm norm1;
  LlamaAttention attention;
  RmsNorm norm2;
  nn::Linear gate, up, down;

  explicit LlamaBlock(const LlamaConfig& c)
      : norm1(add("input_layernorm", RmsNorm(c.width, c.tensor))),
        attention(add("self_attn", LlamaAttention(c))),
        norm2(add("post_attention_layernorm", RmsNorm(c.width, c.tensor))),
        gate(add("gate_proj", LlamaAttention::linear_of(c, c.width, c.hidden))),
        up(add("up_proj", LlamaAttention::linear_of(c, c.width, c.hidden))),
        down(add("down_proj", LlamaAttention::linear_of(c, c.hidden, c.width))) {}

  Tensor forward(Tensor x) override {
    x = x + attention(norm1(x));
    Tensor y = norm2(x);
    return x + down(silu(gate(y)) * up(y));
  }
};

struct Llama : nn::Module {
  nn::Embedding tokens;
  nn::ModuleList<LlamaBlock> layers;
  RmsNorm norm;
  nn::Linear head;

  explicit Llama(const LlamaConfig& c = {})
      : tokens(add("embed_tokens", nn::Embedding(c.vocabulary, c.width, {.tensor = c.tensor}))),
        layers(add("layers", nn::ModuleList<LlamaBlock>())),
        norm(add("norm", RmsNorm(c.width, c.tensor))),
        head(add("lm_head", LlamaAttention::linear_of(c, c.width, c.vocabulary))) {
    for (int64_t i = 0; i < c.layers; ++i) layers.push_back(LlamaBlock(c));
  }

  Tensor forward(Tensor x) override {
    x = tokens(x);
    for (LlamaBlock& layer : layers) x = layer(x);
    return head(norm(x));
  }
};

/// The number of parameters below a module.
inline int64_t parameter_count(const nn::Module& module) {
  int64_t count = 0;
  for (const Tensor& p : module.parameters()) count += p.numel();
  return count;
}

}  // namespace umbra::examples
