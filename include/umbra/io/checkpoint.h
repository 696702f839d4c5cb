// Training that goes on where it stopped: weights, optimiser and whatever else, in one file of torch.save's form, which
// PyTorch reads and writes too.
//
//     io::save_pickle("training.pt", io::PickleValue::dict({{"model", io::to_pickle(model.state_dict())},
//                                                           {"optimizer", io::to_pickle(optimizer.state_dict())},
//                                                           {"epoch", epoch}}));
//
//     io::PickleValue checkpoint = io::load_pickle("training.pt");
//     model.load_state_dict(io::to_state_dict(checkpoint["model"]));
//     optimizer.load_state_dict(io::to_optimizer_state(checkpoint["optimizer"]));
//     int64_t epoch = checkpoint["epoch"].as_int();
#pragma once

#include "umbra/io/pickle.h"
#include "umbra/optim/lr_scheduler.h"
#include "umbra/optim/optim.h"

namespace UMBRA_API umbra {
namespace io {

/// A state dict as PyTorch saves it: an ordered dict of tensors.
PickleValue to_pickle(const NamedTensors& state);
/// What `optimizer.state_dict()` is in Python: state by number, and groups with their options.
PickleValue to_pickle(const optim::OptimizerState& state);
PickleValue to_pickle(const optim::LRScheduler::State& state);

/// Back again; an error names what is not as it should be.
optim::OptimizerState to_optimizer_state(const PickleValue& value);
optim::LRScheduler::State to_scheduler_state(const PickleValue& value);

}  // namespace io
}  // namespace umbra
