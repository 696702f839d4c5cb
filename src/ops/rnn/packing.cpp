// Sequences of different lengths in one tensor: packed step by step, without the padding, and back.
#include "kernels/copy.h"
#include "ops/rnn/batch_sizes.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/tensor_of.h"

namespace umbra::ops {

std::vector<int64_t> read_batch_sizes(const Tensor& batch_sizes) {
  constexpr DispatchKeySet kPlain = DispatchKeySet(DispatchKey::CPU) | DispatchKey::Autograd;
  bool plain = (batch_sizes.keys() - kPlain).empty() && batch_sizes.storage()->has_data();
  std::vector<int64_t> out;
  for (int64_t i = 0, n = batch_sizes.size(0); i < n; ++i)
    out.push_back(plain ? batch_sizes.data<int64_t>()[i * batch_sizes.stride(0)]
                        : batch_sizes.select(0, i).item().to_int());
  return out;
}

namespace {

std::vector<int64_t> read_lengths(const Tensor& lengths) {
  Tensor dense = kernels::contiguous(kernels::cast(lengths, DType::Int64));
  return std::vector<int64_t>(dense.data<int64_t>(), dense.data<int64_t>() + dense.numel());
}

void check_lengths(const std::vector<int64_t>& lengths, int64_t batch) {
  check(static_cast<int64_t>(lengths.size()) == batch, "Expected `len(lengths)` to be equal to batch_size, but got ",
        lengths.size(), " (batch_size=", batch, ")");
  check(lengths.empty() || lengths.back() > 0,
        "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
  for (size_t i = 1; i < lengths.size(); ++i)
    check(lengths[i] <= lengths[i - 1],
          "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
          "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do "
          "not need ONNX exportability.");
}

void check_packed(const Tensor& input, const Tensor& lengths, bool batch_first) {
  check(input.sym_numel() > 0, "Cannot pack empty tensors.");
  if (batch_first) wrap_dim(1, input.dim());
  check(lengths.dim() == 1 && lengths.dtype() == DType::Int64 && lengths.device().type == DeviceType::CPU,
        "'lengths' argument should be a 1D CPU int64 tensor, but got ", lengths.dim(), "D ", lengths.device(), " ",
        kernel_name(lengths.dtype()), " tensor");
  wrap_dim(1, input.dim());
}

UMBRA_OPERATOR("_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)")
    .generated_out("_pack_padded_sequence.out", {"out0", "out1"})
    .real([](const Tensor& input, const Tensor& lengths_tensor, bool batch_first) {
      check_packed(input, lengths_tensor, batch_first);
      int64_t time_dim = batch_first ? 1 : 0, batch_dim = 1 - time_dim;
      std::vector<int64_t> lengths = read_lengths(lengths_tensor), batch_sizes;
      check_lengths(lengths, input.size(batch_dim));
      int64_t rows = 0;
      for (int64_t length : lengths) rows += length;
      check(lengths[0] <= input.size(time_dim), "Expected sequence length to be at most ", input.size(time_dim),
            ", but got ", lengths[0]);
      SmallVector<int64_t> sizes{rows};
      for (int64_t d = 2; d < input.dim(); ++d) sizes.push_back(input.size(d));
      Tensor out = kernels::scratch(sizes, input.dtype());
      SymShape step_sizes(input.sym_sizes()), strides(input.sym_strides());
      step_sizes.erase(static_cast<size_t>(time_dim));
      strides.erase(static_cast<size_t>(time_dim));
      size_t left = lengths.size();
      for (int64_t t = 0, row = 0; t < lengths[0]; ++t) {
        while (left > 0 && lengths[left - 1] <= t) --left;
        step_sizes[0] = static_cast<int64_t>(left);
        SymInt from = input.storage_offset() + t * input.stride(time_dim);
        SymInt to = row * out.stride(0);
        kernels::copy(alias_tensor(out, step_sizes, out.sym_strides(), to),
                      alias_tensor(input, step_sizes, strides, from));
        batch_sizes.push_back(static_cast<int64_t>(left));
        row += static_cast<int64_t>(left);
      }
      Tensor counts = kernels::scratch({static_cast<int64_t>(batch_sizes.size())}, DType::Int64);
      std::copy(batch_sizes.begin(), batch_sizes.end(), counts.data<int64_t>());
      return std::tuple(out, counts);
    })
    .fake([](const Tensor& input, const Tensor& lengths, bool batch_first) -> std::tuple<Tensor, Tensor> {
      if (!input.is_fake()) check_packed(input, lengths, batch_first);
      fail<DynamicOutputShapeException>("aten._pack_padded_sequence.default");
    })
    .gradient("input", {"grad", "input.sym_sizes", "result1", "batch_first"},
              [](const Tensor& grad, SymIntArrayRef sizes, const Tensor& batch_sizes, bool batch_first) {
                return _pack_padded_sequence_backward(grad, sizes, batch_sizes, batch_first);
              })
    .differentiable_outputs({true, false});

std::vector<int64_t> batch_sizes_of(const Tensor& batch_sizes) {
  check(batch_sizes.dim() == 1 && batch_sizes.dtype() == DType::Int64, "batch_sizes must be a vector of integers");
  return read_batch_sizes(batch_sizes);
}

UMBRA_OPERATOR(
    "_pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes, bool batch_first) -> Tensor")
    .composite([](const Tensor& grad, SymIntArrayRef input_size, const Tensor& batch_sizes, bool batch_first) {
      check(input_size.size() >= 2, "Expected input_size.size() >= 2 to be true, but got false.");
      SymShape sizes(input_size);
      if (batch_first) std::swap(sizes[0], sizes[1]);
      Tensor out = zeros(sizes, grad.options());
      SymInt offset = 0;
      std::vector<int64_t> counts = batch_sizes_of(batch_sizes);
      for (size_t t = 0; t < counts.size(); ++t) {
        out.select(0, static_cast<int64_t>(t)).slice(0, 0, counts[t]).copy_(grad.slice(0, offset, offset + counts[t]));
        offset = offset + counts[t];
      }
      return batch_first ? out.transpose(0, 1) : out;
    });

UMBRA_OPERATOR(
    "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) "
    "-> "
    "(Tensor, Tensor)")
    .composite([](const Tensor& data, const Tensor& batch_sizes, bool batch_first, const Scalar& padding,
                  int64_t total_length) {
      std::vector<int64_t> counts = batch_sizes_of(batch_sizes), lengths;
      check(!counts.empty(), "batch_sizes must not be empty");
      check(data.dim() > 0, "packed data must have at least one dimension");
      auto longest = static_cast<int64_t>(counts.size()), time = longest;
      if (total_length > 0) {
        check(total_length >= longest,
              "Expected total_length to be at least the length of the longest sequence in input, but got total_length=",
              total_length, " and max sequence length being ", longest);
        time = total_length;
      }
      SymShape sizes{time, counts[0]}, part{0, 0};
      for (SymInt s : data.sym_sizes().drop_front(1)) {
        sizes.push_back(s);
        part.push_back(s);
      }
      Tensor out = full(sizes, padding, data.options());
      // Steps of the same batch size lie together.
      int64_t offset = 0, first = 0;
      for (int64_t t = 0; t <= longest; ++t) {
        int64_t before = counts[static_cast<size_t>(first)];
        int64_t now = t < longest ? counts[static_cast<size_t>(t)] : 0;
        if (now == before) continue;
        part[0] = t - first;
        part[1] = before;
        int64_t rows = before * (t - first);
        out.slice(0, first, t).slice(1, 0, before).copy_(data.slice(0, offset, offset + rows).view(part));
        for (int64_t ended = now; ended < before; ++ended) lengths.push_back(t);
        offset += rows;
        first = t;
      }
      std::reverse(lengths.begin(), lengths.end());
      Tensor all_lengths = detail::tensor_of(lengths.data(), lengths.size(), DType::Int64, DType::Int64, {});
      return std::tuple(batch_first ? out.transpose(0, 1) : out, all_lengths);
    });

}  // namespace
}  // namespace umbra::ops
