#include "umbra/nn/module.h"

#include <cxxabi.h>

#include <unordered_set>

#include "umbra/autograd/autograd.h"
#include "umbra/capture/tracer.h"

namespace umbra::nn {

struct Module::State {
  struct Buffer {
    std::string name;
    Tensor tensor;
    bool persistent;
  };
  std::vector<std::pair<std::string, Tensor>> parameters;
  std::vector<Buffer> buffers;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children;
  std::weak_ptr<State> parent;  // the first module this one was added to, and under which name
  std::string name;
  bool training = true;

  void check_name(const std::string& wanted) const {
    check<KeyError>(!wanted.empty(), "a parameter, buffer or module name can't be empty string \"\"");
    check<KeyError>(wanted.find('.') == std::string::npos,
                    "a parameter, buffer or module name can't contain \".\", got: ", wanted);
    auto taken = [&](const auto& list) {
      for (const auto& [other, item] : list)
        if (other == wanted) return true;
      return false;
    };
    bool found = taken(parameters) || taken(children);
    for (const Buffer& b : buffers) found |= b.name == wanted;
    check<KeyError>(!found, "attribute '", wanted, "' already exists");
  }
};

namespace {
thread_local const void* g_export_root = nullptr;

std::string short_name(const std::string& type) { return type.substr(type.rfind('.') + 1); }

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}
}  // namespace

Module::Module() : state_(std::make_shared<State>()) {}

// ---- running ----

Tensor Module::forward(Tensor) {
  fail<NotImplementedError>("Module [", short_name(type_name()), "] is missing the required \"forward\" function");
}

std::vector<Tensor> Module::forward_many(std::vector<Tensor> inputs) {
  check<TypeError>(inputs.size() == 1, short_name(type_name()), ".forward() takes 1 input but ", inputs.size(),
                   " were given");
  return {forward(std::move(inputs[0]))};
}

// A module is a handle: calling it through a const one is as good as through a copy.
Tensor Module::operator()(const Tensor& x) const {
  Running scope(*this);
  return const_cast<Module*>(this)->forward(x);
}

std::vector<Tensor> Module::call(std::vector<Tensor> inputs) const {
  Running scope(*this);
  return const_cast<Module*>(this)->forward_many(std::move(inputs));
}

Module::Running::Running(const Module& module) {
  if (!active_tracer(DispatchKey::PreProxy) && !active_tracer(DispatchKey::Proxy)) return;
  enter_module(module.path(), module.type_name());
  entered_ = true;
}
Module::Running::~Running() {
  if (entered_) leave_module();
}

std::string Module::path() const {
  std::string path;
  for (std::shared_ptr<State> s = state_; s && s.get() != g_export_root; s = s->parent.lock())
    if (!s->name.empty()) path = path.empty() ? s->name : s->name + "." + path;
  return path;
}

std::string Module::type_name() const {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status),
                                              std::free);
  std::string name = status == 0 ? text.get() : typeid(*this).name();
  for (size_t at; (at = name.find("::")) != std::string::npos;) name.replace(at, 2, ".");
  return name;
}

ExportRoot::ExportRoot(const Module& module) : before_(std::exchange(g_export_root, module.state_.get())) {}
ExportRoot::~ExportRoot() { g_export_root = before_; }

// ---- registration ----

void Module::attach(std::string name, std::shared_ptr<Module> module) {
  state_->check_name(name);
  State& child = *module->state_;
  if (child.parent.expired()) {
    child.parent = state_;
    child.name = name;
  }
  state_->children.emplace_back(std::move(name), std::move(module));
}

Tensor Module::parameter(std::string name, Tensor tensor) {
  state_->check_name(name);
  if (tensor.defined() && (tensor.is_floating_point() || tensor.is_complex())) tensor.requires_grad_();
  state_->parameters.emplace_back(std::move(name), tensor);
  return tensor;
}

Tensor Module::buffer(std::string name, Tensor tensor, bool persistent) {
  state_->check_name(name);
  state_->buffers.push_back({std::move(name), tensor, persistent});
  return tensor;
}

// ---- what it consists of ----

std::vector<NamedModule> Module::children() const {
  std::vector<NamedModule> out;
  out.reserve(state_->children.size());
  for (const auto& [name, child] : state_->children) out.push_back({name, child.get()});
  return out;
}

void Module::collect_modules(const std::string& prefix, std::vector<NamedModule>& out) const {
  for (const NamedModule& seen : out)
    if (seen.module->state_ == state_) return;
  out.push_back({prefix, const_cast<Module*>(this)});
  for (const auto& [name, child] : state_->children) child->collect_modules(join(prefix, name), out);
}

std::vector<NamedModule> Module::named_modules() const {
  std::vector<NamedModule> out;
  collect_modules("", out);
  return out;
}

StateDict Module::named_parameters() const {
  StateDict out;
  std::unordered_set<const TensorImpl*> seen;
  for (const auto& [prefix, module] : named_modules())
    for (const auto& [name, tensor] : module->state_->parameters)
      if (tensor.defined() && seen.insert(tensor.impl()).second) out.emplace_back(join(prefix, name), tensor);
  return out;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> out;
  for (auto& [name, tensor] : named_parameters()) out.push_back(std::move(tensor));
  return out;
}

StateDict Module::named_buffers() const {
  StateDict out;
  std::unordered_set<const TensorImpl*> seen;
  for (const auto& [prefix, module] : named_modules())
    for (const State::Buffer& b : module->state_->buffers)
      if (b.tensor.defined() && seen.insert(b.tensor.impl()).second) out.emplace_back(join(prefix, b.name), b.tensor);
  return out;
}

bool Module::is_persistent(const std::string& buffer) const {
  for (const auto& [prefix, module] : named_modules())
    for (const State::Buffer& b : module->state_->buffers)
      if (join(prefix, b.name) == buffer) return b.persistent;
  fail<KeyError>("there is no buffer '", buffer, "'");
}

namespace {
// Parameters and persistent buffers as they are, one entry for each name.
template <class State> void collect_state(const State& state, const std::string& prefix, StateDict& out) {
  for (const auto& [name, tensor] : state.parameters)
    if (tensor.defined()) out.emplace_back(join(prefix, name), tensor);
  for (const auto& b : state.buffers)
    if (b.persistent && b.tensor.defined()) out.emplace_back(join(prefix, b.name), b.tensor);
}
}  // namespace

StateDict Module::own_state() const {
  StateDict out;
  std::function<void(const State&, const std::string&)> visit = [&](const State& state, const std::string& prefix) {
    collect_state(state, prefix, out);
    for (const auto& [name, child] : state.children) visit(*child->state_, join(prefix, name));
  };
  visit(*state_, "");
  return out;
}

StateDict Module::state_dict() const {
  StateDict out = own_state();
  for (auto& [name, tensor] : out) tensor = tensor.detach();
  return out;
}

// ---- loading ----

namespace {
std::string quoted_list(const std::vector<std::string>& keys) {
  std::string out;
  for (const std::string& key : keys) out += (out.empty() ? "\"" : ", \"") + key + "\"";
  return out;
}
}  // namespace

LoadResult Module::load_state_dict(const StateDict& state, bool strict) {
  LoadResult result;
  StateDict own = own_state();
  std::unordered_map<std::string, const Tensor*> given;
  std::unordered_set<std::string> known;
  for (const auto& [name, tensor] : state) given[name] = &tensor;
  std::vector<std::string> mismatches;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [name, tensor] : own) {
    known.insert(name);
    auto found = given.find(name);
    if (found == given.end()) {
      result.missing_keys.push_back(name);
    } else if (found->second->sizes() != tensor.sizes()) {
      mismatches.push_back(concat(
          "size mismatch for ", name, ": copying a param with shape torch.Size(", to_string(found->second->sizes()),
          ") from checkpoint, the shape in current model is torch.Size(", to_string(tensor.sizes()), ")."));
    } else {
      copies.emplace_back(tensor, *found->second);
    }
  }
  for (const auto& [name, tensor] : state)
    if (!known.contains(name)) result.unexpected_keys.push_back(name);

  std::vector<std::string> errors;
  if (strict && !result.missing_keys.empty())
    errors.push_back("Missing key(s) in state_dict: " + quoted_list(result.missing_keys) + ". ");
  if (strict && !result.unexpected_keys.empty())
    errors.push_back("Unexpected key(s) in state_dict: " + quoted_list(result.unexpected_keys) + ". ");
  errors.insert(errors.end(), mismatches.begin(), mismatches.end());
  if (!errors.empty()) {
    std::string text = "Error(s) in loading state_dict for " + short_name(type_name()) + ":";
    for (const std::string& e : errors) text += "\n\t" + e;
    throw Error(text);
  }
  NoGrad no_grad;
  for (auto& [to, from] : copies) to.copy_(from);
  return result;
}

// ---- what is done to all below ----

Module& Module::train(bool on) {
  for (const NamedModule& m : named_modules()) m.module->state_->training = on;
  return *this;
}

bool Module::is_training() const { return state_->training; }

Module& Module::apply(const std::function<void(Module&)>& function) {
  for (const auto& [name, child] : state_->children) child->apply(function);
  function(*this);
  return *this;
}

Module& Module::to(DType dtype) {
  NoGrad no_grad;
  auto cast = [&](const Tensor& tensor) {
    if (tensor.is_floating_point()) autograd::set_data(tensor, tensor.detach().to(dtype));
  };
  for (const Tensor& p : parameters()) {
    cast(p);
    if (Tensor gradient = p.grad(); gradient.defined()) p.set_grad(gradient.to(dtype));
  }
  for (const auto& [name, tensor] : named_buffers()) cast(tensor);
  return *this;
}

void Module::zero_grad(bool set_to_none) {
  for (const Tensor& p : parameters()) {
    Tensor gradient = p.grad();
    if (!gradient.defined()) continue;
    if (set_to_none) p.set_grad({});
    else gradient.detach().zero_();
  }
}

Module& Module::requires_grad_(bool value) {
  for (Tensor& p : parameters()) p.requires_grad_(value);
  return *this;
}

}  // namespace umbra::nn
