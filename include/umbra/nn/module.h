// Modules: named parameters, buffers and submodules, and a forward function.
//
//     struct Mlp : nn::Module {
//       nn::Linear up = add("up", nn::Linear(64, 256)), down = add("down", nn::Linear(256, 64));
//       Tensor forward(Tensor x) override { return down(gelu(up(x))); }
//     };
//     Mlp model;
//     Tensor y = model(x);
//     model.state_dict();          // up.weight, up.bias, down.weight, down.bias
//     model.up = nn::Linear(64, 256, {.bias = false});   // registered in place of the old one
//
// A child is one object: the member. Copies of a module share its parameters, buffers, submodules and training flag.
// Names and their order are PyTorch's.
#pragma once

#include <concepts>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "umbra/core/named.h"
#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace nn {

class Module;

using StateDict = NamedTensors;
struct NamedModule {
  std::string name;
  Module* module;

  const std::string& key() const { return name; }
  Module* const& value() const { return module; }
  Module* operator->() const { return module; }
  Module& operator*() const { return *module; }
};
using NamedModules = NamedList<NamedModule>;

/// What load_state_dict found amiss; with `strict` it throws instead.
struct LoadResult {
  std::vector<std::string> missing_keys, unexpected_keys;
};

class Module {
 public:
  Module();
  /// Shares what the other one has. A module that is moved takes its place among its owner's children along; what is
  /// moved from stays as good as a copy.
  Module(const Module& other);
  Module(Module&& other) noexcept;
  /// A child that is assigned is registered in place of what it was. One that is moved takes its place along, where it
  /// is to become none's: `fc = add("fc", nn::Linear(2, 3))` in a constructor makes the member the child.
  Module& operator=(const Module& other);
  Module& operator=(Module&& other);
  virtual ~Module();

  /// What the module computes; written by the user for as many inputs as it takes, called through operator().
  virtual Tensor forward(Tensor x);
  virtual Tensor forward(Tensor x, Tensor y);
  virtual Tensor forward(Tensor x, Tensor y, Tensor z);
  /// The same for more inputs, or several outputs.
  virtual std::vector<Tensor> forward_many(std::vector<Tensor> inputs);
  /// Runs forward; while a program is captured, its nodes get this module's path.
  Tensor operator()(const Tensor& x) const;
  Tensor operator()(const Tensor& x, const Tensor& y) const;
  Tensor operator()(const Tensor& x, const Tensor& y, const Tensor& z) const;
  std::vector<Tensor> call(std::vector<Tensor> inputs) const;

  /// What forward's parameters are called in exported programs; as many of them as there are inputs.
  virtual std::vector<std::string> argument_names() const { return {"x", "y", "z"}; }
  /// "torch.nn.modules.linear.Linear"; for users' modules the C++ name.
  virtual std::string type_name() const;
  /// The last part of that.
  std::string name() const;
  /// What stands between the parentheses when the module is printed: "in_features=2, out_features=3, bias=True".
  virtual std::string extra_repr() const { return ""; }

  // ---- what it consists of ----

  /// All parameters below, each once.
  std::vector<Tensor> parameters() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::vector<Tensor> buffers() const;
  /// One of them by its path, "layers.0.weight"; a KeyError where there is none.
  Tensor get_parameter(const std::string& path) const;
  Tensor get_buffer(const std::string& path) const;
  /// This module under the name "", then all below it.
  NamedModules named_modules() const;
  /// The same without names.
  std::vector<Module*> modules(bool include_self = true) const;
  /// The direct submodules.
  NamedModules children() const;
  NamedModules named_children() const { return children(); }
  /// This module as one of its class; null where it is another: `if (auto* linear = m.as<nn::Linear>()) ...`.
  template <std::derived_from<Module> M> M* as() { return dynamic_cast<M*>(this); }
  template <std::derived_from<Module> M> const M* as() const { return dynamic_cast<const M*>(this); }
  /// The same by a class that holds a module of the class `Impl` (umbra/torch.h).
  template <class Holder>
  requires(!std::derived_from<Holder, Module>) typename Holder::Impl* as() { return as<typename Holder::Impl>(); }
  /// Whether a buffer is part of the state dict.
  bool is_persistent(const std::string& buffer) const;

  /// Parameters and persistent buffers by name, as PyTorch orders them. The tensors share memory with the module's.
  StateDict state_dict() const;
  /// The same into and out of an archive of parts (umbra/libtorch/serialize.h).
  template <class Archive> void save(Archive& archive) const {
    for (const auto& [name, tensor] : state_dict()) archive.write(name, tensor);
  }
  template <class Archive> void load(Archive& archive) {
    StateDict state = state_dict();
    for (auto& [name, tensor] : state) archive.read(name, tensor);
    load_state_dict(state);
  }
  LoadResult load_state_dict(const StateDict& state, bool strict = true);

  // ---- what is done to all below ----

  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const;
  /// Calls the function with every module below, then with this one.
  Module& apply(const std::function<void(Module&)>& function);
  /// The same with their paths; this one's is "".
  Module& apply(const std::function<void(const std::string& name, Module&)>& function);
  /// Casts floating-point parameters and buffers, in place.
  Module& to(DType dtype);
  /// Moves parameters and buffers, in place.
  Module& to(Device device);
  Module& to(Device device, DType dtype) { return to(device).to(dtype); }
  void zero_grad(bool set_to_none = true);
  Module& requires_grad_(bool value = true);

 protected:
  /// Registers a submodule: `nn::Linear up = add("up", nn::Linear(64, 256))`. The member that is made of the result is
  /// the child; call this where members are initialised.
  template <std::derived_from<Module> M> [[nodiscard]] M add(std::string name, M module) {
    place(std::move(name), module);
    return module;
  }
  /// The same for one that others may hold too; it lives as long as this module does.
  template <std::derived_from<Module> M> std::shared_ptr<M> add(std::string name, std::shared_ptr<M> module) {
    keep(std::move(name), module);
    return module;
  }
  /// Registers a parameter; an undefined tensor means that the module has none of that name. The result is what is
  /// registered: a member that is to become another tensor later has to be a reference to it, `Tensor& w = ...`.
  Tensor& parameter(std::string name, Tensor tensor);
  /// Registers a tensor that is no parameter; those that are not persistent stay out of the state dict.
  Tensor& buffer(std::string name, Tensor tensor, bool persistent = true);
  // libtorch's names for the same.
  template <class M> auto register_module(std::string name, M module) {
    if constexpr (requires { module.ptr(); }) {
      keep(std::move(name), module.ptr());
      return module;
    } else {
      return add(std::move(name), std::move(module));
    }
  }
  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  Tensor& register_buffer(std::string name, Tensor tensor) { return buffer(std::move(name), std::move(tensor)); }

  /// Runs `body` as this module's forward: for operator() with other signatures.
  template <class F> auto run(F&& body) const {
    Running scope(*this);
    return body();
  }
  /// What `forward(x)` does where the class has one that is no override, as of a `const Tensor&`.
  void set_plain_forward(Tensor (*forward)(Module& module, const Tensor& x));
  /// Lets go of all that is shared with other copies, and starts without parameters, buffers and submodules.
  void start_anew();

 private:
  struct State;
  friend class ExportRoot;
  template <class Impl> friend class ModuleHolder;  // umbra/libtorch/module.h

  /// Tells a capture in progress which module is running.
  class Running {
   public:
    explicit Running(const Module& module);
    ~Running();
    Running(const Running&) = delete;

   private:
    bool entered_ = false;
  };

  /// Among whose children, and under which name, this very object stands.
  struct Place;

  void place(std::string name, Module& module);
  void keep(std::string name, std::shared_ptr<Module> module);
  std::string path() const;
  StateDict own_state() const;

  std::shared_ptr<State> state_;
  IntrusivePtr<Place> place_;  // null for one that is no child, and for copies
};

/// Makes a module the root of module paths on this thread, wherever it stands in a larger one. Export uses it. At its
/// end the module has the tensors again that it had at first: those that a capture puts in their place have no data.
class ExportRoot {
 public:
  explicit ExportRoot(const Module& module);
  ~ExportRoot();
  ExportRoot(const ExportRoot&) = delete;

  /// Buffers that forward has put other tensors in the place of, and those. A parameter's place is refused.
  std::vector<std::pair<Tensor, Tensor>> replaced_buffers() const;

 private:
  struct Kept {
    const std::string* name;  // in its own module
    Tensor* place;
    Tensor tensor;
    bool is_buffer;
  };

  const void* before_;
  std::vector<Kept> kept_;
};

/// The module and all below it, as Python prints them.
std::string to_string(const Module& module);
std::ostream& operator<<(std::ostream& out, const Module& module);

/// The modules that come with the library: PyTorch's type name, and `input` as forward's parameter.
class Layer : public Module {
 public:
  std::vector<std::string> argument_names() const override { return {"input"}; }
  std::string type_name() const override { return type_; }

 protected:
  explicit Layer(const char* type) : type_(type) {}
  /// The submodule at an index; an IndexError where there is none.
  Module& child(size_t index) const;

 private:
  const char* type_;
};

}  // namespace nn
}  // namespace umbra
