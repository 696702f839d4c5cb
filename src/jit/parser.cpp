// From words to trees: recursive descent over the part of Python's grammar that programs use.
#include "jit/lexer.h"

namespace umbra::jit {
namespace {

constexpr int kDeepest = 200;

class Parser {
 public:
  explicit Parser(const SourcePtr& source) : source_(source), tokens_(tokenize(source)) {}

  std::vector<TreePtr> module() {
    std::vector<TreePtr> out;
    bool indented = take(Token::Kind::Indent);  // methods come as they stand in their class
    while (!is(Token::Kind::End)) {
      if (indented && take(Token::Kind::Dedent)) break;
      statement(out);
    }
    return out;
  }
  TreePtr single_expression() {
    take(Token::Kind::Indent);
    TreePtr out = expressions();
    take(Token::Kind::Newline);
    take(Token::Kind::Dedent);
    if (!is(Token::Kind::End)) refuse("expected one expression");
    return out;
  }

 private:
  // ---- tokens ----
  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is(Token::Kind kind) const { return now().kind == kind; }
  bool is(const char* text) const {
    return (now().kind == Token::Kind::Symbol || now().kind == Token::Kind::Name) && now().text == text;
  }
  bool take(Token::Kind kind) { return is(kind) && (++at_, true); }
  bool take(const char* text) { return is(text) && (++at_, true); }
  void expect(const char* text) {
    if (!take(text)) refuse(concat("expected '", text, "'"));
  }
  std::string name() {
    if (!is(Token::Kind::Name)) refuse("expected a name");
    return tokens_[at_++].text;
  }
  [[noreturn]] void refuse(const std::string& why) {
    throw CompileError(concat(why, ":\n", SourceRange{source_, now().begin, now().end}.pointed()));
  }
  [[noreturn]] void unsupported(const std::string& what, size_t begin, size_t length = 1) {
    throw UnsupportedSyntax(concat(what, " aren't supported:\n", SourceRange{source_, begin, begin + length}.pointed()),
                            true);
  }
  [[noreturn]] void misused(const std::string& what, size_t begin, size_t end) {
    throw UnsupportedSyntax(concat(what, ":\n", SourceRange{source_, begin, end}.pointed()), false);
  }
  [[noreturn]] void variable_arguments(size_t begin, size_t end) {
    misused("Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults",
            begin, end);
  }
  struct Depth {
    explicit Depth(Parser& p) : parser(p) {
      if (++parser.depth_ > kDeepest) parser.refuse("the program is nested too deeply");
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  TreePtr make(Syntax kind, size_t begin, std::vector<TreePtr> children = {}, std::string text = "") {
    auto tree = std::make_shared<Tree>();
    tree->kind = kind;
    tree->children = std::move(children);
    tree->text = std::move(text);
    tree->source = source_;
    tree->begin = begin;
    tree->end = at_ > 0 ? std::max(tokens_[at_ - 1].end, begin) : begin;
    return tree;
  }

  // ---- statements ----
  std::vector<TreePtr> block() {
    expect(":");
    std::vector<TreePtr> out;
    if (!take(Token::Kind::Newline)) {
      simple_line(out);
      return out;
    }
    if (!take(Token::Kind::Indent)) refuse("expected an indented block");
    while (!take(Token::Kind::Dedent)) {
      if (is(Token::Kind::End)) break;
      statement(out);
    }
    return out;
  }

  void statement(std::vector<TreePtr>& out) {
    Depth guard(*this);
    size_t begin = now().begin;
    if (is("@") || is("def") || is("class") || is("async")) return void(out.push_back(definition()));
    if (take("if")) return void(out.push_back(if_statement(begin)));
    if (take("while")) {
      TreePtr condition = expression();
      TreePtr tree = make(Syntax::While, begin, {condition});
      tree->body = block();
      if (is("else")) misused("else branches of while loops aren't supported", begin, begin + 5);
      return void(out.push_back(tree));
    }
    if (take("for")) {
      TreePtr target = targets();
      expect("in");
      TreePtr iterable = expressions();
      TreePtr tree = make(Syntax::For, begin, {target, iterable});
      tree->body = block();
      if (is("else")) misused("else branches of for loops aren't supported", begin, begin + 3);
      return void(out.push_back(tree));
    }
    if (take("with")) {
      std::vector<TreePtr> items;
      do {
        items.push_back(expression());
        if (take("as")) items.back() = make(Syntax::Keyword, begin, {items.back()}, name());
      } while (take(","));
      TreePtr tree = make(Syntax::With, begin, items);
      tree->body = block();
      return void(out.push_back(tree));
    }
    if (is("try")) unsupported("try blocks", begin, 3);
    bool is_match = is("match") && (next().kind == Token::Kind::Name || next().kind == Token::Kind::Number ||
                                    next().kind == Token::Kind::String);
    if (is_match) unsupported("match statements", begin, 5);
    if (is("global") || is("nonlocal")) unsupported(now().text + " variables", begin, now().text.size());
    simple_line(out);
  }

  TreePtr if_statement(size_t begin) {
    TreePtr condition = expression();
    TreePtr tree = make(Syntax::If, begin, {condition});
    tree->body = block();
    size_t second = now().begin;
    if (take("elif")) tree->orelse.push_back(if_statement(second));
    else if (take("else")) tree->orelse = block();
    return tree;
  }

  void simple_line(std::vector<TreePtr>& out) {
    do {
      if (is(Token::Kind::Newline)) break;
      out.push_back(simple());
    } while (take(";"));
    if (!take(Token::Kind::Newline) && !is(Token::Kind::End) && !is(Token::Kind::Dedent)) refuse("invalid syntax");
  }

  TreePtr simple() {
    size_t begin = now().begin;
    if (take("pass")) return make(Syntax::Pass, begin);
    if (take("break")) return make(Syntax::Break, begin);
    if (take("continue")) return make(Syntax::Continue, begin);
    if (take("return")) {
      std::vector<TreePtr> value;
      if (!is(Token::Kind::Newline) && !is(";") && !is(Token::Kind::End)) value.push_back(expressions());
      return make(Syntax::Return, begin, value);
    }
    if (take("assert")) {
      std::vector<TreePtr> parts{expression()};
      if (take(",")) parts.push_back(expression());
      return make(Syntax::Assert, begin, parts);
    }
    if (take("raise")) {
      std::vector<TreePtr> parts;
      if (!is(Token::Kind::Newline)) parts.push_back(expression());
      if (take("from")) expression();
      return make(Syntax::Raise, begin, parts);
    }
    if (take("del")) return make(Syntax::Delete, begin, {targets()});
    if (is("import") || is("from")) {
      while (!is(Token::Kind::Newline) && !is(Token::Kind::End)) ++at_;
      return make(Syntax::Import, begin);
    }
    if (is("yield")) unsupported("Yield", begin);
    if (is("global") || is("nonlocal")) unsupported(now().text + " variables", begin, now().text.size());
    return assignment(begin);
  }

  TreePtr assignment(size_t begin) {
    TreePtr first = expressions();
    static const char* const augmented[] = {
        "+=", "-=", "*=", "/=", "%=", "//=", "**=", "&=", "|=", "^=", "<<=", ">>=", "@="};
    for (const char* op : augmented)
      if (take(op)) {
        std::string text(op);
        return make(Syntax::Augmented, begin, {first, expressions()}, text.substr(0, text.size() - 1));
      }
    if (take(":")) {
      std::vector<TreePtr> parts{first, expression()};
      if (take("=")) parts.push_back(expressions());
      return make(Syntax::Annotated, begin, parts);
    }
    if (!is("=")) return make(Syntax::Expression, begin, {first});
    std::vector<TreePtr> parts{first};
    while (take("=")) parts.push_back(expressions());
    return make(Syntax::Assign, begin, parts);
  }

  TreePtr definition() {
    std::vector<TreePtr> decorators;
    while (take("@")) {
      decorators.push_back(expression());
      take(Token::Kind::Newline);
    }
    size_t begin = now().begin;
    if (is("async")) unsupported("async functions", begin, 5);
    TreePtr tree;
    if (take("class")) {
      std::string called = name();
      std::vector<TreePtr> bases;
      if (take("(")) {
        while (!take(")")) {
          bases.push_back(argument());
          take(",");
        }
      }
      tree = make(Syntax::Class, begin, bases, called);
    } else {
      expect("def");
      tree = make(Syntax::Def, begin, {}, name());
      expect("(");
      parameters(*tree);
      if (take("->")) tree->returns = expression();
    }
    tree->decorators = std::move(decorators);
    if (tree->kind == Syntax::Def) tree->type_comment = type_comment(*source_, now().end);
    tree->body = block();
    return tree;
  }

  void parameters(Tree& def) {
    bool keyword_only = false;
    while (!take(")")) {
      size_t begin = now().begin;
      if (take("*")) {
        if (!is(",")) variable_arguments(begin, now().end);
        keyword_only = true;
      } else if (is("**")) {
        variable_arguments(begin + 1, next().end);
      } else if (!take("/")) {
        ParameterTree p;
        p.name = name();
        p.keyword_only = keyword_only;
        if (take(":")) p.annotation = expression();
        if (take("=")) p.default_value = expression();
        if (p.default_value && keyword_only) variable_arguments(p.default_value->begin, p.default_value->end);
        def.parameters.push_back(std::move(p));
      }
      if (!is(")")) expect(",");
      size_t end = tokens_[at_ - 1].end;
      if (!def.parameters.empty() && source_->text.find('\n', end) < now().begin)
        def.parameters.back().comment = type_comment(*source_, end, 1);
    }
  }

  // ---- expressions ----
  TreePtr expressions() {
    size_t begin = now().begin;
    TreePtr first = starred();
    if (!is(",")) return first;
    std::vector<TreePtr> items{first};
    while (take(",")) {
      if (ends_tuple()) break;
      items.push_back(starred());
    }
    return make(Syntax::Tuple, begin, items);
  }
  bool ends_tuple() const {
    return is(Token::Kind::Newline) || is(Token::Kind::End) || is(")") || is("]") || is("}") || is("=") || is(":") ||
           is(";") || is("in");
  }
  TreePtr starred() {
    size_t begin = now().begin;
    if (take("*")) return make(Syntax::Starred, begin, {binary(0)});
    return expression();
  }
  TreePtr targets() {
    size_t begin = now().begin;
    std::vector<TreePtr> items{postfix()};
    if (!is(",")) return items[0];
    while (take(",")) {
      if (ends_tuple()) break;
      items.push_back(postfix());
    }
    return make(Syntax::Tuple, begin, items);
  }

  TreePtr expression() {
    Depth guard(*this);
    size_t begin = now().begin;
    if (is("lambda")) unsupported("Lambda", begin);
    if (is("yield")) unsupported("Yield", begin);
    if (is("await")) unsupported("Await", begin);
    TreePtr value = disjunction();
    if (take("if")) {
      TreePtr condition = disjunction();
      expect("else");
      return make(Syntax::IfElse, begin, {condition, value, expression()});
    }
    if (is(":=")) unsupported("NamedExpr", begin);
    return value;
  }
  TreePtr disjunction() {
    size_t begin = now().begin;
    TreePtr left = conjunction();
    while (take("or")) {
      TreePtr right = conjunction();
      left = make(Syntax::Or, begin, {left, right});
    }
    return left;
  }
  TreePtr conjunction() {
    size_t begin = now().begin;
    TreePtr left = negation();
    while (take("and")) {
      TreePtr right = negation();
      left = make(Syntax::And, begin, {left, right});
    }
    return left;
  }
  TreePtr negation() {
    Depth guard(*this);
    size_t begin = now().begin;
    if (take("not")) {
      TreePtr inner = negation();
      return make(Syntax::Not, begin, {inner});
    }
    return comparison();
  }
  std::string comparison_operator() {
    for (const char* op : {"==", "!=", "<=", ">=", "<", ">", "in"})
      if (take(op)) return op;
    if (take("is")) return take("not") ? "is not" : "is";
    if (is("not") && next().text == "in") {
      at_ += 2;
      return "not in";
    }
    return "";
  }
  TreePtr comparison() {
    size_t begin = now().begin;
    TreePtr left = binary(0), chain;
    for (std::string op; !(op = comparison_operator()).empty();) {
      TreePtr right = binary(0);
      TreePtr one = make(Syntax::Compare, begin, {left, right}, op);
      chain = chain ? make(Syntax::And, begin, {chain, one}) : one;
      left = right;
    }
    return chain ? chain : left;
  }

  TreePtr binary(size_t level) {
    static const std::vector<std::vector<const char*>> levels = {{"|"},        {"^"},      {"&"},
                                                                 {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"}};
    if (level == levels.size()) return unary();
    size_t begin = now().begin;
    TreePtr left = binary(level + 1);
    while (true) {
      const char* found = nullptr;
      for (const char* op : levels[level])
        if (now().kind == Token::Kind::Symbol && now().text == op) found = op;
      if (!found) return left;
      ++at_;
      TreePtr right = binary(level + 1);
      left = make(Syntax::Binary, begin, {left, right}, found);
    }
  }
  TreePtr unary() {
    Depth guard(*this);
    size_t begin = now().begin;
    for (const char* op : {"-", "+", "~"})
      if (take(op)) {
        TreePtr inner = unary();
        return make(Syntax::Unary, begin, {inner}, op);
      }
    return power();
  }
  TreePtr power() {
    size_t begin = now().begin;
    TreePtr base = postfix();
    if (!take("**")) return base;
    TreePtr exponent = unary();
    return make(Syntax::Binary, begin, {base, exponent}, "**");
  }

  TreePtr postfix() {
    size_t begin = now().begin;
    TreePtr value = atom();
    while (true) {
      if (take(".")) {
        std::string attribute = name();
        value = make(Syntax::Attribute, begin, {value}, attribute);
      } else if (take("(")) {
        std::vector<TreePtr> parts{value};
        while (!take(")")) {
          parts.push_back(argument());
          if (!is(")")) expect(",");
        }
        value = make(Syntax::Call, begin, parts);
      } else if (take("[")) {
        TreePtr index = subscript();
        expect("]");
        value = make(Syntax::Subscript, begin, {value, index});
      } else {
        return value;
      }
    }
  }
  TreePtr argument() {
    size_t begin = now().begin;
    if (take("*")) return make(Syntax::Starred, begin, {expression()});
    if (is("**")) misused("keyword-arg expansion is not supported", begin, begin + 2);
    if (is(Token::Kind::Name) && next().kind == Token::Kind::Symbol && next().text == "=") {
      std::string keyword = name();
      expect("=");
      TreePtr value = expression();
      return make(Syntax::Keyword, begin, {value}, keyword);
    }
    TreePtr value = expression();
    if (is("for")) return comprehension(Syntax::ListComp, begin, {value});  // a generator, as any(...) takes it
    return value;
  }
  TreePtr subscript() {
    size_t begin = now().begin;
    TreePtr first = slice_or_index();
    if (!is(",")) return first;
    std::vector<TreePtr> items{first};
    while (take(",")) {
      if (is("]")) break;
      items.push_back(slice_or_index());
    }
    return make(Syntax::Tuple, begin, items);
  }
  TreePtr slice_or_index() {
    size_t begin = now().begin;
    auto ends = [&] { return is(":") || is("]") || is(","); };
    if (is("]") || is(",")) refuse("expected an index");
    TreePtr start = ends() ? nullptr : starred();
    if (!is(":")) return start;
    std::vector<TreePtr> parts{start, nullptr, nullptr};
    expect(":");
    if (!ends()) parts[1] = expression();
    if (take(":") && !ends()) parts[2] = expression();
    return make(Syntax::Slice, begin, parts);
  }

  TreePtr comprehension(Syntax kind, size_t begin, std::vector<TreePtr> parts) {
    expect("for");
    parts.push_back(targets());
    expect("in");
    parts.push_back(disjunction());
    if (is("if")) misused("Comprehension ifs are not supported yet", begin, begin + 1);
    if (is("for")) misused("Only a single generator is currently supported", begin, begin + 1);
    return make(kind, begin, std::move(parts));
  }

  TreePtr atom() {
    Depth guard(*this);
    size_t begin = now().begin;
    if (is(Token::Kind::Number)) return make(Syntax::Number, begin, {}, tokens_[at_++].text);
    if (is(Token::Kind::String)) return strings();
    if (is("...")) {
      ++at_;
      return make(Syntax::Constant, begin, {}, "...");
    }
    if (take("(")) {
      if (take(")")) return make(Syntax::Tuple, begin);
      TreePtr inner = expressions();
      if (is("for")) inner = comprehension(Syntax::ListComp, begin, {inner});
      expect(")");
      return inner;
    }
    if (take("[")) {
      std::vector<TreePtr> items;
      while (!take("]")) {
        items.push_back(starred());
        if (is("for")) {
          TreePtr tree = comprehension(Syntax::ListComp, begin, items);
          expect("]");
          return tree;
        }
        if (!is("]")) expect(",");
      }
      return make(Syntax::List, begin, items);
    }
    if (take("{")) return braces(begin);
    if (is(Token::Kind::Name)) {
      static const char* const keywords[] = {"lambda", "yield",  "await", "in",   "is",    "and",   "or",
                                             "not",    "if",     "else",  "for",  "while", "def",   "class",
                                             "return", "import", "from",  "with", "try",   "except"};
      for (const char* k : keywords)
        if (now().text == k) refuse("invalid syntax");
      std::string text = name();
      bool constant = text == "True" || text == "False" || text == "None";
      return make(constant ? Syntax::Constant : Syntax::Name, begin, {}, text);
    }
    refuse("invalid syntax");
  }

  TreePtr braces(size_t begin) {
    std::vector<TreePtr> items;
    while (!take("}")) {
      if (is("**")) misused("Dict expansion (e.g. `{**dict}`) is not supported", begin, begin + 1);
      TreePtr key = expression();
      if (!is(":")) unsupported("Set", begin);
      expect(":");
      items.push_back(key);
      items.push_back(expression());
      if (is("for")) {
        TreePtr tree = comprehension(Syntax::DictComp, begin, items);
        expect("}");
        return tree;
      }
      if (!is("}")) expect(",");
    }
    return make(Syntax::Dict, begin, items);
  }

  // ---- strings ----
  TreePtr strings() {
    size_t begin = now().begin;
    std::vector<TreePtr> parts;
    bool format = false;
    while (is(Token::Kind::String)) {
      Token token = tokens_[at_++];
      if (token.prefix.find('b') != std::string::npos) unsupported("bytes", begin);
      bool formatted = token.prefix.find('f') != std::string::npos;
      format |= formatted;
      if (formatted) format_parts(token, parts);
      else parts.push_back(make(Syntax::String, begin, {}, token.text));
    }
    if (format) return make(Syntax::Format, begin, parts);
    std::string text;
    for (const TreePtr& p : parts) text += p->text;
    return make(Syntax::String, begin, {}, text);
  }

  /// Where the expression of an f-string's field ends: at its brace, or at the mark of a conversion or a format. Those
  /// inside brackets and strings belong to the expression.
  static size_t end_of_field(const std::string& s, size_t i) {
    int depth = 0;
    for (char quote = 0; i < s.size(); ++i) {
      char c = s[i];
      if (quote) {
        if (c == quote) quote = 0;
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '(' || c == '[' || c == '{') {
        ++depth;
      } else if (depth == 0 && (c == '}' || c == ':' || (c == '!' && s.substr(i, 2) != "!="))) {
        return i;
      } else if (c == ')' || c == ']' || c == '}') {
        --depth;
      }
    }
    return std::string::npos;
  }

  void format_parts(const Token& token, std::vector<TreePtr>& parts) {
    const std::string& s = token.text;
    std::string plain;
    for (size_t i = 0; i < s.size(); ++i) {
      if ((s[i] == '{' || s[i] == '}') && i + 1 < s.size() && s[i + 1] == s[i]) {
        plain += s[i++];
        continue;
      }
      if (s[i] != '{') {
        plain += s[i];
        continue;
      }
      size_t close = end_of_field(s, i + 1);
      if (close == std::string::npos) refuse("an f-string whose braces do not match");
      if (s[close] == '!') misused("Don't support conversion in JoinedStr", token.begin, token.begin + 1);
      if (s[close] == ':') misused("Don't support formatting in JoinedStr", token.begin, token.begin + 1);
      std::string inner = s.substr(i + 1, close - i - 1);
      parts.push_back(make(Syntax::String, token.begin, {}, plain));
      plain.clear();
      auto text = std::make_shared<SourceText>(SourceText{inner, source_->file, source_->first_line, 0, nullptr});
      TreePtr value = parse_expression(text);
      parts.push_back(value);
      i = close;
    }
    if (!plain.empty()) parts.push_back(make(Syntax::String, token.begin, {}, plain));
  }

  SourcePtr source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<TreePtr> parse(const SourcePtr& source) { return Parser(source).module(); }
TreePtr parse_expression(const SourcePtr& source) { return Parser(source).single_expression(); }

}  // namespace umbra::jit
