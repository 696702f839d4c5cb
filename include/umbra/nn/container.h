// Modules made of modules.
//
//     nn::Sequential net{nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 2)};
//     nn::ModuleList<Block> layers = add("layers", nn::ModuleList{Block(8), Block(8)});   // a member; then
//     for (Block& layer : layers) x = layer(x);
//     nn::ModuleList<> mixed = add("mixed", nn::ModuleList<>{nn::Linear(8, 8), nn::ReLU()});
//     for (nn::Module& layer : mixed) x = layer(x);
//     nn::ModuleDict<nn::Linear> heads = add("heads", nn::ModuleDict<nn::Linear>());
//     heads.insert("left", nn::Linear(8, 2));
//     y = heads["left"](x);
#pragma once

#include "umbra/core/error.h"
#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

/// Runs its modules one after the other. Between braces they are made from left to right, so that a seed gives the
/// weights that it gives in Python; between parentheses the compiler chooses.
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
  bool is_empty() const { return children().empty(); }
  Module& operator[](size_t i) const { return child(i); }
  Tensor forward(Tensor x) override;
};

/// A list of modules of one type, or (`ModuleList<>`) of any types, called by its owner.
template <std::derived_from<Module> M = Module> class ModuleList : public Layer {
 public:
  ModuleList() : Layer("torch.nn.modules.container.ModuleList") {}
  template <std::derived_from<M>... Modules>
  requires(sizeof...(Modules) > 0 &&
           !(std::same_as<Modules, ModuleList> || ...)) explicit ModuleList(Modules... modules)
      : ModuleList() {
    (push_back(std::move(modules)), ...);
  }

  /// The module that stands in the list from here on.
  template <std::derived_from<M> Actual = M> Actual& push_back(Actual module) {
    return *add(std::to_string(size()), std::make_shared<Actual>(std::move(module)));
  }
  size_t size() const { return children().size(); }
  M& operator[](size_t i) const { return static_cast<M&>(child(i)); }

  /// Goes over the modules as they were when it was made.
  class Iterator {
   public:
    Iterator(std::shared_ptr<NamedModules> items, size_t position) : items_(std::move(items)), position_(position) {}
    M& operator*() const { return static_cast<M&>(*(*items_)[position_].module); }
    Iterator& operator++() { return ++position_, *this; }
    bool operator==(const Iterator& other) const { return position_ == other.position_; }

   private:
    std::shared_ptr<NamedModules> items_;
    size_t position_;
  };
  Iterator begin() const { return {std::make_shared<NamedModules>(children()), 0}; }
  Iterator end() const { return {nullptr, size()}; }
};

template <std::derived_from<Module> M, std::same_as<M>... Same> ModuleList(M, Same...) -> ModuleList<M>;

/// Modules of one type, or (`ModuleDict<>`) of any types, by their names, called by its owner.
template <std::derived_from<Module> M = Module> class ModuleDict : public Layer {
 public:
  ModuleDict() : Layer("torch.nn.modules.container.ModuleDict") {}

  /// The module that stands under the name from here on. A name that is taken is a KeyError.
  template <std::derived_from<M> Actual = M> Actual& insert(const std::string& name, Actual module) {
    return *add(name, std::make_shared<Actual>(std::move(module)));
  }
  bool contains(const std::string& name) const { return find(name) != nullptr; }
  /// Throws a KeyError where there is none of the name.
  M& operator[](const std::string& name) const {
    Module* found = find(name);
    if (!found) throw KeyError(name);
    return static_cast<M&>(*found);
  }
  size_t size() const { return children().size(); }
  /// In the order in which they came.
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const NamedModule& m : children()) names.push_back(m.name);
    return names;
  }

 private:
  Module* find(const std::string& name) const {
    for (const NamedModule& m : children())
      if (m.name == name) return m.module;
    return nullptr;
  }
};

/// Parameters in a row: "0", "1", ...
class ParameterList : public Layer {
 public:
  explicit ParameterList(const std::vector<Tensor>& parameters = {});
  void push_back(const Tensor& tensor);
  size_t size() const { return named_parameters().size(); }
  Tensor operator[](size_t i) const { return named_parameters().at(i).value(); }
  std::string extra_repr() const override;
};

/// Parameters by their names.
class ParameterDict : public Layer {
 public:
  explicit ParameterDict(const StateDict& parameters = {});
  /// A name that is taken is a KeyError.
  void insert(const std::string& name, const Tensor& tensor);
  bool contains(const std::string& name) const;
  /// Throws a KeyError where there is none of the name.
  Tensor operator[](const std::string& name) const;
  size_t size() const { return named_parameters().size(); }
  std::vector<std::string> keys() const;
  std::string extra_repr() const override;

 private:
  Tensor find(const std::string& name) const;
};

}  // namespace nn
}  // namespace umbra
