// The source in an archive, compiled: each class and function when it is first asked for.
#include <algorithm>

#include "umbra/jit/compile.h"
#include "umbra/jit/source.h"

namespace umbra::jit {

namespace {

/// Marks of a profiler, which does not run here: what archives have for them uses objects of PyTorch's own.
constexpr const char* kProfiler = "code/__torch__/torch/autograd/profiler.py";
constexpr const char* kProfilerSource = R"(class record_function:
  name : str
  args : Optional[str]
  run_callbacks_on_exit : bool
  def __init__(self, name: str, args: Optional[str]=None) -> NoneType:
    self.name = name
    return None
  def __enter__(self) -> NoneType:
    return None
  def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> NoneType:
    return None
)";

}  // namespace

class SourceReader::Implementation final : public Resolver, public std::enable_shared_from_this<Implementation> {
 public:
  Implementation(Load load, std::vector<Value> constants, int64_t version)
      : load_(std::move(load)), constants_(std::move(constants)), version_(version) {}

  std::optional<int64_t> version() const override { return version_; }

  SugaredPtr name(const std::string& name) override {
    if (name == "torch" || name == "ops" || name == "math") return sugar_namespace(name);
    if (name == "inf") return sugar_constant(Value(std::numeric_limits<double>::infinity()));
    if (name == "nan") return sugar_constant(Value(std::numeric_limits<double>::quiet_NaN()));
    if (name != "__torch__" && name != "CONSTANTS") return nullptr;
    auto s = std::make_shared<Sugared>();
    s->kind = Sugared::Kind::Python;
    s->name = name;
    return s;
  }

  SugaredPtr attribute(const Sugared& of, const std::string& name) override {
    if (of.kind == Sugared::Kind::Type && name == "__new__") {
      auto s = sugar_builtin("__new__");
      s->type = of.type;
      return s;
    }
    if (of.kind != Sugared::Kind::Python) return nullptr;
    if (of.name == "CONSTANTS") {
      size_t index =
          name.size() > 1 && name[0] == 'c' ? std::strtoull(name.c_str() + 1, nullptr, 10) : constants_.size();
      check<ValueError>(index < constants_.size(), "the program reads the constant ", name, ", and the archive has ",
                        constants_.size());
      return sugar_constant(constants_[index]);
    }
    std::string full = of.name + "." + name;
    if (TypePtr found = type(full)) return sugar_type(found);
    if (FunctionPtr found = function(full)) return sugar_function(found);
    auto s = std::make_shared<Sugared>();
    s->kind = Sugared::Kind::Python;
    s->name = full;
    return s;
  }

  TypePtr type(const std::string& name) override {
    if (!name.starts_with("__torch__.")) return nullptr;
    if (auto found = types_.find(name); found != types_.end()) return found->second;
    TreePtr tree = find(name, Syntax::Class);
    return tree ? read_class(name, *tree) : nullptr;
  }

 private:
  FunctionPtr function(const std::string& name) {
    if (auto found = functions_.find(name); found != functions_.end()) return found->second;
    TreePtr tree = find(name, Syntax::Def);
    if (!tree) return nullptr;
    FunctionPtr f = make(name, tree, nullptr);
    functions_[name] = f;
    return f;
  }

  FunctionPtr make(const std::string& name, const TreePtr& tree, const TypePtr& self) {
    auto f = std::make_shared<Function>();
    f->name = name;
    declare(*f, *tree, *this, self);
    for (size_t i = 0; i < tree->parameters.size(); ++i)
      if (const TreePtr& d = tree->parameters[i].default_value)
        f->parameters[i].default_value = literal(*d, f->parameters[i].type);
    if (self && self->cls->is_interface) return f;
    auto keep = shared_from_this();
    f->define = [keep, tree](Function& function) { jit::define(function, tree, *keep); };
    return f;
  }

  /// Defaults and enums' values are written as they are.
  Value literal(const Tree& t, const TypePtr& type) {
    switch (t.kind) {
      case Syntax::Number: {
        bool floating = t.text.find_first_of(".eE") != std::string::npos;
        return floating || (type && type->is(TypeKind::Float))
                   ? Value(std::strtod(t.text.c_str(), nullptr))
                   : Value(static_cast<int64_t>(std::strtoll(t.text.c_str(), nullptr, 10)));
      }
      case Syntax::String: return Value(t.text);
      case Syntax::Constant: return t.text == "None" ? Value() : Value(t.text == "True");
      case Syntax::Unary: {
        Value v = literal(*t.children[0], type);
        return v.is_int() ? Value(-v.to_int()) : Value(-v.to_double());
      }
      case Syntax::List: {
        TypePtr element = type && type->is(TypeKind::Optional) ? type->element() : type;
        std::vector<Value> items;
        for (const TreePtr& c : t.children)
          items.push_back(literal(*c, element && element->is(TypeKind::List) ? element->element() : nullptr));
        return make_list(element && element->is(TypeKind::List) ? element->element()
                         : items.empty()                        ? tensor_type()
                                                                : type_of(items[0]),
                         std::move(items));
      }
      case Syntax::Tuple: {
        std::vector<Value> items;
        for (const TreePtr& c : t.children) items.push_back(literal(*c, nullptr));
        return Value(std::move(items));
      }
      case Syntax::Call:
        if (t.children.size() == 2 && t.children[1]->kind == Syntax::String) {
          const std::string& text = t.children[1]->text;
          if (t.children[0]->kind == Syntax::Attribute) return Value(Device(text));
          return Value(std::strtod(text.c_str(), nullptr));
        }
        break;
      default: break;
    }
    fail_at(t, "this default cannot be read");
  }

  TypePtr read_class(const std::string& name, const Tree& tree) {
    std::string base = tree.children.empty() ? "" : tree.children[0]->text;
    check<ValueError>(++depth_ < 500, "the program's classes are nested too deeply");
    struct Leave {
      int& depth;
      ~Leave() { --depth; }
    } leave{depth_};
    if (base == "NamedTuple") return read_named_tuple(name, tree);
    if (base == "Enum") return read_enum(name, tree);
    auto cls = std::make_shared<ClassType>();
    cls->name = name;
    cls->is_interface = base == "Interface" || base == "ModuleInterface";
    cls->is_module = base == "Module" || base == "ModuleInterface";
    check<ValueError>(base.empty() || cls->is_interface || cls->is_module || base == "object", "class ", name,
                      " has the base '", base, "', which is not supported");
    TypePtr self = types_[name] = class_type(cls);
    read_attributes(*cls, tree);
    for (const TreePtr& s : tree.body)
      if (s->kind == Syntax::Def) cls->add_method(s->text, make(name + "." + s->text, s, self));
    return self;
  }

  TypePtr read_named_tuple(const std::string& name, const Tree& tree) {
    std::vector<std::string> fields;
    std::vector<TypePtr> elements;
    for (const TreePtr& s : tree.body)
      if (s->kind == Syntax::Annotated) {
        fields.push_back(s->children[0]->text);
        elements.push_back(resolve_type(*s->children[1], *this));
      }
    return types_[name] = named_tuple_type(name, fields, elements);
  }

  TypePtr read_enum(const std::string& name, const Tree& tree) {
    auto cls = std::make_shared<ClassType>();
    cls->name = name;
    cls->is_enum = true;
    for (const TreePtr& s : tree.body)
      if (s->kind == Syntax::Assign && s->children[0]->kind == Syntax::Name)
        cls->constants.emplace_back(s->children[0]->text, literal(*s->children[1], nullptr));
    check<ValueError>(!cls->constants.empty(), "the enum ", name, " has no members");
    cls->enum_value = type_of(cls->constants[0].second);
    return types_[name] = class_type(cls);
  }

  void read_attributes(ClassType& cls, const Tree& tree) {
    std::map<std::string, std::vector<std::string>> lists;  // __parameters__ and the like
    for (const TreePtr& s : tree.body)
      if (s->kind == Syntax::Assign && s->children[0]->kind == Syntax::Name && s->children[1]->kind == Syntax::List)
        for (const TreePtr& c : s->children[1]->children) lists[s->children[0]->text].push_back(c->text);
    cls.pre_hooks = lists["__forward_pre_hooks__"];
    cls.hooks = lists["__forward_hooks__"];
    auto among = [&](const char* list, const std::string& name) {
      return std::find(lists[list].begin(), lists[list].end(), name) != lists[list].end();
    };
    auto add = [&](const std::string& attribute, const Tree& type) {
      cls.add_attribute(
          {attribute, resolve_type(type, *this), among("__parameters__", attribute), among("__buffers__", attribute)});
    };
    for (const TreePtr& s : tree.body) {
      if (s->kind == Syntax::Annotated && s->children[0]->kind == Syntax::Name && s->children.size() == 2)
        add(s->children[0]->text, *s->children[1]);
      else if (s->kind == Syntax::Annotated && s->children.size() == 3 && s->children[0]->kind == Syntax::Name)
        cls.constants.emplace_back(s->children[0]->text, literal(*s->children[2], nullptr));
      else if (s->kind == Syntax::Assign && s->children[0]->kind == Syntax::Subscript)
        add(s->children[0]->children[1]->text, *s->children[1]);
    }
  }

  TreePtr find(const std::string& name, Syntax kind) {
    std::string path = "code/" + name.substr(0, name.rfind('.'));
    for (char& c : path)
      if (c == '.') c = '/';
    path += ".py";
    auto [found, fresh] = files_.try_emplace(path);
    if (fresh) {
      SourcePtr text = path == kProfiler
                           ? std::make_shared<SourceText>(SourceText{.text = kProfilerSource, .file = path})
                           : load_(path);
      if (text) found->second = parse(text);
    }
    std::string last = name.substr(name.rfind('.') + 1);
    for (const TreePtr& t : found->second)
      if (t->kind == kind && t->text == last) return t;
    return nullptr;
  }

  Load load_;
  std::vector<Value> constants_;
  int64_t version_;
  std::map<std::string, std::vector<TreePtr>> files_;
  std::map<std::string, TypePtr> types_;
  std::map<std::string, FunctionPtr> functions_;
  int depth_ = 0;
};

SourceReader::SourceReader(Load load, std::vector<Value> constants, int64_t version)
    : implementation_(std::make_shared<Implementation>(std::move(load), std::move(constants), version)) {}
SourceReader::~SourceReader() = default;
TypePtr SourceReader::type(const std::string& name) { return implementation_->type(name); }

}  // namespace umbra::jit
