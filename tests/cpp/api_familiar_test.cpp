// The next page of what a libtorch user writes: results of several tensors, gradients, training, files.
#include <gtest/gtest.h>
#include <umbra/umbra.h>

#include <filesystem>
#include <sstream>

using namespace umbra;

namespace {
std::vector<double> list(const Tensor& t) {
  Tensor flat = t.to(kFloat64).contiguous().reshape(-1);
  return {flat.data<double>(), flat.data<double>() + flat.numel()};
}
using List = std::vector<double>;
}  // namespace

TEST(Results, OfSeveralTensorsAreTakenApart) {
  Tensor a = tensor({{3.0, 1.0, 2.0}, {4.0, 6.0, 5.0}});
  auto [values, indices] = a.max(1);
  EXPECT_EQ(list(values), List({3, 6}));
  EXPECT_EQ(list(indices), List({0, 1}));
  auto [top, where] = a.topk(2);
  EXPECT_EQ(list(top), List({3, 2, 6, 5}));
  auto [sorted, order] = a.sort(-1, true);
  EXPECT_EQ(list(order), List({0, 2, 1, 1, 2, 0}));
  EXPECT_EQ(list(std::get<0>(a.min(0))), List({3, 1, 2}));
}
TEST(Results, OfLinearAlgebra) {
  auto [q, r] = linalg_qr(tensor({{2.0, 0.0}, {0.0, 3.0}}));
  EXPECT_TRUE(allclose(matmul(q, r), tensor({{2.0, 0.0}, {0.0, 3.0}})));
  EXPECT_TRUE(allclose(linalg_inv(eye(3) * 2), eye(3) / 2));
  EXPECT_EQ(einsum("ij,jk->ik", {ones({2, 3}), ones({3, 4})}).sizes(), IntArrayRef({2, 4}));
  EXPECT_EQ(list(outer(arange(2.0), arange(3.0))), List({0, 0, 0, 0, 1, 2}));
}
TEST(Numbers, StandWhereATensorMayStand) {
  Tensor a = tensor({-1.0, 2.0});
  EXPECT_EQ(list(where(a > 0, a, 0)), List({0, 2}));
  EXPECT_EQ(list(a.clamp(0, 1)), List({0, 1}));
  EXPECT_EQ(list(a.pow(2)), List({1, 4}));
  EXPECT_EQ(list(a.masked_fill(a < 0, 9)), List({9, 2}));
  EXPECT_EQ(list(add(a, 1)), List({0, 3}));
}
TEST(Shapes, AreChainedLeftToRight) {
  Tensor a = arange(6).view({2, 3});
  EXPECT_EQ(list(a.unsqueeze(0).squeeze(0).transpose(0, 1).contiguous()), List({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(a.permute({1, 0}).sizes(), IntArrayRef({3, 2}));
  EXPECT_EQ(a.flatten().view({-1, 1}).expand({6, 2}).sizes(), IntArrayRef({6, 2}));
  EXPECT_EQ(a.repeat({2, 2}).sizes(), IntArrayRef({4, 6}));
}
TEST(Selection, ByIndices) {
  Tensor a = arange(6).view({2, 3});
  EXPECT_EQ(list(a.gather(1, tensor({{2}, {0}}))), List({2, 3}));
  EXPECT_EQ(list(a.index_select(1, tensor({0, 2}))), List({0, 2, 3, 5}));
  EXPECT_EQ(list(zeros({2, 2}).scatter_(1, tensor({{0}, {1}}), 1.0)), List({1, 0, 0, 1}));
  EXPECT_EQ(list(a.nonzero().select(1, 1)), List({1, 2, 0, 1, 2}));
}
TEST(Grids, OfRanges) {
  auto grid = meshgrid({arange(2), arange(3)}, "ij");
  EXPECT_EQ(list(grid[0]), List({0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(list(linspace(0, 1, 3)), List({0, 0.5, 1}));
}
TEST(Elements, ByAnAccessor) {
  Tensor a = arange(6, kFloat).view({2, 3}).t();
  auto elements = a.accessor<float, 2>();
  EXPECT_EQ(elements.size(0), 3);
  elements[2][1] += 10;
  EXPECT_EQ(list(a[2]), List({2, 15}));
  EXPECT_THROW((a.accessor<float, 3>()), Error);
  EXPECT_THROW((a.accessor<double, 2>()), Error);
}
TEST(Gradients, AreAskedForByName) {
  Tensor x = tensor({1.0, 2.0}, {.requires_grad = true}), y = (x * x * x).sum();
  Tensor first = autograd::grad({y}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(list(first), List({3, 12}));
  EXPECT_EQ(list(autograd::grad({first.sum()}, {x})[0]), List({6, 12}));
}
TEST(Gradients, AreOffUnderAGuard) {
  Tensor x = ones({2}, {.requires_grad = true});
  NoGradGuard guard;
  EXPECT_FALSE((x * 2).requires_grad());
}
TEST(Gradients, StartWhereTheyAreSwitchedOn) {
  Tensor x = ones({2});
  x.requires_grad_();
  (x.detach() * x).sum().backward();
  EXPECT_EQ(list(x.grad()), List({1, 1}));
}
TEST(Training, LowersTheLoss) {
  manual_seed(0);
  nn::Sequential net(nn::Linear(3, 8), nn::ReLU(), nn::Linear(8, 2));
  optim::Adam adam(net.parameters(), {.lr = 0.05});
  Tensor x = randn({16, 3}), target = randint(0, 2, {16});
  double first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    adam.zero_grad();
    Tensor loss = nn::functional::cross_entropy(net(x), target);
    loss.backward();
    adam.step();
    (step == 0 ? first : last) = loss.item<double>();
  }
  EXPECT_LT(last, first / 2);
}
TEST(Modules, AreMovedToAType) {
  nn::Sequential net(nn::Linear(3, 4), nn::ReLU());
  net.to(kFloat64);
  EXPECT_EQ(net(ones({1, 3}, kFloat64)).dtype(), kFloat64);
  for (auto& [name, parameter] : net.named_parameters()) EXPECT_EQ(parameter.dtype(), kDouble) << name;
}
TEST(Files, OfWeightsComeBack) {
  std::string path = (std::filesystem::temp_directory_path() / "umbra_api_weights.pt").string();
  nn::Linear from(2, 2), to(2, 2);
  io::save_state_dict(path, from.state_dict());
  to.load_state_dict(io::load_state_dict(path));
  EXPECT_TRUE(equal(from.weight, to.weight));
  std::filesystem::remove(path);
}
TEST(Transforms, TakeFunctions) {
  auto cube = [](const Tensor& x) { return (x * x * x).sum(); };
  EXPECT_EQ(list(grad(cube)(tensor({1.0, 2.0}))), List({3, 12}));
  auto dot = [](const Tensor& a, const Tensor& b) { return (a * b).sum(); };
  EXPECT_EQ(list(vmap(dot, {0, 0})(ones({2, 3}), ones({2, 3}))), List({3, 3}));
}
TEST(Spectra, ComeFromTheFourierFamily) {
  EXPECT_EQ(fft_rfft(ones({4})).dtype(), kComplex64);
  EXPECT_TRUE(allclose(fft_irfft(fft_rfft(arange(4.0))), arange(4.0)));
}
TEST(Streams, PrintATensor) {
  std::ostringstream out;
  out << tensor({1, 2});
  EXPECT_EQ(out.str(), "tensor([1, 2])");
}
TEST(Loops, GoOverTheRows) {
  Tensor x = arange(6).view({3, 2});
  std::vector<int64_t> sums;
  for (const Tensor& row : x) sums.push_back(row.sum().item<int64_t>());
  EXPECT_EQ(sums, std::vector<int64_t>({1, 5, 9}));
  for (Tensor row : x) row[0] = 7;  // rows are views
  EXPECT_EQ(list(x.select(1, 0)), List({7, 7, 7}));
  EXPECT_THROW(begin(tensor(1)), TypeError);
}
TEST(Memory, OfTheCallersInItsOwnForm) {
  std::vector<double> memory = {1, 2, 3, 4};
  EXPECT_EQ(list(from_blob(memory.data(), {2}, {2}, kFloat64)), List({1, 3}));
  bool released = false;
  from_blob(memory.data(), {2}, {2}, [&](void*) { released = true; }, {.dtype = kFloat64});
  EXPECT_TRUE(released);
  EXPECT_EQ(list(from_blob(
                memory.data(), {4}, [](void*) {}, kFloat64)),
            List({1, 2, 3, 4}));
}
TEST(Transforms, OfForwardModeInOneCall) {
  auto product = [](const Tensor& a, const Tensor& b) { return a * b; };
  auto [outputs, tangents] = jvp(product, {tensor({2.0}), tensor({3.0})}, {tensor({1.0}), tensor({10.0})});
  EXPECT_EQ(list(outputs[0]), List({6}));
  EXPECT_EQ(list(tangents[0]), List({23}));
}
TEST(Calls, OfSeveralResultsAreNotCutToTheFirst) {
  auto both = aot::compile([](const Tensor& x) { return std::vector<Tensor>{x + 1, x * 2}; });
  EXPECT_THROW(both(ones({2})), TypeError);
  EXPECT_EQ(list(both.run({ones({2})})[1].tensor()), List({2, 2}));
}
TEST(Files, OfNumpyAreReadAndWritten) {
  std::string path = (std::filesystem::temp_directory_path() / "umbra_api_array.npy").string();
  io::save_npy(path, arange(4).view({2, 2}));
  EXPECT_EQ(list(io::load_npy(path)), List({0, 1, 2, 3}));
  std::filesystem::remove(path);
}
