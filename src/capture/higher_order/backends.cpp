// Where calls end: on fakes the functions run and results follow from theirs; with data the operator does what it does.
// Where costs are counted, a call on fakes goes as one with data does, since what each step keeps is part of them.
#include <algorithm>

#include "capture/higher_order/layers.h"
#include "capture/higher_order/metadata.h"
#include "umbra/fake/cost.h"

namespace umbra {

namespace {

/// A run without data can go as one with data goes where sizes say how often each function is called.
bool can_be_rehearsed(const FunctionCall& call) {
  std::vector<Tensor> tensors = call.tensors();
  return std::none_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.is_symbolic(); });
}

void fake_functions(const Operator& op, DispatchKeySet, Value* frame) {
  FunctionCall call(op, frame);
  FunctionsCounted counted;
  if (counted.trace() && can_be_rehearsed(call)) {
    const HigherOrder& rule = call.rule();
    frame[0] = Value(rule.rehearse ? rule.rehearse(call, *counted.trace()) : rule.run(call));
    return;
  }
  std::vector<std::vector<Value>> of_functions;
  for (size_t which = 0; which < call.functions().size(); ++which) {
    if (which > 0) forget_memory(of_functions.back());  // a run has what one of them gave, not all at once
    of_functions.push_back(call.run_function(which, call.inputs(which)));
  }
  frame[0] = Value(call.rule().results(call, of_functions));
}

void run_functions(const Operator& op, DispatchKeySet, Value* frame) {
  FunctionCall call(op, frame);
  FunctionsCounted counted;
  frame[0] = Value(call.rule().run(call));
}

const RegisterFunctionLayer kFake(DispatchKey::Fake, fake_functions);
const RegisterFunctionLayer kMeta(DispatchKey::Meta, fake_functions);
const RegisterFunctionLayer kCpu(DispatchKey::CPU, run_functions);

}  // namespace
}  // namespace umbra
