#include "umbra/nn/data.h"

#include <numeric>

#include "umbra/generated/functions.h"

namespace umbra::utils::data {

TensorDataset::TensorDataset(Tensor inputs, Tensor targets) : inputs_(std::move(inputs)), targets_(std::move(targets)) {
  check<ValueError>(inputs_.dim() > 0 && targets_.dim() > 0 && inputs_.size(0) == targets_.size(0),
                    "Size mismatch between tensors");
}

size_t TensorDataset::size() const { return static_cast<size_t>(inputs_.size(0)); }

TensorDataset::Sample TensorDataset::get(size_t index) const {
  check<IndexError>(index < size(), "index ", index, " is out of range for a dataset of ", size(), " samples");
  auto i = static_cast<int64_t>(index);
  return {inputs_.select(0, i), targets_.select(0, i)};
}

Tensor collate(const std::vector<Tensor>& samples) { return stack(samples); }

std::vector<std::vector<size_t>> batches_of(size_t samples, const DataLoaderOptions& options) {
  std::vector<size_t> order(samples);
  std::iota(order.begin(), order.end(), size_t{0});
  if (options.shuffle) {
    Tensor shuffled = randperm(static_cast<int64_t>(samples));
    for (size_t i = 0; i < samples; ++i) order[i] = static_cast<size_t>(shuffled.data<int64_t>()[i]);
  }
  std::vector<std::vector<size_t>> batches;
  for (size_t start = 0; start < samples; start += options.batch_size) {
    size_t end = std::min(samples, start + options.batch_size);
    if (end - start < options.batch_size && options.drop_last) break;
    batches.emplace_back(order.begin() + static_cast<ptrdiff_t>(start), order.begin() + static_cast<ptrdiff_t>(end));
  }
  return batches;
}

}  // namespace umbra::utils::data
