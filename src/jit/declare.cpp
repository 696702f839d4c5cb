// Signatures: what annotations and names stand for.
#include "jit/emitter.h"

namespace umbra::jit {

namespace {

std::shared_ptr<Sugared> make(Sugared::Kind kind) {
  auto s = std::make_shared<Sugared>();
  s->kind = kind;
  return s;
}

}  // namespace

SugaredPtr sugar(Variable* v) {
  auto s = make(Sugared::Kind::Variable);
  s->variable = v;
  return s;
}
SugaredPtr sugar_constant(Value value) {
  auto s = make(Sugared::Kind::Constant);
  s->value = std::move(value);
  return s;
}
SugaredPtr sugar_builtin(std::string name) {
  auto s = make(Sugared::Kind::Builtin);
  s->name = std::move(name);
  return s;
}
SugaredPtr sugar_type(TypePtr type) {
  auto s = make(Sugared::Kind::Type);
  s->type = std::move(type);
  return s;
}
SugaredPtr sugar_function(FunctionPtr function) {
  auto s = make(Sugared::Kind::Function);
  s->function = std::move(function);
  return s;
}
SugaredPtr sugar_namespace(std::string name) {
  auto s = make(Sugared::Kind::Operators);
  s->name = std::move(name);
  return s;
}

std::string path_of(const Tree& t) {
  if (t.kind == Syntax::Name) return t.text;
  if (t.kind == Syntax::Attribute) return path_of(*t.children[0]) + "." + t.text;
  return "";
}

// ---- types ----

namespace {

/// List[int] and the like; null for names of no generic type.
TypePtr make_generic(const std::string& name, const std::vector<TypePtr>& parts) {
  if ((name == "List" || name == "list") && parts.size() == 1) return list_type(parts[0]);
  if ((name == "Dict" || name == "dict") && parts.size() == 2) return dict_type(parts[0], parts[1]);
  if (name == "Tuple" || name == "tuple") return tuple_type(parts);
  if (name == "Optional" && parts.size() == 1)
    return parts[0]->is(TypeKind::Union) ? union_type({parts[0], simple_type(TypeKind::None)})
                                         : optional_type(parts[0]);
  if (name == "Union") return union_type(parts);
  if (name == "Future" && parts.size() == 1) return future_type(parts[0]);
  if (name == "Final" && parts.size() == 1) return parts[0];
  if (name.starts_with("BroadcastingList") && name.size() == 17 && parts.size() == 1) {
    auto list = std::make_shared<Type>(*list_type(parts[0]));
    list->broadcast = name.back() - '0';
    return list;
  }
  return nullptr;
}

TypePtr generic_type(const Tree& tree, const std::string& path, Resolver& resolver) {
  const Tree& index = *tree.children[1];
  std::vector<TypePtr> parts;
  if (index.kind == Syntax::Tuple)
    for (const TreePtr& c : index.children) parts.push_back(resolve_type(*c, resolver));
  else parts.push_back(resolve_type(index, resolver));
  if (TypePtr type = make_generic(path.substr(path.rfind('.') + 1), parts)) return type;
  if (TypePtr type = make_generic(resolver.generic(path), parts)) return type;
  fail_at(tree, "Unknown type name '", path, "'");
}

}  // namespace

TypePtr resolve_type(const Tree& tree, Resolver& resolver) {
  if (tree.kind == Syntax::Constant && tree.text == "None") return simple_type(TypeKind::None);
  if (tree.kind == Syntax::String) {
    auto text =
        std::make_shared<SourceText>(SourceText{tree.text, tree.source->file, tree.source->first_line, 0, nullptr});
    return resolve_type(*parse_expression(text), resolver);
  }
  if (tree.kind == Syntax::Binary && tree.text == "|")
    return union_type({resolve_type(*tree.children[0], resolver), resolve_type(*tree.children[1], resolver)});
  std::string path = path_of(tree.kind == Syntax::Subscript ? *tree.children[0] : tree);
  std::string last = path.substr(path.rfind('.') + 1);
  if (tree.kind == Syntax::Subscript) return generic_type(tree, path, resolver);
  static const std::pair<const char*, TypeKind> simple[] = {{"Tensor", TypeKind::Tensor},
                                                            {"int", TypeKind::Int},
                                                            {"float", TypeKind::Float},
                                                            {"bool", TypeKind::Bool},
                                                            {"str", TypeKind::String},
                                                            {"complex", TypeKind::Complex},
                                                            {"number", TypeKind::Number},
                                                            {"NoneType", TypeKind::None},
                                                            {"Any", TypeKind::Any},
                                                            {"Device", TypeKind::Device},
                                                            {"Generator", TypeKind::Generator}};
  bool plain = path == last || path == "torch.Tensor" || path == "typing.Any" || path == "torch.Generator";
  if (plain)
    for (auto [name, kind] : simple)
      if (last == name) return simple_type(kind);
  if (path == "torch.device") return simple_type(TypeKind::Device);
  if (path == "torch.dtype" || path == "torch.layout" || path == "torch.memory_format")
    return simple_type(TypeKind::Int);
  if (path == "torch.Size") return list_type(simple_type(TypeKind::Int));
  if (TypePtr type = resolver.type(path)) return type;
  if (path == "Tuple" || path == "tuple") return tuple_type({});
  if (path == "List" || path == "list")
    fail_at(tree, "Attempted to use List without a contained type. Please add a contained type, e.g. List[int]");
  if (path == "Dict" || path == "dict")
    fail_at(tree, "Attempted to use Dict without contained types. Please add contained type, e.g. Dict[int, int]");
  if (path == "Optional")
    fail_at(tree,
            "Attempted to use Optional without a contained type. Please add a contained type, e.g. Optional[int]");
  fail_at(tree, "Unknown type name '", path.empty() ? "?" : path, "'");
}

namespace {

/// The types of `# type: (Tensor, int) -> Tensor`, which may stand under a function's head; the last is the result's.
/// With `(...)` those of the parameters stand on their own lines. Without an arrow the result is null.
std::vector<TypePtr> commented_types(const Tree& def, Resolver& resolver) {
  if (def.type_comment.empty()) return {};
  size_t arrow = def.type_comment.rfind("->");
  if (arrow == std::string::npos && def.type_comment.find('(') == std::string::npos) return {};
  auto parsed = [&](std::string text) {
    auto source =
        std::make_shared<SourceText>(SourceText{std::move(text), def.source->file, def.source->first_line, 0, nullptr});
    return parse_expression(source);
  };
  std::vector<TypePtr> out;
  TreePtr parameters = parsed(def.type_comment.substr(0, arrow));
  if (parameters->kind == Syntax::Constant && parameters->text == "...") {
    for (const ParameterTree& p : def.parameters)
      if (!p.comment.empty()) out.push_back(resolve_type(*parsed(p.comment), resolver));
  } else if (parameters->kind == Syntax::Tuple)
    for (const TreePtr& t : parameters->children) out.push_back(resolve_type(*t, resolver));
  else out.push_back(resolve_type(*parameters, resolver));
  bool has_result = arrow != std::string::npos;
  out.push_back(has_result ? resolve_type(*parsed(def.type_comment.substr(arrow + 2)), resolver) : nullptr);
  return out;
}

}  // namespace

void declare(Function& function, const Tree& def, Resolver& resolver, const TypePtr& self) {
  std::vector<TypePtr> commented = commented_types(def, resolver);
  size_t first = self ? 1 : 0;
  if (!commented.empty() && commented.size() != def.parameters.size() - first + 1)
    fail_at(def, "Number of type annotations (", commented.size() - 1, ") did not match the number of parameters (",
            def.parameters.size() - first, ")");
  for (size_t i = 0; i < def.parameters.size(); ++i) {
    const ParameterTree& p = def.parameters[i];
    Parameter out{p.name, nullptr, {}, p.keyword_only};
    if (i == 0 && self) out.type = self;
    else if (p.annotation) out.type = resolve_type(*p.annotation, resolver);
    else out.type = commented.empty() ? tensor_type() : commented[i - first];
    out.inferred = !(i == 0 && self) && !p.annotation && commented.empty();
    function.parameters.push_back(std::move(out));
  }
  if (def.returns) function.result = resolve_type(*def.returns, resolver);
  else if (!commented.empty()) function.result = commented.back();
}

}  // namespace umbra::jit
