// Loaders: the same batches in the same order, whoever makes them.
#include "umbra/nn/data.h"

#include <atomic>
#include <set>

#include "autograd/testing.h"

namespace umbra {
namespace {

using utils::data::DataLoader;
using utils::data::DataLoaderOptions;
using utils::data::Dataset;
using utils::data::Subset;
using utils::data::TensorDataset;

struct Numbers final : Dataset<Tensor> {
  size_t count = 10;
  int64_t bad = -1;
  mutable std::atomic<int> reads = 0;
  mutable std::mutex mutex;
  mutable std::set<std::thread::id> threads;
  size_t size() const override { return count; }
  Tensor get(size_t index) const override {
    ++reads;
    {
      std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    check<ValueError>(static_cast<int64_t>(index) != bad, "sample ", index, " is bad");
    return vector_of({static_cast<double>(index)}).squeeze();
  }
};

std::vector<std::vector<double>> batches(const Dataset<Tensor>& dataset, const DataLoaderOptions& options) {
  std::vector<std::vector<double>> out;
  for (Tensor& batch : DataLoader(dataset, options)) out.push_back(values(batch));
  return out;
}

TEST(DataLoader, RefusesBatchesOfNothing) {
  Numbers numbers;
  EXPECT_THROW(DataLoader(numbers, {.batch_size = 0}), ValueError);
}

TEST(DataLoader, BatchesComeInOrder) {
  Numbers numbers;
  std::vector<std::vector<double>> expected = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}};
  for (size_t workers : {0, 1, 2, 5})
    EXPECT_EQ(batches(numbers, {.batch_size = 4, .num_workers = workers}), expected) << workers;
  expected.pop_back();
  EXPECT_EQ(batches(numbers, {.batch_size = 4, .num_workers = 2, .drop_last = true}), expected);
  EXPECT_EQ(DataLoader(numbers, {.batch_size = 4}).size(), 3);
}

TEST(DataLoader, WorkersAreThreads) {
  Numbers numbers;
  batches(numbers, {.batch_size = 1, .num_workers = 2});
  EXPECT_FALSE(numbers.threads.contains(std::this_thread::get_id()));
}

TEST(DataLoader, AShuffledPassHasEverySampleOnceAndFollowsTheSeed) {
  Numbers numbers;
  auto shuffled = [&](size_t workers) {
    manual_seed(0);
    return batches(numbers, {.batch_size = 10, .shuffle = true, .num_workers = workers})[0];
  };
  std::vector<double> order = shuffled(0);
  EXPECT_EQ(order, shuffled(3));
  EXPECT_EQ(std::set<double>(order.begin(), order.end()).size(), 10);
}

TEST(DataLoader, PairsAreStackedPartByPart) {
  TensorDataset dataset(arange(6).view({3, 2}), arange(3));
  int count = 0;
  for (auto& [x, y] : DataLoader(dataset, {.batch_size = 2, .num_workers = 1})) {
    EXPECT_EQ(x.size(0), y.size(0));
    ++count;
  }
  EXPECT_EQ(count, 2);
  EXPECT_EQ(error_of<ValueError>([] { TensorDataset(ones({3}), ones({2})); }), "Size mismatch between tensors");
}

TEST(DataLoader, AnErrorComesWithItsBatch) {
  for (size_t workers : {0, 2}) {
    Numbers numbers;
    numbers.bad = 5;
    int seen = 0;
    EXPECT_EQ(error_of<ValueError>([&] {
                for (Tensor& batch : DataLoader(static_cast<const Dataset<Tensor>&>(numbers),
                                                {.batch_size = 2, .num_workers = workers})) {
                  (void)batch;
                  ++seen;
                }
              }),
              "sample 5 is bad");
    EXPECT_EQ(seen, 2);
  }
}

TEST(DataLoader, APassMayBeLeftEarlyAndReadsNoFurtherThanItShould) {
  Numbers numbers;
  numbers.count = 1000;
  for (Tensor& batch : DataLoader(static_cast<const Dataset<Tensor>&>(numbers), {.batch_size = 1, .num_workers = 2})) {
    EXPECT_EQ(values(batch), std::vector<double>{0});
    break;
  }
  EXPECT_LE(numbers.reads, 8);
}

TEST(DataLoader, PartsOfADataset) {
  Numbers numbers;
  Subset<Tensor> subset(numbers, {7, 3});
  EXPECT_EQ(batches(subset, {.batch_size = 2}), (std::vector<std::vector<double>>{{7, 3}}));
}

struct Rows final : Dataset<std::tuple<Tensor, int64_t, std::pair<double, Tensor>>> {
  size_t size() const override { return 3; }
  Sample get(size_t index) const override {
    auto i = static_cast<int64_t>(index);
    return {full({2}, i), i, {0.5 * static_cast<double>(i), tensor(i)}};
  }
};

TEST(DataLoader, StacksNumbersAndGoesIntoTuples) {
  Rows rows;
  for (auto& [tensors, labels, pairs] : DataLoader(rows, {.batch_size = 3})) {
    EXPECT_EQ(tensors.sizes(), IntArrayRef({3, 2}));
    EXPECT_EQ(labels.dtype(), DType::Int64);
    EXPECT_EQ(values(pairs.first), (std::vector<double>{0, 0.5, 1}));
    EXPECT_TRUE(pairs.second.equal(labels));
  }
}

}  // namespace
}  // namespace umbra
