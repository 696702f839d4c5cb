// Files, programs and operators of one's own as programs of libtorch have them: each namespace is a program of its own,
// written for <torch/torch.h>.
#include <gtest/gtest.h>
#include <umbra/jit/trace.h>
#include <umbra/libtorch/script.h>
#include <umbra/torch.h>

#include <filesystem>
#include <sstream>

// Programs write files beside themselves; these do so where files may go.
static const bool g_in_temporary_folder = (std::filesystem::current_path(std::filesystem::temp_directory_path()), true);

namespace tensor_program {
TEST(Files, Tensor) {
  torch::Tensor x = torch::randn({2, 3}), y;
  torch::save(x, "tensor.pt");
  torch::load(y, "tensor.pt");
  EXPECT_TRUE(torch::equal(x, y));
  std::vector<torch::Tensor> list{x, x * 2}, back;
  torch::save(list, "list.pt");
  torch::load(back, "list.pt");
  EXPECT_EQ(back.size(), 2u);
  EXPECT_TRUE(torch::equal(back[1], x * 2));
  std::stringstream stream;
  torch::save(x, stream);
  torch::load(y, stream);
  EXPECT_TRUE(torch::equal(x, y));
}
}  // namespace tensor_program

namespace module_program {
struct NetImpl : torch::nn::Module {
  NetImpl() : fc(register_module("fc", torch::nn::Linear(2, 3))) { register_buffer("b", torch::ones(2)); }
  torch::Tensor forward(torch::Tensor x) { return fc(x); }
  torch::nn::Linear fc;
};
TORCH_MODULE(Net);
TEST(Files, Module) {
  Net net, other;
  torch::save(net, "net.pt");
  torch::load(other, "net.pt");
  EXPECT_TRUE(torch::equal(net->fc->weight, other->fc->weight));
  auto shared = std::make_shared<NetImpl>();
  torch::load(shared, "net.pt");
  EXPECT_TRUE(torch::equal(net->fc->weight, shared->fc->weight));
  torch::serialize::OutputArchive archive;
  net->save(archive);
  archive.save_to("net2.pt");
  torch::serialize::InputArchive in;
  in.load_from("net2.pt");
  Net third;
  third->load(in);
  EXPECT_TRUE(torch::equal(net->fc->bias, third->fc->bias));
}
}  // namespace module_program

namespace archive_program {
TEST(Files, Archive) {
  torch::serialize::OutputArchive out;
  out.write("x", torch::ones({2}));
  out.write("epoch", torch::IValue(int64_t(3)));
  out.save_to("archive.pt");
  torch::serialize::InputArchive in;
  in.load_from("archive.pt");
  torch::Tensor x;
  in.read("x", x);
  EXPECT_EQ(x.sum().item<float>(), 2);
  torch::IValue epoch;
  in.read("epoch", epoch);
  EXPECT_EQ(epoch.toInt(), 3);
  EXPECT_THROW(in.read("none", x), c10::Error);
}
}  // namespace archive_program

namespace load_program {
TEST(Jit, Load) {
  torch::Tensor weight = torch::ones({2, 3}).requires_grad_();
  std::string path = "umbra_traced.pt";
  umbra::io::save_torchscript(
      path, umbra::jit::trace_module(
                [&](const auto& in) { return umbra::Value(torch::relu(torch::linear(in[0].tensor(), weight))); },
                {umbra::Value(torch::ones({1, 3}))}, {{"weight", weight}}));
  torch::jit::script::Module module;
  try {
    module = torch::jit::load(path);
  } catch (const c10::Error& e) {
    std::cerr << "error loading the model\n" << e.what();
    EXPECT_TRUE(false);
  }
  std::vector<torch::jit::IValue> inputs;
  inputs.push_back(torch::ones({1, 3}));
  at::Tensor output = module.forward(inputs).toTensor();
  EXPECT_EQ(output.sizes(), torch::IntArrayRef({1, 2}));
  std::cout << output.slice(/*dim=*/1, /*start=*/0, /*end=*/5) << '\n';
  module.eval();
  module.to(torch::kCPU);
  EXPECT_EQ(module.get_method("forward")(inputs).toTensor().size(1), 2);
  EXPECT_EQ(module.named_parameters().at(0).name, "weight");
  EXPECT_EQ(output.sum().item<float>(), 6);
}
}  // namespace load_program

namespace i_values_program {
TEST(Jit, IValues) {
  torch::IValue a(3), b(2.5), c(torch::ones({2})), d("text"), e(true), f;
  EXPECT_TRUE(a.isInt() && b.isDouble() && c.isTensor() && d.isString() && e.isBool() && f.isNone());
  EXPECT_EQ(a.toInt(), 3);
  EXPECT_EQ(d.toStringRef(), "text");
  torch::IValue list(std::vector<int64_t>{1, 2});
  EXPECT_EQ(list.toIntVector().size(), 2u);
  auto tuple = c10::ivalue::Tuple::create({torch::IValue(1), torch::IValue(2.0)});
  EXPECT_EQ(tuple->elements()[0].toInt(), 1);
}
}  // namespace i_values_program

namespace def_function_program {
torch::Tensor warp(torch::Tensor image, torch::Tensor by) { return image * by; }
TORCH_LIBRARY(my_ops, m) { m.def("warp", &warp); }
TEST(Library, DefFunction) {
  auto op = c10::Dispatcher::singleton()
                .findSchemaOrThrow("my_ops::warp", "")
                .typed<torch::Tensor(torch::Tensor, torch::Tensor)>();
  EXPECT_EQ(op.call(torch::full({2}, 3.0), torch::full({2}, 2.0)).sum().item<float>(), 12);
}
}  // namespace def_function_program

namespace schema_and_impl_program {
torch::Tensor mymuladd_cpu(const torch::Tensor& a, const torch::Tensor& b, double c) {
  TORCH_CHECK(a.sizes() == b.sizes());
  TORCH_CHECK(a.dtype() == torch::kFloat);
  TORCH_INTERNAL_ASSERT(a.is_cpu());
  torch::Tensor result = torch::empty(a.sizes(), a.options());
  const float* pa = a.contiguous().data_ptr<float>();
  const float* pb = b.contiguous().data_ptr<float>();
  float* out = result.data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); i++) out[i] = pa[i] * pb[i] + c;
  return result;
}
TORCH_LIBRARY(extension_cpp, m) { m.def("mymuladd(Tensor a, Tensor b, float c) -> Tensor"); }
TORCH_LIBRARY_IMPL(extension_cpp, CPU, m) { m.impl("mymuladd", &mymuladd_cpu); }
TEST(Library, SchemaAndImpl) {
  static auto op =
      torch::Dispatcher::singleton().findSchemaOrThrow("extension_cpp::mymuladd", "").typed<decltype(mymuladd_cpu)>();
  EXPECT_EQ(op.call(torch::ones({2}), torch::full({2}, 2.0), 1.0).sum().item<float>(), 6);
  EXPECT_THROW(op.call(torch::ones({2}), torch::full({3}, 2.0), 1.0), c10::Error);
}
}  // namespace schema_and_impl_program

namespace autograd_kernel_program {
using torch::autograd::AutogradContext;
at::Tensor myadd(const at::Tensor& self, const at::Tensor& other) {
  static auto op = torch::Dispatcher::singleton().findSchemaOrThrow("myops::myadd", "").typed<decltype(myadd)>();
  return op.call(self, other);
}
at::Tensor myadd_cpu(const at::Tensor& self, const at::Tensor& other) { return self + other; }
class MyAddFunction : public torch::autograd::Function<MyAddFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, at::Tensor self, at::Tensor other) {
    at::AutoDispatchBelowADInplaceOrView g;
    return myadd(self, other);
  }
  static torch::autograd::tensor_list backward(AutogradContext* ctx, torch::autograd::tensor_list grad_outputs) {
    return {grad_outputs[0], grad_outputs[0]};
  }
};
at::Tensor myadd_autograd(const at::Tensor& self, const at::Tensor& other) { return MyAddFunction::apply(self, other); }
TORCH_LIBRARY(myops, m) { m.def("myadd(Tensor self, Tensor other) -> Tensor"); }
TORCH_LIBRARY_IMPL(myops, CPU, m) { m.impl("myadd", myadd_cpu); }
TORCH_LIBRARY_IMPL(myops, Autograd, m) { m.impl("myadd", myadd_autograd); }
TEST(Library, AutogradKernel) {
  auto x = torch::ones({2}, torch::requires_grad());
  myadd(x, x).sum().backward();
  EXPECT_EQ(x.grad().sum().item<float>(), 4);
}
}  // namespace autograd_kernel_program

namespace fragment_program {
TORCH_LIBRARY_FRAGMENT(frag, m) {
  m.def("twice(Tensor x) -> Tensor", [](const torch::Tensor& x) { return x * 2; });
}
TEST(Library, Fragment) {
  auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("frag::twice", "").typed<torch::Tensor(const torch::Tensor&)>();
  auto x = torch::ones({2}, torch::requires_grad());
  op.call(x).sum().backward();
  EXPECT_EQ(x.grad().sum().item<float>(), 4);
}
}  // namespace fragment_program
