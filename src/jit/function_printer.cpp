#include "jit/function_printer.h"

#include <limits>

namespace umbra::jit {

bool is_identifier(const std::string& s) {
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) return false;
  for (char c : s)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return true;
}

bool is_reserved(const std::string& word) {
  static constexpr std::string_view kWords =
      " and as assert async await break class continue def del elif else except False finally for from global if "
      "import "
      "in is lambda None nonlocal not or pass raise return True try while with yield torch ops CONSTANTS int float "
      "bool "
      "str list dict range annotate unchecked_cast uninitialized isinstance getattr math fork inf nan Tensor len "
      "print ";
  return kWords.find(" " + word + " ") != std::string_view::npos;
}

namespace {

const Value* constant_of(const Variable* v) {
  return v->node()->is("prim::Constant") ? v->node()->attribute("value") : nullptr;
}
bool is_none(const Variable* v) { return v->node()->is("prim::Constant") && !v->node()->callee && !constant_of(v); }
bool is_true(const Variable* v) {
  const Value* c = constant_of(v);
  return c && c->is_bool() && c->to_bool();
}
bool is_endless(const Variable* v) {
  const Value* c = constant_of(v);
  return c && c->is_int() && c->to_int() == std::numeric_limits<int64_t>::max();
}

/// A loop that runs its body so many times, and does not ask in between.
bool is_counted(const Node& loop) { return is_true(loop.inputs[1]) && is_true(loop.blocks()[0]->outputs[0]); }

/// Whether an operand is what its argument has by default.
bool is_default(const Variable* v, const SchemaArgument& argument) {
  if (!argument.default_value) return false;
  const Value& d = *argument.default_value;
  if (d.is_none()) return is_none(v);
  if (d.is_int_list() && v->node()->is("prim::ListConstruct")) {
    if (v->node()->inputs.size() != d.int_list().size()) return false;
    for (size_t i = 0; i < d.int_list().size(); ++i) {
      const Value* c = constant_of(v->node()->inputs[i]);
      if (!c || !c->is_int() || SymInt(c->to_int()) != d.int_list()[i]) return false;
    }
    return true;
  }
  const Value* c = constant_of(v);
  if (!c) return false;
  if (d.tag() == Value::Tag::MemoryFormat)
    return c->is_int() && c->to_int() == static_cast<int64_t>(d.to_memory_format());
  if (d.is_double() || d.is_int()) return c->is_scalar() && !c->is_bool() && c->to_double() == d.to_double();
  return c->tag() == d.tag() && (d.is_bool() || d.is_string()) && equal(*c, d);
}

}  // namespace

std::string FunctionPrinter::run(const std::string& name) {
  if (function_.ignored) refuse_python(name);
  function_.ensure();
  const Graph& graph = *function_.graph;
  count_uses(graph.block());
  find_inlined(graph.block());
  out_ = "def " + name + "(";
  for (size_t i = 0; i < function_.parameters.size(); ++i) {
    const Parameter& p = function_.parameters[i];
    owner_.use(p.type);
    std::string given = name_of(graph.block().input(i), p.name);
    out_ += (i == 0 ? "" : as_method_ ? ",\n  " : ",\n    ") + given;  // a method's lines are moved to the right
    if (i > 0 || as_method_ || !p.type->is(TypeKind::Class)) out_ += ": " + p.type->annotation();
    if (p.default_value) out_ += "=" + to_source(*p.default_value);
  }
  owner_.use(function_.result);
  out_ += ") -> " + function_.result->annotation() + ":\n";
  depth_ = 1;
  block(graph.block());
  mark_.clear();
  split_long(graph.block().outputs, nullptr);
  line("return " + text(graph.block().outputs[0]));
  return out_;
}

void FunctionPrinter::refuse_python(const std::string& name) {
  fail("Could not export Python function call '", name,
       "'. Remove calls to Python functions before export. Did you forget to add @script or @script_method annotation? "
       "If this is a nn.ModuleList, add it to __constants__");
}

// ---- what is written where it is read ----

void FunctionPrinter::count_uses(const Block& block) {
  for (const auto& n : block.nodes()) {
    for (size_t i = 0; i < n->inputs.size(); ++i) {
      ++uses_[n->inputs[i]];
      readers_[n->inputs[i]] = {n.get(), i};
    }
    for (const auto& inner : n->blocks()) count_uses(*inner);
  }
  for (size_t i = 0; i < block.outputs.size(); ++i) {
    ++uses_[block.outputs[i]];
    readers_[block.outputs[i]] = {nullptr, i};
  }
}

/// A value that is read once, and has no name of its own or is a block's result, stands where it is read, if nothing
/// else is computed between: the order in which things happen stays as it is.
void FunctionPrinter::find_inlined(const Block& block) {
  for (const auto& n : block.nodes())
    for (const auto& inner : n->blocks()) find_inlined(*inner);
  const Node* loop = block.owner() && block.owner()->is("prim::Loop") ? block.owner() : nullptr;
  bool is_body = loop && !is_counted(*loop);
  Position at = block.nodes().rbegin();
  if (!is_body) at = scan(block, at, block.outputs, true);  // a body's outputs are read after its variables changed
  while (at != block.nodes().rend()) {
    const Node& n = **at++;
    if (!n.is("prim::Loop") && !n.is("prim::Constant")) at = scan(block, at, n.inputs, false);
  }
}

FunctionPrinter::Position FunctionPrinter::scan(const Block& block, Position before, const Variables& inputs,
                                                bool named) {
  for (auto v = inputs.rbegin(); v != inputs.rend(); ++v) {
    while (before != block.nodes().rend() && (*before)->is("prim::Constant")) ++before;
    if (before == block.nodes().rend()) return before;
    const Node* n = (*v)->node();
    if (n != before->get() || !can_inline(*v) || (!named && !(*v)->name().empty())) continue;
    inlined_.insert(n);
    before = scan(block, std::next(before), n->inputs, false);
  }
  return before;
}

bool FunctionPrinter::can_inline(const Variable* v) const {
  const Node& n = *v->node();
  bool stands_alone = n.is("prim::Enter") || n.is("prim::isinstance") || n.is("prim::ModuleContainerIndex");
  return n.outputs().size() == 1 && n.blocks().empty() && uses_.at(v) == 1 && !stands_alone &&
         !n.is("prim::TupleUnpack") && !n.is("prim::ListUnpack") && !n.is("prim::CreateObject");
}

void FunctionPrinter::gather_before(const Variables& inputs, const Node* user, size_t count,
                                    std::vector<const Node*>& out) {
  for (size_t i = count; i-- > 0;)
    if (inlined_.contains(inputs[i]->node())) out.push_back(inputs[i]->node());
  if (!user || !inlined_.contains(user)) return;
  const Reader& reader =
      readers_.at(user->output());  // what stands before the user in its own place comes earlier still
  if (reader.node) gather_before(reader.node->inputs, reader.node, reader.place, out);
}

void FunctionPrinter::split_long(const Variables& inputs, const Node* user) {
  constexpr size_t kLong = 40;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto found = expressions_.find(inputs[i]->node());
    if (found == expressions_.end() || !inlined_.contains(found->first)) continue;
    if (shown_size(found->second) + depth_ * 2 < kLong) continue;
    std::vector<const Node*> split;
    gather_before(inputs, user, i + 1, split);
    for (auto n = split.rbegin(); n != split.rend(); ++n) {
      inlined_.erase(*n);
      assign(**n, expressions_.at(*n));
    }
  }
}

// ---- names and values ----

std::string FunctionPrinter::fresh(std::string wanted) {
  if (size_t dot = wanted.find('.'); dot != std::string::npos && dot > 0) wanted.resize(dot);
  for (char& c : wanted)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  bool unnamed = wanted.empty() || std::isdigit(static_cast<unsigned char>(wanted[0]));
  std::string base = unnamed ? "_" : wanted, name = unnamed ? "_0" : wanted;
  size_t& next = next_[base];
  if (unnamed) next = std::max<size_t>(next, 1);
  while (is_reserved(name) || !used_.insert(name).second) name = base + std::to_string(next++);
  return name;
}

std::string FunctionPrinter::name_of(const Variable* v, const std::string& wanted) {
  auto [found, is_new] = names_.try_emplace(v);
  if (is_new) found->second = fresh(wanted.empty() ? v->debug_name() : wanted);
  return found->second;
}

/// A value where it is read: constants stand for themselves.
std::string FunctionPrinter::text(const Variable* v) {
  const Node& n = *v->node();
  if (inlined_.contains(&n)) return expressions_.at(&n);
  if (!n.is("prim::Constant")) return name_of(v);
  if (n.callee) return owner_.function_name(n.callee);
  const Value* value = n.attribute("value");
  if (!value) return "None";
  if (value->is_tensor()) return owner_.constant(value->tensor_ref());
  if (auto* member = object_as<EnumValue>(*value)) owner_.use(class_type(member->cls));
  return to_source(*value);
}

std::string FunctionPrinter::texts(const Variables& values, size_t first) {
  std::string out;
  for (size_t i = first; i < values.size(); ++i) out += (i > first ? ", " : "") + text(values[i]);
  return out;
}

std::string FunctionPrinter::arguments(const Variables& values) {
  return "(" + texts(values, 1) + (values.size() > 1 ? ", )" : ")");
}

std::string FunctionPrinter::owner_text(const Variable* v) {
  std::string out = text(v);
  return is_identifier(out) ? out : "(" + out + ")";
}

// ---- nodes ----

void FunctionPrinter::line(const std::string& text) {
  out_.append(depth_ * 2, ' ');
  out_ += mark_ + text + "\n";
}

void FunctionPrinter::block(const Block& b) {
  size_t depth = depth_;
  for (const auto& n : b.nodes()) node(*n);
  depth_ = depth;  // a block that raises leaves its `with` statements open
}

void FunctionPrinter::assign(const Node& n, const std::string& value) {
  if (n.outputs().empty()) return line(value);
  std::string left;
  bool unpacks = n.is("prim::TupleUnpack") || n.is("prim::ListUnpack");
  if (n.outputs().size() == 1 && !unpacks) left = name_of(n.output());
  else
    for (const auto& v : n.outputs()) left += name_of(v.get()) + ", ";
  line(left + (n.outputs().size() == 1 && !unpacks ? " = " : "= ") + value);
}

void FunctionPrinter::node(const Node& n) {
  if (n.is("prim::Constant")) return;
  for (const auto& v : n.outputs()) owner_.use(v->type());
  split_long(n.inputs, &n);
  if (inlined_.contains(&n)) return void(expressions_[&n] = expression(n));
  mark_ = owner_.mark(n);
  if (n.is("prim::If")) return if_node(n);
  if (n.is("prim::Loop")) return loop_node(n);
  if (n.is("prim::SetAttr"))
    return line(owner_text(n.inputs[0]) + "." + n.attribute("name")->to_string() + " = " + text(n.inputs[1]));
  if (n.is("prim::Enter")) {
    bool named = uses_[n.output()] > 0;
    line("with " + text(n.inputs[0]) + (named ? " as " + name_of(n.output()) : "") + ":");
    ++depth_;
    return line("pass");
  }
  if (n.is("prim::Exit")) return void(--depth_);
  if (n.is("prim::ModuleContainerIndex"))  // its type is the reader's only way to know it
    return line(name_of(n.output()) + " : " + n.output()->type()->annotation() + " = " + expression(n));
  assign(n, expression(n));
}

std::string FunctionPrinter::plain_expression(const Node& n) {
  if (n.is("prim::PythonOp")) refuse_python(n.attribute("name")->to_string());
  const auto& in = n.inputs;
  if (std::string made = container(n); !made.empty()) return made;
  if (std::string converted = conversion(n); !converted.empty()) return converted;
  if (n.is("prim::TupleUnpack") || n.is("prim::ListUnpack")) return text(in[0]);
  if (n.is("prim::TupleIndex") || n.is("aten::__getitem__")) {
    std::string of = n.is("prim::TupleIndex") ? "(" + text(in[0]) + ")" : owner_text(in[0]);
    return of + "[" + text(in[1]) + "]";
  }
  if (n.is("prim::ModuleContainerIndex")) return owner_text(in[0]) + "[" + text(in[1]) + "]";
  if (n.is("prim::GetAttr")) {
    const std::string& attribute = n.attribute("name")->to_string();
    bool plain = is_identifier(attribute) && !is_reserved(attribute);
    return plain ? owner_text(in[0]) + "." + attribute : "getattr(" + text(in[0]) + ", " + quoted(attribute) + ")";
  }
  if (n.is("prim::CallMethod")) {
    const std::string& method = n.attribute("name")->to_string();
    FunctionPtr callee = in[0]->type()->cls->method(method);
    if (callee && callee->ignored) refuse_python(method);
    std::string self = text(in[0]);
    return "(" + self + ")." + method + arguments(in);
  }
  if (n.is("prim::CallFunction")) {
    std::string callee = text(in[0]);
    return callee + arguments(in);
  }
  if (n.is("prim::isinstance")) {
    std::string types;
    for (const TypePtr& t : n.op_types) types += (types.empty() ? "" : ", ") + t->annotation();
    return "isinstance(" + text(in[0]) + ", " + (n.op_types.size() == 1 ? types : "[" + types + "]") + ")";
  }
  if (n.is("prim::EnumValue")) return "(" + text(in[0]) + ").value";
  if (n.is("prim::EnumName")) return "(" + text(in[0]) + ").name";
  if (n.is("prim::Print")) return "print(" + texts(in) + ")";
  return operator_call(n);
}

std::string FunctionPrinter::container(const Node& n) {
  const auto& in = n.inputs;
  TypePtr type = n.outputs().empty() ? nullptr : n.output()->type();
  auto annotated = [&](const std::string& made) {
    return "annotate(" + without_details(type)->annotation() + ", " + made + ")";
  };
  if (n.is("prim::ListConstruct")) {
    std::string list = "[" + texts(in) + "]";
    bool plain = !in.empty() && type->element()->elements.empty() && !type->element()->cls;
    return plain && !type->element()->is(TypeKind::Any) ? list : annotated(list);
  }
  if (n.is("prim::DictConstruct")) {
    std::string out = "{";
    for (size_t i = 0; i + 1 < in.size(); i += 2) {
      std::string key = text(in[i]);
      out += (i ? ", " : "") + key + ": " + text(in[i + 1]);
    }
    bool plain = !in.empty() && type->element(1)->elements.empty() && !type->element(1)->cls &&
                 !type->element(1)->is(TypeKind::Any);
    return plain ? out + "}" : annotated(out + "}");
  }
  if (n.is("prim::TupleConstruct")) {
    if (!type->name.empty()) return type->name + "(" + texts(in) + ")";
    return in.size() == 1 ? "(" + text(in[0]) + ",)" : "(" + texts(in) + ")";
  }
  if (n.is("prim::CreateObject")) return type->annotation() + ".__new__(" + type->annotation() + ")";
  return "";
}

std::string FunctionPrinter::conversion(const Node& n) {
  const auto& in = n.inputs;
  TypePtr type = n.outputs().empty() ? nullptr : n.output()->type();
  static const std::unordered_map<std::string_view, const char*> functions = {
      {"aten::Int", "int("}, {"aten::Float", "float("}, {"aten::Bool", "bool("}, {"aten::str", "str("}};
  if (auto found = functions.find(n.kind()); found != functions.end() && in.size() == 1)
    return found->second + text(in[0]) + ")";
  auto typed = [&](const char* function) {
    return std::string(function) + "(" + without_details(type)->annotation() + (in.empty() ? "" : ", " + text(in[0])) +
           ")";
  };
  if (n.is("prim::unchecked_cast")) return typed("unchecked_cast");
  if (n.is("prim::Uninitialized")) return typed("uninitialized");
  if (n.is("aten::ScalarImplicit") || n.is("aten::IntImplicit") || n.is("aten::FloatImplicit"))
    return typed("annotate");
  if (n.is("prim::tolist")) return "annotate(" + type->annotation() + ", (" + text(in[0]) + ").tolist())";
  if (n.is("aten::device") && !n.op) return "torch.device(" + texts(in) + ")";
  return "";
}

std::string FunctionPrinter::operator_call(const Node& n) {
  size_t colons = n.kind().find("::");
  std::string space = n.kind().substr(0, colons), name = n.kind().substr(colons + 2);
  bool plain = space == "aten" && is_identifier(name) && !(is_reserved(name) && name != "len");
  std::string out = (plain ? "torch." : "ops." + space + ".") + name + "(";
  size_t count = n.inputs.size();
  while (n.op && count > 0 && is_default(n.inputs[count - 1], n.op->schema().arguments[count - 1])) --count;
  for (size_t i = 0; i < count; ++i) {
    if (i) out += ", ";
    if (n.op && n.op->schema().arguments[i].keyword_only) out += n.op->schema().arguments[i].name + "=";
    out += text(n.inputs[i]);
  }
  return out + ")";
}

// ---- control flow ----

void FunctionPrinter::if_node(const Node& n) {
  std::string condition = text(n.inputs[0]);
  for (const auto& v : n.outputs()) name_of(v.get());
  for (size_t i = 0; i < 2; ++i) {
    line(i == 0 ? "if " + condition + ":" : "else:");
    ++depth_;
    const Block& b = *n.blocks()[i];
    size_t before = out_.size();
    block(b);
    bool says_type = i == 0 && n.outputs().size() == 1 &&
                     (n.output()->type()->is(TypeKind::Optional) || n.output()->type()->is(TypeKind::Union));
    results(n, b.outputs, 0, says_type ? " : " + n.output()->type()->annotation() : "");
    if (out_.size() == before) line("pass");
    --depth_;
  }
}

/// What a block gives, for the results of its node; all at once, since one may be read for another.
void FunctionPrinter::results(const Node& n, const Variables& values, size_t first, const std::string& type) {
  std::string left, right;
  for (size_t k = 0; k < n.outputs().size(); ++k) {
    std::string name = name_of(n.output(k)), value = text(values[k + first]);
    if (name == value) continue;
    left += (left.empty() ? "" : ", ") + name;
    right += (right.empty() ? "" : ", ") + value;
  }
  if (!left.empty()) line(left + type + " = " + right);
}

void FunctionPrinter::loop_node(const Node& n) {
  const Block& b = *n.blocks()[0];
  bool counted = is_counted(n);
  // A carried value is one variable before, in and after the loop.
  for (size_t k = 0; k < n.outputs().size(); ++k) {
    std::string name = name_of(n.output(k));
    names_[b.input(k + 1)] = name;
    line(name + " = " + text(n.inputs[k + 2]));
  }
  std::string index = name_of(b.input(0));
  if (counted) {
    line("for " + index + " in range(" + text(n.inputs[0]) + "):");
    ++depth_;
    size_t before = out_.size();
    loop_body(n, "");
    if (out_.size() == before) line("pass");
    --depth_;
    return;
  }
  bool endless = is_endless(n.inputs[0]);
  std::string condition = fresh("_c"), bound = fresh("_w");
  auto still = [&] {
    return bound + " = torch.__and__(torch.lt(" + index + ", " + text(n.inputs[0]) + "), " + condition + ")";
  };
  line(condition + " = " + text(n.inputs[1]));
  line(index + " = 0");
  if (!endless) line(still());
  line("while " + (endless ? condition : bound) + ":");
  ++depth_;
  loop_body(n, condition);
  line(index + " = torch.add(" + index + ", 1)");
  if (!endless) line(still());
  --depth_;
}

void FunctionPrinter::loop_body(const Node& n, const std::string& condition) {
  const Block& b = *n.blocks()[0];
  block(b);
  if (condition.empty()) return results(n, b.outputs, 1, "");
  line(condition + " = " + text(b.outputs[0]));  // before the carried variables change
  std::unordered_set<const Variable*> inputs;
  for (const auto& v : b.inputs()) inputs.insert(v.get());
  std::vector<std::string> news;
  for (size_t k = 0; k < n.outputs().size(); ++k) {
    std::string value = text(b.outputs[k + 1]);
    if (inputs.contains(b.outputs[k + 1]) && b.outputs[k + 1] != b.input(k + 1)) {
      std::string temporary = fresh("_t");
      line(temporary + " = " + value);
      value = temporary;
    }
    news.push_back(value);
  }
  for (size_t k = 0; k < n.outputs().size(); ++k)
    if (news[k] != name_of(n.output(k))) line(name_of(n.output(k)) + " = " + news[k]);
}

}  // namespace umbra::jit
