// Where a call ends that has a sparse tensor among its arguments: at what the definition says about them.
#include "umbra/core/sparse.h"

#include "umbra/dispatch/dispatcher.h"

namespace umbra {

namespace {

bool is_sparse_tensor(const Value& value) {
  return value.is_tensor() && value.tensor_ref().defined() && value.tensor_ref().keys().has(DispatchKey::Sparse);
}

Tensor call(const char* name, std::initializer_list<Value> arguments) {
  const Operator& op = get_operator(name);
  Frame frame(op);
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i] =
        i < arguments.size() ? *(arguments.begin() + i) : op.schema().arguments[i].default_value.value_or(Value());
  op.call(frame.data());
  return frame[0].tensor();
}

/// Puts a result into the tensor that an in-place or out variant writes.
void write_result(const Operator& op, const Tensor& to, const Tensor& result) {
  check(can_cast(result.dtype(), to.dtype()), "Can't convert result type ", kernel_name(result.dtype()), " to output ",
        kernel_name(to.dtype()), " in ", op.functional()->schema().name, " operation");
  if (to.keys().has(DispatchKey::Sparse)) {
    check(result.layout() == to.layout(), op.name(), ": a result of layout ", to_string(result.layout()),
          " does not fit a tensor of layout ", to_string(to.layout()));
    SparseParts parts = sparse_parts(result);
    if (result.dtype() != to.dtype()) parts.values = call("aten::to.dtype", {parts.values, to.dtype()});
    return set_sparse(to, result.sym_sizes(), std::move(parts));
  }
  bool sparse = result.keys().has(DispatchKey::Sparse);
  if (!(to.sym_sizes() == result.sym_sizes())) call("aten::resize_", {to, result.sym_sizes().vec()});
  call("aten::copy_", {to, sparse ? call("aten::_to_dense", {result}) : result});
}

/// Definitions for sparse tensors read the elements of the strided ones beside them: these become plain first. What is
/// written stays, it is written by copies.
void resolve_lazy_bits(const Operator& op, Value* frame) {
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (!frame[i].is_tensor() || op.schema().arguments[i].alias.write) continue;
    const Tensor& t = frame[i].tensor_ref();
    if (t.defined() && (t.is_conj() || t.is_neg()))
      frame[i] = Value(call("aten::resolve_neg", {call("aten::resolve_conj", {t})}));
  }
}

/// In-place and out variants follow from the operator: what it gives is written. False where it takes no such tensors.
bool run_variant(const Operator& op, Value* frame) {
  const Operator* functional = op.functional();
  if (!functional || !functional->definition().sparse || op.return_count() != 1) return false;
  bool any = false;
  for (size_t i = 0; i < functional->argument_count(); ++i) any |= is_sparse_tensor(frame[i]);
  if (!any) return false;
  Tensor written = frame[op.is_inplace() ? 0 : op.argument_count() - 1].tensor();
  Frame arguments(*functional, frame);
  functional->definition().sparse(arguments.data());
  write_result(op, written, arguments[0].tensor());
  frame[0] = Value(written);
  return true;
}

void sparse_layer(const Operator& op, DispatchKeySet, Value* frame) {
  resolve_lazy_bits(op, frame);
  if (const BoxedFunction& function = op.definition().sparse) return function(frame);
  if ((op.is_inplace() || op.has_out()) && run_variant(op, frame)) return;
  const TensorImpl* sparse = nullptr;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) {
      if (t->keys().has(DispatchKey::Sparse)) sparse = t;
    });
  const char* device = sparse && sparse->device().type == DeviceType::Meta ? "Meta" : "CPU";
  fail<NotImplementedError>("Could not run '", op.name(), "' with arguments from the '",
                            sparse && sparse->layout() != Layout::SparseCoo ? "SparseCsr" : "Sparse", device,
                            "' backend: it is not defined for tensors of layout ",
                            to_string(sparse ? sparse->layout() : Layout::SparseCoo), " in Umbra yet");
}

const RegisterLayer kSparse(DispatchKey::Sparse, sparse_layer);

}  // namespace

}  // namespace umbra
