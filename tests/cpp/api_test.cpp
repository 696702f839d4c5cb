// The first lines that someone writes who knows libtorch or MLX: each compiles with the public headers alone, and does
// what it says.
#include <gtest/gtest.h>
#include <umbra/umbra.h>

#include <sstream>

using namespace umbra;

// Names that belong to the user.
namespace {
int check(int value) { return value + 1; }
int fail(int value) { return value + 2; }
int product(int a, int b) { return a * b; }
std::string concat(const std::string& a, const std::string& b) { return a + b; }
struct Text {};
struct Flag {};

std::vector<double> list(const Tensor& t) {
  Tensor flat = t.to(DType::Float64).contiguous().reshape(-1);
  return {flat.data<double>(), flat.data<double>() + flat.numel()};
}
using List = std::vector<double>;
using Sizes = std::vector<int64_t>;

template <class T> std::string text(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}
}  // namespace

// ---- making tensors ----

TEST(Making, OfNestedBraces) {
  Tensor x = tensor({{1, 2}, {3, 4}});
  EXPECT_EQ(x.sizes(), IntArrayRef({2, 2}));
  EXPECT_EQ(x.dtype(), DType::Int64);
  EXPECT_EQ(list(x), List({1, 2, 3, 4}));
  EXPECT_EQ(tensor({{{1.0}, {2.0}}}).sizes(), IntArrayRef({1, 2, 1}));
  EXPECT_THROW(tensor({{1, 2}, {3}}), ValueError);
}
TEST(Making, OfOneNumber) {
  EXPECT_EQ(tensor(2.5).dim(), 0);
  EXPECT_EQ(tensor(2.5).item<float>(), 2.5f);
  EXPECT_EQ(tensor(true).dtype(), DType::Bool);
}
TEST(Making, OfMixedNumbers) { EXPECT_EQ(tensor({1, 2.5}).dtype(), DType::Float32); }
TEST(Making, OfNothing) { EXPECT_EQ(tensor({}).sizes(), IntArrayRef({0})); }
TEST(Making, OfATypeThatIsAskedFor) {
  EXPECT_EQ(tensor({1, 2}, DType::Float64).dtype(), DType::Float64);
  EXPECT_EQ(tensor({{1, 2}}, {.dtype = DType::Int32}).dtype(), DType::Int32);
  EXPECT_TRUE(tensor({1.0, 2.0}, {.requires_grad = true}).requires_grad());
}
TEST(Making, OfAVector) { EXPECT_EQ(list(tensor(std::vector<float>{1, 2})), List({1, 2})); }
TEST(Making, LikeTheSizesOfAnother) {
  Tensor x = ones({2, 3});
  EXPECT_EQ(zeros(x.sizes()).sizes(), x.sizes());
  EXPECT_EQ(randn(x.sym_sizes()).sizes(), x.sizes());
}
TEST(Making, OfSizesInAVector) {
  std::vector<int64_t> sizes{2, 3};
  EXPECT_EQ(zeros(sizes).numel(), 6);
  EXPECT_EQ(ones(std::vector<int64_t>{4}).numel(), 4);
  EXPECT_EQ(zeros(std::array<int64_t, 2>{2, 2}).numel(), 4);
}
TEST(Making, OfOneSize) { EXPECT_EQ(zeros(5).sizes(), IntArrayRef({5})); }
TEST(Making, OfATypeWithoutOptions) {
  EXPECT_EQ(zeros({2}, DType::Int64).dtype(), DType::Int64);
  EXPECT_EQ(full({2}, 7, DType::Float64).dtype(), DType::Float64);
  EXPECT_EQ(arange(4, DType::Float32).dtype(), DType::Float32);
  EXPECT_EQ(zeros_like(ones({2}), DType::Int32).dtype(), DType::Int32);
}
TEST(Making, OverMemoryOfTheCaller) {
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  Tensor x = from_blob(memory.data(), {2, 3});
  x[1][2] = 60;
  EXPECT_EQ(memory[5], 60);
  std::vector<int64_t> ints{7, 8};
  EXPECT_EQ(from_blob(ints.data(), {2}, DType::Int64)[1].item<int64_t>(), 8);
  EXPECT_EQ(list(from_blob(memory.data(), {3}, {2})), List({1, 3, 5}));
}
TEST(Making, MemoryIsGivenBackWhenTheLastTensorGoes) {
  int released = 0;
  {
    Tensor view = from_blob(new float[4]{1, 2, 3, 4}, {4}, [&](void* data) {
                    delete[] static_cast<float*>(data);
                    ++released;
                  }).slice(0, 1, 3);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}
TEST(Making, RandomIntegers) {
  Tensor x = randint(0, 10, {100});
  EXPECT_LT(x.max().item<int>(), 10);
}
TEST(Making, Ranges) { EXPECT_EQ(list(arange(0, 1, 0.5)), List({0, 0.5})); }

// ---- reading them ----

TEST(Reading, AnItemOfAType) {
  EXPECT_EQ(tensor({3}).item<int>(), 3);
  EXPECT_EQ(tensor({2.5}).item<double>(), 2.5);
  EXPECT_EQ(tensor({true}).item<bool>(), true);
  EXPECT_THROW(tensor({300}).item<int8_t>(), Error);
  EXPECT_THROW(tensor({-1}).item<uint8_t>(), Error);
}
TEST(Reading, DataOfItsOwnType) {
  Tensor x = tensor({1, 2});
  EXPECT_EQ(x.data<int64_t>()[1], 2);
  try {
    x.data<float>();
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "expected scalar type Float but found Long");
  }
  EXPECT_THROW(x.data<int32_t>(), Error);
  EXPECT_THROW(x.data<double>(), Error);  // of the same size
}
TEST(Reading, ByIndex) {
  Tensor m = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(list(m[1]), List({4, 5, 6}));
  EXPECT_EQ(m[0][2].item<int>(), 3);
  EXPECT_EQ(m[-1][-1].item<int>(), 6);
  EXPECT_THROW(m[2], IndexError);
}
TEST(Reading, ByAMask) {
  Tensor x = tensor({1.0, -2.0, 3.0});
  EXPECT_EQ(list(x[x > 0]), List({1, 3}));
  EXPECT_EQ(list(x[tensor({2, 0})]), List({3, 1}));
}
TEST(Reading, BySlices) {
  using namespace umbra::indexing;
  Tensor m = arange(12).view({3, 4});
  EXPECT_EQ(list(m.index({Slice(1), 0})), List({4, 8}));
  EXPECT_EQ(list(m.index({Slice(None, None, 2), Slice(1, 3)})), List({1, 2, 9, 10}));
  EXPECT_EQ(list(m.index({"...", -1})), List({3, 7, 11}));
  EXPECT_EQ(list(m.index({Ellipsis, 0})), List({0, 4, 8}));
  EXPECT_EQ(m.index({None, Slice(), None}).sizes(), IntArrayRef({1, 3, 1, 4}));
  EXPECT_EQ(list(m.index({tensor({0, 2}), tensor({1, 3})})), List({1, 11}));
  EXPECT_EQ(list(m.index({m > 9})), List({10, 11}));
}
TEST(Reading, Printing) {
  Tensor x = zeros({2, 3});
  EXPECT_EQ(text(x.sizes()), "[2, 3]");
  EXPECT_EQ(text(x.sym_sizes()), "[2, 3]");
  EXPECT_EQ(text(x.dtype()), "torch.float32");
  EXPECT_EQ(text(x.device()), "cpu");
  EXPECT_EQ(text(x.sym_size(0)), "2");
  EXPECT_EQ(text(tensor({1, 2})), "tensor([1, 2])");
}
TEST(Reading, Sizes) {
  Tensor x = zeros({2, 3});
  EXPECT_EQ(x.size(-1), 3);
  EXPECT_EQ(x.sizes().vec(), Sizes({2, 3}));
  EXPECT_EQ(x.sizes()[0], 2);
}

// ---- writing ----

TEST(Writing, ThroughAnIndex) {
  Tensor m = zeros({2, 3});
  m[1] = tensor({1.0, 2.0, 3.0});
  m[0][0] = 7;
  EXPECT_EQ(list(m), List({7, 0, 0, 1, 2, 3}));
}
TEST(Writing, ThroughAView) {
  Tensor m = ones({2, 3});
  m.select(0, 1) = zeros({3});
  EXPECT_EQ(list(m), List({1, 1, 1, 0, 0, 0}));
  m.slice(1, 0, 1) = 5;
  m.t()[2] = tensor({8.0, 9.0});
  EXPECT_EQ(list(m), List({5, 1, 8, 5, 0, 9}));
}
TEST(Writing, AValueIsSpreadOverTheView) {
  Tensor m = zeros({2, 3});
  m.slice(0, 0, 2) = tensor({{1.0, 2.0, 3.0}});
  EXPECT_EQ(list(m), List({1, 2, 3, 1, 2, 3}));
}
TEST(Writing, ByIndices) {
  using namespace umbra::indexing;
  Tensor m = zeros({2, 3});
  m.index_put_({Slice(), 1}, 4);
  m.index_put_({m == 0}, -1);
  m.index_put_({tensor({0}), tensor({0})}, tensor({9.0}));
  EXPECT_EQ(list(m), List({9, 4, -1, -1, 4, -1}));
  m.index({0, Slice(0, 2)}) = 0;
  EXPECT_EQ(list(m), List({0, 0, -1, -1, 4, -1}));
}
TEST(Writing, WhatNobodyWouldSeeIsRefused) {
  Tensor x = tensor({1.0, -2.0});
  EXPECT_THROW(x[x > 0] = 0, TypeError);
  EXPECT_THROW(x.index({x > 0}) = tensor({5.0}), TypeError);
  EXPECT_THROW((x + 1) = x, TypeError);
}
TEST(Writing, AVariableBecomesAnotherTensor) {
  Tensor x = ones({2}), y = x;
  x = zeros({2});
  EXPECT_EQ(list(y), List({1, 1}));
}
TEST(Writing, InPlaceThroughAnIndex) {
  Tensor m = ones({2, 2});
  m[0] += 2;
  m[1] *= tensor({3.0, 4.0});
  EXPECT_EQ(list(m), List({3, 3, 3, 4}));
}
TEST(Writing, ReachesGradients) {
  Tensor w = ones({3}, {.requires_grad = true}), x = w * 2;
  x[0] = 0;
  x.sum().backward();
  EXPECT_EQ(list(w.grad()), List({0, 2, 2}));
}

// ---- operators ----

TEST(Operators, OfArithmetic) {
  Tensor x = tensor({5, -5});
  EXPECT_EQ(list(x % 3), List({2, 1}));
  EXPECT_EQ(list(7 % tensor({4})), List({3}));
  EXPECT_EQ(list((x + 1) * 2 - x / 5), List({11, -7}));
  EXPECT_EQ(list(-x), List({-5, 5}));
}
TEST(Operators, OfBitsAndMasks) {
  Tensor x = tensor({1, 2, 3}), a = x > 1, b = x < 3;
  EXPECT_EQ(list(a & b), List({0, 1, 0}));
  EXPECT_EQ(list(a | b), List({1, 1, 1}));
  EXPECT_EQ(list(a ^ b), List({1, 0, 1}));
  EXPECT_EQ(list(~a), List({1, 0, 0}));
  EXPECT_EQ(list(!x), List({0, 0, 0}));
  EXPECT_EQ(list(x & 1), List({1, 0, 1}));
}
TEST(Operators, OfComparison) { EXPECT_EQ(list(tensor({1, 2}) == 2), List({0, 1})); }

// ---- lists where the schema has lists ----

TEST(Lists, OneDimension) {
  Tensor x = arange(6, DType::Float32).view({2, 3});
  EXPECT_EQ(list(x.sum(1)), List({3, 12}));
  EXPECT_EQ(list(x.sum({0, 1})), List({15}));
  EXPECT_EQ(list(x.mean(0)), List({1.5, 2.5, 3.5}));
  EXPECT_EQ(list(x.amax(-1)), List({2, 5}));
  EXPECT_EQ(list(x.flip(0)), List({3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(list(x.sum(std::vector<int64_t>{1})), List({3, 12}));
  EXPECT_EQ(x.sum(0, true).sizes(), IntArrayRef({1, 3}));
}
TEST(Lists, VarianceOverADimension) {
  Tensor x = tensor({{0.0, 2.0}, {4.0, 8.0}});
  EXPECT_EQ(list(x.var({0})), List({8, 18}));
  EXPECT_EQ(list(x.var(0)), List({8, 18}));
  EXPECT_EQ(list(x.var({1}, false)), List({1, 4}));
  EXPECT_EQ(list(x.var({1}, 0)), List({1, 4}));
  EXPECT_EQ(x.var({0, 1}).dim(), 0);
  EXPECT_EQ(x.var().dim(), 0);
  EXPECT_EQ(x.var(false).item<float>(), 8.75f);
  EXPECT_EQ(x.std({1}).sizes(), IntArrayRef({2}));
  EXPECT_EQ(x.std({1}, true, true).sizes(), IntArrayRef({2, 1}));
  EXPECT_EQ(std::get<0>(var_mean(x, {0})).sizes(), IntArrayRef({2}));
}
TEST(Lists, OneNumberForAllDimensionsOfAWindow) {
  Tensor image = randn({1, 1, 4, 4});
  EXPECT_EQ(max_pool2d(image, 2).sizes(), IntArrayRef({1, 1, 2, 2}));
  EXPECT_EQ(avg_pool2d(image, 2, 1).sizes(), IntArrayRef({1, 1, 3, 3}));
  EXPECT_EQ(conv2d(image, randn({2, 1, 3, 3}), {}, 1, 1).sizes(), IntArrayRef({1, 2, 4, 4}));
}
TEST(Lists, ShapesOfAnotherTensor) {
  Tensor x = arange(6), y = zeros({2, 3});
  EXPECT_EQ(x.view(y.sizes()).sizes(), y.sizes());
  EXPECT_EQ(x.reshape({2, -1}).sizes(), y.sizes());
  EXPECT_EQ(x.view(-1).dim(), 1);
  EXPECT_EQ(ones({1, 3}).expand(y.sizes()).sizes(), y.sizes());
}
TEST(Lists, OfTensors) {
  Tensor a = ones({2}), b = zeros({2});
  EXPECT_EQ(cat({a, b}).numel(), 4);
  EXPECT_EQ(stack({a, b}, 1).sizes(), IntArrayRef({2, 2}));
  EXPECT_EQ(cat(std::vector<Tensor>{a, b}, 0).numel(), 4);
}
TEST(Lists, PartsOfATensor) {
  EXPECT_EQ(arange(6).split(2).size(), 3u);
  EXPECT_EQ(arange(6).split({1, 5})[1].numel(), 5);
  EXPECT_EQ(arange(6).chunk(3)[0].numel(), 2);
}

// ---- devices and types ----

TEST(Devices, To) {
  Tensor x = ones({2});
  EXPECT_TRUE(x.to(Device("cpu")).is_same(x));
  EXPECT_TRUE(x.to("meta").is_meta());
  EXPECT_EQ(x.to(DType::Float64).dtype(), DType::Float64);
  EXPECT_EQ(x.to(zeros({1}, DType::Int32)).dtype(), DType::Int32);
  EXPECT_EQ(x.to({.dtype = DType::Float16}).dtype(), DType::Float16);
}
TEST(Threads, AreSetAndAsked) {
  int before = get_num_threads();
  set_num_threads(1);
  EXPECT_EQ(get_num_threads(), 1);
  EXPECT_THROW(set_num_threads(0), Error);
  set_num_threads(before);
}

// ---- names ----

TEST(Names, OfTheUserStayTheUsers) {
  EXPECT_EQ(check(1) + fail(1) + product(2, 3), 11);
  EXPECT_EQ(concat("a", "b"), "ab");
  [[maybe_unused]] Text text;
  [[maybe_unused]] Flag flag;
}

// ---- modules ----

namespace {
struct Net : nn::Module {
  nn::Linear fc = add("fc", nn::Linear(2, 3));
  Tensor forward(Tensor x) override { return fc(x); }
};
struct Counter : nn::Module {
  Tensor& count = buffer("count", zeros({1}));
  Tensor forward(Tensor x) override {
    count = count + 1;
    return x;
  }
};
struct Counting : nn::Module {
  Counter counter = add("counter", Counter());
  Tensor forward(Tensor x) override { return counter(x); }
};
struct Mix : nn::Module {
  nn::Linear left = add("left", nn::Linear(2, 3)), right = add("right", nn::Linear(4, 3));
  Tensor forward(Tensor x, Tensor y) override { return left(x) + right(y); }
};
}  // namespace

TEST(Modules, AChildThatIsAssignedIsRegistered) {
  Net net;
  net.fc = nn::Linear(2, 7);
  EXPECT_EQ(net.parameters()[0].sizes(), IntArrayRef({7, 2}));
  EXPECT_TRUE(net.parameters()[0].is_same(net.fc.weight));
  EXPECT_EQ(net(randn({1, 2})).sizes(), IntArrayRef({1, 7}));
  net.eval();
  EXPECT_FALSE(net.fc.is_training());
  net.fc = nn::Linear(2, 5, {.bias = false});
  EXPECT_EQ(net.state_dict().size(), 1u);
}
TEST(Modules, AVariableThatIsAssignedIsNoChild) {
  Net net;
  nn::Linear other = net.fc;
  other = nn::Linear(5, 5);
  EXPECT_EQ(net.parameters()[0].sizes(), IntArrayRef({3, 2}));
}
TEST(Modules, AChildIsOneObject) {
  Net net;
  EXPECT_EQ(net.children()[0].module, &net.fc);
  Net moved = std::move(net);
  nn::Sequential list(nn::Linear(2, 2), nn::ReLU());
  EXPECT_EQ(&list[0], list.children()[0].module);
}
TEST(Modules, WhatForwardChangesIsInTheState) {
  Counting net;
  net(zeros({1}));
  net(zeros({1}));
  EXPECT_EQ(net.state_dict()[0].first, "counter.count");
  EXPECT_EQ(net.state_dict()[0].second.item<int>(), 2);
  EXPECT_EQ(net.counter.count.item<int>(), 2);
}
TEST(Modules, ABufferThatIsAnotherTensorNowIsNotPassedOffAsTheOldOne) {
  struct Lost : nn::Module {
    Tensor count = buffer("count", zeros({1}));  // a handle of its own
    Tensor forward(Tensor x) override {
      count = count + 1;
      return x;
    }
  };
  Lost net;
  net(zeros({1}));
  EXPECT_THROW(net.state_dict(), Error);
}
TEST(Modules, OfTwoInputs) {
  Mix mix;
  EXPECT_EQ(mix(randn({1, 2}), randn({1, 4})).sizes(), IntArrayRef({1, 3}));
  EXPECT_THROW(mix(randn({1, 2})), Error);
  EXPECT_THROW(Net()(randn({1, 2}), randn({1, 2})), TypeError);
  ExportedProgram program = export_program(mix, {randn({1, 2}), randn({1, 4})});
  EXPECT_EQ(program.argument_names, std::vector<std::string>({"x", "y"}));
}
TEST(Modules, AreShared) {
  struct Tied : nn::Module {
    std::shared_ptr<nn::Linear> fc = add("fc", std::make_shared<nn::Linear>(2, 2));
    Tensor forward(Tensor x) override { return (*fc)(x); }
  };
  Tied net;
  EXPECT_EQ(net.children()[0].module, net.fc.get());
  EXPECT_EQ(net.parameters().size(), 2u);
}
TEST(Modules, ArePrinted) {
  EXPECT_EQ(text(Net()), "Net(\n  (fc): Linear(in_features=2, out_features=3, bias=True)\n)");
  nn::Sequential net(nn::Conv2d(3, 4, 3, {.padding = 1}), nn::BatchNorm2d(4), nn::MaxPool2d(2));
  EXPECT_EQ(text(net),
            "Sequential(\n"
            "  (0): Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
            "  (1): BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)\n"
            "  (2): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)\n)");
}

// ---- operators of the user's own ----

TEST(Typed, CallsAnOperatorByItsSchema) {
  auto add = typed<Tensor(const Tensor&, const Tensor&)>("aten::add.Tensor");
  EXPECT_EQ(list(add(ones({1}), ones({1}))), List({2}));
  auto sort = typed<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool)>("aten::sort");
  EXPECT_EQ(list(std::get<1>(sort(tensor({1, 3, 2}), 0, true))), List({1, 2, 0}));
  EXPECT_THROW((typed<Tensor(const Tensor&, double)>("aten::add.Tensor")), TypeError);
  EXPECT_THROW((typed<double(const Tensor&)>("aten::relu")), TypeError);
  EXPECT_THROW((typed<Tensor()>("aten::relu")), TypeError);
}

// ---- random numbers ----

TEST(Random, SeedsRepeat) {
  manual_seed(3);
  Tensor first = randn({4});
  manual_seed(3);
  EXPECT_TRUE(equal(first, randn({4})));
}
TEST(Random, AProcessStartsWithASeedOfItsOwn) {
  // A generator of the user's own has a fixed one, as in PyTorch; the default one is drawn.
  EXPECT_EQ(Generator().seed(), 67280421310721u);
}
TEST(Random, IntegersAreIntegers) {
  EXPECT_EQ(randint(8, {2}).dtype(), DType::Int64);
  EXPECT_EQ(randint(0, 8, {2}, DType::Int32).dtype(), DType::Int32);
  EXPECT_EQ(randint(0, 8, 3).sizes(), IntArrayRef({3}));
}
