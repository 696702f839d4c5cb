// A graph as steps over registers: what the interpreter runs.
#pragma once

#include <unordered_map>

#include "dispatch/host_lock.h"
#include "jit/builtins.h"
#include "umbra/autograd/autocast.h"
#include "umbra/jit/interpreter.h"

namespace umbra::jit {

/// A truth value that only the run of a captured program tells.
struct Undecided final : RefCounted {
  Tensor truth;
  explicit Undecided(Tensor truth) : truth(std::move(truth)) {}
};
Value undecided(const Tensor& truth);
/// A function of truth values some of which are undecided.
Value call_undecided(const std::string& name, const std::vector<Value>& arguments);

/// A register is let go when nothing later reads it.
class Program {
 public:
  explicit Program(std::shared_ptr<Graph> graph);
  /// `unlocked`: of the whole run that this is a part of.
  std::vector<Value> run(std::vector<Value> inputs, RunUnlocked& unlocked) const;

 private:
  struct Code;
  struct Step {
    enum class Kind : uint8_t {
      Operator,
      Builtin,
      If,
      Loop,
      Tuple,
      Unpack,
      List,
      Dict,
      GetAttr,
      ModuleIndex,
      SetAttr,
      CallMethod,
      CallFunction,
      Create,
      Raise,
      Python,
      Pass,
      IsInstance,
      ToList,
      Cast,
      Enter,
      Exit,
    } kind;
    const Node* node;
    const Builtin* builtin = nullptr;
    std::vector<uint32_t> inputs, outputs, dead;
    std::vector<std::unique_ptr<Code>> blocks;
  };
  struct Code {
    std::vector<uint32_t> inputs, outputs;
    std::vector<Step> steps;
  };
  /// One run: its registers, and the objects of `with` statements that are open.
  struct Open {
    Value object;
    std::unique_ptr<AutocastScope> region;  // of an object that stands for one
  };
  struct State {
    RunUnlocked& unlocked;
    std::vector<Value> r;
    std::vector<Open> open;
    Value& in(const Step& s, size_t i) { return r[s.inputs[i]]; }
    Value& out(const Step& s, size_t i = 0) { return r[s.outputs[i]]; }
  };

  // program.cpp
  uint32_t reg(const Variable* v) {
    auto [found, fresh] = registers_.try_emplace(v, static_cast<uint32_t>(registers_.size()));
    return found->second;
  }
  void compile(const Block& block, Code& code);
  void release(const Block& block, Code& code);
  static void classify(Step& step, const Node& node);

  // interpreter.cpp
  void execute(const Code& code, State& state) const;
  void step(const Step& s, State& state) const;
  void branch(const Step& s, State& state) const;
  void loop(const Step& s, State& state) const;
  // undecided.cpp
  void undecided_branch(const Step& s, const Tensor& truth, State& state) const;
  void undecided_loop(const Step& s, const Tensor& truth, std::vector<Value> carried, State& state) const;
  static void guard_containers(const Step& s, State& state);
  static void call_operator(const Step& s, State& state);
  static void call_builtin(const Step& s, State& state);
  static void index_modules(const Step& s, State& state);
  static void call_method(const Step& s, State& state);
  static void call_function(const Step& s, State& state);
  static void call_python(const Step& s, State& state);
  static void unpack(const Step& s, State& state);
  static void make_dict(const Step& s, State& state);
  static void enter(const Step& s, State& state);
  static void leave(State& state);
  [[noreturn]] static void raise(const Step& s, State& state);

  std::shared_ptr<Graph> graph_;
  std::unordered_map<const Variable*, uint32_t> registers_;
  std::vector<std::pair<uint32_t, Value>> constants_;
  Code code_;
};

/// The results of one node alone.
std::vector<Value> run_node(const Node& node, std::vector<Value> inputs);

// ---- between programs' values and operators' arguments (interpreter_values.cpp) ----

Value to_argument(const Value& value, const SchemaType& type);
Value from_result(Value value, const SchemaType& type);
/// The elements of a tensor in nested lists, as deep as the type says.
Value to_list(const Tensor& tensor, const TypePtr& type);

}  // namespace umbra::jit
