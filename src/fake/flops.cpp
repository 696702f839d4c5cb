// Floating-point operations by operator.
#include <functional>
#include <unordered_map>

#include "fake/counted.h"

namespace umbra {

namespace {

using Sizes = std::vector<int64_t>;

Sizes sizes_of(const Value& value) {
  Sizes out;
  if (value.is_tensor())
    for (SymInt s : value.tensor_ref().sym_sizes()) out.push_back(s.has_hint() ? s.hint() : 0);
  return out;
}

int64_t product(const Sizes& sizes, size_t from = 0) {
  int64_t out = 1;
  for (size_t i = from; i < sizes.size(); ++i) out *= sizes[i];
  return out;
}

int64_t matrices(const Value& a, const Value& b) {
  Sizes left = sizes_of(a), right = sizes_of(b);
  return left.size() < 2 || right.empty() ? 0 : 2 * product(left) * right.back();
}

/// `shape`: of the result, or of the input of a transposed convolution.
int64_t convolution(const Sizes& input, const Sizes& weight, const Sizes& output, bool transposed) {
  if (input.size() < 2 || weight.size() < 2) return 0;
  return 2 * input[0] * product(transposed ? input : output, 2) * product(weight);
}

Sizes swapped(Sizes sizes) {
  if (sizes.size() > 1) std::swap(sizes[0], sizes[1]);
  return sizes;
}

// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, ..., output_mask)
int64_t convolution_backward(const Value* a) {
  Sizes grad = sizes_of(a[0]), input = sizes_of(a[1]), weight = sizes_of(a[2]);
  bool transposed = a[7].to_bool();
  std::vector<bool> mask = a[10].bool_list();
  int64_t flops = 0;
  if (mask[0]) flops += convolution(grad, weight, input, !transposed);
  if (mask[1])
    flops += transposed ? convolution(swapped(grad), swapped(input), swapped(weight), false)
                        : convolution(swapped(input), swapped(grad), swapped(weight), false);
  return flops;
}

struct Heads {
  int64_t batches, queries, keys, width, value_width;
};

Heads heads(const Value& query, const Value& key, const Value& value) {
  Sizes q = sizes_of(query), k = sizes_of(key), v = sizes_of(value);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) return {};
  return {q[0] * q[1], q[2], k[2], q[3], v[3]};
}

int64_t attention(const Heads& h) { return 2 * h.batches * h.queries * h.keys * (h.width + h.value_width); }

// The scores are computed again; then the gradients of scores, value, query and key.
int64_t attention_backward(const Heads& h) {
  return 2 * h.batches * h.queries * h.keys * (3 * h.width + 2 * h.value_width);
}

using Formula = std::function<int64_t(const Value* arguments, const Value* results)>;

Formula attention_of(size_t first, bool backward) {
  return [=](const Value* a, const Value*) {
    Heads h = heads(a[first], a[first + 1], a[first + 2]);
    return backward ? attention_backward(h) : attention(h);
  };
}

const std::unordered_map<std::string, Formula>& formulas() {
  static const std::unordered_map<std::string, Formula> table = [] {
    std::unordered_map<std::string, Formula> t;
    t["mm"] = t["bmm"] = [](const Value* a, const Value*) { return matrices(a[0], a[1]); };
    t["addmm"] = t["baddbmm"] = [](const Value* a, const Value*) { return matrices(a[1], a[2]); };
    t["_scaled_mm"] = t["mm"];
    t["convolution"] = t["_convolution"] = t["convolution_overrideable"] = [](const Value* a, const Value* out) {
      return convolution(sizes_of(a[0]), sizes_of(a[1]), sizes_of(out[0]), a[6].to_bool());
    };
    t["convolution_backward"] = [](const Value* a, const Value*) { return convolution_backward(a); };
    for (const char* kind : {"efficient_attention", "flash_attention", "cudnn_attention", "flash_attention_for_cpu"}) {
      std::string name = std::string("_scaled_dot_product_") + kind;
      t[name] = attention_of(0, false);
      t[name + "_backward"] = attention_of(1, true);
    }
    return t;
  }();
  return table;
}

}  // namespace

namespace {
const Formula* formula_of(const Operator& op) {
  static const std::unordered_map<const Operator*, const Formula*> known = [] {
    std::unordered_map<const Operator*, const Formula*> out;
    for (const Operator* op : all_operators())
      if (op->schema().space == "aten")
        if (auto found = formulas().find(op->schema().name); found != formulas().end()) out[op] = &found->second;
    return out;
  }();
  auto found = known.find(&op);
  return found == known.end() ? nullptr : found->second;
}
}  // namespace

bool has_flops(const Operator& op) { return formula_of(op); }

int64_t count_flops(const Operator& op, const Value* arguments, const Value* results) {
  const Formula* formula = formula_of(op);
  return formula ? (*formula)(arguments, results) : 0;
}

}  // namespace umbra
