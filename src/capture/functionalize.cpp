#include "umbra/capture/functionalize.h"

#include "autograd/meta.h"
#include "capture/functional_values.h"
#include "capture/functional_wrappers.h"
#include "dispatch/layers.h"
#include "dispatch/library_writes.h"
#include "umbra/capture/effects.h"
#include "umbra/dispatch/effects.h"
#include "umbra/dispatch/writes.h"
#include "umbra/generated/functions.h"

namespace umbra {

using namespace functional;

namespace {

// ---- the four kinds of calls ----

/// The wrappers of a view: metadata follows from the wrapper that it is taken of, since values may lie in memory
/// otherwise. Gives one tensor or a list.
Value view_of_wrapper(const Operator& op, const Value* frame) {
  Frame outer(op, frame);
  run_view(op.definition(), outer.data());
  return std::move(outer[0]);
}

/// What one view of `self` is: its way from the base, and its contents.
IntrusivePtr<FunctionalState> state_of_view(const Tensor& self, ViewStep step, const Tensor& value) {
  FunctionalState& from = state_of(self.impl());
  auto state = make_counted<FunctionalState>();
  state->base = from.base;
  state->views = from.views;
  state->views.push_back(std::move(step));
  state->value = value;
  // As in PyTorch a view starts from before all writes: where there were any, it is taken of the base when it is read.
  state->generation = 0;
  state->history = self.version();
  state->resizes = from.base->resizes;
  state->level = from.level;
  return state;
}

/// The contents of a view of `self`: taken of its contents, or where these do not allow it, of those of its base.
Value view_of_value(const Operator& op, const Value* frame, const Tensor& self) {
  FunctionalState& state = state_of(self.impl());
  auto of_contents = [&] {
    Frame inner(op);
    inner[0] = Value(state.value);
    for (size_t i = 1; i < op.argument_count(); ++i) inner[i] = unwrap_value(frame[i]);
    op.call(inner.data());
    return std::move(inner[0]);
  };
  renew_history(self);
  // What is behind the writes serves as well: the view is taken anew when it is read.
  if (state.generation != state.base->generation && !op.has_tag(Tag::AddressesMemory)) {
    try {
      return of_contents();
    } catch (const Error&) {
    }
  }
  current_value(state);
  if (lies_as_shown(*state.base)) return of_contents();
  if (!op.has_tag(Tag::AddressesMemory)) {
    try {
      return of_contents();
    } catch (const Error&) {  // the wrapper has such a view
    }
  }
  lay_as_shown(*state.base);
  state.value = replay_views(state.base->value, state.views);
  return of_contents();
}

/// Sizes that only the run will tell are found anew by each call: a view's wrapper shows those of its contents, which
/// are recorded.
void show_sizes_of_contents(const Tensor& self, const Tensor& shown, const Tensor& contents) {
  const Tensor& value = state_of(self.impl()).value;
  if (identical(shown.sym_sizes(), contents.sym_sizes()) &&
      shown.sym_storage_offset().same(contents.sym_storage_offset()))
    return;
  if (shown.dim() != contents.dim() || !identical(self.sym_sizes(), value.sym_sizes())) return;
  bool lies_alike =
      identical(self.sym_strides(), value.sym_strides()) && self.sym_storage_offset().same(value.sym_storage_offset());
  shown.impl()->set_geometry(contents.sym_sizes(), SymShape(shown.sym_strides()),
                             lies_alike ? contents.sym_storage_offset() : shown.sym_storage_offset());
}

void call_view(const Operator& op, Value* frame) {
  Tensor self = frame[0].tensor();
  if (!is_wrapper(self))
    return op.call(frame);  // of a tensor outside the program, and outside it as well: writing it is refused
  check<NotImplementedError>(static_cast<bool>(op.definition().view), op.name(),
                             ": its schema says that it gives a view, and its definition does not say which: it cannot "
                             "be captured with writes taken out");
  Value shown = view_of_wrapper(op, frame), values = view_of_value(op, frame, self);
  std::vector<Value> arguments(op.argument_count());
  for (size_t i = 1; i < op.argument_count(); ++i) arguments[i] = frame[i];
  auto become_view = [&](const Tensor& wrapper, const Tensor& value, int64_t which) {
    show_sizes_of_contents(self, wrapper, value);
    wrapper.impl()->set_layer_state(state_of_view(self, {&op, arguments, which}, value));
  };
  if (shown.is_tensor()) become_view(shown.tensor_ref(), values.tensor_ref(), -1);
  else
    for (size_t i = 0; i < shown.tensor_list().size(); ++i)
      become_view(shown.tensor_list()[i], values.tensor_list()[i], static_cast<int64_t>(i));
  frame[0] = std::move(shown);
}

std::vector<Tensor> written_by(const Operator& op, const Value* frame) {
  std::vector<Tensor> written;
  const auto& arguments = op.schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].alias.write)
      frame[i].each_tensor([&](TensorImpl* t) { written.emplace_back(IntrusivePtr<TensorImpl>(t)); });
  return written;
}

bool writes_list(const Operator& op) {
  const auto& arguments = op.schema().arguments;
  return !arguments.empty() && arguments[0].alias.write && arguments[0].type.list;
}

/// The new size of an output is that of a tensor of its own.
void check_resize(const Operator& op, const Tensor& out, const TensorSpec& result) {
  bool fits = out.sym_sizes() == SymIntArrayRef(result.sizes),
       alone = state_of(out.impl()).views.empty() && out.sym_storage_offset() == SymInt(0);
  check<NotImplementedError>(fits || alone, op.name(), ": an output of size ", to_string(out.sym_sizes()),
                             " that is part of another tensor has to get size ", to_string(result.sizes),
                             ", which cannot be captured: pass one of the right size");
}

/// What the operator would refuse to write, it refuses here too; outputs of another size than their results get it.
void check_writes(const Operator& op, Value* frame, const std::vector<Tensor>& written, SpecList& results) {
  if (op.definition().mutate.any()) {
    for (const Tensor& t : written) check_no_overlap(op, t);
  } else if (op.functional() && writes_list(op)) {
    for (size_t i = 0; i < written.size(); ++i) {
      Frame element(op, frame);
      element[0] = Value::borrow(written[i]);
      check_inplace_write(op, element.data(), results[i]);
    }
  } else if (op.functional() && op.is_inplace()) {
    check_inplace_write(op, frame, results[0]);
  } else if (op.functional()) {
    for (size_t i = 0; i < written.size(); ++i) check_resize(op, written[i], results[i]);
    prepare_outputs(op, frame, written, results);
  }
  bool one_value = op.functional() && op.functional()->has_tag(Tag::WritesOneValue);
  for (const Tensor& t : written) {
    check<NotImplementedError>(!state_of(t.impl()).base->is_sparse_part, op.name(),
                               " writes a part of a sparse tensor, which cannot be captured: clone() the part first");
    check_write_inside(op, t);
    bool repeats = overlaps_itself(t) || shows_elements_several_times(t);
    check<NotImplementedError>(
        (one_value || !repeats) && !is_part_of_repeated(t), op.name(),
        " writes elements that share memory, which cannot be captured: clone() the tensor first");
  }
}

/// What only the out form refuses, or makes of its arguments: it may ask for a conversion, which is one of values.
void ask_out_form(const Operator& op, Value* frame, Value* values) {
  if (!op.functional() || op.definition().mutate.any() || !op.has_out() || !op.definition().meta) return;
  size_t arguments = op.functional()->argument_count();
  for (size_t i = arguments; i < op.argument_count(); ++i) values[i] = frame[i];
  SpecList unused;
  op.definition().meta(unused, values);
  for (size_t i = 0; i < arguments; ++i) {
    bool holds_tensors = false;
    values[i].each_tensor([&](TensorImpl*) { holds_tensors = true; });
    if (!holds_tensors) frame[i] = values[i];
  }
}

/// Whether the new contents' look is known before they are computed: as with data, what is refused is refused then.
bool describe_writes(const Operator& op, Value* frame, SpecList& results) {
  if (op.functional() && !op.definition().mutate.any()) {
    // A generated variant is its operator's call and a copy.
    if (op.definition().tags.has(Tag::Generated)) return false;
    const BoxedMeta& meta = op.functional()->definition().meta;
    OutputsGiven given(op.has_out());
    if (meta) meta(results, frame);
    return static_cast<bool>(meta);
  }
  if (op.definition().mutate.any() && op.definition().meta) op.definition().meta(results, frame);
  return true;
}

/// `counted`: how many of the writes count, the first ones.
void write_results(const Operator& op, const std::vector<Tensor>& written, Value* contents, size_t counted) {
  for (size_t i = 0; i < written.size(); ++i) {
    FunctionalBase& base = *state_of(written[i].impl()).base;
    Tensor value = contents[i].take_tensor();
    if (!(written[i].sym_sizes() == value.sym_sizes()))
      fail<AssertionError>(op.name(), ": new contents of size ", to_string(value.sym_sizes()), " for a tensor of size ",
                           to_string(written[i].sym_sizes()));
    if (state_of(written[i].impl()).views.empty() && !identical(base.shown.sizes, written[i].sym_sizes())) {
      base.show(written[i], value);
      ++base.resizes;
    }
    write_value(written[i], std::move(value));
    current_value(state_of(written[i].impl()));
    if (i < counted) written[i].impl()->bump_version();
    renew_history(written[i]);
  }
}

const Operator& functional_form_of(const Operator& op) {
  const Operator* functional = op.functional_form();
  bool gives_argument = op.schema().space != "aten" && op.is_mutable() && op.return_count() > 0 &&
                        !op.schema().returns[0].alias.set.empty();
  check(functional || !gives_argument,
        "Found a custom (non-ATen) operator whose output has alias annotations: ", to_string(op.schema()),
        ". We only support functionalizing operators whose outputs do not have alias annotations");
  check<NotImplementedError>(functional, op.name(),
                             " writes its arguments and has no functional form: it cannot be captured");
  return *functional;
}

void check_captured(const Operator& op, const Tensor& written) {
  check<NotImplementedError>(!is_sparse_tensor(written), op.name(),
                             " writes a sparse tensor, which cannot be captured: take the form that gives a new one");
  check(is_wrapper(written), op.name(),
        ": a tensor that is not part of the captured program (a constant) is written; make it an input");
}

// ---- operators that change metadata ----

/// The wrapper becomes a view of itself: one step more from its base. One that is behind the writes to its base stays
/// so: its contents are made anew, by all steps, when they are read.
void become_view(const Operator& view, Value* frame, const Tensor& self) {
  FunctionalState& state = state_of(self.impl());
  check_views_last(state);
  Value shown = view_of_wrapper(view, frame), value = view_of_value(view, frame, self);
  std::vector<Value> arguments(view.argument_count());
  for (size_t i = 1; i < view.argument_count(); ++i) arguments[i] = frame[i];
  state.views.push_back({&view, std::move(arguments), -1});
  state.value = value.tensor();
  state.resizes = state.base->resizes;
  const Tensor& looks = shown.tensor_ref();
  self.impl()->set_geometry(looks.sym_sizes(), looks.sym_strides(), looks.sym_storage_offset());
}

/// What gives no view (resize_) makes a value that shares memory with nothing, so nothing may share the wrapper's.
void become_value(const Operator& op, const Operator& functional, Value* frame, const Tensor& self) {
  Frame inner(std::max(op.frame_size(), functional.frame_size()));
  for (size_t i = 0; i < functional.argument_count(); ++i) inner[i] = unwrap_value(frame[i]);
  functional.call(inner.data());
  Tensor value = inner[0].take_tensor();
  FunctionalState& state = state_of(self.impl());
  FunctionalBase& base = *state.base;
  // A tensor that has the size keeps its strides, unless it is to get a memory format.
  int format = op.schema().find("memory_format");
  bool keeps_strides = format >= 0 && frame[format].is_none();
  if (value.sym_sizes() == self.sym_sizes() && (keeps_strides || value.sym_strides() == self.sym_strides())) return;
  check<NotImplementedError>(state.views.empty() && base.use_count() == 1 && self.sym_storage_offset() == SymInt(0),
                             op.name(), ": the tensor shares memory with another one: it cannot be captured");
  self.storage()->set_bytes(value.storage()->bytes());
  self.impl()->set_geometry(value.sym_sizes(), value.sym_strides(), value.sym_storage_offset());
  base.show(self, value);
  base.value = state.value = value;
  state.generation = ++base.generation;
  state.resizes = ++base.resizes;
}

/// The wrapper takes another one's place: its memory, contents and way from the base.
void become_other(const Operator& op, const Tensor& self, const Tensor& source) {
  check_captured(op, source);
  check(self.dtype() == source.dtype(), "Could not set tensor of type ", source.dtype(), " to a tensor of type ",
        self.dtype());
  FunctionalState &state = state_of(self.impl()), &from = state_of(source.impl());
  current_value(from);
  state.base->frozen = true;
  state.base = from.base;
  state.views = from.views;
  state.value = from.value;
  state.generation = from.generation;
  state.resizes = from.resizes;
  self.impl()->set_storage(source.storage());
  self.impl()->set_geometry(source.sym_sizes(), source.sym_strides(), source.sym_storage_offset());
}

/// What changes is known to the tensor's own history.
void count_change(const Tensor& self) {
  self.impl()->bump_version();
  state_of(self.impl()).history = self.version();
}

void call_metadata(const Operator& op, Value* frame) {
  Tensor self = frame[0].tensor();
  check_captured(op, self);
  static const Operator& set = get_operator("aten::set_.source_Tensor");
  if (&op == &set) {
    become_other(op, self, frame[1].tensor());
    count_change(self);
    frame[0] = Value(std::move(self));
    return;
  }
  if (op.definition().unchanged) return;  // detach_: metadata stay as they are
  const Operator& functional = functional_form_of(op);
  if (functional.definition().view) become_view(functional, frame, self);
  else become_value(op, functional, frame, self);
  count_change(self);
  frame[0] = Value(std::move(self));
}

// ---- operators that write ----

/// The new contents of a list are computed together, and would not see one another.
void check_apart(const Operator& op, const std::vector<Tensor>& written) {
  for (size_t i = 0; i < written.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      check<NotImplementedError>(!may_share_elements(written[i], written[j]), op.name(),
                                 ": two tensors of the written list share memory: it cannot be captured");
}

/// The elements of a list are written one after the other: a later one that reads what an earlier one wrote would find
/// the old contents when all are computed together.
void check_reads_apart(const Operator& op, const Value* frame, const std::vector<Tensor>& written) {
  const auto& arguments = op.schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].alias.write) continue;
    size_t position = 0;
    bool list = frame[i].is_tensor_list();
    frame[i].each_tensor([&](TensorImpl* element) {
      Tensor read{IntrusivePtr<TensorImpl>(element)};
      size_t earlier = list ? std::min(position, written.size()) : written.empty() ? 0 : written.size() - 1;
      for (size_t k = 0; k < earlier; ++k)
        check<NotImplementedError>(!may_share_elements(read, written[k]), op.name(),
                                   ": a tensor is read after it was written: it cannot be captured");
      ++position;
    });
  }
}

/// A library's operator runs on copies of what it writes, each one of its own: what one of them shares with another
/// argument would not see the write.
void check_writes_alone(const Operator& op, const Value* frame, const std::vector<Tensor>& written) {
  size_t position = 0;  // among the written ones
  for (size_t i = 0; i < op.argument_count(); ++i) {
    bool is_written = op.schema().arguments[i].alias.write;
    frame[i].each_tensor([&](TensorImpl* t) {
      size_t own = is_written ? position++ : written.size();
      Tensor given{IntrusivePtr<TensorImpl>(t)};
      for (size_t k = 0; k < written.size(); ++k)
        if (k != own && may_share_elements(given, written[k]))
          fail<NotImplementedError>(
              name_for_users(op),
              ": a tensor that it writes shares memory with another argument: it cannot be captured");
    });
  }
}

/// How many results of the functional form are new contents: one for each argument that is written, lists whole.
size_t written_arguments(const Operator& op) {
  size_t count = 0;
  for (const SchemaArgument& a : op.schema().arguments) count += a.alias.write;
  return count;
}

void call_mutable(const Operator& op, Value* frame) {
  const Operator* functional = &functional_form_of(op);
  std::vector<Tensor> written = written_by(op, frame);
  for (const Tensor& t : written) check_captured(op, t);
  if (writes_list(op)) {
    check_apart(op, written);
    check_reads_apart(op, frame, written);
  }
  if (runs_on_copies(*functional)) check_writes_alone(op, frame, written);
  Frame inner(std::max(op.frame_size(), functional->frame_size()));
  for (size_t i = 0; i < functional->argument_count(); ++i) inner[i] = unwrap_value(frame[i]);
  ask_out_form(op, frame, inner.data());
  SpecList specs;
  bool described = describe_writes(op, frame, specs);
  if (described) check_writes(op, frame, written, specs);
  functional->call(inner.data());
  // First the results that are values of their own, then the new contents of what is written.
  size_t own = functional->return_count() - (writes_list(op) ? written_arguments(op) : written.size());
  std::vector<Value> contents;
  for (size_t i = own; i < functional->return_count(); ++i)
    inner[i].each_tensor([&](TensorImpl* t) { contents.emplace_back(Tensor(IntrusivePtr<TensorImpl>(t))); });
  check(contents.size() == written.size(), op.name(), ": ", contents.size(), " new values for ", written.size(),
        " written tensors");
  if (!described) {
    for (const Value& v : contents) specs.push_back(spec_of(v.tensor_ref()));
    check_writes(op, frame, written, specs);
  }
  std::vector<Value> results;
  for (size_t i = 0; i < own; ++i) results.push_back(wrap_value(inner[i]));
  // As with data: batch_norm, which returns values of its own, changes its running statistics without counting, and
  // rrelu_with_noise_ the slopes that it does not return. All that a library's operator writes counts.
  bool returns_one = op.is_inplace() && op.return_count() == 1 && !writes_list(op);
  bool uncounted = own > 0 && op.schema().space == "aten";
  write_results(op, written, contents.data(), uncounted ? 0 : returns_one ? 1 : written.size());
  for (size_t i = 0; results.size() < op.return_count(); ++i) results.push_back(Value(written[i]));
  for (size_t i = 0; i < results.size(); ++i) frame[i] = std::move(results[i]);
}

/// What was written has other memory than the tensor: it would not be the tensor's that gets another size.
void check_own_memory(const Operator& op, const Value* frame) {
  static const Operator* resize = find_operator("inductor::resize_storage_bytes_");
  if (&op != resize || !is_wrapper(frame[0].tensor_ref())) return;
  check<NotImplementedError>(state_of(frame[0].tensor_impl()).base->generation == 0, op.name(),
                             ": the tensor was written before: that cannot be captured");
}

/// Whether the contents of a wrapper lie otherwise than it shows: those that a write gave it may, and what comes of it.
bool lies_otherwise(TensorImpl* t) {
  Tensor shown{IntrusivePtr<TensorImpl>(t)};
  if (!is_wrapper(shown) || is_sparse_tensor(shown)) return false;
  const FunctionalState& state = state_of(t);
  Tensor contents = state.base->generation == state.generation ? state.value : unwrap(shown);
  return !(contents.sym_strides() == shown.sym_strides());
}

/// Whether an argument stands for places in others: its values count, and how it lies does not.
bool is_mask(TensorImpl* t) { return t->dtype() == DType::Bool || t->dtype() == DType::UInt8; }

/// An argument of a question about layouts. What lies as it shows itself is asked for by its contents, whose values may
/// count: how many elements of a mask are true.
Value as_shown(const Value& v) {
  auto one = [](const Tensor& t) {
    return t.defined() && is_wrapper(t) && (is_mask(t.impl()) || !lies_otherwise(t.impl())) ? unwrap(t) : t;
  };
  if (v.is_tensor()) return Value(one(v.tensor_ref()));
  if (!v.is_tensor_list()) return v;
  std::vector<Tensor> list = v.tensor_list().vec();
  for (Tensor& t : list) t = one(t);
  return Value(std::move(list));
}

/// What the results of a call look like to one who sees its arguments as they show themselves; empty: as they are.
SpecList results_as_shown(const Operator& op, const Value* frame) {
  bool any = false;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) { any = any || lies_otherwise(t); });
  SpecList specs;
  if (!any || !op.definition().meta) return specs;
  Frame shown(op, frame);
  for (size_t i = 0; i < op.argument_count(); ++i) shown[i] = as_shown(frame[i]);
  ExcludeKeys unrecorded(DispatchKeySet(DispatchKey::Proxy) | DispatchKey::PreProxy);
  op.definition().meta(specs, shown.data());
  return specs;
}

/// Results lie as the arguments that the caller sees make them lie: whether a reshape is a view depends on it.
void show_results(Value* results, SpecList& specs) {
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!results[i].is_tensor() || !is_wrapper(results[i].tensor_ref())) continue;
    Tensor wrapper = results[i].tensor();
    if (!(wrapper.sym_sizes() == SymIntArrayRef(specs[i].sizes))) continue;
    wrapper.impl()->set_geometry(specs[i].sizes, specs[i].strides, wrapper.sym_storage_offset());
    FunctionalState& state = state_of(wrapper.impl());
    state.base->show(wrapper, state.value);
  }
}

void call_plain(const Operator& op, Value* frame) {
  check_own_memory(op, frame);
  SpecList specs = results_as_shown(op, frame);
  Frame inner(op);
  for (size_t i = 0; i < op.argument_count(); ++i) inner[i] = unwrap_value(frame[i]);
  op.call(inner.data());
  for (size_t i = 0; i < op.return_count(); ++i) frame[i] = wrap_value(inner[i]);
  show_results(frame, specs);
}

/// A call whose effect has its place among others: it is handed the token of the one before.
void call_in_order(const Operator& op, Value* frame, EffectScope& effects) {
  Frame inner(op);
  for (size_t i = 0; i < op.argument_count(); ++i) inner[i] = unwrap_value(frame[i]);
  effects.call(op, inner.data());
  for (size_t i = 0; i < op.return_count(); ++i) frame[i] = wrap_value(inner[i]);
}

/// Parts of sparse tensors are values, which may be read.
void call_of_sparse(const Operator& op, Value* frame) {
  call_plain(op, frame);
  if (!op.is_view()) return;
  for (size_t i = 0; i < op.return_count(); ++i)
    if (const Tensor& part = frame[i].tensor_ref(); is_wrapper(part)) state_of(part.impl()).base->is_sparse_part = true;
}

void call_functional(const Operator& op, Value* frame) {
  bool of_sparse = op.argument_count() > 0 && frame[0].is_tensor() && is_sparse_tensor(frame[0].tensor_ref());
  if (of_sparse && !op.is_mutable()) call_of_sparse(op, frame);
  else if (op.is_view() && !op.has_tag(Tag::LiftsData)) call_view(op, frame);
  else if (op.has_tag(Tag::InPlaceView)) call_metadata(op, frame);
  else if (op.is_mutable()) call_mutable(op, frame);
  else if (EffectScope* effects = current_level() ? nullptr : EffectScope::current(); effects && has_effect(op))
    call_in_order(op, frame, *effects);
  else call_plain(op, frame);
}

void functionalize_layer(const Operator& op, DispatchKeySet keys, Value* frame) {
  // A user's tensor class is taken apart by its own handler, whose calls come back here.
  if (keys.has(DispatchKey::Subclass)) return pass_to_subclass(op, keys, frame);
  ExcludeKeys off(DispatchKeySet(DispatchKey::Functionalize) | DispatchKey::Autograd);
  OfLevel mode(nullptr);
  call_functional(op, frame);
}

const RegisterLayer kFunctionalize(DispatchKey::Functionalize, functionalize_layer);

}  // namespace

void write_contents(const Tensor& to, const TensorSpec& shown, const Tensor& contents) {
  resize_output(to, shown);
  autograd::write_once(to, contents);
}

namespace functional_level {

void call(const Operator& op, Value* frame, const IntrusivePtr<RefCounted>& level) {
  OfLevel scope(level);
  call_functional(op, frame);
}

}  // namespace functional_level

}  // namespace umbra
