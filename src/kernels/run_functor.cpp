#include "kernels/run_functor.h"

#include <cstddef>
#include <vector>

#include "kernels/convert.h"
#include "kernels/loop.h"

namespace umbra::kernels {

namespace {

constexpr int kMaxInputs = 3;
constexpr int64_t kChunkBytes = 8192;  // of each operand: all of them fit the first-level cache

const PointwiseEntry& entry_for(const PointwiseTable& table, DType dtype) {
  const PointwiseEntry& entry = table.entries[static_cast<int>(dtype)];
  if (!entry.loops.all) unsupported_dtype(table.name, dtype);
  return entry;
}

/// How an operand gets from the tensor to the loop, or from the loop to the tensor.
struct Operand {
  DType stored, wanted;
  DType rounded;  // what it passes through on its way to the loop: a narrow type, or `stored`
  int64_t item;
  bool is_stored_as(DType type) const { return stored == type && rounded == type; }
};

struct Run {
  const PointwiseEntry& entry;
  DType narrow;  // what the narrow loops read and write
  const void* functor;
  int operands;
  Operand operand[kMaxInputs + 1];

  PointwiseLoop whole = nullptr;  // what takes a run as it is; null where it goes through buffers
  int number = 0;                 // an input that is one number in each run, and has to be converted

  /// Settles how runs with these steps are done.
  void settle(const LoopGeometry& geometry) {
    whole = nullptr;
    number = 0;
    if (!settle(geometry, entry.loops, entry.compute) && entry.narrow.all) settle(geometry, entry.narrow, narrow);
  }
  bool settle(const LoopGeometry& geometry, const PointwiseLoops& loops, DType stored) {
    auto direct = [&](int k) {
      const Operand& o = operand[k];
      return o.is_stored_as(o.wanted == entry.compute ? stored : o.wanted) &&
             (geometry.stride(0, k) == o.item || geometry.size(0) == 1);
    };
    auto is_number = [&](int k) { return geometry.stride(0, k) == 0; };
    bool all = true;
    for (int k = 0; k < operands; ++k) all &= direct(k);
    if (all) whole = loops.all;
    if (whole || operands != 3 || !direct(0)) return whole;
    int other = direct(2) && is_number(1) ? 1 : direct(1) && is_number(2) ? 2 : 0;
    if (other == 0) return false;
    whole = loops.with_number[other - 1];
    if (whole && !operand[other].is_stored_as(entry.compute)) number = other;
    return whole;
  }

  void operator()(char** data, const int64_t* strides, int64_t n) const {
    if (!whole) return through_buffers(data, strides, n);
    if (number == 0) return whole(functor, data, n);
    alignas(16) char value[16];
    load(number, value, data[number], 0, 1);
    data[number] = value;
    whole(functor, data, n);
  }

  /// Whether the loop can work on the operand's own memory.
  bool as_is(int k, int64_t stride, int64_t n) const {
    return operand[k].is_stored_as(operand[k].wanted) && (stride == operand[k].item || n == 1);
  }

  /// Piece by piece: inputs are made contiguous and of the loop's type, results go the other way.
  [[gnu::noinline]] void through_buffers(char** data, const int64_t* strides, int64_t n) const {
    alignas(64) char buffers[kMaxInputs + 1][kChunkBytes];
    const int64_t chunk_size = kChunkBytes / std::max(item_size(entry.compute), item_size(entry.computed));
    char* chunk[kMaxInputs + 1];
    bool own[kMaxInputs + 1];
    for (int k = 0; k < operands; ++k) {
      own[k] = as_is(k, strides[k], n);
      chunk[k] = own[k] ? data[k] : buffers[k];
      // A broadcast number is spread once.
      if (k > 0 && strides[k] == 0 && !own[k]) load(k, chunk[k], data[k], 0, std::min(n, chunk_size));
    }
    for (int64_t at = 0; at < n; at += chunk_size) {
      int64_t count = std::min(n - at, chunk_size);
      for (int k = 0; k < operands; ++k) {
        if (own[k]) chunk[k] = data[k] + at * operand[k].item;
        else if (k > 0 && strides[k] != 0) load(k, chunk[k], data[k] + at * strides[k], strides[k], count);
      }
      entry.loops.all(functor, chunk, count);
      if (!own[0])
        convert_out(data[0] + at * strides[0], operand[0].stored, strides[0], chunk[0], operand[0].wanted, count);
    }
  }

  void load(int k, char* to, const char* from, int64_t stride, int64_t count) const {
    const Operand& o = operand[k];
    if (o.rounded == o.stored) return convert(to, o.wanted, from, o.stored, stride, count);
    alignas(64) char narrow[kChunkBytes];
    convert(narrow, o.rounded, from, o.stored, stride, count);
    convert(to, o.wanted, narrow, o.rounded, item_size(o.rounded), count);
  }
};

constexpr int64_t kLargestPlane = 8192, kFewPlanes = 4;

/// As many bytes, and those to the next place where any element may begin.
size_t aligned(int64_t bytes) {
  constexpr size_t kAlignment = alignof(std::max_align_t);
  return (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

/// The rows of a plane. Where there are rows alone, so many of them that there are several planes and none is cut
/// short; 1 where there is no such number.
int64_t rows_of_plane(const LoopGeometry& geometry) {
  int64_t count = geometry.size(1);
  if (geometry.dims() > 2) return count;
  int64_t rows = std::min(count / kFewPlanes, kLargestPlane / (2 * geometry.size(0)));
  while (rows > 1 && count % rows != 0) --rows;
  return rows;
}

/// Where rows are short, what is the same in every plane (a row or a column that is broadcast) is spread over a plane
/// once, so that a plane becomes one run. Returns the memory of what was spread.
std::vector<char> spread_over_planes(LoopGeometry& geometry, const Run& run) {
  const int64_t short_row = run.whole ? 128 : 1024;  // what goes through buffers costs more for each run
  if (geometry.dims() < 2 || geometry.size(0) >= short_row) return {};
  int64_t rows = rows_of_plane(geometry), plane = geometry.size(0) * rows;
  if (rows < 2 || plane > kLargestPlane || geometry.numel() / plane < kFewPlanes) return {};
  size_t bytes = 0;
  for (int k = 0; k < run.operands; ++k) {
    if (geometry.inner_joins(k)) continue;
    bool same = k > 0;
    for (int d = geometry.dims() == 2 ? 1 : 2; d < geometry.dims(); ++d) same = same && geometry.stride(d, k) == 0;
    if (!same) return {};
    bytes += aligned(plane * run.operand[k].item);
  }
  if (bytes == 0) return {};
  if (geometry.dims() == 2) geometry.split_outer(rows);
  std::vector<char> memory(bytes);
  char* to = memory.data();
  for (int k = 1; k < run.operands; ++k) {
    if (geometry.inner_joins(k)) continue;
    int64_t item = run.operand[k].item, row = geometry.size(0) * item;
    for (int64_t i = 0; i < rows; ++i)
      copy_strided(to + i * row, item, geometry.data(k) + i * geometry.stride(1, k), geometry.stride(0, k), item,
                   geometry.size(0));
    geometry.replace_inner(k, to, item);
    to += aligned(rows * row);
  }
  geometry.coalesce();
  return memory;
}

/// The type that an input takes on before it is computed with: PyTorch brings all operands to the common type.
DType rounded_type(const PointwiseTable& table, size_t position, const Tensor& input, DType compute) {
  bool narrow = is_reduced_floating(compute) || compute == DType::Complex32 || is_float8(compute);
  bool exact = table.exact_numbers >> position & 1 && input.dim() == 0;
  return narrow && !exact && !(table.masks >> position & 1) ? compute : input.dtype();
}

/// Where numbers are taken exactly there is a kernel for them, which 8-bit floats lack even where tensors have theirs.
void check_number(const PointwiseTable& table, ArrayRef<const Tensor*> inputs, DType compute) {
  if (is_float8(compute) && table.exact_numbers >> 1 & 1 && inputs[1]->numel() == 1)
    unsupported_dtype((std::string(table.name) + "_reduced_float").c_str(), compute);
}

bool has_sizes(const TensorImpl& t, SymIntArrayRef sizes) {
  SymIntArrayRef own = t.sym_sizes();
  if (own.size() != sizes.size()) return false;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!own[d].same(sizes[d])) return false;
  return true;
}

/// The usual call, for which nothing has to be found out: operands of one shape, contiguous, as the loop reads and
/// writes them, and no more than one thread takes. False where it is another one.
bool run_at_once(const PointwiseTable& table, const PointwiseEntry& entry, const void* functor, const Tensor& out,
                 ArrayRef<const Tensor*> inputs, DType compute) {
  const PointwiseLoops& loops = compute == entry.compute ? entry.loops : entry.narrow;
  const TensorImpl& result = *out.impl();
  int64_t n = result.known_contiguous() ? result.sym_numel().value() : 0;
  if (n == 0 || n > kGrain || !loops.all) return false;
  if (result.dtype() != (entry.computed == entry.compute ? compute : entry.computed)) return false;
  char* data[kMaxInputs + 1];
  for (size_t k = 0; k < inputs.size(); ++k) {
    const TensorImpl& input = *inputs[k]->impl();
    DType wanted = table.masks >> k & 1 ? DType::Bool : compute;
    if (!input.known_contiguous() || input.dtype() != wanted || !has_sizes(input, result.sym_sizes())) return false;
    data[k + 1] = static_cast<char*>(inputs[k]->raw_data());
  }
  data[0] = static_cast<char*>(out.raw_data());
  loops.all(functor, data, n);
  return true;
}

}  // namespace

DType pointwise_result(const PointwiseTable& table, DType dtype) { return entry_for(table, dtype).result; }

void run_pointwise(const PointwiseTable& table, const void* functor, const Tensor& out, ArrayRef<const Tensor*> inputs,
                   DType compute) {
  check(static_cast<int>(inputs.size()) == table.arity, table.name, " takes ", table.arity, " inputs, but got ",
        inputs.size());
  if (compute == DType::Undefined) {
    size_t first = 0;
    while (table.masks >> first & 1 && first + 1 < inputs.size()) ++first;
    compute = inputs[first]->dtype();
  }
  check_number(table, inputs, compute);
  const PointwiseEntry& entry = entry_for(table, compute);
  if (run_at_once(table, entry, functor, out, inputs, compute)) return;
  Run run{entry, compute, functor, table.arity + 1, {}};
  run.operand[0] = {out.dtype(), entry.computed, out.dtype(), out.item_size()};
  for (int k = 1; k < run.operands; ++k) {
    const Tensor& input = *inputs[k - 1];
    DType wanted = table.masks >> (k - 1) & 1 ? DType::Bool : entry.compute;
    run.operand[k] = {input.dtype(), wanted, rounded_type(table, static_cast<size_t>(k - 1), input, compute),
                      input.item_size()};
  }
  LoopGeometry geometry(out, inputs);
  if (geometry.numel() == 0) {  // what the functor's numbers are refused for is said all the same
    char* nothing[kMaxInputs + 1] = {};
    return entry.loops.all(functor, nothing, 0);
  }
  run.settle(geometry);
  std::vector<char> spread = spread_over_planes(geometry, run);
  if (!spread.empty()) run.settle(geometry);
  geometry.for_each_inner(run);
}

}  // namespace umbra::kernels
