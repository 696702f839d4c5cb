// The table of layer functions and the registry: what dispatch/ shares among its own files.
#pragma once

#include "umbra/dispatch/operator.h"

namespace umbra {

LayerFunction layer_function(DispatchKey key);
/// What serves operators that take functions.
LayerFunction function_layer(DispatchKey key);
/// Lets the result of a view operator know what it is a view of.
void note_view(const Tensor& self, const Value& result);
/// The value of a tensor whose transform has come to its end; any other tensor as it is. transform/ sets it.
extern Tensor (*value_of_ended)(const Tensor& tensor);
/// What a layer does for this operator alone, beside which libraries may register kernels of theirs; null: nothing.
LayerFunction own_layer(const Operator& op, DispatchKey key);
void set_own_layer(Operator& op, DispatchKey key, LayerFunction function);
/// Whether metadata is asked for a call that no kernel follows, since an argument is a meta tensor.
bool only_metadata_is_asked();
/// Whether metadata is asked for an out variant: PyTorch's checks of those are not always the functional one's.
bool outputs_are_given();
/// Says so for a scope.
class OutputsGiven {
 public:
  explicit OutputsGiven(bool given);
  ~OutputsGiven();
  OutputsGiven(const OutputsGiven&) = delete;

 private:
  bool before_;
};
/// Whether an out variant compares its outputs' devices with its first argument's before all else, on the meta device.
/// ops/ sets it.
extern bool (*outputs_come_first)(const Operator& op);
/// Whether an out variant takes outputs of exactly the type it describes on the meta device. ops/ sets it.
extern bool (*outputs_are_exact_on_meta)(const Operator& op);
/// Refuses lists whose tensors are written and are conjugated or negated lazily.
void refuse_lazy_lists(const Operator& op, const Value* frame);
/// Adds an operator; an error if the name is taken.
Operator& register_operator(Schema schema);
/// Takes the name away; the Operator itself stays, since its address is its identity.
void remove_operator(const Operator& op);

}  // namespace umbra
