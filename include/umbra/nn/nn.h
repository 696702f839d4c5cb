// All of nn.
#pragma once

#include "umbra/nn/activation.h"
#include "umbra/nn/attention.h"
#include "umbra/nn/compile.h"
#include "umbra/nn/container.h"
#include "umbra/nn/convolution.h"
#include "umbra/nn/embedding.h"
#include "umbra/nn/export.h"
#include "umbra/nn/functional.h"
#include "umbra/nn/init.h"
#include "umbra/nn/linear.h"
#include "umbra/nn/module.h"
#include "umbra/nn/normalization.h"
#include "umbra/nn/recurrent.h"
