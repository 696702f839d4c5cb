#include "umbra/dispatch/dispatcher.h"

#include <algorithm>
#include <map>

#include "dispatch/layers.h"
#include "umbra/core/wrapped_number.h"

namespace umbra {

namespace {
// initial-exec: the dispatcher reads this on every call, and the general model would cost a function call each time.
thread_local DispatchState g_state __attribute__((tls_model("initial-exec")));
thread_local std::vector<IntrusivePtr<Mode>> g_modes;

// Plain data, so that layers may register themselves before any constructor of this file has run.
LayerFunction g_layers[static_cast<int>(DispatchKey::Count)];
LayerFunction g_function_layers[static_cast<int>(DispatchKey::Count)];

void refuse_functions(const Operator& op, DispatchKeySet keys, Value*) {
  fail<NotImplementedError>(op.name(), " takes functions, which the layer of dispatch key ",
                            static_cast<int>(keys.highest()), " cannot carry yet");
}
}  // namespace

DispatchState& dispatch_state() { return g_state; }

Tensor (*value_of_ended)(const Tensor& tensor) = [](const Tensor& tensor) { return tensor; };

LayerFunction layer_function(DispatchKey key) {
  LayerFunction f = g_layers[static_cast<int>(key)];
  if (__builtin_expect(!f, 0)) fail("no layer serves dispatch key ", static_cast<int>(key));
  return f;
}

namespace {
using OwnLayers = std::map<std::pair<const Operator*, DispatchKey>, LayerFunction>;
OwnLayers& own_layers() {
  static auto& layers = *new OwnLayers;  // filled while the library is loaded, read from then on
  return layers;
}
}  // namespace

LayerFunction own_layer(const Operator& op, DispatchKey key) {
  auto found = own_layers().find({&op, key});
  return found == own_layers().end() ? nullptr : found->second;
}

void set_own_layer(Operator& op, DispatchKey key, LayerFunction function) {
  own_layers()[{&op, key}] = function;
  op.set_layer_kernel(key, function);
}

LayerFunction function_layer(DispatchKey key) {
  LayerFunction f = g_function_layers[static_cast<int>(key)];
  return f ? f : refuse_functions;
}

RegisterFunctionLayer::RegisterFunctionLayer(DispatchKey key, LayerFunction function) {
  g_function_layers[static_cast<int>(key)] = function;
}

RegisterLayer::RegisterLayer(DispatchKey key, LayerFunction function) { g_layers[static_cast<int>(key)] = function; }

const std::vector<IntrusivePtr<Mode>>& mode_stack() { return g_modes; }

Mode* active_mode(DispatchKey key) {
  for (auto it = g_modes.rbegin(); it != g_modes.rend(); ++it)
    if ((*it)->key() == key) return it->get();
  return nullptr;
}

EnterMode::EnterMode(IntrusivePtr<Mode> mode) : mode_(mode.get()), depth_(g_modes.size()), before_(g_state) {
  push_mode(std::move(mode));
}
EnterMode::~EnterMode() {
  // Leaving a mode leaves those entered inside it, too; their own scopes, should they end later, find nothing to do.
  if (depth_ >= g_modes.size() || g_modes[depth_].get() != mode_) return;
  g_modes.resize(depth_);
  g_state = before_;
}

void push_mode(IntrusivePtr<Mode> mode) {
  g_state.include |= mode->key();
  g_state.exclude = g_state.exclude - mode->key();
  g_modes.push_back(std::move(mode));
}

void pop_mode(const Mode* mode) {
  check(!g_modes.empty() && g_modes.back().get() == mode, "modes must be left in the reverse order of entering them");
  DispatchKey key = mode->key();
  g_modes.pop_back();
  if (!active_mode(key)) g_state.include = g_state.include - key;
}

WithoutMode::WithoutMode(DispatchKey key) : before_(g_state) {
  for (size_t i = g_modes.size(); i-- > 0;) {
    if (g_modes[i]->key() != key) continue;
    mode_ = g_modes[i];
    position_ = i;
    g_modes.erase(g_modes.begin() + static_cast<ptrdiff_t>(i));
    break;
  }
  if (!active_mode(key)) g_state.include = g_state.include - key;
}
WithoutMode::~WithoutMode() {
  if (mode_) g_modes.insert(g_modes.begin() + static_cast<ptrdiff_t>(std::min(position_, g_modes.size())), mode_);
  g_state = before_;
}

void pass_to_subclass(const Operator& op, DispatchKeySet keys, Value* frame) {
  layer_function(DispatchKey::Subclass)(op, keys.below(DispatchKey::Proxy), frame);
}

namespace {

thread_local bool g_may_only_look = false;

std::vector<const TensorImpl*> tensors_of(const Value* values, size_t count) {
  std::vector<const TensorImpl*> out;
  for (size_t i = 0; i < count; ++i) values[i].each_tensor([&](TensorImpl* t) { out.push_back(t); });
  return out;
}

/// Whether a mode passed this argument on. A number that stands for a tensor is a tensor of its own in each call, and
/// a function that went through Python a new object.
bool passed_on(const Value& given, const Value& seen) {
  if (given.equals(seen)) return true;
  if (given.tag() != seen.tag()) return false;
  if (given.tag() == Value::Tag::Object) return tensors_of(&given, 1) == tensors_of(&seen, 1);
  auto is_number = [](const Value& value) {
    return value.tag() == Value::Tag::Tensor && value.tensor().impl()->is_wrapped_number();
  };
  return is_number(given) && is_number(seen) &&
         Value(wrapped_scalar(given.tensor())).equals(Value(wrapped_scalar(seen.tensor())));
}

/// Sees what a user's mode makes of one call.
class Watch final : public DispatchMode {
 public:
  Watch(const Operator& op, const Value* frame) : op_(op), arguments_(frame, frame + op.argument_count()) {}
  bool handle(const Operator& op, Value* frame) override {
    bool same = &op == &op_ && std::equal(arguments_.begin(), arguments_.end(), frame, passed_on);
    op.call(frame);
    if (same) results_ = tensors_of(frame, op.return_count());
    return true;
  }
  void check_passed_on(const Value* frame) const {
    check(tensors_of(frame, op_.return_count()) == results_,
          "a dispatch mode inside the captured function changes what ", op_.name(),
          " does, below autograd; the program is recorded above it and would not have the change. Capture it "
          "with make_fx, or change the function.");
  }

 private:
  const Operator& op_;
  std::vector<Value> arguments_;
  std::vector<const TensorImpl*> results_;
};

bool handle_watched(DispatchMode& mode, const Operator& op, Value* frame) {
  auto watch = make_counted<Watch>(op, frame);
  {
    EnterMode scope(watch);
    if (!mode.handle(op, frame)) return false;
  }
  watch->check_passed_on(frame);
  return true;
}

void user_mode_layer(const Operator& op, DispatchKeySet keys, Value* frame) {
  IntrusivePtr<Mode> mode(active_mode(DispatchKey::UserMode));
  check<AssertionError>(mode.get() != nullptr, "a call reached the layer of user modes, and none is active");
  ExcludeKeys below(DispatchKey::Autograd);
  {
    WithoutMode off(DispatchKey::UserMode);
    auto& handler = static_cast<DispatchMode&>(*mode);
    bool watched = g_may_only_look && !dynamic_cast<Watch*>(&handler);
    if (watched ? handle_watched(handler, op, frame) : handler.handle(op, frame)) return;
  }
  pass_to_subclass(op, keys, frame);
}

// Where no binding with tensor classes is loaded, nobody is there to ask.
void no_subclass_layer(const Operator& op, DispatchKeySet, Value*) {
  fail<TypeError>("Multiple dispatch failed for '", op.name(), "': every mode passed the call on");
}

const RegisterLayer kUserMode(DispatchKey::UserMode, user_mode_layer);
const RegisterFunctionLayer kUserModeFunctions(DispatchKey::UserMode, user_mode_layer);
const RegisterLayer kSubclass(DispatchKey::Subclass, no_subclass_layer);

}  // namespace

ModesMayOnlyLook::ModesMayOnlyLook(const Mode* mode) : before_(g_may_only_look) {
  for (auto it = g_modes.rbegin(); it != g_modes.rend() && it->get() != mode; ++it)
    if ((*it)->key() == DispatchKey::UserMode) g_may_only_look = true;
}
ModesMayOnlyLook::~ModesMayOnlyLook() { g_may_only_look = before_; }

}  // namespace umbra
