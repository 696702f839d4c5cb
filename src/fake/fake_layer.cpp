// The layer that serves fake tensors: finds the mode, settles what needs data, and runs the operator from its
// definition.
#include "dispatch/data_dependent.h"
#include "fake/state.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

void run_fake(const Operator& op, FakeModeImpl& mode, Value* frame);

struct Arguments {
  FakeModeImpl* mode = nullptr;
  bool any_tensor = false, any_constant = false, all_constant = true, any_real = false;
  /// Everything is known, and there is something: literals and plain numbers, not a factory's sizes.
  bool known() const { return all_constant && any_tensor && !any_real; }
};

void visit(Arguments& found, TensorImpl* t) {
  found.any_tensor = true;
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
    check<AssertionError>(mode.options().allow_non_fake_inputs,
                          "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
                          "'allow_non_fake_inputs'. Found in ",
                          op.schema().space, ".", op.schema().name, ".",
                          op.schema().overload.empty() ? "default" : op.schema().overload, "(...)");
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

bool is_random(const Operator& op) {
  return op.definition().random || (op.functional() && op.functional()->definition().random);
}

constexpr int64_t kLargestConstant = 128;  // elements: literals and small tables, not weights

// All inputs are known: the operator runs for real and the result stays known.
bool fold_constants(const Operator& op, FakeModeImpl& mode, Value* frame) {
  if (op.is_mutable() || is_random(op) || op.is_view()) return false;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (frame[i].is_tensor_list() || frame[i].is_list()) return false;
    // A literal that moves to another device cannot be followed there.
    if (frame[i].tag() == Value::Tag::Device && frame[i].to_device().type != DeviceType::CPU) return false;
  }
  Frame inner(op, frame);
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (inner[i].is_tensor() && inner[i].tensor_ref().is_fake())
      inner[i] = Value(*fake_constant(inner[i].tensor_ref()));
  WithoutMode without(DispatchKey::Fake);
  SaveDispatchState state;
  dispatch_state() = {};
  op.call(inner.data());
  for (size_t i = 0; i < op.return_count(); ++i)
    if (inner[i].is_tensor() && inner[i].tensor_ref().numel() > kLargestConstant) return false;
  for (size_t i = 0; i < op.return_count(); ++i)
    frame[i] = inner[i].is_tensor() ? Value(fake_with_constant(mode, inner[i].tensor_ref())) : std::move(inner[i]);
  return true;
}

// A view of a constant is the same view of its value.
void view_constant(const Operator& op, FakeModeImpl& mode, Value* frame) {
  Frame inner(op, frame);
  inner[0] = Value(*fake_constant(frame[0].tensor_ref()));
  run_fake(op, mode, frame);
  WithoutMode without(DispatchKey::Fake);
  SaveDispatchState state;
  dispatch_state() = {};
  op.call(inner.data());
  if (frame[0].is_tensor()) return remember_constant(mode, frame[0].tensor_ref(), inner[0].tensor_ref());
  TensorList fakes = frame[0].tensor_list(), values = inner[0].tensor_list();
  for (size_t i = 0; i < fakes.size(); ++i) remember_constant(mode, fakes[i], values[i]);
}

/// `.data` counts its writes apart; a constant that is written through it is written all the same.
void note_write_apart(const Tensor& written) {
  if (written.impl()->version_counter()) written.storage()->bump_version();
}

// A write whose inputs are all known leaves a known value: a new one, since the old one may be a graph's literal too.
bool write_constant(const Operator& op, FakeModeImpl& mode, Value* frame) {
  if (!op.is_mutable() || is_random(op) || op.has_tag(Tag::InPlaceView) || op.argument_count() == 0) return false;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (op.schema().arguments[i].alias.write != (i == 0)) return false;
    if (frame[i].is_tensor_list() || frame[i].is_list()) return false;
  }
  Tensor self = frame[0].tensor();
  const Tensor* before = fake_constant(self);
  if (!before) return false;
  Frame inner(op, frame);
  for (size_t i = 1; i < op.argument_count(); ++i)
    if (inner[i].is_tensor() && inner[i].tensor_ref().is_fake())
      inner[i] = Value(*fake_constant(inner[i].tensor_ref()));
  Tensor value = *before;
  run_fake(op, mode, frame);
  WithoutMode without(DispatchKey::Fake);
  SaveDispatchState state;
  dispatch_state() = {};
  value = value.clone();
  inner[0] = Value(value);
  op.call(inner.data());
  note_write_apart(self);
  remember_constant(mode, self, value);
  return true;
}

// A constant that is written is none any more.
void forget_written_constants(const Operator& op, FakeModeImpl& mode, Value* frame) {
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (op.schema().arguments[i].alias.write)
      frame[i].each_tensor([&](TensorImpl* t) {
        if (!t->keys().has(DispatchKey::Fake)) return;
        note_write_apart(Tensor(IntrusivePtr<TensorImpl>(t)));
        t->set_layer_state(IntrusivePtr<RefCounted>(&mode));
      });
}

// A literal of the program (torch.tensor([1, 2])): fake from here on, and a small one still known.
bool lift_literal(const Operator& op, FakeModeImpl& mode, Value* frame) {
  if (!op.has_tag(Tag::LiftsData)) return false;
  const Tensor& literal = frame[0].tensor_ref();
  bool small = literal.storage()->has_data() && literal.numel() <= kLargestConstant;
  frame[0] = Value(small ? fake_with_constant(mode, literal) : mode.from_tensor(literal));
  return true;
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

SymInt answer_size(const char* op, SymInt most) {
  FakeModeImpl& mode = answering_mode();
  sym::ShapeEnv* env = mode.shape_env();
  if (!env || !mode.options().allow_dynamic_output_shapes) fail_dynamic_shape(op);
  bool bounded = !most.is_symbolic() && most.value() != INT64_MAX;
  return env->create_unbacked({0, bounded ? Integer{most.value()} : sym::kInfinity}, true);
}

Scalar answer_element(const char* op, const Tensor& self) {
  FakeModeImpl& mode = answering_mode();
  sym::ShapeEnv* env = mode.shape_env();
  // A number that was read while a program is recorded would be taken for a part of the program.
  if (const Scalar* number = known_number(self); number && !active_mode(DispatchKey::Proxy)) return *number;
  if (!env || !mode.options().allow_scalar_outputs) fail_data_dependent(op);
  DataFakeState* state = make_data_state(mode, self);
  if (state && state->element) return *state->element;
  Scalar element;
  if (is_floating(self.dtype())) element = env->create_unbacked_float();
  else if (self.dtype() == DType::Bool) element = env->create_unbacked_bool();
  else if (is_integral(self.dtype(), false)) element = env->create_unbacked();
  else fail_data_dependent(op);
  if (state) state->element = element;
  return element;
}

SymInt answer_count(const char* op, const Tensor& self) {
  DataFakeState* state = make_data_state(answering_mode(), self);
  if (state && state->count) return *state->count;
  SymInt count = answer_size(op, self.sym_numel());
  if (state) state->count = count;
  return count;
}

const bool kAnswers = (set_data_dependent_answers({answer_size, answer_count, answer_element}), true);

Tensor make_fake(const TensorSpec& spec, void* context) { return static_cast<FakeModeImpl*>(context)->make(spec); }

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

void fake_layer(const Operator& op, DispatchKeySet, Value* frame) {
  Arguments found;
  auto* active = static_cast<FakeModeImpl*>(active_mode(DispatchKey::Fake));
  if (active && active->options().allow_non_fake_inputs) found.mode = active;
  for (size_t i = 0; i < op.argument_count(); ++i) frame[i].each_tensor([&](TensorImpl* t) { visit(found, t); });
  FakeModeImpl* mode = found.mode ? found.mode : active;
  check<AssertionError>(mode, "a fake tensor without a mode");
  if (found.any_real && lift_literal(op, *mode, frame)) return;
  if (found.any_real) convert_real(op, *mode, frame);
  if (found.known() && (fold_constants(op, *mode, frame) || write_constant(op, *mode, frame))) return;
  if (found.any_constant) {
    if (op.is_view() && frame[0].is_tensor() && fake_constant(frame[0].tensor_ref()))
      return view_constant(op, *mode, frame);
    if (op.is_mutable()) forget_written_constants(op, *mode, frame);
  }
  run_fake(op, *mode, frame);
}

const RegisterLayer kFake(DispatchKey::Fake, fake_layer);

}  // namespace
}  // namespace umbra
