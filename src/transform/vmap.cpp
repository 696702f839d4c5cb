#include "umbra/transform/vmap.h"

#include "autograd/forward_state.h"
#include "ops/common/batching.h"
#include "umbra/dispatch/writes.h"
#include "umbra/generated/functions.h"
#include "umbra/transform/tracked.h"

namespace umbra::transform {

namespace {

/// The definition that says what the operator computes: an in-place variant follows from its functional operator.
const Operator& computing(const Operator& op) {
  const Operator* functional = op.is_inplace() ? op.functional_form() : nullptr;
  return functional ? *functional : op;
}

[[noreturn]] void refuse_data(const Operator& op) {
  const std::string& name = op.schema().name;
  if (name == "_local_scalar_dense" || name == "item")
    fail(
        "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
        "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere inside "
        "PyTorch internals, please file a bug report.");
  if (op.has_tag(Tag::DynamicOutputShape))
    fail("vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over ", op.name(),
         ". Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature.");
  fail("Batching rule not implemented for ", op.name(), ". We could not generate a fallback.");
}

[[noreturn]] void refuse_write(const Operator& op) {
  std::string what = op.functional() && op.functional()->definition().elementwise ? "inplace arithmetic" : op.name();
  fail("vmap: ", what,
       "(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements "
       "than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. "
       "Please try to use out-of-place operators instead of ",
       what, ". If said operator is being called inside the PyTorch framework, please file a bug report instead.");
}

/// The operators that the call is made of, where that is how it is batched.
const BoxedFunction* parts_of_call(const Operator& op) {
  const Definition& d = op.definition();
  if (d.batch) return ops::parts_of(d.batch);
  if (d.elementwise) return nullptr;
  if (d.all_backends) return &d.all_backends;
  return d.decomposition ? &d.decomposition : d.tangent_form ? &d.tangent_form : nullptr;
}

}  // namespace

Batching batching_of(const Operator& op) {
  const Definition& d = computing(op).definition();
  if (d.batch && ops::is_one_by_one(d.batch)) return Batching::Loop;
  if (d.batch && ops::parts_of(d.batch)) return Batching::Parts;
  if (d.batch || d.elementwise) return Batching::Rule;
  return d.composite || d.all_backends || d.decomposition || d.tangent_form ? Batching::Parts : Batching::Loop;
}

bool is_batched_inside(const Tensor& tensor) {
  for (Tensor t = tensor; t.defined(); t = value_behind(t))
    if (batched_state(t.impl(), nullptr)) return true;
  return false;
}

Batched VmapLevel::value(const Tensor& tensor) const {
  if (has_stand_ins() && tensor.defined())
    if (const Tensor& here = stand_in(tensor); !here.is_same(tensor)) return value(here);
  const BatchedState* state = tensor.defined() ? batched_state(tensor.impl(), this) : nullptr;
  if (state) note(tensor);
  return state ? Batched(state->value, state->dim) : Batched(tensor, -1);
}

Tensor VmapLevel::wrap(const Tensor& value, int64_t dim) {
  check<ValueError>(value.dim() > 0, "vmap: a tensor of 0 dimensions is said to have the batch at dimension ", dim);
  return make_batched(value, wrap_dim(dim, value.dim()), IntrusivePtr<RefCounted>(this));
}

bool VmapLevel::is_batched(const Operator& op, const Value* frame) const {
  bool any = false;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) {
      if (!batched_state(t, this)) return;
      any = true;
      note(Tensor(IntrusivePtr<TensorImpl>(t)));
    });
  return any;
}

void VmapLevel::call_outside(const Operator& op, Value* frame) const {
  WithoutLevel off;
  op.call(frame);
}

namespace {

/// Whether the operator, or the one that it writes the result of, draws random numbers.
bool is_random(const Operator& op) {
  return op.definition().random || (op.functional() && op.functional()->definition().random) ||
         computing(op).definition().random;
}

/// What does not train draws nothing: dropout, rrelu.
bool draws(const Operator& op, const Value* frame) {
  int train = std::max(op.schema().find("train"), op.schema().find("training"));
  return train < 0 || !frame[train].is_bool() || frame[train].to_bool();
}

}  // namespace

void VmapLevel::call(const Operator& op, Value* frame) {
  const Definition& d = op.definition();
  bool batched = is_batched(op, frame);
  check(!op.has_out() || !(is_random(op) || op.has_tag(Tag::NondeterministicSeeded)),
        "vmap: We do not support calling out variants of random operations inside of vmap. Please use non-out variants "
        "as a workaround");
  bool refused = ops::is_refused(d.batch);
  if (refused && draws(op, frame)) d.batch(frame);
  if (d.composite && (refused || !(d.batch && batched))) return d.composite(frame);
  EnterBatchScope scope({IntrusivePtr<RefCounted>(this), size_, randomness_});
  if (is_random(op) && draws(op, frame)) return call_random(op, frame, batched);
  if (!batched) return call_outside(op, frame);
  check(!op.has_out(), "Batching rule not implemented for ", op.name(),
        "; the fallback path doesn't work on out= or view ops.");
  if (op.is_inplace() && frame[0].is_tensor()) return call_inplace(op, frame);
  call_by_rule(op, frame);
}

void VmapLevel::call_by_rule(const Operator& op, Value* frame) {
  const Definition& d = op.definition();
  if (const BoxedFunction* parts = parts_of_call(op)) return (*parts)(frame);
  if (!d.batch && !d.elementwise) return call_one_by_one(op, frame);
  Tensor self = op.is_view() ? frame[0].tensor() : Tensor();
  {
    WithoutLevel off;
    if (d.batch) d.batch(frame);
    else ops::batch_elementwise(op, frame);
  }
  // Views of a batched tensor can be told by their storage, as all views can.
  if (self.defined() && batched_state(self.impl(), this))
    frame[0].each_tensor([&](TensorImpl* t) {
      if (batched_state(t, this)) t->set_storage(self.storage());
    });
}

// ---- writing ----

void VmapLevel::write(const Tensor& self, const Tensor& result) {
  WithoutLevel off;
  Batched to = value(self), from = value(result);
  ops::batch_first(to).copy_(ops::batch_first(from, to.rank()));
}

/// Makes a tensor what a view of it is, down to the value that all levels stand on: the caller's tensor changes too.
void become(const Tensor& tensor, const Tensor& view) {
  const BatchedState *own = batched_state(tensor.impl(), nullptr), *changed = batched_state(view.impl(), nullptr);
  if (!own || !changed) {
    tensor.as_strided_(view.sym_sizes(), view.sym_strides(), view.sym_storage_offset());
    return;
  }
  become(own->value, changed->value);
  tensor.impl()->set_layer_state(make_counted<BatchedState>(own->value, changed->dim, own->level));
  tensor.impl()->set_geometry(view.sym_sizes(), view.sym_strides(), view.sym_storage_offset());
  tensor.impl()->bump_version();
}

/// Where a batch dimension is, once the tensor around it is a view of itself: where it was, and where dimensions come
/// and go, behind those that it was behind. Which these are is told by strides that stand for the dimensions' numbers.
static int64_t place_of_batch(const Operator& view, const Value* frame, int64_t dim) {
  constexpr int64_t kFirst = int64_t{1} << 20;
  const TensorImpl* self = frame[0].tensor_ref().impl();
  auto rank = static_cast<int64_t>(self->sym_sizes().size());
  SymShape numbered(self->sym_sizes());
  for (int64_t d = 0; d < rank; ++d) numbered[d] = kFirst + d;
  auto probe = make_counted<TensorImpl>(StorageImpl::without_data(self->storage()->bytes(), self->device()),
                                        self->dtype(), self->device(), backend_key(self->device()));
  probe->set_geometry(self->sym_sizes(), numbered, 0);
  Frame call(view, frame);
  call[0] = Value(Tensor(std::move(probe)));
  run_view(view.definition(), call.data());
  SymIntArrayRef strides = call[0].tensor_ref().sym_strides();
  if (static_cast<int64_t>(strides.size()) == rank) return dim;
  int64_t place = 0;
  for (size_t d = 0; d < strides.size(); ++d)
    for (int64_t before = 0; before < dim; ++before)
      if (strides[d].same(kFirst + before)) place = static_cast<int64_t>(d) + 1;
  return place;
}

/// A call that gives the tensor another size (resize_): each element of the batch gets it, as all lie one after the
/// other.
void VmapLevel::become_size(const Operator& op, Value* frame) {
  Tensor self = frame[0].tensor();
  Batched all = value(self);
  bool sized = op.argument_count() > 1 && frame[1].is_int_list() && op.schema().arguments[1].name == "size";
  check<NotImplementedError>(sized && all.dim == 0 && all.value.is_contiguous(), op.name(),
                             " changes sizes and strides in place, which vmap cannot carry");
  SymShape sizes{all.value.sym_size(0)};
  for (SymInt s : frame[1].int_list()) sizes.push_back(s);
  WithoutLevel off;
  Frame inner(op, frame);
  inner[0] = Value(all.value);
  inner[1] = Value(SymIntArrayRef(sizes).vec());
  op.call(inner.data());
  Tensor shown = wrap(all.value, 0);
  self.impl()->set_geometry(shown.sym_sizes(), shown.sym_strides(), shown.sym_storage_offset());
  self.impl()->bump_version();
  frame[0] = Value(std::move(self));
}

/// A view in place (t_): the tensor, and the value behind it, become what the view is.
void VmapLevel::become_view(const Operator& op, const Operator& view, Value* frame) {
  if (&view == &op || !view.is_view()) return become_size(op, frame);
  Tensor self = frame[0].tensor();
  Frame inner(view, frame);
  call(view, inner.data());
  Batched changed = value(inner[0].tensor_ref());
  int64_t place = place_of_batch(view, frame, value(self).dim);
  WithoutLevel off;
  become(self, wrap(changed.value.movedim(changed.dim, place), place));
  frame[0] = Value(std::move(self));
}

void VmapLevel::call_inplace(const Operator& op, Value* frame) {
  Tensor self = frame[0].tensor();
  const Operator& source = computing(op);
  const Definition& own = op.definition();
  if (!value(self).is_batched()) refuse_write(op);
  for (size_t i = 1; i < op.argument_count() && !own.batch; ++i)
    check(!op.schema().arguments[i].alias.write, "Batching rule not implemented for ", op.name(),
          "; the fallback path doesn't work on out= or view ops.");
  if (op.has_tag(Tag::InPlaceView)) return become_view(op, source, frame);
  if (own.batch) {
    WithoutLevel off;
    own.batch(frame);
  } else if (source.definition().elementwise && !source.definition().batch) {
    WithoutLevel off;
    ops::batch_elementwise(op, frame);
  } else if (&source == &op) {  // a user's, that has no other form: it writes the elements of the batch
    WithoutLevel off;
    ops::batch_one_by_one(op, frame);
  } else {
    Frame inner(source, frame);
    call(source, inner.data());
    check(inner[0].tensor_ref().sym_sizes() == self.sym_sizes(), "output with shape ", to_string(self.sym_sizes()),
          " doesn't match the broadcast shape ", to_string(inner[0].tensor_ref().sym_sizes()));
    write(self, inner[0].tensor_ref());
  }
  self.impl()->bump_version();
  frame[0] = Value(std::move(self));
}

// ---- random numbers ----

void VmapLevel::call_random(const Operator& op, Value* frame, bool batched) {
  check(randomness_ != Randomness::Error,
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
        "randomness flags on vmap or perform the randomness operation out of vmap");
  if (!op.definition().batch && op.definition().all_backends) return op.definition().all_backends(frame);
  if (!batched && randomness_ == Randomness::Same) return call_outside(op, frame);
  if (op.is_inplace() && frame[0].is_tensor()) return draw_inplace(op, frame);
  if (op.definition().batch) return call_by_rule(op, frame);
  ops::check_all_differ();
  call_one_by_one(op, frame);
}

/// Numbers that differ are drawn right into the batch, which lies in front for that; those that do not into a tensor of
/// one element's size, which is copied to all.
void VmapLevel::draw_inplace(const Operator& op, Value* frame) {
  Tensor self = frame[0].tensor();
  Batched to = value(self);
  int64_t rank = self.dim();
  bool others_batched = false;
  for (size_t i = 1; i < op.argument_count(); ++i) {
    if (!frame[i].is_tensor()) continue;
    rank = std::max(rank, frame[i].tensor_ref().dim());
    others_batched |= value(frame[i].tensor_ref()).is_batched();
  }
  if (others_batched) ops::check_all_differ();
  if (others_batched && !to.is_batched()) refuse_write(op);
  bool same = randomness_ == Randomness::Same;
  check(same || to.is_batched(),
        "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
        "randomness. If this is necessary for your usage, please file an issue with functorch.");
  SymShape sizes(self.sym_sizes());
  {
    WithoutLevel off;
    Frame inner(op, frame);
    for (size_t i = 1; i < op.argument_count(); ++i)
      if (frame[i].is_tensor()) inner[i] = Value(ops::batch_first(value(frame[i].tensor_ref()), rank));
    Tensor drawn = same ? empty(sizes, to.value.options()) : ops::batch_first(to, rank);
    inner[0] = Value(drawn);
    op.call(inner.data());
    if (same) ops::batch_first(to).copy_(drawn);
  }
  self.impl()->bump_version();
  frame[0] = Value(std::move(self));
}

// ---- without a rule ----

void VmapLevel::call_one_by_one(const Operator& op, Value* frame) {
  // An operator that is said to be called so has results of one shape for all elements, or fails where they have not.
  const BoxedFunction& rule = computing(op).definition().batch;
  bool declared = rule && ops::is_one_by_one(rule);
  if (op.has_tag(Tag::DataDependentOutput) || (op.has_tag(Tag::DynamicOutputShape) && !declared)) refuse_data(op);
  check(!op.is_view() && !op.is_mutable(), "Batching rule not implemented for ", op.name(),
        "; the fallback path doesn't work on out= or view ops.");
  for (const auto& r : op.schema().returns)
    if (!r.type.is_tensor()) refuse_data(op);
  WithoutLevel off;
  ops::batch_one_by_one(op, frame);
}

namespace {
const bool kBatches = (autograd::is_batch = is_batched_inside, true);
}

}  // namespace umbra::transform
