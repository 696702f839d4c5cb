// Sequences of several lengths as one tensor: padded, or packed step by step without the padding.
//
//     namespace rnn = nn::utils::rnn;
//     rnn::PackedSequence packed = rnn::pack_padded_sequence(x, tensor({5, 3}));      // x is [5, 2, features]
//     auto [output, hidden, cell] = lstm.run_packed(packed);
//     auto [padded, lengths] = rnn::pad_packed_sequence(output);
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace nn::utils::rnn {

/// The steps of all sequences, the longest one first: `batch_sizes()[t]` rows of `data()` belong to step t.
class PackedSequence {
 public:
  /// Where sequences came in another order, `sorted_indices` is the order in which they lie; the way back follows.
  PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {}, Tensor unsorted_indices = {});
  const Tensor& data() const { return data_; }
  const Tensor& batch_sizes() const { return batch_sizes_; }
  const Tensor& sorted_indices() const { return sorted_indices_; }
  const Tensor& unsorted_indices() const { return unsorted_indices_; }

 private:
  Tensor data_, batch_sizes_, sorted_indices_, unsorted_indices_;
};

/// Packs [length, batch, ...], or with `batch_first` [batch, length, ...]. Sequences whose lengths do not fall are an
/// error, unless `enforce_sorted` is false: then they are sorted, and the packed ones remember the order.
PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first = false,
                                    bool enforce_sorted = true);
PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted = true);
/// The padded sequences and their lengths, in the order in which they came.
std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false,
                                               double padding_value = 0, std::optional<int64_t> total_length = {});
Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = false, double padding_value = 0);

}  // namespace nn::utils::rnn
}  // namespace umbra
