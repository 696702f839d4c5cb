#include "capture/higher_order/metadata.h"

#include "umbra/autograd/grad_mode.h"
#include "umbra/capture/functionalize.h"
#include "umbra/core/memory.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {
Value without_value(const Tensor& t, SymIntArrayRef sizes, SymIntArrayRef strides) {
  UnobservedMemory stands_for_another;
  if (FakeModeImpl* mode = fake_mode_of(t)) return mode->make(TensorSpec(sizes, strides, t.dtype(), t.device()));
  return alias_tensor(t, sizes, strides, t.sym_storage_offset());
}

SymShape with_count(const Tensor& t, SymInt count) {
  SymShape sizes({count});
  for (SymInt s : t.sym_sizes()) sizes.push_back(s);
  return sizes;
}

/// A new tensor whose contents nobody knows, not even for the example that goes along with a draft.
Value unknown(const Tensor& made) {
  if (FakeModeImpl* mode = fake_mode_of(made)) made.impl()->set_layer_state(IntrusivePtr<RefCounted>(mode));
  return Value(made);
}

/// The stand-in, which needs gradients where its tensor does.
Value tracked_as(bool requires_grad, const Value& stand_in) {
  if (requires_grad) stand_in.tensor().requires_grad_();
  return stand_in;
}
}  // namespace

Value stand_in(const Value& value) {
  if (!value.is_tensor()) return value;
  const Tensor& t = value.tensor_ref();
  return tracked_as(t.requires_grad(), without_value(t, t.sym_sizes(), t.sym_strides()));
}

Value row_stand_in(const Value& value) {
  const Tensor& t = value.tensor_ref();
  bool tracked = t.requires_grad() && is_grad_enabled();
  if (is_functional(t)) {  // has its value elsewhere
    WithoutModes untraced(DispatchKey::Proxy);
    SetGradEnabled no_grad(false);
    Tensor part = t.select(0, 0);
    return tracked_as(tracked, Value(tracked ? part : part.detach()));
  }
  return tracked_as(tracked,
                    without_value(t, t.sym_sizes().slice(1, t.dim() - 1), t.sym_strides().slice(1, t.dim() - 1)));
}

std::vector<Value> fresh(const std::vector<Value>& values) {
  std::vector<Value> out;
  for (const Value& v : values) out.push_back(v.is_tensor() ? unknown(empty_like(v.tensor_ref())) : v);
  return out;
}

sym::ShapeEnv* symbols_for(const FunctionCall& call) {
  FakeModeImpl* mode = detect_fake_mode(call.tensors());
  return mode ? mode->shape_env() : nullptr;
}

bool is_integer(const Value& value) { return value.is_int() || value.is_sym_int(); }

void forget_memory(std::span<const Value> of_function) {
  for (const Value& v : of_function) {
    if (!v.is_tensor() || !v.tensor_ref().is_fake()) continue;
    const Tensor& t = v.tensor_ref();
    bool own = t.impl()->use_count() == 1 && t.storage()->use_count() == 1 && !t.storage()->has_data();
    if (own) t.storage()->resize(0);
  }
}

std::vector<Value> fresh_stacked(const std::vector<Value>& values, SymInt count) {
  std::vector<Value> out;
  std::vector<Storage> rows;  // a run keeps them until all are there
  for (const Value& v : values) {
    check<UserError>(v.is_tensor(), "a function that is called on rows must give tensors, got ", tag_name(v.tag()));
    const Tensor& t = v.tensor_ref();
    if (t.is_fake() && !count.same(0))
      rows.push_back(StorageImpl::without_data((count - 1) * t.sym_numel() * t.item_size(), t.device()));
  }
  for (const Value& v : values) {
    const Tensor& t = v.tensor_ref();
    out.push_back(unknown(empty(with_count(t, count), {.dtype = t.dtype(), .device = t.device()})));
  }
  return out;
}

std::vector<size_t> differentiable(const std::vector<Value>& values) {
  std::vector<size_t> out;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].is_tensor() && is_differentiable(values[i].tensor_ref().dtype())) out.push_back(i);
  return out;
}

std::vector<size_t> requiring_gradients(const std::vector<Value>& values) {
  std::vector<size_t> out;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].is_tensor() && values[i].tensor_ref().requires_grad()) out.push_back(i);
  return out;
}

std::vector<Value> row(const std::vector<Value>& values, int64_t i) {
  std::vector<Value> out;
  for (const Value& v : values) {
    Tensor part = v.tensor_ref().select(0, i);
    // A view needs gradients in any mode; the rows that a function is given do where they have a history.
    out.push_back(Value(part.requires_grad() && !is_grad_enabled() ? part.detach() : part));
  }
  return out;
}

std::vector<Value> stack_rows(const std::vector<std::vector<Value>>& rows) {
  std::vector<Value> out;
  for (size_t k = 0; k < rows.at(0).size(); ++k) {
    std::vector<Tensor> parts;
    for (const std::vector<Value>& r : rows) parts.push_back(r.at(k).tensor());
    out.push_back(Value(stack(parts)));
  }
  return out;
}

SymInt row_count(const char* name, const std::vector<Value>& values) {
  check(!values.empty(), name, ": there is nothing to go through");
  SymInt count = 0;
  for (const Value& v : values) {
    check(v.is_tensor(), name, ": expected tensors to go through, got ", tag_name(v.tag()));
    const Tensor& t = v.tensor_ref();
    check(t.dim() > 0, name, ": Leading dimensions of mapped xs cannot be 0.");
    if (&v == &values[0]) count = t.sym_size(0);
    check(t.sym_size(0) == count, "Leading dimensions of mapped xs must be consistent. Got ", count, " and ",
          t.sym_size(0));
  }
  check(count != 0, "Leading dimensions of mapped xs cannot be 0.");
  return count;
}

std::vector<Value> part(const std::vector<Value>& values, size_t from, size_t to) {
  return {values.begin() + static_cast<ptrdiff_t>(from), values.begin() + static_cast<ptrdiff_t>(to)};
}

std::vector<Value> joined(std::vector<Value> a, const std::vector<Value>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace umbra
