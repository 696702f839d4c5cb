// The signatures of functions as users see them: the order in which overloads are tried, and the messages when none
// fits.
#pragma once

#include "arguments.h"

namespace umbra::python {

/// Puts the more particular signatures first: a Tensor before a Scalar, an int before a list of ints.
void sort_overloads(std::vector<const Matcher*>& overloads);

/// "(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)"
std::string signature_text(const Matcher& matcher, Reading reading, bool with_out);

/// The type of an argument as PyTorch's messages name it: "torch.dtype", "list", "numpy.ndarray".
std::string argument_type(PyObject* object);

/// "Optional[List[int]]": a schema's type as TorchScript names it.
std::string jit_type_text(const SchemaType& type);

/// TypeError in the words of PyTorch's functions.
[[noreturn]] void fail_no_signature(const std::string& name, Reading reading, const std::vector<const Matcher*>& plain,
                                    const std::vector<const Matcher*>& out, const CallArguments& call);
/// RuntimeError in the words of PyTorch's operators.
[[noreturn]] void fail_schema(const Operator& op, const CallArguments& call, const Mismatch& why);
[[noreturn]] void fail_no_schema(const std::string& name, const std::vector<const Matcher*>& overloads,
                                 const CallArguments& call);

/// Results of a function: lists of tensors are tuples, several named results a torch.return_types object.
PyObject* wrap_function_results(const Operator& op, Value* frame);

}  // namespace umbra::python
