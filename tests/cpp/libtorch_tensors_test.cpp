// Tensors as programs of libtorch have them: each namespace is a program of its own, written for <torch/torch.h>.
#include <gtest/gtest.h>
#include <umbra/torch.h>

#include <cstring>
#include <sstream>

namespace accessor_program {
TEST(Tensor, Accessor) {
  torch::Tensor foo = torch::rand({12, 12});
  auto foo_a = foo.accessor<float, 2>();
  float trace = 0;
  for (int i = 0; i < foo_a.size(0); i++) trace += foo_a[i][i];
  EXPECT_NEAR(trace, foo.trace().item<float>(), 1e-4);
}
}  // namespace accessor_program

namespace packed_accessor_program {
TEST(Tensor, PackedAccessor) {
  torch::Tensor foo = torch::rand({3, 4});
  auto a = foo.packed_accessor64<float, 2>();
  auto b = foo.packed_accessor32<float, 2, torch::RestrictPtrTraits>();
  float sum = 0;
  for (int64_t i = 0; i < a.size(0); i++)
    for (int64_t j = 0; j < a.size(1); j++) sum += a[i][j] + b[i][j] - b[i][j];
  EXPECT_NEAR(sum, foo.sum().item<float>(), 1e-4);
}
}  // namespace packed_accessor_program

namespace from_blob_program {
TEST(Tensor, FromBlob) {
  float data[] = {1, 2, 3, 4, 5, 6};
  torch::Tensor f = torch::from_blob(data, {2, 3});
  f[1][2] = 7.0;
  EXPECT_EQ(data[5], 7);
  auto options = torch::TensorOptions().dtype(torch::kFloat32);
  torch::Tensor strided = torch::from_blob(data, {3, 2}, {1, 3}, options);
  EXPECT_EQ(strided[2][1].item<float>(), 7);
}
}  // namespace from_blob_program

namespace from_blob_deleter_program {
TEST(Tensor, FromBlobDeleter) {
  bool freed = false;
  {
    auto* data = new float[4]{1, 2, 3, 4};
    torch::Tensor t = torch::from_blob(
        data, {2, 2},
        [&](void* p) {
          delete[] static_cast<float*>(p);
          freed = true;
        },
        torch::TensorOptions().dtype(torch::kFloat32));
    EXPECT_EQ(t.sum().item<float>(), 10);
    EXPECT_FALSE(freed);
  }
  EXPECT_TRUE(freed);
}
}  // namespace from_blob_deleter_program

namespace options_program {
TEST(Tensor, Options) {
  auto options =
      torch::TensorOptions().dtype(torch::kFloat32).layout(torch::kStrided).device(torch::kCPU).requires_grad(true);
  torch::Tensor tensor = torch::full({3, 4}, 123, options);
  EXPECT_EQ(tensor.dtype(), torch::kFloat32);
  EXPECT_TRUE(tensor.is_cpu());
  EXPECT_TRUE(tensor.requires_grad());
  torch::Tensor other = torch::ones(10, torch::TensorOptions().dtype(torch::kFloat64));
  EXPECT_EQ(torch::TensorOptions(other.options()).dtype(), torch::kFloat64);
}
}  // namespace options_program

namespace options_short_program {
TEST(Tensor, OptionsShort) {
  torch::Tensor a = torch::arange(6, torch::dtype(torch::kInt64)).reshape({2, 3});
  torch::Tensor b = torch::ones({2, 3}, torch::dtype(torch::kFloat32).requires_grad(true));
  torch::Tensor c = torch::zeros({2}, torch::device(torch::kCPU).dtype(torch::kInt32));
  torch::Tensor d = torch::randn({2}, at::kDouble);
  EXPECT_EQ(a.scalar_type(), at::kLong);
  EXPECT_TRUE(b.requires_grad());
  EXPECT_EQ(c.scalar_type(), torch::ScalarType::Int);
  EXPECT_EQ(d.scalar_type(), at::ScalarType::Double);
}
}  // namespace options_short_program

namespace conversion_program {
TEST(Tensor, Conversion) {
  torch::Tensor source_tensor = torch::randn({2, 3}, torch::kInt64 == torch::kLong ? torch::kFloat : torch::kHalf);
  torch::Tensor float_tensor = source_tensor.to(torch::kFloat64);
  torch::Tensor back = float_tensor.to(torch::Device(torch::kCPU), torch::kFloat32);
  torch::Tensor like = back.to(float_tensor.options());
  torch::Tensor typed = back.type_as(float_tensor);
  EXPECT_TRUE(torch::equal(back, source_tensor));
  EXPECT_EQ(like.dtype(), torch::kDouble);
  EXPECT_EQ(typed.dtype(), torch::kDouble);
}
}  // namespace conversion_program

namespace literals_program {
TEST(Tensor, Literals) {
  torch::Tensor a = torch::tensor({1, 2, 3});
  torch::Tensor b = torch::tensor({{1.0, 2.0}, {3.0, 4.0}});
  torch::Tensor c = torch::tensor(std::vector<float>{1, 2, 3});
  torch::Tensor d = torch::tensor(3.5, torch::kDouble);
  torch::Tensor e = torch::tensor(std::vector<int64_t>({4, 5}), torch::dtype(torch::kInt));
  EXPECT_EQ(a.dtype(), torch::kLong);
  EXPECT_EQ(b.sizes(), torch::IntArrayRef({2, 2}));
  EXPECT_EQ(c.size(0), 3);
  EXPECT_EQ(d.item<double>(), 3.5);
  EXPECT_EQ(e.scalar_type(), torch::kInt32);
}
}  // namespace literals_program

namespace item_to_float_program {
TEST(Tensor, ItemToFloat) {
  torch::Tensor loss = torch::tensor({2.5}).sum();
  float a = loss.item().toFloat();
  double b = loss.item().toDouble();
  int64_t c = torch::tensor(7).item().toLong();
  int d = torch::tensor(7).item().toInt();
  EXPECT_EQ(a + b + c + d, 19);
  EXPECT_TRUE(loss.item().isFloatingPoint());
}
}  // namespace item_to_float_program

namespace indexing_program {
TEST(Tensor, Indexing) {
  using namespace torch::indexing;
  torch::Tensor t = torch::arange(24).view({2, 3, 4});
  EXPECT_TRUE(torch::equal(t.index({0}), t[0]));
  EXPECT_TRUE(torch::equal(t.index({"...", 0}), t.select(-1, 0)));
  EXPECT_EQ(t.index({Slice(), Slice(1, None, 2)}).sizes(), torch::IntArrayRef({2, 1, 4}));
  EXPECT_EQ(t.index({Ellipsis, Slice(None, 2)}).size(2), 2);
  EXPECT_EQ(t.index({None, 1}).dim(), 3);
  EXPECT_EQ(t.index({torch::tensor({0, 1}), torch::tensor({1, 2})}).sizes(), torch::IntArrayRef({2, 4}));
  EXPECT_EQ(t.index({1, 2, 3}).item<int64_t>(), 23);
}
}  // namespace indexing_program

namespace index_put_program {
TEST(Tensor, IndexPut) {
  using torch::indexing::Slice;
  torch::Tensor t = torch::zeros({3, 4});
  t.index_put_({0, Slice()}, 1);
  t.index_put_({"...", 3}, torch::full({3}, 5.0));
  t.index_put_({torch::tensor({1, 2}), torch::tensor({0, 0})}, torch::tensor({7.0, 8.0}));
  t.index({1, 1}) = 9;
  EXPECT_EQ(t.sum().item<float>(), 3 + 15 + 15 + 9);
  t.index_put_({t > 5}, 0);
  EXPECT_EQ(t.sum().item<float>(), 18);
}
}  // namespace index_put_program

namespace masked_and_where_program {
TEST(Tensor, MaskedAndWhere) {
  torch::Tensor x = torch::tensor({-1.0, 2.0, -3.0});
  EXPECT_EQ(x.masked_select(x > 0).numel(), 1);
  EXPECT_EQ(torch::where(x > 0, x, torch::zeros_like(x)).sum().item<float>(), 2);
  x.masked_fill_(x < 0, 0);
  EXPECT_EQ(x.sum().item<float>(), 2);
  auto places = torch::nonzero(x);
  EXPECT_EQ(places.size(0), 1);
}
}  // namespace masked_and_where_program

namespace tuples_of_results_program {
TEST(Tensor, TuplesOfResults) {
  torch::Tensor x = torch::tensor({{3.0, 1.0}, {2.0, 4.0}});
  auto [values, indices] = torch::max(x, 1);
  EXPECT_EQ(values.sum().item<float>(), 7);
  std::tuple<torch::Tensor, torch::Tensor> sorted = torch::sort(x, 1, true);
  EXPECT_EQ(std::get<0>(sorted)[0][0].item<float>(), 3);
  torch::Tensor v, i;
  std::tie(v, i) = torch::topk(x, 1);
  EXPECT_EQ(std::get<1>(x.max(1))[1].item<int64_t>(), 1);
  EXPECT_EQ(v.size(1), 1);
}
}  // namespace tuples_of_results_program

namespace prints_and_sizes_program {
TEST(Tensor, PrintsAndSizes) {
  std::stringstream out;
  torch::Tensor x = torch::ones({2, 2});
  out << x << " " << x.sizes() << " " << x.dtype() << " " << x.device() << std::endl;
  EXPECT_GT(out.str().size(), 10u);
  EXPECT_TRUE(out.str().find("[2, 2]") != std::string::npos);
  x.print();
  std::vector<int64_t> sizes = x.sizes().vec();
  EXPECT_EQ(sizes.size(), 2u);
  EXPECT_EQ(x.numel(), 4);
  EXPECT_EQ(x.toString().empty(), false);
}
}  // namespace prints_and_sizes_program

namespace cat_stack_split_program {
TEST(Tensor, CatStackSplit) {
  torch::Tensor a = torch::ones({2, 2}), b = torch::zeros({2, 2});
  EXPECT_EQ(torch::cat({a, b}, 0).size(0), 4);
  EXPECT_EQ(torch::cat({a, b}, /*dim=*/1).size(1), 4);
  std::vector<torch::Tensor> list{a, b};
  EXPECT_EQ(torch::stack(list).dim(), 3);
  EXPECT_EQ(torch::cat(list).size(0), 4);
  std::vector<torch::Tensor> parts = torch::cat({a, b}).chunk(2, 0);
  EXPECT_EQ(parts.size(), 2u);
  EXPECT_EQ(torch::split(a, 1, 1).size(), 2u);
  EXPECT_EQ(a.unbind(0)[0].dim(), 1);
}
}  // namespace cat_stack_split_program

namespace seed_and_device_program {
TEST(Tensor, SeedAndDevice) {
  torch::manual_seed(42);
  torch::Tensor a = torch::rand({3});
  torch::manual_seed(42);
  EXPECT_TRUE(torch::equal(a, torch::rand({3})));
  torch::DeviceType device_type = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  torch::Device device(device_type);
  EXPECT_TRUE(device.is_cpu());
  EXPECT_EQ(torch::Device("cuda:1").index(), 1);
  EXPECT_EQ(a.to(device).device(), device);
  EXPECT_FALSE(torch::Device(a.device()).is_cuda());
}
}  // namespace seed_and_device_program

namespace generator_program {
TEST(Tensor, Generator) {
  auto generator = torch::make_generator<at::CPUGeneratorImpl>(7);
  torch::Tensor a = torch::randn({3}, generator);
  auto again = at::detail::createCPUGenerator(7);
  torch::Tensor b = torch::randn({3}, again);
  EXPECT_TRUE(torch::equal(a, b));
  at::Generator g = at::detail::getDefaultCPUGenerator();
  g.set_current_seed(3);
  EXPECT_EQ(g.current_seed(), 3u);
}
}  // namespace generator_program

namespace in_place_and_operators_program {
TEST(Tensor, InPlaceAndOperators) {
  torch::Tensor x = torch::ones({3});
  x += 2;
  x *= torch::tensor({1.0, 2.0, 3.0});
  x.add_(1).mul_(2);
  x /= 2;
  EXPECT_EQ(x.sum().item<float>(), 21);
  torch::Tensor y = 1 - x * 2 + x / 3 - (-x);
  EXPECT_TRUE((y == y).all().item<bool>());
  EXPECT_TRUE((x >= 1).all().item().toBool());
  x.zero_();
  EXPECT_EQ(x.abs().max().item<float>(), 0);
}
}  // namespace in_place_and_operators_program

namespace data_ptr_memcpy_program {
TEST(Tensor, DataPtrMemcpy) {
  std::vector<float> values{1, 2, 3, 4};
  torch::Tensor t = torch::empty({2, 2}, torch::kFloat);
  std::memcpy(t.data_ptr(), values.data(), values.size() * sizeof(float));
  EXPECT_EQ(t[1][1].item<float>(), 4);
  std::vector<float> back(t.data_ptr<float>(), t.data_ptr<float>() + t.numel());
  EXPECT_EQ(back, values);
  EXPECT_EQ(*t.const_data_ptr<float>(), 1);
  EXPECT_TRUE(t.is_contiguous());
}
}  // namespace data_ptr_memcpy_program

namespace errors_program {
TEST(Tensor, Errors) {
  EXPECT_THROW(torch::mm(torch::ones({2, 3}), torch::ones({2, 3})), c10::Error);
  EXPECT_THROW(torch::ones({2}).reshape({3}), std::exception);
  try {
    torch::ones({2}) + torch::ones({3});
  } catch (const c10::Error& e) {
    EXPECT_TRUE(std::string(e.what()).find("must match") != std::string::npos);
  }
  EXPECT_THROW(torch::ones({2}).index({5}), c10::IndexError);
  EXPECT_THROW(TORCH_CHECK(1 == 2, "one is ", 1), c10::Error);
}
}  // namespace errors_program

namespace allclose_linspace_program {
TEST(Tensor, AllcloseLinspace) {
  torch::Tensor x = torch::linspace(0, 1, 5), y = torch::logspace(0, 2, 3), z = torch::eye(3);
  EXPECT_TRUE(torch::allclose(x, torch::tensor({0.0, 0.25, 0.5, 0.75, 1.0})));
  EXPECT_EQ(y[2].item<float>(), 100);
  EXPECT_EQ(z.diag().sum().item<float>(), 3);
  EXPECT_EQ(torch::randint(10, {5}).max().item<int64_t>() < 10, true);
  EXPECT_EQ(torch::randint(3, 10, {5}, torch::kInt).min().item<int>() >= 3, true);
  EXPECT_EQ(torch::randperm(6).sum().item<int64_t>(), 15);
  EXPECT_TRUE(torch::isnan(torch::tensor(NAN)).item<bool>());
}
}  // namespace allclose_linspace_program

namespace reductions_with_lists_program {
TEST(Tensor, ReductionsWithLists) {
  torch::Tensor x = torch::arange(24, torch::kFloat).view({2, 3, 4});
  EXPECT_EQ(x.mean({1, 2}).sizes(), (std::vector<int64_t>{2}));
  EXPECT_EQ(x.sum(-1, /*keepdim=*/true).size(2), 1);
  EXPECT_EQ(x.argmax(1).dim(), 2);
  EXPECT_EQ(x.norm().dim(), 0);
  EXPECT_EQ(x.std(0).dim(), 2);
  EXPECT_EQ(x.var(1, false).dim(), 2);
  EXPECT_EQ(x.permute({2, 0, 1}).size(0), 4);
  EXPECT_EQ(x.flatten(1).size(1), 12);
  EXPECT_EQ(x.squeeze().unsqueeze(0).dim(), 4);
  EXPECT_EQ(x.expand({5, 2, 3, 4}).size(0), 5);
  EXPECT_EQ(x.repeat({1, 2, 1}).size(1), 6);
}
}  // namespace reductions_with_lists_program

namespace dispatch_by_type_program {
TEST(Tensor, DispatchByType) {
  torch::Tensor x = torch::arange(4, torch::kDouble);
  double sum = 0;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sum", [&] {
    const scalar_t* p = x.data_ptr<scalar_t>();
    for (int64_t i = 0; i < x.numel(); ++i) sum += p[i];
  });
  EXPECT_EQ(sum, 6);
}
}  // namespace dispatch_by_type_program

namespace parallel_for_program {
TEST(Tensor, ParallelFor) {
  torch::set_num_threads(2);
  std::vector<int> seen(1000);
  at::parallel_for(0, 1000, 100, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) seen[i] = 1;
  });
  int total = 0;
  for (int s : seen) total += s;
  EXPECT_EQ(total, 1000);
  EXPECT_EQ(at::get_num_threads(), 2);
}
}  // namespace parallel_for_program

namespace devices_and_words_program {
TEST(Tensor, DevicesAndWords) {
  torch::Device device(torch::kCPU);
  EXPECT_EQ(torch::empty(4, device).numel(), 4);
  EXPECT_EQ(torch::randn({2, 3}, device).size(1), 3);
  EXPECT_EQ(torch::zeros({2}, torch::kMeta).device().type, torch::kMeta);
  EXPECT_EQ(torch::ones({2}, torch::kLong).dtype(), torch::kLong);
  EXPECT_EQ(torch::cuda::device_count(), 0);
  EXPECT_STREQ(torch::toString(torch::kFloat), "Float");
  EXPECT_EQ(c10::str("rank ", 2), "rank 2");
  EXPECT_EQ(std::string(TORCH_VERSION).substr(0, 2), "2.");
  EXPECT_THROW(TORCH_CHECK_NOT_IMPLEMENTED(false, "later"), c10::NotImplementedError);
  int rows = 0;
  for (torch::Tensor row : torch::ones({3, 2})) rows += row.sum().item<int>();
  EXPECT_EQ(rows, 6);
}
}  // namespace devices_and_words_program
