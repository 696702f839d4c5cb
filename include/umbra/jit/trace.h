// Tracing: a program is run once on examples, and the operators that it calls are written down as a graph.
//
//     Trace trace;
//     Value x = trace.add_input("x", Value(randn({2, 3})));
//     {
//       TraceScope scope(trace);
//       y = relu(x.tensor());
//     }
//     trace.set_output(Value(y));
//     std::cout << trace.graph()->text();
//
// A trace is the outermost layer of dispatch (a level of umbra/transform/level.h): it sees what the user called, before
// composites come apart. Numbers that are read off tensors while it runs (a size) are tensors that it knows; where an
// operator takes such a number, it is a symbol of the trace's own that stands for the tensor.
#pragma once

#include "umbra/jit/objects.h"
#include "umbra/sym/shape_env.h"
#include "umbra/transform/level.h"

namespace UMBRA_API umbra {
namespace jit {

class Trace final : public transform::Level {
 public:
  explicit Trace(bool force_outplace = false);

  const std::shared_ptr<Graph>& graph() const { return graph_; }
  /// An input of the program: a tensor, or containers of tensors, which the graph takes apart.
  void add_input(const std::string& name, const Value& example);
  /// The module whose method is traced; its tensors are attributes, not constants. Comes before the inputs.
  void set_self(const Value& module);
  /// What the program gives back: tensors in tuples, and (not strict) lists and dicts.
  void set_output(const Value& result, bool strict);

  /// A submodule is called, by its path from the root: what follows belongs to its own method.
  void enter_module(const std::string& path);
  void leave_module();
  /// Makes methods of what was recorded inside modules, once the output is set; `method` is the root's.
  void make_methods(const std::string& method);

  /// Numbers of tensors, as tensors that the program can compute with.
  Tensor size(const Tensor& tensor, int64_t dim);
  Tensor numel(const Tensor& tensor);
  /// The number that a tensor holds, as what an operator's argument may be.
  SymInt integer(const Tensor& tensor, const char* kind = "aten::Int");
  /// The same for an argument that is any number. Of floats the next call's one argument of that value is meant.
  Scalar scalar(const Tensor& tensor);

  /// A call of a function of TorchScript, or of a method of an object that the trace knows.
  Value call_function(const FunctionPtr& function, std::vector<Value> arguments);
  Value call_method(const Value& self, const std::string& method, std::vector<Value> arguments);
  /// A call that only Python can repeat.
  void record_python(const std::string& name, const Value& function, const std::vector<Value>& arguments,
                     const Value& result, bool inplace);

  void call(const Operator& op, Value* frame) override;
  Tensor unwrap(const Tensor& tensor) const override { return tensor; }

  bool force_outplace() const { return force_outplace_; }
  /// Whether the trace knows where this tensor comes from.
  bool knows(const Tensor& tensor) const { return tensors_.contains(tensor.impl()); }
  bool on = true;  // off: calls pass by

 private:
  struct Entry {
    Tensor keep;
    Variable* variable;
  };
  struct Scope {
    std::string path;
    Block* block;
    Variable* self;
    ClassPtr cls;
    std::unordered_map<std::string, Variable*> attributes;
  };
  Node* insert(std::string kind, std::vector<Variable*> inputs, std::vector<TypePtr> outputs);
  Variable* constant(const Value& value, TypePtr type = nullptr);
  Variable* variable(const Value& value, const SchemaType* type = nullptr);
  Variable* structure(const Value& value);
  Variable* tensor_variable(const Tensor& tensor);
  Variable* attribute(const std::string& path);
  Variable* attribute_in(Scope& scope, const std::string& path);
  Variable* symbol(SymInt value);
  void take_apart(const Value& value, Variable* from);
  void record(const Operator& op, std::vector<Variable*> inputs, const std::vector<Value>& arguments, Value* results);
  void know(const Tensor& tensor, Variable* v);
  void give(const Value& value, Variable* v);
  Variable* output(const Value& value, bool strict, size_t place);
  Variable* dict_output(const Value& value, const DictObject& dict, bool strict);
  void find_attributes(const Value& module, const std::string& prefix);
  void number(Node* node, Variable*& tensor, const Tensor& value);

  std::shared_ptr<Graph> graph_;
  bool force_outplace_;
  std::unordered_map<const TensorImpl*, Entry> tensors_;
  std::unordered_map<const RefCounted*, std::pair<Value, Variable*>> objects_;
  std::unordered_map<const TensorImpl*, std::string> paths_;
  std::unordered_map<const RefCounted*, std::string> modules_;
  std::unordered_map<int64_t, Variable*> symbols_;
  std::unordered_map<std::string, Value> values_by_path_;
  std::vector<std::pair<double, Variable*>> pending_;  // floats that were read off tensors for the next call
  IntrusivePtr<sym::ShapeEnv> env_;
  std::vector<Scope> scopes_;
  std::vector<std::string> scope_names_;
  size_t symbol_count_ = 0;
};

/// The trace that runs on this thread, or null.
Trace* active_trace();

class TraceScope {
 public:
  explicit TraceScope(Trace& trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;

 private:
  Trace* before_;
  transform::EnterLevel level_;
};

/// What a front end knows of the line that is running and of its variables' names; the Python binding sets it.
struct TraceFrontEnd {
  std::string (*source)() = nullptr;
  std::string (*name)(const Tensor& tensor) = nullptr;
  void (*warn)(const std::string& text) = nullptr;
};
void set_trace_front_end(TraceFrontEnd front_end);
void trace_warning(const std::string& text);
/// What front ends call where a trace cannot follow: a tensor's value becomes theirs ("a Python float"), or a function
/// makes a tensor of theirs ("torch.tensor").
void warn_of_value(const std::string& what);
void warn_of_constant(const std::string& function);

}  // namespace jit
}  // namespace umbra
