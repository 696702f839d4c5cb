// Programs that were written for libtorch: `#include <umbra/torch.h>` in place of <torch/torch.h>, and
// <torch/script.h>.
//
//     struct Net : torch::nn::Module {
//       Net() { fc = register_module("fc", torch::nn::Linear(784, 10)); }
//       torch::Tensor forward(torch::Tensor x) { return torch::log_softmax(fc->forward(x), 1); }
//       torch::nn::Linear fc{nullptr};
//     };
//     auto net = std::make_shared<Net>();
//     torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
//
// The names stand in the namespace `torch`, over Umbra's own; `at` and `c10` are other names for it. What libtorch does
// not have, such as export, comes with <umbra/umbra.h>, which may be included too. New programs need none of this:
// docs/from_libtorch.md has both ways side by side.
#pragma once

#include "umbra/libtorch/containers.h"
#include "umbra/libtorch/data.h"
#include "umbra/libtorch/functional.h"
#include "umbra/libtorch/library.h"
#include "umbra/libtorch/optim.h"
#include "umbra/libtorch/serialize.h"
