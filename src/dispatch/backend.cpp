// Running an operator from its definition: allocate what meta describes, then fill it. The same code serves the CPU,
// the meta device and fake tensors; in-place and out variants follow from the functional operator here.
#include <algorithm>
#include <utility>

#include "dispatch/kernel_table.h"
#include "dispatch/layers.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/dispatch/writes.h"

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

/// Whether no argument but the written tensor itself lies in its memory.
bool lies_apart(const Tensor& written, const Operator& op, const Value* frame) {
  bool apart = true;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) { apart &= t == written.impl() || t->storage() != written.storage(); });
  return apart;
}

bool is_lazy(const Tensor& t) { return t.defined() && (t.is_conj() || t.is_neg()); }

Tensor resolved(const Tensor& lazy, Backend backend) {
  static const Operator& clone = get_operator("aten::clone");
  Value frame[2] = {Value::borrow(lazy), Value()};
  SpecList specs;
  clone.definition().meta(specs, frame);
  Tensor plain = allocate_tensor(specs[0].sizes, specs[0].strides, specs[0].dtype, specs[0].device);
  kernel_of(clone, backend)({&plain, 1}, frame);
  return plain;
}

// Lazily conjugated or negated tensors become plain ones before a kernel sees them. A kernel that writes one writes the
// plain copy; what it wrote goes back afterwards.
class ResolvedFrame {
 public:
  ResolvedFrame(const Operator& op, Value* frame, Backend backend) : op_(op), frame_(frame), backend_(backend) {
    for (size_t i = 0; i < op.argument_count(); ++i) {
      bool write = op.schema().arguments[i].alias.write;
      if (frame[i].is_tensor()) {
        Tensor t = frame[i].tensor();
        if (resolve(t, write)) frame[i] = Value(std::move(t));
      } else if (frame[i].is_tensor_list()) {
        std::vector<Tensor> tensors = frame[i].tensor_list().vec();
        bool any = false;
        for (Tensor& t : tensors) any |= resolve(t, write);
        if (any) frame[i] = Value(std::move(tensors));
      }
    }
    for (const Tensor& t : written_) check_no_overlap(op.functional() ? *op.functional() : op, t);
  }

  /// The caller's tensors get what their copies were given, and take their places among the results.
  void write_back() {
    for (size_t i = 0; i < written_.size(); ++i) {
      if (is_lazy(written_[i])) {
        const Tensor& copy = copies_[i];
        SymShape strides = contiguous_strides(copy.sym_sizes());
        resize_output(written_[i], TensorSpec(copy.sym_sizes(), strides, copy.dtype(), copy.device()));
        copy_into(written_[i], copy, backend_);
        written_[i].impl()->bump_version();
      }
      if (i < op_.return_count() && op_.schema().returns[i].alias.write) frame_[i] = Value(written_[i]);
    }
  }

 private:
  bool resolve(Tensor& t, bool write) {
    bool lazy = is_lazy(t);
    if (write) written_.push_back(t);
    if (lazy) t = resolved(t, backend_);
    if (write) copies_.push_back(t);
    return lazy;
  }

  const Operator& op_;
  Value* frame_;
  Backend backend_;
  std::vector<Tensor> written_, copies_;
};

bool has_lazy_bits(const Operator& op, const Value* frame) {
  bool any = false;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) { any |= t->is_conj() | t->is_neg(); });
  return any;
}

Tensor allocate_plain(const TensorSpec& spec, void*) {
  return allocate_tensor(spec.sizes, spec.strides, spec.dtype, spec.device);
}
bool has_no_elements(SymIntArrayRef sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](SymInt s) { return !s.is_symbolic() && s.value() == 0; });
}
/// No kernel runs where an argument is a meta tensor: a result with data would never be filled.
Tensor allocate_meta(const TensorSpec& spec, void*) {
  check(spec.device.type == DeviceType::Meta || has_no_elements(spec.sizes),
        "Expected all tensors to be on the same device, but found at least two devices, ", spec.device, " and meta!");
  return allocate_tensor(spec.sizes, spec.strides, spec.dtype, spec.device);
}

thread_local bool g_metadata_alone = false, g_with_outputs = false;

/// One backend run: how outputs are made, and where there is data to fill them with.
struct Run {
  std::optional<Backend> backend;  // none: metadata only
  MakeTensor make;
  void* context;
  size_t arguments;  // of the operator without outputs
  bool with_data() const { return backend.has_value(); }
  /// A call with a meta tensor must not seem to have written one with data.
  void check_written(const Tensor& t, bool copied = false) const {
    if (make != allocate_meta || t.device().type == DeviceType::Meta) return;
    check(!copied, "Attempting to copy from device meta to device ", t.device(),
          ", but cross-device copies are not allowed!");
    fail<NotImplementedError>("Cannot inplace into non-meta tensor with meta tensor argument");
  }

  void fill(const Operator& op, TensorList outputs, Value* frame) const { kernel_of(op, *backend)(outputs, frame); }

  Tensor allocate(const TensorSpec& spec) const { return spec.defined ? make(spec, context) : Tensor(); }

  /// Asks for metadata. Where an argument is a meta tensor no kernel follows, also for arguments that have data.
  void describe(const Definition& d, SpecList& specs, Value* frame) const {
    if (__builtin_expect(make != allocate_meta, 1)) return d.meta(specs, frame);
    struct Alone {
      bool before = std::exchange(g_metadata_alone, true);
      ~Alone() { g_metadata_alone = before; }
    } alone;
    if (d.functor) check_one_device(frame);
    d.meta(specs, frame);
  }

  /// Elements of one device, and numbers beside them: what is said before anything about types.
  void check_one_device(const Value* frame) const {
    const TensorImpl* first = nullptr;
    for (size_t i = 0; i < arguments; ++i)
      frame[i].each_tensor([&](const TensorImpl* t) {
        if (t->device().type == DeviceType::CPU && t->sym_sizes().empty()) return;
        check(!first || first->device() == t->device(), "Tensor on device ", t->device(),
              " is not on the expected device ", (first ? first : t)->device(), "!");
        first = first ? first : t;
      });
  }

  void functional(const Operator& op, Value* frame) const {
    const Definition& d = op.definition();
    SpecList specs;
    describe(d, specs, frame);
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

  /// A view in place (t_): the tensor becomes what the view of it is, over the same memory.
  static void become_view(const Operator& view, Value* frame) {
    Tensor self = frame[0].tensor();
    Frame inner(view, frame);
    view.definition().view(inner.data());
    const Tensor& changed = inner[0].tensor_ref();
    if (!changed.is_same(self))
      self.impl()->set_geometry(changed.sym_sizes(), changed.sym_strides(), changed.sym_storage_offset());
    self.impl()->bump_version();
    frame[0] = Value(std::move(self));
  }

  /// All results are there before the first is written, so no tensor may be in the list twice.
  void inplace_list(const Operator& op, Value* frame) const {
    const Operator& base = *op.functional();
    std::vector<Tensor> written = frame[0].tensor_list().vec();
    Frame inner(base, frame);
    base.call(inner.data());
    TensorList results = inner[0].tensor_list();
    check(results.size() == written.size(), op.name(), ": ", results.size(), " results for ", written.size(),
          " tensors");
    for (size_t i = 0; i < written.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        check(!written[i].is_same(written[j]), op.name(), ": a tensor is in the written list more than once");
    for (size_t i = 0; i < written.size(); ++i) {
      const Tensor& r = results[i];
      Frame element(op, frame);
      element[0] = Value::borrow(written[i]);
      check_inplace_write(op, element.data(), TensorSpec(r.sym_sizes(), r.sym_strides(), r.dtype(), r.device()));
      if (with_data()) copy_into(written[i], r, *backend);
      written[i].impl()->bump_version();
    }
  }

  void inplace(const Operator& op, Value* frame) const {
    const Operator& base = *op.functional();
    const Definition& d = base.definition();
    if (d.view) return become_view(base, frame);
    if (op.schema().arguments[0].type.list) return inplace_list(op, frame);
    Tensor self = frame[0].tensor();
    if (!d.meta) {
      Tensor result = call_functional(base, frame)[0];
      check_inplace_write(op, frame,
                          TensorSpec(result.sym_sizes(), result.sym_strides(), result.dtype(), result.device()));
      check_written(self);
      if (with_data()) copy_into(self, result, *backend);
    } else {
      SpecList specs;
      describe(d, specs, frame);
      check_inplace_write(op, frame, specs[0]);
      check_written(self, d.elementwise);
      if (with_data()) {
        bool direct = d.elementwise || (d.writes_straight && lies_apart(self, op, frame));
        if (specs[0].dtype == self.dtype() && direct) {
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

  /// Between the meta device and one with data nothing is copied: results and outputs are both there or neither. The
  /// results are there where any of the first arguments is a meta tensor.
  static void check_copied_on_meta(size_t arguments, const Value* frame, const std::vector<Tensor>& outs) {
    bool any = false, meta = false;
    for (size_t i = 0; i < arguments; ++i)
      frame[i].each_tensor([&](TensorImpl* t) {
        any = true;
        meta |= t->device().type == DeviceType::Meta;
      });
    for (const Tensor& t : outs)
      check(!any || meta == (t.device().type == DeviceType::Meta), "Attempting to copy from device ",
            meta ? "meta" : "cpu", " to device ", t.device(), ", but cross-device copies are not allowed!");
  }

  /// A generated out variant with a meta tensor somewhere: the operator runs as it would, and what it gave is copied.
  void copy_on_meta(const Operator& op, Value* frame, std::vector<Tensor>& outs) const {
    const Operator& base = *op.functional();
    if (op.definition().meta) {
      SpecList unused;
      describe(op.definition(), unused, frame);
    }
    std::vector<Tensor> results = call_functional(base, frame);
    if (outputs_come_first(op)) check_copied_on_meta(base.argument_count(), frame, outs);
    SpecList specs;
    for (const Tensor& r : results) specs.push_back(TensorSpec(r.sym_sizes(), r.sym_strides(), r.dtype(), r.device()));
    prepare_outputs(op, frame, outs, specs);
    for (size_t i = 0; i < outs.size(); ++i) {
      if (!outs[i].is_meta()) copy_into(outs[i], results[i], Backend::CPU);
      outs[i].impl()->bump_version();
      frame[i] = Value(std::move(outs[i]));
    }
  }

  void out(const Operator& op, Value* frame) const {
    const Operator& base = *op.functional();
    const Definition& d = base.definition();
    size_t first = base.argument_count(), count = base.return_count();
    std::vector<Tensor> outs, results;
    for (size_t i = 0; i < count; ++i) outs.push_back(frame[first + i].tensor());
    bool generated = op.definition().tags.has(Tag::Generated);
    // A tensor that comes first has to be where the outputs are; what it is refused for comes second.
    if (make == allocate_meta && frame[0].is_tensor() && outputs_come_first(op)) check_copied_on_meta(1, frame, outs);
    if (make == allocate_meta && generated) return copy_on_meta(op, frame, outs);
    SpecList specs;
    if (op.definition().meta) describe(op.definition(), specs, frame);  // what only the out form refuses
    // A generated variant is its operator's call and a copy: what the operator refuses comes before what outputs do.
    bool whole = with_data() && generated;
    OutputsGiven given(make == allocate_meta || (d.meta && !whole));
    if (d.meta && !whole) describe(d, specs, frame);
    else {
      results = call_functional(base, frame);
      for (Tensor& r : results) specs.push_back(TensorSpec(r.sym_sizes(), r.sym_strides(), r.dtype(), r.device()));
    }
    // A single number may be copied to any device.
    bool to_meta = std::all_of(outs.begin(), outs.end(), [](const Tensor& t) { return t.is_meta(); });
    for (size_t i = 0; i < specs.size(); ++i) to_meta &= specs[i].sizes.empty();
    if (make == allocate_meta && to_meta)
      for (size_t i = 0; i < specs.size(); ++i) specs[i].device = outs[i].device();
    else if (make == allocate_meta) check_copied_on_meta(base.argument_count(), frame, outs);
    prepare_outputs(op, frame, outs, specs);
    bool direct = d.meta && d.elementwise && !whole;
    for (size_t i = 0; i < count; ++i) direct &= outs[i].dtype() == specs[i].dtype;
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
    const auto& arguments = op.schema().arguments;
    std::vector<Tensor> written;
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].alias.write)
        frame[i].each_tensor([&](TensorImpl* t) { written.emplace_back(IntrusivePtr<TensorImpl>(t)); });
    refuse_lazy_lists(op, frame);
    for (const Tensor& t : written) check_written(t);
    if (d.meta) {
      SpecList specs;
      describe(d, specs, frame);
    }
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

// ---- kernels of libraries ----

/// A kernel for one device is not asked where no tensor says that the call is for that device.
void check_any_tensor(const Operator& op, const Value* frame) {
  bool any = false;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    frame[i].each_tensor([&](TensorImpl*) { any = true; });
    any |= op.schema().arguments[i].type.base == SchemaType::Base::Device;
  }
  if (any || op.schema().space == "aten") return;
  fail<NotImplementedError>(
      "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no fallback "
      "function is registered for schema ",
      op.name(), ".  Available functions are [", op.library_kernels()->keys(), "]");
}

/// Runs what a library has for the call, on a backend or without data; false where it has nothing.
bool run_library(const Operator& op, std::optional<Backend> backend, Value* frame) {
  const KernelTable& table = *op.library_kernels();
  auto kernel = backend ? table.find_backend(*backend == Backend::CUDA ? DispatchKey::CUDA : DispatchKey::CPU)
                        : table.find_fake();
  if (!kernel) return false;
  if (backend && kernel == table.find(KernelKey::CPU)) check_any_tensor(op, frame);
  bool lazy = backend && has_lazy_bits(op, frame);
  std::optional<ResolvedFrame> resolved;
  if (lazy) resolved.emplace(op, frame, *backend);
  run_library_kernel(*kernel, op, frame);
  if (lazy) resolved->write_back();
  return true;
}

[[noreturn]] void fail_no_kernel(const Operator& op, const char* backend) {
  std::string keys = op.library_kernels() ? op.library_kernels()->keys() : "";
  fail<NotImplementedError>(
      "Could not run '", op.name(), "' with arguments from the '", backend, "' backend: ",
      keys.empty() ? "no kernel is defined for it" : "it is only available for these backends: [" + keys + "]");
}

void cpu_layer(const Operator& op, DispatchKeySet, Value* frame) {
  run_definition(op, frame, Backend::CPU, allocate_plain, nullptr);
}
void meta_layer(const Operator& op, DispatchKeySet, Value* frame) {
  run_definition(op, frame, std::nullopt, allocate_meta, nullptr);
}
// PyTorch's words about accelerators that it was built without, and what is there instead.
[[noreturn]] void fail_no_accelerator(DeviceType type) {
  constexpr const char* kInstead = "; a FakeMode runs without data on any device";
  if (type == DeviceType::CUDA) fail<AssertionError>("Torch not compiled with CUDA enabled", kInstead);
  if (type == DeviceType::XPU) fail<AssertionError>("Torch not compiled with XPU enabled", kInstead);
  fail("PyTorch is not linked with support for ", Device(type), " devices", kInstead);
}

// The accelerator that a call asks for, or that its tensors lie on.
DeviceType accelerator_of(const Operator& op, const Value* frame) {
  DeviceType found = DeviceType::CUDA;
  auto note = [&](Device device) {
    if (device.type != DeviceType::CPU && device.type != DeviceType::Meta) found = device.type;
  };
  for (size_t i = 0; i < op.argument_count(); ++i) {
    frame[i].each_tensor([&](TensorImpl* tensor) { note(tensor->device()); });
    if (op.schema().arguments[i].type.base == SchemaType::Base::Device && !frame[i].is_none())
      note(frame[i].to_device());
  }
  return found;
}

void cuda_layer(const Operator& op, DispatchKeySet, Value* frame) {
  if (!allocator(DeviceType::CUDA)) fail_no_accelerator(accelerator_of(op, frame));
  run_definition(op, frame, Backend::CUDA, allocate_plain, nullptr);
}
const RegisterLayer kCpu(DispatchKey::CPU, cpu_layer);
const RegisterLayer kMeta(DispatchKey::Meta, meta_layer);
const RegisterLayer kCuda(DispatchKey::CUDA, cuda_layer);

/// Without data, a library's operator that writes and gives nothing, or whose tags say that it gives back what it
/// writes, needs nobody to say what it does: such operators may not change metadata. False for all others.
bool run_trivially(const Operator& op, Value* frame) {
  const Schema& schema = op.schema();
  bool gives_written = op.has_tag(Tag::InPlace) || op.has_tag(Tag::Out);
  if (schema.space == "aten" || schema.space == "prims" || !op.is_mutable()) return false;
  if (!schema.returns.empty() && !gives_written) return false;
  size_t given = 0;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (!schema.arguments[i].alias.write) continue;
    frame[i].each_tensor([](TensorImpl* tensor) { tensor->bump_version(); });
    if (given < schema.returns.size()) frame[given++] = Value(frame[i]);
  }
  return true;
}

/// Runs what the definition has by way of kernels.
void run_kernel(const Run& run, const Operator& op, Value* frame) {
  const Definition& d = op.definition();
  bool writes = d.mutate.any();
  if (op.functional() && !writes) return op.is_inplace() ? run.inplace(op, frame) : run.out(op, frame);
  if (writes) return run.mutate(op, frame);
  if (d.meta && (!run.backend || d.kernels[*run.backend])) return run.functional(op, frame);
  if (run.backend && d.real[*run.backend]) return d.real[*run.backend](frame);
  if (run.backend) fail_no_kernel(op, name(*run.backend));
  check<NotImplementedError>(run.make != allocate_meta, op.name(),
                             ": attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
                             "kernel registered.");
  if (run_trivially(op, frame)) return;
  const Schema& schema = op.schema();  // as PyTorch's errors name it: mylib.scale.default
  std::string overload = schema.overload.empty() ? "default" : schema.overload;
  throw UnsupportedOperatorException(
      concat(schema.space, ".", schema.name, ".", overload),
      concat("The operator has no function for fake tensors, which says what its result looks like: library.fake(\"",
             schema.name, "\", ...) in C++, torch.library.register_fake(\"", schema.space, "::", schema.name,
             "\") in Python."));
}

}  // namespace

bool only_metadata_is_asked() { return g_metadata_alone; }
bool outputs_are_given() { return g_with_outputs; }
OutputsGiven::OutputsGiven(bool given) : before_(std::exchange(g_with_outputs, given)) {}
OutputsGiven::~OutputsGiven() { g_with_outputs = before_; }

void run_definition(const Operator& op, Value* frame, std::optional<Backend> backend, MakeTensor make, void* context) {
  const Definition& d = op.definition();
  if (op.library_kernels() && run_library(op, backend, frame)) return;
  if (!backend && d.fake) return d.fake(frame);
  if (d.view) return run_view(d, frame);
  if (d.composite && !(d.meta && d.not_differentiable)) return d.composite(frame);
  if (d.all_backends) return d.all_backends(frame);
  const Operator& values = op.functional() ? *op.functional() : op;
  Run run{backend, make, context, values.argument_count()};
  const Definition& kernel = values.definition();
  if (!backend || kernel.reads_lazy_bits || !has_lazy_bits(op, frame)) return run_kernel(run, op, frame);
  ResolvedFrame resolved(op, frame, *backend);
  run_kernel(run, op, frame);
  resolved.write_back();
}

}  // namespace umbra
