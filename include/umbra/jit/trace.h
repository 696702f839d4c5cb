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

#include <array>
#include <deque>

#include "umbra/core/named.h"
#include "umbra/jit/objects.h"
#include "umbra/sym/shape_env.h"
#include "umbra/transform/level.h"

namespace UMBRA_API umbra {
namespace jit {

class Trace final : public transform::Level {
 public:
  explicit Trace(bool force_outplace = false);
  ~Trace() override { forget_taken_names(); }

  const std::shared_ptr<Graph>& graph() const { return graph_; }
  /// An input of the program: a tensor, or containers of tensors, which the graph takes apart.
  void add_input(const std::string& name, const Value& example);
  /// The module whose method is traced; its tensors are attributes, not constants. Comes before the inputs.
  void set_self(const Value& module);
  /// What the program gives back: tensors in tuples, and (not strict) lists and dicts.
  void set_output(const Value& result, bool strict);

  /// A module inside the root is called: what follows belongs to its own method.
  void enter_module(const Value& module);
  void leave_module();
  /// A name for the part of the program that follows; nodes have those of all parts that they are in.
  void push_scope(const std::string& name);
  void pop_scope();
  std::string current_scope() const;
  /// Makes methods of what was recorded inside modules, once the output is set; `method` is the root's.
  void make_methods(const std::string& method);

  /// Numbers of tensors, as tensors that the program can compute with.
  Tensor size(const Tensor& tensor, int64_t dim);
  Tensor numel(const Tensor& tensor);
  /// The number that a tensor holds, as what an operator's argument may be.
  SymInt integer(const Tensor& tensor) { return integer(tensor, kinds().integer); }
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
  /// A module of the program, and where it is found: the first way to it counts.
  struct Part {
    Value module;
    int parent, attribute;  // where it is in its parent
    std::string path;       // "__module.first"
  };
  /// A tensor or module of the program: an attribute of a part, or (-1) the part itself.
  struct Path {
    int part, attribute = -1;
    bool named = false;  // a variable of the user's has had its name
    int64_t key() const { return (static_cast<int64_t>(part) << 32) + attribute; }
  };
  /// A call of a module that is being recorded.
  struct Scope {
    int part;
    Block* block;
    Variable* self;
    SharedText text;  // of the nodes inside
    std::vector<std::pair<int64_t, Variable*>, RecyclingAllocator<std::pair<int64_t, Variable*>>> attributes;
  };
  /// The kinds of nodes that traces have most.
  struct Kinds {
    const Kind *constant = Kind::of("prim::Constant"), *list_construct = Kind::of("prim::ListConstruct"),
               *list_unpack = Kind::of("prim::ListUnpack"), *get_attr = Kind::of("prim::GetAttr"),
               *module_forward = Kind::of("prim::TracedModuleForward"), *integer = Kind::of("aten::Int"),
               *scalar = Kind::of("aten::ScalarImplicit"), *size = Kind::of("aten::size"),
               *numel = Kind::of("aten::numel"), *number = Kind::of("prim::NumToTensor");
  };
  static const Kinds& kinds();
  /// A node with one output, or (null) none yet.
  Node* insert(const Kind* kind, Variables inputs, TypePtr output = nullptr);
  /// The same right behind where a value is made.
  Node* insert_behind(const Variable* v, const Kind* kind, Variables inputs, TypePtr output);
  Node* insert(std::string_view kind, Variables inputs, TypePtr output = nullptr) {
    return insert(Kind::of(kind), std::move(inputs), std::move(output));
  }
  const Kind* kind_of(const Operator& op);
  static TypePtr traced_type(const Value& value);
  TypePtr type_of_tensor(const Tensor& tensor);
  Variable* constant(const Value& value, TypePtr type = nullptr);
  Variable* variable(const Value& value, const SchemaType* type = nullptr);
  Variable* structure(const Value& value);
  Variable* tensor_variable(const Tensor& tensor);
  Variable* attribute(Path path);
  Variable* attribute_in(Scope& scope, Path path);
  /// What the front end calls a tensor, or an empty text.
  static std::string variable_name(const Tensor& tensor);
  void name_attribute(Path& path, const Tensor& tensor);
  void finish_names();
  void forget_taken_names();
  bool is_inside(int part, int outer) const;
  Variable* symbol(SymInt value);
  SymInt integer(const Tensor& tensor, const Kind* kind);
  void take_apart(const Value& value, Variable* from);
  Variable* take_pending(const Value& argument, const Operator& op, const Value* frame);
  Variables inputs_of(const Operator& op, const Operator& form, const Value* frame);
  void record(const Operator& op, Variables inputs, const Value& first, Value* results);
  void record_literal(Variable* literal, const Tensor& result);
  void know(const Tensor& tensor, Variable* v);
  void give(const Value& value, Variable* v);
  Variable* output(const Value& value, bool strict, size_t place);
  Variable* dict_output(const Value& value, const DictObject& dict, bool strict);
  void find_attributes(const Value& module, int parent, int attribute, const std::string& path);
  const Attribute& attribute_of(Path path) const;
  Tensor number(const Kind* kind, Variables inputs, SymInt value);

  std::shared_ptr<Graph> graph_;
  bool force_outplace_;
  std::unordered_map<const TensorImpl*, Entry, std::hash<const TensorImpl*>, std::equal_to<>,
                     RecyclingAllocator<std::pair<const TensorImpl* const, Entry>>>
      tensors_;
  std::unordered_map<const RefCounted*, std::pair<Value, Variable*>> objects_;
  std::unordered_map<const TensorImpl*, Path> paths_;
  std::deque<Part> parts_;
  std::unordered_map<const RefCounted*, int> part_of_;
  std::unordered_map<int64_t, Variable*> symbols_;
  std::unordered_map<const Operator*, const Kind*> kinds_;
  std::vector<std::pair<double, Variable*>> pending_;  // floats that were read off tensors for the next call
  IntrusivePtr<sym::ShapeEnv> env_;                    // of the numbers, once there is one
  std::vector<Scope> scopes_;
  /// Modules and their attributes get numbers and names behind all that was recorded, as PyTorch has them.
  struct Late {
    Variable* variable;
    std::string name;
  };
  std::vector<Late> late_selves_, late_attributes_;
  std::vector<std::vector<Late>> late_modules_;         // for each call that is open
  std::vector<std::unique_ptr<Variable>> taken_names_;  // attributes that had names of the user's variables
  std::vector<SharedText> named_scopes_;                // each with those around it
  SharedText place_;                                    // of the call that is being recorded
  std::array<TypePtr, 16> types_;                       // those last seen
  size_t next_type_ = 0;
  std::unordered_map<const TensorImpl*, SymInt> numbers_;  // what stands for the numbers that were read off tensors
  std::vector<int64_t> given_numbers_;                     // for the next call
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

/// Nothing is recorded while this lives.
class TracePause {
 public:
  TracePause();
  ~TracePause();
  TracePause(const TracePause&) = delete;

 private:
  Trace* before_;
  transform::WithoutLevel level_;
};

/// What a trace runs: arguments in, a result out (a tensor, or several as a Value's list).
using Traced = std::function<Value(const std::vector<Value>&)>;

/// Runs a function once on examples, and gives the operators that it called as a function of TorchScript.
///
///     FunctionPtr f = jit::trace([](const auto& in) { return Value(relu(in[0].tensor())); }, {Value(x)});
///     Value y = jit::run(*f, {Value(other)});
FunctionPtr trace(const Traced& function, const std::vector<Value>& examples, const std::string& name = "forward");

/// The same for a function that reads tensors of its own, as a module's forward does: a module whose tensors they are,
/// by their paths ("layers.0.weight"), and whose forward is what was called.
///
///     Value module = jit::trace_module([&](const auto& in) { return Value(model(in[0].tensor())); }, {Value(x)},
///                                      model.named_parameters());
Value trace_module(const Traced& function, const std::vector<Value>& examples, const NamedTensors& parameters,
                   const NamedTensors& buffers = {}, const std::string& class_name = "__torch__.Module");

/// What a front end knows of the line that is running and of its variables' names; the Python binding sets it.
struct TraceFrontEnd {
  SharedText (*source)() = nullptr;
  std::string (*name)(const Tensor& tensor) = nullptr;
  void (*warn)(const std::string& text) = nullptr;
  void (*done)() = nullptr;  // no more names are asked for the running call: variables may change from here on
};
void set_trace_front_end(TraceFrontEnd front_end);
void trace_warning(const std::string& text);
/// What front ends call where a trace cannot follow: a tensor's value becomes theirs ("a Python float"), or a function
/// makes a tensor of theirs ("torch.tensor").
void warn_of_value(const std::string& what);
void warn_of_constant(const std::string& function);

}  // namespace jit
}  // namespace umbra
