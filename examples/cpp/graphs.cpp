// What ahead-of-time autograd makes of three models, as Markdown. docs/graphs.md is what this prints.
#include <umbra/umbra.h>

#include <cstdio>
#include <string>

#include "models.h"

using namespace umbra;

namespace {

void print_code(const char* title, const fx::GraphModule& graph) {
  std::string code = graph.code();
  code = code.substr(code.find("def "), code.find_last_not_of(" \n") + 1 - code.find("def "));
  std::printf("%s, %zu nodes:\n\n```python\n%s\n```\n\n", title, graph.graph().size(), code.c_str());
}

/// The forward and backward graphs of the loss, cut so that the least is kept, and what the plain cut would keep.
template <class Loss> void show(const char* title, const Tensor& input, Loss loss_of, bool with_code = true) {
  const aot::Partition plain = aot::compile(loss_of, {.partitioner = aot::default_partition}).graphs({input}).partition;
  const aot::Partition cut = aot::compile(loss_of).graphs({input}).partition;
  std::printf("## %s\n\n", title);
  std::printf(
      "Input %s. Kept for the backward pass: %zu tensors, %lld bytes (default partition: %zu tensors, %lld bytes).\n\n",
      to_string(input.sizes()).c_str(), cut.saved.size(), static_cast<long long>(cut.saved_bytes), plain.saved.size(),
      static_cast<long long>(plain.saved_bytes));
  if (!with_code) return;
  print_code("Forward", *cut.forward);
  print_code("Backward", *cut.backward);
}

}  // namespace

int main() {
  manual_seed(0);
  std::printf(
      "# Graphs of three models, ahead of time\n\n"
      "Printed by `build/example_graphs`. Each model's loss is captured together with its gradients, and the joint "
      "graph is cut by "
      "`aot::min_cut_partition`.\n\n");

  examples::Mlp mlp;
  show("MLP", randn({8, 64}), [&](const Tensor& x) { return mlp(x).square().mean(); });

  examples::Cnn cnn;
  show("CNN with batch normalisation", randn({4, 3, 16, 16}), [&](const Tensor& x) { return cnn(x).square().mean(); });

  auto loss_of = [](examples::Gpt& model) {
    return [&model](const Tensor& tokens) {
      Tensor logits = model(tokens).flatten(0, 1);
      return nn::functional::cross_entropy(logits, tokens.flatten());
    };
  };
  examples::Gpt layer({.vocabulary = 64, .context = 16, .width = 768, .heads = 12, .layers = 1});
  show("Transformer, one layer of GPT-2's", randint(64, {1, 8}), loss_of(layer));
  examples::Gpt gpt({.vocabulary = 64, .context = 16, .width = 768, .heads = 12, .layers = 12});
  show("Transformer, twelve such layers", randint(64, {1, 8}), loss_of(gpt), /*with_code=*/false);
}
