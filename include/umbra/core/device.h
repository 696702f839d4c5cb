// Where a tensor lives. A device is a value: a fake tensor may live on any, whether or not the machine has it.
#pragma once

#include <cstdint>
#include <string>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

enum class DeviceType : uint8_t { CPU, CUDA, Meta, MPS, XPU, HPU };

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: none given

  Device() = default;
  Device(DeviceType type, int8_t index = -1) : type(type), index(index) {}
  /// From "cpu", "cuda:1", "meta".
  Device(const std::string& text);
  Device(const char* text) : Device(std::string(text)) {}
  bool operator==(const Device&) const = default;
};

std::string to_string(Device device);

/// How a tensor keeps its elements. All but Strided keep them in other tensors (core/sparse.h); a jagged one is a
/// tensor class of the user's.
enum class Layout : uint8_t { Strided, SparseCoo, SparseCsr, SparseCsc, SparseBsr, SparseBsc, Mkldnn, Jagged };
inline constexpr int kLayoutCount = 8;
/// "torch.sparse_coo".
std::string to_string(Layout layout);
/// "Sparse", "SparseCsr": what error texts call it.
std::string short_name(Layout layout);

enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
std::string to_string(MemoryFormat format);

}  // namespace umbra
