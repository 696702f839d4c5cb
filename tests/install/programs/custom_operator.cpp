// An operator of the program's own: kernel, shape, gradient, a typed call, and its place in a captured graph.
#include <umbra/umbra.h>

#include <iostream>

using namespace umbra;

int main() {
  Library library("mylib");
  library.define("scale_shift(Tensor x, float factor=2.0) -> Tensor");
  library.implement("scale_shift", [](const Tensor& x, double factor) {
    Tensor in = x.contiguous(), out = empty_like(in);
    for (int64_t i = 0; i < in.numel(); ++i)
      out.data<float>()[i] = in.data<float>()[i] * static_cast<float>(factor) + 1;
    return out;
  });
  library.fake("scale_shift", [](const Tensor& x, double) { return empty_like(x); });
  library.gradient("scale_shift", "x", {"grad", "factor"},
                   [](const Tensor& grad, double factor) { return grad * factor; });

  auto scale_shift = typed<Tensor(const Tensor&, double)>("mylib::scale_shift");
  Tensor x = ones({3}, {.requires_grad = true});
  Tensor y = scale_shift(x, 3);
  y.sum().backward();
  auto graph = make_fx([&](const Tensor& t) { return scale_shift(t, 4.0).relu(); }, {zeros({2})});
  std::cout << graph->code();
  bool recorded = graph->code().find("mylib.scale_shift") != std::string::npos;
  return y[0].item<float>() == 4 && x.grad()[2].item<float>() == 3 && recorded ? 0 : 1;
}
