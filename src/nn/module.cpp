#include "umbra/nn/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <ostream>
#include <unordered_set>

#include "umbra/autograd/autograd.h"
#include "umbra/capture/tracer.h"

namespace umbra::nn {

struct Module::State {
  struct Parameter {
    std::string name;
    std::unique_ptr<Tensor> tensor;  // where references of members lead
  };
  struct Buffer {
    std::string name;
    std::unique_ptr<Tensor> tensor;
    bool persistent;
    bool held = false;  // a forward ran while somebody else, a member as a rule, held the same tensor
  };
  struct Child {
    std::string name;
    std::shared_ptr<State> state;
  };
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<Child> children;
  std::vector<std::shared_ptr<Module>> kept;  // children that live here, as those of lists do
  std::vector<Module*> objects;               // the modules that share this, oldest first
  std::mutex objects_mutex;
  std::weak_ptr<State> parent;  // the first module this one was added to, and under which name
  std::string name;
  bool training = true;
  Tensor (*plain_forward)(Module& module, const Tensor& x) = nullptr;

  /// The module that stands for all that share this; null where none is left.
  Module* object() const { return objects.empty() ? nullptr : objects.front(); }
  void enter(Module* module) {
    std::lock_guard lock(objects_mutex);
    objects.push_back(module);
  }
  /// In the place of one that it was moved from: that one has lost what the class keeps besides.
  void enter_before(Module* module, Module* moved_from) {
    std::lock_guard lock(objects_mutex);
    objects.insert(std::find(objects.begin(), objects.end(), moved_from), module);
  }
  void leave(Module* module) {
    std::lock_guard lock(objects_mutex);
    objects.erase(std::find(objects.begin(), objects.end(), module));
  }
  void belong_to(const std::shared_ptr<State>& owner, const std::string& as) {
    if (!parent.expired()) return;
    parent = owner;
    name = as;
  }

  void check_name(const std::string& wanted) const {
    check<KeyError>(!wanted.empty(), "a parameter, buffer or module name can't be empty string \"\"");
    check<KeyError>(wanted.find('.') == std::string::npos,
                    "a parameter, buffer or module name can't contain \".\", got: ", wanted);
    auto taken = [&](const auto& list) {
      return std::any_of(list.begin(), list.end(), [&](const auto& item) { return item.name == wanted; });
    };
    check<KeyError>(!taken(parameters) && !taken(children) && !taken(buffers), "attribute '", wanted,
                    "' already exists");
  }

  /// A member that was a handle on a buffer and is one on another tensor now: what it holds cannot be known here.
  void check_current(const Buffer& buffer) const {
    if (!buffer.held || !buffer.tensor->defined() || buffer.tensor->impl()->use_count() > 1) return;
    fail("the buffer '", buffer.name,
         "' was registered as one tensor, and the module's member is another one now: write to it in place, or declare "
         "the member as a reference to what buffer() returns");
  }
  /// Calls `visit(prefix, state)` with this and all below, as often as they are named.
  template <class F> void each(const std::string& prefix, const F& visit) const;
  /// The same, each of them once.
  template <class F> void each_once(const F& visit) const {
    std::unordered_set<const State*> seen;
    visit_once("", visit, seen);
  }

 private:
  template <class F>
  void visit_once(const std::string& prefix, const F& visit, std::unordered_set<const State*>& seen) const;
};

struct Module::Place final : RefCounted {
  Place(std::shared_ptr<State> owner, std::string name) : owner(std::move(owner)), name(std::move(name)) {}
  std::weak_ptr<State> owner;
  std::string name;
};

namespace {
thread_local const void* g_export_root = nullptr;

std::string short_name(const std::string& type) { return type.substr(type.rfind('.') + 1); }

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}
}  // namespace

template <class F> void Module::State::each(const std::string& prefix, const F& visit) const {
  visit(prefix, *this);
  for (const Child& child : children) child.state->each(join(prefix, child.name), visit);
}
template <class F>
void Module::State::visit_once(const std::string& prefix, const F& visit,
                               std::unordered_set<const State*>& seen) const {
  if (!seen.insert(this).second) return;
  visit(prefix, *this);
  for (const Child& child : children) child.state->visit_once(join(prefix, child.name), visit, seen);
}

// ---- one object, and those that share with it ----

Module::Module() : state_(std::make_shared<State>()) { state_->enter(this); }
Module::Module(const Module& other) : state_(other.state_) { state_->enter(this); }
Module::Module(Module&& other) noexcept : state_(other.state_), place_(std::move(other.place_)) {
  state_->enter_before(this, &other);
}
Module::~Module() { state_->leave(this); }

Module& Module::operator=(const Module& other) {
  if (state_ == other.state_) return *this;
  std::shared_ptr<State> owner = place_ ? place_->owner.lock() : nullptr;
  if (owner) {
    for (State::Child& child : owner->children)
      if (child.name == place_->name) child.state = other.state_;
    other.state_->belong_to(owner, place_->name);
  }
  state_->leave(this);
  state_ = other.state_;
  state_->enter(this);
  return *this;
}
Module& Module::operator=(Module&& other) {
  *this = std::as_const(other);
  if (!place_) place_ = std::move(other.place_);
  return *this;
}

void Module::start_anew() {
  bool training = state_->training;
  state_->leave(this);
  state_ = std::make_shared<State>();
  state_->enter(this);
  state_->training = training;
  place_ = nullptr;
}

// ---- running ----

Tensor Module::forward(Tensor x) {
  if (state_->plain_forward) return state_->plain_forward(*this, x);
  fail<NotImplementedError>("Module [", short_name(type_name()), "] is missing the required \"forward\" function");
}

void Module::set_plain_forward(Tensor (*forward)(Module& module, const Tensor& x)) { state_->plain_forward = forward; }

namespace {
[[noreturn]] void refuse_count(const Module& module, size_t count) {
  fail<TypeError>(short_name(module.type_name()), ".forward() takes another number of inputs than the ", count,
                  " that were given");
}
}  // namespace
Tensor Module::forward(Tensor, Tensor) { refuse_count(*this, 2); }
Tensor Module::forward(Tensor, Tensor, Tensor) { refuse_count(*this, 3); }

std::vector<Tensor> Module::forward_many(std::vector<Tensor> inputs) {
  switch (inputs.size()) {
    case 1: return {forward(std::move(inputs[0]))};
    case 2: return {forward(std::move(inputs[0]), std::move(inputs[1]))};
    case 3: return {forward(std::move(inputs[0]), std::move(inputs[1]), std::move(inputs[2]))};
    default: refuse_count(*this, inputs.size());
  }
}

// A module is a handle: calling it through a const one is as good as through a copy.
Tensor Module::operator()(const Tensor& x) const {
  Running scope(*this);
  return const_cast<Module*>(this)->forward(x);
}
Tensor Module::operator()(const Tensor& x, const Tensor& y) const {
  Running scope(*this);
  return const_cast<Module*>(this)->forward(x, y);
}
Tensor Module::operator()(const Tensor& x, const Tensor& y, const Tensor& z) const {
  Running scope(*this);
  return const_cast<Module*>(this)->forward(x, y, z);
}

std::vector<Tensor> Module::call(std::vector<Tensor> inputs) const {
  Running scope(*this);
  return const_cast<Module*>(this)->forward_many(std::move(inputs));
}

Module::Running::Running(const Module& module) {
  for (State::Buffer& b : module.state_->buffers) b.held |= b.tensor->defined() && b.tensor->impl()->use_count() > 1;
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

std::string Module::name() const { return short_name(type_name()); }

ExportRoot::ExportRoot(const Module& module) : before_(std::exchange(g_export_root, module.state_.get())) {
  module.state_->each_once([&](const std::string&, const Module::State& state) {
    for (const auto& p : state.parameters) kept_.push_back({&p.name, p.tensor.get(), *p.tensor, false});
    for (const auto& b : state.buffers) kept_.push_back({&b.name, b.tensor.get(), *b.tensor, true});
  });
}

ExportRoot::~ExportRoot() {
  for (Kept& k : kept_) *k.place = k.tensor;
  g_export_root = before_;
}

std::vector<std::pair<Tensor, Tensor>> ExportRoot::replaced_buffers() const {
  std::vector<std::pair<Tensor, Tensor>> replaced;
  for (const Kept& k : kept_) {
    if (k.place->impl() == k.tensor.impl()) continue;
    check<NotImplementedError>(k.is_buffer && k.tensor.defined() && k.place->defined(), "forward() replaces '", *k.name,
                               "', which a program can only do with a buffer that is there before and afterwards");
    replaced.emplace_back(k.tensor, *k.place);
  }
  return replaced;
}

// ---- registration ----

void Module::place(std::string name, Module& module) {
  state_->check_name(name);
  module.state_->belong_to(state_, name);
  state_->children.push_back({name, module.state_});
  module.place_ = make_counted<Place>(state_, std::move(name));
}

void Module::keep(std::string name, std::shared_ptr<Module> module) {
  place(std::move(name), *module);
  state_->kept.push_back(std::move(module));
}

Tensor& Module::parameter(std::string name, Tensor tensor) {
  state_->check_name(name);
  if (tensor.defined() && (tensor.is_floating_point() || tensor.is_complex())) tensor.requires_grad_();
  state_->parameters.push_back({std::move(name), std::make_unique<Tensor>(std::move(tensor))});
  return *state_->parameters.back().tensor;
}

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  Tensor& registered = parameter(std::move(name), std::move(tensor));
  if (registered.defined() && !requires_grad) registered.requires_grad_(false);
  return registered;
}

Tensor& Module::buffer(std::string name, Tensor tensor, bool persistent) {
  state_->check_name(name);
  state_->buffers.push_back({std::move(name), std::make_unique<Tensor>(std::move(tensor)), persistent});
  return *state_->buffers.back().tensor;
}

// ---- what it consists of ----

NamedModules Module::children() const {
  NamedModules out;
  out.reserve(state_->children.size());
  for (const State::Child& child : state_->children)
    if (Module* object = child.state->object()) out.push_back({child.name, object});
  return out;
}

Module& Layer::child(size_t index) const {
  NamedModules all = children();
  check<IndexError>(index < all.size(), "index ", index, " is out of range");
  return *all[index].module;
}

NamedModules Module::named_modules() const {
  NamedModules out;
  state_->each_once([&](const std::string& prefix, const State& state) {
    Module* object = &state == state_.get() ? const_cast<Module*>(this) : state.object();
    if (object) out.push_back({prefix, object});
  });
  return out;
}

std::vector<Module*> Module::modules(bool include_self) const {
  std::vector<Module*> out = named_modules().values();
  if (!include_self) out.erase(out.begin());
  return out;
}

NamedTensors Module::named_parameters() const {
  NamedTensors out;
  std::unordered_set<const TensorImpl*> seen;
  state_->each_once([&](const std::string& prefix, const State& state) {
    for (const auto& [name, tensor] : state.parameters)
      if (tensor->defined() && seen.insert(tensor->impl()).second) out.push_back({join(prefix, name), *tensor});
  });
  return out;
}

NamedTensors Module::named_buffers() const {
  NamedTensors out;
  std::unordered_set<const TensorImpl*> seen;
  state_->each_once([&](const std::string& prefix, const State& state) {
    for (const State::Buffer& b : state.buffers) {
      state.check_current(b);
      if (b.tensor->defined() && seen.insert(b.tensor->impl()).second) out.push_back({join(prefix, b.name), *b.tensor});
    }
  });
  return out;
}

namespace {
Tensor find(const Module& module, const char* kind, const NamedTensors& among, const std::string& path) {
  if (const Tensor* found = among.find(path)) return *found;
  fail<KeyError>(short_name(module.type_name()), " has no ", kind, " '", path, "'");
}
}  // namespace

std::vector<Tensor> Module::parameters() const { return named_parameters().values(); }
std::vector<Tensor> Module::buffers() const { return named_buffers().values(); }
Tensor Module::get_parameter(const std::string& path) const {
  return find(*this, "parameter", named_parameters(), path);
}
Tensor Module::get_buffer(const std::string& path) const { return find(*this, "buffer", named_buffers(), path); }

bool Module::is_persistent(const std::string& buffer) const {
  std::optional<bool> persistent;
  state_->each("", [&](const std::string& prefix, const State& state) {
    for (const State::Buffer& b : state.buffers)
      if (join(prefix, b.name) == buffer) persistent = b.persistent;
  });
  check<KeyError>(persistent.has_value(), "there is no buffer '", buffer, "'");
  return *persistent;
}

// Parameters and persistent buffers as they are, one entry for each name.
StateDict Module::own_state() const {
  StateDict out;
  state_->each("", [&](const std::string& prefix, const State& state) {
    for (const auto& [name, tensor] : state.parameters)
      if (tensor->defined()) out.emplace_back(join(prefix, name), *tensor);
    for (const State::Buffer& b : state.buffers) {
      state.check_current(b);
      if (b.persistent && b.tensor->defined()) out.emplace_back(join(prefix, b.name), *b.tensor);
    }
  });
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
  state_->each_once([&](const std::string&, const State& state) { const_cast<State&>(state).training = on; });
  return *this;
}

bool Module::is_training() const { return state_->training; }

Module& Module::apply(const std::function<void(Module&)>& function) {
  for (const NamedModule& child : children()) child.module->apply(function);
  function(*this);
  return *this;
}

Module& Module::apply(const std::function<void(const std::string& name, Module&)>& function) {
  NamedModules all = named_modules();
  for (auto m = all.rbegin(); m != all.rend(); ++m) function(m->name, *m->module);
  return *this;
}

namespace {
/// Lets the module's tensors and their gradients become what `convert` makes of them.
void convert_all(const Module& module, const std::function<Tensor(const Tensor&)>& convert) {
  NoGrad no_grad;
  auto become = [&](const Tensor& tensor) {
    Tensor now = tensor.detach(), converted = convert(now);
    if (!converted.is_same(now)) autograd::set_data(tensor, converted);
  };
  for (const Tensor& p : module.parameters()) {
    become(p);
    if (Tensor gradient = p.grad(); gradient.defined()) p.set_grad(convert(gradient));
  }
  for (const auto& [name, tensor] : module.named_buffers()) become(tensor);
}
}  // namespace

Module& Module::to(DType dtype) {
  convert_all(*this, [&](const Tensor& t) { return t.is_floating_point() ? t.to(dtype) : t; });
  return *this;
}
Module& Module::to(Device device) {
  convert_all(*this, [&](const Tensor& t) { return t.to(device); });
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

// ---- printing ----

namespace {
/// All lines but the first.
void indent(std::string& text) {
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3) text.replace(at, 1, "\n  ");
}
}  // namespace

std::string to_string(const Module& module) {
  std::string body, extra = module.extra_repr();
  for (const NamedModule& child : module.children()) {
    std::string text = to_string(*child.module);
    indent(text);
    body += "\n  (" + child.name + "): " + text;
  }
  bool has_lines = extra.find('\n') != std::string::npos;
  if (has_lines) indent(extra);
  if (!body.empty() || has_lines) body = (extra.empty() ? "" : "\n  " + extra) + body + "\n";
  return short_name(module.type_name()) + "(" + (body.empty() ? extra : body) + ")";
}
std::ostream& operator<<(std::ostream& out, const Module& module) { return out << to_string(module); }

}  // namespace umbra::nn
