#include "umbra/nn/packed_sequence.h"

#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"
#include "umbra/ops/tensor_of.h"

namespace umbra::nn::utils::rnn {

namespace {
Tensor inverse_of(const Tensor& order) {
  if (!order.defined()) return {};
  return empty_like(order).scatter_(0, order, arange(order.numel(), {.device = order.device()}));
}
}  // namespace

PackedSequence::PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices, Tensor unsorted_indices)
    : data_(std::move(data)),
      batch_sizes_(std::move(batch_sizes)),
      sorted_indices_(std::move(sorted_indices)),
      unsorted_indices_(unsorted_indices.defined() ? std::move(unsorted_indices) : inverse_of(sorted_indices_)) {
  check<ValueError>(batch_sizes_.device().type == DeviceType::CPU, "batch_sizes should always be on CPU, got ",
                    batch_sizes_.device());
}

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first, bool enforce_sorted) {
  Tensor sorted_lengths = lengths.to(DType::Int64), order, padded = input;
  if (!enforce_sorted) {
    std::tie(sorted_lengths, order) = sorted_lengths.sort(-1, /*descending=*/true);
    order = order.to(input.device());
    padded = input.index_select(batch_first ? 0 : 1, order);
  }
  auto [data, batch_sizes] = _pack_padded_sequence(padded, sorted_lengths, batch_first);
  return {data, batch_sizes, order};
}

PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted) {
  std::vector<int64_t> lengths;
  for (const Tensor& sequence : sequences) lengths.push_back(sequence.size(0));
  return pack_padded_sequence(pad_sequence(sequences), tensor(lengths), /*batch_first=*/false, enforce_sorted);
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first, double padding_value,
                                               std::optional<int64_t> total_length) {
  int64_t longest = sequence.batch_sizes().size(0);
  check<ValueError>(!total_length || *total_length >= longest,
                    "Expected total_length to be at least the length of the longest sequence in input, but got "
                    "total_length=",
                    total_length.value_or(0), " and max sequence length being ", longest);
  auto [padded, lengths] = _pad_packed_sequence(sequence.data(), sequence.batch_sizes(), batch_first, padding_value,
                                                total_length.value_or(longest));
  const Tensor& order = sequence.unsorted_indices();
  if (!order.defined()) return {padded, lengths};
  return {padded.index_select(batch_first ? 0 : 1, order), lengths.index_select(0, order.to(DeviceType::CPU))};
}

Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first, double padding_value) {
  return umbra::pad_sequence(sequences, batch_first, padding_value);
}

}  // namespace umbra::nn::utils::rnn
