#include "aot/signature.h"

#include <bit>
#include <unordered_map>

namespace umbra::aot {

namespace {

void add_geometry(std::vector<int64_t>& out, const TensorImpl* t) {
  out.push_back(t->dim());
  for (SymInt s : t->sym_sizes()) out.push_back(s.raw());
  for (SymInt s : t->sym_strides()) out.push_back(s.raw());
  out.push_back(t->sym_storage_offset().raw());
}

int64_t flags_of(const Tensor& t) {
  return t.requires_grad() | t.is_conj() << 1 | t.is_neg() << 2 | t.is_view() << 3 | t.impl()->is_inference() << 4;
}

/// A value that is no tensor. Floats go by their bits: 0.0 and -0.0 differ.
void add_plain(std::vector<int64_t>& out, const Value& value, bool dynamic) {
  bool is_integer = value.is_int() || value.is_sym_int();
  out.push_back(-1 - static_cast<int64_t>(is_integer ? Value::Tag::Int : value.tag()));
  if (is_integer && dynamic) return;
  switch (value.tag()) {
    case Value::Tag::None: break;
    case Value::Tag::Int: out.push_back(value.to_int()); break;
    case Value::Tag::SymInt: out.push_back(value.to_sym_int().raw()); break;
    case Value::Tag::Bool: out.push_back(value.to_bool()); break;
    case Value::Tag::Double: out.push_back(std::bit_cast<int64_t>(value.to_double())); break;
    case Value::Tag::String: {
      const std::string& text = value.to_string();
      out.push_back(static_cast<int64_t>(text.size()));
      out.insert(out.end(), text.begin(), text.end());
      break;
    }
    default:
      fail<TypeError>("an input of a compiled function is a tensor, a number, a text or nothing, not ",
                      tag_name(value.tag()));
  }
}

/// Where tensors, storages and bases were met first.
class Places {
 public:
  int64_t of(const void* what, size_t i) { return first_.try_emplace(what, static_cast<int64_t>(i)).first->second; }

 private:
  std::unordered_map<const void*, int64_t> first_;
};

void add_tensor(std::vector<int64_t>& out, const Tensor& t, size_t i, Places& places, bool dynamic) {
  out.push_back(static_cast<int64_t>(t.dtype()));
  out.push_back(static_cast<int64_t>(t.device().type));
  out.push_back(t.device().index);
  out.push_back(flags_of(t));
  if (dynamic) out.push_back(t.dim());
  else add_geometry(out, t.impl());
  out.push_back(places.of(t.impl(), i));
  int64_t sharing = places.of(t.storage().get(), i);
  out.push_back(sharing);
  // Views of one tensor may become views of an input of the graph: then that one counts too.
  if (sharing == static_cast<int64_t>(i) || !t.is_view()) return;
  const IntrusivePtr<TensorImpl>& base = t.impl()->view_base();
  out.push_back(places.of(base.get(), i));
  out.push_back(static_cast<int64_t>(base->dtype()));
  add_geometry(out, base.get());
}

}  // namespace

std::vector<int64_t> describe_inputs(const std::vector<Value>& inputs, size_t dynamic_from) {
  std::vector<int64_t> out{is_grad_enabled(), is_inference_mode_enabled()};
  Places places;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool dynamic = i >= dynamic_from;
    if (inputs[i].is_tensor()) add_tensor(out, inputs[i].tensor_ref(), i, places, dynamic);
    else add_plain(out, inputs[i], dynamic);
  }
  return out;
}

std::vector<int64_t> describe_tensors(const std::vector<Tensor>& tensors) {
  return describe_inputs({tensors.begin(), tensors.end()}, tensors.size());
}

}  // namespace umbra::aot
