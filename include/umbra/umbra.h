// Everything a program needs: #include <umbra/umbra.h>.
#pragma once

#include "umbra/autograd/autograd.h"
#include "umbra/autograd/forward.h"
#include "umbra/autograd/function.h"
#include "umbra/core/generator.h"
#include "umbra/core/tensor.h"
#include "umbra/core/value.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/dispatch/library.h"
#include "umbra/fake/fake_mode.h"
#include "umbra/generated/functions.h"
