#include "umbra/autograd/saved_tensor.h"

#include "autograd/hooks_off.h"
#include "autograd/meta.h"
#include "autograd/user_code.h"
#include "core/per_thread.h"
#include "core/type_text.h"
#include "dispatch/layers.h"
#include "umbra/generated/functions.h"

namespace umbra::autograd {

namespace {

struct HookStack {
  std::vector<SavedTensorHooks> hooks;
  std::optional<std::string> disabled;
};
HookStack& hook_stack() {
  static PerThread<HookStack> stack;
  return *stack;
}
// Read on every save; the stack itself is behind a function call.
constinit thread_local bool g_has_hooks = false;

constexpr const char* kReleased =
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you "
    "need to backward through the graph a second time or if you need to access saved tensors after calling backward.";

/// Whether a program is being recorded: its graph has no use for the views that users' modes are shown.
bool is_recorded() {
  return active_mode(DispatchKey::Proxy) || active_mode(DispatchKey::PreProxy) ||
         active_mode(DispatchKey::Functionalize);
}

}  // namespace

void (*saved_tensor_taken)(const Tensor& tensor) = [](const Tensor&) {};

bool has_saved_tensor_hooks() { return g_has_hooks; }

WithoutSavedTensorHooks::WithoutSavedTensorHooks() : before_(std::exchange(hook_stack().hooks, {})) {
  g_has_hooks = false;
}
WithoutSavedTensorHooks::~WithoutSavedTensorHooks() {
  hook_stack().hooks = std::move(before_);
  g_has_hooks = !hook_stack().hooks.empty();
}

KeepSavedTensorHooks::KeepSavedTensorHooks() {
  if (g_has_hooks) before_ = hook_stack().hooks;
}
KeepSavedTensorHooks::~KeepSavedTensorHooks() {
  if (!g_has_hooks && before_.empty()) return;
  hook_stack().hooks = std::move(before_);
  g_has_hooks = !hook_stack().hooks.empty();
}

std::string full_name(const Node& node) {
  std::string name = node.name();
  // What PyTorch has by hand in C++ and not by operator.
  bool by_hand = name == "CopySlices" || name == "CopyBackwards" || name == "AccumulateGrad";
  return by_hand ? "torch::autograd::" + name : name;
}

std::string forward_name(const Node& node) {
  constexpr std::string_view suffix = "Backward";
  std::string name = full_name(node);
  size_t end = name.find_last_not_of("0123456789") + 1;
  std::string_view text = std::string_view(name).substr(0, end), number = std::string_view(name).substr(end);
  if (!text.ends_with(suffix) || text == suffix) return name;
  return concat(text.substr(0, end - suffix.size()), number == "0" ? "" : number);
}

struct SavedTensor::Packed {
  Value value;
  SavedTensorHooks hooks;
  Edge edge;  // the history of an input
  bool is_leaf = false;
};

SavedTensor::SavedTensor(const Tensor& tensor, bool is_output) : defined_(tensor.defined()) {
  if (!defined_) return;
  check(!tensor.impl()->is_inference(),
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
        "computation tracked by "
        "autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
        "`torch.no_grad()` "
        "instead of `torch.inference_mode()`.");
  version_ = tensor.version();
  requires_grad_ = autograd::requires_grad(tensor.impl());
  is_output_ = is_output && requires_grad_ && !tensor.is_leaf();
  if (is_output_) output_number_ = autograd::output_number(tensor);
  // The numbers of users' expressions are no tensors of theirs.
  if (!g_has_hooks || tensor.impl()->is_wrapped_number()) data_ = is_output_ ? share_data(tensor) : tensor;
  else pack(tensor, hook_stack().hooks.back());
}

void SavedTensor::pack(const Tensor& tensor, SavedTensorHooks hooks) {
  auto packed = std::make_shared<Packed>();
  packed->hooks = std::move(hooks);
  packed->is_leaf = tensor.is_leaf();
  if (!is_output_ && requires_grad_) packed->edge = gradient_edge(tensor);
  NoGrad guard;
  // An input goes as it is; an output would keep its own node alive.
  packed->value = packed->hooks.pack(is_output_ ? share_data(tensor) : tensor);
  check(tensor.version() == version_,
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
        "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need "
        "to perform in-place operations on the input to a pack hook.");
  packed_ = std::move(packed);
}

void SavedTensor::register_hooks(SavedTensorHooks hooks) {
  check(!released_, "Calling register_hooks on a saved tensor after it has been freed. ", kReleased);
  check(!packed_,
        "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
        "hooks is allowed at a time.");
  check(defined_, "Calling register_hooks on a saved tensor with value None is forbidden");
  note_user_code();
  pack(data_, std::move(hooks));
  data_ = Tensor();
}

void SavedTensor::set_rebased(const IntrusivePtr<Node>& base_node) {
  rebased_ = WeakPtr<Node>(base_node);
  is_rebased_ = true;
}

void SavedTensor::release() {
  data_ = Tensor();
  packed_ = nullptr;
  released_ = defined_;
}

void SavedTensor::check_version(const IntrusivePtr<Node>& owner) const {
  if (data_.version() == version_) return;
  std::string history;
  IntrusivePtr<Node> node = is_output_ ? owner : grad_fn(data_);
  uint32_t number = is_output_ ? output_number_ : output_number(data_);
  if (node) history = concat(", which is output ", number, " of ", forward_name(*node), ",");
  fail("one of the variables needed for gradient computation has been modified by an inplace operation: [",
       type_text(data_), " ", to_string(data_.sym_sizes()), "]", history, " is at version ", data_.version(),
       "; expected version ", version_,
       " instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
       "torch.autograd.set_detect_anomaly(True, check_nan=False).");
}

Tensor SavedTensor::unpack(const IntrusivePtr<Node>& owner) const {
  check(!released_, kReleased);
  if (!defined_) return {};
  if (packed_) {
    Tensor data = packed_->hooks.unpack(packed_->value);
    check<TypeError>(data.defined(),
                     "Output of saved tensor unpack_hook expected to be a Tensor but got result of another type");
    return is_grad_enabled() && requires_grad_ ? with_history(share_data(data), owner) : data;
  }
  check_version(owner);
  check(
      is_output_ || !requires_grad_ || autograd::requires_grad(data_.impl()) || data_.keys().has(DispatchKey::Tracked),
      "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, "
      "please "
      "use out-of-place `.detach()` instead");
  // What a transform that has ended kept is its value: nothing is recorded on its tape any more.
  if (data_.keys().has(DispatchKey::Tracked))
    if (Tensor value = value_of_ended(data_); !value.is_same(data_)) return value;
  Tensor tensor = data_;
  if (is_output_ && is_grad_enabled()) tensor = with_history(share_data(data_), owner);
  else if (is_output_ && active_mode(DispatchKey::UserMode) && !is_recorded()) tensor = share_data(data_);
  if (active_mode(DispatchKey::PreProxy)) saved_tensor_taken(tensor);
  return tensor;
}

Tensor SavedTensor::with_history(Tensor data, const IntrusivePtr<Node>& owner) const {
  AutogradMeta& meta = ensure_meta(data.impl());
  if (is_rebased_) {
    IntrusivePtr<Node> base_node = rebased_.lock();
    check(static_cast<bool>(base_node), "No grad_fn for a saved tensor that is a view");
    meta.grad_fn = view_node_of(base_node, data);
    meta.output_number = 0;
  } else if (is_output_) {
    meta.grad_fn = owner;
    meta.output_number = output_number_;
  } else if (packed_->is_leaf) {
    meta.requires_grad = true;
    meta.rarely().accumulator = WeakPtr<Node>(packed_->edge.node);
  } else {
    meta.grad_fn = packed_->edge.node;
    meta.output_number = packed_->edge.input;
  }
  return data;
}

// ---- hooks ----

void push_saved_tensor_hooks(SavedTensorHooks hooks) {
  note_user_code();
  HookStack& stack = hook_stack();
  if (stack.disabled) fail(*stack.disabled);
  stack.hooks.push_back(std::move(hooks));
  g_has_hooks = true;
}

void pop_saved_tensor_hooks() {
  HookStack& stack = hook_stack();
  check(!stack.hooks.empty(), "there are no saved tensor hooks to leave");
  stack.hooks.pop_back();
  g_has_hooks = !stack.hooks.empty();
}

const SavedTensorHooks* top_saved_tensor_hooks() {
  HookStack& stack = hook_stack();
  return stack.hooks.empty() ? nullptr : &stack.hooks.back();
}

WithSavedTensorHooks::WithSavedTensorHooks(SavedTensorHooks hooks) { push_saved_tensor_hooks(std::move(hooks)); }
WithSavedTensorHooks::~WithSavedTensorHooks() { pop_saved_tensor_hooks(); }

void disable_saved_tensor_hooks(std::optional<std::string> message) { hook_stack().disabled = std::move(message); }
const std::optional<std::string>& saved_tensor_hooks_disabled() { return hook_stack().disabled; }

}  // namespace umbra::autograd
