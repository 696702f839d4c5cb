#include "kernels/pointwise.h"

#include "kernels/convert.h"
#include "kernels/loop.h"

namespace umbra::kernels {

namespace {

constexpr int kMaxInputs = 3;
constexpr int64_t kChunkBytes = 8192;  // of each operand: all of them fit the first-level cache

const PointwiseEntry& entry_for(const PointwiseTable& table, DType dtype) {
  const PointwiseEntry& entry = table.entries[static_cast<int>(dtype)];
  if (!entry.loop) unsupported_dtype(table.name, dtype);
  return entry;
}

/// How an operand gets from the tensor to the loop, or from the loop to the tensor.
struct Operand {
  DType stored, wanted;
  int64_t item;
};

struct Run {
  PointwiseLoop loop;
  const void* functor;
  int operands;
  int64_t chunk_size;
  Operand operand[kMaxInputs + 1];

  void operator()(char** data, const int64_t* strides, int64_t n) const {
    bool direct = true;
    for (int k = 0; k < operands; ++k) direct &= as_is(k, strides[k], n);
    if (direct) return loop(functor, data, n);
    through_buffers(data, strides, n);
  }

  /// Whether the loop can work on the operand's own memory.
  bool as_is(int k, int64_t stride, int64_t n) const {
    return operand[k].stored == operand[k].wanted && (stride == operand[k].item || n == 1);
  }

  /// Piece by piece: inputs are made contiguous and of the loop's type, results go the other way.
  [[gnu::noinline]] void through_buffers(char** data, const int64_t* strides, int64_t n) const {
    alignas(64) char buffers[kMaxInputs + 1][kChunkBytes];
    char* chunk[kMaxInputs + 1];
    bool own[kMaxInputs + 1];
    for (int k = 0; k < operands; ++k) {
      own[k] = as_is(k, strides[k], n);
      chunk[k] = own[k] ? data[k] : buffers[k];
      // A broadcast number is spread once.
      if (k > 0 && strides[k] == 0 && !own[k])
        convert(chunk[k], operand[k].wanted, data[k], operand[k].stored, 0, std::min(n, chunk_size));
    }
    for (int64_t at = 0; at < n; at += chunk_size) {
      int64_t count = std::min(n - at, chunk_size);
      for (int k = 0; k < operands; ++k) {
        if (own[k])
          chunk[k] = data[k] + at * operand[k].item;
        else if (k > 0 && strides[k] != 0)
          convert(chunk[k], operand[k].wanted, data[k] + at * strides[k], operand[k].stored, strides[k], count);
      }
      loop(functor, chunk, count);
      if (!own[0])
        convert_out(data[0] + at * strides[0], operand[0].stored, strides[0], chunk[0], operand[0].wanted, count);
    }
  }
};

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
  const PointwiseEntry& entry = entry_for(table, compute);
  Run run{entry.loop,
          functor,
          table.arity + 1,
          kChunkBytes / std::max(item_size(entry.compute), item_size(entry.computed)),
          {}};
  run.operand[0] = {out.dtype(), entry.computed, out.item_size()};
  for (int k = 1; k < run.operands; ++k) {
    const Tensor& input = *inputs[k - 1];
    DType wanted = table.masks >> (k - 1) & 1 ? DType::Bool : entry.compute;
    run.operand[k] = {input.dtype(), wanted, input.item_size()};
  }
  LoopGeometry(out, inputs).for_each_inner(run);
}

}  // namespace umbra::kernels
