// Ahead-of-time autograd for modules.
//
//     auto fast = nn::compile(model);
//     fast(x).square().mean().backward();
#pragma once

#include "umbra/aot/compile.h"
#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

/// The module's forward as graphs. Parameters and buffers are looked up at each call; a change of any submodule's
/// training flag is captured anew.
aot::CompiledFunction compile(std::shared_ptr<const Module> module, aot::CompileOptions options = {});
/// The same for a module by value: the copy shares parameters and flags with the one that is given.
template <std::derived_from<Module> M>
aot::CompiledFunction compile(const M& module, aot::CompileOptions options = {}) {
  return compile(std::shared_ptr<const Module>(std::make_shared<M>(module)), std::move(options));
}

}  // namespace nn
}  // namespace umbra
