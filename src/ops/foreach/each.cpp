#include "ops/foreach/each.h"

#include "dispatch/layers.h"
#include "ops/common/list_out.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::ops {

namespace {

/// What one operator over lists does; lives as long as it.
struct Each {
  const Operator* op;
  const char* element;
  const char* differentiated;  // the one whose history is noted
  bool in_place;

  // Looked up when it is called: definitions come in any order.
  const Operator& functional() const { return get_operator(element); }
  const Operator& with_history() const { return get_operator(differentiated); }
};
const Each& each_of(const Operator& op) { return *static_cast<const Each*>(op.definition().all_backends.context); }

bool is_spread(const SchemaArgument& argument) { return argument.type.list; }

size_t length_of(const Value& list) { return list.is_tensor_list() ? list.tensor_list().size() : list.list().size(); }

/// The number of elements; an error, in PyTorch's words, where the lists do not fit one another.
size_t count_elements(const Operator& op, const Value* frame) {
  const auto& arguments = op.schema().arguments;
  std::optional<size_t> count;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!is_spread(arguments[i]) || arguments[i].type.base != SchemaType::Base::Tensor) continue;
    size_t length = frame[i].is_none() ? 0 : length_of(frame[i]);
    check(length > 0, "Tensor list must have at least one tensor.");
    check(!count || *count == length, "Tensor lists must have the same number of tensors, got ", count.value_or(0),
          " and ", length);
    count = length;
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (is_spread(arguments[i]) && arguments[i].type.base != SchemaType::Base::Tensor)
      check(length_of(frame[i]) == *count, "Tensor list must have same number of elements as scalar list.");
  int other = op.schema().find("other");
  if (other >= 0 && frame[other].is_tensor()) {  // one for all: a number
    const Tensor& number = frame[other].tensor_ref();
    check(number.dim() == 0, "scalar tensor expected to be 0 dim but it has ", number.dim(), " dimensions and ",
          number.sym_numel(), " elements.");
  }
  return *count;
}

Value element_of(const Value& list, size_t i) {
  return list.is_tensor_list() ? Value(list.tensor_list()[i]) : list.list()[i];
}

/// Where an argument of the element's operator comes from: the one of the same name, else the one at the same place,
/// unless that is known by its name to be another. -1: from nowhere, it keeps its default.
int source_of(const Operator& op, const Operator& operation, size_t k) {
  int named = op.schema().find(operation.schema().arguments[k].name);
  if (named >= 0) return named;
  bool other = k >= op.argument_count() || operation.schema().find(op.schema().arguments[k].name) >= 0;
  return other ? -1 : static_cast<int>(k);
}

/// The arguments of the call for one element.
void fill_arguments(const Each& each, const Operator& operation, Value* frame, size_t i, Frame& inner) {
  for (size_t k = 0; k < operation.argument_count(); ++k) {
    const SchemaArgument& wanted = operation.schema().arguments[k];
    int from = source_of(*each.op, operation, k);
    if (from < 0) inner[k] = *wanted.default_value;
    else if (is_spread(each.op->schema().arguments[from])) inner[k] = element_of(frame[from], i);
    else inner[k] = Value::borrow(frame[from]);
    if (wanted.type.is_tensor() && inner[k].is_scalar()) inner[k] = Value(wrapped_number(inner[k].to_scalar()));
  }
}

/// Writes a result over an element whose operator has no in-place variant.
void write_result(const Tensor& to, Value result) {
  static const Operator& copy = get_operator("aten::copy_");
  DType dtype = result.tensor_ref().dtype();
  check(can_cast(dtype, to.dtype()), "result type ", kernel_name(dtype), " can't be cast to the desired output type ",
        kernel_name(to.dtype()));
  check(result.tensor_ref().sym_sizes() == to.sym_sizes(), "output with shape ", to.sym_sizes(),
        " doesn't match the broadcast shape ", to_string(result.tensor_ref().sym_sizes()));
  Value frame[3] = {Value::borrow(to), std::move(result), Value(false)};
  copy.call(frame);
}

/// What exists for functionalisation alone takes lists without tensors, and pairs up those there are.
bool copies_nothing(const Operator& op, const Value* frame) {
  const auto& arguments = op.schema().arguments;
  if (!op.has_tag(Tag::Generated) || !is_spread(arguments[0]) || arguments.size() < 2 || !is_spread(arguments[1]))
    return false;
  return length_of(frame[0]) == 0 || length_of(frame[1]) == 0;
}

void run_by(const Each& each, const Operator& functional, Value* frame) {
  const Operator& operation = each.in_place && functional.inplace() ? *functional.inplace() : functional;
  if (each.in_place) refuse_lazy_lists(*each.op, frame);
  if (copies_nothing(*each.op, frame)) {
    frame[0] = Value(std::vector<Tensor>());
    return;
  }
  size_t count = count_elements(*each.op, frame);
  std::vector<Tensor> results;
  for (size_t i = 0; i < count; ++i) {
    Frame inner(operation);
    fill_arguments(each, operation, frame, i, inner);
    operation.call(inner.data());
    if (!each.in_place) results.push_back(inner[0].take_tensor());
    else if (!operation.is_mutable()) write_result(frame[0].tensor_list()[i], std::move(inner[0]));
  }
  if (!each.in_place) frame[0] = Value(std::move(results));
}

void run_each(const void* context, Value* frame) {
  const Each& each = *static_cast<const Each*>(context);
  run_by(each, each.functional(), frame);
}

/// Where one result of a list has a history, all are to have one.
void check_differentiable(TensorList results) {
  for (const Tensor& t : results)
    check(is_differentiable(t.dtype()), "Autograd not support dtype: ", kernel_name(t.dtype()));
}

/// Said of the whole list before an element is looked at.
void check_no_leaf(TensorList written) {
  for (const Tensor& t : written)
    check(!is_grad_enabled() || !t.requires_grad() || !t.is_leaf(),
          "a leaf Variable that requires grad is being used in an in-place operation.");
}

/// At autograd: in pieces where a history or a tangent has to be noted, as a whole otherwise.
void autograd_each(const Operator& op, DispatchKeySet keys, Value* frame) {
  const Each& each = each_of(op);
  bool noted = false;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) {
      bool requires_grad = Tensor(IntrusivePtr<TensorImpl>(t)).requires_grad();
      noted |= requires_grad ? is_grad_enabled() : t->autograd_meta() != nullptr;
    });
  if (noted && each.in_place) check_no_leaf(frame[0].tensor_list());
  // As in PyTorch, what has no in-place variant has no derivative in place.
  if (noted && (!each.in_place || each.with_history().inplace())) {
    run_by(each, each.with_history(), frame);
    if (!each.in_place) check_differentiable(frame[0].tensor_list());
    return;
  }
  layer_function(DispatchKey::Autograd)(op, keys, frame);
}

void define_each(Operator& op, const char* element, const char* differentiated, bool in_place) {
  op.mutable_definition().all_backends = {run_each, new Each{&op, element, differentiated, in_place}};
  // Those that exist for functionalisation alone have no derivative in PyTorch.
  if (!op.has_tag(Tag::Generated)) set_own_layer(op, DispatchKey::Autograd, autograd_each);
}

}  // namespace

void each::operator()(OperatorBuilder& builder) const {
  define_each(builder.op(), element, differentiated, false);
  if (builder.op().inplace())
    builder.on_inplace([&](OperatorBuilder& variant) { define_each(variant.op(), element, differentiated, true); });
  const Schema& schema = builder.op().schema();
  if (schema.overload == "ScalarAndTensor") return;  // the one without an out variant
  builder.use(ListOut{schema.name + "." + (schema.overload.empty() ? "out" : schema.overload + "_out")});
}

}  // namespace umbra::ops
