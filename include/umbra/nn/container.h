// Modules made of modules.
//
//     nn::Sequential net(nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 2));
//     nn::ModuleList<Block> layers = add("layers", nn::ModuleList<Block>());   // a member; then
//     for (Block& layer : layers) x = layer(x);
#pragma once

#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

/// Runs its modules one after the other.
class Sequential : public Layer {
 public:
  template <std::derived_from<Module>... Modules>
  explicit Sequential(Modules... modules) : Layer("torch.nn.modules.container.Sequential") {
    (push_back(std::move(modules)), ...);
  }
  template <std::derived_from<Module> M> void push_back(M module) { push_back(std::make_shared<M>(std::move(module))); }
  template <std::derived_from<Module> M> void push_back(std::shared_ptr<M> module) {
    add(std::to_string(size()), std::move(module));
  }
  size_t size() const { return children().size(); }
  Module& operator[](size_t i) const { return *children().at(i).module; }
  Tensor forward(Tensor x) override;
};

/// A list of modules of one type, called by its owner.
template <std::derived_from<Module> M> class ModuleList : public Layer {
 public:
  ModuleList() : Layer("torch.nn.modules.container.ModuleList") {}

  /// The module that stands in the list from here on.
  M& push_back(M module) { return *add(std::to_string(size()), std::make_shared<M>(std::move(module))); }
  size_t size() const { return children().size(); }
  M& operator[](size_t i) const { return static_cast<M&>(*children().at(i).module); }

  /// Goes over the modules as they were when it was made.
  class Iterator {
   public:
    Iterator(std::shared_ptr<std::vector<NamedModule>> items, size_t position)
        : items_(std::move(items)), position_(position) {}
    M& operator*() const { return static_cast<M&>(*(*items_)[position_].module); }
    Iterator& operator++() { return ++position_, *this; }
    bool operator==(const Iterator& other) const { return position_ == other.position_; }

   private:
    std::shared_ptr<std::vector<NamedModule>> items_;
    size_t position_;
  };
  Iterator begin() const { return {std::make_shared<std::vector<NamedModule>>(children()), 0}; }
  Iterator end() const { return {nullptr, size()}; }
};

}  // namespace nn
}  // namespace umbra
