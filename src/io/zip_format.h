// Numbers of the zip format that reader and writer share.
#pragma once

#include <cstdint>

namespace umbra::io::zip {

inline constexpr uint32_t kLocalHeader = 0x04034b50;
inline constexpr uint32_t kDescriptor = 0x08074b50;
inline constexpr uint32_t kCentralRecord = 0x02014b50;
inline constexpr uint32_t kEndRecord64 = 0x06064b50;
inline constexpr uint32_t kEndLocator64 = 0x07064b50;
inline constexpr uint32_t kEndRecord = 0x06054b50;

inline constexpr uint64_t kLocalHeaderSize = 30;
inline constexpr uint64_t kCentralRecordSize = 46;
inline constexpr uint64_t kEndRecord64Size = 56;
inline constexpr uint64_t kEndLocator64Size = 20;
inline constexpr uint64_t kEndRecordSize = 22;

inline constexpr uint16_t kExtra64 = 0x0001;       // extra field with 64-bit sizes and offset
inline constexpr uint16_t kExtraPadding = 0x4246;  // "FB": PyTorch's padding
inline constexpr uint16_t kFlagEncrypted = 0x0001;
inline constexpr uint16_t kFlagDescriptor = 0x0008;  // sizes follow the data
inline constexpr uint16_t kFlagUtf8 = 0x0800;
inline constexpr uint32_t kSee64 = 0xffffffff;  // the true value stands in the 64-bit field
inline constexpr uint16_t kCountSee64 = 0xffff;
inline constexpr uint16_t kStored = 0, kDeflated = 8;
inline constexpr uint64_t kAlignment = 64;

}  // namespace umbra::io::zip
