#include "umbra/dispatch/define.h"

#include <sstream>

#include "dispatch/definition_check.h"
#include "dispatch/layers.h"
#include "umbra/core/sparse.h"
#include "umbra/core/warning.h"

namespace umbra {

OperatorBuilder::OperatorBuilder(const char* schema) : op_(&register_operator(parse_schema(schema))) {
  const Schema& parsed = op_->schema();
  if (parsed.space == "aten") definition().tags.add(Tag::Pt2Compliant);
  if (!parsed.arguments.empty() && parsed.arguments[0].alias.write && !parsed.arguments[0].keyword_only)
    definition().tags.add(Tag::InPlace);
}

Definition& OperatorBuilder::definition() { return op_->mutable_definition(); }

namespace {

/// "add_.Tensor" as a name and an overload; an error where the name is not `expected`.
void set_variant_name(const Operator& op, Schema& schema, std::string_view name, std::string expected) {
  size_t dot = name.find('.');
  schema.name = name.substr(0, dot);
  schema.overload = dot == std::string_view::npos ? "" : name.substr(dot + 1);
  check(schema.name == expected, op.name(), ": its variant is called '", expected, "', not '", schema.name, "'");
}

/// What a variant shares with its functional operator, and what it is.
void set_variant_tags(Operator& variant, const Operator& functional, Tag kind) {
  TagSet& tags = variant.mutable_definition().tags;
  tags.add(kind);
  tags.add(functional.definition().tags & TagSet{Tag::Pt2Compliant});
}

}  // namespace

OperatorBuilder& OperatorBuilder::inplace(const char* name) {
  Schema schema = op_->schema();
  check(!schema.arguments.empty() && schema.arguments[0].type.base == SchemaType::Base::Tensor, op_->name(),
        ": an in-place variant writes the first argument, which is no tensor");
  set_variant_name(*op_, schema, name, schema.name + "_");
  const SchemaType& type = schema.arguments[0].type;
  schema.arguments[0].alias = {"a", true};
  schema.returns.clear();  // a list that is written is not returned
  if (!type.list) schema.returns.push_back({"", type, schema.arguments[0].alias});
  Operator& variant = register_operator(std::move(schema));
  set_variant_tags(variant, *op_, Tag::InPlace);
  if (op_->is_view()) variant.mutable_definition().tags.add(Tag::InPlaceView);
  variant.set_functional(op_);
  op_->set_inplace(&variant);
  compose_inplace();
  return *this;
}

Operator& OperatorBuilder::inplace_variant() {
  check(op_->inplace(), op_->name(), ": an in-place variant is spoken of before it is declared");
  return const_cast<Operator&>(*op_->inplace());
}

namespace {
// The parts of a composite may save their input for the backward pass; that must not be what is written over in the
// end.
Tensor value_before_writing(const Tensor& self) {
  static const Operator& clone = get_operator("aten::clone");
  if (!is_grad_enabled() || !self.requires_grad()) return self;
  Value frame[2] = {Value::borrow(self), Value()};
  clone.call(frame);
  return frame[0].take_tensor();
}
}  // namespace

void OperatorBuilder::compose_inplace() {
  // A view writes nothing: its in-place variant changes metadata, and says by which operator.
  if (!op_->is_composite() || !op_->inplace() || op_->is_view()) return;
  auto& variant = const_cast<Operator&>(*op_->inplace());
  variant.mutable_definition().composite = {
      [](const void* context, Value* frame) {
        static const Operator& copy = get_operator("aten::copy_");
        const auto& functional = *static_cast<const Operator*>(context);
        const Tensor& self = frame[0].tensor_ref();
        Frame inner(functional, frame);
        Tensor before = value_before_writing(frame[0].tensor_ref());
        inner[0] = Value::borrow(before);
        functional.call(inner.data());
        DType result = inner[0].tensor_ref().dtype();
        check(can_cast(result, self.dtype()), "result type ", kernel_name(result),
              " can't be cast to the desired output type ", kernel_name(self.dtype()));
        Value written[3] = {Value::borrow(frame[0]), std::move(inner[0]), Value(false)};
        copy.call(written);
        frame[0] = std::move(written[0]);
      },
      op_};
}

OperatorBuilder& OperatorBuilder::out(const char* name, std::vector<std::string> outputs) {
  add_out(name, std::move(outputs));
  return *this;
}
OperatorBuilder& OperatorBuilder::generated_out(const char* name, std::vector<std::string> outputs) {
  add_out(name, std::move(outputs)).mutable_definition().tags.add(Tag::Generated);
  return *this;
}

namespace {

/// What a factory is told about its result, and its out variant sees of the output.
bool is_factory_option(const SchemaArgument& argument) {
  return argument.name == "dtype" || argument.name == "layout" || argument.name == "device" ||
         argument.name == "pin_memory";
}
bool is_factory(const Schema& schema) { return schema.find("layout") >= 0 && schema.find("pin_memory") >= 0; }

/// A factory and its out variant; lives as long as they do.
struct FactoryOut {
  const Operator &factory, &variant;
};

/// A sequence may have another number of elements than its output for the sake of a rounding error.
void warn_of_count(const Tensor& out, SymInt count) {
  if (out.sym_numel() == 0) return;
  warn(
      "The number of elements in the out tensor of shape ", out.sym_sizes(), " is ", out.sym_numel(),
      " which does not match the computed number of elements ", count,
      ". Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape (",
      count, ",).");
}

/// The out variant of a factory: what the factory makes in the output's type, copied there.
void run_factory_out(const void* context, Value* frame) {
  static const Operator& copy = get_operator("aten::copy_");
  static const Operator& resize = get_operator("aten::resize_");
  const auto& [factory, variant] = *static_cast<const FactoryOut*>(context);
  const auto& arguments = factory.schema().arguments;
  size_t kept = 0;
  for (const SchemaArgument& argument : arguments) kept += !is_factory_option(argument);
  Tensor out = frame[kept].tensor();
  if (kept > 0)  // what comes first has to lie where the output does
    frame[0].each_tensor([&](TensorImpl* t) {
      bool together = (t->device().type == DeviceType::Meta) == (out.device().type == DeviceType::Meta);
      check(together || !outputs_come_first(variant), "Attempting to copy from device ", t->device(), " to device ",
            out.device(), ", but cross-device copies are not allowed!");
    });
  Frame inner(factory);
  for (size_t i = 0, next = 0; i < arguments.size(); ++i) {
    if (!is_factory_option(arguments[i])) inner[i] = Value::borrow(frame[next++]);
    else if (arguments[i].name == "dtype") inner[i] = Value(out.dtype());
    else if (arguments[i].name == "device") inner[i] = Value(out.device());
    else if (arguments[i].name == "layout" && is_sparse(out.layout())) inner[i] = Value(out.layout());
  }
  factory.call(inner.data());
  Tensor result = inner[0].tensor();
  if (is_sparse(out.layout()) && result.layout() == out.layout()) {
    set_sparse(out, result.sym_sizes(), sparse_parts(result));
    frame[0] = Value(std::move(out));
    return;
  }
  auto sizes_of = [](const Tensor& t) {
    return Value(std::vector<SymInt>(t.sym_sizes().begin(), t.sym_sizes().end()));
  };
  if (!(result.sym_sizes() == out.sym_sizes())) {
    // A sequence (arange, linspace) fills an output of as many elements in whatever shape that has, if it has data.
    bool described = out.is_meta() && !out.is_fake() && factory.schema().name != "range";
    bool fills = factory.schema().find("end") >= 0 && !described && !result.sym_numel().is_symbolic() &&
                 result.sym_numel() == out.sym_numel();
    if (fills) {
      Value viewing[2] = {Value::borrow(result), sizes_of(out)};
      get_operator("aten::view").call(viewing);
      result = viewing[0].tensor();
    } else {
      if (factory.schema().name == "arange") warn_of_count(out, result.sym_numel());
      Value resizing[3] = {Value::borrow(out), sizes_of(result), Value()};
      resize.call(resizing);
    }
  }
  Value copying[3] = {Value::borrow(out), Value::borrow(result), Value(false)};
  copy.call(copying);
  frame[0] = Value(std::move(out));
}

}  // namespace

Operator& OperatorBuilder::add_out(const char* name, std::vector<std::string> outputs) {
  Schema schema = op_->schema();
  bool factory = is_factory(schema);
  if (factory) std::erase_if(schema.arguments, is_factory_option);
  set_variant_name(*op_, schema, name, schema.name);
  check(outputs.size() == schema.returns.size(), op_->name(), ": as many names of outputs as returns are needed");
  for (size_t i = 0; i < outputs.size(); ++i) {
    AliasInfo alias{std::string(1 + i / 26, static_cast<char>('a' + i % 26)), true};  // a to z, aa to zz
    schema.arguments.push_back({outputs[i], schema.returns[i].type, alias, true, std::nullopt});
    schema.returns[i].alias = alias;
  }
  Operator& variant = register_operator(std::move(schema));
  set_variant_tags(variant, *op_, Tag::Out);
  if (factory) {
    BoxedFunction run{run_factory_out, new FactoryOut{*op_, variant}};
    variant.mutable_definition().all_backends = variant.mutable_definition().sparse = run;
  } else {
    variant.set_functional(op_);
  }
  return variant;
}

// ---- functions ----

namespace {

BoxedFunction& slot_of(Definition& d, Slot slot, Backend backend) {
  switch (slot) {
    case Slot::View: return d.view;
    case Slot::ViewInverse: return d.view_inverse;
    case Slot::Composite: return d.composite;
    case Slot::AllBackends: return d.all_backends;
    case Slot::Decomposition: return d.decomposition;
    case Slot::Real: return d.real[backend];
    case Slot::Fake: return d.fake;
    case Slot::Mutate: return d.mutate[backend];
    case Slot::Unchanged: return d.unchanged;
    case Slot::TangentForm: return d.tangent_form;
    case Slot::Sparse: return d.sparse;
    case Slot::Meta:
    case Slot::Kernel: break;
  }
  fail("a slot of another kind of function");
}

}  // namespace

OperatorBuilder& OperatorBuilder::set(Slot slot, BoxedFunction function, Backend backend) {
  check_slot(*op_, slot, function.signature);
  slot_of(definition(), slot, backend) = function;
  if (slot == Slot::Composite) compose_inplace();
  return *this;
}

OperatorBuilder& OperatorBuilder::set_meta(BoxedMeta function) {
  check_slot(*op_, Slot::Meta, function.signature);
  definition().meta = function;
  return *this;
}

OperatorBuilder& OperatorBuilder::set_kernel(Backend backend, BoxedKernel function) {
  check_slot(*op_, Slot::Kernel, function.signature);
  definition().kernels[backend] = function;
  return *this;
}

OperatorBuilder& OperatorBuilder::functor(ScalarFunctor functor, const FunctionSignature& parameters) {
  check_functor(*op_, functor.arity, parameters);
  definition().functor = functor;
  return *this;
}

void OperatorBuilder::check_batch_arity(size_t parameters) const {
  check<TypeError>(parameters == op_->argument_count(), op_->name(), ": a batching rule of ", parameters,
                   " parameters for a schema of ", op_->argument_count());
}

namespace {

GradientSource resolve_source(const Operator& op, const std::string& name) {
  using Kind = GradientSource::Kind;
  auto numbered = [&](const char* prefix) -> int {
    std::string p = prefix;
    if (!name.starts_with(p)) return -1;
    std::string rest = name.substr(p.size());
    if (rest.empty()) return 0;
    bool digits = rest.size() < 4 && rest.find_first_not_of("0123456789") == std::string::npos;
    return digits ? std::stoi(rest) : -1;
  };
  const Schema& schema = op.schema();
  if (int i = schema.find(name); i >= 0) return {Kind::Argument, i};
  if (int i = numbered("grad"); i >= 0) return {Kind::Grad, i};
  if (int i = numbered("result"); i >= 0) return {Kind::Result, i};
  for (size_t i = 0; i < schema.returns.size(); ++i)
    if (!schema.returns[i].name.empty() && schema.returns[i].name == name) return {Kind::Result, static_cast<int>(i)};
  if (name == "needs") return {Kind::NeedsInput, 0};
  size_t dot = name.find('.');
  if (dot != std::string::npos) {
    int i = schema.find(name.substr(0, dot));
    std::string property = name.substr(dot + 1);
    if (i >= 0 && property == "sym_sizes") return {Kind::Sizes, i};
    if (i >= 0 && property == "sym_strides") return {Kind::Strides, i};
    if (i >= 0 && property == "sym_storage_offset") return {Kind::Offset, i};
    if (i >= 0 && property == "dtype") return {Kind::DTypeOf, i};
    if (i >= 0 && property == "device") return {Kind::DeviceOf, i};
  }
  fail(op.name(), ": a gradient names '", name, "', which the schema does not have");
}

}  // namespace

OperatorBuilder& OperatorBuilder::add_gradient(const char* inputs, std::initializer_list<const char*> names,
                                               BoxedFunction function) {
  Gradient gradient;
  gradient.function = function;
  std::stringstream list(inputs);
  for (std::string input; std::getline(list, input, ',');) {
    input.erase(0, input.find_first_not_of(' '));
    int position = op_->schema().find(input);
    check(position >= 0, op_->name(), ": gradient of '", input, "', which the schema does not have");
    gradient.inputs.push_back(position);
  }
  for (const char* n : names) {
    gradient.names.emplace_back(n);
    gradient.sources.push_back(resolve_source(*op_, n));
  }
  check_gradient(*op_, gradient);
  check(definition().gradients.size() < 64, op_->name(), ": more than 64 gradient formulas");
  definition().gradients.push_back(std::move(gradient));
  return *this;
}

OperatorBuilder& OperatorBuilder::node(const char* name) {
  definition().node_name = name;
  return *this;
}
OperatorBuilder& OperatorBuilder::functional_form(const char* name) {
  op_->set_functional_name(name);
  return *this;
}
OperatorBuilder& OperatorBuilder::not_differentiable() {
  definition().not_differentiable = true;
  return *this;
}
OperatorBuilder& OperatorBuilder::differentiable_outputs(std::vector<bool> outputs) {
  definition().differentiable_outputs = std::move(outputs);
  return *this;
}
OperatorBuilder& OperatorBuilder::tangent(TangentRule rule) {
  definition().tangent = rule;
  return *this;
}
OperatorBuilder& OperatorBuilder::elementwise() {
  definition().elementwise = true;
  return *this;
}
OperatorBuilder& OperatorBuilder::writes_straight() {
  definition().writes_straight = true;
  return *this;
}
OperatorBuilder& OperatorBuilder::reads_lazy_bits() {
  definition().reads_lazy_bits = true;
  return *this;
}
OperatorBuilder& OperatorBuilder::random() {
  definition().random = true;
  definition().tags.add(Tag::NondeterministicSeeded);
  return *this;
}
OperatorBuilder& OperatorBuilder::tags(TagSet tags) {
  definition().tags.add(tags);
  return *this;
}

}  // namespace umbra
