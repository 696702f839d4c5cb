// A function with a gradient of the program's own.
#include <umbra/umbra.h>

using namespace umbra;

struct Cube : autograd::Function<Cube> {
  static Tensor forward(autograd::FunctionContext& context, const Tensor& x) {
    context.save_for_backward({x});
    return x * x * x;
  }
  static autograd::Gradients backward(autograd::FunctionContext& context, autograd::Gradients grads) {
    Tensor x = context.saved_tensors()[0];
    return {grads[0] * x * x * 3};
  }
};

int main() {
  Tensor x = tensor({1.0, 2.0, 3.0}, {.requires_grad = true});
  Cube::apply(x).sum().backward();
  return equal(x.grad(), tensor({3.0, 12.0, 27.0})) ? 0 : 1;
}
