// Runs graphs: a compact program over registers, with Python nowhere in sight. Autograd and every other layer see its
// operators as they see any call.
#pragma once

#include "umbra/core/error.h"
#include "umbra/jit/ir.h"

namespace UMBRA_API umbra {
namespace jit {

/// What a program raised itself (`raise`, `assert`); Python's torch.jit.Error.
class RaisedError : public Error {
 public:
  RaisedError(const std::string& text, std::string type) : Error(text), type(std::move(type)) {}
  std::string type;  // the exception's class by name
};

/// Calls a function with values of its parameters' types; defaults are filled in. The results of several outputs come
/// as one tuple.
Value run(Function& function, std::vector<Value> arguments);
/// The outputs of a graph.
std::vector<Value> run(const std::shared_ptr<Graph>& graph, std::vector<Value> inputs);

/// While it lives, this thread's programs may go round loops and call functions so often in all; then they are refused.
/// For programs of strangers that run without having been called: the `__setstate__` of an archive.
class LimitedWork {
 public:
  explicit LimitedWork(int64_t rounds);
  ~LimitedWork();
  LimitedWork(const LimitedWork&) = delete;
  LimitedWork& operator=(const LimitedWork&) = delete;

 private:
  int64_t before_;
};

/// Where `print` of programs goes; the standard output unless a front end says otherwise.
void print_line(const std::string& text);
void set_print(void (*print)(const std::string& text));

/// Called for what only Python can carry out, with the type that the result has to have (null: any); the Python binding
/// sets it.
using PythonCall = Value (*)(const Value& callable, const TypePtr& result, std::vector<Value> arguments);
void set_python_call(PythonCall call);

}  // namespace jit
}  // namespace umbra
