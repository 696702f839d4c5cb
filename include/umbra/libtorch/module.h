// Modules as libtorch has them: a class that holds one, shared by its copies, and is called by `->`.
//
//     struct NetImpl : torch::nn::Module {
//       NetImpl() : fc(register_module("fc", torch::nn::Linear(8, 2))) {}
//       torch::Tensor forward(torch::Tensor x) { return fc->forward(x); }
//       torch::nn::Linear fc;
//     };
//     TORCH_MODULE(Net);
//     Net net;
//     net->forward(x);
//
// A forward that gives something else than a tensor takes its inputs as `const torch::Tensor&`: of plain tensors it is
// an override.
#pragma once

#include "umbra/libtorch/words.h"

namespace UMBRA_API umbra {
namespace nn {

template <class Contained> class ModuleHolder {
 public:
  using Impl = Contained;
  using ContainedType = Contained;

  ModuleHolder() requires std::default_initializable<Contained> : ModuleHolder(std::make_shared<Contained>()) {}
  /// Holds nothing until it is assigned.
  ModuleHolder(std::nullptr_t) {}
  ModuleHolder(std::shared_ptr<Contained> module) : module_(std::move(module)) { tell_forward(); }
  template <class Head, class... Tail>
  requires(!std::derived_from<std::remove_cvref_t<Head>, ModuleHolder> && !std::same_as<Head, std::nullptr_t> &&
           !std::convertible_to<Head, std::shared_ptr<Contained>> &&
           std::constructible_from<Contained, Head, Tail...>) explicit ModuleHolder(Head&& head, Tail&&... tail)
      : ModuleHolder(std::make_shared<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}

  explicit operator bool() const { return module_ != nullptr; }
  bool is_empty() const { return module_ == nullptr; }
  Contained* get() const {
    if (!module_) throw Error("Accessing empty ModuleHolder");
    return module_.get();
  }
  const std::shared_ptr<Contained>& ptr() const {
    get();
    return module_;
  }
  Contained* operator->() const { return get(); }
  Contained& operator*() const { return *get(); }
  /// Calls forward; while a program is captured, its nodes get the module's path.
  template <class... Inputs> auto operator()(Inputs&&... inputs) const {
    Contained* module = get();
    return module->Module::run([&] { return module->forward(std::forward<Inputs>(inputs)...); });
  }
  /// Of a container: what its own operator gives.
  template <class Index>
  requires requires(Contained& module, const Index& index) { module[index]; }
  decltype(auto) operator[](const Index& index) const { return (*get())[index]; }

 private:
  /// A forward that is no override is known to the class alone; others call it through the module.
  void tell_forward() {
    constexpr bool overrides = requires { static_cast<Tensor (Contained::*)(Tensor)>(&Contained::forward); };
    if constexpr (!overrides && requires(Contained & module, const Tensor& x) {
                    { module.forward(x) } -> std::same_as<Tensor>;
                  })
      if (module_)
        module_->Module::set_plain_forward(
            [](Module& module, const Tensor& x) { return static_cast<Contained&>(module).forward(x); });
  }
  std::shared_ptr<Contained> module_;
};
template <class Contained> std::ostream& operator<<(std::ostream& out, const ModuleHolder<Contained>& module) {
  return out << *module;
}

}  // namespace nn
}  // namespace umbra

namespace torch {

/// Pairs in the order in which they came.
template <class Key, class Value> class OrderedDict {
 public:
  struct Item {
    Key first;
    Value second;
    const Key& key() const { return first; }
    const Value& value() const { return second; }
    const Value& operator*() const { return second; }
    const Value* operator->() const { return &second; }
  };
  OrderedDict() = default;
  OrderedDict(std::initializer_list<Item> items) : items_(items) {}
  void insert(Key key, Value value) { items_.push_back({std::move(key), std::move(value)}); }
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool contains(const Key& key) const { return find(key) != nullptr; }
  const Value* find(const Key& key) const {
    for (const Item& item : items_)
      if (item.first == key) return &item.second;
    return nullptr;
  }
  const Value& operator[](const Key& key) const {
    if (const Value* found = find(key)) return *found;
    throw KeyError("No such key: '" + std::string(key) + "'");
  }

 private:
  std::vector<Item> items_;
};

namespace nn {
using namespace umbra::nn;
using umbra::nn::Module;
using umbra::nn::ModuleHolder;

/// A module that can be copied with its parameters: `reset` registers them anew.
template <class Derived> class Cloneable : public Module {
 public:
  virtual void reset() = 0;
  std::shared_ptr<Module> clone() const {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    copy->start_anew();
    copy->reset();
    NamedTensors parameters = this->named_parameters(), buffers = this->named_buffers();
    NoGradGuard no_grad;
    for (auto& [name, to] : copy->named_parameters()) to.copy_(parameters[name]);
    for (auto& [name, to] : copy->named_buffers()) to.copy_(buffers[name]);
    return copy;
  }
};

/// A layer that is made of options, and shows them.
template <class Native, class OptionsType> class LayerImpl : public Native {
 public:
  using Options = OptionsType;
  explicit LayerImpl(const Options& given) : Native(given.template make<Native>()), options(given) {}
  template <class... Arguments>
  requires(std::constructible_from<Options, Arguments...> &&
           !(sizeof...(Arguments) == 1 && (std::same_as<std::remove_cvref_t<Arguments>, Options> && ...)) &&
           !(sizeof...(Arguments) == 1 && (std::derived_from<std::remove_cvref_t<Arguments>, Module> &&
                                           ...))) explicit LayerImpl(Arguments&&... arguments)
      : LayerImpl(Options(std::forward<Arguments>(arguments)...)) {}

  Options options;
};

}  // namespace nn
}  // namespace torch

#define TORCH_MODULE(Name)                                     \
  class Name : public ::torch::nn::ModuleHolder<Name##Impl> {  \
   public:                                                     \
    using ::torch::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
    using Impl [[maybe_unused]] = Name##Impl;                  \
  }
