#include "umbra/dispatch/writes.h"

#include <algorithm>
#include <exception>

#include "core/cpp_name.h"
#include "dispatch/layers.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/device_mismatch.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra {

namespace {

constexpr const char* kSharedWithInput =
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation.";

/// The bytes that a dense tensor lies on; nothing where it is empty, has gaps or has a place that only data tell.
std::optional<std::pair<SymInt, SymInt>> byte_range(const Tensor& t) {
  SymInt count = t.sym_numel(), offset = t.sym_storage_offset();
  if (!count.has_hint() || !offset.has_hint() || count == 0 || !t.is_non_overlapping_and_dense()) return std::nullopt;
  SymInt start = offset * t.item_size();
  return std::pair(start, start + count * t.item_size());
}

/// What is written must not be read at another place of the same call. The same tensor on both sides is fine where each
/// element is read before it is written; one that is written `anywhere` (index_add_) may only be the first argument.
void check_inputs_apart(const Tensor& written, const Operator& op, const Value* frame, bool anywhere = false) {
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) {
      check(!anywhere || i == 0 || t != written.impl() || t->sym_numel().same(0), kSharedWithInput);
      if (t == written.impl() || t->storage() != written.storage()) return;
      // One value for all elements: where it is written itself, it is what is written.
      if (t->dim() == 0 && op.schema().arguments[i].name == "value") return;
      Tensor input{IntrusivePtr<TensorImpl>(t)};
      auto in = byte_range(input), out = byte_range(written);
      if (!in || !out || in->first >= out->second || out->first >= in->second) return;
      check(*in == *out && input.sym_strides() == written.sym_strides(), kSharedWithInput);
    });
}

/// An output that is an input too cannot change its size: the kernel would read what is not there.
void check_not_an_input(const Operator& functional, const Value* frame, const Tensor& out, const TensorSpec& spec) {
  if (out.sym_sizes() == SymIntArrayRef(spec.sizes)) return;
  for (size_t i = 0; i < functional.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) { check(t != out.impl(), kSharedWithInput); });
}

ViewKind view_kind(const TensorImpl* of, bool several) {
  if (of->view_base() && of->view_kind() != ViewKind::Plain) return of->view_kind();
  if (is_inference_mode_enabled()) return ViewKind::Inference;
  if (!is_grad_enabled()) return ViewKind::NoGrad;
  return several ? ViewKind::MultiOutput : ViewKind::Plain;
}

bool repeats_elements(const TensorSpec& spec) {
  for (size_t d = 0; d < spec.sizes.size(); ++d)
    if (spec.strides[d].same(0) && !spec.sizes[d].same(1)) return true;
  return false;
}

}  // namespace

void fail_two_devices(Device one, Device other, bool fake) {
  std::string text = concat("Expected all tensors to be on the same device, but found at least two devices, ", one,
                            " and ", other, "!");
  if (fake) throw FakeTensorDeviceMismatchError(text);
  throw Error(text);
}

bool (*outputs_come_first)(const Operator& op) = [](const Operator&) { return true; };
bool (*outputs_are_exact_on_meta)(const Operator& op) = [](const Operator&) { return false; };

void refuse_lazy_lists(const Operator& op, const Value* frame) {
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (!op.schema().arguments[i].alias.write || !frame[i].is_tensor_list()) continue;
    for (const Tensor& t : frame[i].tensor_list()) {
      if (!t.defined() || !(t.is_conj() || t.is_neg())) continue;
      const char* kind = t.is_conj() ? "conjugate" : "negation";
      fail(" fallback doesn't currently support mutable TensorLists with ", kind,
           " inputs. Please materialize all the ", kind,
           " input tensor(s) in the mutable TensorList inputs before calling ", op.name());
    }
  }
}

bool overlaps_itself(const Tensor& tensor) {
  auto repeats = [&](int64_t d) {
    SymInt size = tensor.sym_sizes()[d], stride = tensor.sym_strides()[d];
    return !stride.is_symbolic() && stride.value() == 0 && size.has_hint() && size > 1;
  };
  auto is_empty = [](SymInt size) { return size.has_hint() && size == 0; };
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (repeats(d)) return std::none_of(tensor.sym_sizes().begin(), tensor.sym_sizes().end(), is_empty);
  return false;
}

void check_no_overlap(const Operator& op, const Tensor& written) {
  check(!overlaps_itself(written) || op.has_tag(Tag::WritesOverlapping),
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please clone() the tensor before performing the operation.");
}

void check_inplace_write(const Operator& op, Value* frame, const TensorSpec& result) {
  const Operator& functional = *op.functional();
  const Tensor& self = frame[0].tensor_ref();
  if (op.definition().meta) {
    SpecList unused;
    op.definition().meta(unused, frame);  // what only the in-place form refuses
  }
  SymIntArrayRef want = result.sizes, have = self.sym_sizes();
  if (!(want == have))
    fail("output with shape ", to_string(have), " doesn't match the broadcast shape ", to_string(want));
  check(can_cast(result.dtype, self.dtype()), "result type ", kernel_name(result.dtype),
        " can't be cast to the desired output type ", kernel_name(self.dtype()));
  check_no_overlap(functional, self);
  // What has no kernel of its own computes its result before it writes.
  if (functional.definition().meta) check_inputs_apart(self, op, frame, functional.definition().writes_straight);
}

/// Elementwise results and some reductions are cast to the type of their output; all others have to fit.
void check_output_type(const Operator& op, const Value* frame, const Tensor& out, const TensorSpec& spec) {
  const Operator& functional = *op.functional();
  const Definition& d = functional.definition();
  bool exact = functional.has_tag(Tag::ExactOut) && !functional.has_tag(Tag::CastsToOut) && d.elementwise &&
               frame[0].is_tensor() && (spec.dtype == DType::Bool || frame[0].tensor_ref().dtype() == spec.dtype),
       made_whole = d.meta || d.real.any() || op.definition().tags.has(Tag::Generated),
       casts = functional.has_tag(Tag::CastsToOut) ||
               (functional.has_tag(Tag::ExactOut)
                    ? d.elementwise
                    : !made_whole || (d.elementwise && !op.definition().tags.has(Tag::Generated)));
  // The meta device's variants copy what they described, unless they are generated: those copy to the same type.
  bool generated = op.definition().tags.has(Tag::Generated);
  bool on_meta = out.is_meta() && !out.is_fake() && (!generated || outputs_come_first(op));
  check(!on_meta || spec.dtype == out.dtype() || !outputs_are_exact_on_meta(op), "Expected out tensor to have dtype ",
        spec.dtype, " but got ", out.dtype(), " instead");
  check(!exact || on_meta || spec.dtype == out.dtype(), "Found dtype ", kernel_name(out.dtype()), " but expected ",
        kernel_name(spec.dtype));
  if (!casts && !on_meta) check_out_dtype(spec.dtype, out.dtype());
  check(can_cast(spec.dtype, out.dtype()), "result type ", kernel_name(spec.dtype),
        " can't be cast to the desired output type ", kernel_name(out.dtype()));
  if (out.device() != spec.device) fail_two_devices(spec.device, out.device(), out.is_fake());
}

void warn_of_resize(const Tensor& out, SymIntArrayRef sizes) {
  SymInt count = out.sym_numel();
  if (count.is_symbolic() || count.same(0) || out.sym_sizes() == sizes) return;
  warn("An output with one or more elements was resized since it had shape ", to_string(out.sym_sizes()),
       ", which does not match the required output shape ", to_string(sizes),
       ". This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they have "
       "zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with "
       "t.resize_(0).");
}

namespace {

/// Outputs have their sizes again where the call is refused.
class KeptSizes {
 public:
  explicit KeptSizes(ArrayRef<Tensor> outs) : outs_(outs) {
    for (const Tensor& t : outs) kept_.emplace_back(SymShape(t.sym_sizes()), SymShape(t.sym_strides()));
  }
  ~KeptSizes() {
    if (std::uncaught_exceptions() == exceptions_) return;
    for (size_t i = 0; i < kept_.size(); ++i)
      outs_[i].impl()->set_geometry(kept_[i].first, kept_[i].second, outs_[i].sym_storage_offset());
  }
  KeptSizes(const KeptSizes&) = delete;

 private:
  ArrayRef<Tensor> outs_;
  std::vector<std::pair<SymShape, SymShape>> kept_;
  int exceptions_ = std::uncaught_exceptions();
};

/// Factories and draws give an output its size without a word.
bool warns_of_resize(const Operator& functional, const Value* frame) {
  bool reads = false;
  for (size_t i = 0; i < functional.argument_count(); ++i) frame[i].each_tensor([&](TensorImpl*) { reads = true; });
  return reads && !functional.definition().random;
}

}  // namespace

void prepare_outputs(const Operator& op, const Value* frame, ArrayRef<Tensor> outs, SpecList& results) {
  const Operator& functional = *op.functional();
  std::optional<KeptSizes> kept;
  for (size_t i = 0; i < outs.size(); ++i) {
    check_output_type(op, frame, outs[i], results[i]);
    check_not_an_input(functional, frame, outs[i], results[i]);
    bool generated = op.definition().tags.has(Tag::Generated);
    // An elementwise kernel looks at its output as it was given, others at what it has become.
    if (functional.definition().elementwise && !generated) {
      check_no_overlap(functional, outs[i]);
      check_inputs_apart(outs[i], functional, frame);
    }
    // A generated variant copies what its operator gave: the layout is of no account. A composite may give what lies
    // over itself; an output of it does not.
    // So is that of what is computed whole and then copied to another type.
    bool copied = generated || (!functional.definition().elementwise && outs[i].dtype() != results[i].dtype);
    if (!(outs[i].sym_sizes() == SymIntArrayRef(results[i].sizes))) {
      if (!kept) kept.emplace(outs);
      if (warns_of_resize(functional, frame)) warn_of_resize(outs[i], results[i].sizes);
      TensorSpec resized = results[i];  // the kernel's own result stays laid out as the kernel wants it
      if (copied || (functional.is_composite() && repeats_elements(resized)))
        resized.strides = contiguous_strides(resized.sizes);
      resize_output(outs[i], resized);
    }
    check_no_overlap(functional, outs[i]);
    check_inputs_apart(outs[i], functional, frame);
  }
}

void resize_output(const Tensor& out, const TensorSpec& spec) {
  if (out.sym_sizes() == SymIntArrayRef(spec.sizes)) return;
  TensorImpl* impl = out.impl();
  // The memory first: where it cannot grow, the tensor stays as it was.
  SymInt bytes = storage_bytes(spec.sizes, spec.strides, impl->sym_storage_offset(), item_size(impl->dtype()));
  const Storage& storage = impl->storage();
  if (!bytes.is_symbolic() && !storage->bytes().is_symbolic() && storage->bytes() < bytes)
    storage->resize(bytes.value());
  else if (!storage->has_data()) storage->set_bytes(bytes);
  impl->set_geometry(spec.sizes, spec.strides, impl->sym_storage_offset());
}

void note_view(const Tensor& self, const Value& result) {
  const IntrusivePtr<TensorImpl>& base = self.impl()->view_base() ? self.impl()->view_base() : self.pointer();
  ViewKind kind = view_kind(self.impl(), result.is_tensor_list());
  result.each_tensor([&](TensorImpl* t) {
    if (t == self.impl()) return;
    t->set_view_base(base, kind);
    t->add_key(DispatchKey::Autograd);
  });
}

void run_view(const Definition& definition, Value* frame) {
  Tensor self = frame[0].tensor();
  definition.view(frame);
  if (!self.impl()->is_inference() && !definition.not_differentiable) note_view(self, frame[0]);
}

}  // namespace umbra
