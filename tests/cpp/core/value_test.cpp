// Values: what they hold, what they own, what they refuse.
#include "umbra/core/value.h"

#include <gtest/gtest.h>

#include "umbra/core/callable.h"
#include "umbra/core/error.h"

namespace umbra {
namespace {

Tensor some_tensor() { return allocate_tensor({SymInt(2)}, {SymInt(1)}, DType::Float32, Device()); }

TEST(Value, OwnersCountAndBorrowersDoNot) {
  Tensor tensor = some_tensor();
  EXPECT_EQ(tensor.impl()->use_count(), 1u);
  {
    Value borrowed = Value::borrow(tensor);
    EXPECT_EQ(tensor.impl()->use_count(), 1u);
    Value copy = borrowed;  // whoever copies, keeps
    EXPECT_EQ(tensor.impl()->use_count(), 2u);
    Value moved = std::move(copy);
    EXPECT_TRUE(copy.is_none());
    EXPECT_EQ(tensor.impl()->use_count(), 2u);
  }
  EXPECT_EQ(tensor.impl()->use_count(), 1u);
}

TEST(Value, IntegersFrom2ToThe63AreNumbersThatNoIntHolds) {
  Scalar large = uint64_t{1} << 63;
  EXPECT_EQ(large.kind(), Scalar::Kind::UInt);
  EXPECT_EQ(large.dtype(), DType::UInt64);
  EXPECT_EQ(large.to<uint64_t>(), uint64_t{1} << 63);
  EXPECT_EQ(large.to<double>(), 0x1p63);
  EXPECT_EQ((-large).to_int(), INT64_MIN);
  EXPECT_EQ(to_string(large), "9223372036854775808");
  EXPECT_THROW(large.to_int(), Error);
  EXPECT_EQ(Scalar(uint64_t{7}).kind(), Scalar::Kind::Int);

  Value value = large, copy = value;
  EXPECT_TRUE(copy.is_scalar() && copy.equals(value) && !copy.is_int());
  EXPECT_EQ(copy.to_scalar().to_uint(), uint64_t{1} << 63);
  EXPECT_THROW(copy.to_int(), Error);
}

TEST(Value, ListsHoldWhatTheyAreGiven) {
  Tensor tensor = some_tensor();
  Value list(std::vector<Value>{Value(tensor), Value(3), Value(std::vector<Tensor>{tensor, Tensor()}), Value("text")});
  EXPECT_EQ(tensor.impl()->use_count(), 3u);
  int seen = 0;
  list.each_tensor([&](TensorImpl* impl) { seen += impl == tensor.impl(); });
  EXPECT_EQ(seen, 2);
  EXPECT_TRUE(list.equals(Value(list)));
  EXPECT_FALSE(list.equals(Value(std::vector<Value>{Value(3)})));
}

TEST(Value, NumbersConvertAsPythonsDo) {
  EXPECT_EQ(Value(3).to_double(), 3.0);
  EXPECT_EQ(Value(true).to_int(), 1);
  EXPECT_THROW(Value("text").to_int(), Error);
  EXPECT_THROW(Value(3).tensor_list(), Error);
  EXPECT_FALSE(Value().tensor().defined());
}

TEST(Value, ListsOfEveryKindHaveTheirElements) {
  EXPECT_EQ(to_string(Value(detail::elements(Value(std::vector<int64_t>{4, 5, 6})))), "[4, 5, 6]");
  EXPECT_EQ(to_string(Value(detail::elements(Value(std::vector<double>{0.5, 2})))), "[0.5, 2.0]");
  EXPECT_EQ(to_string(Value(detail::elements(Value(std::vector<bool>{true, false, true})))), "[True, False, True]");
  Tensor a = some_tensor(), b = some_tensor();
  std::vector<Value> tensors = detail::elements(Value(std::vector<Tensor>{a, b, a}));
  ASSERT_EQ(tensors.size(), 3);
  EXPECT_TRUE(tensors[0].tensor().is_same(a) && tensors[1].tensor().is_same(b) && tensors[2].tensor().is_same(a));
}

// A pointer is true as a bool: one that is passed by mistake must not become a number.
static_assert(!std::is_convertible_v<const Tensor*, Value> && !std::is_convertible_v<const double*, Scalar>);
static_assert(std::is_convertible_v<bool, Value> && std::is_convertible_v<bool, Scalar>);

TEST(Value, PrintsAsPythonWould) {
  EXPECT_EQ(to_string(Value(std::vector<int64_t>{1, 2})), "[1, 2]");
  EXPECT_EQ(to_string(Value(2.0)), "2.0");
  EXPECT_EQ(to_string(Value(true)), "True");
  EXPECT_EQ(to_string(Value()), "None");
}

}  // namespace
}  // namespace umbra
