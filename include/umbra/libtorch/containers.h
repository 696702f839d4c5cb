// Containers of modules of any class: Sequential, ModuleList, ModuleDict, Functional.
#pragma once

#include "umbra/libtorch/losses.h"
#include "umbra/libtorch/sequences.h"

namespace torch::nn {

/// A module of any class, from one that holds it or from a pointer.
class AnyModule {
 public:
  template <class Contained> AnyModule(const ModuleHolder<Contained>& module) : module_(module.ptr()) {}
  template <std::derived_from<Module> M> AnyModule(std::shared_ptr<M> module) : module_(std::move(module)) {}
  const std::shared_ptr<Module>& ptr() const { return module_; }
  Module* operator->() const { return module_.get(); }
  operator const std::shared_ptr<Module>&() const { return module_; }

 private:
  std::shared_ptr<Module> module_;
};
struct NamedAnyModule {
  template <class M> NamedAnyModule(std::string name, const M& module) : name(std::move(name)), module(module) {}
  std::string name;
  AnyModule module;
};

/// What the containers share: modules in a row, that are gone through as `Item`s.
template <class Item> class ModulesInARow : public native::Layer {
 public:
  void push_back(AnyModule module) { push_back(std::to_string(modules_.size()), std::move(module)); }
  void push_back(std::string name, AnyModule module) {
    register_module(std::move(name), module.ptr());
    modules_.push_back(module);
  }
  size_t size() const { return modules_.size(); }
  bool is_empty() const { return modules_.empty(); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }
  const std::shared_ptr<Module>& ptr(size_t index) const {
    if (index >= modules_.size()) throw IndexError("Index out of range");
    return modules_[index];
  }
  const std::shared_ptr<Module>& operator[](size_t index) const { return ptr(index); }
  /// The module as one of its class; an error where it is another.
  template <class M> M& at(size_t index) const {
    M* found = ptr(index)->template as<M>();
    if (!found) throw TypeError("the module is of another class");
    return *found;
  }

 protected:
  using native::Layer::Layer;

 private:
  std::vector<Item> modules_;
};

/// Runs its modules one after the other. They take and give one tensor.
class SequentialImpl : public ModulesInARow<AnyModule> {
 public:
  SequentialImpl() : ModulesInARow("torch.nn.modules.container.Sequential") {}
  explicit SequentialImpl(const std::vector<NamedAnyModule>& modules) : SequentialImpl() {
    for (const NamedAnyModule& m : modules) push_back(m.name, m.module);
  }
  template <std::convertible_to<AnyModule>... Modules>
  requires(sizeof...(Modules) > 0) explicit SequentialImpl(const Modules&... modules) : SequentialImpl() {
    (push_back(AnyModule(modules)), ...);
  }
  Tensor forward(Tensor x) override {
    for (const AnyModule& module : *this) x = (*module.ptr())(x);
    return x;
  }
};
/// Also from names: `Sequential({{"fc", Linear(2, 3)}, {"act", ReLU()}})`.
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  Sequential(std::initializer_list<NamedAnyModule> modules)
      : ModuleHolder<SequentialImpl>(std::make_shared<SequentialImpl>(std::vector<NamedAnyModule>(modules))) {}
};

class ModuleListImpl : public ModulesInARow<std::shared_ptr<Module>> {
 public:
  ModuleListImpl() : ModulesInARow("torch.nn.modules.container.ModuleList") {}
  template <std::convertible_to<AnyModule>... Modules>
  requires(sizeof...(Modules) > 0) explicit ModuleListImpl(const Modules&... modules) : ModuleListImpl() {
    (push_back(AnyModule(modules)), ...);
  }
};
using ModuleList = ModuleHolder<ModuleListImpl>;

class ModuleDictImpl : public native::Layer {
 public:
  using Modules = OrderedDict<std::string, std::shared_ptr<Module>>;
  explicit ModuleDictImpl(const Modules& modules = {}) : Layer("torch.nn.modules.container.ModuleDict") {
    update(modules);
  }
  void insert(const std::string& name, AnyModule module) {
    register_module(name, module.ptr());
    modules_.insert(name, module.ptr());
  }
  void update(const Modules& modules) {
    for (const auto& [name, module] : modules) insert(name, module);
  }
  size_t size() const { return modules_.size(); }
  bool contains(const std::string& name) const { return modules_.contains(name); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }
  const std::shared_ptr<Module>& operator[](const std::string& name) const { return modules_[name]; }

 private:
  Modules modules_;
};
using ModuleDict = ModuleHolder<ModuleDictImpl>;

class ParameterListImpl : public native::ParameterList {
 public:
  using native::ParameterList::ParameterList;
  void append(const Tensor& tensor) { push_back(tensor); }
};
using ParameterList = ModuleHolder<ParameterListImpl>;
using ParameterDictImpl = native::ParameterDict;
using ParameterDict = ModuleHolder<ParameterDictImpl>;

/// A function as a module: `Functional(torch::relu)`.
class FunctionalImpl : public native::Layer {
 public:
  explicit FunctionalImpl(std::function<Tensor(Tensor)> function)
      : Layer("torch.nn.modules.Functional"), function_(std::move(function)) {}
  explicit FunctionalImpl(Tensor (*function)(const Tensor&))
      : FunctionalImpl(std::function<Tensor(Tensor)>([function](Tensor x) { return function(x); })) {}
  Tensor forward(Tensor x) override { return function_(std::move(x)); }

 private:
  std::function<Tensor(Tensor)> function_;
};
class Functional : public ModuleHolder<FunctionalImpl> {
 public:
  Functional(Tensor (*function)(const Tensor&)) : ModuleHolder(std::make_shared<FunctionalImpl>(function)) {}
  template <std::invocable<Tensor> F>
  Functional(F function) : ModuleHolder(std::make_shared<FunctionalImpl>(std::function<Tensor(Tensor)>(function))) {}
};

}  // namespace torch::nn
