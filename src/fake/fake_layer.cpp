// The layer that serves fake tensors: finds the mode, settles what needs data, and runs the operator from its
// definition.
#include "dispatch/data_dependent.h"
#include "fake/call_text.h"
#include "fake/constants.h"
#include "fake/seen_calls.h"
#include "sym/most_size.h"
#include "sym/observed.h"
#include "umbra/core/wrapped_number.h"
#include "umbra/generated/functions.h"
#include "umbra/sym/draft.h"

namespace umbra {

namespace {

struct Arguments {
  FakeModeImpl* mode = nullptr;
  bool any_tensor = false, any_constant = false, all_constant = true, any_real = false, any_sparse = false;
  /// Everything is known, and there is something: literals and plain numbers, not a factory's sizes.
  bool known() const { return all_constant && any_tensor && !any_real; }
};

// A sparse tensor of fake parts is as fake as they are.
void visit_sparse(Arguments& found, TensorImpl* t) {
  FakeModeImpl* mode = fake_mode_of(Tensor(IntrusivePtr<TensorImpl>(t)));
  if (!found.mode) found.mode = mode;
  found.any_sparse = true;
  found.any_real |= mode != found.mode || !mode;
  found.all_constant = false;
}

void visit(Arguments& found, TensorImpl* t) {
  found.any_tensor = true;
  if (t->keys().has(DispatchKey::Sparse)) return visit_sparse(found, t);
  if (!t->keys().has(DispatchKey::Fake)) {
    // A plain number, or a 0-d CPU tensor, takes part as what it is: only metadata is looked at.
    found.any_real |= !t->is_wrapped_number();
    found.all_constant &= t->is_wrapped_number();
    return;
  }
  auto* state = static_cast<FakeState*>(t->layer_state().get());
  if (!found.mode) found.mode = state->mode();
  if (found.mode != state->mode()) {  // a mode that takes real tensors takes another mode's as well
    check<AssertionError>(found.mode->options().allow_non_fake_inputs, "Mixing fake modes NYI");
    found.any_real = true;
    found.all_constant = false;
    return;
  }
  bool constant = state->constant() != nullptr;
  found.any_constant |= constant;
  found.all_constant &= constant;
}

// Real tensors among fake ones: converted where the mode allows it, else refused with PyTorch's words.
void convert_real(const Operator& op, FakeModeImpl& mode, Value* frame) {
  auto convert = [&](const Tensor& t) {
    if (!t.defined() || fake_mode_of(t) == &mode || t.impl()->is_wrapped_number()) return t;
    // The stand-in would change, and the tensor itself would not know of it.
    if (op.has_tag(Tag::InPlaceView))
      fail<AssertionError>("Can't call metadata mutating ops on non-Fake Tensor inputs. Found in ",
                           call_text(op, frame));
    if (!mode.options().allow_non_fake_inputs)
      fail<AssertionError>(
          "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
          "'allow_non_fake_inputs'. Found in ",
          call_text(op, frame));
    return mode.from_tensor(t);
  };
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (frame[i].is_tensor()) {
      Tensor t = convert(frame[i].tensor_ref());
      if (!t.is_same(frame[i].tensor_ref())) frame[i] = Value(std::move(t));
    } else if (frame[i].is_tensor_list()) {
      std::vector<Tensor> list = frame[i].tensor_list().vec();
      for (Tensor& t : list) t = convert(t);
      frame[i] = Value(std::move(list));
    }
  }
}

// ---- what only data could tell ----

/// The operator as PyTorch's errors name it: aten._local_scalar_dense.default.
std::string python_name(std::string op) {
  if (op.find('.') == std::string::npos) op += ".default";
  if (size_t at = op.find("::"); at != std::string::npos) op.replace(at, 2, ".");
  return op;
}

[[noreturn]] void fail_data_dependent(const std::string& op) {
  throw DataDependentOutputException(
      python_name(op),
      "The program asks for a number that is in a tensor's data, which a fake tensor does not have. Let the program "
      "decide when it runs, with torch.cond; or give the fake mode a ShapeEnv and allow scalar outputs: the number is "
      "then a symbol, of which torch._check can say what the program relies on. (In C++: cond and "
      "SymBool::expect_true.)\n");
}

[[noreturn]] void fail_dynamic_shape(const std::string& op) {
  throw DynamicOutputShapeException(
      python_name(op),
      "The size of the result depends on a tensor's data, which a fake tensor does not have. Use an operator whose "
      "result has the input's size (torch.where, masked_fill); or give the fake mode a ShapeEnv and allow dynamic "
      "output shapes: the size is then a symbol, of which torch._check can say what the program relies on.\n");
}

// ---- what definitions ask for in their `.fake` functions ----

FakeModeImpl& answering_mode() { return *static_cast<FakeModeImpl*>(active_mode(DispatchKey::Fake)); }

sym::ShapeEnv& env_for_sizes(const char* op) {
  FakeModeImpl& mode = answering_mode();
  if (!mode.shape_env() || !mode.options().allow_dynamic_output_shapes) fail_dynamic_shape(op);
  return *mode.shape_env();
}

SymInt answer_size(const char* op, SymInt most, MostIs known) {
  sym::ShapeEnv* env = &env_for_sizes(op);
  if (known == MostIs::ItsLargest && most.is_symbolic())
    if (Integer upper = env->bound_range(most).upper; upper < sym::kMostSize) most = to_int64(upper);
  if (!most.is_symbolic() && most.value() == INT64_MAX) return env->create_unbacked({0, sym::kInfinity}, true);
  return env->create_unbacked({0, most.is_symbolic() ? sym::kMostSize : Integer{most.value()}}, true);
}

/// Tells a draft what a number that was read is for the example, where the tensor carries its data.
void draft_element(sym::Draft& draft, sym::ShapeEnv& env, const Tensor& self, const Scalar& element) {
  const Tensor* real = fake_real(self);
  if (!real || real->numel() != 1) return;
  RunOnData scope;
  Scalar number = real->item();
  if (element.kind() == Scalar::Kind::SymFloat) draft.set(env.expression(element.to_sym_float()), number.to_double());
  else if (element.kind() == Scalar::Kind::SymInt) draft.set(env.expression(element.to_sym_int()), number.to_int());
  else if (element.kind() == Scalar::Kind::SymBool)
    draft.set(env.expression(element.to_sym_bool())->arg(0), int64_t{number.to_bool()});
}

Scalar answer_element(const char* op, const Tensor& self) {
  FakeModeImpl& mode = answering_mode();
  sym::ShapeEnv* env = mode.shape_env();
  // A number that was read while a program is recorded would be taken for a part of the program.
  if (const Scalar* number = known_number(self); number && !active_mode(DispatchKey::Proxy)) return *number;
  if (!env || !mode.options().allow_scalar_outputs) fail_data_dependent(op);
  DataFakeState* state = make_data_state(mode, self);
  if (state && state->asked().element) return *state->asked().element;
  Scalar element;
  if (is_floating(self.dtype())) element = env->create_unbacked_float();
  else if (self.dtype() == DType::Bool) element = env->create_unbacked_bool();
  else if (is_integral(self.dtype(), false)) element = env->create_unbacked();
  else fail_data_dependent(op);
  if (state) state->asked().element = element;
  if (sym::Draft* draft = sym::Draft::current()) draft_element(*draft, *env, self, element);
  return element;
}

SymInt answer_count(const char* op, const Tensor& self) {
  env_for_sizes(op);
  if (self.sym_numel().same(0)) return 0;  // nothing has to be counted
  DataFakeState* state = make_data_state(answering_mode(), self);
  if (state && state->asked().count) return *state->asked().count;
  SymInt count = answer_size(op, self.sym_numel(), MostIs::ItsLargest);
  if (state) state->asked().count = count;
  return count;
}

void mark_fake_zero(const Tensor& fake) {
  if (DataFakeState* state = make_data_state(*fake_mode_of(fake), fake)) state->zero = true;
}

const bool kAnswers = (set_data_dependent_answers({answer_size, answer_count, answer_element, mark_fake_zero}), true);

Tensor make_fake(const TensorSpec& spec, void* context) { return static_cast<FakeModeImpl*>(context)->make(spec); }

// ---- real tensors that go along ----

/// The call over the real tensors that its fake ones carry; false where one carries none.
bool read_carried(const Operator& op, Frame& inner) {
  bool all = true;
  // Sizes and numbers that were seen beside are numbers there.
  auto number = [&](const Scalar& s) {
    std::optional<Scalar> value = sym::observed(s);
    all &= value.has_value();
    return value.value_or(Scalar(0));
  };
  auto carried = [&](const Tensor& t) {
    if (t.defined() && t.impl()->is_wrapped_number()) return wrapped_number(number(wrapped_scalar(t)));
    const Tensor* real = t.defined() ? fake_real(t) : nullptr;
    all &= real || !t.defined() || !t.is_fake();
    return real ? *real : t;
  };
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (inner[i].is_symbolic()) inner[i] = Value(number(inner[i].to_scalar()));
    if (inner[i].is_int_list() && any_symbolic(inner[i].int_list())) {
      std::vector<SymInt> numbers;
      for (SymInt s : inner[i].int_list()) numbers.push_back(number(s).to_int());
      inner[i] = Value(std::move(numbers));
    }
    if (inner[i].is_tensor()) {
      inner[i] = Value(carried(inner[i].tensor_ref()));
    } else if (inner[i].is_tensor_list()) {
      std::vector<Tensor> list = inner[i].tensor_list().vec();
      for (Tensor& t : list) t = carried(t);
      inner[i] = Value(std::move(list));
    } else if (inner[i].is_list()) {
      std::vector<Value> items(inner[i].list().begin(), inner[i].list().end());
      for (Value& item : items)
        if (item.is_tensor()) item = Value(carried(item.tensor_ref()));
      inner[i] = Value(std::move(items));
    } else if (inner[i].tag() == Value::Tag::Device) {
      all &= inner[i].to_device().type == DeviceType::CPU;
    }
  }
  return all;
}

void separate_views(const Operator& op, FakeModeImpl& mode, Value* frame) {
  for (size_t i = 0; i < op.return_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) {
      if (t->layer_state().get() != &mode) separate_view(mode, Tensor(IntrusivePtr<TensorImpl>(t)));
    });
}

/// What the run beside shows of sizes and numbers that the fake one does not know.
void observe(const Value& fake, const Value& real) {
  if (fake.is_tensor() && real.is_tensor()) {
    SymIntArrayRef unknown = fake.tensor_ref().sym_sizes(), seen = real.tensor_ref().sym_sizes();
    for (size_t d = 0; d < unknown.size() && d < seen.size(); ++d) sym::observe(unknown[d], seen[d]);
  } else if (fake.is_symbolic() && real.is_scalar()) {
    sym::observe(fake.to_scalar(), real.to_scalar());
  }
}

/// How often the memory of a call's tensors has been written.
uint64_t writes_to(const Operator& op, Frame& frame) {
  uint64_t sum = 0;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) { sum += t->storage()->version(); });
  return sum;
}

/// Runs the operator on fakes, and beside on the real tensors that they carry.
void run_beside(const Operator& op, FakeModeImpl& mode, Value* frame) {
  Frame inner(op, frame);
  bool real = read_carried(op, inner);
  uint64_t writes = real ? writes_to(op, inner) : 0;
  run_fake(op, mode, frame);
  if (op.is_view() || !op.is_mutable()) separate_views(op, mode, frame);  // _unsafe_view shares memory, too
  if (!real || writes_to(op, inner) != writes) return;  // the operators that it is made of wrote already
  {
    RunOnData scope;
    op.call(inner.data());
  }
  for (size_t i = 0; i < op.return_count(); ++i) {
    observe(frame[i], inner[i]);
    if (frame[i].is_tensor() && inner[i].is_tensor()) carry(mode, frame[i].tensor_ref(), inner[i].tensor_ref());
    if (!frame[i].is_tensor_list() || !inner[i].is_tensor_list()) continue;
    TensorList fakes = frame[i].tensor_list(), reals = inner[i].tensor_list();
    for (size_t k = 0; k < fakes.size() && k < reals.size(); ++k) carry(mode, fakes[k], reals[k]);
  }
}

}  // namespace

void run_fake(const Operator& op, FakeModeImpl& mode, Value* frame) {
  const Definition& d = op.definition();
  bool answers = d.fake || op.library_kernels();
  if (!answers && op.has_tag(Tag::DataDependentOutput)) fail_data_dependent(op.name());
  if (!answers && op.has_tag(Tag::DynamicOutputShape)) fail_dynamic_shape(op.name());
  // What is made of other operators may call factories: those have to find the mode.
  bool nested = op.library_kernels() || d.all_backends || d.composite || d.fake ||
                (op.functional() && !op.functional()->definition().meta);
  if (nested && active_mode(DispatchKey::Fake) != &mode) {
    EnterMode scope{IntrusivePtr<Mode>(&mode)};
    return run_definition(op, frame, std::nullopt, make_fake, &mode);
  }
  run_definition(op, frame, std::nullopt, make_fake, &mode);
}

namespace {

void run_in_mode(const Operator& op, FakeModeImpl& mode, Arguments found, Value* frame) {
  if (found.any_real && lift_literal(op, mode, frame)) return;
  if (found.any_real) {
    convert_real(op, mode, frame);
    found = Arguments{.mode = &mode};  // a stand-in may have a value that is known
    for (size_t i = 0; i < op.argument_count(); ++i) frame[i].each_tensor([&](TensorImpl* t) { visit(found, t); });
  }
  if (found.known() && (fold_constants(op, mode, frame) || write_constant(op, mode, frame))) return;
  if (found.any_constant) {
    if (op.is_view() && frame[0].is_tensor() && fake_constant(frame[0].tensor_ref()))
      return view_constant(op, mode, frame);
    if (op.is_mutable()) forget_written_constants(op, mode, frame);
  }
  if (mode.options().propagate_real_tensors) return run_beside(op, mode, frame);
  run_fake(op, mode, frame);
  if (op.is_view()) separate_views(op, mode, frame);
}

/// What the operator does with sparse tensors it does with their parts, which are fake.
void run_sparse(const Operator& op, FakeModeImpl& mode, DispatchKeySet keys, Value* frame) {
  EnterMode scope{IntrusivePtr<Mode>(&mode)};
  op.redispatch(keys - DispatchKeySet(DispatchKey::Fake), frame);
}

void count_and_run(const Operator& op, FakeModeImpl& mode, const Arguments& found, Value* frame) {
  SeenCall call(op, mode, frame);
  run_in_mode(op, mode, found, frame);
  call.finish(op, frame);
}

void fake_layer(const Operator& op, DispatchKeySet keys, Value* frame) {
  Arguments found;
  auto* active = static_cast<FakeModeImpl*>(active_mode(DispatchKey::Fake));
  if (active && active->options().allow_non_fake_inputs) found.mode = active;
  for (size_t i = 0; i < op.argument_count(); ++i) frame[i].each_tensor([&](TensorImpl* t) { visit(found, t); });
  FakeModeImpl* mode = found.mode ? found.mode : active;
  check<AssertionError>(mode, "a fake tensor without a mode");
  check<AssertionError>(!active || mode == active, "Mixing fake modes NYI");
  if (found.any_sparse) {
    if (found.any_real) convert_real(op, *mode, frame);
    return run_sparse(op, *mode, keys, frame);
  }
  if (g_count_fake_calls && mode->options().counts_calls && !mode->options().propagate_real_tensors)
    return count_and_run(op, *mode, found, frame);
  run_in_mode(op, *mode, found, frame);
}

const RegisterLayer kFake(DispatchKey::Fake, fake_layer);

}  // namespace
}  // namespace umbra
