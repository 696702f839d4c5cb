// Places of extremes: argmax, argmin, and max and min along a dimension.
#include <algorithm>
#include <vector>

#include "kernels/convert.h"
#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/reduction_walk.h"
#include "kernels/reductions.h"
#include "kernels/types.h"
#include "kernels/vector/extremes.h"

namespace umbra::kernels {

namespace {

constexpr int64_t kColumns = 128;

struct ArgReduction {
  ReduceGeometry geometry;
  DType from, compute, value_type;
  bool largest;
  int64_t n, step;  // along the dimension

  ArgReduction(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool largest,
               const char* name)
      : geometry(self, {dim}, values, indices),
        from(self.dtype()),
        compute(from == DType::Float64            ? DType::Float64
                : is_integral(self.dtype(), true) ? DType::Int64
                                                  : DType::Float32),
        value_type(values.defined() ? values.dtype() : DType::Undefined),
        largest(largest),
        n(geometry.reduced.numel),
        step(geometry.reduced.dims ? geometry.reduced.step[0] : item_size(from)) {
    if (is_complex(from) || is_float8(from) || is_wide_unsigned(from)) unsupported_dtype(name, from);
  }

  bool direct(int64_t by, int64_t count) const { return from == compute && (by == item_size(from) || count == 1); }

  void write(char* value_out, char* index_out, int64_t value_step, int64_t index_step, const char* values,
             const int64_t* where, int64_t count) const {
    if (value_out) convert_out(value_out, value_type, value_step, values, compute, count);
    convert_out(index_out, DType::Int64, index_step, reinterpret_cast<const char*>(where), DType::Int64, count);
  }

  void run() const {
    const LoopNest& kept = geometry.kept;
    if (kept.numel == 0) return;
    bool by_columns = kept.dims > 0 && (kept.step[0] < step || n < 16);
    if (by_columns) run_columns();
    else run_rows();
  }

  void run_rows() const {
    int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1));
    parallel_for(0, geometry.kept.numel, grain, [&](int64_t begin, int64_t end) {
      std::vector<char> buffer;
      if (!direct(step, n)) buffer.resize(n * item_size(compute));
      LoopPosition position(geometry.kept);
      position.reach(begin);
      for (int64_t i = begin; i < end; ++i, position.next()) {
        const char* in = geometry.in + position.offset;
        if (!direct(step, n)) {
          convert(buffer.data(), compute, in, from, step, n);
          in = buffer.data();
        }
        alignas(8) char value[8];
        int64_t where = UMBRA_VECTOR(find_extreme)(value, in, n, compute, largest);
        write(geometry.out[0] ? geometry.out[0] + position.out_offset[0] : nullptr,
              geometry.out[1] + position.out_offset[1], item_size(value_type), 8, value, &where, 1);
      }
    });
  }

  void run_columns() const {
    const LoopNest& kept = geometry.kept;
    int64_t columns = kept.size[0], blocks = (columns + kColumns - 1) / kColumns;
    int64_t tasks = kept.numel / columns * blocks;
    parallel_for(
        0, tasks, std::max<int64_t>(1, kGrain / (n * std::min(columns, kColumns))), [&](int64_t begin, int64_t end) {
          alignas(64) char best[kColumns * 8], buffer[kColumns * 8];
          int64_t where[kColumns];
          LoopPosition position(kept, 1);
          for (int64_t task = begin; task < end; ++task) {
            position.reach(task / blocks);
            int64_t column = task % blocks * kColumns, count = std::min(kColumns, columns - column);
            const char* in = geometry.in + position.offset + column * kept.step[0];
            convert(best, compute, in, from, kept.step[0], count);
            std::fill_n(where, count, 0);
            for (int64_t r = 1; r < n; ++r) {
              const char* row = in + r * step;
              if (!direct(kept.step[0], count)) {
                convert(buffer, compute, row, from, kept.step[0], count);
                row = buffer;
              }
              UMBRA_VECTOR(update_extremes)(best, where, row, r, count, compute, largest);
            }
            auto out = [&](int k) { return geometry.out[k] + position.out_offset[k] + column * kept.out_step[k][0]; };
            write(geometry.out[0] ? out(0) : nullptr, out(1), kept.out_step[0][0], kept.out_step[1][0], best, where,
                  count);
          }
        });
  }
};

void arg_extreme(const Tensor& out, const Tensor& self, std::optional<int64_t> dim, bool largest, const char* name) {
  if (dim && self.dim() > 0 && self.size(*dim) == 1 && !self.is_complex()) return fill(out, 0);
  if (dim) return ArgReduction({}, out, self, *dim, largest, name).run();
  Tensor whole = contiguous(self);
  int64_t numel = whole.numel(), one = 1;
  Tensor flat = alias_tensor(whole, as_sym({&numel, 1}), as_sym({&one, 1}), whole.sym_storage_offset());
  ArgReduction({}, out, flat, 0, largest, name).run();
}

}  // namespace

void argmax(const Tensor& out, const Tensor& self, std::optional<int64_t> dim) {
  arg_extreme(out, self, dim, true, "argmax_cpu");
}
void argmin(const Tensor& out, const Tensor& self, std::optional<int64_t> dim) {
  arg_extreme(out, self, dim, false, "argmin_cpu");
}
void max_with_index(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  ArgReduction(values, indices, self, dim, true, "max_cpu").run();
}
void min_with_index(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  ArgReduction(values, indices, self, dim, false, "min_cpu").run();
}

}  // namespace umbra::kernels
