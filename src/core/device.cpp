#include "umbra/core/device.h"

#include <cctype>
#include <charconv>

#include "umbra/core/error.h"

namespace umbra {

namespace {
constexpr const char* kTypes[] = {"cpu", "cuda", "meta", "mps", "xpu", "hpu"};
}

Device::Device(const std::string& text) {
  check(!text.empty(), "Device string must not be empty");
  std::string kind = text.substr(0, text.find(':'));
  for (char c : kind)
    check(c == '_' || std::isalpha(static_cast<unsigned char>(c)), "Invalid device string: '", text, "'");
  bool known = false;
  for (int i = 0; i < 6; ++i)
    if (kind == kTypes[i]) type = static_cast<DeviceType>(i), known = true;
  check(known,
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
        "mps, meta, hpu, mtia, privateuseone device type at start of device string: ",
        kind);
  if (kind.size() == text.size()) return;
  int number = -1;
  const char* begin = text.data() + kind.size() + 1;
  auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  bool padded = *begin == '0' && end != begin + 1;
  check(error == std::errc() && end == text.data() + text.size() && number >= 0 && number < 128 && !padded,
        "Invalid device string: '", text, "'");
  index = static_cast<int8_t>(number);
}

std::string to_string(Device device) {
  std::string out = kTypes[static_cast<int>(device.type)];
  if (device.index >= 0) out += ":" + std::to_string(device.index);
  return out;
}

std::string to_string(Layout layout) {
  constexpr const char* kNames[kLayoutCount] = {"torch.strided",    "torch.sparse_coo", "torch.sparse_csr",
                                                "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc",
                                                "torch._mkldnn",    "torch.jagged"};
  return kNames[static_cast<int>(layout)];
}

std::string short_name(Layout layout) {
  constexpr const char* kNames[kLayoutCount] = {"Strided",   "Sparse",    "SparseCsr", "SparseCsc",
                                                "SparseBsr", "SparseBsc", "Mkldnn",    "Jagged"};
  return kNames[static_cast<int>(layout)];
}

std::string to_string(MemoryFormat format) {
  constexpr const char* kNames[] = {"torch.contiguous_format", "torch.preserve_format", "torch.channels_last",
                                    "torch.channels_last_3d"};
  return kNames[static_cast<int>(format)];
}

}  // namespace umbra
