// Running an operator from its definition: allocate what meta describes, then fill it. The same code serves the CPU,
// the meta device and fake tensors; in-place and out variants follow from the functional operator here.
#include "dispatch/layers.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra {

namespace {

const BoxedKernel& kernel_of(const Operator& op, Backend backend) {
  const BoxedKernel& kernel = op.definition().kernels[backend];
  if (__builtin_expect(!kernel, 0))
    fail<NotImplementedError>("Could not run '", op.name(), "' with arguments from the '", name(backend),
                              "' backend: no kernel is defined for it");
  return kernel;
}

void copy_into(const Tensor& to, const Tensor& from, Backend backend) {
  static const Operator& copy = get_operator("aten::copy");
  Value frame[3] = {Value::borrow(to), Value::borrow(from), Value(false)};
  kernel_of(copy, backend)({&to, 1}, frame);
}

// Lazily conjugated or negated inputs become plain ones before a kernel sees them.
void resolve_lazy_bits(const Operator& op, Value* frame, Backend backend) {
  static const Operator& clone = get_operator("aten::clone");
  auto plain = [&](const Tensor& t) {
    Value inner[2] = {Value::borrow(t), Value()};
    SpecList specs;
    clone.definition().meta(specs, inner);
    Tensor copy = allocate_tensor(specs[0].sizes, specs[0].strides, specs[0].dtype, specs[0].device);
    kernel_of(clone, backend)({&copy, 1}, inner);
    return copy;
  };
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (frame[i].is_tensor()) {
      const Tensor& t = frame[i].tensor_ref();
      if ((t.is_conj() || t.is_neg()) && !op.schema().arguments[i].alias.write) frame[i] = Value(plain(t));
    } else if (frame[i].is_tensor_list()) {
      std::vector<Tensor> tensors = frame[i].tensor_list().vec();
      bool any = false;
      for (Tensor& t : tensors)
        if (t.defined() && (t.is_conj() || t.is_neg())) t = plain(t), any = true;
      if (any) frame[i] = Value(std::move(tensors));
    }
  }
}

bool has_lazy_bits(const Operator& op, const Value* frame) {
  bool any = false;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) { any |= t->is_conj() | t->is_neg(); });
  return any;
}

/// One backend run: how outputs are made, and where there is data to fill them with.
struct Run {
  std::optional<Backend> backend;  // none: metadata only
  MakeTensor make;
  void* context;
  bool with_data() const { return backend.has_value(); }

  void fill(const Operator& op, TensorList outputs, Value* frame) const { kernel_of(op, *backend)(outputs, frame); }

  Tensor allocate(const TensorSpec& spec) const { return spec.defined ? make(spec, context) : Tensor(); }

  void functional(const Operator& op, Value* frame) const {
    const Definition& d = op.definition();
    SpecList specs;
    d.meta(specs, frame);
    const auto& returns = op.schema().returns;
    if (returns.size() == 1 && returns[0].type.is_tensor_list()) return list_result(op, specs, frame);
    if (returns.size() == 1 && specs.size() == 1) {
      Tensor output = allocate(specs[0]);
      if (with_data()) fill(op, {&output, 1}, frame);
      frame[0] = Value(std::move(output));
      return;
    }
    check(specs.size() == returns.size(), op.name(), ": metadata for ", specs.size(), " outputs, schema has ",
          returns.size());
    Tensor few[4];
    std::vector<Tensor> many(specs.size() > std::size(few) ? specs.size() : 0);
    Tensor* outputs = many.empty() ? few : many.data();
    for (size_t i = 0; i < specs.size(); ++i) outputs[i] = allocate(specs[i]);
    if (with_data()) fill(op, {outputs, specs.size()}, frame);
    for (size_t i = 0; i < specs.size(); ++i) frame[i] = Value(std::move(outputs[i]));
  }

  void list_result(const Operator& op, SpecList& specs, Value* frame) const {
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < specs.size(); ++i) outputs.push_back(allocate(specs[i]));
    if (with_data()) fill(op, outputs, frame);
    frame[0] = Value(std::move(outputs));
  }

  /// Calls the functional operator on the arguments of a variant and gives its results.
  std::vector<Tensor> call_functional(const Operator& functional, Value* frame) const {
    Frame inner(functional, frame);
    functional.call(inner.data());
    std::vector<Tensor> results;
    for (size_t i = 0; i < functional.return_count(); ++i) results.push_back(inner[i].take_tensor());
    return results;
  }

  void inplace(const Operator& op, Value* frame) const {
    const Operator& base = *op.functional();
    const Definition& d = base.definition();
    Tensor self = frame[0].tensor();
    if (!d.meta) {
      Tensor result = call_functional(base, frame)[0];
      check_inplace(base, self, TensorSpec(result.sym_sizes(), result.sym_strides(), result.dtype(), result.device()));
      if (with_data()) copy_into(self, result, *backend);
    } else {
      SpecList specs;
      d.meta(specs, frame);
      check_inplace(base, self, specs[0]);
      check_inputs_apart(self, op, frame);
      if (with_data()) {
        if (specs[0].dtype == self.dtype() && d.elementwise &&
            (d.reads_lazy_bits || (!self.is_conj() && !self.is_neg()))) {
          fill(base, {&self, 1}, frame);
        } else {
          Tensor result = allocate(specs[0]);
          fill(base, {&result, 1}, frame);
          copy_into(self, result, *backend);
        }
      }
    }
    self.impl()->bump_version();
    frame[0] = Value(std::move(self));
  }

  static void check_inplace(const Operator& base, const Tensor& self, const TensorSpec& spec) {
    SymIntArrayRef want = spec.sizes, have = self.sym_sizes();
    if (!(want == have))
      fail("output with shape ", to_string(have), " doesn't match the broadcast shape ", to_string(want));
    check(can_cast(spec.dtype, self.dtype()), "result type ", kernel_name(spec.dtype),
          " can't be cast to the desired output type ", kernel_name(self.dtype()));
    check_no_overlap(base, self);
  }

  /// A tensor whose elements share memory (expand) cannot be written, save by what writes one value everywhere and the
  /// like.
  static void check_no_overlap(const Operator& op, const Tensor& self) {
    if (self.is_symbolic() || self.numel() == 0) return;
    for (int64_t d = 0; d < self.dim(); ++d)
      if (self.sym_sizes()[d].value() > 1 && self.sym_strides()[d].value() == 0 && !op.has_tag(Tag::WritesOverlapping))
        fail(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation.");
  }

  /// The bytes that a dense tensor lies on; nothing where it is empty, has gaps or has a symbolic place.
  static std::optional<std::pair<int64_t, int64_t>> byte_range(const Tensor& t) {
    SymInt count = t.sym_numel(), offset = t.sym_storage_offset();
    if (count.is_symbolic() || offset.is_symbolic() || count.value() == 0 || !t.is_non_overlapping_and_dense())
      return std::nullopt;
    int64_t item = t.item_size(), start = offset.value() * item;
    return std::pair(start, start + count.value() * item);
  }

  /// What is written must not be read at another place of the same call. The same tensor on both sides is fine: each
  /// element is read before it is written.
  static void check_inputs_apart(const Tensor& written, const Operator& op, const Value* frame) {
    for (size_t i = 0; i < op.argument_count(); ++i)
      frame[i].each_tensor([&](TensorImpl* t) {
        if (t == written.impl() || t->storage() != written.storage()) return;
        Tensor input{IntrusivePtr<TensorImpl>(t)};
        auto in = byte_range(input), out = byte_range(written);
        if (!in || !out || in->first >= out->second || out->first >= in->second) return;
        bool same = *in == *out && input.sym_strides() == written.sym_strides();
        check(same,
              "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
              "memory location. "
              "Please clone() the tensor before performing the operation.");
      });
  }

  static void resize_output(const Tensor& out, const TensorSpec& spec) {
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

  /// An output that is an input too cannot change its size: the kernel would read what is not there.
  static void check_not_an_input(const Operator& functional, const Value* frame, const Tensor& out,
                                 const TensorSpec& spec) {
    if (out.sym_sizes() == SymIntArrayRef(spec.sizes)) return;
    for (size_t i = 0; i < functional.argument_count(); ++i)
      frame[i].each_tensor([&](TensorImpl* t) {
        check(t != out.impl(),
              "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
              "memory location. Please clone() the tensor before performing the operation.");
      });
  }

  void out(const Operator& op, Value* frame) const {
    const Operator& base = *op.functional();
    const Definition& d = base.definition();
    size_t first = base.argument_count(), count = base.return_count();
    std::vector<Tensor> outs, results;
    for (size_t i = 0; i < count; ++i) outs.push_back(frame[first + i].tensor());
    SpecList specs;
    if (d.meta) d.meta(specs, frame);
    else {
      results = call_functional(base, frame);
      for (Tensor& r : results) specs.push_back(TensorSpec(r.sym_sizes(), r.sym_strides(), r.dtype(), r.device()));
    }
    bool direct = d.meta && d.elementwise;
    // Elementwise results and some reductions are cast to the type of their output; all others have to fit.
    bool exact = d.elementwise && base.has_tag(Tag::ExactOut) && frame[0].tensor_ref().dtype() == specs[0].dtype,
         casts = !d.meta || d.elementwise || base.has_tag(Tag::CastsToOut);
    for (size_t i = 0; i < count; ++i) {
      check(!exact || specs[i].dtype == outs[i].dtype(), "Found dtype ", kernel_name(outs[i].dtype()), " but expected ",
            kernel_name(specs[i].dtype));
      check(casts || specs[i].dtype == outs[i].dtype(), "Expected out tensor to have dtype ",
            kernel_name(specs[i].dtype), ", but got ", kernel_name(outs[i].dtype()), " instead");
      check(can_cast(specs[i].dtype, outs[i].dtype()), "result type ", kernel_name(specs[i].dtype),
            " can't be cast to the desired output type ", kernel_name(outs[i].dtype()));
      check(outs[i].device() == specs[i].device,
            "Expected all tensors to be on the same device, but found at least two devices, ", specs[i].device, " and ",
            outs[i].device(), "!");
      check_not_an_input(base, frame, outs[i], specs[i]);
      check_no_overlap(base, outs[i]);
      resize_output(outs[i], specs[i]);
      check_inputs_apart(outs[i], base, frame);
      direct &= outs[i].dtype() == specs[i].dtype && !outs[i].is_conj() && !outs[i].is_neg();
    }
    if (with_data() && direct) {
      fill(base, outs, frame);
    } else if (with_data()) {
      if (results.empty()) {
        for (size_t i = 0; i < count; ++i) results.push_back(allocate(specs[i]));
        fill(base, results, frame);
      }
      for (size_t i = 0; i < count; ++i) copy_into(outs[i], results[i], *backend);
    }
    for (size_t i = 0; i < count; ++i) {
      outs[i].impl()->bump_version();
      frame[i] = Value(std::move(outs[i]));
    }
  }

  void mutate(const Operator& op, Value* frame) const {
    const Definition& d = op.definition();
    if (d.meta) {
      SpecList specs;
      d.meta(specs, frame);
    }
    const auto& arguments = op.schema().arguments;
    std::vector<Tensor> written;
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].alias.write)
        frame[i].each_tensor([&](TensorImpl* t) { written.emplace_back(IntrusivePtr<TensorImpl>(t)); });
    if (with_data()) {
      for (const Tensor& t : written) check_no_overlap(op, t);
      const BoxedFunction& write = d.mutate[*backend];
      check<NotImplementedError>(static_cast<bool>(write), "Could not run '", op.name(), "' with arguments from the '",
                                 name(*backend), "' backend: no kernel is defined for it");
      write(frame);
    }
    for (size_t i = 0; i < written.size(); ++i) {
      written[i].impl()->bump_version();
      if (i < op.return_count()) frame[i] = Value(written[i]);
    }
  }
};

// Views remember the tensor they were taken of, and pass through autograd from then on: an in-place change of one of
// them may give all of them a history.
ViewKind view_kind(const TensorImpl* of, bool several) {
  if (of->view_base() && of->view_kind() != ViewKind::Plain) return of->view_kind();
  if (is_inference_mode_enabled()) return ViewKind::Inference;
  if (!is_grad_enabled()) return ViewKind::NoGrad;
  return several ? ViewKind::MultiOutput : ViewKind::Plain;
}

void run_view(const Definition& d, Value* frame) {
  Tensor self = frame[0].tensor();
  d.view(frame);
  if (!self.impl()->is_inference() && !d.not_differentiable) note_view(self, frame[0]);
}

Tensor allocate_plain(const TensorSpec& spec, void*) {
  return allocate_tensor(spec.sizes, spec.strides, spec.dtype, spec.device);
}

void cpu_layer(const Operator& op, DispatchKeySet, Value* frame) {
  run_definition(op, frame, Backend::CPU, allocate_plain, nullptr);
}
void meta_layer(const Operator& op, DispatchKeySet, Value* frame) {
  run_definition(op, frame, std::nullopt, allocate_plain, nullptr);
}
void cuda_layer(const Operator& op, DispatchKeySet, Value* frame) {
  if (!allocator(DeviceType::CUDA))
    fail<NotImplementedError>("Could not run '", op.name(),
                              "' with arguments from the 'CUDA' backend: this build has no CUDA; "
                              "use FakeMode to run without data on any device");
  run_definition(op, frame, Backend::CUDA, allocate_plain, nullptr);
}
const RegisterLayer kCpu(DispatchKey::CPU, cpu_layer);
const RegisterLayer kMeta(DispatchKey::Meta, meta_layer);
const RegisterLayer kCuda(DispatchKey::CUDA, cuda_layer);

}  // namespace

void note_view(const Tensor& self, const Value& result) {
  const IntrusivePtr<TensorImpl>& base = self.impl()->view_base() ? self.impl()->view_base() : self.pointer();
  ViewKind kind = view_kind(self.impl(), result.is_tensor_list());
  result.each_tensor([&](TensorImpl* t) {
    if (t == self.impl()) return;
    t->set_view_base(base, kind);
    t->add_key(DispatchKey::Autograd);
  });
}

void run_definition(const Operator& op, Value* frame, std::optional<Backend> backend, MakeTensor make, void* context) {
  const Definition& d = op.definition();
  Run run{backend, make, context};
  if (!backend && d.fake) return d.fake(frame);
  if (d.view) return run_view(d, frame);
  if (d.composite) return d.composite(frame);
  if (d.all_backends) return d.all_backends(frame);
  const Definition& kernel = op.functional() ? op.functional()->definition() : d;
  if (backend && !kernel.reads_lazy_bits && has_lazy_bits(op, frame)) resolve_lazy_bits(op, frame, *backend);
  bool writes = d.mutate.any();
  if (op.functional() && !writes) return op.is_inplace() ? run.inplace(op, frame) : run.out(op, frame);
  if (writes) return run.mutate(op, frame);
  if (d.meta && (!backend || d.kernels[*backend])) return run.functional(op, frame);
  if (backend && d.real[*backend]) return d.real[*backend](frame);
  if (backend)
    fail<NotImplementedError>("Could not run '", op.name(), "' with arguments from the '", name(*backend),
                              "' backend: no kernel is defined for it");
  fail<UnsupportedOperatorException>(op.name());
}

}  // namespace umbra
