#include "kernels/reductions.h"

#include <vector>

#include "kernels/convert.h"
#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/reduction_walk.h"
#include "kernels/types.h"
#include "kernels/vector/accumulators.h"
#include "kernels/visit.h"

namespace umbra::kernels {

namespace {

constexpr int kStripRows = 32;       // rows that are taken into the states of their columns at once
constexpr int kBlockColumns = 256;   // columns whose states are kept at hand
constexpr int kBlockOutputs = 16;    // the same where each takes runs of its own
constexpr int64_t kRun = 1024;       // elements of a row that are taken into a state at once
constexpr int64_t kStateBytes = 48;  // an upper bound

/// A reduction under way. Outputs are worked on in blocks, along the first dimension that stays: where the input's
/// neighbours are reduced, each output of a block takes runs of elements; where they belong to different outputs, the
/// block takes rows.
class Reduction {
 public:
  Reduction(const ReduceKernel& kernel, const ReduceParameters& parameters, const ReduceGeometry& geometry, DType from,
            DType to, DType second_to)
      : kernel_(kernel), parameters_(parameters), geometry_(geometry), from_(from), to_{to, second_to} {
    const LoopNest &kept = geometry.kept, &reduced = geometry.reduced;
    constexpr int64_t few = 16;
    if (kept.dims > 0) {
      bool neighbours_kept = reduced.dims == 0 || kept.step[0] < reduced.step[0];
      by_columns_ = neighbours_kept || (reduced.size[0] < few && kept.size[0] >= few);
    }
    columns_ = kept.dims > 0 ? kept.size[0] : 1;
    block_size_ = by_columns_ ? kBlockColumns : kBlockOutputs;
    blocks_ = (columns_ + block_size_ - 1) / block_size_;
    tasks_ = kept.numel / columns_ * blocks_;
  }

  void run() {
    int64_t work = geometry_.reduced.numel * std::min(columns_, block_size_);
    if (tasks_ < num_threads() && work > 2 * kGrain && !in_parallel_region()) {
      for (int64_t task = 0; task < tasks_; ++task) run_split(task);
      return;
    }
    parallel_for(0, tasks_, std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1)), [&](int64_t from, int64_t to) {
      alignas(16) char states[kBlockColumns * kStateBytes];
      for (int64_t task = from; task < to; ++task) {
        Block block = block_of(task);
        kernel_.start(states, block.columns);
        accumulate(block, 0, geometry_.reduced.numel, states);
        finish(block, states);
      }
    });
  }

 private:
  struct Block {
    const char* in;
    char* out[2];
    int64_t columns;
  };

  Block block_of(int64_t task) const {
    bool has_columns = geometry_.kept.dims > 0;
    LoopPosition position(geometry_.kept, has_columns ? 1 : 0);
    position.reach(task / blocks_);
    int64_t column = task % blocks_ * block_size_;
    Block block{geometry_.in + position.offset, {}, std::min(block_size_, columns_ - column)};
    if (has_columns) block.in += column * geometry_.kept.step[0];
    for (int k = 0; k < 2; ++k) {
      if (!geometry_.out[k]) continue;
      block.out[k] = geometry_.out[k] + position.out_offset[k];
      if (has_columns) block.out[k] += column * geometry_.kept.out_step[k][0];
    }
    return block;
  }

  /// One block by all threads: each takes a part of what is reduced.
  void run_split(int64_t task) const {
    Block block = block_of(task);
    int64_t total = geometry_.reduced.numel;
    int parts = num_threads();
    std::vector<char> states(parts * block.columns * kernel_.state_bytes);
    auto part_states = [&](int64_t part) { return states.data() + part * block.columns * kernel_.state_bytes; };
    parallel_for(0, parts, 1, [&](int64_t from, int64_t to) {
      for (int64_t part = from; part < to; ++part) {
        kernel_.start(part_states(part), block.columns);
        accumulate(block, total * part / parts, total * (part + 1) / parts, part_states(part));
      }
    });
    for (int part = 1; part < parts; ++part)
      kernel_.merge(part_states(0), part_states(part), block.columns, parameters_);
    finish(block, part_states(0));
  }

  void accumulate(const Block& block, int64_t from, int64_t to, char* states) const {
    if (from >= to) return;
    if (by_columns_) return take_rows(block, from, to, states);
    int64_t step = geometry_.kept.dims > 0 ? geometry_.kept.step[0] : 0;
    for (int64_t i = 0; i < block.columns; ++i)
      take_runs(block.in + i * step, from, to, states + i * kernel_.state_bytes);
  }

  void take_runs(const char* begin, int64_t from, int64_t to, char* state) const {
    const LoopNest& reduced = geometry_.reduced;
    alignas(64) char buffer[kRun * 16];
    int64_t inner = reduced.dims ? reduced.size[0] : 1, step = reduced.dims ? reduced.step[0] : 0;
    bool direct = from_ == kernel_.compute && (step == item_size(from_) || inner == 1);
    if (direct && reduced.dims <= 1 && to - from <= kRun)
      return kernel_.run(state, begin + from * step, to - from, parameters_);
    LoopPosition row(reduced, 1);
    row.reach(from / inner);
    if (!direct && from % inner == 0 && inner <= kRun / 2) {  // as many rows as the buffer holds are one run
      int64_t item = item_size(kernel_.compute);
      while (from < to) {
        int64_t count = 0;
        for (; count + inner <= kRun && from < to; count += inner) {
          int64_t length = std::min(inner, to - from);
          convert(buffer + count * item, kernel_.compute, begin + row.offset, from_, step, length);
          from += length;
          if (length < inner) {
            count += length;
            break;
          }
          if (from < to) row.next();
        }
        kernel_.run(state, buffer, count, parameters_);
      }
      return;
    }
    for (int64_t at = from % inner; from < to;) {
      int64_t count = std::min({kRun, inner - at, to - from});
      const char* in = begin + row.offset + at * step;
      if (!direct) {
        convert(buffer, kernel_.compute, in, from_, step, count);
        in = buffer;
      }
      kernel_.run(state, in, count, parameters_);
      from += count;
      at += count;
      if (at == inner) {
        at = 0;
        if (from < to) row.next();
      }
    }
  }

  void take_rows(const Block& block, int64_t from, int64_t to, char* states) const {
    alignas(64) char buffer[kStripRows * kBlockColumns * 16];
    const void* rows[kStripRows];
    int64_t step = geometry_.kept.step[0], row_bytes = block.columns * item_size(kernel_.compute);
    bool direct = from_ == kernel_.compute && (step == item_size(from_) || block.columns == 1);
    if (direct && geometry_.reduced.dims == 1) {
      const int64_t down = geometry_.reduced.step[0];
      while (from < to) {
        int count = static_cast<int>(std::min<int64_t>(kStripRows, to - from));
        for (int r = 0; r < count; ++r, ++from) rows[r] = block.in + from * down;
        kernel_.strip(states, rows, count, block.columns, parameters_);
      }
      return;
    }
    LoopPosition row(geometry_.reduced);
    row.reach(from);
    while (from < to) {
      int count = static_cast<int>(std::min<int64_t>(kStripRows, to - from));
      for (int r = 0; r < count; ++r, ++from) {
        const char* in = block.in + row.offset;
        if (!direct) {
          char* place = buffer + r * row_bytes;
          convert(place, kernel_.compute, in, from_, step, block.columns);
          in = place;
        }
        rows[r] = in;
        if (from + 1 < to) row.next();
      }
      kernel_.strip(states, rows, count, block.columns, parameters_);
    }
  }

  void finish(const Block& block, const char* states) const {
    alignas(16) char results[kBlockColumns * 16];
    for (int k = 0; k < 2; ++k) {
      if (!block.out[k]) continue;
      kernel_.finish(results, states, block.columns, geometry_.reduced.numel, k, parameters_);
      int64_t step = block.columns > 1 ? geometry_.kept.out_step[k][0] : item_size(to_[k]);
      convert_out(block.out[k], to_[k], step, results, kernel_.result[k], block.columns);
    }
  }

  const ReduceKernel& kernel_;
  const ReduceParameters& parameters_;
  const ReduceGeometry& geometry_;
  DType from_, to_[2];
  bool by_columns_ = false;
  int64_t columns_ = 1, block_size_ = 1, blocks_ = 1, tasks_ = 1;
};

/// The type that elements are reduced in: float for narrow floats, double where the result is to be one, int64 for
/// integers.
DType compute_type_for(ReduceOp op, DType from, DType to) {
  if (op == ReduceOp::Any || op == ReduceOp::All) return DType::Bool;
  if (is_integral(from, true)) {
    if (is_complex(to)) return DType::Complex128;
    if (op == ReduceOp::Mean || op == ReduceOp::Norm || op == ReduceOp::Variance || op == ReduceOp::LogSumExp)
      return DType::Float64;
    return DType::Int64;
  }
  bool wide = from == DType::Float64 || from == DType::Complex128 || to == DType::Float64 || to == DType::Complex128;
  bool complex = is_complex(from) || (is_complex(to) && op != ReduceOp::Norm && op != ReduceOp::Variance);
  if (complex) return wide ? DType::Complex128 : DType::Complex64;
  return wide ? DType::Float64 : DType::Float32;
}

/// Types that are stored and not computed with are not reduced either, save by any and all.
void check_reduced(ReduceOp op, const char* name, DType from, DType to) {
  if (op == ReduceOp::Any || op == ReduceOp::All) return;
  bool spread = op == ReduceOp::Norm || op == ReduceOp::Variance;  // real for complex elements
  bool extreme = op == ReduceOp::Max || op == ReduceOp::Min;
  DType type = spread ? from : to;
  if (is_float8(type) || (type == DType::Complex32 && !spread) || (is_wide_unsigned(type) && extreme))
    unsupported_dtype(name, type);
}

void reduce(ReduceOp op, const char* name, const Tensor& out, const Tensor& self, IntArrayRef dims,
            const ReduceParameters& parameters = {}, const Tensor& second = {}) {
  DType from = self.dtype();
  const Tensor& main = out.defined() ? out : second;
  check_reduced(op, name, from, main.dtype());
  ReduceGeometry geometry(self, dims, out, second);
  if (geometry.kept.numel == 0) return;
  DType compute = compute_type_for(op, from, main.dtype());
  const ReduceKernel* kernel = nullptr;
  if (compute == DType::Float32)
    kernel = UMBRA_VECTOR(reduce_kernel)(op, from, parameters);  // reads narrow types itself
  if (!kernel) kernel = UMBRA_VECTOR(reduce_kernel)(op, compute, parameters);
  if (!kernel) unsupported_dtype(name, from);
  DType second_type = second.defined() ? second.dtype() : DType::Undefined;
  Reduction(*kernel, parameters, geometry, from, out.defined() ? out.dtype() : DType::Undefined, second_type).run();
}

}  // namespace

void sum(const Tensor& out, const Tensor& self, IntArrayRef dims) { reduce(ReduceOp::Sum, "sum_cpu", out, self, dims); }
void mean(const Tensor& out, const Tensor& self, IntArrayRef dims) {
  reduce(ReduceOp::Mean, "sum_cpu", out, self, dims);
}
void nansum(const Tensor& out, const Tensor& self, IntArrayRef dims) {
  reduce(ReduceOp::NanSum, "nansum_cpu", out, self, dims);
}
void prod(const Tensor& out, const Tensor& self, IntArrayRef dims) {
  reduce(ReduceOp::Prod, "prod_out_cpu", out, self, dims);
}
void amax(const Tensor& out, const Tensor& self, IntArrayRef dims) {
  if (out.numel() != 0) reduce(ReduceOp::Max, "max_values_cpu", out, self, dims);
}
void amin(const Tensor& out, const Tensor& self, IntArrayRef dims) {
  if (out.numel() != 0) reduce(ReduceOp::Min, "min_values_cpu", out, self, dims);
}
void any(const Tensor& out, const Tensor& self, IntArrayRef dims) { reduce(ReduceOp::Any, "any_cpu", out, self, dims); }
void all(const Tensor& out, const Tensor& self, IntArrayRef dims) { reduce(ReduceOp::All, "all_cpu", out, self, dims); }

bool all_equal(const Tensor& a, const Tensor& b) {
  constexpr int64_t kPiece = 1024;
  bool same = true;
  if (a.numel() == 0) return same;
  visit<detail::Join<AllTypesAndUnsigned, Float8>>(a.dtype(), "equal_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x = a.data<T>(), *y = b.data<T>();
    for (int64_t i = 0, n = a.numel(); i < n && same;) {
      for (int64_t end = std::min(n, i + kPiece); i < end; ++i)
        same &= static_cast<Compute<T>>(x[i]) == static_cast<Compute<T>>(y[i]);
    }
  });
  return same;
}

void norm(const Tensor& out, const Tensor& self, double p, IntArrayRef dims) {
  reduce(ReduceOp::Norm, "norm_cpu", out, self, dims, {.exponent = p});
}
void logsumexp(const Tensor& out, const Tensor& self, IntArrayRef dims) {
  reduce(ReduceOp::LogSumExp, "logsumexp", out, self, dims);
}
void var_mean(const Tensor& variance, const Tensor& mean, const Tensor& self, IntArrayRef dims, double correction,
              bool root) {
  reduce(ReduceOp::Variance, "std_cpu", variance, self, dims, {.correction = correction, .root = root}, mean);
}

}  // namespace umbra::kernels
