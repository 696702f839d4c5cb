#include "umbra/jit/interpreter.h"

#include <limits>
#include <unordered_set>

#include "jit/builtins.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/generated/functions.h"

namespace umbra::jit {

namespace {

PythonCall g_python_call = nullptr;

// ---- between programs' values and operators' arguments ----

template <class T, class F> Value list_of(const ListObject& list, F&& convert) {
  std::vector<T> items;
  items.reserve(list.items.size());
  for (const Value& v : list.items) items.push_back(convert(v));
  return Value(std::move(items));
}

Value to_argument(const Value& value, const SchemaType& type) {
  using Base = SchemaType::Base;
  if (value.is_none()) return Value();
  if (auto* list = object_as<ListObject>(value)) {
    switch (type.base) {
      case Base::Tensor: return list_of<Tensor>(*list, [](const Value& v) { return v.tensor(); });
      case Base::Int:
      case Base::SymInt: return list_of<SymInt>(*list, [](const Value& v) { return v.to_sym_int(); });
      case Base::Float: return list_of<double>(*list, [](const Value& v) { return v.to_double(); });
      case Base::Bool: return list_of<bool>(*list, [](const Value& v) { return v.to_bool(); });
      default: return Value(list->items);
    }
  }
  if (type.list && type.list_size > 0 && value.is_int())
    return Value(std::vector<SymInt>(static_cast<size_t>(type.list_size), SymInt(value.to_int())));
  if (type.list && type.list_size > 0 && value.is_double())
    return Value(std::vector<double>(static_cast<size_t>(type.list_size), value.to_double()));
  if (value.is_int()) {
    switch (type.base) {
      case Base::DType: return Value(dtype_of_number(value.to_int()));
      case Base::Layout: return Value(static_cast<Layout>(value.to_int()));
      case Base::MemoryFormat: return Value(static_cast<MemoryFormat>(value.to_int()));
      case Base::Float: return Value(static_cast<double>(value.to_int()));
      default: break;
    }
  }
  if (value.is_string() && type.base == Base::Device) return Value(Device(value.to_string()));
  return Value::borrow(value);
}

Value from_result(Value value, const SchemaType& type) {
  using Tag = Value::Tag;
  auto items = [&](auto&& list) {
    std::vector<Value> out;
    for (size_t i = 0; i < list.size(); ++i) out.emplace_back(Value(list[i]));
    return make_list(type_of_schema({.base = type.base}), std::move(out));
  };
  switch (value.tag()) {
    case Tag::TensorList: return items(value.tensor_list());
    case Tag::IntList: return items(value.int_list());
    case Tag::DoubleList: return items(value.double_list());
    case Tag::DType: return Value(number_of(value.to_dtype()));
    case Tag::Layout: return Value(static_cast<int64_t>(value.to_layout()));
    case Tag::MemoryFormat: return Value(static_cast<int64_t>(value.to_memory_format()));
    default: return value;
  }
}

/// The elements of a tensor in nested lists, as deep as the type says.
Value to_list(const Tensor& tensor, const TypePtr& type) {
  if (!type->is(TypeKind::List)) {
    check(tensor.dim() == 0, "Output annotation list dimension and runtime tensor dimension must match for tolist()");
    Scalar item = tensor.item();
    bool floating = item.is_floating(), truth = tensor.dtype() == DType::Bool;
    bool fits = type->is(TypeKind::Float) ? floating : type->is(TypeKind::Int) ? !floating && !truth : truth;
    check(fits, "Output annotation element type and runtime tensor element type must match for tolist()");
    return Value(item);
  }
  check(tensor.dim() > 0, "Output annotation list dimension and runtime tensor dimension must match for tolist()");
  std::vector<Value> items;
  for (int64_t i = 0; i < tensor.size(0); ++i) items.push_back(to_list(tensor.select(0, i), type->element()));
  return make_list(type->element(), std::move(items));
}

}  // namespace

/// A graph as steps over registers. A register is let go when nothing later reads it.
class Program {
 public:
  explicit Program(std::shared_ptr<Graph> graph);
  std::vector<Value> run(std::vector<Value> inputs) const;

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
    } kind;
    const Node* node;
    const Builtin* builtin = nullptr;
    std::vector<uint32_t> inputs, outputs, dead;
    std::vector<std::unique_ptr<Code>> blocks;
    uint32_t slot = 0;
  };
  struct Code {
    std::vector<uint32_t> inputs, outputs;
    std::vector<Step> steps;
  };

  uint32_t reg(const Variable* v) {
    auto [found, fresh] = registers_.try_emplace(v, static_cast<uint32_t>(registers_.size()));
    return found->second;
  }
  void compile(const Block& block, Code& code);
  void release(const Block& block, Code& code);
  void classify(Step& step, const Node& node);
  void execute(const Code& code, std::vector<Value>& r) const;
  void step(const Step& s, std::vector<Value>& r) const;
  void call_operator(const Step& s, std::vector<Value>& r) const;
  void loop(const Step& s, std::vector<Value>& r) const;

  std::shared_ptr<Graph> graph_;
  std::unordered_map<const Variable*, uint32_t> registers_;
  std::vector<std::pair<uint32_t, Value>> constants_;
  Code code_;
};

Program::Program(std::shared_ptr<Graph> graph) : graph_(std::move(graph)) { compile(graph_->block(), code_); }

void Program::classify(Step& s, const Node& node) {
  using Kind = Step::Kind;
  static const std::unordered_map<std::string_view, Kind> kinds = {
      {"prim::If", Kind::If},
      {"prim::Loop", Kind::Loop},
      {"prim::TupleConstruct", Kind::Tuple},
      {"prim::TupleUnpack", Kind::Unpack},
      {"prim::ListUnpack", Kind::Unpack},
      {"prim::ListConstruct", Kind::List},
      {"prim::DictConstruct", Kind::Dict},
      {"prim::GetAttr", Kind::GetAttr},
      {"prim::SetAttr", Kind::SetAttr},
      {"prim::CallMethod", Kind::CallMethod},
      {"prim::CallFunction", Kind::CallFunction},
      {"prim::CreateObject", Kind::Create},
      {"prim::RaiseException", Kind::Raise},
      {"prim::PythonOp", Kind::Python},
      {"prim::Uninitialized", Kind::Pass},
      {"prim::isinstance", Kind::IsInstance},
      {"prim::tolist", Kind::ToList},
      {"prim::unchecked_cast", Kind::Cast},
      {"prim::unchecked_unwrap_optional", Kind::Cast},
  };
  if (node.op) {
    s.kind = Kind::Operator;
    return;
  }
  if (auto found = kinds.find(node.kind()); found != kinds.end()) {
    s.kind = found->second;
    return;
  }
  std::vector<TypePtr> types;
  for (const Variable* v : node.inputs) types.push_back(v->type());
  TypePtr result;
  s.kind = Kind::Builtin;
  s.builtin = find_builtin(node.kind(), types, &result);
  std::string texts;
  for (const TypePtr& t : types) texts += (texts.empty() ? "" : ", ") + t->text();
  check<NotImplementedError>(s.builtin, "TorchScript: ", node.kind(), "(", texts, ") is not in Umbra yet");
}

void Program::compile(const Block& block, Code& code) {
  for (const auto& v : block.inputs()) code.inputs.push_back(reg(v.get()));
  for (const auto& node : block.nodes()) {
    if (node->is("prim::Constant")) {
      const Value* value = node->attribute("value");
      constants_.emplace_back(reg(node->output()), value ? *value : Value());
      if (node->callee) constants_.back().second = Value::object(make_counted<FunctionObject>(node->callee));
      continue;
    }
    Step& s = code.steps.emplace_back();
    s.node = node.get();
    for (const Variable* v : node->inputs) s.inputs.push_back(reg(v));
    for (const auto& v : node->outputs()) s.outputs.push_back(reg(v.get()));
    for (const auto& inner : node->blocks()) {
      s.blocks.push_back(std::make_unique<Code>());
      compile(*inner, *s.blocks.back());
    }
    classify(s, *node);
  }
  for (const Variable* v : block.outputs) code.outputs.push_back(reg(v));
  release(block, code);
}

void Program::release(const Block& block, Code& code) {
  std::unordered_set<uint32_t> own, later(code.outputs.begin(), code.outputs.end());
  for (const auto& node : block.nodes())
    if (!node->is("prim::Constant"))
      for (const auto& v : node->outputs()) own.insert(reg(v.get()));
  for (auto s = code.steps.rbegin(); s != code.steps.rend(); ++s) {
    auto use = [&](uint32_t r) {
      if (own.contains(r) && later.insert(r).second) s->dead.push_back(r);
    };
    for (uint32_t r : s->outputs) use(r);
    for (uint32_t r : s->inputs) use(r);
    for (const auto& inner : s->node->blocks()) {
      each_node(*inner, [&](const Node& n) {
        for (const Variable* v : n.inputs) use(reg(v));
        for (const auto& b : n.blocks())
          for (const Variable* v : b->outputs) use(reg(v));
      });
      for (const Variable* v : inner->outputs) use(reg(v));
    }
  }
}

std::vector<Value> Program::run(std::vector<Value> inputs) const {
  check(inputs.size() == code_.inputs.size(), "expected ", code_.inputs.size(), " inputs, but got ", inputs.size());
  std::vector<Value> r(registers_.size());
  for (const auto& [index, value] : constants_) r[index] = value;
  for (size_t i = 0; i < inputs.size(); ++i) r[code_.inputs[i]] = std::move(inputs[i]);
  execute(code_, r);
  std::vector<Value> out;
  for (uint32_t i : code_.outputs) out.push_back(r[i]);
  return out;
}

namespace {
/// How the error of a step reads: with the line of the program it came from.
[[noreturn]] void fail_at(const Node& node, const Error& error) {
  std::string text = error.what();
  static const char* const kHead = "The following operation failed in the TorchScript interpreter.";
  if (text.starts_with(kHead)) throw Error(text);
  std::string place = node.source.empty() ? node.kind() : node.source;
  throw Error(
      concat(kHead, "\nTraceback of TorchScript (most recent call last):\n  ", place, "\nRuntimeError: ", text));
}
}  // namespace

void Program::execute(const Code& code, std::vector<Value>& r) const {
  for (const Step& s : code.steps) {
    try {
      step(s, r);
    } catch (const RaisedError&) {
      throw;
    } catch (const Error& error) {
      fail_at(*s.node, error);
    }
    for (uint32_t i : s.dead) r[i] = Value();
  }
}

void Program::call_operator(const Step& s, std::vector<Value>& r) const {
  const Operator& op = *s.node->op;
  const auto& arguments = op.schema().arguments;
  Frame frame(op);
  for (size_t i = 0; i < arguments.size(); ++i) frame[i] = to_argument(r[s.inputs[i]], arguments[i].type);
  op.call(frame.data());
  for (size_t i = 0; i < s.outputs.size(); ++i)
    r[s.outputs[i]] = from_result(std::move(frame[i]), op.schema().returns[i].type);
}

namespace {
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
thread_local int64_t g_work_left = kNoLimit;

void spend_work() {
  if (g_work_left == kNoLimit) return;
  check(g_work_left-- > 0, "a program that runs while its file is loaded does not come to an end");
}
}  // namespace

LimitedWork::LimitedWork(int64_t rounds) : before_(g_work_left) { g_work_left = std::min(rounds, before_); }
LimitedWork::~LimitedWork() { g_work_left = before_; }

void Program::loop(const Step& s, std::vector<Value>& r) const {
  const Code& body = *s.blocks[0];
  int64_t most = r[s.inputs[0]].to_int();
  bool go_on = r[s.inputs[1]].to_bool();
  std::vector<Value> carried;
  for (size_t i = 2; i < s.inputs.size(); ++i) carried.push_back(r[s.inputs[i]]);
  for (int64_t i = 0; i < most && go_on; ++i) {
    spend_work();
    r[body.inputs[0]] = Value(i);
    for (size_t k = 0; k < carried.size(); ++k) r[body.inputs[k + 1]] = std::move(carried[k]);
    execute(body, r);
    go_on = r[body.outputs[0]].to_bool();
    for (size_t k = 0; k < carried.size(); ++k) carried[k] = r[body.outputs[k + 1]];
  }
  for (size_t k = 0; k < carried.size(); ++k) r[s.outputs[k]] = std::move(carried[k]);
}

void Program::step(const Step& s, std::vector<Value>& r) const {
  using Kind = Step::Kind;
  const Node& node = *s.node;
  auto in = [&](size_t i) -> Value& { return r[s.inputs[i]]; };
  auto inputs_from = [&](size_t first) {
    std::vector<Value> out;
    for (size_t i = first; i < s.inputs.size(); ++i) out.push_back(in(i));
    return out;
  };
  auto name = [&]() -> const std::string& { return node.attribute("name")->to_string(); };
  switch (s.kind) {
    case Kind::Operator: return call_operator(s, r);
    case Kind::Builtin: {
      std::vector<Value> arguments = inputs_from(0);
      Value result = s.builtin->run(arguments.data(), arguments.size());
      if (!s.outputs.empty()) r[s.outputs[0]] = std::move(result);
      return;
    }
    case Kind::If: {
      const Code& branch = *s.blocks[in(0).to_bool() ? 0 : 1];
      execute(branch, r);
      for (size_t i = 0; i < s.outputs.size(); ++i) r[s.outputs[i]] = r[branch.outputs[i]];
      return;
    }
    case Kind::Loop: return loop(s, r);
    case Kind::Tuple: r[s.outputs[0]] = Value(inputs_from(0)); return;
    case Kind::Unpack: {
      std::vector<Value> items =
          in(0).is_list() ? in(0).list().vec() : expect_object<ListObject>(in(0), "a list").items;
      check(items.size() == s.outputs.size(), "Expected ", s.outputs.size(), " elements in a list but found ",
            items.size());
      for (size_t i = 0; i < items.size(); ++i) r[s.outputs[i]] = items[i];
      return;
    }
    case Kind::List: r[s.outputs[0]] = make_list(node.output()->type()->element(), inputs_from(0)); return;
    case Kind::Dict: {
      auto dict = make_counted<DictObject>(node.output()->type()->element(0), node.output()->type()->element(1));
      for (size_t i = 0; i + 1 < s.inputs.size(); i += 2) dict->set(in(i), in(i + 1));
      r[s.outputs[0]] = Value::object(dict);
      return;
    }
    case Kind::GetAttr: r[s.outputs[0]] = expect_object<Instance>(in(0), "an object").attribute(name()); return;
    case Kind::SetAttr: expect_object<Instance>(in(0), "an object").attribute(name()) = in(1); return;
    case Kind::CallMethod: {
      auto& self = expect_object<Instance>(in(0), "an object");
      FunctionPtr method = self.cls->method(name());
      check(method != nullptr, "'", self.cls->name, "' has no method '", name(), "'");
      Value result = jit::run(*method, inputs_from(0));
      if (!s.outputs.empty()) r[s.outputs[0]] = std::move(result);
      return;
    }
    case Kind::CallFunction: {
      Value result = jit::run(*expect_object<FunctionObject>(in(0), "a function").function, inputs_from(1));
      if (!s.outputs.empty()) r[s.outputs[0]] = std::move(result);
      return;
    }
    case Kind::Create: r[s.outputs[0]] = Value::object(make_counted<Instance>(node.output()->type()->cls)); return;
    case Kind::Raise: {
      std::string type = s.inputs.size() > 1 && in(1).is_string() ? in(1).to_string() : "Exception";
      std::string message = in(0).is_none() ? "" : to_text(in(0));
      throw RaisedError(concat("The following operation failed in the TorchScript interpreter.\nTraceback of "
                               "TorchScript (most recent call last):\n  ",
                               node.source, "\n", type, ": ", message),
                        type);
    }
    case Kind::Python: {
      check<NotImplementedError>(g_python_call, "the program calls Python, and there is none");
      Value result = g_python_call(*node.attribute("function"), node, inputs_from(0));
      if (s.outputs.size() == 1) r[s.outputs[0]] = std::move(result);
      else
        for (size_t i = 0; i < s.outputs.size(); ++i) r[s.outputs[i]] = result.list()[i];
      return;
    }
    case Kind::Pass: r[s.outputs[0]] = Value(); return;
    case Kind::Cast: r[s.outputs[0]] = in(0); return;
    case Kind::ToList: r[s.outputs[0]] = to_list(in(0).tensor_ref(), node.output()->type()); return;
    case Kind::IsInstance: {
      bool any = false;
      for (size_t i = 0; i < node.op_types.size(); ++i) any |= has_type(in(0), *node.op_types[i]);
      r[s.outputs[0]] = Value(any);
      return;
    }
  }
}

// ---- functions ----

void set_python_call(PythonCall call) { g_python_call = call; }

std::vector<Value> run(const std::shared_ptr<Graph>& graph, std::vector<Value> inputs) {
  return Program(graph).run(std::move(inputs));
}

Value run(Function& function, std::vector<Value> arguments) {
  for (size_t i = arguments.size(); i < function.parameters.size(); ++i) {
    const auto& p = function.parameters[i];
    check(p.default_value.has_value(), function.name, "() is missing value for argument '", p.name, "'");
    arguments.push_back(*p.default_value);
  }
  if (function.ignored) {
    check<NotImplementedError>(g_python_call, "the program calls Python, and there is none");
    Node none;
    return g_python_call(function.python, none, std::move(arguments));
  }
  constexpr int kDeepest = 1000;  // as Python has it, well within a thread's stack
  thread_local int depth = 0;
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  } deeper;
  check(depth <= kDeepest, "maximum recursion depth exceeded: ", function.name, " calls itself without an end");
  check(function.ensure() != nullptr, function.name, " is called while it is compiled");
  spend_work();
  if (!function.program) function.program = std::make_shared<Program>(function.graph);
  std::shared_ptr<Program> program = function.program;
  struct KeepGradMode {  // whatever the program sets, and however it ends
    bool before = is_grad_enabled();
    ~KeepGradMode() { set_grad_enabled(before); }
  } keep;
  std::vector<Value> out = program->run(std::move(arguments));
  if (out.size() == 1) return std::move(out[0]);
  return out.empty() ? Value() : Value(std::move(out));
}

}  // namespace umbra::jit
