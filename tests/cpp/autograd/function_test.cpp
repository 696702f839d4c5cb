// Functions with a gradient of the user's own.
#include "autograd/testing.h"

namespace umbra {
namespace {

using autograd::Function;
using autograd::FunctionContext;
using autograd::grad_fn;
using autograd::Gradients;

struct Cube : Function<Cube> {
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    EXPECT_FALSE(is_grad_enabled());
    Tensor result = x.mul(x).mul(x);
    context.save_for_backward({x, result});
    return result;
  }
  static Gradients backward(FunctionContext& context, Gradients grads) {
    Tensor x = context.saved_tensors()[0];
    return {grads[0].mul(x.mul(x)).mul(3)};
  }
};

TEST(Function, UsesItsOwnBackward) {
  Tensor x = parameter({2});
  Tensor y = Cube::apply(x);
  EXPECT_EQ(grad_fn(y)->name(), "CubeBackward");
  y.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(12));
  EXPECT_THAT(error_of([&] { y.sum().backward(); }), HasSubstr("Trying to backward through the graph a second time"));
}

TEST(Function, IsDifferentiatedTwiceThroughItsBackward) {
  Tensor x = parameter({2});
  Tensor first = autograd::grad({Cube::apply(x)}, {x}, {}, {.create_graph = true})[0];
  EXPECT_THAT(values(autograd::grad({first}, {x})[0]), ElementsAre(12));
}

TEST(Function, DoesNotKeepItselfAliveThroughASavedOutput) {
  Tensor x = parameter({2});
  Tensor y = Cube::apply(x);
  WeakPtr<autograd::Node> node(grad_fn(y));
  y = Tensor();
  EXPECT_TRUE(node.expired());
}

TEST(Function, RecordsNothingForPlainInputs) {
  Tensor y = Cube::apply(vector_of({2}));
  EXPECT_FALSE(y.requires_grad());
  EXPECT_THAT(values(y), ElementsAre(8));
}

struct Scale : Function<Scale> {
  static Tensor forward(FunctionContext& context, const Tensor& x, double factor, const Tensor& y) {
    context.data["factor"] = factor;
    EXPECT_TRUE(context.needs_input_grad(0));
    EXPECT_FALSE(context.needs_input_grad(1));
    return x.mul(factor).add(y);
  }
  static Gradients backward(FunctionContext& context, Gradients grads) {
    return {grads[0].mul(context.data["factor"].to_double()), grads[0]};
  }
};

TEST(Function, TakesArgumentsThatAreNoTensors) {
  Tensor x = parameter({1});
  Scale::apply(x, 4.0, vector_of({1})).sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(4));
}

struct Two : Function<Two> {
  static std::vector<Tensor> forward(FunctionContext& context, const Tensor& x, bool materialize) {
    context.set_materialize_grads(materialize);
    Tensor mask = x.mul(0);
    context.mark_non_differentiable({mask});
    return {x.mul(2), x.mul(3), mask};
  }
  static Gradients backward(FunctionContext&, Gradients grads) {
    EXPECT_EQ(grads[2].defined(), grads[1].defined());  // zeros for both, or nothing
    return {grads[1].defined() ? grads[0].mul(2).add(grads[1].mul(3)) : grads[0].mul(-1)};
  }
};

TEST(Function, HasSeveralOutputsSomeWithoutGradient) {
  Tensor x = parameter({1});
  std::vector<Tensor> out = Two::apply(x, true);
  EXPECT_TRUE(out[1].requires_grad());
  EXPECT_FALSE(out[2].requires_grad());
  out[0].sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(2));
  EXPECT_THAT(values(autograd::grad({Two::apply(x, false)[0]}, {x})[0]), ElementsAre(-1));
}

struct Identity : Function<Identity> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x; }
  static Gradients backward(FunctionContext&, Gradients grads) { return {grads[0].mul(7)}; }
};

TEST(Function, ReturningItsInputGivesANewTensor) {
  Tensor x = parameter({1});
  Tensor y = Identity::apply(x.mul(1));
  EXPECT_EQ(grad_fn(y)->name(), "IdentityBackward");
  y.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(7));
  EXPECT_THAT(error_of([&] { y.mul_(2); }), HasSubstr("This view was created inside a custom Function"));
}

struct AddOne : Function<AddOne> {
  static Tensor forward(FunctionContext& context, Tensor x) {
    x.add_(1);
    context.mark_dirty({x});
    return x;
  }
  static Gradients backward(FunctionContext&, Gradients grads) { return {grads[0].mul(3)}; }
};

TEST(Function, MayChangeItsInput) {
  Tensor x = parameter({1, 2});
  Tensor y = x.mul(1);
  Tensor z = AddOne::apply(y);
  EXPECT_TRUE(z.is_same(y));
  z.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(3, 3));
  Tensor base = x.mul(1);
  AddOne::apply(base.narrow(0, 1, 1));
  EXPECT_THAT(values(autograd::grad({base.sum()}, {x})[0]), ElementsAre(1, 3));
  EXPECT_EQ(error_of([&] { AddOne::apply(x); }),
            "a leaf Variable that requires grad has been used in an in-place operation.");
}

struct TooMany : Function<TooMany> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x.clone(); }
  static Gradients backward(FunctionContext&, Gradients grads) { return {grads[0], grads[0]}; }
};

TEST(Function, MustGiveOneGradientAnInput) {
  Tensor x = parameter({1});
  EXPECT_EQ(error_of([&] { TooMany::apply(x).sum().backward(); }),
            "function TooManyBackward returned an incorrect number of gradients (expected 1, got 2)");
}

struct Sine : Function<Sine> {  // not really
  static Tensor forward(FunctionContext& context, const Tensor& x) {
    context.save_for_backward({x});
    return x.mul(x);
  }
  static Gradients backward(FunctionContext& context, Gradients grads) {
    return {grads[0].mul(context.saved_tensors()[0]).mul(2)};
  }
  static std::vector<Tensor> jvp(FunctionContext& context, std::vector<Tensor> tangents) {
    return {tangents[0].mul(context.saved_tensors()[0]).mul(2)};
  }
};

TEST(Function, HasForwardModeWhereItSaysHow) {
  autograd::DualLevel level;
  Tensor x = autograd::make_dual(vector_of({3}), vector_of({1}));
  EXPECT_THAT(values(autograd::unpack_dual(Sine::apply(x)).tangent), ElementsAre(6));
  EXPECT_EQ(error_of<NotImplementedError>([&] { Cube::apply(x); }),
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD.");
}

}  // namespace
}  // namespace umbra
