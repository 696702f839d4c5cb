// The layers a call may pass through, as bits: the higher the bit, the further out the layer.
#pragma once

#include <bit>
#include <cstdint>

#include "umbra/core/device.h"

namespace UMBRA_API umbra {

enum class DispatchKey : uint8_t {
  CPU,            // real memory
  CUDA,           // a device this build cannot run; only fake tensors live there
  Meta,           // the meta device: metadata and nothing else
  Sparse,         // tensors that keep their elements in other tensors: core/sparse.h
  Fake,           // FakeMode: metadata with a device of its choice
  Subclass,       // tensor classes that users write; asked once the modes have passed their tensors on
  Proxy,          // records the call in a graph, below autograd
  Functionalize,  // turns mutation and views into values
  UserMode,       // modes that users write, in C++ (DispatchMode) or Python (__torch_dispatch__)
  Tracked,        // what a transform differentiates: goes on with the values inside, one level further out
  Autograd,       // reverse and forward mode
  Autocast,       // computes in another floating type: autograd/autocast.h
  PreProxy,       // records the call in a graph, above autograd: export's training graphs
  Lift,           // puts stand-ins in the place of tensors that captured code closes over
  Level,          // transforms: the innermost one sees a call first
  Count,
};

/// A set of dispatch keys in one word.
class DispatchKeySet {
 public:
  constexpr DispatchKeySet() = default;
  constexpr DispatchKeySet(DispatchKey key) : bits_(uint64_t{1} << static_cast<int>(key)) {}
  constexpr explicit DispatchKeySet(uint64_t bits) : bits_(bits) {}
  constexpr bool has(DispatchKey key) const { return bits_ >> static_cast<int>(key) & 1; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr uint64_t bits() const { return bits_; }
  constexpr DispatchKeySet operator|(DispatchKeySet other) const { return DispatchKeySet(bits_ | other.bits_); }
  constexpr DispatchKeySet operator&(DispatchKeySet other) const { return DispatchKeySet(bits_ & other.bits_); }
  constexpr DispatchKeySet operator-(DispatchKeySet other) const { return DispatchKeySet(bits_ & ~other.bits_); }
  DispatchKeySet& operator|=(DispatchKeySet other) {
    bits_ |= other.bits_;
    return *this;
  }
  constexpr bool operator==(const DispatchKeySet&) const = default;
  /// The outermost layer of the set.
  DispatchKey highest() const { return static_cast<DispatchKey>(63 - std::countl_zero(bits_)); }
  /// The layers further in than `key`.
  constexpr DispatchKeySet below(DispatchKey key) const {
    return DispatchKeySet(bits_ & ((uint64_t{1} << static_cast<int>(key)) - 1));
  }

 private:
  uint64_t bits_ = 0;
};

/// The backends: where a call ends.
inline constexpr DispatchKeySet kBackendKeys = DispatchKeySet(DispatchKey::CPU) | DispatchKey::CUDA | DispatchKey::Meta;

inline DispatchKey backend_key(Device device) {
  return device.type == DeviceType::CPU    ? DispatchKey::CPU
         : device.type == DeviceType::Meta ? DispatchKey::Meta
                                           : DispatchKey::CUDA;
}

}  // namespace umbra
