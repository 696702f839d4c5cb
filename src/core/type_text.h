// The name of a tensor's type in the messages that PyTorch writes so: torch.FloatTensor, torch.cuda.LongTensor. Types that
// are younger than those classes are named by their backend: CPUBoolType.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra {

inline bool has_old_class(DType t) {
  switch (t) {
    case DType::Float32:
    case DType::Float64:
    case DType::Float16:
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64: return true;
    default: return false;
  }
}

inline std::string type_text(const Tensor& t) {
  DeviceType device = t.device().type;
  bool meta = device == DeviceType::Meta || (device == DeviceType::CPU && t.is_fake());
  if (meta || !has_old_class(t.dtype()))
    return concat(meta ? "Meta" : device == DeviceType::CUDA ? "CUDA" : "CPU", kernel_name(t.dtype()), "Type");
  return concat(device == DeviceType::CUDA ? "torch.cuda." : "torch.", kernel_name(t.dtype()), "Tensor");
}

}  // namespace umbra
