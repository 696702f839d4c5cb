// Where calls end: on fakes the functions run and results follow from theirs; with data the operator does what it does.
#include "capture/higher_order/layers.h"
#include "capture/higher_order/metadata.h"

namespace umbra {

namespace {

void fake_functions(const Operator& op, DispatchKeySet, Value* frame) {
  FunctionCall call(op, frame);
  std::vector<std::vector<Value>> of_functions;
  for (size_t which = 0; which < call.functions().size(); ++which) {
    if (which > 0) forget_memory(of_functions.back());  // a run has what one of them gave, not all at once
    of_functions.push_back(call.run_function(which, call.inputs(which)));
  }
  frame[0] = Value(call.rule().results(call, of_functions));
}

void run_functions(const Operator& op, DispatchKeySet, Value* frame) {
  FunctionCall call(op, frame);
  frame[0] = Value(call.rule().run(call));
}

const RegisterFunctionLayer kFake(DispatchKey::Fake, fake_functions);
const RegisterFunctionLayer kMeta(DispatchKey::Meta, fake_functions);
const RegisterFunctionLayer kCpu(DispatchKey::CPU, run_functions);

}  // namespace
}  // namespace umbra
