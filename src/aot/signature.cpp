#include "aot/signature.h"

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

}  // namespace

std::vector<int64_t> describe_tensors(const std::vector<Tensor>& tensors) {
  std::vector<int64_t> out{is_grad_enabled(), is_inference_mode_enabled()};
  std::unordered_map<const void*, int64_t> first;  // of tensors, storages and bases: where each was met
  auto place_of = [&](const void* what, size_t i) {
    return first.try_emplace(what, static_cast<int64_t>(i)).first->second;
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    out.push_back(static_cast<int64_t>(t.dtype()));
    out.push_back(static_cast<int64_t>(t.device().type));
    out.push_back(t.device().index);
    out.push_back(flags_of(t));
    add_geometry(out, t.impl());
    out.push_back(place_of(t.impl(), i));
    int64_t sharing = place_of(t.storage().get(), i);
    out.push_back(sharing);
    // Views of one tensor may become views of an input of the graph: then that one counts too.
    if (sharing == static_cast<int64_t>(i) || !t.is_view()) continue;
    const IntrusivePtr<TensorImpl>& base = t.impl()->view_base();
    out.push_back(place_of(base.get(), i));
    out.push_back(static_cast<int64_t>(base->dtype()));
    add_geometry(out, base.get());
  }
  return out;
}

}  // namespace umbra::aot
