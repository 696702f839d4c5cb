// Precompiled for what calls operators or defines them: the headers that nearly every such source includes.
#pragma once

#include <fmt/format.h>

#include "precompiled.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"
