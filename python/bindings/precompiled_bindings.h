// Precompiled for every source of the Python module.
#pragma once

#include "precompiled.h"
#include "python.h"
#include "tensor_type.h"
#include "umbra/dispatch/dispatcher.h"
#include "values.h"
