// Facts about operators that other layers ask for, by names that the compiler knows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

enum class Tag : uint8_t {
  // PyTorch's, in its order: the numbers are written to files.
  Core,
  CudagraphUnsafe,
  DataDependentOutput,
  DynamicOutputShape,
  FlexibleLayout,
  Generated,
  InPlace,
  InPlaceView,
  MaybeAliasingOrMutating,
  NeedsContiguousStrides,
  NeedsExactStrides,
  NeedsFixedStrideOrder,
  NondeterministicBitwise,
  NondeterministicSeeded,
  Out,
  OutVariant,
  Pointwise,
  Pt2Compliant,
  Reduction,
  ViewCopy,
  // Our own.
  AddressesMemory,    // a view of what lies at certain places in memory, not only of the elements of its input
  CastsToOut,         // its out variant takes outputs of another type
  CheapToRepeat,      // computing it again costs less than keeping its result
  ConvertsType,       // gives its input in another type or on another device, maybe the input itself
  ExactOut,           // its out variant takes outputs of the result's type only
  LiftsData,          // hands a literal of the program to the capturing layers
  MakesBlank,         // makes a tensor of no or of given numbers: its out variant may write what requires gradients
  RealGradient,       // complex results have no gradient
  SizeOnDemand,       // a size of a tensor: a value, which gets a node where something needs it
  TakesNumbers,       // Python may give it numbers where the schema has tensors
  WritesOneValue,     // writes one value everywhere
  WritesOverlapping,  // may write a tensor whose elements share memory
  Count,
};

inline constexpr size_t kTorchTagCount = static_cast<size_t>(Tag::ViewCopy) + 1;

/// A set of tags in one word.
class TagSet {
 public:
  constexpr TagSet() = default;
  constexpr TagSet(std::initializer_list<Tag> tags) {
    for (Tag t : tags) add(t);
  }
  constexpr void add(Tag tag) { bits_ |= uint64_t{1} << static_cast<int>(tag); }
  constexpr void add(TagSet other) { bits_ |= other.bits_; }
  constexpr bool has(Tag tag) const { return bits_ >> static_cast<int>(tag) & 1; }
  constexpr TagSet operator&(TagSet other) const {
    TagSet out;
    out.bits_ = bits_ & other.bits_;
    return out;
  }

 private:
  uint64_t bits_ = 0;
};
static_assert(static_cast<int>(Tag::Count) <= 64);

/// As torch.Tag spells it ("pt2_compliant_tag"); null for our own.
const char* torch_name(Tag tag);
/// The tag that torch.Tag spells so, if there is one.
std::optional<Tag> find_tag(std::string_view torch_name);

}  // namespace umbra
