#include "fake/seen_calls.h"

#include <mutex>
#include <unordered_map>

#include "dispatch/data_dependent.h"
#include "umbra/core/grad_mode.h"
#include "umbra/fake/fake_mode.h"

namespace umbra {

bool g_count_fake_calls = false;

namespace {

thread_local bool g_inside_a_call = false;  // what a call is made of is not counted
bool crosscheck = false;

struct Seen {
  std::mutex mutex;
  FakeCacheInfo info;
  /// By key: how the results looked, or the reason for which they could not be kept.
  struct Entry {
    std::string results, bypass;
  };
  std::unordered_map<std::string, Entry> calls;
};
Seen& seen() {
  static Seen one;
  return one;
}

template <class T> void put(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& key, std::string_view text) {
  put(key, text.size());
  key += text;
}

void put_sizes(std::string& key, SymIntArrayRef sizes) {
  put(key, sizes.size());
  for (SymInt s : sizes) put(key, s.raw());
}

void put_metadata(std::string& key, const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  put(key, t.dtype());
  put(key, t.device().type);
  put(key, t.device().index);
  put(key, t.layout());
  put_sizes(key, t.sym_sizes());
  put_sizes(key, t.sym_strides());
  put(key, t.sym_storage_offset().raw());
  for (bool bit :
       {t.requires_grad(), t.is_conj(), t.is_neg(), impl.is_inference(), impl.is_wrapped_number(), is_marked_zero(t)})
    key += bit ? '1' : '0';
}

void put_tensor(std::string& key, std::string& bypass, const FakeModeImpl& mode, const Tensor& t) {
  if (!t.defined()) return put_text(key, "None");
  if (t.keys().has(DispatchKey::Sparse)) bypass = concat(t.layout(), " tensor");
  else if (!t.is_fake() && !t.impl()->is_wrapped_number()) bypass = "non-fake tensor";
  if (!bypass.empty()) return;
  if (t.is_fake() && fake_mode_of(t) != &mode) bypass = "not our fake";
  else if (fake_constant(t)) bypass = "constant attribute";
  put_metadata(key, t);
}

void put_value(std::string& key, std::string& bypass, const FakeModeImpl& mode, const Value& value) {
  put(key, value.tag());
  switch (value.tag()) {
    case Value::Tag::Tensor: return put_tensor(key, bypass, mode, value.tensor_ref());
    case Value::Tag::TensorList:
      put(key, value.tensor_list().size());
      for (const Tensor& t : value.tensor_list()) put_tensor(key, bypass, mode, t);
      return;
    case Value::Tag::List:
      put(key, value.list().size());
      for (const Value& v : value.list()) put_value(key, bypass, mode, v);
      return;
    case Value::Tag::SymFloat:
    case Value::Tag::SymBool: bypass = "symbolic shape"; return;
    case Value::Tag::Object: bypass = "function argument"; return;
    case Value::Tag::IntList: return put_sizes(key, value.int_list());
    case Value::Tag::SymInt: return put(key, value.to_sym_int().raw());
    case Value::Tag::Generator: return;  // draws numbers; says nothing about how they look
    default: return put_text(key, to_string(value));
  }
}

/// Why a call of this operator says nothing about the next, or nothing.
std::string bypass_of(const Operator& op, ArrayRef<Value> arguments) {
  if (op.has_tag(Tag::DataDependentOutput)) return "data dependent output";
  if (op.has_tag(Tag::DynamicOutputShape)) {
    // An index of numbers has a size that follows from metadata; a mask has not.
    bool masks = op.schema().name != "index" || op.schema().overload != "Tensor";
    if (!masks && arguments.size() > 1)
      arguments[1].each_tensor(
          [&](TensorImpl* t) { masks |= t->dtype() == DType::Bool || t->dtype() == DType::UInt8; });
    if (masks) return "dynamic output shape";
  }
  if (op.has_tag(Tag::InPlaceView)) return "inplace view";
  if (op.has_tag(Tag::LiftsData)) return arguments[0].tensor_ref().is_fake() ? "lift" : "non-fake tensor";
  if (op.library_kernels()) return "non-builtin";
  return op.is_composite() && op.is_view() ? "CompositeImplicitAutograd" : "";
}

/// Why results like these could not have been kept, or nothing.
std::string bypass_of_results(const Operator& op, const Value* results) {
  for (size_t i = 0; i < op.return_count(); ++i) {
    if (results[i].is_tensor_list() || results[i].is_list()) return "non-FakeTensor output";
    if (results[i].is_symbolic()) return "data dependent symnode";
    if (!results[i].is_tensor()) continue;
    const Tensor& t = results[i].tensor_ref();
    if (t.layout() == Layout::SparseCoo) return "sparse output";
    if (t.keys().has(DispatchKey::Sparse)) return "sparse compressed output";
    if (!t.is_fake()) return "non-FakeTensor output";
    if (fake_constant(t)) return "constant attribute";
    if (is_marked_zero(t)) return "dispatch_key_set mismatch";
  }
  return "";
}

/// How results look; nothing where symbols are part of it, of which more may be known the next time.
std::string describe(const Operator& op, const Value* results) {
  std::string out;
  for (size_t i = 0; i < op.return_count(); ++i) {
    if (!results[i].is_tensor()) continue;
    if (results[i].tensor_ref().is_symbolic()) return "";
    put_metadata(out, results[i].tensor_ref());
  }
  return out;
}

}  // namespace

std::string fake_call_key(const Operator& op, FakeModeImpl& mode, ArrayRef<Value> arguments, std::string& bypass) {
  std::string key;
  bypass = bypass_of(op, arguments);
  put(key, &op);
  put(key, default_dtype());
  put(key, is_inference_mode_enabled());
  put(key, mode.shape_env());
  put(key, mode.options().allow_scalar_outputs);
  put(key, mode.options().allow_dynamic_output_shapes);
  for (const Value& value : arguments)
    if (bypass.empty()) put_value(key, bypass, mode, value);
  return key;
}

SeenCall::SeenCall(const Operator& op, FakeModeImpl& mode, const Value* frame) : outermost_(!g_inside_a_call) {
  if (!outermost_) return;
  g_inside_a_call = true;
  key_ = fake_call_key(op, mode, ArrayRef<Value>(frame, op.argument_count()), bypass_);
  if (bypass_.empty()) return;
  std::lock_guard lock(seen().mutex);
  ++seen().info.bypasses[bypass_];
}

SeenCall::~SeenCall() {
  if (outermost_) g_inside_a_call = false;
}

void SeenCall::finish(const Operator& op, const Value* results) {
  if (!outermost_ || !bypass_.empty()) return;
  std::string now = describe(op, results);
  std::lock_guard lock(seen().mutex);
  FakeCacheInfo& info = seen().info;
  auto [entry, is_new] = seen().calls.try_emplace(std::move(key_));
  if (is_new) entry->second = {now, bypass_of_results(op, results)};
  if (!entry->second.bypass.empty()) ++info.bypasses[entry->second.bypass];
  else ++(is_new ? info.misses : info.hits);
  check(is_new || !crosscheck || !entry->second.bypass.empty() || entry->second.results == now, op.name(),
        ": two calls with equal inputs have results of different metadata");
}

FakeCacheInfo fake_cache_info() {
  std::lock_guard lock(seen().mutex);
  g_count_fake_calls = true;
  FakeCacheInfo info = seen().info;
  info.size = static_cast<int64_t>(seen().calls.size());
  return info;
}

void clear_fake_cache_info() {
  std::lock_guard lock(seen().mutex);
  g_count_fake_calls = true;
  seen().info = {};
  seen().calls.clear();
}

void set_fake_cache_crosscheck(bool on) { crosscheck = on; }
bool fake_cache_crosscheck() { return crosscheck; }

}  // namespace umbra
