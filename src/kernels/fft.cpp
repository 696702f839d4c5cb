#include "kernels/fft.h"

#include <complex>
#include <optional>

#include "kernels/copy.h"
#include "kernels/loop.h"
#include "kernels/vector/fft.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

using Kind = FftPass::Kind;

constexpr int64_t kLanes = 16;                 // transforms that pocketfft takes side by side, at most
constexpr int64_t kFourierGrain = kGrain / 8;  // an element of a transform costs as much as eight of a sum

/// The rows of a pass, dense on both sides: runs of rows that are evenly apart, and the dimensions that count the runs.
struct Rows {
  int64_t count = 1, from_bytes = 0, to_bytes = 0;
  size_t outer = 0;  // dimensions, the first ones
};

/// None where the pass is another.
std::optional<Rows> dense_rows(const FftPass& pass) {
  size_t last = pass.sizes.size() - 1;
  int64_t real = pass.wide ? 8 : 4;
  int64_t from_item = pass.kind == Kind::RealToComplex ? real : 2 * real;
  int64_t to_item = pass.kind == Kind::ComplexToReal ? real : 2 * real;
  if (pass.axis != last || pass.from_strides[last] != from_item || pass.to_strides[last] != to_item) return {};
  Rows rows;
  for (rows.outer = last; rows.outer > 0; --rows.outer) {
    size_t d = rows.outer - 1;
    if (pass.sizes[d] == 1) continue;
    bool even =
        pass.from_strides[d] == rows.count * rows.from_bytes && pass.to_strides[d] == rows.count * rows.to_bytes;
    if (rows.count > 1 && !even) break;
    if (rows.count == 1) rows.from_bytes = pass.from_strides[d], rows.to_bytes = pass.to_strides[d];
    rows.count *= static_cast<int64_t>(pass.sizes[d]);
  }
  bool direction = pass.kind == Kind::ComplexToComplex || pass.forward == (pass.kind == Kind::RealToComplex);
  return direction && pass.sizes[last] > 1 ? std::optional(rows) : std::nullopt;
}

/// The pass over the run of this number.
FftPass run_of(const FftPass& pass, const Rows& rows, int64_t number) {
  FftPass run = pass;
  run.axis = 1;
  run.sizes = {static_cast<size_t>(rows.count), pass.sizes.back()};
  run.from_strides = {rows.from_bytes, pass.from_strides.back()};
  run.to_strides = {rows.to_bytes, pass.to_strides.back()};
  for (size_t d = rows.outer; d-- > 0;) {
    int64_t size = static_cast<int64_t>(pass.sizes[d]), index = number % size;
    run.from += index * pass.from_strides[d];
    run.to += index * pass.to_strides[d];
    number /= size;
  }
  return run;
}

/// The rows of a run that fill no registers.
void run_rest(const FftPass& run, const Rows& rows, int64_t lanes, int64_t rest) {
  FftPass part = run;
  bool in_place = run.from == run.to;
  int64_t first = rows.count - (in_place ? rest : lanes);
  part.from += first * rows.from_bytes;
  part.to += first * rows.to_bytes;
  part.sizes[0] = static_cast<size_t>(rest);
  if (in_place) UMBRA_VECTOR(fft_pass)(part);
  else UMBRA_VECTOR(fft_rows)(part, part.from, rows.from_bytes, part.to, rows.to_bytes, 1);  // some once more
}

void run_rows(const FftPass& pass, const Rows& rows) {
  int64_t lanes = UMBRA_VECTOR(fft_lanes)(pass.wide), groups = rows.count / lanes, rest = rows.count % lanes, runs = 1;
  for (size_t d = 0; d < rows.outer; ++d) runs *= static_cast<int64_t>(pass.sizes[d]);
  int64_t grain = 1 + kFourierGrain / (lanes * static_cast<int64_t>(pass.sizes.back()));
  parallel_for(0, runs * groups, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      FftPass run = run_of(pass, rows, begin / groups);
      int64_t first = begin % groups, count = std::min(groups - first, end - begin);
      UMBRA_VECTOR(fft_rows)
      (run, run.from + first * lanes * rows.from_bytes, rows.from_bytes, run.to + first * lanes * rows.to_bytes,
       rows.to_bytes, count);
      begin += count;
      if (rest > 0 && first + count == groups) run_rest(run, rows, lanes, rest);
    }
  });
}

/// Each by itself.
void run_long_rows(const FftPass& pass, const Rows& rows) {
  int64_t runs = 1;
  for (size_t d = 0; d < rows.outer; ++d) runs *= static_cast<int64_t>(pass.sizes[d]);
  int64_t grain = 1 + kFourierGrain / static_cast<int64_t>(pass.sizes.back());
  parallel_for(0, runs * rows.count, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      FftPass run = run_of(pass, rows, begin / rows.count);
      int64_t first = begin % rows.count, count = std::min(rows.count - first, end - begin);
      UMBRA_VECTOR(fft_long_rows)
      (run, run.from + first * rows.from_bytes, rows.from_bytes, run.to + first * rows.to_bytes, rows.to_bytes, count);
      begin += count;
    }
  });
}

/// One pass, shared out to the threads along the longest of the other dimensions.
void run_pass(const FftPass& pass) {
  size_t split = pass.sizes.size();
  int64_t total = 1;
  for (size_t d = 0; d < pass.sizes.size(); ++d) {
    total *= static_cast<int64_t>(pass.sizes[d]);
    if (d != pass.axis && (split == pass.sizes.size() || pass.sizes[d] > pass.sizes[split])) split = d;
  }
  if (total == 0) return;
  if (std::optional<Rows> rows = dense_rows(pass)) {
    if (UMBRA_VECTOR(fft_takes_row)(pass, rows->count)) return run_long_rows(pass, *rows);
    if (rows->count >= UMBRA_VECTOR(fft_lanes)(pass.wide)) return run_rows(pass, *rows);
  }
  if (split == pass.sizes.size()) return UMBRA_VECTOR(fft_pass)(pass);
  // Threads get whole vectors of transforms.
  int64_t count = static_cast<int64_t>(pass.sizes[split]), groups = (count + kLanes - 1) / kLanes;
  parallel_for(0, groups, 1 + kFourierGrain / std::max<int64_t>(1, kLanes * (total / count)),
               [&](int64_t begin, int64_t end) {
                 if (begin == 0 && end == groups) return UMBRA_VECTOR(fft_pass)(pass);
                 int64_t from = begin * kLanes, to = std::min(end * kLanes, count);
                 FftPass part = pass;
                 part.sizes[split] = static_cast<size_t>(to - from);
                 part.from += from * pass.from_strides[split];
                 part.to += from * pass.to_strides[split];
                 UMBRA_VECTOR(fft_pass)(part);
               });
}

/// Between neighbours along a dimension. Where there is one alone, its stride may be any number, whose product wraps
/// around and is not used.
int64_t bytes_between(const Tensor& t, int64_t dim) {
  return static_cast<int64_t>(static_cast<uint64_t>(t.stride(dim)) * static_cast<uint64_t>(t.item_size()));
}

void transform(Kind kind, const Tensor& out, const Tensor& in, int64_t dim, bool forward, double scale) {
  FftPass pass{kind,
               real_type(in.dtype()) == DType::Float64,
               forward,
               scale,
               {},
               {},
               {},
               static_cast<size_t>(dim),
               static_cast<const char*>(in.raw_data()),
               static_cast<char*>(out.raw_data())};
  const Tensor& shape = kind == Kind::ComplexToReal ? out : in;
  for (int64_t d = 0; d < in.dim(); ++d) {
    pass.sizes.push_back(static_cast<size_t>(shape.size(d)));
    pass.from_strides.push_back(bytes_between(in, d));
    pass.to_strides.push_back(bytes_between(out, d));
  }
  run_pass(pass);
}

Tensor part_of(const Tensor& t, int64_t dim, int64_t start, int64_t size) {
  SymShape sizes(t.sym_sizes());
  sizes[dim] = size;
  return alias_tensor(t, sizes, t.sym_strides(), t.storage_offset() + start * t.stride(dim));
}

/// The second half of a transform of real numbers along a dimension: the conjugate of the first, backwards.
template <class T> void mirror(const Tensor& out, int64_t dim) {
  int64_t n = out.size(dim), step = out.stride(dim);
  Tensor lines = part_of(out, dim, 0, 1);
  LoopGeometry(lines).for_each_inner(
      [&](char* const* data, const int64_t* strides, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          T* line = reinterpret_cast<T*>(data[0] + i * strides[0]);
          for (int64_t k = n / 2 + 1; k < n; ++k) line[k * step] = std::conj(line[(n - k) * step]);
        }
      },
      1 + kGrain / std::max<int64_t>(n, 1));
}

}  // namespace

void fft_c2c(const Tensor& out, const Tensor& self, IntArrayRef dims, bool forward, double scale) {
  if (dims.empty()) return copy(out, self);
  Tensor from = self;
  for (size_t i = dims.size(); i-- > 0;) {
    transform(Kind::ComplexToComplex, out, from, dims[i], forward, i + 1 == dims.size() ? scale : 1.0);
    from = out;
  }
}

void fft_r2c(const Tensor& out, const Tensor& self, IntArrayRef dims, bool onesided, double scale) {
  int64_t last = dims.back(), n = self.size(last);
  Tensor half = onesided ? out : part_of(out, last, 0, n / 2 + 1);
  transform(Kind::RealToComplex, half, self, last, true, scale);
  if (!onesided) visit<Complex>(out.dtype(), "fft", [&](auto tag) { mirror<typename decltype(tag)::type>(out, last); });
  if (dims.size() > 1) fft_c2c(out, out, dims.drop_back(1), true, 1.0);
}

void fft_c2r(const Tensor& out, const Tensor& self, IntArrayRef dims, double scale) {
  Tensor half = self;
  if (dims.size() > 1) {
    half = scratch(self.sizes(), self.dtype());
    fft_c2c(half, self, dims.drop_back(1), false, 1.0);
  }
  transform(Kind::ComplexToReal, out, half, dims.back(), false, scale);
}

}  // namespace umbra::kernels
