#include "capture/functional_values.h"

#include <algorithm>

#include "umbra/dispatch/writes.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace functional {

namespace {
Tensor apply_view(const ViewStep& step, const Tensor& to) {
  Frame frame(*step.op);
  frame[0] = Value::borrow(to);
  for (size_t i = 1; i < step.op->argument_count(); ++i) frame[i] = Value::borrow(step.arguments[i]);
  step.op->call(frame.data());
  return step.output < 0 ? frame[0].take_tensor() : frame[0].tensor_list()[step.output];
}

Tensor invert_view(const ViewStep& step, const Tensor& base, const Tensor& written) {
  const BoxedFunction& inverse = step.op->definition().view_inverse;
  if (!inverse) {
    Tensor view = apply_view(step, base);
    return as_strided_scatter(base, written, view.sym_sizes(), view.sym_strides(), view.sym_storage_offset());
  }
  std::vector<Value> frame{Value(base), Value(written), Value(std::max<int64_t>(step.output, 0))};
  for (size_t i = 1; i < step.op->argument_count(); ++i) frame.push_back(step.arguments[i]);
  inverse(frame.data());
  return frame[0].take_tensor();
}
}  // namespace

// ---- values that lie in memory as the tensor that they stand for ----

/// The same numbers or expressions; nothing is asked of symbols.
bool identical(SymIntArrayRef a, SymIntArrayRef b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](SymInt x, SymInt y) { return x.raw() == y.raw(); });
}

bool lies_as_shown(const FunctionalBase& base) {
  const Tensor& value = base.value;
  return identical(value.sym_sizes(), base.shown.sizes) && identical(value.sym_strides(), base.shown.strides) &&
         value.sym_storage_offset().raw() == base.offset.raw() &&
         value.storage()->bytes().raw() == base.origin.storage()->bytes().raw();
}

/// Puts the base's contents back to where the wrapper shows them to be: into the memory of the first value, of which
/// they may be a part.
void lay_as_shown(FunctionalBase& base) {
  const TensorSpec& shown = base.shown;
  SymInt length = base.origin.storage()->bytes() / base.origin.item_size();
  Tensor memory = as_strided(base.origin, {length}, {SymInt(1)}, SymInt(0));
  memory = as_strided_scatter(memory, base.value, shown.sizes, shown.strides, base.offset);
  base.value = as_strided(memory, shown.sizes, shown.strides, base.offset);
}

namespace {
/// The view of the base's contents that the steps make. The new contents after a write may lie in memory otherwise than
/// what was written; some views can only be taken of what lies as it did, and some mean something else.
Tensor replay(FunctionalBase& base, const std::vector<ViewStep>& views) {
  bool any = false;
  for (const ViewStep& step : views) any |= step.op->has_tag(Tag::AddressesMemory);
  if (any && !lies_as_shown(base)) lay_as_shown(base);
  try {
    return replay_views(base.value, views);
  } catch (const Error&) {
    if (lies_as_shown(base)) throw;
  }
  lay_as_shown(base);
  return replay_views(base.value, views);
}
}  // namespace

void check_views_last(const FunctionalState& state) {
  check<NotImplementedError>(state.views.empty() || state.resizes == state.base->resizes,
                             "a view of a tensor that was resized afterwards is used: that cannot be captured");
}

const Tensor& current_value(FunctionalState& state) {
  if (state.generation != state.base->generation) {
    check_views_last(state);
    state.value = replay(*state.base, state.views);
    state.generation = state.base->generation;
  }
  return state.value;
}

namespace {
/// Whether no two elements lie in one place, as far as strides tell without a guard.
bool surely_apart(const Tensor& t) {
  SmallVector<int64_t, 6> order;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (!t.sym_size(d).same(1)) order.push_back(d);
  auto nearer = [&](int64_t a, int64_t b) { return sym_lt(t.sym_stride(a), t.sym_stride(b)).known_true(); };
  std::stable_sort(order.begin(), order.end(), nearer);
  SymInt reach = 0;  // from the first to the last element of the dimensions so far
  for (int64_t d : order) {
    if (!sym_lt(reach, t.sym_stride(d)).known_true()) return t.sym_numel().same(0);
    reach += (t.sym_size(d) - 1) * t.sym_stride(d);
  }
  return true;
}

}  // namespace

bool shows_elements_several_times(const Tensor& wrapper) {
  static const Operator& unfold = get_operator("aten::unfold");
  const std::vector<ViewStep>& views = state_of(wrapper.impl()).views;
  auto repeats = [](const ViewStep& step) { return step.op == &unfold || step.op->has_tag(Tag::AddressesMemory); };
  return std::any_of(views.begin(), views.end(), repeats) && !surely_apart(wrapper);
}

bool is_part_of_repeated(const Tensor& wrapper) {
  const FunctionalState& state = state_of(wrapper.impl());
  return !state.views.empty() && overlaps_itself(state.base->origin);
}

namespace {
/// The places in memory, in order, of all elements.
std::vector<int64_t> places_of(SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset) {
  std::vector<int64_t> places{offset.value()};
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> next;
    for (int64_t place : places)
      for (int64_t i = 0; i < sizes[d].value(); ++i) next.push_back(place + i * strides[d].value());
    places = std::move(next);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}
}  // namespace

/// A view by strides may reach memory around its base, which belongs to no tensor of the program: what is written there
/// would be lost.
void check_write_inside(const Operator& op, const Tensor& wrapper) {
  constexpr int64_t kMostElements = int64_t{1} << 20;  // that are looked at one by one
  const FunctionalState& state = state_of(wrapper.impl());
  const FunctionalBase& base = *state.base;
  bool by_strides = false;
  for (const ViewStep& step : state.views) by_strides |= step.op->has_tag(Tag::AddressesMemory);
  if (!by_strides || wrapper.is_symbolic() || base.value.is_symbolic()) return;
  if (base.value.numel() * base.value.item_size() == base.origin.storage()->bytes().value()) return;
  bool countable =
      wrapper.dtype() == base.value.dtype() && wrapper.numel() <= kMostElements && base.value.numel() <= kMostElements;
  bool inside = false;
  if (countable) {
    auto all = places_of(base.shown.sizes, base.shown.strides, base.offset),
         written = places_of(wrapper.sym_sizes(), wrapper.sym_strides(), wrapper.sym_storage_offset());
    inside = std::includes(all.begin(), all.end(), written.begin(), written.end());
  }
  check<NotImplementedError>(inside, op.name(),
                             " writes through a view by strides what may be memory around the tensor that it is a view "
                             "of: that cannot be captured");
}

namespace {
/// The same numbers, lazily conjugated and negated or not: views of a tensor ask for what its wrapper says.
Tensor with_bits(Tensor value, bool conj, bool neg) {
  if (value.is_conj() != conj) value = conj ? _conj(value.conj().resolve_conj()) : value.resolve_conj();
  if (value.is_neg() != neg) value = neg ? _neg_view(value.neg()) : value.resolve_neg();
  return value;
}
}  // namespace

namespace {
bool same_kind(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

/// Whether a view may show one element several times.
bool repeats_elements(const ViewStep& step, const Tensor& base, const Tensor& view) {
  static const Operator &expand = get_operator("aten::expand"), &unfold = get_operator("aten::unfold");
  if (step.op == &expand) return !identical(base.sym_sizes(), view.sym_sizes());
  return step.op == &unfold || step.op->has_tag(Tag::AddressesMemory);
}

/// Carries new contents back over several views at once, where those between have elements that are not written and
/// share memory with others that are: `bases` are what each step is a view of, and then the last view.
Tensor invert_views(ArrayRef<ViewStep> steps, ArrayRef<Tensor> bases, const Tensor& written) {
  const Tensor &base = bases[0], &view = bases.back();
  for (const ViewStep& step : steps)
    if (step.op->has_tag(Tag::AddressesMemory))
      return as_strided_scatter(base, written, view.sym_sizes(), view.sym_strides(), view.sym_storage_offset());
  for (const Tensor& one : bases)
    check<NotImplementedError>(same_kind(one, base),
                               "a part of an expanded tensor is written as elements of another kind: that cannot be "
                               "captured");
  Tensor place = arange(base.sym_numel(), {.dtype = DType::Int64, .device = base.device()}).view(base.sym_sizes());
  for (const ViewStep& step : steps) place = apply_view(step, place);
  Tensor all = base.reshape({-1}).index_put({place.reshape({-1})}, written.reshape({-1}));
  return all.view(base.sym_sizes());
}

/// How many of the steps, from the first on, lead to one that shows elements several times, if others come behind it.
size_t steps_before_repetition(ArrayRef<ViewStep> steps, ArrayRef<Tensor> bases) {
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    if (repeats_elements(steps[i], bases[i], bases[i + 1])) return i;
  return steps.size();
}
}  // namespace

// Carries new contents of a view back into its base.
void write_value(const Tensor& wrapper, Tensor value) {
  FunctionalState& state = state_of(wrapper.impl());
  check(!state.base->frozen, "cannot mutate tensors with frozen storage");
  if (value.dtype() != wrapper.dtype()) value = _to_copy(value, {.dtype = wrapper.dtype()});
  current_value(state);  // refuses what it cannot show
  std::vector<Tensor> bases{state.base->value};
  for (const ViewStep& step : state.views)
    if (bases.size() < state.views.size()) bases.push_back(apply_view(step, bases.back()));
  bases.push_back(state.value);
  size_t left = state.views.size();
  auto invert_last = [&] {
    --left;
    value = invert_view(state.views[left], bases[left], value);
  };
  while (left > 0 && !same_kind(bases[left - 1], bases[left])) invert_last();
  ArrayRef<ViewStep> steps = ArrayRef<ViewStep>(state.views).slice(0, left);
  if (size_t first = steps_before_repetition(steps, bases); first < left) {
    value =
        invert_views(steps.slice(first, left - first), ArrayRef<Tensor>(bases).slice(first, left - first + 1), value);
    left = first;
  }
  while (left > 0) invert_last();
  state.base->value = with_bits(value, state.base->conj, state.base->neg);
  ++state.base->generation;
}

}  // namespace functional

Tensor replay_views(const Tensor& base, const std::vector<ViewStep>& steps) {
  Tensor value = base;
  for (const ViewStep& step : steps) value = functional::apply_view(step, value);
  return value;
}

}  // namespace umbra
