#include "autograd/operator_node.h"

#include <limits>

#include "autograd/meta.h"
#include "umbra/generated/functions.h"

namespace umbra::autograd {

using Kind = GradientSource::Kind;

namespace {

/// A tensor that is saved already, because another formula names it too, and in which slot.
struct Kept {
  int index;
  size_t slot;
};

bool is_tensor_argument(const Operator& op, int i) {
  return op.schema().arguments[i].type.base == SchemaType::Base::Tensor;
}

bool holds_tensors(const Operator& op, const GradientSource& s) {
  return s.kind == Kind::Result || (s.kind == Kind::Argument && is_tensor_argument(op, s.index));
}

}  // namespace

template <class F> void OperatorNode::each_needed(F&& visit) const {
  size_t slot = 0;
  const std::vector<Gradient>& gradients = plan_.definition->gradients;
  for (size_t f = 0; f < plan_.gradient_count; ++f) {
    if (!(needed_ >> f & 1)) continue;
    visit(gradients[f], slot);
    slot += gradients[f].sources.size();
  }
}

// ---- saving ----

bool OperatorNode::saves_argument(int argument) const {
  bool saves = false;
  each_needed([&](const Gradient& g, size_t) {
    for (const GradientSource& s : g.sources) saves |= s.kind == Kind::Argument && s.index == argument;
  });
  return saves;
}

Value OperatorNode::save(const Value& value, bool is_output) {
  auto keep = [&](const Tensor& t) -> int64_t {
    if (!t.defined()) return -1;
    tensors_.emplace_back(t, is_output);
    return static_cast<int64_t>(tensors_.size()) - 1;
  };
  if (value.is_tensor()) return keep(value.tensor_ref());
  if (value.is_tensor_list()) {
    std::vector<int64_t> positions;
    for (const Tensor& t : value.tensor_list()) positions.push_back(keep(t));
    return positions;
  }
  if (value.is_list()) {
    std::vector<Value> items;
    for (const Value& v : value.list()) items.push_back(save(v, is_output));
    return items;
  }
  return Value();
}

/// Of a list: each tensor's number of dimensions and its sizes, one after the other.
static std::vector<SymInt> sizes_of(const Value& argument) {
  if (argument.is_tensor()) return argument.tensor_ref().sym_sizes().vec();
  std::vector<SymInt> all;
  for (const Tensor& t : argument.tensor_list()) {
    all.emplace_back(t.dim());
    all.insert(all.end(), t.sym_sizes().begin(), t.sym_sizes().end());
  }
  return all;
}

/// An argument that the call writes and does not give back, such as the noise of a leaky relu: it is kept as the call
/// leaves it.
static bool is_written_aside(const Operator& op, int argument) {
  const AliasInfo& written = op.schema().arguments[argument].alias;
  auto is_it = [&](const SchemaReturn& result) { return result.alias.set == written.set; };
  return written.write && std::ranges::none_of(op.schema().returns, is_it);
}

void OperatorNode::save_arguments(const Value* frame) {
  size_t count = 0;
  each_needed([&](const Gradient& g, size_t) { count += g.sources.size(); });
  values_.resize(count);
  SmallVector<Kept, 4> kept;
  auto save_once = [&](int argument, size_t slot) {
    for (const Kept& k : kept)
      if (k.index == argument) return values_[k.slot];
    kept.push_back({argument, slot});
    return save(frame[argument], false);
  };
  each_needed([&](const Gradient& g, size_t slot) {
    for (const GradientSource& s : g.sources) {
      Value& value = values_[slot];
      switch (s.kind) {
        case Kind::Argument:
          if (frame[s.index].is_tensor() && is_written_aside(op_, s.index)) value = Value(frame[s.index].tensor());
          else value = is_tensor_argument(op_, s.index) ? save_once(s.index, slot) : frame[s.index];
          break;
        case Kind::Sizes: value = Value(sizes_of(frame[s.index])); break;
        case Kind::Strides: value = Value(frame[s.index].tensor_ref().sym_strides().vec()); break;
        case Kind::Offset: value = Value(frame[s.index].tensor_ref().sym_storage_offset()); break;
        case Kind::DTypeOf: value = Value(frame[s.index].tensor_ref().dtype()); break;
        case Kind::DeviceOf: value = Value(frame[s.index].tensor_ref().device()); break;
        case Kind::Grad:
        case Kind::Result:
        case Kind::NeedsInput: break;
      }
      ++slot;
    }
  });
}

void OperatorNode::save_results(const Value* frame, bool own) {
  SmallVector<Kept, 4> kept;
  each_needed([&](const Gradient& g, size_t slot) {
    for (const GradientSource& s : g.sources) {
      if (s.kind == Kind::Result) {
        auto found = std::find_if(kept.begin(), kept.end(), [&](const Kept& k) { return k.index == s.index; });
        values_[slot] = found != kept.end() ? values_[found->slot] : save(frame[s.index], own);
        kept.push_back({s.index, slot});
      } else if (s.kind == Kind::Argument && values_[slot].is_tensor()) {  // written aside, which is done now
        values_[slot] = save(values_[slot], false);
      }
      ++slot;
    }
  });
}

void OperatorNode::set_rebased(const IntrusivePtr<Node>& base_node) {
  each_needed([&](const Gradient& g, size_t slot) {
    for (const GradientSource& s : g.sources) {
      if (s.kind == Kind::Result && values_[slot].is_int() && values_[slot].to_int() >= 0)
        tensors_[values_[slot].to_int()].set_rebased(base_node);
      ++slot;
    }
  });
}

void OperatorNode::release_saved() {
  for (SavedTensor& t : tensors_) t.release();
}

void OperatorNode::release_resources() {
  tensors_.clear();
  values_.clear();
  Node::release_resources();
}

// ---- looking at what is saved ----

OperatorNode::Found OperatorNode::find(std::string_view name) const {
  Found found;
  const std::vector<Gradient>& gradients = plan_.definition->gradients;
  for (size_t f = 0; f < plan_.gradient_count; ++f) {
    bool needed = needed_ >> f & 1;
    for (size_t i = 0; i < gradients[f].sources.size(); ++i) {
      const GradientSource& s = gradients[f].sources[i];
      std::string own = gradients[f].names[i];
      std::replace(own.begin(), own.end(), '.', '_');
      bool is_it = s.kind != Kind::Grad && s.kind != Kind::NeedsInput && own == name;
      found.named |= is_it;
      if (is_it && needed) {
        found.kept = true;
        found.is_tensor = holds_tensors(op_, s);
        return found;
      }
      found.slot += needed;
    }
  }
  return found;
}

std::vector<std::string> OperatorNode::saved_names() const {
  std::vector<std::string> names;
  const std::vector<Gradient>& gradients = plan_.definition->gradients;
  for (size_t f = 0; f < plan_.gradient_count; ++f)
    for (size_t i = 0; i < gradients[f].sources.size(); ++i) {
      Kind kind = gradients[f].sources[i].kind;
      if (kind == Kind::Grad || kind == Kind::NeedsInput) continue;
      std::string own = gradients[f].names[i];
      std::replace(own.begin(), own.end(), '.', '_');
      if (std::find(names.begin(), names.end(), own) == names.end()) names.push_back(std::move(own));
    }
  return names;
}

std::optional<Value> OperatorNode::saved(std::string_view name) const {
  Found found = find(name);
  Unpacked unpacked;
  if (found.kept) return found.is_tensor ? restore(values_[found.slot], unpacked) : values_[found.slot];
  return found.named ? std::optional(Value()) : std::nullopt;
}

SavedTensor* OperatorNode::saved_tensor(std::string_view name) {
  Found found = find(name);
  if (!found.kept || !found.is_tensor || !values_[found.slot].is_int()) return nullptr;
  int64_t index = values_[found.slot].to_int();
  return index < 0 ? nullptr : &tensors_[static_cast<size_t>(index)];
}

// ---- the backward pass ----

OperatorNode::Range OperatorNode::edges_of(int argument) const {
  size_t first = 0, lists = 0;
  for (int i = 0;; ++i) {
    if (plan_.formula[i] < 0) continue;
    size_t count = op_.schema().arguments[i].type.list ? list_lengths_[lists++] : 1;
    if (i == argument) return {first, count};
    first += count;
  }
}

bool OperatorNode::needs_argument(int argument) const {
  Range range = edges_of(argument);
  for (size_t i = 0; i < range.count; ++i)
    if (needs(range.first + i)) return true;
  return false;
}

Value OperatorNode::restore(const Value& saved, Unpacked& unpacked) const {
  IntrusivePtr<Node> self(const_cast<OperatorNode*>(this));
  auto tensor = [&](int64_t position) {
    if (position < 0) return Tensor();
    if (!tensors_[position].is_packed()) return tensors_[position].unpack(self);
    auto found = unpacked.find(position);
    if (found == unpacked.end()) found = unpacked.emplace(position, tensors_[position].unpack(self)).first;
    return found->second;
  };
  if (saved.is_int()) return Value(tensor(saved.to_int()));
  if (saved.is_int_list()) {
    std::vector<Tensor> tensors;
    for (SymInt position : saved.int_list()) tensors.push_back(tensor(position.value()));
    return tensors;
  }
  if (saved.is_list()) {
    std::vector<Value> items;
    for (const Value& v : saved.list()) items.push_back(restore(v, unpacked));
    return items;
  }
  return Value();
}

// Outputs that took no part have no gradient. Formulas over a list of gradients get zeros there, so that they need not
// care.
Value OperatorNode::incoming_value(const Gradients& incoming, int index) const {
  if (!plan_.list_result) return Value::borrow(incoming[index]);
  std::vector<Tensor> gradients = incoming;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const InputMetadata& m = inputs()[i];
    if (!gradients[i].defined()) gradients[i] = zeros(m.sizes, {.dtype = m.dtype, .device = m.device});
  }
  return gradients;
}

Value OperatorNode::source_value(const Gradient& gradient, size_t source, size_t slot, const Gradients& incoming,
                                 Unpacked& unpacked) const {
  const GradientSource& s = gradient.sources[source];
  if (s.kind == Kind::Grad) return incoming_value(incoming, s.index);
  if (s.kind == Kind::NeedsInput) {
    std::vector<bool> needed;
    for (int argument : gradient.inputs) needed.push_back(needs_argument(argument));
    return needed;
  }
  return holds_tensors(op_, s) ? restore(values_[slot], unpacked) : Value::borrow(values_[slot]);
}

void OperatorNode::run(const Gradient& gradient, size_t first_slot, const Gradients& incoming, Unpacked& unpacked,
                       Gradients& out) const {
  Frame frame(std::max(gradient.sources.size(), gradient.inputs.size()));
  for (size_t i = 0; i < gradient.sources.size(); ++i)
    frame[i] = source_value(gradient, i, first_slot + i, incoming, unpacked);
  gradient.function(frame.data());
  for (size_t i = 0; i < gradient.inputs.size(); ++i) {
    Range range = edges_of(gradient.inputs[i]);
    if (!op_.schema().arguments[gradient.inputs[i]].type.list) {
      if (needs(range.first)) out[range.first] = frame[i].take_tensor();
      continue;
    }
    if (frame[i].is_none()) continue;
    TensorList list = frame[i].tensor_list();
    check(list.size() == range.count, name(), ": the gradient of a list of ", range.count, " tensors has ",
          list.size());
    for (size_t k = 0; k < range.count; ++k)
      if (needs(range.first + k)) out[range.first + k] = list[k];
  }
}

Gradients OperatorNode::apply(Gradients incoming) {
  Gradients out(next_edges().size());
  auto arrives = [&](const GradientSource& s) {
    if (s.kind != Kind::Grad) return false;
    if (!plan_.list_result) return incoming[s.index].defined();
    return std::any_of(incoming.begin(), incoming.end(), [](const Tensor& t) { return t.defined(); });
  };
  constexpr size_t kNotNeeded = std::numeric_limits<size_t>::max();
  const std::vector<Gradient>& gradients = plan_.definition->gradients;
  SmallVector<size_t, 8> slots(plan_.gradient_count, kNotNeeded);
  each_needed([&](const Gradient& g, size_t slot) { slots[&g - gradients.data()] = slot; });
  Unpacked unpacked;
  for (size_t f : plan_.order) {
    const Gradient& g = gradients[f];
    if (slots[f] == kNotNeeded) continue;
    bool wanted = std::any_of(g.inputs.begin(), g.inputs.end(), [&](int i) { return needs_argument(i); });
    if (wanted && std::any_of(g.sources.begin(), g.sources.end(), arrives)) run(g, slots[f], incoming, unpacked, out);
  }
  return out;
}

Gradients NotImplementedNode::apply(Gradients) {
  fail<MissingDerivative>("derivative for ", op_.schema().space, "::", op_.schema().name, " is not implemented");
}

}  // namespace umbra::autograd
