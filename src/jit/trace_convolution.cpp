#include "jit/trace_convolution.h"

#include <algorithm>

namespace umbra::jit {

namespace {

enum class Family { Plain, Transposed, ByMode, General };

struct Form {
  const Operator* op;
  Family family;
  size_t dims = 0;
};

const Form* form_of(const Operator& op) {
  static const std::vector<Form> forms = {{&get_operator("aten::conv1d"), Family::Plain, 1},
                                          {&get_operator("aten::conv2d"), Family::Plain, 2},
                                          {&get_operator("aten::conv3d"), Family::Plain, 3},
                                          {&get_operator("aten::conv_transpose1d"), Family::Transposed, 1},
                                          {&get_operator("aten::conv_transpose2d.input"), Family::Transposed, 2},
                                          {&get_operator("aten::conv_transpose3d.input"), Family::Transposed, 3},
                                          {&get_operator("aten::conv1d.padding"), Family::ByMode, 1},
                                          {&get_operator("aten::conv2d.padding"), Family::ByMode, 2},
                                          {&get_operator("aten::conv3d.padding"), Family::ByMode, 3},
                                          {&get_operator("aten::convolution"), Family::General}};
  auto found = std::find_if(forms.begin(), forms.end(), [&](const Form& f) { return f.op == &op; });
  return found == forms.end() ? nullptr : &*found;
}

/// A list with an entry for each dimension, where one may stand for all.
Value each_dimension(const Value& list, size_t count) {
  std::vector<SymInt> entries = list.int_list().vec();
  if (entries.size() == 1) entries.resize(count, entries[0]);
  return Value(std::move(entries));
}

/// The arguments of `_convolution` for those of another form.
std::vector<Value> general_arguments(const Form& form, const Value* frame) {
  std::vector<Value> out(frame, frame + 3);
  if (form.family == Family::General) {
    out.insert(out.end(), frame + 3, frame + 9);
  } else {
    bool transposed = form.family == Family::Transposed;
    const Value &dilation = frame[transposed ? 7 : 5], &groups = frame[6];
    for (const Value* list : {&frame[3], &frame[4], &dilation}) out.push_back(each_dimension(*list, form.dims));
    out.push_back(Value(transposed));
    out.push_back(transposed ? each_dimension(frame[5], form.dims) : Value(std::vector<SymInt>(form.dims, SymInt(0))));
    out.push_back(groups);
  }
  for (bool flag : {false, false, true, true}) out.push_back(Value(flag));
  return out;
}

/// A call with `arguments`, of which the first becomes the result.
void call(Trace& trace, const char* name, std::vector<Value>& arguments) {
  trace.call(get_operator(name), arguments.data());
}

/// The tensor with one dimension more or less in front.
Value with_batch(Trace& trace, const char* name, const Value& tensor) {
  std::vector<Value> arguments{tensor, Value(int64_t{0})};
  call(trace, name, arguments);
  return arguments[0];
}

}  // namespace

bool call_convolution(Trace& trace, const Operator& op, Value* frame) {
  const Form* form = trace.on ? form_of(op) : nullptr;
  if (!form || !frame[0].is_tensor() || frame[0].tensor_ref().is_complex()) return false;
  bool batched = form->family == Family::General || frame[0].tensor_ref().dim() == static_cast<int64_t>(form->dims) + 2;
  if (form->family == Family::ByMode) {
    if (!batched) return false;
    std::vector<Value> arguments(frame, frame + 7);
    for (size_t list : {3, 5}) arguments[list] = each_dimension(frame[list], form->dims);
    call(trace, "aten::_convolution_mode", arguments);
    frame[0] = std::move(arguments[0]);
    return true;
  }
  std::vector<Value> arguments = general_arguments(*form, frame);
  if (!batched) arguments[0] = with_batch(trace, "aten::unsqueeze", arguments[0]);
  call(trace, "aten::_convolution", arguments);
  frame[0] = batched ? std::move(arguments[0]) : with_batch(trace, "aten::squeeze.dim", arguments[0]);
  return true;
}

}  // namespace umbra::jit
