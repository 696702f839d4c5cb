#include "kernels/unique.h"

#include <algorithm>
#include <numeric>

#include "kernels/copy.h"
#include "kernels/sort_keys.h"
#include "kernels/visit.h"

namespace umbra::kernels {

namespace {

/// Groups of neighbours in the order of `places`, as `equal` has it.
template <class Equal> Groups group_neighbours(const std::vector<int64_t>& places, const Equal& equal) {
  Groups out;
  out.group.resize(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    if (i == 0 || !equal(places[i - 1], places[i])) {
      out.firsts.push_back(places[i]);
      out.counts.push_back(0);
    }
    ++out.counts.back();
    out.group[places[i]] = static_cast<int64_t>(out.counts.size()) - 1;
  }
  return out;
}

/// Brings places into the order of what lies there, NaN behind all numbers.
template <class C, class Value> void sort_places(std::vector<int64_t>& places, const Value& value) {
  auto n = static_cast<int64_t>(places.size());
  with_key_type<C>(n, [&]<class Key>(const Key*) {
    std::vector<Key> keys(2 * places.size());
    for (int64_t i = 0; i < n; ++i) keys[static_cast<size_t>(i)] = Key(order_key(value(i)), i);
    sort_keys(keys.data(), keys.data() + n, n);
    for (size_t i = 0; i < places.size(); ++i) places[i] = keys[i].place();
  });
}

/// Integers that lie close together, sorted by counting; false where they do not.
template <class T> bool group_by_counting(Groups& out, const T* x, int64_t n, bool asks_group) {
  constexpr int64_t kFew = 2048;  // counts are cheaper than an order of a few elements, too
  if (n == 0) return false;
  auto [least, largest] = std::minmax_element(x, x + n);
  const auto low = static_cast<uint64_t>(*least), span = static_cast<uint64_t>(*largest) - low;
  if (span >= static_cast<uint64_t>(std::max(n, kFew))) return false;
  auto digit = [&](int64_t i) { return static_cast<size_t>(static_cast<uint64_t>(x[i]) - low); };
  std::vector<int64_t> counts(span + 1, 0), firsts(span + 1), group(span + 1);
  for (int64_t i = n; i-- > 0;) {
    ++counts[digit(i)];
    firsts[digit(i)] = i;
  }
  // Written for every digit, and kept where there is one: whether there is cannot be foreseen.
  size_t most = std::min(span + 1, static_cast<uint64_t>(n)), found = 0;
  out.firsts.resize(most + 1);
  out.counts.resize(most + 1);
  for (size_t k = 0; k <= span; ++k) {
    group[k] = static_cast<int64_t>(found);
    out.firsts[found] = firsts[k];
    out.counts[found] = counts[k];
    found += counts[k] != 0;
  }
  out.firsts.resize(found);
  out.counts.resize(found);
  if (!asks_group) return true;
  out.group.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) out.group[static_cast<size_t>(i)] = group[digit(i)];
  return true;
}

}  // namespace

Groups group_elements(const Tensor& self, bool sorted, bool asks_group) {
  Tensor row = contiguous(self);
  Groups out;
  visit<detail::Join<RealOrBool, WideUnsigned>>(self.dtype(), "unique", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = self.numel() == 0 ? nullptr : row.data<T>();
    if constexpr (std::is_integral_v<T>)
      if (sorted && group_by_counting(out, x, self.numel(), asks_group)) return;
    auto value = [x](int64_t i) { return static_cast<Compute<T>>(x[i]); };
    std::vector<int64_t> places(self.numel());
    std::iota(places.begin(), places.end(), 0);
    if (sorted) sort_places<Compute<T>>(places, value);
    out = group_neighbours(places, [&](int64_t a, int64_t b) { return value(a) == value(b); });
  });
  return out;
}

Groups group_slices(const Tensor& self, int64_t dim, bool sorted) {
  int64_t count = self.sizes()[dim], length = count == 0 ? 0 : self.numel() / count;
  Tensor rows = scratch(std::vector<int64_t>{count, length}, self.dtype());
  if (rows.numel() > 0) {
    // The dimension in front: a slice is a row.
    SymShape sizes{SymInt(count)}, strides{self.sym_strides()[dim]};
    for (int64_t d = 0; d < self.dim(); ++d) {
      if (d == dim) continue;
      sizes.push_back(self.sym_sizes()[d]);
      strides.push_back(self.sym_strides()[d]);
    }
    copy(alias_tensor(rows, sizes, contiguous_strides(sizes), 0),
         alias_tensor(self, sizes, strides, self.sym_storage_offset()));
  }
  std::vector<int64_t> places(count);
  std::iota(places.begin(), places.end(), 0);
  Groups out;
  visit<detail::Join<RealOrBool, WideUnsigned>>(self.dtype(), "unique_dim", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = rows.data<T>();
    auto value = [x, length](int64_t row, int64_t i) { return static_cast<Compute<T>>(x[row * length + i]); };
    if (sorted)
      std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
        for (int64_t i = 0; i < length; ++i) {
          if (value(a, i) < value(b, i)) return true;
          if (value(a, i) > value(b, i)) return false;
        }
        return false;
      });
    out = group_neighbours(places, [&](int64_t a, int64_t b) {
      for (int64_t i = 0; i < length; ++i)
        if (!(value(a, i) == value(b, i))) return false;
      return true;
    });
  });
  return out;
}

}  // namespace umbra::kernels
