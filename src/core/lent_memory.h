// Memory that others than tensors point to: NumPy's arrays.
#pragma once

#include "umbra/core/storage.h"

namespace UMBRA_API umbra {

/// From lend() to take_back(), which may be nested, a storage's memory stays where it is.
void lend(const StorageImpl& storage);
void take_back(const StorageImpl& storage);
bool is_lent(const StorageImpl& storage);

}  // namespace umbra
