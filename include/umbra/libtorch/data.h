// Datasets, what is done to their samples, samplers and loaders, as `torch::data` has them.
//
//     auto dataset = Points().map(torch::data::transforms::Stack<>());
//     auto loader = torch::data::make_data_loader(std::move(dataset), torch::data::DataLoaderOptions().batch_size(8));
//     for (auto& batch : *loader) train(batch.data, batch.target);
#pragma once

#include <iterator>

#include "umbra/core/background.h"
#include "umbra/libtorch/settings.h"

namespace torch::data {

template <class Data = Tensor, class Target = Tensor> struct Example {
  Example() = default;
  Example(Data data, Target target) : data(std::move(data)), target(std::move(target)) {}
  Data data;
  Target target;
};
template <class Data> struct Example<Data, void> {
  Example() = default;
  Example(Data data) : data(std::move(data)) {}
  operator Data&() { return data; }
  Data data;
};
using TensorExample = Example<Tensor, void>;

// ---- datasets ----

namespace datasets {

template <class Source, class Transform> class MapDataset;

/// What can be asked for batches of samples.
template <class Self, class Batch> class BatchDataset {
 public:
  using BatchType = Batch;
  virtual ~BatchDataset() = default;
  virtual Batch get_batch(ArrayRef<size_t> indices) = 0;
  /// How many samples there are, where that is known.
  virtual std::optional<size_t> size() const = 0;
  /// The dataset with a transform of its batches; takes it over.
  template <class Transform> MapDataset<Self, Transform> map(Transform transform) & {
    return {static_cast<Self&>(*this), std::move(transform)};
  }
  template <class Transform> MapDataset<Self, Transform> map(Transform transform) && {
    return {std::move(static_cast<Self&>(*this)), std::move(transform)};
  }
};

/// Samples one by one.
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual ExampleType get(size_t index) = 0;
  std::vector<ExampleType> get_batch(ArrayRef<size_t> indices) override {
    std::vector<ExampleType> batch;
    for (size_t i : indices) batch.push_back(get(i));
    return batch;
  }
};

template <class Source, class Transform>
class MapDataset
    : public BatchDataset<MapDataset<Source, Transform>, decltype(std::declval<Transform&>().apply_batch(
                                                             std::declval<typename Source::BatchType>()))> {
 public:
  using Result = decltype(std::declval<Transform&>().apply_batch(std::declval<typename Source::BatchType>()));
  MapDataset(Source source, Transform transform) : source_(std::move(source)), transform_(std::move(transform)) {}
  Result get_batch(ArrayRef<size_t> indices) override { return transform_.apply_batch(source_.get_batch(indices)); }
  std::optional<size_t> size() const override { return source_.size(); }

 private:
  Source source_;
  Transform transform_;
};

/// The slices of a tensor.
class TensorDataset : public Dataset<TensorDataset, TensorExample> {
 public:
  explicit TensorDataset(Tensor tensor) : tensor_(std::move(tensor)) {}
  explicit TensorDataset(const std::vector<Tensor>& tensors) : tensor_(stack(tensors)) {}
  TensorExample get(size_t index) override { return tensor_[static_cast<int64_t>(index)]; }
  std::optional<size_t> size() const override { return static_cast<size_t>(tensor_.size(0)); }

 private:
  Tensor tensor_;
};

}  // namespace datasets

// ---- transforms ----

namespace transforms {

/// Of one sample; a batch's are transformed one by one.
template <class Input, class Output> class Transform {
 public:
  virtual ~Transform() = default;
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> inputs) {
    std::vector<Output> outputs;
    for (Input& input : inputs) outputs.push_back(apply(std::move(input)));
    return outputs;
  }
};
/// Of the tensor of a sample.
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  virtual Tensor operator()(Tensor input) = 0;
  Example<Tensor, Target> apply(Example<Tensor, Target> example) override {
    example.data = (*this)(std::move(example.data));
    return example;
  }
};

template <class Input, class Output = Input> class Lambda : public Transform<Input, Output> {
 public:
  explicit Lambda(std::function<Output(Input)> function) : function_(std::move(function)) {}
  Output apply(Input input) override { return function_(std::move(input)); }

 private:
  std::function<Output(Input)> function_;
};
template <class Target = Tensor> class TensorLambda : public TensorTransform<Target> {
 public:
  explicit TensorLambda(std::function<Tensor(Tensor)> function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  std::function<Tensor(Tensor)> function_;
};

/// Channels of images, less a mean and over a deviation each, or one of both for all.
template <class Target = Tensor> class Normalize : public TensorTransform<Target> {
 public:
  Normalize(std::vector<double> mean, std::vector<double> stddev) : mean_(shaped(mean)), stddev_(shaped(stddev)) {}
  Normalize(double mean, double stddev) : Normalize(std::vector<double>{mean}, std::vector<double>{stddev}) {}
  Tensor operator()(Tensor input) override { return input.sub(mean_).div(stddev_); }

 private:
  static Tensor shaped(const std::vector<double>& values) {
    return umbra::tensor(values, {}, kFloat32).unsqueeze(1).unsqueeze(2);
  }
  Tensor mean_, stddev_;
};

/// Samples of a batch as tensors with one more dimension.
template <class ExampleType = Example<>> class Stack;
template <> class Stack<Example<>> {
 public:
  Example<> apply_batch(std::vector<Example<>> examples) {
    std::vector<Tensor> data, targets;
    for (Example<>& e : examples) {
      data.push_back(std::move(e.data));
      targets.push_back(std::move(e.target));
    }
    return {stack(data), stack(targets)};
  }
};
template <> class Stack<TensorExample> {
 public:
  TensorExample apply_batch(std::vector<TensorExample> examples) {
    std::vector<Tensor> data;
    for (TensorExample& e : examples) data.push_back(std::move(e.data));
    return stack(data);
  }
};

}  // namespace transforms

// ---- samplers ----

namespace samplers {

class SequentialSampler {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  void reset() { next_ = 0; }
  std::optional<std::vector<size_t>> next(size_t batch_size) {
    if (next_ == size_) return std::nullopt;
    std::vector<size_t> out;
    while (next_ < size_ && out.size() < batch_size) out.push_back(next_++);
    return out;
  }

 private:
  size_t size_, next_ = 0;
};

/// In another order each time, drawn by the default generator.
class RandomSampler {
 public:
  explicit RandomSampler(size_t size) : size_(size) { reset(); }
  void reset() {
    Tensor order = randperm(static_cast<int64_t>(size_), kLong);
    order_.assign(order.data_ptr<int64_t>(), order.data_ptr<int64_t>() + size_);
    next_ = 0;
  }
  std::optional<std::vector<size_t>> next(size_t batch_size) {
    if (next_ == size_) return std::nullopt;
    size_t end = std::min(next_ + batch_size, size_), begin = std::exchange(next_, end);
    return std::vector<size_t>(order_.begin() + begin, order_.begin() + end);
  }

 private:
  size_t size_, next_ = 0;
  std::vector<size_t> order_;
};

}  // namespace samplers

// ---- loaders ----

struct DataLoaderOptions {
  DataLoaderOptions(size_t batch_size = 1) : batch_size_(batch_size) {}
  UMBRA_OWN_SETTING(DataLoaderOptions, size_t, batch_size)
  /// Threads that make batches ahead.
  UMBRA_OWN_SETTING(DataLoaderOptions, size_t, workers)
  UMBRA_OWN_SETTING(DataLoaderOptions, bool, drop_last)
  /// Batches come in the sampler's order in any case.
  UMBRA_OWN_SETTING(DataLoaderOptions, bool, enforce_ordering)

 private:
  size_t batch_size_, workers_ = 0;
  bool drop_last_ = false, enforce_ordering_ = true;
};

template <class DatasetType, class Sampler> class DataLoader {
 public:
  using Batch = typename DatasetType::BatchType;
  DataLoader(DatasetType dataset, Sampler sampler, const DataLoaderOptions& options)
      : dataset_(std::move(dataset)), sampler_(std::move(sampler)), options_(options) {
    if (options.batch_size() == 0)
      throw ValueError("batch_size should be a positive integer value, but got batch_size=0");
  }

  class Iterator {
   public:
    explicit Iterator(DataLoader* loader) : loader_(loader) { ++*this; }
    Batch& operator*() { return *batch_; }
    Batch* operator->() { return &*batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    DataLoader* loader_;
    std::optional<Batch> batch_;
  };
  /// Starts a new pass; one at a time.
  Iterator begin() {
    ahead_.clear();
    sampler_.reset();
    return Iterator(this);
  }
  std::default_sentinel_t end() { return {}; }
  const DataLoaderOptions& options() const { return options_; }

 private:
  struct Ahead {
    std::shared_ptr<std::optional<Batch>> batch;
    BackgroundTask task;
  };
  std::optional<std::vector<size_t>> next_indices() {
    auto indices = sampler_.next(options_.batch_size());
    if (indices && options_.drop_last() && indices->size() < options_.batch_size()) return std::nullopt;
    return indices;
  }
  std::optional<Batch> next() {
    if (options_.workers() == 0) {
      auto indices = next_indices();
      if (!indices) return std::nullopt;
      return dataset_.get_batch(*indices);
    }
    while (ahead_.size() < options_.workers()) {
      auto indices = next_indices();
      if (!indices) break;
      auto batch = std::make_shared<std::optional<Batch>>();
      ahead_.push_back(
          {batch, BackgroundTask([this, batch, i = std::move(*indices)] { *batch = dataset_.get_batch(i); })});
    }
    if (ahead_.empty()) return std::nullopt;
    Ahead first = std::move(ahead_.front());
    ahead_.erase(ahead_.begin());
    first.task.wait();
    return std::move(*first.batch);
  }

  DatasetType dataset_;
  Sampler sampler_;
  DataLoaderOptions options_;
  std::vector<Ahead> ahead_;  // goes first: the threads use the dataset
};

template <class DatasetType, class Sampler>
requires requires(Sampler sampler) { sampler.next(size_t{}); }
std::unique_ptr<DataLoader<DatasetType, Sampler>> make_data_loader(DatasetType dataset, Sampler sampler,
                                                                   DataLoaderOptions options = {}) {
  return std::make_unique<DataLoader<DatasetType, Sampler>>(std::move(dataset), std::move(sampler), options);
}
template <class Sampler = samplers::RandomSampler, class DatasetType>
std::unique_ptr<DataLoader<DatasetType, Sampler>> make_data_loader(DatasetType dataset,
                                                                   DataLoaderOptions options = {}) {
  std::optional<size_t> size = dataset.size();
  if (!size) throw ValueError("Expected the dataset to be sized in order to construct the Sampler");
  return make_data_loader(std::move(dataset), Sampler(*size), options);
}

}  // namespace torch::data
