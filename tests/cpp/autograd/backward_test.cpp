// Gradients, the graph they come from, and what the engine says about wrong calls.
#include <thread>

#include "autograd/testing.h"

namespace umbra {
namespace {

using autograd::grad;
using autograd::grad_fn;

TEST(Backward, AddsGradientsToTheLeaves) {
  Tensor x = parameter({1, 2, 3}), y = parameter({4, 5, 6});
  x.mul(y).sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(4, 5, 6));
  EXPECT_THAT(values(y.grad()), ElementsAre(1, 2, 3));
  x.mul(x).sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(6, 9, 12));
}

TEST(Backward, SumsOverAllWaysFromAnInput) {
  Tensor x = parameter({3});
  Tensor a = x.mul(x), b = a.mul(x);
  b.add(a).add(x).sum().backward();  // x^3 + x^2 + x
  EXPECT_THAT(values(x.grad()), ElementsAre(27 + 6 + 1));
}

TEST(Backward, ReducesGradientsOfBroadcastInputs) {
  Tensor x = parameter({1, 2, 3}), scale = parameter({2});
  x.view({3, 1}).mul(scale).expand({3, 4}).sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(8, 8, 8));
  EXPECT_THAT(values(scale.grad()), ElementsAre(24));
  EXPECT_EQ(scale.grad().dim(), 1);
}

TEST(Backward, GradientsHaveTheTypeOfTheirInput) {
  Tensor x = ones({2}, {.dtype = DType::Float32}).requires_grad_();
  x.mul(vector_of({3, 4})).sum().backward();
  EXPECT_EQ(x.grad().dtype(), DType::Float32);
  EXPECT_THAT(values(x.grad()), ElementsAre(3, 4));
}

TEST(Backward, ALeafsGradientTakesItsStrides) {
  Tensor x = ones({2, 3}, {.dtype = DType::Float64}).t().detach().requires_grad_();
  x.mul(2).sum().backward();
  EXPECT_EQ(x.grad().strides(), x.strides());
}

TEST(Backward, TakesAWeightForOutputsThatAreNotScalars) {
  Tensor x = parameter({1, 2});
  x.mul(x).backward(vector_of({1, 10}));
  EXPECT_THAT(values(x.grad()), ElementsAre(2, 40));
}

TEST(Backward, FlowsThroughListsOfTensors) {
  Tensor x = parameter({1, 2, 3, 4}), y = parameter({5});
  std::vector<Tensor> parts = x.split(2);
  EXPECT_EQ(grad_fn(parts[1])->name(), "SplitBackward0");
  EXPECT_EQ(autograd::output_number(parts[1]), 1u);
  cat({parts[1], y}).mul(vector_of({1, 10, 100})).sum().backward();  // parts[0] takes no part
  EXPECT_THAT(values(x.grad()), ElementsAre(0, 0, 1, 10));
  EXPECT_THAT(values(y.grad()), ElementsAre(100));
}

TEST(Backward, IntegersAndComparisonsAreNotTracked) {
  Tensor x = parameter({1, 2});
  EXPECT_FALSE(x.to(DType::Int64).requires_grad());
  EXPECT_FALSE(x.detach().requires_grad());
}

TEST(Backward, NodesHavePyTorchsNames) {
  Tensor x = parameter({1, 2});
  EXPECT_EQ(grad_fn(x.add(x))->name(), "AddBackward0");
  EXPECT_EQ(grad_fn(x.sum())->name(), "SumBackward0");
  EXPECT_EQ(grad_fn(x.sum({{0}}))->name(), "SumBackward1");
  EXPECT_EQ(grad_fn(x.mean({{0}}))->name(), "MeanBackward1");
  EXPECT_EQ(grad_fn(x.view({2, 1}))->name(), "ViewBackward0");
  EXPECT_EQ(grad_fn(x.view({2, 1}).mm(x.view({1, 2})))->name(), "MmBackward0");
  EXPECT_EQ(grad_fn(x.to(DType::Float32))->name(), "ToCopyBackward0");
  EXPECT_EQ(autograd::gradient_edge(x).node->name(), "AccumulateGrad");
}

TEST(Backward, OnlyWhatAFormulaNamesIsSaved) {
  Tensor x = parameter({1, 2}), y = vector_of({3, 4});
  Tensor sum = x.add(y), product = x.mul(y);
  Storage memory = y.storage();
  uint32_t with_product = memory->use_count();
  product = Tensor();
  y = Tensor();
  // add keeps nothing of y, and mul kept nothing of x, whose partner needs no gradient.
  EXPECT_EQ(memory->use_count(), 1u) << "was " << with_product;
  Storage weights = x.storage();
  Tensor scaled = x.mul(vector_of({5, 6}));
  x = Tensor();
  EXPECT_EQ(weights->use_count(), 2u);  // the accumulator's leaf, and this
}

TEST(Backward, ComplexGradientsAreConjugateAndRealInputsGetRealOnes) {
  Tensor x = parameter({1, 2});
  Tensor i = full({}, Scalar(std::complex<double>(0, 1)), {.dtype = DType::Complex128});
  Tensor z = x.mul(i);
  EXPECT_TRUE(z.is_complex());
  Tensor norm = real(z.mul(z.conj())).sum();  // |ix|^2
  norm.backward();
  EXPECT_EQ(x.grad().dtype(), DType::Float64);
  EXPECT_THAT(values(x.grad()), ElementsAre(2, 4));
}

// ---- grad ----

TEST(Grad, GivesGradientsWithoutTouchingTheLeaves) {
  Tensor x = parameter({2, 3});
  Tensor y = x.mul(x).sum();
  EXPECT_THAT(values(grad({y}, {x})[0]), ElementsAre(4, 6));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Grad, WorksForIntermediateTensors) {
  Tensor x = parameter({2});
  Tensor a = x.mul(3), y = a.mul(a).sum();
  std::vector<Tensor> g = grad({y}, {a, x});
  EXPECT_THAT(values(g[0]), ElementsAre(12));
  EXPECT_THAT(values(g[1]), ElementsAre(36));
}

TEST(Grad, OfGradsWithCreateGraph) {
  Tensor x = parameter({2});
  Tensor y = x.mul(x).mul(x);  // x^3
  Tensor first = grad({y.sum()}, {x}, {}, {.create_graph = true})[0];
  EXPECT_THAT(values(first), ElementsAre(12));
  Tensor second = grad({first.sum()}, {x}, {}, {.create_graph = true})[0];
  EXPECT_THAT(values(second), ElementsAre(12));
  EXPECT_THAT(values(grad({second.sum()}, {x})[0]), ElementsAre(6));
}

TEST(Grad, RunsOnlyWhatLeadsToTheInputs) {
  Tensor x = parameter({1}), other = parameter({1});
  int calls = 0;
  Tensor aside = other.mul(2);
  autograd::register_hook(aside, [&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  Tensor y = x.mul(3).add(aside).sum();
  EXPECT_THAT(values(grad({y}, {x})[0]), ElementsAre(3));
  EXPECT_EQ(calls, 0);
}

TEST(Grad, RefusesInputsThatTookNoPart) {
  Tensor x = parameter({1}), y = parameter({1});
  EXPECT_EQ(error_of([&] {
              grad({x.mul(2)}, {x, y});
            }),
            "The differentiated Tensor at index 1 appears to not have been used in the graph. Set allow_unused=True if "
            "this is the desired "
            "behavior.");
  EXPECT_FALSE(grad({x.mul(2)}, {x, y}, {}, {}, true)[1].defined());
  EXPECT_EQ(error_of([&] { grad({x.mul(2)}, {vector_of({1})}); }),
            "One of the differentiated Tensors does not require grad");
}

TEST(Backward, ForChosenInputsAlone) {
  Tensor x = parameter({1}), y = parameter({5});
  autograd::backward({x.mul(y)}, {}, {}, {x});
  EXPECT_THAT(values(x.grad()), ElementsAre(5));
  EXPECT_FALSE(y.grad().defined());
}

// ---- errors ----

TEST(Backward, SaysWhatIsWrongWithItsRoots) {
  EXPECT_EQ(error_of([] { vector_of({1}).backward(); }),
            "element 0 of tensors does not require grad and does not have a grad_fn");
  EXPECT_EQ(error_of([] {
              parameter({1, 2}).mul(2).backward();
            }),
            "grad can be implicitly created only for scalar outputs");
  Tensor x = parameter({1, 2, 3});
  EXPECT_EQ(
      error_of([&] { x.mul(2).backward(vector_of({1})); }),
      "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has a shape of torch.Size([3]).");
}

TEST(Backward, RefusesASecondPassUnlessTheGraphIsRetained) {
  Tensor x = parameter({3});
  Tensor y = x.mul(x).sum();
  y.backward({}, true);
  y.backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(12));
  EXPECT_THAT(error_of([&] { y.backward(); }), HasSubstr("Trying to backward through the graph a second time"));
  Tensor saves_nothing = x.add(x).sum();
  saves_nothing.backward();
  saves_nothing.backward();
}

TEST(Backward, NamesTheOperatorThatHasNoGradient) {
  Library library("autograd_test");
  library.define("no_gradient(Tensor x) -> Tensor");
  library.implement("no_gradient", [](const Tensor& x) { return x.detach().clone(); });
  Tensor x = parameter({1});
  Tensor y = get_operator("autograd_test::no_gradient")({Value(x)})[0].tensor();
  EXPECT_EQ(grad_fn(y)->name(), "NotImplemented");
  EXPECT_EQ(error_of<Error>([&] { y.backward(); }), "derivative for autograd_test::no_gradient is not implemented");
}

TEST(Backward, GoesThroughTheOperatorsThatAKernelWithoutAFormulaCalls) {
  Library library("autograd_test_inside");
  library.define("triple(Tensor x) -> Tensor");
  library.implement("triple", [](const Tensor& x) { return x.mul(3); });
  Tensor x = parameter({1, 2});
  get_operator("autograd_test_inside::triple")({Value(x)})[0].tensor().sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(3, 3));
}

TEST(Backward, ChecksTheShapeOfWhatAFormulaGives) {
  Library library("autograd_test_shape");
  library.define("wrong(Tensor x) -> Tensor");
  library.implement("wrong", [](const Tensor& x) { return x.clone(); });
  library.gradient("wrong", "x", {"grad"}, [](const Tensor& grad) { return grad.narrow(0, 0, 2); });
  Tensor y = get_operator("autograd_test_shape::wrong")({Value(parameter({1, 2, 3}))})[0].tensor();
  EXPECT_EQ(error_of([&] { y.sum().backward(); }),
            "Function WrongBackward0 returned an invalid gradient at index 0 - got [2] but expected shape compatible "
            "with [3]");
}

// ---- the graph as an object ----

TEST(Graph, OfAHundredThousandNodesIsRunAndDroppedWithoutRecursion) {
  Tensor x = parameter({1});
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = y.add(x);
  y.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(100001));
  Tensor product = x;
  Tensor one = vector_of({1});
  for (int i = 0; i < 100000; ++i) product = product.mul(one);  // never run: dropped as it stands
}

TEST(Graph, ResultsThatFormulasNameDoNotKeepTheirNodeAlive) {
  Library library("autograd_test_result");
  library.define("double_it(Tensor x) -> Tensor");
  library.implement("double_it", [](const Tensor& x) { return x.mul(2); });
  library.gradient("double_it", "x", {"grad", "result"},
                   [](const Tensor& grad, const Tensor& result) { return grad.mul(result); });
  Tensor x = parameter({3});
  Tensor y = get_operator("autograd_test_result::double_it")({Value(x)})[0].tensor();
  WeakPtr<autograd::Node> node(grad_fn(y));
  EXPECT_THAT(values(grad({y}, {x}, {}, {.retain_graph = true})[0]), ElementsAre(6));
  y = Tensor();
  EXPECT_TRUE(node.expired());
}

TEST(Graph, SideBySideOnThreads) {
  Tensor weight = parameter({1, 2, 3});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) weight.mul(weight).sum().backward();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(values(weight.grad()), ElementsAre(1600, 3200, 4800));
}

TEST(Graph, MayBeRunFromInsideABackwardPass) {
  Tensor x = parameter({2});
  Tensor y = x.mul(x);
  autograd::register_hook(y, [&](const Tensor& g) {
    EnableGrad guard;
    Tensor inner = parameter({5});
    inner.mul(inner).sum().backward();
    return g.mul(inner.grad());
  });
  y.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(40));
}

}  // namespace
}  // namespace umbra
