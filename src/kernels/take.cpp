#include "kernels/take.h"

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {

namespace {

/// Offsets of elements of a tensor seen as one row.
class FlatOffsets {
 public:
  explicit FlatOffsets(const Tensor& t)
      : shape_(t.sizes(), {t.strides()}), numel_(t.numel()), side_by_side_(t.is_contiguous()) {
    shape_.simplify();
  }
  int64_t operator()(int64_t position) const {
    int64_t place = position < 0 ? position + numel_ : position;
    if (static_cast<uint64_t>(place) >= static_cast<uint64_t>(numel_))
      fail<IndexError>("out of range: tried to access index ", position, " on a tensor of ", numel_, " elements.");
    if (side_by_side_) return place;
    int64_t offset = 0;
    for (size_t d = shape_.sizes.size(); d-- > 0;) {
      offset += place % shape_.sizes[d] * shape_.strides[0][d];
      place /= shape_.sizes[d];
    }
    return offset;
  }

 private:
  Strided<1> shape_;
  int64_t numel_;
  bool side_by_side_;
};

}  // namespace

void take(const Tensor& out, const Tensor& self, const Tensor& index) {
  if (index.numel() == 0) return;
  check_type<AllTypes>(self.dtype(), "take_cpu");
  FlatOffsets offset(self);
  Strided<2> walk(index.sizes(), {out.strides(), index.strides()});
  walk.simplify();
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* target = words<T>(out);
    const T* source = words<T>(self);
    const int64_t* positions = index.data<int64_t>();
    const bool in_order = out.is_contiguous() && index.is_contiguous();
    parallel_for(0, index.numel(), kGrain, [&](int64_t from, int64_t to) {
      if (in_order) {
        for (int64_t i = from; i < to; ++i) target[i] = source[offset(positions[i])];
        return;
      }
      Odometer<2> at(walk);
      at.seek(from);
      for (int64_t i = from; i < to; ++i, at.next()) target[at[0]] = source[offset(positions[at[1]])];
    });
  });
}

void put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  FlatOffsets offset(self);
  if (index.numel() == 0) return;
  check_type<AllTypes>(self.dtype(), "take_put_cpu");
  Tensor places = contiguous(index), values = contiguous(source);
  const int64_t* positions = places.data<int64_t>();
  auto each = [&](auto store) {
    for (int64_t i = 0, n = places.numel(); i < n; ++i) store(offset(positions[i]), i);
  };
  if (accumulate) {
    visit<AllTypes>(self.dtype(), "take_put_cpu", [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = self.data<T>();
      const T* from = values.data<T>();
      each([=](int64_t at, int64_t i) { to[at] = add_elements(to[at], from[i]); });
    });
    return;
  }
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = words<T>(self);
    const T* from = words<T>(values);
    each([=](int64_t at, int64_t i) { to[at] = from[i]; });
  });
}

}  // namespace umbra::kernels
