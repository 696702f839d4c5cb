// The narrow floating types convert as the compiler's own do.
#include "umbra/core/half.h"

#include <gtest/gtest.h>

namespace umbra {
namespace {

TEST(Half, EveryOneIsTheFloatThatItStandsFor) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    uint32_t expected = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<_Float16>(half)));
    ASSERT_EQ(std::bit_cast<uint32_t>(static_cast<float>(Half::from_bits(half))), expected) << "of bits " << bits;
  }
}

TEST(Half, FloatsAreRoundedToTheNearest) {
  auto agree = [](uint32_t bits) {
    auto value = std::bit_cast<float>(bits);
    ASSERT_EQ(Half(value).bits, std::bit_cast<uint16_t>(static_cast<_Float16>(value))) << "of bits " << bits;
  };
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4099) agree(static_cast<uint32_t>(bits));
  // Around every half, the halves of the steps included.
  for (uint32_t half = 0; half < 0x7c00; ++half) {
    uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(Half::from_bits(static_cast<uint16_t>(half))));
    for (uint32_t between : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu}) agree(bits + between);
  }
}

}  // namespace
}  // namespace umbra
