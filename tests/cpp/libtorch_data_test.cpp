// Data as programs of libtorch have them: each namespace is a program of its own, written for <torch/torch.h>.
#include <gtest/gtest.h>
#include <umbra/torch.h>

namespace map_stack_loader_program {
class Points : public torch::data::datasets::Dataset<Points> {
 public:
  torch::data::Example<> get(size_t index) override {
    auto x = torch::full({1, 2, 2}, static_cast<double>(index));
    return {x, torch::tensor(static_cast<int64_t>(index % 3))};
  }
  torch::optional<size_t> size() const override { return 10; }
};
TEST(Data, MapStackLoader) {
  auto dataset = Points().map(torch::data::transforms::Normalize<>(0.5, 0.5)).map(torch::data::transforms::Stack<>());
  auto loader =
      torch::data::make_data_loader(std::move(dataset), torch::data::DataLoaderOptions().batch_size(4).workers(2));
  size_t seen = 0;
  for (auto& batch : *loader) {
    EXPECT_EQ(batch.data.dim(), 4);
    seen += batch.target.size(0);
  }
  EXPECT_EQ(seen, 10u);
}
}  // namespace map_stack_loader_program

namespace samplers_program {
class Points : public torch::data::datasets::Dataset<Points> {
 public:
  torch::data::Example<> get(size_t index) override {
    return {torch::full({2}, double(index)), torch::tensor(int64_t(index))};
  }
  torch::optional<size_t> size() const override { return 10; }
};
TEST(Data, Samplers) {
  auto dataset = Points().map(torch::data::transforms::Stack<>());
  auto ordered = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(dataset, 3);
  std::vector<int64_t> order;
  for (auto& batch : *ordered)
    for (int i = 0; i < batch.target.size(0); ++i) order.push_back(batch.target[i].item<int64_t>());
  EXPECT_EQ(order.size(), 10u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  const size_t size = dataset.size().value();
  auto random = torch::data::make_data_loader(dataset, torch::data::samplers::RandomSampler(size),
                                              torch::data::DataLoaderOptions().batch_size(5).drop_last(true));
  int64_t sum = 0;
  for (auto batch : *random) sum += batch.target.sum().item<int64_t>();
  EXPECT_EQ(sum, 45);
  EXPECT_THROW(torch::data::make_data_loader(dataset, torch::data::DataLoaderOptions().batch_size(0)),
               umbra::ValueError);
}
}  // namespace samplers_program

namespace examples_without_stack_program {
using Example = torch::data::Example<>;
struct Numbers : torch::data::datasets::Dataset<Numbers, Example> {
  Example get(size_t i) { return {torch::ones({1}) * double(i), torch::zeros({1})}; }
  torch::optional<size_t> size() const { return 6; }
};
TEST(Data, ExamplesWithoutStack) {
  auto loader = torch::data::make_data_loader(Numbers(), 2);
  int batches = 0;
  for (std::vector<Example>& batch : *loader) {
    EXPECT_EQ(batch.size(), 2u);
    for (Example& e : batch) EXPECT_EQ(e.data.numel(), 1);
    ++batches;
  }
  EXPECT_EQ(batches, 3);
}
}  // namespace examples_without_stack_program

namespace tensor_dataset_program {
TEST(Data, TensorDataset) {
  torch::data::datasets::TensorDataset dataset(torch::arange(6, torch::kFloat).view({6, 1}));
  EXPECT_EQ(dataset.size().value(), 6u);
  EXPECT_EQ(dataset.get(2).data.item<float>(), 2);
  auto mapped = dataset.map(torch::data::transforms::Stack<torch::data::TensorExample>());
  auto loader = torch::data::make_data_loader(mapped, 4);
  for (auto& batch : *loader) EXPECT_EQ(batch.data.size(1), 1);
}
}  // namespace tensor_dataset_program

namespace lambda_transforms_program {
struct Numbers : torch::data::datasets::Dataset<Numbers> {
  torch::data::Example<> get(size_t i) override { return {torch::full({1}, double(i)), torch::tensor(int64_t(i))}; }
  torch::optional<size_t> size() const override { return 4; }
};
TEST(Data, LambdaTransforms) {
  auto dataset = Numbers()
                     .map(torch::data::transforms::Lambda<torch::data::Example<>>([](torch::data::Example<> e) {
                       e.data += 1;
                       return e;
                     }))
                     .map(torch::data::transforms::TensorLambda<>([](torch::Tensor t) { return t * 2; }))
                     .map(torch::data::transforms::Stack<>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(dataset), torch::data::DataLoaderOptions().batch_size(4));
  for (auto& batch : *loader) EXPECT_TRUE(torch::equal(batch.data.flatten(), torch::tensor({2.0, 4.0, 6.0, 8.0})));
}
}  // namespace lambda_transforms_program
