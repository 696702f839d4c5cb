// Data loading: datasets, and loaders that make batches of them, in threads of their own where there are workers.
//
//     utils::data::TensorDataset dataset(images, labels);
//     utils::data::DataLoader loader(dataset, {.batch_size = 32, .shuffle = true, .num_workers = 2});
//     for (auto& [x, y] : loader) train(x, y);
// It brings the headers of threads, so <umbra/umbra.h> leaves it out.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "umbra/core/tensor.h"
#include "umbra/ops/tensor_of.h"

namespace UMBRA_API umbra {
namespace utils::data {

/// Samples by index. Loaders with workers call `get` from several threads at once.
template <class SampleType> class Dataset {
 public:
  using Sample = SampleType;
  virtual ~Dataset() = default;
  virtual size_t size() const = 0;
  virtual Sample get(size_t index) const = 0;
};

/// Sample i is the i-th slice of the inputs and of the targets.
class TensorDataset final : public Dataset<std::pair<Tensor, Tensor>> {
 public:
  TensorDataset(Tensor inputs, Tensor targets);
  size_t size() const override;
  Sample get(size_t index) const override;

 private:
  Tensor inputs_, targets_;
};

/// Some samples of another dataset, which has to outlive it.
template <class SampleType> class Subset final : public Dataset<SampleType> {
 public:
  Subset(const Dataset<SampleType>& dataset, std::vector<size_t> indices)
      : dataset_(dataset), indices_(std::move(indices)) {}
  size_t size() const override { return indices_.size(); }
  SampleType get(size_t index) const override { return dataset_.get(indices_.at(index)); }

 private:
  const Dataset<SampleType>& dataset_;
  std::vector<size_t> indices_;
};

/// Samples to a batch: tensors are stacked, numbers become a tensor, pairs and tuples are gone into. Other samples need
/// an overload of their own, in their namespace.
Tensor collate(const std::vector<Tensor>& samples);
template <class Number>
requires std::is_arithmetic_v<Number> Tensor collate(const std::vector<Number>& samples) { return tensor(samples); }
template <class... Parts> auto collate(const std::vector<std::tuple<Parts...>>& samples);
template <class A, class B> auto collate(const std::vector<std::pair<A, B>>& samples) {
  std::vector<A> first;
  std::vector<B> second;
  for (const auto& [a, b] : samples) {
    first.push_back(a);
    second.push_back(b);
  }
  return std::pair(collate(first), collate(second));
}
template <class... Parts> auto collate(const std::vector<std::tuple<Parts...>>& samples) {
  auto column = [&]<size_t I>(std::integral_constant<size_t, I>) {
    std::vector<std::tuple_element_t<I, std::tuple<Parts...>>> parts;
    for (const auto& sample : samples) parts.push_back(std::get<I>(sample));
    return collate(parts);
  };
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::tuple(column(std::integral_constant<size_t, I>())...);
  }
  (std::index_sequence_for<Parts...>());
}

struct DataLoaderOptions {
  size_t batch_size = 1;
  bool shuffle = false;
  size_t num_workers = 0;      // threads; none: batches are made by who asks for them
  bool drop_last = false;      // the last batch, where it is smaller than the others
  size_t prefetch_factor = 2;  // batches that are made ahead, for each worker
};

/// The batches of one pass: lists of indices, in order or shuffled by the default generator.
std::vector<std::vector<size_t>> batches_of(size_t samples, const DataLoaderOptions& options);

/// Iterates over the batches of a dataset, which has to outlive it. They come in order, whoever makes them; an error of
/// a worker comes with its batch.
template <class DatasetType> class DataLoader {
 public:
  using Sample = typename DatasetType::Sample;
  using Batch = decltype(collate(std::declval<const std::vector<Sample>&>()));

  explicit DataLoader(const DatasetType& dataset, const DataLoaderOptions& options = {})
      : dataset_(dataset), options_(options) {
    detail::check<ValueError>(options.batch_size > 0,
                              "batch_size should be a positive integer value, but got batch_size=0");
  }

  /// The number of batches.
  size_t size() const {
    size_t count = dataset_.size();
    return options_.drop_last ? count / options_.batch_size : (count + options_.batch_size - 1) / options_.batch_size;
  }

 private:
  /// One pass, with its workers.
  class Pass {
   public:
    explicit Pass(const DataLoader& loader)
        : loader_(loader), indices_(batches_of(loader.dataset_.size(), loader.options_)) {
      for (size_t i = 0; i < loader.options_.num_workers; ++i) workers_.emplace_back([this] { work(); });
    }
    ~Pass() {
      {
        std::lock_guard lock(mutex_);
        stopped_ = true;
      }
      changed_.notify_all();
      for (std::thread& worker : workers_) worker.join();
    }
    Pass(const Pass&) = delete;

    std::optional<Batch> next() {
      if (given_ == indices_.size()) return std::nullopt;
      if (workers_.empty()) return make(given_++);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ready_.contains(given_); });
      Result result = std::move(ready_.extract(given_++).mapped());
      lock.unlock();
      changed_.notify_all();
      if (result.error) std::rethrow_exception(result.error);
      return std::move(result.batch);
    }

   private:
    struct Result {
      std::optional<Batch> batch;
      std::exception_ptr error;
    };

    Batch make(size_t number) const {
      std::vector<Sample> samples;
      for (size_t index : indices_[number]) samples.push_back(loader_.dataset_.get(index));
      return collate(samples);
    }

    void work() {
      size_t ahead = std::max<size_t>(1, loader_.options_.prefetch_factor) * loader_.options_.num_workers;
      std::unique_lock lock(mutex_);
      while (true) {
        changed_.wait(lock, [&] { return stopped_ || taken_ == indices_.size() || taken_ < given_ + ahead; });
        if (stopped_ || taken_ == indices_.size()) return;
        size_t number = taken_++;
        lock.unlock();
        Result result;
        try {
          result.batch = make(number);
        } catch (...) {
          result.error = std::current_exception();
        }
        lock.lock();
        ready_.emplace(number, std::move(result));
        changed_.notify_all();
      }
    }

    const DataLoader& loader_;
    std::vector<std::vector<size_t>> indices_;
    std::mutex mutex_;
    std::condition_variable changed_;
    size_t taken_ = 0, given_ = 0;
    bool stopped_ = false;
    std::map<size_t, Result> ready_;
    std::vector<std::thread> workers_;
  };

 public:
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(std::shared_ptr<Pass> pass) : pass_(std::move(pass)) { ++*this; }
    Batch& operator*() const { return *batch_; }
    Iterator& operator++() {
      std::optional<Batch> batch = pass_->next();
      batch_ = batch ? std::make_shared<Batch>(std::move(*batch)) : nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    std::shared_ptr<Pass> pass_;
    std::shared_ptr<Batch> batch_;
  };

  /// Each pass begins anew, in an order of its own where it is shuffled.
  Iterator begin() const { return Iterator(std::make_shared<Pass>(*this)); }
  std::default_sentinel_t end() const { return {}; }

 private:
  const DatasetType& dataset_;
  DataLoaderOptions options_;
};

}  // namespace utils::data
}  // namespace umbra
