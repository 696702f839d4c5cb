#include "aot/guards.h"

#include <bit>
#include <unordered_map>

#include "aot/graph_bytes.h"
#include "core/per_thread.h"
#include "umbra/autograd/autocast.h"
#include "umbra/core/deterministic.h"
#include "umbra/core/grad_mode.h"

namespace umbra::aot {

namespace {

enum Mode : uint64_t { Grad = 1, Inference = 2, Autocast = 4, Deterministic = 8 };
constexpr int kAutocastType = 8, kDefaultType = 16;

enum Flag : uint64_t { RequiresGrad = 1, Conj = 2, Neg = 4, View = 8, InferenceTensor = 16 };
constexpr int kType = 8, kDevice = 16, kDeviceIndex = 24, kDim = 32;

/// All that is no size of a tensor, in one number.
uint64_t look_of(const Tensor& t) {
  uint64_t flags = t.requires_grad() * RequiresGrad | t.is_conj() * Conj | t.is_neg() * Neg | t.is_view() * View |
                   t.impl()->is_inference() * InferenceTensor;
  return flags | static_cast<uint64_t>(static_cast<uint8_t>(t.dtype())) << kType |
         static_cast<uint64_t>(static_cast<uint8_t>(t.device().type)) << kDevice |
         static_cast<uint64_t>(static_cast<uint8_t>(t.device().index)) << kDeviceIndex |
         static_cast<uint64_t>(t.dim()) << kDim;
}

void add_geometry(std::vector<int64_t>& out, const TensorImpl* t) {
  for (SymInt s : t->sym_sizes()) out.push_back(s.raw());
  for (SymInt s : t->sym_strides()) out.push_back(s.raw());
  out.push_back(t->sym_storage_offset().raw());
}

bool has_geometry(const int64_t* numbers, const TensorImpl* t) {
  for (SymInt s : t->sym_sizes())
    if (s.raw() != *numbers++) return false;
  for (SymInt s : t->sym_strides())
    if (s.raw() != *numbers++) return false;
  return t->sym_storage_offset().raw() == *numbers;
}

/// Whether no two inputs lie in one storage.
bool all_apart(ArrayRef<Value> inputs) {
  constexpr size_t kFew = 16;
  if (inputs.size() <= kFew) {
    const void* seen[kFew];
    size_t count = 0;
    for (const Value& v : inputs) {
      if (!v.is_tensor()) continue;
      const void* storage = v.tensor_ref().storage().get();
      for (size_t i = 0; i < count; ++i)
        if (seen[i] == storage) return false;
      seen[count++] = storage;
    }
    return true;
  }
  // A table with room to spare: most look-ups end where they begin.
  size_t mask = std::bit_ceil(inputs.size() * 2) - 1;
  static PerThread<std::vector<const void*>> of_thread;
  std::vector<const void*>& table = *of_thread;
  table.assign(mask + 1, nullptr);
  for (const Value& v : inputs) {
    if (!v.is_tensor()) continue;
    const void* storage = v.tensor_ref().storage().get();
    size_t place = (reinterpret_cast<uintptr_t>(storage) >> 4) * 0x9E3779B97F4A7C15ull >> 20 & mask;
    for (; table[place]; place = (place + 1) & mask)
      if (table[place] == storage) return false;
    table[place] = storage;
  }
  return true;
}

/// Where tensors, storages and bases were met first.
class Places {
 public:
  int64_t of(const void* what, size_t i) { return first_.try_emplace(what, static_cast<int64_t>(i)).first->second; }

 private:
  std::unordered_map<const void*, int64_t> first_;
};

std::vector<bool> leaves_among(ArrayRef<Value> inputs) {
  std::vector<bool> out;
  for (const Value& v : inputs) out.push_back(v.is_tensor() && v.tensor_ref().is_leaf());
  return out;
}

/// Which inputs are one tensor or share memory, in numbers.
std::vector<int64_t> describe_sharing(ArrayRef<Value> inputs) {
  std::vector<int64_t> out;
  Places places;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_tensor()) continue;
    const Tensor& t = inputs[i].tensor_ref();
    out.push_back(places.of(t.impl(), i));
    int64_t sharing = places.of(t.storage().get(), i);
    out.push_back(sharing);
    // Views of one tensor may become views of an input of the graph: then that one counts too.
    if (sharing == static_cast<int64_t>(i) || !t.is_view()) continue;
    const IntrusivePtr<TensorImpl>& base = t.impl()->view_base();
    out.push_back(places.of(base.get(), i));
    out.push_back(static_cast<int64_t>(base->dtype()));
    out.push_back(base->dim());
    add_geometry(out, base.get());
  }
  return out;
}

bool is_integer(const Value& value) { return value.is_int() || value.is_sym_int(); }

/// Of values that are no tensors. Floats go by their bits: 0.0 and -0.0 differ.
bool same_plain(const Value& a, const Value& b) {
  if (a.tag() != b.tag()) return false;
  switch (a.tag()) {
    case Value::Tag::None: return true;
    case Value::Tag::Int: return a.to_int() == b.to_int();
    case Value::Tag::SymInt: return a.to_sym_int().raw() == b.to_sym_int().raw();
    case Value::Tag::UInt: return a.to_scalar().to_uint() == b.to_scalar().to_uint();
    case Value::Tag::Bool: return a.to_bool() == b.to_bool();
    case Value::Tag::Double: return std::bit_cast<int64_t>(a.to_double()) == std::bit_cast<int64_t>(b.to_double());
    case Value::Tag::String: return a.to_string() == b.to_string();
    default: return false;
  }
}

void check_plain(const Value& value) {
  bool known = value.is_none() || is_integer(value) || value.tag() == Value::Tag::Bool ||
               value.tag() == Value::Tag::UInt || value.tag() == Value::Tag::Double ||
               value.tag() == Value::Tag::String;
  check<TypeError>(known, "an input of a compiled function is a tensor, a number, a text or nothing, not ",
                   tag_name(value.tag()));
}

std::string plain_text(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::Bool: return value.to_bool() ? "True" : "False";
    case Value::Tag::String: return "'" + value.to_string() + "'";
    case Value::Tag::SymInt: return "a symbol";
    default: return concat(value);
  }
}

/// The names that differ between two sets of modes.
std::string changed_modes(uint64_t before, uint64_t now) {
  std::string out = "GLOBAL_STATE changed: ";
  uint64_t changed = before ^ now;
  if (changed & Grad) out += "grad_mode ";
  if (changed & Inference) out += "inference_mode ";
  if (changed & Autocast) out += "autocast(cpu)_enabled ";
  else if (changed >> kAutocastType & 0xff) out += "autocast(cpu)_dtype ";
  if (changed & Deterministic) out += "deterministic_algorithms ";
  if (changed >> kDefaultType & 0xff) out += "default_dtype ";
  return out;
}

}  // namespace

uint64_t thread_modes() {
  AutocastState autocast = autocast_state();
  uint64_t modes = is_grad_enabled() * Grad | is_inference_mode_enabled() * Inference | autocast.enabled * Autocast |
                   deterministic_algorithms() * Deterministic;
  if (autocast.enabled) modes |= static_cast<uint64_t>(autocast.dtype) << kAutocastType;
  return modes | static_cast<uint64_t>(default_dtype()) << kDefaultType;
}

Guards::Guards(ArrayRef<Value> inputs, size_t dynamic_from) : modes_(thread_modes()) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Input& input = inputs_.emplace_back();
    input.tag = is_integer(inputs[i]) ? Value::Tag::Int : inputs[i].tag();
    input.dynamic = i >= dynamic_from;
    if (inputs[i].is_tensor()) {
      input.look = look_of(inputs[i].tensor_ref());
      input.numbers = numbers_.size();
      if (!input.dynamic) add_geometry(numbers_, inputs[i].tensor_ref().impl());
    } else {
      check_plain(inputs[i]);
      input.plain = inputs[i];
    }
  }
  if (!all_apart(inputs)) sharing_ = describe_sharing(inputs);
}

void Guards::require_leaves(ArrayRef<Value> inputs) { leaves_ = leaves_among(inputs); }

bool Guards::accept_input(const Input& expected, const Value& given) const {
  if (given.is_tensor()) {
    const Tensor& t = given.tensor_ref();
    return expected.tag == Value::Tag::Tensor && look_of(t) == expected.look &&
           (expected.dynamic || has_geometry(&numbers_[expected.numbers], t.impl()));
  }
  if (expected.dynamic && expected.tag == Value::Tag::Int) return is_integer(given);
  return expected.tag != Value::Tag::Tensor && same_plain(expected.plain, given);
}

bool Guards::accept(ArrayRef<Value> inputs) const { return thread_modes() == modes_ && accept_inputs(inputs); }

bool Guards::accept_inputs(ArrayRef<Value> inputs) const {
  if (inputs.size() != inputs_.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!accept_input(inputs_[i], inputs[i])) return false;
  if (!leaves_.empty() && leaves_among(inputs) != leaves_) return false;
  return sharing_.empty() ? all_apart(inputs) : describe_sharing(inputs) == sharing_;
}

std::string Guards::key() const {
  ByteWriter out;
  out.number(modes_);
  for (const Input& input : inputs_) {
    out.number(static_cast<uint8_t>(input.tag));
    out.number<uint8_t>(input.dynamic);
    out.number(input.look);
    out.plain(input.plain);
  }
  for (const std::vector<int64_t>* numbers : {&numbers_, &sharing_}) {
    out.number<uint32_t>(static_cast<uint32_t>(numbers->size()));
    for (int64_t n : *numbers) out.number(n);
  }
  return std::move(out.bytes());
}

std::string Guards::broken_by(ArrayRef<Value> inputs, const std::vector<std::string>& names) const {
  auto name = [&](size_t i) { return i < names.size() ? names[i] : concat("inputs[", i, "]"); };
  if (thread_modes() != modes_) return changed_modes(modes_, thread_modes());
  if (inputs.size() != inputs_.size())
    return concat("number of inputs mismatch. expected ", inputs_.size(), ", actual ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (accept_input(inputs_[i], inputs[i])) continue;
    if (inputs_[i].tag == Value::Tag::Tensor) return broken_tensor(inputs_[i], inputs[i], name(i));
    if (inputs[i].is_tensor()) return concat(name(i), " is no tensor");
    return concat(name(i), " == ", plain_text(inputs_[i].plain));
  }
  if (std::vector<bool> leaves = leaves_among(inputs); !leaves_.empty() && leaves != leaves_)
    for (size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i] != leaves_[i])
        return concat("tensor '", name(i), "' is_leaf mismatch. expected is_leaf=", leaves_[i] ? 1 : 0);
  return accept(inputs) ? std::string() : broken_sharing(inputs, names);
}

std::string Guards::broken_tensor(const Input& expected, const Value& given, const std::string& name) const {
  std::string subject = "tensor '" + name + "' ";
  if (!given.is_tensor()) return subject + "type mismatch. expected a tensor, actual " + tag_name(given.tag());
  const Tensor& t = given.tensor_ref();
  uint64_t changed = look_of(t) ^ expected.look;
  auto expected_byte = [&](int place) { return static_cast<int>(expected.look >> place & 0xff); };
  if (changed >> kType & 0xff)
    return concat(subject, "dtype mismatch. expected ", kernel_name(static_cast<DType>(expected_byte(kType))),
                  ", actual ", kernel_name(t.dtype()));
  if (changed >> kDevice & 0xffff) return subject + "device mismatch";
  if (changed & RequiresGrad)
    return concat(subject, "requires_grad mismatch. expected requires_grad=", expected.look & RequiresGrad);
  if (changed >> kDim) return concat(subject, "rank mismatch. expected ", expected.look >> kDim, ", actual ", t.dim());
  if (changed & View) return concat(subject, "is ", expected.look & View ? "no view" : "a view of another tensor");
  if (changed & InferenceTensor) return subject + "inference mismatch";
  if (changed) return subject + "conjugate or negative bit mismatch";
  const int64_t* numbers = &numbers_[expected.numbers];
  for (const char* what : {"size", "stride"})
    for (int64_t d = 0; d < t.dim(); ++d, ++numbers) {
      SymInt actual = *what == 's' && what[1] == 'i' ? t.sym_sizes()[d] : t.sym_strides()[d];
      if (actual.raw() != *numbers)
        return concat(subject, what, " mismatch at index ", d, ". expected ", SymInt::from_raw(*numbers), ", actual ",
                      actual);
    }
  return concat(subject, "storage offset mismatch. expected ", SymInt::from_raw(*numbers), ", actual ",
                t.sym_storage_offset());
}

std::string Guards::broken_sharing(ArrayRef<Value> inputs, const std::vector<std::string>& names) const {
  auto name = [&](size_t i) { return i < names.size() ? names[i] : concat("inputs[", i, "]"); };
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      if (!inputs[i].is_tensor() || !inputs[j].is_tensor()) continue;
      const Tensor &a = inputs[j].tensor_ref(), &b = inputs[i].tensor_ref();
      if (a.is_same(b)) return concat(name(j), " is not ", name(i));
      if (a.storage() == b.storage()) return concat(name(j), " and ", name(i), " do not share memory");
    }
  return "inputs share memory, or are one tensor, as they were";
}

}  // namespace umbra::aot
