#include "umbra/jit/interpreter.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <mutex>

#include "jit/program.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/core/interrupt.h"

namespace umbra::jit {

namespace {

PythonCall g_python_call = nullptr;
void (*g_print)(const std::string& text) = nullptr;

/// An error on its way out of a program: what it says, and the calls that it passed, innermost first.
struct Failure {
  enum class Kind : uint8_t { Plain, NotImplemented, Raised } kind = Kind::Plain;
  std::string type, message;
  struct Frame {
    std::string place, origin;
  };
  std::vector<Frame> frames;
  int depth = 0;  // of the call that was noted last

  [[noreturn]] void raise() const {
    switch (kind) {
      case Kind::NotImplemented: throw NotImplementedError(text());
      case Kind::Raised: throw RaisedError(text(), type);
      default: throw Error(text());
    }
  }

 private:
  std::string text() const {
    bool has_origins = false;
    for (const Frame& f : frames) has_origins |= !f.origin.empty();
    std::string out = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript";
    out += has_origins ? ", serialized code (most recent call last):\n" : " (most recent call last):\n";
    for (size_t i = frames.size(); i-- > 0;) out += frames[i].place;
    if (has_origins) {
      out += "\nTraceback of TorchScript, original code (most recent call last):\n";
      for (size_t i = frames.size(); i-- > 0;) out += frames[i].origin.empty() ? frames[i].place : frames[i].origin;
    }
    return concat(out, type, ": ", message, "\n");
  }
};

std::vector<Value> gathered(const std::vector<Value>& r, const std::vector<uint32_t>& from, size_t first = 0) {
  std::vector<Value> out;
  out.reserve(from.size() - first);
  for (size_t i = first; i < from.size(); ++i) out.push_back(r[from[i]]);
  return out;
}

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
thread_local int64_t g_work_left = kNoLimit;

/// What programs that do not end pass again and again: rounds of loops and calls.
void spend_work() {
  check_interrupt();
  if (g_work_left == kNoLimit) return;
  check(g_work_left-- > 0, "a program that runs while its file is loaded does not come to an end");
}

/// Whatever a program sets, and however it ends: the mode is what it was. Functions inside it may set it for the
/// others.
struct Call {
  static constexpr int kDeepest = 1000;  // as Python has it, well within a thread's stack
  static thread_local int depth;
  static thread_local const Function* running;
  const Function* caller;
  bool before = is_grad_enabled();
  explicit Call(const Function* function) : caller(std::exchange(running, function)) { ++depth; }
  ~Call() {
    running = caller;
    if (--depth == 0) set_grad_enabled(before);
  }
};
thread_local int Call::depth = 0;
thread_local const Function* Call::running = nullptr;

/// Notes the call that an error leaves: once, at the innermost step.
void note_call(Failure& failure, const Node& node) {
  if (!failure.frames.empty() && failure.depth <= Call::depth) return;
  failure.depth = Call::depth;
  std::string function = Call::running ? Call::running->name : "";
  function = function.substr(function.rfind('.') + 1);
  SourceRange range = node.source.range();
  std::string place = range.pointed(function);
  if (place.empty()) place = concat("  ", node.source.empty() ? node.kind() : node.source.str(), "\n");
  failure.frames.push_back({place, range.origin().pointed(function)});
}

const std::string& name_of(const Node& node) { return node.attribute("name")->to_string(); }

Instance& object(const Value& value) { return expect_object<Instance>(value, "an object"); }

FunctionPtr method_of(const Instance& self, const std::string& name) {
  FunctionPtr method = self.cls->method(name);
  check(method != nullptr, "'", self.cls->name, "' has no method '", name, "'");
  return method;
}

}  // namespace

namespace {

/// Runs what is no part of a program that is running: errors are told here.
template <class F> auto leaving_programs(F&& body) {
  try {
    return body();
  } catch (const Failure& failure) {
    failure.raise();
  }
}

/// The function made ready to run: compiled, and put into steps.
std::shared_ptr<Program> program_of(Function& function, RunUnlocked& unlocked) {
  static std::mutex mutex;
  {
    std::lock_guard lock(mutex);
    if (function.program) return function.program;
  }
  unlocked.take_back();
  check(function.ensure() != nullptr, function.name, " is called while it is compiled");
  auto made = std::make_shared<Program>(function.graph);
  std::lock_guard lock(mutex);
  if (!function.program) function.program = std::move(made);
  return function.program;
}

/// A call by a program: errors go on to the calls around it.
Value call(Function& function, std::vector<Value> arguments, RunUnlocked& unlocked) {
  for (size_t i = arguments.size(); i < function.parameters.size(); ++i) {
    const auto& p = function.parameters[i];
    check(p.default_value.has_value(), function.name, "() is missing value for argument '", p.name, "'");
    arguments.push_back(*p.default_value);
  }
  if (function.ignored) {
    check<NotImplementedError>(g_python_call, "the program calls Python, and there is none");
    return g_python_call(function.python, function.result, std::move(arguments));
  }
  Call guard(&function);
  check(Call::depth <= Call::kDeepest, "maximum recursion depth exceeded: ", function.name,
        " calls itself without an end");
  std::shared_ptr<Program> program = program_of(function, unlocked);
  spend_work();
  std::vector<Value> out = program->run(std::move(arguments), unlocked);
  if (out.size() == 1) return std::move(out[0]);
  return out.empty() ? Value() : Value(std::move(out));
}

}  // namespace

LimitedWork::LimitedWork(int64_t rounds) : before_(g_work_left) { g_work_left = std::min(rounds, before_); }
LimitedWork::~LimitedWork() { g_work_left = before_; }

// ---- runs ----

std::vector<Value> Program::run(std::vector<Value> inputs, RunUnlocked& unlocked) const {
  check(inputs.size() == code_.inputs.size(), "expected ", code_.inputs.size(), " inputs, but got ", inputs.size());
  State state{unlocked, {}, {}};
  state.r.resize(registers_.size());
  for (const auto& [index, value] : constants_) state.r[index] = Value::borrow(value);
  for (size_t i = 0; i < inputs.size(); ++i) state.r[code_.inputs[i]] = std::move(inputs[i]);
  try {
    execute(code_, state);
  } catch (...) {
    while (!state.open.empty()) leave(state);
    throw;
  }
  return gathered(state.r, code_.outputs);
}

void Program::execute(const Code& code, State& state) const {
  for (const Step& s : code.steps) {
    try {
      step(s, state);
    } catch (Failure& failure) {
      note_call(failure, *s.node);
      throw;
    } catch (const NotImplementedError& error) {
      Failure failure{Failure::Kind::NotImplemented, "RuntimeError", error.what(), {}};
      note_call(failure, *s.node);
      throw failure;
    } catch (const Error& error) {
      Failure failure{Failure::Kind::Plain, "RuntimeError", error.what(), {}};
      note_call(failure, *s.node);
      throw failure;
    }
    for (uint32_t i : s.dead) state.r[i] = Value();
  }
}

void Program::step(const Step& s, State& state) const {
  using Kind = Step::Kind;
  switch (s.kind) {
    case Kind::Operator: return call_operator(s, state);
    case Kind::Builtin: return call_builtin(s, state);
    case Kind::If: return branch(s, state);
    case Kind::Loop: return loop(s, state);
    case Kind::Tuple: state.out(s) = Value(gathered(state.r, s.inputs)); return;
    case Kind::Unpack: return unpack(s, state);
    case Kind::List: state.out(s) = make_list(s.node->output()->type()->element(), gathered(state.r, s.inputs)); return;
    case Kind::Dict: return make_dict(s, state);
    case Kind::GetAttr: state.out(s) = load_shared(object(state.in(s, 0)).attribute(name_of(*s.node))); return;
    case Kind::ModuleIndex: return index_modules(s, state);
    case Kind::SetAttr: store_shared(object(state.in(s, 0)).attribute(name_of(*s.node)), state.in(s, 1)); return;
    case Kind::CallMethod: return call_method(s, state);
    case Kind::CallFunction: return call_function(s, state);
    case Kind::Create: state.out(s) = Value::object(make_counted<Instance>(s.node->output()->type()->cls)); return;
    case Kind::Raise: raise(s, state);
    case Kind::Python: return call_python(s, state);
    case Kind::Pass: state.out(s) = Value(); return;
    case Kind::Cast: state.out(s) = state.in(s, 0); return;
    case Kind::ToList: state.out(s) = to_list(state.in(s, 0).tensor_ref(), s.node->output()->type()); return;
    case Kind::IsInstance: {
      bool any = false;
      for (const TypePtr& type : s.node->op_types) any |= has_type(state.in(s, 0), *type);
      state.out(s) = Value(any);
      return;
    }
    case Kind::Enter: return enter(s, state);
    case Kind::Exit: return leave(state);
  }
}

// ---- steps ----

void Program::branch(const Step& s, State& state) const {
  if (auto* open = object_as<Undecided>(state.in(s, 0))) return undecided_branch(s, Tensor(open->truth), state);
  const Code& taken = *s.blocks[state.in(s, 0).to_bool() ? 0 : 1];
  execute(taken, state);
  for (size_t i = 0; i < s.outputs.size(); ++i) state.out(s, i) = state.r[taken.outputs[i]];
}

void Program::loop(const Step& s, State& state) const {
  const Code& body = *s.blocks[0];
  int64_t most = state.in(s, 0).to_int();
  Value go_on = state.in(s, 1);
  std::vector<Value> carried = gathered(state.r, s.inputs, 2);
  for (int64_t i = 0; i < most; ++i) {
    spend_work();
    if (auto* open = object_as<Undecided>(go_on))
      return undecided_loop(s, Tensor(open->truth), std::move(carried), state);
    if (!go_on.to_bool()) break;
    state.r[body.inputs[0]] = Value(i);
    for (size_t k = 0; k < carried.size(); ++k) state.r[body.inputs[k + 1]] = std::move(carried[k]);
    execute(body, state);
    go_on = state.r[body.outputs[0]];
    for (size_t k = 0; k < carried.size(); ++k) carried[k] = state.r[body.outputs[k + 1]];
  }
  for (size_t k = 0; k < carried.size(); ++k) state.out(s, k) = std::move(carried[k]);
}

/// Lists and dicts that several threads have are guarded by nothing but the lock.
void Program::guard_containers(const Step& s, State& state) {
  for (uint32_t i : s.inputs)
    if (state.r[i].is_object()) return state.unlocked.take_back();
}

void Program::call_operator(const Step& s, State& state) {
  check_interrupt();
  const Operator& op = *s.node->op;
  const auto& arguments = op.schema().arguments;
  Frame frame(op);
  guard_containers(s, state);
  for (size_t i = 0; i < arguments.size(); ++i) frame[i] = to_argument(state.in(s, i), arguments[i].type);
  state.unlocked.before(op, frame.data());
  op.call(frame.data());
  for (size_t i = 0; i < s.outputs.size(); ++i)
    state.out(s, i) = from_result(std::move(frame[i]), op.schema().returns[i].type);
}

void Program::call_builtin(const Step& s, State& state) {
  guard_containers(s, state);
  std::vector<Value> arguments = gathered(state.r, s.inputs);
  bool open = false;
  for (const Value& v : arguments) open |= v.is_object() && object_as<Undecided>(v);
  if (open) return void(state.out(s) = call_undecided(s.node->kind(), arguments));
  Value result = s.builtin->run(arguments.data(), arguments.size());
  if (!s.outputs.empty()) state.out(s) = std::move(result);
}

void Program::index_modules(const Step& s, State& state) {
  Instance& container = object(state.in(s, 0));
  std::string key = to_text(state.in(s, 1));
  check(container.cls->find(key) >= 0, container.cls->name, " does not have a field with name '", key, "'");
  state.out(s) = load_shared(container.attribute(key));
}

void Program::call_method(const Step& s, State& state) {
  FunctionPtr method = method_of(object(state.in(s, 0)), name_of(*s.node));
  Value result = call(*method, gathered(state.r, s.inputs), state.unlocked);
  if (!s.outputs.empty()) state.out(s) = std::move(result);
}

void Program::call_function(const Step& s, State& state) {
  Function& function = *expect_object<FunctionObject>(state.in(s, 0), "a function").function;
  Value result = call(function, gathered(state.r, s.inputs, 1), state.unlocked);
  if (!s.outputs.empty()) state.out(s) = std::move(result);
}

void Program::call_python(const Step& s, State& state) {
  check<NotImplementedError>(g_python_call, "the program calls Python, and there is none");
  TypePtr type = s.outputs.size() == 1 ? without_details(s.node->output()->type()) : nullptr;
  Value result = g_python_call(*s.node->attribute("function"), type, gathered(state.r, s.inputs));
  if (s.outputs.size() == 1) state.out(s) = std::move(result);
  else
    for (size_t i = 0; i < s.outputs.size(); ++i) state.out(s, i) = result.list()[i];
}

void Program::unpack(const Step& s, State& state) {
  guard_containers(s, state);
  const Value& from = state.in(s, 0);
  std::vector<Value> items = from.is_list() ? from.list().vec() : expect_object<ListObject>(from, "a list").items;
  check(items.size() == s.outputs.size(), "Expected ", s.outputs.size(), " elements in a list but found ",
        items.size());
  for (size_t i = 0; i < items.size(); ++i) state.out(s, i) = items[i];
}

void Program::make_dict(const Step& s, State& state) {
  const TypePtr& type = s.node->output()->type();
  auto dict = make_counted<DictObject>(type->element(0), type->element(1));
  for (size_t i = 0; i + 1 < s.inputs.size(); i += 2) dict->set(state.in(s, i), state.in(s, i + 1));
  state.out(s) = Value::object(dict);
}

namespace {
/// The region that an object of the class `torch.autocast` stands for: its methods in archives do nothing.
std::unique_ptr<AutocastScope> autocast_region(Instance& object) {
  if (object.cls->name != "__torch__.torch.amp.autocast_mode.autocast") return nullptr;
  if (object.attribute("device").to_string() != "cpu") return nullptr;  // nothing is cast on other devices
  return std::make_unique<AutocastScope>(dtype_of_number(object.attribute("fast_dtype").to_int()),
                                         object.attribute("_enabled").to_bool());
}
}  // namespace

void Program::enter(const Step& s, State& state) {
  const Value self = state.in(s, 0);
  Value result = call(*method_of(object(self), "__enter__"), {self}, state.unlocked);
  state.open.push_back({self, autocast_region(object(self))});
  state.out(s) = std::move(result);
}

void Program::leave(State& state) {
  Open open = std::move(state.open.back());
  state.open.pop_back();
  open.region = nullptr;
  call(*method_of(object(open.object), "__exit__"), {open.object, Value(), Value(), Value()}, state.unlocked);
}

void Program::raise(const Step& s, State& state) {
  bool has_type = s.inputs.size() > 1 && state.in(s, 1).is_string();
  throw Failure{Failure::Kind::Raised,
                has_type ? state.in(s, 1).to_string() : "RuntimeError",
                state.in(s, 0).is_none() ? "" : to_text(state.in(s, 0)),
                {}};
}

// ---- functions ----

void set_print(void (*print)(const std::string& text)) { g_print = print; }
void print_line(const std::string& text) {
  if (g_print) g_print(text);
  else std::fputs(text.c_str(), stdout);
}

void set_python_call(PythonCall call) { g_python_call = call; }

std::vector<Value> run(const std::shared_ptr<Graph>& graph, std::vector<Value> inputs) {
  RunUnlocked unlocked;
  return leaving_programs([&] { return Program(graph).run(std::move(inputs), unlocked); });
}

Value run(Function& function, std::vector<Value> arguments) {
  RunUnlocked unlocked;
  return leaving_programs([&] { return call(function, std::move(arguments), unlocked); });
}

}  // namespace umbra::jit
