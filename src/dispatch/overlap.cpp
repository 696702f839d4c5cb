// Whether two tensors that lie in one storage may share elements.
#include <algorithm>
#include <optional>

#include "umbra/dispatch/writes.h"

namespace umbra {

namespace {

using Run = std::pair<int64_t, int64_t>;  // bytes of a storage, the second one behind the last

/// The runs of bytes that a tensor lies on, in order; nothing where symbols decide or there are too many to look at.
std::optional<std::vector<Run>> runs_of(const Tensor& t) {
  constexpr size_t kMany = 1 << 16;
  auto item = static_cast<int64_t>(t.item_size());
  if (t.is_symbolic() || t.sym_storage_offset().is_symbolic()) return std::nullopt;
  std::vector<Run> runs;
  if (t.sym_numel() == 0) return runs;
  runs.emplace_back(t.sym_storage_offset().value() * item, (t.sym_storage_offset().value() + 1) * item);
  std::vector<std::pair<int64_t, int64_t>> dims;  // strides in bytes, and sizes
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.sym_sizes()[d] != 1 && t.sym_strides()[d] != 0)
      dims.emplace_back(t.sym_strides()[d].value() * item, t.sym_sizes()[d].value());
  std::ranges::sort(dims);
  for (auto [stride, size] : dims) {
    if (runs.size() == 1 && stride == runs[0].second - runs[0].first) {
      runs[0].second = runs[0].first + stride * size;
      continue;
    }
    if (runs.size() > kMany / static_cast<size_t>(size)) return std::nullopt;
    size_t count = runs.size();
    for (int64_t i = 1; i < size; ++i)
      for (size_t k = 0; k < count; ++k) runs.emplace_back(runs[k].first + i * stride, runs[k].second + i * stride);
  }
  std::ranges::sort(runs);
  return runs;
}

/// Whether the first tensor ends before the second one starts, whatever the symbols in their sizes stand for.
bool ends_before(const Tensor& a, const Tensor& b) {
  SymInt end = a.sym_storage_offset() + SymInt(1);
  for (int64_t d = 0; d < a.dim(); ++d) end = end + (a.sym_sizes()[d] - SymInt(1)) * a.sym_strides()[d];
  return sym_le(end, b.sym_storage_offset()).known_true();
}

}  // namespace

bool may_share_elements(const Tensor& a, const Tensor& b) {
  if (!(a.storage() == b.storage())) return false;
  std::optional<std::vector<Run>> of_a = runs_of(a), of_b = runs_of(b);
  if (!of_a || !of_b) return !ends_before(a, b) && !ends_before(b, a);
  for (auto x = of_a->begin(), y = of_b->begin(); x != of_a->end() && y != of_b->end();) {
    if (x->second <= y->first) ++x;
    else if (y->second <= x->first) ++y;
    else return true;
  }
  return false;
}

}  // namespace umbra
