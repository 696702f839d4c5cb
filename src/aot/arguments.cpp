#include "umbra/aot/arguments.h"

#include <algorithm>

#include "umbra/aot/analysis.h"
#include "umbra/generated/functions.h"

namespace umbra::aot {

namespace {

Tensor root_of(const Tensor& t) { return t.is_view() ? Tensor(t.impl()->view_base()) : t; }

bool same_representation(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

/// The tensor that all of the inputs are views of. Where they have only memory in common and none takes part in
/// autograd, that memory as one long vector.
Tensor common_base(const std::vector<Tensor>& inputs, const std::vector<size_t>& members) {
  const Tensor& first = inputs[members[0]];
  Tensor base = root_of(first);
  bool one_root = true, tracked = false, alike = true;
  for (size_t i : members) {
    one_root &= root_of(inputs[i]).is_same(base);
    tracked |= inputs[i].requires_grad();
    alike &= same_representation(inputs[i], first);
  }
  // The graph's values have the base's strides but memory of their own: only without gaps do views lie in it as they do
  // here.
  bool whole = base.is_non_overlapping_and_dense() && base.sym_storage_offset() == SymInt(0);
  bool views_of_base = one_root && whole && same_representation(base, first);
  check<NotImplementedError>(alike && (views_of_base || !tracked), "the function writes tensor ", members[0],
                             ", which shares memory with tensor ", members[1],
                             " and is not a view of the same tensor and type: ahead-of-time autograd does not support "
                             "that; pass a clone of one of them");
  if (views_of_base) return base;
  SymInt length = first.storage()->bytes() / first.item_size();
  return untracked(alias_tensor(first, {length}, {SymInt(1)}, 0));
}

size_t first_place(const std::vector<Tensor>& inputs, const Tensor& t) {
  size_t place = 0;
  while (!inputs[place].is_same(t)) ++place;
  return place;
}

}  // namespace

std::vector<Tensor> tensors_among(const std::vector<Value>& inputs) {
  std::vector<Tensor> tensors;
  for (const Value& v : inputs) tensors.push_back(v.is_tensor() ? v.tensor() : Tensor());
  return tensors;
}

ArgumentLayout lay_out_arguments(const std::vector<Tensor>& inputs, const std::vector<bool>& merged) {
  ArgumentLayout layout;
  layout.arguments.resize(inputs.size());
  auto place = [&](size_t i) {
    const Tensor& t = inputs[i];
    auto is_made_of = [&](const std::vector<size_t>& members) {
      const Tensor& other = inputs[members[0]];
      if (!t.defined() || !other.defined()) return false;
      return t.is_same(other) || (merged[i] && merged[members[0]] && t.storage() == other.storage());
    };
    auto found = std::find_if(layout.arguments_of.begin(), layout.arguments_of.end(), is_made_of);
    ArgumentInfo& argument = layout.arguments[i];
    argument.primal = static_cast<size_t>(found - layout.arguments_of.begin());
    argument.same_as = t.defined() ? first_place(inputs, t) : i;
    argument.is_view = merged[i];
    if (argument.is_view) {
      argument.sizes = SymShape(t.sym_sizes());
      argument.strides = SymShape(t.sym_strides());
      argument.offset = t.sym_storage_offset();
    }
    if (found == layout.arguments_of.end()) layout.arguments_of.push_back({i});
    else found->push_back(i);
  };
  // What several arguments are views of comes first, as in PyTorch.
  for (bool merge : {true, false})
    for (size_t i = 0; i < inputs.size(); ++i)
      if (merged[i] == merge) place(i);
  return layout;
}

std::vector<Tensor> primals_of(const ArgumentLayout& layout, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> primals;
  for (const std::vector<size_t>& members : layout.arguments_of)
    primals.push_back(layout.arguments[members[0]].is_view ? common_base(inputs, members) : inputs[members[0]]);
  return primals;
}

std::vector<Tensor> arguments_of(const ArgumentLayout& layout, const std::vector<Tensor>& primals) {
  std::vector<Tensor> arguments;
  for (const ArgumentInfo& a : layout.arguments) {
    if (a.same_as < arguments.size()) arguments.push_back(arguments[a.same_as]);
    else if (a.is_view) arguments.push_back(as_strided(primals[a.primal], a.sizes, a.strides, a.offset));
    else arguments.push_back(primals[a.primal]);
  }
  return arguments;
}

}  // namespace umbra::aot
