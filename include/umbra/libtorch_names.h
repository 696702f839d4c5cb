// What libtorch calls things that have another name here, so that a program comes over line by line.
//
//     torch::NoGradGuard guard;      x.to(torch::kFloat64);      // there
//     umbra::NoGradGuard guard;      x.to(umbra::kFloat64);      // here, or NoGrad and DType::Float64
#pragma once

#include "umbra/autograd/grad_mode.h"
#include "umbra/core/dtype.h"

namespace UMBRA_API umbra {

using NoGradGuard = NoGrad;
using AutoGradMode = SetGradEnabled;

inline constexpr DType kUInt8 = DType::UInt8, kInt8 = DType::Int8, kInt16 = DType::Int16, kInt32 = DType::Int32,
                       kInt64 = DType::Int64, kFloat16 = DType::Float16, kFloat32 = DType::Float32,
                       kFloat64 = DType::Float64, kBFloat16 = DType::BFloat16, kComplex64 = DType::Complex64,
                       kComplex128 = DType::Complex128, kBool = DType::Bool;
inline constexpr DType kByte = kUInt8, kChar = kInt8, kShort = kInt16, kInt = kInt32, kLong = kInt64, kHalf = kFloat16,
                       kFloat = kFloat32, kDouble = kFloat64;

}  // namespace umbra
