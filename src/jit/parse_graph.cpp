// The text of graphs, read back.
#include <algorithm>
#include <charconv>

#include "jit/builtins.h"
#include "umbra/generated/functions.h"
#include "umbra/jit/objects.h"

namespace umbra::jit {
namespace {

class GraphParser {
 public:
  explicit GraphParser(std::string_view text) : text_(text), graph_(std::make_shared<Graph>()) {}

  std::shared_ptr<Graph> run() {
    expect("graph");
    for (auto& [name, type] : typed_list('(', ')')) define(graph_->add_input("", type), name);
    expect(":");
    nodes(graph_->block());
    expect("return");
    graph_->block().outputs = values();
    skip();
    if (at_ != text_.size()) refuse("nothing after the graph's return");
    return graph_;
  }

 private:
  // ---- words ----
  [[noreturn]] void refuse(const std::string& wanted) {
    size_t line = static_cast<size_t>(std::count(text_.begin(), text_.begin() + static_cast<long>(at_), '\n')) + 1;
    std::string_view rest = text_.substr(at_, std::min<size_t>(text_.find('\n', at_), text_.size()) - at_);
    fail<ValueError>("the text of a graph: expected ", wanted, " in line ", line, ", at '", rest.substr(0, 60), "'");
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool is(std::string_view what) {
    skip();
    return text_.substr(at_).starts_with(what);
  }
  bool take(std::string_view what) {
    if (!is(what)) return false;
    at_ += what.size();
    return true;
  }
  void expect(std::string_view what) {
    if (!take(what)) refuse("'" + std::string(what) + "'");
  }
  template <class F> std::string word(F&& belongs) {
    skip();
    size_t begin = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    if (begin == at_) refuse("a name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string name() {
    return word([](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ':'; });
  }
  std::string value_name() {
    expect("%");
    return word([](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; });
  }
  int64_t integer() {
    skip();
    int64_t out = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), out);
    if (error != std::errc()) refuse("a number");
    at_ = static_cast<size_t>(end - text_.data());
    return out;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> out;
    expect("[");
    while (!take("]")) {
      out.push_back(integer());
      take(",");
    }
    return out;
  }

  // ---- types ----
  TypePtr type() {
    check<ValueError>(++depth_ < 200, "the text of a graph: types are nested too deeply");
    TypePtr out = plain_type();
    while (true) {
      if (take("[]")) out = list_type(out);
      else if (take("?")) out = optional_type(out);
      else break;
    }
    --depth_;
    return out;
  }
  std::vector<TypePtr> types() {
    std::vector<TypePtr> out;
    expect("(");
    while (!take(")")) {
      out.push_back(type());
      if (!is(")")) expect(",");
    }
    return out;
  }
  TypePtr plain_type() {
    if (is("(")) return tuple_type(types());
    std::string word = name();
    if (word == "Dict") {
      std::vector<TypePtr> parts = types();
      if (parts.size() != 2) refuse("a dict's two types");
      return dict_type(parts[0], parts[1]);
    }
    if (word == "Union") return union_type(types());
    if (word == "Future") return future_type(types().at(0));
    if (word == "Scalar") return simple_type(TypeKind::Number);
    if (word == "None") return simple_type(TypeKind::None);
    if ((word == "Enum" || word == "InterfaceType") && take("<")) {
      bool is_enum = word == "Enum";
      word = name();
      expect(">");
      return class_named(word, is_enum, !is_enum);
    }
    for (int k = 0; k <= static_cast<int>(TypeKind::Function); ++k)
      if (TypePtr t = simple_type(static_cast<TypeKind>(k)); t && t->text() == word) return t;
    if (is("(")) return tensor_with_details(word);
    check<ValueError>(word.starts_with("__torch__."), "the text of a graph: unknown type '", word, "'");
    return class_named(word, false, false);
  }
  /// Of a class only the name is written.
  TypePtr class_named(const std::string& name, bool is_enum, bool is_interface) {
    TypePtr& known = classes_[name];
    if (!known) {
      auto cls = std::make_shared<ClassType>();
      cls->name = name;
      cls->is_enum = is_enum;
      cls->is_interface = is_interface;
      known = class_type(cls);
    }
    return known;
  }
  TypePtr tensor_with_details(const std::string& dtype) {
    auto out = std::make_shared<Type>();
    for (int d = 0; d < kDTypeCount && !out->tensor.dtype; ++d)
      if (dtype == kernel_name(static_cast<DType>(d))) out->tensor.dtype = static_cast<DType>(d);
    check<ValueError>(out->tensor.dtype.has_value(), "the text of a graph: unknown type '", dtype, "'");
    expect("(");
    std::vector<int64_t> sizes;
    while (!take(")")) {
      if (take("strides=")) out->tensor.strides = integers();
      else if (take("requires_grad=")) out->tensor.requires_grad = integer() != 0;
      else if (take("device=")) out->tensor.device = Device(name());
      else sizes.push_back(integer());
      take(",");
    }
    bool whole = out->tensor.strides || sizes.empty();
    if (whole) out->tensor.sizes = sizes;
    if (whole && !out->tensor.strides) out->tensor.strides = std::vector<int64_t>{};
    return out;
  }

  // ---- values ----
  void define(Variable* v, const std::string& name) {
    check<ValueError>(known_.emplace(name, v).second, "the text of a graph: %", name, " is there twice");
    v->set_name(name);
  }
  std::vector<std::pair<std::string, TypePtr>> typed_list(char open, char close) {
    std::vector<std::pair<std::string, TypePtr>> out;
    expect(std::string_view(&open, 1));
    while (!take(std::string_view(&close, 1))) {
      std::string called = value_name();
      expect(":");
      out.emplace_back(called, type());
      if (!is(std::string_view(&close, 1))) expect(",");
    }
    return out;
  }
  Variables values() {
    Variables out;
    expect("(");
    while (!take(")")) {
      std::string called = value_name();
      auto found = known_.find(called);
      check<ValueError>(found != known_.end(), "the text of a graph: %", called, " is read before it is there");
      out.push_back(found->second);
      if (!is(")")) expect(",");
    }
    return out;
  }

  // ---- attributes ----
  std::string string() {
    expect("\"");
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c != '\\' || at_ == text_.size()) {
        out += c;
        continue;
      }
      char next = text_[at_++];
      if (next >= '0' && next <= '7' && at_ + 1 < text_.size()) {
        out += static_cast<char>((next - '0') * 64 + (text_[at_] - '0') * 8 + (text_[at_ + 1] - '0'));
        at_ += 2;
      } else {
        out += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
      }
    }
    expect("\"");
    return out;
  }
  Value number(const TypePtr& type) {
    skip();
    size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.' ||
                                  text_[at_] == '-' || text_[at_] == '+'))
      ++at_;
    std::string word(text_.substr(begin, at_ - begin));
    bool floating = word.find_first_of(".en") != std::string::npos;
    char* end = nullptr;
    double value = std::strtod(word.c_str(), &end);
    if (word.empty() || *end != 0) refuse("a number");
    if (type && type->is(TypeKind::Bool)) return Value(value != 0);
    if (floating || (type && type->is(TypeKind::Float))) return Value(value);
    return Value(static_cast<int64_t>(std::strtoll(word.c_str(), nullptr, 10)));
  }
  Value attribute(const TypePtr& type) {
    check<ValueError>(!is("<Tensor>"),
                      "the text of a graph has no elements of its tensors: a graph with such constants "
                      "cannot be read");
    if (is("\"")) {
      std::string text = string();
      return type && type->is(TypeKind::Device) ? Value(Device(text)) : Value(text);
    }
    if (take("{")) {
      Value item = number(nullptr);
      expect("}");
      DType dtype = type && type->tensor.dtype ? *type->tensor.dtype : DType::Float32;
      return Value(full({}, item.to_scalar(), {.dtype = dtype}));
    }
    if (take("[")) {
      std::vector<Value> items;
      TypePtr element = type && type->is(TypeKind::List) ? type->element() : nullptr;
      while (!take("]")) {
        items.push_back(attribute(element));
        take(",");
      }
      return make_list(element ? element : items.empty() ? tensor_type() : type_of(items[0]), std::move(items));
    }
    if (take("annotate(")) {  // an empty container
      TypePtr known = type;
      while (at_ < text_.size() && text_[at_] != ')') ++at_;
      expect(")");
      return make_list(known && known->is(TypeKind::List) ? known->element() : tensor_type(), {});
    }
    return number(type);
  }

  // ---- nodes ----
  bool ends() { return is("return") || is("->"); }
  void nodes(Block& block) {
    check<ValueError>(++depth_ < 200, "the text of a graph: blocks are nested too deeply");
    while (!ends()) {
      if (at_ == text_.size()) refuse("a node");
      graph_->set_current(&block);
      node();
    }
    --depth_;
  }
  void node() {
    std::vector<std::pair<std::string, TypePtr>> outputs;
    if (is("%")) {
      do {
        std::string called = value_name();
        expect(":");
        outputs.emplace_back(called, type());
      } while (take(","));
      expect("=");
    }
    check<ValueError>(!is("^"), "the text of a graph calls Python, which cannot be read");
    std::string kind = name();
    Node::Attributes attributes;
    if (take("["))
      while (!take("]")) {
        std::string key = name();
        expect("=");
        attributes.emplace_back(key, attribute(outputs.empty() || key == "name" ? nullptr : outputs[0].second));
        take(",");
      }
    Node* made = graph_->insert(kind, values(), {});
    made->attributes = std::move(attributes);
    for (auto& [called, t] : outputs) define(made->add_output(t), called);
    read_place(*made);
    choose_operator(*made);
    for (size_t i = 0; is("block" + std::to_string(i) + "("); ++i) {
      expect("block" + std::to_string(i));
      Block* inner = made->add_block();
      for (auto& [called, t] : typed_list('(', ')')) define(inner->add_input(t), called);
      expect(":");
      nodes(*inner);
      expect("->");
      inner->outputs = values();
    }
  }
  void read_place(Node& made) {
    size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view rest = text_.substr(at_, end - at_);
    if (size_t comment = rest.find(" # "); comment != std::string_view::npos) {
      made.source = std::string(rest.substr(comment + 3));
      rest = rest.substr(0, comment);
    }
    static constexpr std::string_view kScope = ", scope: ";
    if (rest.starts_with(kScope)) made.scope = std::string(rest.substr(kScope.size()));
    else if (rest.find_first_not_of(" \r") != std::string_view::npos) refuse("the end of the line");
    at_ = end;
  }
  /// The overload that takes values of these types: texts have none.
  static void choose_operator(Node& made) {
    std::vector<TypePtr> types;
    for (Variable* v : made.inputs) types.push_back(v->type());
    TypePtr result;
    if (find_builtin(made.kind(), types, &result)) return;
    for (const Operator* op : operator_overloads(made.kind())) {
      const auto& arguments = op->schema().arguments;
      bool fits = arguments.size() == types.size() && op->return_count() == made.outputs().size();
      for (size_t i = 0; fits && i < types.size(); ++i) fits = takes(type_of_schema(arguments[i].type), types[i]);
      if (fits) {
        made.op = op;
        return;
      }
    }
    check<ValueError>(operator_overloads(made.kind()).empty(), "the text of a graph: no overload of ", made.kind(),
                      " takes these arguments");
  }
  static bool takes(const TypePtr& wanted, const TypePtr& given) {
    if (is_subtype(without_details(given), wanted)) return true;
    const TypePtr& inner = wanted->is(TypeKind::Optional) ? wanted->element() : wanted;
    return inner->is(TypeKind::List) && given->is(TypeKind::List) &&
           is_subtype(without_details(given->element()), inner->element());
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::shared_ptr<Graph> graph_;
  std::unordered_map<std::string, Variable*> known_;
  std::unordered_map<std::string, TypePtr> classes_;
};

}  // namespace

std::shared_ptr<Graph> parse_graph(std::string_view text) { return GraphParser(text).run(); }

}  // namespace umbra::jit
