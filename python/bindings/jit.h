// TorchScript programs in Python: values on their way in and out.
#pragma once

#include "arguments.h"
#include "dispatch/host_lock.h"
#include "umbra/jit/objects.h"
#include "umbra/jit/trace.h"

namespace umbra::python {

/// An object of a program: a module or an instance of a class.
struct JitObject {
  Value value;
  jit::Instance& instance() const { return jit::expect_object<jit::Instance>(value, "an object"); }
};

/// Lists and dicts that Python and programs share.
struct ScriptList {
  Value value;
};
struct ScriptDict {
  Value value;
};

/// Types, classes and functions as Python holds them.
struct JitType {
  jit::TypePtr type;
};
struct JitClass {
  jit::ClassPtr cls;
};
struct JitFunction {
  jit::FunctionPtr function;
  Value owner;  // of a method: the object
};

/// The value that a Python object stands for. With a type it has to be of that; an error says why it is not. Without,
/// the type is what shows.
Value to_jit(PyObject* object, const jit::TypePtr& type);
nb::object from_jit(const Value& value, const jit::TypePtr& type = nullptr);
/// Arguments by position and name to the values of a function's parameters; `skipped` of them are known (self).
std::vector<Value> read_arguments(const jit::Function& function, size_t skipped, nb::args args, nb::kwargs kwargs);

/// A call of a module while a trace runs on this thread: a method of its own where it is a part of the program.
class TracedModuleCall {
 public:
  explicit TracedModuleCall(PyObject* module);
  ~TracedModuleCall();
  TracedModuleCall(const TracedModuleCall&) = delete;
  /// Whether a trace runs that makes methods of modules' calls.
  static bool possible();

 private:
  jit::Trace* trace_ = nullptr;  // null: the call is no part of a program
};

void bind_jit_values(nb::module_& m);
void bind_jit(nb::module_& m);
void bind_jit_graphs(nb::module_& m);
void bind_jit_passes(nb::module_& m);
void bind_jit_trace(nb::module_& m);
void bind_jit_script(nb::module_& m);
void bind_jit_files(nb::module_& m);
void bind_jit_containers(nb::module_& m);

}  // namespace umbra::python
