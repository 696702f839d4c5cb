// Modules: named parameters, buffers and submodules, and a forward function.
//
//     struct Mlp : nn::Module {
//       nn::Linear up = add("up", nn::Linear(64, 256)), down = add("down", nn::Linear(256, 64));
//       Tensor forward(Tensor x) override { return down(gelu(up(x))); }
//     };
//     Mlp model;
//     Tensor y = model(x);
//     model.state_dict();          // up.weight, up.bias, down.weight, down.bias
//
// A module is a handle: copies share parameters, buffers, submodules and the training flag. Names and their order are
// PyTorch's.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace nn {

class Module;

using StateDict = std::vector<std::pair<std::string, Tensor>>;
struct NamedModule {
  std::string name;
  Module* module;
};

/// What load_state_dict found amiss; with `strict` it throws instead.
struct LoadResult {
  std::vector<std::string> missing_keys, unexpected_keys;
};

class Module {
 public:
  Module();
  // A module is a handle: what is moved from stays as good as a copy.
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  virtual ~Module() = default;

  /// What the module computes; written by the user, called through operator().
  virtual Tensor forward(Tensor x);
  /// The same for modules of several inputs or outputs.
  virtual std::vector<Tensor> forward_many(std::vector<Tensor> inputs);
  /// Runs forward; while a program is captured, its nodes get this module's path.
  Tensor operator()(const Tensor& x) const;
  std::vector<Tensor> call(std::vector<Tensor> inputs) const;

  /// What forward's parameters are called in exported programs.
  virtual std::vector<std::string> argument_names() const { return {"x"}; }
  /// "torch.nn.modules.linear.Linear"; for users' modules the C++ name.
  virtual std::string type_name() const;

  // ---- what it consists of ----

  /// All parameters below, each once.
  std::vector<Tensor> parameters() const;
  StateDict named_parameters() const;
  StateDict named_buffers() const;
  /// This module under the name "", then all below it.
  std::vector<NamedModule> named_modules() const;
  /// The direct submodules.
  std::vector<NamedModule> children() const;
  /// Whether a buffer is part of the state dict.
  bool is_persistent(const std::string& buffer) const;

  /// Parameters and persistent buffers by name, as PyTorch orders them. The tensors share memory with the module's.
  StateDict state_dict() const;
  LoadResult load_state_dict(const StateDict& state, bool strict = true);

  // ---- what is done to all below ----

  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const;
  /// Calls the function with every module below, then with this one.
  Module& apply(const std::function<void(Module&)>& function);
  /// Casts floating-point parameters and buffers, in place.
  Module& to(DType dtype);
  void zero_grad(bool set_to_none = true);
  Module& requires_grad_(bool value = true);

 protected:
  /// Registers a submodule; the result is the same module. Call these where members are initialised.
  template <std::derived_from<Module> M> M add(std::string name, M module) {
    attach(std::move(name), std::make_shared<M>(module));
    return module;
  }
  /// Registers a parameter; an undefined tensor means that the module has none of that name.
  Tensor parameter(std::string name, Tensor tensor);
  /// Registers a tensor that is no parameter; those that are not persistent stay out of the state dict.
  Tensor buffer(std::string name, Tensor tensor, bool persistent = true);
  /// Runs `body` as this module's forward: for operator() with other signatures.
  template <class F> auto run(F&& body) const {
    Running scope(*this);
    return body();
  }

 private:
  struct State;
  friend class ExportRoot;

  /// Tells a capture in progress which module is running.
  class Running {
   public:
    explicit Running(const Module& module);
    ~Running();
    Running(const Running&) = delete;

   private:
    bool entered_ = false;
  };

  void attach(std::string name, std::shared_ptr<Module> module);
  std::string path() const;
  void collect_modules(const std::string& prefix, std::vector<NamedModule>& out) const;
  StateDict own_state() const;

  std::shared_ptr<State> state_;
};

/// Makes a module the root of module paths on this thread, wherever it stands in a larger one. Export uses it.
class ExportRoot {
 public:
  explicit ExportRoot(const Module& module);
  ~ExportRoot();
  ExportRoot(const ExportRoot&) = delete;

 private:
  const void* before_;
};

/// The modules that come with the library: PyTorch's type name, and `input` as forward's parameter.
class Layer : public Module {
 public:
  std::vector<std::string> argument_names() const override { return {"input"}; }
  std::string type_name() const override { return type_; }

 protected:
  explicit Layer(const char* type) : type_(type) {}

 private:
  const char* type_;
};

}  // namespace nn
}  // namespace umbra
