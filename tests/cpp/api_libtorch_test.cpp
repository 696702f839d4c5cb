// A program of libtorch, brought over by its names: `namespace torch = umbra`.
#include <gtest/gtest.h>
#include <umbra/umbra.h>

#include <filesystem>
#include <sstream>

namespace torch = umbra;

namespace {

std::vector<double> list(const torch::Tensor& t) {
  torch::Tensor flat = t.to(torch::kFloat64).contiguous().reshape(-1);
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}
using List = std::vector<double>;

struct Temporary {
  explicit Temporary(const char* name) : path((std::filesystem::temp_directory_path() / name).string()) {}
  ~Temporary() { std::filesystem::remove(path); }
  std::string path;
};

}  // namespace

// ---- tensors ----

TEST(Tensors, TellWhatTheyAre) {
  torch::Tensor t = torch::ones({2, 3}, torch::kInt);
  EXPECT_EQ(t.scalar_type(), torch::kInt32);
  EXPECT_EQ(t.ndimension(), 2);
  EXPECT_EQ(t.element_size(), 4);
  EXPECT_EQ(t.nbytes(), 24);
  EXPECT_TRUE(t.is_cpu() && !t.is_cuda() && !t.is_sparse());
  EXPECT_EQ(t.toType(torch::kLong).dtype(), torch::kInt64);
  EXPECT_TRUE(t.cpu().is_same(t));
}
TEST(Tensors, ShowTheirMemory) {
  torch::Tensor t = torch::arange(4.0);
  t.data_ptr<float>()[1] = 7;
  EXPECT_EQ(t.const_data_ptr<float>()[1], 7);
  EXPECT_EQ(t.data_ptr(), t.mutable_data_ptr<float>());
  EXPECT_THROW(t.data_ptr<double>(), torch::Error);
}
TEST(Tensors, AreMadeWithOptionsOfOneThing) {
  EXPECT_EQ(torch::zeros({2}, torch::dtype(torch::kFloat64)).dtype(), torch::kDouble);
  EXPECT_TRUE(torch::ones({2}, torch::requires_grad()).requires_grad());
  EXPECT_TRUE(torch::ones({2}, torch::device(torch::kMeta)).is_meta());
}
TEST(Tensors, HaveDataThatAutogradDoesNotSee) {
  torch::Tensor weight = torch::ones({2}, torch::requires_grad());
  weight.data().fill_(3);
  EXPECT_EQ(list(weight), List({3, 3}));
  EXPECT_FALSE(weight.data().requires_grad());
}
TEST(Tensors, ThatAreSparseArePrinted) {
  auto text = [](const torch::Tensor& t) { return (std::ostringstream() << t).str(); };
  torch::Tensor sparse = torch::sparse_coo_tensor(torch::tensor({{0, 1}, {1, 0}}), torch::tensor({3.0, 4.0}), {2, 2});
  EXPECT_EQ(text(sparse),
            "tensor(indices=tensor([[0, 1],\n"
            "                       [1, 0]]),\n"
            "       values=tensor([3., 4.]),\n"
            "       size=(2, 2), nnz=2, layout=torch.sparse_coo)");
  EXPECT_EQ(text(sparse.to_dense().to(torch::kInt).to_sparse_csr()),
            "tensor(crow_indices=tensor([0, 1, 2]),\n"
            "       col_indices=tensor([1, 0]),\n"
            "       values=tensor([3, 4]), size=(2, 2), nnz=2, dtype=torch.int32,\n"
            "       layout=torch.sparse_csr)");
}
TEST(Families, HaveNamespaces) {
  torch::Tensor a = torch::tensor({{4.0, 1.0}, {1.0, 3.0}});
  EXPECT_TRUE(torch::allclose(torch::linalg::inv(a).matmul(a), torch::eye(2)));
  auto [values, vectors] = torch::linalg::eigh(a, "L");
  EXPECT_EQ(values.numel(), 2);
  EXPECT_TRUE(
      torch::allclose(torch::linalg::solve(a, torch::tensor({1.0, 2.0}), true), torch::tensor({1.0 / 11, 7.0 / 11})));
  EXPECT_EQ(torch::fft::rfft(torch::ones({4})).sizes(), torch::IntArrayRef({3}));
  EXPECT_TRUE(torch::allclose(torch::special::expit(torch::zeros({1})), torch::full({1}, 0.5)));
}

// ---- gradients ----

TEST(Gradients, KnowTheNodeThatMadeATensor) {
  torch::Tensor x = torch::ones({2}, torch::requires_grad());
  EXPECT_EQ((x + 2).grad_fn()->name(), "AddBackward0");
  EXPECT_FALSE(x.grad_fn());
}
TEST(Gradients, GoThroughHooks) {
  torch::Tensor x = torch::zeros({2}, torch::requires_grad());
  int seen = 0;
  auto doubled = x.register_hook([](torch::Tensor gradient) { return gradient * 2; });
  x.register_hook([&](const torch::Tensor&) { ++seen; });
  x.sum().backward();
  EXPECT_EQ(list(x.grad()), List({2, 2}));
  doubled.remove();
  x.sum().backward();
  EXPECT_EQ(list(x.grad()), List({3, 3}));
  EXPECT_EQ(seen, 2);
}
TEST(Gradients, OfGradients) {
  torch::Tensor x = torch::tensor({1.0, 2.0}, torch::requires_grad());
  auto first = torch::autograd::grad({(x * x * x).sum()}, {x}, {}, true, true)[0];
  EXPECT_EQ(list(torch::autograd::grad({first.sum()}, {x})[0]), List({6, 12}));
}

namespace {
class Scaled : public torch::autograd::Function<Scaled> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x, torch::Tensor w, double by) {
    ctx->save_for_backward({x, w});
    ctx->data["by"] = by;
    return x * w * by;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list grad_outputs) {
    auto saved = ctx->get_saved_variables();
    double by = ctx->data.at("by").to_double();
    return {grad_outputs[0] * saved[1] * by, grad_outputs[0] * saved[0] * by};
  }
};
}  // namespace

TEST(Gradients, OfAFunctionOfTheUsersOwn) {
  torch::Tensor x = torch::ones({2}, torch::requires_grad()), w = torch::full({2}, 3.0, torch::requires_grad());
  Scaled::apply(x, w, 2.0).sum().backward();
  EXPECT_EQ(list(x.grad()), List({6, 6}));
  EXPECT_EQ(list(w.grad()), List({2, 2}));
}

// ---- modules ----

namespace {
struct Net : torch::nn::Module {
  Net(int64_t in, int64_t out) {
    linear = register_module("linear", torch::nn::Linear(in, out));
    bias = register_parameter("bias", torch::ones({out}));
    register_parameter("fixed", torch::zeros({1}), false);
    register_buffer("mean", torch::zeros({out}));
  }
  torch::Tensor forward(torch::Tensor x) override { return linear.forward(x) + bias; }
  torch::nn::Linear linear{1, 1};
  torch::Tensor bias;
};
}  // namespace

TEST(Modules, AreRegisteredInAConstructor) {
  Net net(4, 3);
  std::vector<std::string> names;
  for (const auto& [name, parameter] : net.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, std::vector<std::string>({"bias", "fixed", "linear.weight", "linear.bias"}));
  EXPECT_FALSE(net.named_parameters()[1].second.requires_grad());
  net(torch::ones({1, 4})).sum().backward();
  EXPECT_TRUE(net.linear.weight.grad().defined());
  EXPECT_EQ(net.children()[0].module, &net.linear);
}
TEST(Modules, ThatWereRegisteredInAConstructorAreReplacedByAssignment) {
  Net net(4, 3);
  net.linear = torch::nn::Linear(4, 3, {.bias = false});
  EXPECT_EQ(net.parameters().size(), 3u);
  EXPECT_TRUE(net.parameters()[2].is_same(net.linear.weight));
}
TEST(Modules, FindTheirTensorsByPath) {
  Net net(4, 3);
  EXPECT_TRUE(net.get_parameter("linear.weight").is_same(net.linear.weight));
  EXPECT_EQ(net.get_buffer("mean").numel(), 3);
  EXPECT_EQ(net.buffers().size(), 1u);
  EXPECT_EQ(net.named_children()[0].name, "linear");
  EXPECT_THROW(net.get_parameter("linear.wait"), torch::KeyError);
}
TEST(Modules, OfAListAreAskedForByIndex) {
  torch::nn::Sequential net{torch::nn::Linear(2, 2), torch::nn::ReLU()};
  EXPECT_NE(net[1].as<torch::nn::ReLU>(), nullptr);
  EXPECT_THROW(net[2], torch::IndexError);
}
TEST(Modules, AreFoundByTheirClass) {
  torch::nn::Sequential net(torch::nn::Linear(2, 2), torch::nn::ReLU(), torch::nn::Linear(2, 1));
  int linears = 0;
  for (torch::nn::Module* module : net.modules()) linears += module->as<torch::nn::Linear>() != nullptr;
  EXPECT_EQ(linears, 2);
  net.apply([](torch::nn::Module& m) {
    if (auto* linear = m.as<torch::nn::Linear>()) torch::nn::init::constant_(linear->weight, 0.5);
  });
  EXPECT_EQ(list(net.parameters()[2]), List({0.5, 0.5}));
}
TEST(Modules, AreMovedToADevice) {
  Net net(4, 3);
  net.to(torch::kMeta);
  EXPECT_TRUE(net.linear.weight.is_meta());
  EXPECT_TRUE(net.named_buffers()[0].second.is_meta());
  Net other(4, 3);
  other.to(torch::kCPU, torch::kFloat64);
  EXPECT_EQ(other.linear.weight.dtype(), torch::kFloat64);
}

// ---- training ----

TEST(Training, TakesARateAlone) {
  torch::nn::Linear linear(2, 2);
  torch::optim::SGD descent(linear.parameters(), 0.25), plain(linear.parameters(), {});
  EXPECT_EQ(descent.options().lr, 0.25);
  EXPECT_EQ(plain.options().lr, torch::optim::SGDOptions().lr);
}
TEST(Training, IsSwitchedOff) {
  torch::Tensor x = torch::ones({2});
  x.set_requires_grad(true);
  EXPECT_TRUE(x.requires_grad() && torch::GradMode::is_enabled());
  torch::NoGradGuard guard;
  EXPECT_FALSE(torch::GradMode::is_enabled());
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  EXPECT_EQ(x.to(device).device(), device);
}
TEST(Training, ClipsGradients) {
  torch::Tensor a = torch::zeros({2}, torch::requires_grad()), b = torch::zeros({1}, torch::requires_grad());
  torch::Tensor without = torch::zeros({1}, torch::requires_grad());
  a.set_grad(torch::tensor({3.0, 0.0}));
  b.set_grad(torch::tensor({4.0}));
  EXPECT_NEAR(torch::nn::utils::clip_grad_norm_({a, b, without}, 2.5), 5, 1e-5);
  EXPECT_NEAR(a.grad()[0].item<float>(), 1.5, 1e-4);
  EXPECT_NEAR(torch::nn::utils::clip_grad_norm_({a, b}, 10, std::numeric_limits<double>::infinity()), 2, 1e-4);
  torch::nn::utils::clip_grad_value_({a, b}, 0.25);
  EXPECT_EQ(b.grad()[0].item<float>(), 0.25f);
  EXPECT_EQ(torch::nn::utils::clip_grad_norm_({without}, 1), 0);
  b.set_grad(torch::tensor({INFINITY}));
  EXPECT_THROW(torch::nn::utils::clip_grad_norm_({a, b}, 1, 2, true), torch::Error);
}
TEST(Training, ParametersAsAVector) {
  torch::nn::Linear linear(2, 1);
  torch::nn::utils::vector_to_parameters(torch::arange(3.0), linear.parameters());
  EXPECT_EQ(list(torch::nn::utils::parameters_to_vector(linear.parameters())), List({0, 1, 2}));
  EXPECT_THROW(torch::nn::utils::vector_to_parameters(torch::ones({4}), linear.parameters()), torch::ValueError);
}

namespace {
struct Trainer {
  torch::nn::Sequential model{torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 1)};
  torch::optim::Adam optimizer{model.parameters(), {.lr = 0.1, .amsgrad = true}};
  torch::optim::StepLR scheduler{optimizer, {.step_size = 2, .gamma = 0.5}};

  double epoch(const torch::Tensor& x) {
    torch::Tensor loss = model(x).square().mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    scheduler.step();
    return loss.item<double>();
  }
};
}  // namespace

TEST(Training, GoesOnFromACheckpointAsIfItHadNotStopped) {
  Temporary file("umbra_api_checkpoint.pt");
  namespace io = torch::io;
  torch::Tensor x = torch::randn({8, 3});
  Trainer first;
  for (int i = 0; i < 3; ++i) first.epoch(x);
  io::save_pickle(file.path, io::PickleValue::dict({{"model", io::to_pickle(first.model.state_dict())},
                                                    {"optimizer", io::to_pickle(first.optimizer.state_dict())},
                                                    {"scheduler", io::to_pickle(first.scheduler.state_dict())},
                                                    {"epoch", 3}}));
  Trainer second;
  io::PickleValue checkpoint = io::load_pickle(file.path);
  second.model.load_state_dict(io::to_state_dict(checkpoint["model"]));
  second.optimizer.load_state_dict(io::to_optimizer_state(checkpoint["optimizer"]));
  second.scheduler.load_state_dict(io::to_scheduler_state(checkpoint["scheduler"]));
  EXPECT_EQ(checkpoint["epoch"].as_int(), 3);
  EXPECT_TRUE(second.optimizer.options().amsgrad);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(first.epoch(x), second.epoch(x));
  EXPECT_EQ(first.scheduler.get_last_lr(), second.scheduler.get_last_lr());
  EXPECT_THROW(checkpoint["modell"], torch::KeyError);
  EXPECT_EQ(checkpoint["optimizer"]["param_groups"][0]["betas"][1].as_float(), 0.999);
  EXPECT_THROW(checkpoint["optimizer"]["param_groups"][1], torch::IndexError);
}

TEST(Training, SavesAndLoadsOneThing) {
  Temporary file("umbra_api_one_thing.pt");
  torch::Tensor tensor = torch::randn({3}), read;
  torch::save(tensor, file.path);
  torch::load(read, file.path);
  EXPECT_TRUE(torch::equal(tensor, read));
  Trainer first, second;
  first.epoch(torch::randn({8, 3}));
  torch::save(first.model, file.path);
  torch::load(second.model, file.path);
  EXPECT_TRUE(torch::equal(first.model.parameters()[0], second.model.parameters()[0]));
  torch::save(first.optimizer, file.path);
  torch::load(second.optimizer, file.path);
  EXPECT_EQ(second.optimizer.state(second.model.parameters()[0])["step"].item<int>(), 1);
  EXPECT_THROW(torch::load(second.model, file.path), torch::ValueError);
}

// ---- functions of networks ----

namespace F = torch::nn::functional;

TEST(Functional, LossesAreThoseOfTheModules) {
  torch::manual_seed(0);
  torch::Tensor x = torch::randn({4, 3}), y = torch::rand({4, 3}), z = torch::randn({4, 3});
  torch::Tensor sign = torch::tensor({1, -1, 1, -1}), classes = torch::tensor({0, 2, 1, 1});
  auto same = [](const torch::Tensor& a, const torch::Tensor& b) { EXPECT_TRUE(torch::equal(a, b)) << a << b; };
  same(F::kl_div(x, y), torch::nn::KLDivLoss()(x, y));
  same(F::poisson_nll_loss(x, y), torch::nn::PoissonNLLLoss()(x, y));
  same(F::soft_margin_loss(x, x.sign()), torch::nn::SoftMarginLoss()(x, x.sign()));
  same(F::hinge_embedding_loss(x, x.sign()), torch::nn::HingeEmbeddingLoss()(x, x.sign()));
  same(F::multi_margin_loss(x, classes), torch::nn::MultiMarginLoss()(x, classes));
  same(F::margin_ranking_loss(x, y, x.sign()), torch::nn::MarginRankingLoss()(x, y, x.sign()));
  same(F::cosine_embedding_loss(x, y, sign), torch::nn::CosineEmbeddingLoss()(x, y, sign));
  same(F::triplet_margin_loss(x, y, z), torch::nn::TripletMarginLoss()(x, y, z));
  same(F::nll_loss(x, classes), torch::nn::NLLLoss()(x, classes));
  EXPECT_EQ(F::kl_div(x, y, F::Reduction::None).sizes(), x.sizes());
  EXPECT_THROW(F::multi_margin_loss(x, classes, 3), torch::ValueError);
}
TEST(Functional, Activations) {
  torch::Tensor x = torch::tensor({-1.0, 3.0});
  EXPECT_EQ(list(F::softsign(x)), List({-0.5, 0.75}));
  EXPECT_TRUE(torch::allclose(F::tanhshrink(x), x - x.tanh()));
  EXPECT_TRUE(torch::allclose(F::logsigmoid(x), x.sigmoid().log()));
  EXPECT_TRUE(torch::allclose(F::softmin(x, 0), (-x).softmax(0)));
}
TEST(Functional, Images) {
  torch::Tensor x = torch::arange(16.0).view({1, 1, 4, 4});
  EXPECT_EQ(F::unfold(x, 2, 1, 0, 2).sizes(), torch::IntArrayRef({1, 4, 4}));
  EXPECT_TRUE(torch::equal(F::fold(F::unfold(x, 2, 1, 0, 2), {4, 4}, 2, 1, 0, 2), x));
  torch::Tensor same = F::affine_grid(torch::tensor({{{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}}}), {1, 1, 4, 4});
  EXPECT_TRUE(torch::allclose(F::grid_sample(x, same), x));
  EXPECT_THROW(F::grid_sample(x, same, {.mode = "cubic"}), torch::ValueError);
}
TEST(Tensors, OfAVectorAndAType) {
  EXPECT_EQ(torch::tensor(std::vector<double>{1, 2}, torch::kInt).dtype(), torch::kInt32);
}
TEST(Tensors, OverMemoryNeedMemory) {
  EXPECT_THROW(torch::from_blob(nullptr, {3}), torch::ValueError);
  EXPECT_EQ(torch::from_blob(nullptr, {0, 3}).numel(), 0);
}

// ---- operators, captures, programs ----

TEST(Operators, OfTheUsersOwnTakeListsAndTextsAsViews) {
  torch::Library library("api_libtorch");
  library.define("reduced(Tensor x, int[] dims, str how) -> Tensor");
  library.implement("reduced", [](const torch::Tensor& x, torch::IntArrayRef dims, std::string_view how) {
    return how == "sum" ? x.sum(dims) : x.amax(dims);
  });
  auto reduced = torch::typed<torch::Tensor(const torch::Tensor&, torch::IntArrayRef, const std::string&)>(
      "api_libtorch::reduced");
  EXPECT_EQ(list(reduced(torch::ones({2, 3}), {1}, "sum")), List({3, 3}));
  EXPECT_EQ(list(reduced(torch::ones({2, 3}), {0, 1}, "most")), List({1}));
}
TEST(Captures, OfTransforms) {
  auto f = [](const torch::Tensor& w, const torch::Tensor& x) { return (w * x).sin().sum(); };
  torch::Tensor w = torch::ones({2}), x = torch::randn({3, 2});
  auto per_row = torch::vmap(torch::grad(f), {torch::kNone, 0});
  auto graph = torch::make_fx(per_row, {w, x});
  EXPECT_NE(graph->code().find("aten.cos"), std::string::npos);
  torch::Tensor again = graph->run({w, x})[0].tensor();
  EXPECT_TRUE(torch::equal(again, per_row(w, x)));
  EXPECT_NO_THROW(torch::make_fx(torch::hessian([](const torch::Tensor& w) { return w.sin().sum(); }), {w}));
}

namespace {
struct AsksForASize : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) override { return x.view({x.size(0), -1}); }
};
struct Forgets : torch::nn::Module {
  torch::nn::Linear fc{2, 2};
  torch::Tensor forward(torch::Tensor x) override { return fc(x); }
};
std::string warning;
}  // namespace

TEST(Programs, SayHowASizeStaysOpen) {
  torch::Dim batch("batch");
  try {
    torch::export_program(AsksForASize(), {torch::ones({4, 2, 2})}, {.dynamic_shapes = {{"x", {{0, batch}}}}});
    FAIL();
  } catch (const torch::ConstraintViolationError& error) {
    EXPECT_NE(std::string(error.what()).find("sym_size(d)"), std::string::npos) << error.what();
  }
}
TEST(Programs, TellOfLayersThatWereNotRegistered) {
  torch::set_warning_handler([](const std::string& text) { warning = text; });
  torch::export_program(Forgets(), {torch::ones({1, 2})});
  torch::set_warning_handler(nullptr);
  EXPECT_NE(warning.find("is no parameter of the module"), std::string::npos) << warning;
}

TEST(Transforms, GiveGradientAndValueAtOnce) {
  auto [gradient, value] =
      torch::grad_and_value([](const torch::Tensor& x) { return (x * x).sum(); })(torch::ones({2}));
  EXPECT_EQ(list(gradient), List({2, 2}));
  EXPECT_EQ(value.item<float>(), 2);
}
