// The compiler's state while it writes one function.
#pragma once

#include <array>
#include <map>

#include "umbra/jit/compile.h"

namespace umbra::jit {

using Environment = std::map<std::string, SugaredPtr>;
using Refinements = std::map<std::string, TypePtr>;

/// A condition, and what its answer tells about variables.
struct Condition {
  Variable* value = nullptr;
  std::optional<bool> known;
  Refinements if_true, if_false;
};

struct Argument {
  std::string name;  // empty: by position
  Variable* value;
};

/// The dotted name that an expression spells, or an empty text.
std::string path_of(const Tree& t);
/// Whether modules or parameters are known by keys, which are what loops go over.
bool by_name(const Sugared& s);
/// Methods of tensors that no operator has by that name.
bool is_method_of_tensors(const std::string& name);

class Emitter {
 public:
  Emitter(Function& function, Resolver& resolver) : function_(function), graph_(*function.graph), resolver_(resolver) {}
  void body(const Tree& def);

 private:
  // ---- statements (emit.cpp, emit_assign.cpp, emit_control.cpp) ----
  void statements(const std::vector<TreePtr>& list);
  void statement(const Tree& s);
  void assign(const Tree& target, const SugaredPtr& value);
  void assign_name(const Tree& at, const std::string& name, SugaredPtr value);
  void assign_attribute(const Tree& target, const SugaredPtr& value);
  void assign_subscript(const Tree& target, Variable* value);
  void unpack(const Tree& target, const SugaredPtr& value);
  void annotated(const Tree& s);
  void augmented(const Tree& s);
  void if_statement(const Tree& s);
  void branches(const Tree& at, const Condition& condition, const std::function<void()>& yes,
                const std::function<void()>& no);
  void join(const Tree& at, Node* node, const Environment& before, const Environment& yes, const Environment& no,
            bool yes_raises, bool no_raises);
  void fill_in(const Tree& at, Node* node, const std::string& name, const bool (&raises)[2], SugaredPtr (&values)[2]);
  SugaredPtr joined(const Tree& at, Node* node, const std::string& name, const SugaredPtr& yes, const SugaredPtr& no,
                    bool was_defined);
  void loop(const Tree& s, Variable* trips, const std::function<Variable*()>& condition,
            const std::function<void(Variable*)>& head);
  void try_body(const Tree& at, const std::function<void(Variable*)>& body);
  void plain_loop(const Tree& at, Variable* length, const std::function<void(Variable*)>& body);
  std::vector<std::string> carried_by(const Tree& s, const std::function<void(Variable*)>& head);
  Variable* carried_on(const Tree& s, const std::string& name, const TypePtr& type);
  void while_statement(const Tree& s);
  void for_statement(const Tree& s);
  void unrolled_loop(const Tree& s, const std::vector<SugaredPtr>& items);
  void with_statement(const Tree& s);
  void delete_target(const Tree& t);
  void raise(const Tree& s);
  void assertion(const Tree& s);
  void raise_unless(const Tree& at, const Condition& c, const std::function<Variable*()>& reason);
  Variable* not_ended(const Tree& s, Variable* condition);

  // ---- expressions (emit_expression.cpp, emit_access.cpp) ----
  /// The second argument of isinstance: types, containers of whatever elements, classes of modules.
  struct InstanceTest {
    std::vector<TypePtr> types;
    bool any_list = false, any_tuple = false, any_dict = false;
    bool of_modules = false, is_module = false;  // a class of modules was named; the value is one of its modules

    bool accepts(const TypePtr& type) const;
  };
  SugaredPtr expression(const Tree& e, const TypePtr& hint = nullptr);
  Variable* value(const Tree& e, const TypePtr& hint = nullptr);
  Variable* as_value(const Tree& at, const SugaredPtr& s);
  Condition condition(const Tree& e);
  Condition both_conditions(const Tree& e);
  Condition is_none(const Tree& e);
  Condition is_instance(const Tree& e);
  Condition is_instance_of_any(const Tree& e, Variable* v, InstanceTest test);
  InstanceTest instance_test(const Tree& e, const TypePtr& type);
  Variable* instance_node(const Tree& e, Variable* v, std::vector<TypePtr> types);
  Variable* truth(const Tree& at, Variable* v);
  SugaredPtr attribute(const Tree& e);
  SugaredPtr attribute_of(const Tree& at, const SugaredPtr& of, const std::string& name);
  SugaredPtr method_of(const SugaredPtr& self, const std::string& name);
  SugaredPtr name_in_namespace(const Sugared& of, const std::string& name);
  SugaredPtr attribute_of_type(const Tree& at, const SugaredPtr& of, const std::string& name);
  SugaredPtr attribute_of_object(const Tree& at, const SugaredPtr& of, Variable* v, const std::string& name);
  SugaredPtr property_of_tensor(const Tree& at, Variable* v, const std::string& name);
  SugaredPtr subscript(const Tree& e, const TypePtr& hint);
  SugaredPtr chosen_module(const Tree& e, const SugaredPtr& of, const Tree& index, const TypePtr& hint);
  SugaredPtr part_of(const Tree& e, const SugaredPtr& of, const Tree& index);
  SugaredPtr part_at_run_time(const Tree& e, Variable* tuple, Variable* place);
  /// The bounds of a slice, written with colons or made by slice(); none where it is none.
  std::optional<std::array<SugaredPtr, 3>> bounds_of(const Tree& index, const SugaredPtr& made);
  SugaredPtr index_of(const Tree& index);
  Variable* slice_tensor(const Tree& at, Variable* tensor, int64_t dim, const std::array<SugaredPtr, 3>& bounds);
  SugaredPtr modules_of(const Tree& at, const SugaredPtr& s);
  Variable* index_tensor(const Tree& at, Variable* tensor, const Tree& index, Variables& indices);
  SugaredPtr list(const Tree& e, const TypePtr& hint);
  SugaredPtr dict(const Tree& e, const TypePtr& hint);
  SugaredPtr comprehension(const Tree& e, const TypePtr& hint);
  std::vector<TypePtr> wanted_containers(const Tree& e, const TypePtr& hint, TypeKind kind, bool empty);
  void check_elements(const Tree& e, const TypePtr& wanted, const TypePtr& element);
  SugaredPtr if_else(const Tree& e, const TypePtr& hint);
  SugaredPtr short_circuit(const Tree& e);
  SugaredPtr number(const Tree& e);
  SugaredPtr tuple_of(const Tree& e, const TypePtr& hint);
  SugaredPtr unary(const Tree& e);
  SugaredPtr binary(const Tree& e);
  SugaredPtr format(const Tree& e);
  SugaredPtr compare(const Tree& e);
  std::vector<SugaredPtr> parts_of(const Tree& at, const SugaredPtr& s);

  // ---- calls (emit_call.cpp, emit_special.cpp, emit_operator.cpp) ----
  SugaredPtr call(const Tree& e, const TypePtr& hint);
  SugaredPtr call_chosen(const Tree& e, const Sugared* callee);
  SugaredPtr call_builtin(const Tree& e, const Sugared& callee, const TypePtr& hint);
  SugaredPtr call_on_modules(const Tree& e, const Sugared& callee);
  SugaredPtr call_on_value(const Tree& e, const Sugared& callee, const TypePtr& hint);
  SugaredPtr call_module(const Tree& at, Variable* self, std::vector<Argument> arguments);
  SugaredPtr first_that_fits(const Tree& at, size_t count, const std::function<SugaredPtr(size_t)>& call);
  struct SpecialCall;
  /// Null where the name is that of no special function.
  SugaredPtr call_special(const Tree& e, const std::string& name, const TypePtr& hint);
  SugaredPtr call_isinstance(const SpecialCall& c);
  SugaredPtr call_annotate(const SpecialCall& c);
  SugaredPtr call_uninitialized(const SpecialCall& c);
  SugaredPtr call_is_scripting(const SpecialCall& c);
  SugaredPtr call_range(const SpecialCall& c);
  SugaredPtr call_slice(const SpecialCall& c);
  SugaredPtr call_getattr(const SpecialCall& c);
  SugaredPtr call_hasattr(const SpecialCall& c);
  bool has_attribute(const SpecialCall& c, const SugaredPtr& object, const std::string& name);
  SugaredPtr call_len(const SpecialCall& c);
  SugaredPtr call_print(const SpecialCall& c);
  SugaredPtr call_extreme(const SpecialCall& c);
  SugaredPtr call_list(const SpecialCall& c);
  SugaredPtr call_dict(const SpecialCall& c);
  SugaredPtr call_tuple(const SpecialCall& c);
  SugaredPtr call_fork(const SpecialCall& c);
  SugaredPtr call_wait(const SpecialCall& c);
  SugaredPtr call_device(const SpecialCall& c);
  SugaredPtr call_assert(const SpecialCall& c);
  SugaredPtr call_function(const Tree& at, const FunctionPtr& function, std::vector<Argument> arguments);
  SugaredPtr call_method(const Tree& at, Variable* self, const std::string& name, std::vector<Argument> arguments);
  SugaredPtr create(const Tree& at, const TypePtr& type, std::vector<Argument> arguments);
  SugaredPtr builtin(const Tree& at, const std::string& name, std::vector<Argument> arguments);
  SugaredPtr by_magic(const Tree& at, const std::string& name, std::vector<Argument> arguments);
  SugaredPtr by_registry(const Tree& at, const std::string& name, const std::vector<Argument>& arguments,
                         std::string& reasons);
  SugaredPtr turned_around(const Tree& at, const std::string& name, const std::vector<Argument>& a);
  std::vector<Argument> tensor_arguments(const Tree& at, const std::string& name, const std::vector<Argument>& given);
  std::vector<Argument> rearranged(const Tree& at, const std::string& name, std::vector<Argument> arguments);
  bool widened(const Tree& at, std::vector<Argument>& arguments);
  SugaredPtr try_operator(const Tree& at, const Operator& op, const std::vector<Argument>& arguments, bool convert,
                          std::string& why);
  Variables operands(const Tree& at, const Operator& op, const std::vector<Argument>& arguments, bool convert,
                     std::string& why);
  Variable* operand(const Tree& at, Variable* v, const SchemaType& type, size_t place, bool convert);
  Variable* default_operand(const Tree& at, const SchemaArgument& argument);
  Variable* spelt_out(const Tree& at, const std::vector<Argument>& arguments, size_t& k);
  Variables match(const Tree& at, const Function& function, size_t skipped, const std::vector<Argument>& arguments);
  std::vector<Argument> arguments_of(const Tree& call);
  Variable* convert(const Tree& at, Variable* v, const TypePtr& type, bool implicit);
  Variable* coerced(const Tree& at, Variable* v, const TypePtr& type, const std::string& what);
  TypePtr type_argument(const Tree& e);

  // ---- iterables (emit_iterable.cpp) ----
  struct Iterable {
    std::vector<SugaredPtr> fixed;  // unrolled, where `is_fixed`
    bool is_fixed = false;
    Variable* length = nullptr;
    std::function<SugaredPtr(Variable*)> item;
  };
  Iterable iterable(const Tree& at, const SugaredPtr& s);
  SugaredPtr unrolled_comprehension(const Tree& e, const Iterable& it, const TypePtr& wanted);
  SugaredPtr unrolled_dict(const Tree& e, const Iterable& it, const TypePtr& wanted);
  Iterable iterable_of(const Tree& e);
  Iterable range_of(const Tree& at, const Sugared& s);
  Iterable enumerated(const Tree& at, const Sugared& s);
  Iterable zipped(const Tree& at, const Sugared& s);
  Iterable members_of(const Tree& at, const TypePtr& type);

  // ---- nodes ----
  Node* insert(const Tree& at, std::string kind, Variables inputs, std::vector<TypePtr> outputs);
  Variable* one(const Tree& at, std::string kind, Variables inputs, TypePtr output) {
    return insert(at, std::move(kind), std::move(inputs), {std::move(output)})->output();
  }
  Variable* constant(const Value& v, TypePtr type = nullptr) { return graph_.insert_constant(v, std::move(type)); }
  Variable* negated(const Tree& at, Variable* v) { return one(at, "aten::__not__", {v}, simple_type(TypeKind::Bool)); }
  Variable* tuple(const Tree& at, const Variables& parts);
  SugaredPtr lookup(const Tree& at, const std::string& name);
  /// What a resolver gave; an error at this place where it said that it cannot be used.
  SugaredPtr usable(const Tree& at, const SugaredPtr& s);
  Variable* as_message(const Tree& at, Variable* v);
  void refine(const Refinements& what);

  Function& function_;
  Graph& graph_;
  Resolver& resolver_;
  Environment env_;
  std::vector<const Environment*> outer_;  // environments of enclosing blocks
  bool raises_ = false;                    // the block being written always raises
  bool implicit_ = true;                   // whether arguments of functions are converted, as tensors to numbers
  const Tree* last_return_ = nullptr;
  const Tree* statement_ = nullptr;               // the one that is written
  std::map<std::string, std::string> undefined_;  // why variables have no value behind a branch
  TreePtr forked_;                                // the body of the last `def __forked_function()`
  int depth_ = 0;
};

}  // namespace umbra::jit
