#include "dispatch/definition_check.h"

namespace umbra {

namespace {

using Base = SchemaType::Base;

bool same_base(CppType::Base cpp, Base schema) {
  switch (schema) {
    case Base::Tensor: return cpp == CppType::Base::Tensor;
    case Base::Int:
    case Base::SymInt: return cpp == CppType::Base::Int || cpp == CppType::Base::SymInt;
    case Base::Float:
    case Base::SymFloat: return cpp == CppType::Base::Double;
    case Base::Bool:
    case Base::SymBool: return cpp == CppType::Base::Bool;
    case Base::Scalar: return cpp == CppType::Base::Scalar;
    case Base::String: return cpp == CppType::Base::String;
    case Base::Device: return cpp == CppType::Base::Device;
    case Base::DType: return cpp == CppType::Base::DType;
    case Base::Layout: return cpp == CppType::Base::Layout;
    case Base::MemoryFormat: return cpp == CppType::Base::MemoryFormat;
    case Base::Generator: return cpp == CppType::Base::Generator;
    case Base::Complex:
    case Base::Storage:
    case Base::Callable:
    case Base::Any: return false;
  }
  return false;
}

bool is_number(Base base) {
  return base == Base::Int || base == Base::SymInt || base == Base::Float || base == Base::SymFloat ||
         base == Base::Bool || base == Base::SymBool || base == Base::Complex || base == Base::Scalar;
}

/// A parameter or result that a slot asks for.
struct Wanted {
  std::string name;
  SchemaType type;
};
SchemaType type_of(Base base, bool list = false, int list_size = 0) {
  SchemaType type;
  type.base = base;
  type.list = list;
  type.list_size = list_size;
  return type;
}

std::string list_of(const std::vector<Wanted>& wanted) {
  std::string out;
  for (const Wanted& w : wanted)
    out += (out.empty() ? "" : ", ") + to_string(w.type) + (w.name.empty() ? "" : " " + w.name);
  return "(" + out + ")";
}
std::string list_of(std::span<const CppType> types) {
  std::string out;
  for (const CppType& t : types) out += (out.empty() ? "" : ", ") + to_string(t);
  return "(" + out + ")";
}

/// Compares one function with what its place asks for.
class Comparison {
 public:
  Comparison(const Operator& op, std::string what, const FunctionSignature& function)
      : op_(op), what_(std::move(what)), function_(function) {}

  void parameters(const std::vector<Wanted>& wanted) const {
    check<TypeError>(function_.parameters.size() == wanted.size(), op_.name(), ": ", what_, " takes ",
                     function_.parameters.size(), " parameters ", list_of(function_.parameters), " where ",
                     wanted.size(), " are given: ", list_of(wanted));
    for (size_t i = 0; i < wanted.size(); ++i)
      check<TypeError>(takes(function_.parameters[i], wanted[i].type), op_.name(), ": parameter ", i + 1, " of ", what_,
                       " is '", to_string(function_.parameters[i]), "', which cannot take '", to_string(wanted[i].type),
                       " ", wanted[i].name, "'");
  }

  void results(const std::vector<Wanted>& wanted) const {
    check<TypeError>(function_.results.size() == wanted.size(), op_.name(), ": ", what_, " gives ",
                     function_.results.size(), " results ", list_of(function_.results), " where ", wanted.size(),
                     " are asked for: ", list_of(wanted));
    for (size_t i = 0; i < wanted.size(); ++i)
      check<TypeError>(gives(function_.results[i], wanted[i].type), op_.name(), ": result ", i + 1, " of ", what_,
                       " is '", to_string(function_.results[i]), "', not '", to_string(wanted[i].type), "'");
  }

  /// Metadata: one for each output, or a list whose length is known when it is there.
  void specs() const {
    auto is_spec = [](const CppType& t) { return t.base == CppType::Base::Spec && !t.optional; };
    for (const CppType& t : function_.results)
      check<TypeError>(is_spec(t), op_.name(), ": ", what_, " gives '", to_string(t), "', not metadata of outputs");
    // What an operator that writes says here is not used: it is there for its checks.
    if (op_.is_mutable()) return;
    bool list = function_.results.size() == 1 && function_.results[0].list;
    const auto& returns = op_.schema().returns;
    bool wants_list = returns.size() == 1 && returns[0].type.is_tensor_list();
    check<TypeError>(list || (!wants_list && function_.results.size() == returns.size()), op_.name(), ": ", what_,
                     " gives metadata of ", function_.results.size(), " outputs, the schema has ", returns.size());
    for (const SchemaReturn& r : returns)
      check<TypeError>(r.type.base == Base::Tensor, op_.name(), ": ", what_,
                       " cannot describe a result that is no tensor");
  }

 private:
  const Operator& op_;
  std::string what_;
  const FunctionSignature& function_;
};

std::vector<Wanted> arguments_of(const Operator& op, size_t from = 0) {
  std::vector<Wanted> out;
  for (size_t i = from; i < op.argument_count(); ++i)
    out.push_back({op.schema().arguments[i].name, op.schema().arguments[i].type});
  return out;
}
std::vector<Wanted> results_of(const Operator& op) {
  std::vector<Wanted> out;
  for (const SchemaReturn& r : op.schema().returns) out.push_back({r.name, r.type});
  return out;
}

std::vector<Wanted> kernel_parameters(const Operator& op) {
  std::vector<Wanted> out = results_of(op);
  for (Wanted& w : out) w.name = "out";
  for (Wanted& w : arguments_of(op)) out.push_back(std::move(w));
  return out;
}

std::vector<Wanted> inverse_parameters(const Operator& op) {
  std::vector<Wanted> out{
      {"base", type_of(Base::Tensor)}, {"written", type_of(Base::Tensor)}, {"which", type_of(Base::Int)}};
  for (Wanted& w : arguments_of(op, 1)) out.push_back(std::move(w));
  return out;
}

const char* description(Slot slot) {
  switch (slot) {
    case Slot::Meta: return "its metadata function";
    case Slot::Kernel: return "its kernel";
    case Slot::View: return "its view";
    case Slot::ViewInverse: return "the inverse of its view";
    case Slot::Composite: return "its composite";
    case Slot::AllBackends: return "its function for all backends";
    case Slot::Decomposition: return "its decomposition";
    case Slot::Real: return "its function for real tensors";
    case Slot::Fake: return "its function for fake tensors";
    case Slot::Mutate: return "its writing function";
    case Slot::Unchanged: return "its test for nothing to do";
    case Slot::TangentForm: return "its form for tangents";
    case Slot::Sparse: return "its function for sparse tensors";
  }
  return "a function";
}

SchemaType source_type(const Operator& op, const Gradient& gradient, const GradientSource& source) {
  using Kind = GradientSource::Kind;
  const Schema& schema = op.schema();
  auto output = [&] {
    check<TypeError>(source.index < static_cast<int>(schema.returns.size()), op.name(), ": a gradient names output ",
                     source.index, ", the schema has ", schema.returns.size());
    return schema.returns[source.index].type;
  };
  switch (source.kind) {
    case Kind::Grad:
    case Kind::Result: return output();
    case Kind::Argument: return schema.arguments[source.index].type;
    case Kind::Sizes:
    case Kind::Strides: return type_of(Base::SymInt, true);
    case Kind::Offset: return type_of(Base::SymInt);
    case Kind::DTypeOf: return type_of(Base::DType);
    case Kind::DeviceOf: return type_of(Base::Device);
    case Kind::NeedsInput: return type_of(Base::Bool, true, static_cast<int>(gradient.inputs.size()));
  }
  return {};
}

}  // namespace

bool takes(const CppType& parameter, const SchemaType& type) {
  if (parameter.base == CppType::Base::Any) return !parameter.list;
  // None is a tensor that is not there and a generator that is null; anything else needs an optional.
  bool has_none =
      parameter.optional ||
      (!parameter.list && (parameter.base == CppType::Base::Tensor || parameter.base == CppType::Base::Generator));
  if (type.optional && !has_none) return false;
  if (parameter.list != type.list) return false;
  if (parameter.list_size && type.list_size && parameter.list_size != type.list_size) return false;
  // A Scalar holds any number.
  return same_base(parameter.base, type.base) || (parameter.base == CppType::Base::Scalar && is_number(type.base));
}

bool gives(const CppType& result, const SchemaType& type) {
  if (result.base == CppType::Base::Any) return true;
  if (type.base == Base::Any) return true;
  if (result.list != type.list) return false;
  // A Scalar that is a result says itself what kind of number it is.
  if (type.base == Base::Scalar || result.base == CppType::Base::Scalar)
    return result.base == CppType::Base::Int || result.base == CppType::Base::SymInt ||
           result.base == CppType::Base::Double || result.base == CppType::Base::Bool ||
           (result.base == CppType::Base::Scalar && is_number(type.base));
  return same_base(result.base, type.base);
}

std::string to_string(const CppType& type) {
  constexpr const char* kNames[] = {"Tensor", "TensorSpec", "int",    "SymInt", "float",        "bool",      "Scalar",
                                    "str",    "ScalarType", "Device", "Layout", "MemoryFormat", "Generator", "Value"};
  std::string out = kNames[static_cast<size_t>(type.base)];
  if (type.list) out += "[" + (type.list_size ? std::to_string(type.list_size) : "") + "]";
  return type.optional ? out + "?" : out;
}

void check_slot(const Operator& op, Slot slot, const FunctionSignature* function) {
  if (!function) return;
  Comparison compare(op, description(slot), *function);
  if (slot == Slot::Kernel) return compare.parameters(kernel_parameters(op));
  compare.parameters(slot == Slot::ViewInverse ? inverse_parameters(op) : arguments_of(op));
  switch (slot) {
    case Slot::Meta: return compare.specs();
    case Slot::ViewInverse: return compare.results({{"", type_of(Base::Tensor)}});
    case Slot::Mutate: return compare.results({});
    case Slot::Unchanged: return compare.results({{"", type_of(Base::Bool)}});
    default: return compare.results(results_of(op));
  }
}

void check_gradient(const Operator& op, const Gradient& gradient) {
  if (!gradient.function.signature) return;
  std::vector<Wanted> parameters, results;
  for (size_t i = 0; i < gradient.sources.size(); ++i)
    parameters.push_back({gradient.names[i], source_type(op, gradient, gradient.sources[i])});
  for (int input : gradient.inputs)
    results.push_back({"", type_of(Base::Tensor, op.schema().arguments[input].type.list)});
  std::string inputs;
  for (int input : gradient.inputs) inputs += (inputs.empty() ? "" : ", ") + op.schema().arguments[input].name;
  Comparison compare(op, "the gradient of '" + inputs + "'", *gradient.function.signature);
  compare.parameters(parameters);
  compare.results(results);
}

void check_functor(const Operator& op, size_t inputs, const FunctionSignature& function) {
  check<TypeError>(inputs <= op.argument_count(), op.name(), ": a functor of ", inputs, " inputs, the schema has ",
                   op.argument_count(), " arguments");
  for (size_t i = 0; i < inputs; ++i) {
    const SchemaArgument& a = op.schema().arguments[i];
    check<TypeError>(a.type.is_tensor() || a.type.base == Base::Scalar, op.name(), ": '", a.name,
                     "' is an input of its functor, and is neither a tensor nor a number");
  }
  Comparison(op, "what makes its functor", function).parameters(arguments_of(op, inputs));
}

namespace {

template <class F> void collect(std::vector<std::string>& problems, F&& look) {
  try {
    look();
  } catch (const Error& e) {
    problems.emplace_back(e.what());
  }
}

bool can_run(const Operator& op) {
  const Definition& d = op.definition();
  return op.functional() || d.meta || d.view || d.composite || d.all_backends || d.real.any() || d.mutate.any() ||
         d.fake;
}

}  // namespace

std::vector<std::string> definition_problems(const Operator& op) {
  std::vector<std::string> problems;
  const Definition& d = op.definition();
  auto look = [&](Slot slot, const auto& function) {
    collect(problems, [&] { check_slot(op, slot, function.signature); });
  };
  look(Slot::Meta, d.meta);
  look(Slot::View, d.view);
  look(Slot::ViewInverse, d.view_inverse);
  look(Slot::Composite, d.composite);
  look(Slot::AllBackends, d.all_backends);
  look(Slot::Decomposition, d.decomposition);
  look(Slot::Fake, d.fake);
  look(Slot::Unchanged, d.unchanged);
  look(Slot::TangentForm, d.tangent_form);
  look(Slot::Sparse, d.sparse);
  for (int b = 0; b < static_cast<int>(Backend::Count); ++b) {
    look(Slot::Kernel, d.kernels[static_cast<Backend>(b)]);
    look(Slot::Real, d.real[static_cast<Backend>(b)]);
    look(Slot::Mutate, d.mutate[static_cast<Backend>(b)]);
  }
  for (const Gradient& g : d.gradients) collect(problems, [&] { check_gradient(op, g); });
  auto wants = [&](bool holds, const char* what) {
    if (!holds) problems.push_back(op.name() + ": " + what);
  };
  wants(can_run(op) || d.sparse || op.takes_functions(), "nothing says what it does");
  wants(!d.kernels.any() || d.meta, "a kernel needs metadata of what it fills");
  wants(!d.view || op.is_view(), "it is defined as a view, and its schema says nothing of an alias");
  wants(!d.view_inverse || op.is_view(), "it has the inverse of a view, and its schema says nothing of an alias");
  wants(!d.mutate.any() || op.is_mutable(), "its function writes arguments, and its schema marks none as written");
  wants(d.differentiable_outputs.empty() || d.differentiable_outputs.size() == op.return_count(),
        "it marks more or fewer outputs as differentiable than there are");
  collect(problems, [&] { op.functional_form(); });
  return problems;
}

}  // namespace umbra
