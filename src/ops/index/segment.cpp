// Segments of a dimension, each of a length of its own: reductions, and padding them to one length and back.
#include "kernels/segment.h"

#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using kernels::SegmentReduce;
using OptionalScalar = std::optional<Scalar>;

SegmentReduce reduction(const std::string& name) {
  if (name == "sum") return SegmentReduce::Sum;
  if (name == "mean") return SegmentReduce::Mean;
  if (name == "max") return SegmentReduce::Max;
  if (name == "min") return SegmentReduce::Min;
  if (name == "prod") return SegmentReduce::Product;
  fail("reduce argument must be either sum, prod, mean, amax or amin, got ", name);
}

void check_positions(const Tensor& positions) {
  check<NotImplementedError>(positions.dtype() == DType::Int64 || positions.dtype() == DType::Int32,
                             "\"_segment_reduce_lengths_cpu_kernel1\" not implemented for '",
                             kernel_name(positions.dtype()), "'");
}

void check_any_bounds(const Tensor& lengths, const Tensor& offsets) {
  check(lengths.defined() || offsets.defined(), "segment_reduce(): Either lengths or offsets must be defined.");
}

/// Which of lengths and offsets says where segments are, and how many there are.
struct Segments {
  Tensor positions;
  bool lengths;
  SymInt count;

  Segments(const Tensor& given_lengths, const Tensor& given_offsets) {
    check_any_bounds(given_lengths, given_offsets);
    lengths = !given_offsets.defined();
    positions = lengths ? given_lengths : given_offsets;
    count = positions.sym_size(-1) - (lengths ? 0 : 1);
  }
};

TensorSpec segment_spec(const Tensor& data, const std::string& reduce, const Segments& segments, int64_t axis) {
  reduction(reduce);
  int64_t at = wrap_dim(axis, data.dim());
  check(data.dim() >= segments.positions.dim(),
        "Expected data.dim() >= lengths_value.dim() to be true, but got false.");
  check(at == segments.positions.dim() - 1, "segment_reduce(): Expected axis to be the last dimension of ",
        segments.lengths ? "lengths" : "offsets", " but got ", at, ".");
  check_positions(segments.positions);
  check<NotImplementedError>(is_floating(data.dtype()), "\"_segment_reduce_cpu\" not implemented for '",
                             kernel_name(data.dtype()), "'");
  SymShape sizes(data.sym_sizes());
  sizes[at] = segments.count;
  return TensorSpec(sizes, data.dtype(), data.device());
}

/// A contiguous tensor as [before, along, behind] the axis.
Tensor in_three(const Tensor& t, int64_t axis) {
  Tensor dense = kernels::contiguous(t);
  SymInt outer = 1, inner = 1, n = t.sym_sizes()[axis];
  for (int64_t d = 0; d < axis; ++d) outer *= t.sym_sizes()[d];
  for (int64_t d = axis + 1; d < t.dim(); ++d) inner *= t.sym_sizes()[d];
  return alias_tensor(dense, {outer, n, inner}, {n * inner, inner, SymInt(1)}, dense.sym_storage_offset());
}

/// Where segments begin and end: [outer, segments + 1].
Tensor boundaries(const Segments& segments, int64_t outer, int64_t length, bool checked) {
  int64_t count = segments.count.guard_int(), width = segments.positions.size(-1);
  Tensor from = kernels::contiguous(kernels::cast(segments.positions, DType::Int64));
  Tensor out = kernels::scratch(std::vector<int64_t>{outer, count + 1}, DType::Int64);
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t* in = from.data<int64_t>() + o * width;
    int64_t* at = out.data<int64_t>() + o * (count + 1);
    if (!segments.lengths) std::copy_n(in, count + 1, at);
    at[0] = segments.lengths ? 0 : at[0];
    for (int64_t s = 0; s < count; ++s) {
      check(!segments.lengths || in[s] >= 0, "lengths contains negative value!");
      if (segments.lengths) at[s + 1] = at[s] + in[s];
      check(at[s] >= 0 && at[s] <= at[s + 1] && at[s + 1] <= length,
            segments.lengths ? "segment_reduce(): Expected all rows of lengths along axis to sum to "
                               "data.size(lengths.dim()-1) when !unsafe."
                             : "segment_reduce(): offsets must ascend and stay within the data");
    }
    check(!segments.lengths || !checked || at[count] == length,
          "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
          "!unsafe.");
  }
  return out;
}

std::optional<double> number(const OptionalScalar& s) {
  return s ? std::optional<double>(s->to_double()) : std::nullopt;
}

UMBRA_OPERATOR(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int "
    "axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor")
    .generated_out("segment_reduce.out")
    .meta([](const Tensor& data, const std::string& reduce, const Tensor& lengths, const Tensor& indices,
             const Tensor& offsets, int64_t axis, bool, const OptionalScalar&) {
      check<NotImplementedError>(!only_metadata_is_asked() || !indices.defined(),
                                 "segment_reduce(): indices based reduction is not supported yet.");
      if (only_metadata_is_asked()) {
        check_any_bounds(lengths, offsets);
        int64_t rank = (lengths.defined() ? lengths : offsets).dim();
        check<IndexError>(axis >= -rank && axis < rank, "tuple index out of range");
      }
      wrap_dim(axis, data.dim());
      reduction(reduce);
      for (const Tensor* t : {&lengths, &offsets})
        check(!t->defined() || t->dim() > 0, "segment_reduce(): lengths and offsets have a dimension of segments");
      check(!indices.defined(), "segment_reduce(): indices based reduction is not supported yet.");
      return segment_spec(data, reduce, Segments(lengths, offsets), axis);
    })
    .cpu([](const Tensor& out, const Tensor& data, const std::string& reduce, const Tensor& lengths, const Tensor&,
            const Tensor& offsets, int64_t axis, bool unsafe, const OptionalScalar& initial) {
      int64_t at = wrap_dim(axis, data.dim());
      Tensor in = in_three(data, at), to = in_three(out, at);
      Tensor bounds = boundaries(Segments(lengths, offsets), in.size(0), in.size(1), !unsafe);
      kernels::segment_reduce(to, in, bounds, reduction(reduce), number(initial));
      if (!out.is_contiguous())
        kernels::copy(out, alias_tensor(to, out.sym_sizes(), contiguous_strides(out.sym_sizes()), 0));
    })
    .gradient("data", {"grad", "result", "data", "reduce", "lengths", "offsets", "axis", "initial"},
              [](const Tensor& grad, const Tensor& result, const Tensor& data, const std::string& reduce,
                 const Tensor& lengths, const Tensor& offsets, int64_t axis, const OptionalScalar& initial) {
                return _segment_reduce_backward(grad, result, data, reduce, lengths, offsets, axis, initial);
              });

UMBRA_OPERATOR(
    "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? "
    "offsets=None, int axis=0, Scalar? initial=None) -> Tensor")
    .generated_out("_segment_reduce_backward.out")
    .meta([](const Tensor& grad, const Tensor& output, const Tensor& data, const std::string& reduce,
             const Tensor& lengths, const Tensor& offsets, int64_t axis, const OptionalScalar&) {
      if (only_metadata_is_asked()) {
        check<AssertionError>(lengths.defined() || offsets.defined(),
                              "segment_reduce(): Either lengths or offsets must be defined");
        return TensorSpec(data.sym_sizes(), grad.dtype(), grad.device());
      }
      wrap_dim(axis, data.dim());
      reduction(reduce);
      if (const Tensor& bounds = offsets.defined() ? offsets : lengths; bounds.defined()) {
        bool integers = bounds.dtype() == DType::Int64 || bounds.dtype() == DType::Int32;
        check_kernel_type(integers, "_segment_reduce_cpu_offsets_backward_kernel1", bounds);
        check_kernel_type(is_floating(data.dtype()), "_segment_reduce_cpu", data);
      }
      TensorSpec like = segment_spec(data, reduce, Segments(lengths, offsets), axis);
      check(grad.sym_sizes() == SymIntArrayRef(like.sizes) && output.sym_sizes() == SymIntArrayRef(like.sizes),
            "segment_reduce backward: grad and output must have the shape of the result, ", to_string(like.sizes));
      check(grad.dtype() == data.dtype() && output.dtype() == data.dtype(), "expected scalar type ",
            kernel_name(data.dtype()), " but found ", kernel_name(grad.dtype()));
      return TensorSpec(data.sym_sizes(), data.dtype(), data.device());
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& output, const Tensor& data, const std::string& reduce,
            const Tensor& lengths, const Tensor& offsets, int64_t axis, const OptionalScalar& initial) {
      int64_t at = wrap_dim(axis, data.dim());
      Tensor in = in_three(data, at);
      Tensor bounds = boundaries(Segments(lengths, offsets), in.size(0), in.size(1), false);
      kernels::segment_reduce_backward(in_three(out, at), in_three(grad, at), in_three(output, at), in, bounds,
                                       reduction(reduce), number(initial));
    });

// ---- rows of one batch after the other, and padded to one length ----

const Tensor& only_offsets(TensorList offsets) {
  check<AssertionError>(!only_metadata_is_asked() || offsets.size() == 1, "Only one jagged dim is supported, got ",
                        offsets.size(), " offsets");
  check(offsets.size() == 1, "expected one jagged dimension, but got offsets of ", offsets.size());
  return offsets[0];
}

UMBRA_OPERATOR(
    "_jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, SymInt[] max_lengths, float padding_value=0.) -> "
    "Tensor")
    .meta([](const Tensor& values, TensorList offsets, SymIntArrayRef lengths, double) {
      const Tensor& at = only_offsets(offsets);
      check<AssertionError>(!only_metadata_is_asked() || lengths.size() == 1, "Only one jagged dim is supported, got ",
                            lengths.size(), " max_lengths");
      check(lengths.size() == 1, "_jagged_to_padded_dense_forward(): expected one length for each list of offsets");
      check(values.dim() > 0 && at.dim() == 1 && at.sym_size(0) > 0, "offsets and values must have dimensions");
      SymShape sizes{at.sym_size(0) - 1, lengths[0]};
      for (SymInt s : values.sym_sizes().drop_front()) sizes.push_back(s);
      return TensorSpec(sizes, values.dtype(), values.device());
    })
    .cpu([](const Tensor& out, const Tensor& values, TensorList offsets, SymIntArrayRef, double padding) {
      Tensor at = kernels::contiguous(kernels::cast(only_offsets(offsets), DType::Int64));
      kernels::fill(out, padding);
      for (int64_t b = 0; b < out.size(0); ++b) {
        int64_t begin = at.data<int64_t>()[b], count = std::min(at.data<int64_t>()[b + 1] - begin, out.size(1));
        check(begin >= 0 && count >= 0 && begin + count <= values.size(0),
              "offsets must ascend and stay within values");
        if (count > 0) kernels::copy(out.select(0, b).narrow(0, 0, count), values.narrow(0, begin, count));
      }
    });

UMBRA_OPERATOR("_padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, SymInt? total_L=None) -> Tensor")
    .real([](const Tensor& dense, TensorList offsets, std::optional<SymInt> total) {
      Tensor at = kernels::contiguous(kernels::cast(only_offsets(offsets), DType::Int64));
      check(dense.dim() >= 2 && at.dim() == 1 && at.size(0) == dense.size(0) + 1,
            "_padded_dense_to_jagged_forward(): expected as many offsets as batch items and one more");
      const int64_t* begin = at.data<int64_t>();
      SymShape sizes(dense.sym_sizes().drop_front());
      sizes[0] = total ? *total : SymInt(begin[dense.size(0)]);
      Tensor out = zeros(sizes, dense.options());
      for (int64_t b = 0; b < dense.size(0); ++b) {
        int64_t count = begin[b + 1] - begin[b];
        check(count <= dense.size(1), "_padded_dense_to_jagged_forward(): found batch item of length ", count,
              " when max length specified by padded input is ", dense.size(1));
        check(begin[b] >= 0 && count >= 0 && begin[b] + count <= out.size(0),
              "offsets must ascend and stay within the result");
        if (count > 0) kernels::copy(out.narrow(0, begin[b], count), dense.select(0, b).narrow(0, 0, count));
      }
      return out;
    })
    .fake([](const Tensor& dense, TensorList offsets, std::optional<SymInt> total) {
      only_offsets(offsets);
      SymShape sizes(dense.sym_sizes().drop_front());
      check<DynamicOutputShapeException>(total.has_value(), "aten._padded_dense_to_jagged_forward.default");
      sizes[0] = *total;
      return empty(sizes, dense.options());
    })
    .use(NeedsData{});

}  // namespace
}  // namespace umbra::ops
