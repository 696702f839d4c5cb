#include <unordered_set>

#include "umbra/jit/source.h"

namespace umbra::jit {

namespace {

bool is_identifier(const std::string& s) {
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) return false;
  for (char c : s)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return true;
}

const std::unordered_set<std::string>& reserved() {
  static const std::unordered_set<std::string> words = {"and",
                                                        "as",
                                                        "assert",
                                                        "async",
                                                        "await",
                                                        "break",
                                                        "class",
                                                        "continue",
                                                        "def",
                                                        "del",
                                                        "elif",
                                                        "else",
                                                        "except",
                                                        "False",
                                                        "finally",
                                                        "for",
                                                        "from",
                                                        "global",
                                                        "if",
                                                        "import",
                                                        "in",
                                                        "is",
                                                        "lambda",
                                                        "None",
                                                        "nonlocal",
                                                        "not",
                                                        "or",
                                                        "pass",
                                                        "raise",
                                                        "return",
                                                        "True",
                                                        "try",
                                                        "while",
                                                        "with",
                                                        "yield",
                                                        "torch",
                                                        "ops",
                                                        "CONSTANTS",
                                                        "int",
                                                        "float",
                                                        "bool",
                                                        "str",
                                                        "list",
                                                        "dict",
                                                        "range",
                                                        "annotate",
                                                        "unchecked_cast",
                                                        "uninitialized",
                                                        "isinstance",
                                                        "getattr",
                                                        "math",
                                                        "fork",
                                                        "inf",
                                                        "nan",
                                                        "Tensor",
                                                        "len",
                                                        "print"};
  return words;
}

}  // namespace

class FunctionPrinter {
 public:
  FunctionPrinter(SourcePrinter& owner, Function& function, bool as_method)
      : owner_(owner), function_(function), as_method_(as_method) {}

  std::string run(const std::string& name) {
    function_.ensure();
    check(!function_.ignored, "Could not export Python function call '", name,
          "'. Remove calls to Python functions before export. Did you forget to add @script or @script_method "
          "annotation? If this is a "
          "nn.ModuleList, add it to __constants__");
    const Graph& graph = *function_.graph;
    out_ = "def " + name + "(";
    for (size_t i = 0; i < function_.parameters.size(); ++i) {
      const Parameter& p = function_.parameters[i];
      owner_.use(p.type);
      std::string given = name_of(graph.block().input(i), p.name);
      out_ += (i ? ",\n    " : "") + given;
      if (i > 0 || as_method_ || !p.type->is(TypeKind::Class)) out_ += ": " + p.type->annotation();
      if (p.default_value) out_ += "=" + to_source(*p.default_value);
    }
    owner_.use(function_.result);
    out_ += ") -> " + function_.result->annotation() + ":\n";
    depth_ = 1;
    block(graph.block());
    line("return " + text(graph.block().outputs[0]));
    return out_;
  }

 private:
  void line(const std::string& text) {
    out_.append(depth_ * 2, ' ');
    out_ += text + "\n";
  }

  std::string fresh(std::string wanted) {
    for (char& c : wanted)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
    if (wanted.empty() || std::isdigit(static_cast<unsigned char>(wanted[0]))) wanted = "_" + wanted;
    std::string name = wanted;
    for (int i = 0; reserved().contains(name) || !used_.insert(name).second; ++i)
      name = wanted + "_" + std::to_string(i);
    return name;
  }
  std::string name_of(const Variable* v, const std::string& wanted = "") {
    auto [found, is_new] = names_.try_emplace(v);
    if (is_new) found->second = fresh(wanted.empty() ? v->debug_name() : wanted);
    return found->second;
  }

  /// A value where it is read: constants stand for themselves.
  std::string text(const Variable* v) {
    const Node& n = *v->node();
    if (!n.is("prim::Constant")) return name_of(v);
    if (n.callee) return owner_.function_name(n.callee);
    const Value* value = n.attribute("value");
    if (!value) return "None";
    if (value->is_tensor()) return owner_.constant(value->tensor_ref());
    if (auto* member = object_as<EnumValue>(*value)) owner_.use(class_type(member->cls));
    return to_source(*value);
  }
  std::string texts(const std::vector<Variable*>& values, size_t first = 0) {
    std::string out;
    for (size_t i = first; i < values.size(); ++i) out += (i > first ? ", " : "") + text(values[i]);
    return out;
  }

  void block(const Block& b) {
    for (const auto& n : b.nodes()) node(*n);
  }

  void assign(const Node& n, const std::string& value) {
    if (n.outputs().empty()) return line(value);
    std::string left;
    bool unpacks = n.is("prim::TupleUnpack") || n.is("prim::ListUnpack");
    if (n.outputs().size() == 1 && !unpacks) left = name_of(n.output());
    else
      for (const auto& v : n.outputs()) left += name_of(v.get()) + ", ";
    line(left + (n.outputs().size() == 1 && !unpacks ? " = " : "= ") + value);
  }

  void node(const Node& n) {
    if (n.is("prim::Constant")) return;
    for (const auto& v : n.outputs()) owner_.use(v->type());
    if (n.is("prim::If")) return if_node(n);
    if (n.is("prim::Loop")) return loop_node(n);
    if (n.is("prim::SetAttr")) {
      const std::string& attribute = n.attribute("name")->to_string();
      return line("(" + text(n.inputs[0]) + ")." + attribute + " = " + text(n.inputs[1]));
    }
    assign(n, expression(n));
  }

  std::string expression(const Node& n) {
    check(!n.is("prim::PythonOp"), "Could not export Python function call '",
          n.is("prim::PythonOp") ? n.attribute("name")->to_string() : "",
          "'. Remove calls to Python functions before export. Did you forget to add @script or @script_method "
          "annotation? If this is a "
          "nn.ModuleList, add it to __constants__");
    const auto& in = n.inputs;
    TypePtr type = n.outputs().empty() ? nullptr : n.output()->type();
    if (n.is("prim::ListConstruct")) {
      std::string list = "[" + texts(in) + "]";
      bool plain = !in.empty() && (type->element()->is(TypeKind::Tensor) || type->element()->is(TypeKind::Int) ||
                                   type->element()->is(TypeKind::Float) || type->element()->is(TypeKind::Bool) ||
                                   type->element()->is(TypeKind::String));
      return plain ? list : "annotate(" + without_details(type)->annotation() + ", " + list + ")";
    }
    if (n.is("prim::DictConstruct")) {
      std::string out = "{";
      for (size_t i = 0; i + 1 < in.size(); i += 2) out += (i ? ", " : "") + text(in[i]) + ": " + text(in[i + 1]);
      return "annotate(" + without_details(type)->annotation() + ", " + out + "})";
    }
    if (n.is("prim::TupleConstruct")) {
      if (!type->name.empty()) return type->name + "(" + texts(in) + ")";
      return in.size() == 1 ? "(" + text(in[0]) + ",)" : "(" + texts(in) + ")";
    }
    if (n.is("prim::TupleUnpack") || n.is("prim::ListUnpack")) return text(in[0]);
    if (n.is("prim::TupleIndex") || n.is("aten::__getitem__")) return "(" + text(in[0]) + ")[" + text(in[1]) + "]";
    if (n.is("prim::GetAttr")) {
      const std::string& attribute = n.attribute("name")->to_string();
      bool plain = is_identifier(attribute) && !reserved().contains(attribute);
      return plain ? "(" + text(in[0]) + ")." + attribute : "getattr(" + text(in[0]) + ", " + quoted(attribute) + ")";
    }
    if (n.is("prim::CallMethod"))
      return "(" + text(in[0]) + ")." + n.attribute("name")->to_string() + "(" + texts(in, 1) +
             (in.size() > 1 ? ", )" : ")");
    if (n.is("prim::CallFunction")) return text(in[0]) + "(" + texts(in, 1) + (in.size() > 1 ? ", )" : ")");
    if (n.is("prim::CreateObject")) return type->annotation() + ".__new__(" + type->annotation() + ")";
    if (n.is("prim::unchecked_cast"))
      return "unchecked_cast(" + without_details(type)->annotation() + ", " + text(in[0]) + ")";
    if (n.is("prim::Uninitialized")) return "uninitialized(" + without_details(type)->annotation() + ")";
    if (n.is("prim::isinstance")) {
      std::string types;
      for (const TypePtr& t : n.op_types) types += (types.empty() ? "" : ", ") + t->annotation();
      return "isinstance(" + text(in[0]) + ", " + (n.op_types.size() == 1 ? types : "[" + types + "]") + ")";
    }
    if (n.is("prim::tolist")) return "annotate(" + type->annotation() + ", (" + text(in[0]) + ").tolist())";
    if (n.is("aten::Int")) return "int(" + text(in[0]) + ")";
    if (n.is("aten::Float")) return "float(" + text(in[0]) + ")";
    if (n.is("aten::Bool")) return "bool(" + text(in[0]) + ")";
    if (n.is("aten::str")) return "str(" + text(in[0]) + ")";
    if (n.is("aten::device") && !n.op) return "torch.device(" + texts(in) + ")";
    if (n.is("aten::ScalarImplicit") || n.is("aten::IntImplicit") || n.is("aten::FloatImplicit"))
      return "annotate(" + type->annotation() + ", " + text(in[0]) + ")";
    if (n.is("prim::EnumValue")) return "(" + text(in[0]) + ").value";
    if (n.is("prim::EnumName")) return "(" + text(in[0]) + ").name";
    if (n.is("prim::Print")) return "print(" + texts(in) + ")";
    return operator_call(n);
  }

  std::string operator_call(const Node& n) {
    size_t colons = n.kind().find("::");
    std::string space = n.kind().substr(0, colons), name = n.kind().substr(colons + 2);
    bool plain = space == "aten" && is_identifier(name) && !(reserved().contains(name) && name != "len");
    std::string out = (plain ? "torch." : "ops." + space + ".") + name + "(";
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (i) out += ", ";
      if (n.op && n.op->schema().arguments[i].keyword_only) out += n.op->schema().arguments[i].name + "=";
      out += text(n.inputs[i]);
    }
    return out + ")";
  }

  void if_node(const Node& n) {
    for (const auto& v : n.outputs()) name_of(v.get());
    for (size_t i = 0; i < 2; ++i) {
      line(i == 0 ? "if " + text(n.inputs[0]) + ":" : "else:");
      ++depth_;
      const Block& b = *n.blocks()[i];
      block(b);
      for (size_t k = 0; k < b.outputs.size(); ++k) line(name_of(n.output(k)) + " = " + text(b.outputs[k]));
      if (b.outputs.empty() && b.nodes().empty()) line("pass");
      else if (b.outputs.empty()) {
        bool any = false;
        for (const auto& m : b.nodes()) any |= !m->is("prim::Constant");
        if (!any) line("pass");
      }
      --depth_;
    }
  }

  void loop_node(const Node& n) {
    const Block& b = *n.blocks()[0];
    auto is_true = [](const Variable* v) {
      const Value* c = v->node()->is("prim::Constant") ? v->node()->attribute("value") : nullptr;
      return c && c->is_bool() && c->to_bool();
    };
    auto is_endless = [](const Variable* v) {
      const Value* c = v->node()->is("prim::Constant") ? v->node()->attribute("value") : nullptr;
      return c && c->is_int() && c->to_int() == std::numeric_limits<int64_t>::max();
    };
    bool counted = is_true(n.inputs[1]) && is_true(b.outputs[0]);
    // A carried value is one variable before, in and after the loop.
    for (size_t k = 0; k < n.outputs().size(); ++k) {
      std::string name = name_of(n.output(k));
      names_[b.input(k + 1)] = name;
      line(name + " = " + text(n.inputs[k + 2]));
    }
    std::string index = name_of(b.input(0)), condition, bound;
    if (counted) {
      line("for " + index + " in range(" + text(n.inputs[0]) + "):");
    } else {
      condition = fresh("_c");
      line(condition + " = " + text(n.inputs[1]));
      line(index + " = 0");
      bool endless = is_endless(n.inputs[0]);
      bound = fresh("_w");
      if (!endless) {
        line(bound + " = torch.__and__(torch.lt(" + index + ", " + text(n.inputs[0]) + "), " + condition + ")");
        line("while " + bound + ":");
      } else {
        line("while " + condition + ":");
      }
    }
    ++depth_;
    block(b);
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
    std::string next = counted ? "" : text(b.outputs[0]);
    for (size_t k = 0; k < n.outputs().size(); ++k)
      if (news[k] != name_of(n.output(k))) line(name_of(n.output(k)) + " = " + news[k]);
    if (!counted) {
      line(condition + " = " + next);
      line(index + " = torch.add(" + index + ", 1)");
      if (!is_endless(n.inputs[0]))
        line(bound + " = torch.__and__(torch.lt(" + index + ", " + text(n.inputs[0]) + "), " + condition + ")");
    } else if (n.outputs().empty() && b.nodes().empty()) {
      line("pass");
    }
    --depth_;
  }

  SourcePrinter& owner_;
  Function& function_;
  bool as_method_;
  std::string out_;
  size_t depth_ = 0;
  std::unordered_map<const Variable*, std::string> names_;
  std::unordered_set<std::string> used_;
};

// ---- classes and files ----

std::string SourcePrinter::constant(const Tensor& tensor) {
  for (size_t i = 0; i < constants_.size(); ++i)
    if (constants_[i].is_same(tensor)) return "CONSTANTS.c" + std::to_string(i);
  constants_.push_back(tensor);
  return "CONSTANTS.c" + std::to_string(constants_.size() - 1);
}

void SourcePrinter::use(const TypePtr& type) {
  if (type->cls) add_class(type->cls);
  if (!type->name.empty() && !seen_[type->name]) {
    seen_[type->name] = true;
    std::string text = "class " + type->name.substr(type->name.rfind('.') + 1) + "(NamedTuple):\n";
    for (size_t i = 0; i < type->fields.size(); ++i)
      text += "  " + type->fields[i] + " : " + type->elements[i]->annotation() + "\n";
    texts_.emplace_back(type->name, text);
  }
  for (const TypePtr& t : type->elements) use(t);
}

std::string SourcePrinter::function(Function& function, const std::string& name, bool as_method) {
  return FunctionPrinter(*this, function, as_method).run(name);
}

namespace {
std::string indented(const std::string& text) {
  std::string out = "  ";
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) out += "  ";
  }
  return out;
}
}  // namespace

std::string SourcePrinter::class_text(ClassType& cls) {
  std::string name = cls.name.substr(cls.name.rfind('.') + 1);
  if (cls.is_enum) {
    std::string out = "class " + name + "(Enum):\n";
    for (const auto& [key, value] : cls.constants) out += "  " + key + " = " + to_source(value) + "\n";
    return out;
  }
  std::string out = "class " + name + (cls.is_module ? "(Module):\n" : ":\n");
  if (cls.is_module) {
    std::string parameters, buffers;
    for (const Attribute& a : cls.attributes) {
      if (a.is_parameter) parameters += quoted(a.name) + ", ";
      if (a.is_buffer) buffers += quoted(a.name) + ", ";
    }
    out += "  __parameters__ = [" + parameters + "]\n  __buffers__ = [" + buffers + "]\n";
  }
  for (const Attribute& a : cls.attributes) {
    use(a.type);
    if (is_identifier(a.name) && !reserved().contains(a.name))
      out += "  " + a.name + " : " + a.type->annotation() + "\n";
    else out += "  __annotations__[" + quoted(a.name) + "] = " + a.type->annotation() + "\n";
  }
  for (const std::string& method : cls.method_order) {
    FunctionPtr f = cls.methods[method];
    if (f->ignored) continue;
    out += indented(function(*f, method, true));
  }
  if (cls.attributes.empty() && cls.method_order.empty() && !cls.is_module) out += "  pass\n";
  return out;
}

void SourcePrinter::add_class(const ClassPtr& cls) {
  if (seen_[cls->name]) return;
  seen_[cls->name] = true;
  std::string text = class_text(*cls);
  texts_.emplace_back(cls->name, text);
}

std::string SourcePrinter::function_name(const FunctionPtr& function) {
  add_function(function);
  return function_names_.at(function.get());
}

void SourcePrinter::add_function(const FunctionPtr& function) {
  if (function_names_.contains(function.get())) return;
  std::string name = function->name.starts_with("__torch__.") ? function->name : "__torch__." + function->name;
  size_t last = name.rfind('.') + 1;
  for (int i = 0; seen_.contains(name); ++i)
    name = name.substr(0, last) + "___torch_mangle_" + std::to_string(i) + "." +
           function->name.substr(function->name.rfind('.') + 1);
  seen_[name] = true;
  function_names_[function.get()] = name;
  texts_.emplace_back(name, this->function(*function, name.substr(name.rfind('.') + 1), false));
}

std::map<std::string, std::string> SourcePrinter::files() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, text] : texts_) {
    std::string path = "code/" + name.substr(0, name.rfind('.'));
    for (char& c : path)
      if (c == '.') c = '/';
    out[path + ".py"] += text + "\n";
  }
  return out;
}

}  // namespace umbra::jit
