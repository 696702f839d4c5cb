#include "kernels/sort.h"

#include <gmock/gmock.h>

#include <limits>
#include <numeric>

#include "kernels/kernel_tensors.h"
#include "kernels/order_statistics.h"

namespace umbra::kernels {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

struct Sorted {
  Tensor values, places;
};
Sorted sorted(const Tensor& line, int64_t wanted, bool descending) {
  Sorted out{empty_tensor({wanted}, line.dtype()), empty_tensor({wanted}, DType::Int64)};
  sort(out.values, out.places, line, 0, descending);
  return out;
}

// Few values, so that many are equal, and all kinds of zero and no number among them.
template <class T> std::vector<T> mixed(int64_t n) {
  std::vector<T> line;
  uint64_t state = 1;
  for (int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    line.push_back(static_cast<T>(static_cast<int64_t>(state >> 33) % 1000 - 500));
    if constexpr (std::is_floating_point_v<T>) {
      if (i % 17 == 3) line.back() = i % 2 ? T(-0.0) : T(0.0);
      if (i % 101 == 7)
        line.back() = i % 2 ? -std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::quiet_NaN();
    } else if (i % 97 == 5) {
      line.back() = i % 2 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    }
  }
  return line;
}

template <class T> std::vector<int64_t> expected_places(const std::vector<T>& line, bool descending) {
  auto before = [](T a, T b) { return a < b || (a == a && b != b); };
  std::vector<int64_t> places(line.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
    return descending ? before(line[b], line[a]) : before(line[a], line[b]);
  });
  return places;
}

template <class T> struct Sort : testing::Test {};
using SortedTypes = testing::Types<float, double, int64_t, int32_t, int16_t, uint8_t>;
TYPED_TEST_SUITE(Sort, SortedTypes);

// Short lines are sorted by comparisons, longer ones by digits of one width or another.
TYPED_TEST(Sort, EqualElementsKeepTheirOrderAtEveryLength) {
  for (int64_t n : {1, 2, 90, 200, 1000, 20000}) {
    std::vector<TypeParam> line = mixed<TypeParam>(n);
    for (bool descending : {false, true}) {
      Sorted out = sorted(row_of(line), n, descending);
      EXPECT_THAT(values<int64_t>(out.places), ElementsAreArray(expected_places(line, descending))) << n;
    }
  }
}

TYPED_TEST(Sort, TheFirstFewAreThoseOfTheWholeOrder) {
  std::vector<TypeParam> line = mixed<TypeParam>(3000);
  for (int64_t wanted : {1, 10, 700, 1500}) {
    for (bool descending : {false, true}) {
      std::vector<int64_t> places = expected_places(line, descending);
      places.resize(wanted);
      EXPECT_THAT(values<int64_t>(sorted(row_of(line), wanted, descending).places), ElementsAreArray(places));
    }
  }
}

TEST(OrderStatistics, TheMedianIsTheFirstOfEqualElements) {
  Tensor line = floats({5}, {2, 1, 2, 2, 0}), value = empty_tensor({}), place = empty_tensor({}, DType::Int64);
  auto with_dim = [](const Tensor& t) { return strided(t, {1}, {1}); };
  median(with_dim(value), with_dim(place), line, 0, Nans::Propagate);
  EXPECT_THAT(values<int64_t>(place), ElementsAre(0));
}

}  // namespace
}  // namespace umbra::kernels
