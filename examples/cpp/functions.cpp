// Functions as things to work with: the examples of docs/functions_in_cpp.md.
#include <umbra/umbra.h>

#include <cstdio>
#include <cstdlib>

using namespace umbra;

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

void derivatives_and_batches() {
  auto f = [](const Tensor& x) { return x.sin().sum(); };
  Tensor x = randn({4});
  Tensor slope = grad(f)(x);  // cos(x)
  auto [gradient, value] = grad_and_value(f)(x);
  auto [y, dy] = jvp(f, x, ones_like(x));  // forward mode: the derivative along a direction
  auto [outputs, pull_back] = vjp(f, x);   // reverse mode: pull_back({cotangent}) gives the inputs' gradients
  Tensor second = hessian(f)(x);           // also jacrev and jacfwd
  expect(slope.allclose(x.cos()) && second.allclose(diag(-x.sin())), "derivatives of the sine");
  expect(gradient.equal(slope) && value.equal(outputs[0]) && dy.allclose(slope.sum()), "they agree");
  expect(pull_back({ones({})})[0].equal(slope) && y.equal(value), "in both modes");

  auto loss = [](const Tensor& weight, const Tensor& row) { return weight.dot(row).square(); };
  Tensor per_sample = vmap(grad(loss), {kNone, 0})(x, randn({10, 4}));  // one weight for all rows: a gradient of each
  expect(per_sample.size(0) == 10 && per_sample.size(1) == 4, "one gradient for each row");
}

void branches_and_loops() {
  auto clipped = [](const Tensor& x) {
    return cond(
        x.norm() > 1, [](const Tensor& x) { return x / x.norm(); }, [](const Tensor& x) { return x.clone(); }, {x});
  };
  auto graph = make_fx(clipped, {randn({3})});  // has both branches
  expect((*graph)(full({3}, 9.)).norm().allclose(ones({})) && (*graph)(zeros({3})).equal(zeros({3})), "each is taken");

  auto doubled = [](const Tensor& times, const Tensor& x) {
    auto more = [](const Tensor& left, const Tensor&) { return left > 0; };
    auto step = [](const Tensor& left, const Tensor& x) { return std::vector{left - 1, x * 2}; };
    return while_loop(more, step, {times, x})[1];
  };
  auto loop = make_fx(doubled, {tensor(3), ones({2})});
  expect((*loop)(tensor(5), ones({2})).equal(full({2}, 32.)), "the data says how often");
}

UMBRA_LIBRARY(mylib, library) {
  library.define("scale(Tensor x, float factor=2.0) -> Tensor");
  library.implement("scale", [](const Tensor& x, double factor) {
    Tensor in = x.contiguous(), out = empty_like(in);
    for (int64_t i = 0; i < in.numel(); ++i) out.data<float>()[i] = in.data<float>()[i] * static_cast<float>(factor);
    return out;
  });
  library.fake("scale", [](const Tensor& x, double) { return empty_like(x); });
  library.gradient("scale", "x", {"grad", "factor"}, [](const Tensor& grad, double factor) { return grad * factor; });
  library.batch("scale", [](const Batched& x, double factor) {
    static auto scale = typed<Tensor(const Tensor&, double)>("mylib::scale");
    return Batched(scale(x.value, factor), x.dim);
  });
}

void operator_of_ones_own() {
  auto scale = typed<Tensor(const Tensor&, double)>("mylib::scale");  // types are compared with the schema here
  Tensor x = ones({3}, {.requires_grad = true});
  scale(x, 3).sum().backward();
  expect(x.grad().equal(full({3}, 3.)), "the gradient is the library's");
  Tensor rows = vmap([&](const Tensor& row) { return scale(row, 2); })(ones({4, 3}));
  expect(rows.equal(full({4, 3}, 2.)), "one call for all rows");

  auto graph = make_fx([&](const Tensor& x) { return scale(x, 4).relu(); }, {zeros({2})});
  expect(graph->code().find("torch.ops.mylib.scale.default") != std::string::npos, "a call of it is one node");
}

void walk_and_change() {
  auto graph = make_fx([](const Tensor& x) { return x.relu() * 2; }, {randn({3})});
  for (fx::Node* node : graph->graph().nodes()) {
    std::printf("%s: %s\n", node->name().c_str(), node->text().c_str());
    if (node->calls(get_operator("aten::relu"))) node->set_target(get_operator("aten::tanh"));
  }
  fx::lint(*graph);
  Tensor x = randn({3});
  expect((*graph)(x).allclose(x.tanh() * 2), "the graph has changed");
}

}  // namespace

int main() {
  derivatives_and_batches();
  branches_and_loops();
  operator_of_ones_own();
  walk_and_change();
}
