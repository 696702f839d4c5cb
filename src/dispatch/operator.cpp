#include "umbra/dispatch/operator.h"

#include <cxxabi.h>

#include <cstdlib>
#include <utility>

#include "dispatch/layers.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/dispatch/take_composites.h"

namespace umbra {

TensorSpec::TensorSpec(SymIntArrayRef sizes, DType dtype, Device device)
    : sizes(sizes), strides(contiguous_strides(sizes)), dtype(dtype), device(device) {}
TensorSpec::TensorSpec(SymIntArrayRef sizes, SymIntArrayRef strides, DType dtype, Device device)
    : sizes(sizes), strides(strides), dtype(dtype), device(device) {}

Operator::Operator(Schema schema)
    : schema_(std::move(schema)),
      name_(schema_.full_name()),
      frame_size_(std::max(schema_.arguments.size(), schema_.returns.size())),
      is_inplace_(schema_.is_inplace()),
      has_out_(schema_.has_out()),
      is_mutable_(schema_.is_mutable()),
      is_view_(schema_.is_view()) {
  for (size_t i = 0; i < schema_.arguments.size(); ++i) {
    SchemaType::Base base = schema_.arguments[i].type.base;
    if (base == SchemaType::Base::Device) device_position_ = static_cast<int>(i);
    if (base == SchemaType::Base::Tensor || base == SchemaType::Base::Any)
      tensor_positions_.push_back(static_cast<int>(i));
  }
}

const char* name(Backend backend) { return backend == Backend::CPU ? "CPU" : "CUDA"; }

std::string ScalarFunctor::name() const {
  if (!type) return "";
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : type->name();
}

TagSet Operator::all_tags() const {
  TagSet tags = definition_.tags;
  if (!functional_) return tags;
  TagSet shared{Tag::ViewCopy, Tag::NondeterministicSeeded};
  if (!has_tag(Tag::Generated)) shared.add({Tag::Pointwise, Tag::Reduction});
  tags.add(functional_->definition_.tags & shared);
  return tags;
}

const Operator* Operator::functional_form() const {
  return functional_name_.empty() ? functional_ : &get_operator(functional_name_);
}

namespace {
void check_optional(const Schema& schema, int position) {
  const SchemaArgument& a = schema.arguments[static_cast<size_t>(position)];
  check(a.type.optional || a.type.base == SchemaType::Base::Any, schema.name,
        "(): Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #", position, " '",
        a.name, "'");
}

/// Whether an argument before the device, where factories have it, is a layout that is not strided.
bool asks_for_sparse(const Value& value) {
  return value.tag() == Value::Tag::Layout && value.to_layout() != Layout::Strided;
}
}  // namespace

DispatchKeySet Operator::keys(const Value* frame) const {
  DispatchKeySet keys;
  for (int position : tensor_positions_) {
    // PyTorch hands None on to the kernels of users' operators.
    if (__builtin_expect(frame[position].is_none(), 0) && !library_kernels_) check_optional(schema_, position);
    frame[position].each_tensor([&](TensorImpl* t) { keys |= t->keys(); });
  }
  const DispatchState& state = dispatch_state();
  if (device_position_ >= 0 && !frame[device_position_].is_none())
    keys = (keys - kBackendKeys) | backend_key(frame[device_position_].to_device());
  else if ((keys & kBackendKeys).empty()) keys |= DispatchKey::CPU;
  if (device_position_ > 0 && definition_.sparse && asks_for_sparse(frame[device_position_ - 1]))
    keys |= DispatchKey::Sparse;
  return (keys | own_keys_ | state.include) - state.exclude;
}

void Operator::call(Value* frame) const { redispatch(keys(frame), frame); }

namespace {
thread_local const TakeComposites::Function* g_take = nullptr;
}  // namespace

TakeComposites::TakeComposites(Function take) : take_(std::move(take)), before_(std::exchange(g_take, &take_)) {}
TakeComposites::~TakeComposites() { g_take = before_; }
bool offer_composite(const Operator& op, Value* frame) { return g_take && (*g_take)(op, frame); }

void Operator::redispatch(DispatchKeySet keys, Value* frame) const {
  DispatchKey key = keys.highest();
  if (LayerFunction own = kernels_[static_cast<int>(key)]) return own(*this, keys, frame);
  // A composite comes apart at autograd or below, whichever is first: its parts pass through the layers instead of it.
  // One that has a kernel as well stays whole where nobody looks and nothing is differentiated.
  if (definition_.composite && key <= DispatchKey::Autograd) {
    constexpr DispatchKeySet kNobodyLooks = kBackendKeys | DispatchKey::Fake | DispatchKey::Autograd;
    bool whole = definition_.meta && definition_.not_differentiable && (keys - kNobodyLooks).empty();
    if (!whole) return offer_composite(*this, frame) ? void() : definition_.composite(frame);
  }
  (takes_functions() ? function_layer : layer_function)(key)(*this, keys, frame);
}

std::vector<Value> Operator::operator()(std::vector<Value> arguments) const {
  check<TypeError>(arguments.size() <= argument_count(), name_, "() takes ", argument_count(), " arguments but ",
                   arguments.size(), " were given");
  Frame frame(*this);
  for (size_t i = 0; i < argument_count(); ++i) {
    if (i < arguments.size()) {
      frame[i] = std::move(arguments[i]);
      continue;
    }
    const SchemaArgument& a = schema_.arguments[i];
    check<TypeError>(a.default_value.has_value(), name_, "() is missing value for argument '", a.name, "'");
    frame[i] = *a.default_value;
  }
  call(frame.data());
  std::vector<Value> results;
  for (size_t i = 0; i < return_count(); ++i) results.push_back(std::move(frame[i]));
  return results;
}

}  // namespace umbra
