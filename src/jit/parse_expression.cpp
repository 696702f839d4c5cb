// Expressions, from words to trees.
#include "jit/parser.h"

namespace umbra::jit {

TreePtr ExpressionParser::single_expression() {
  take(Token::Kind::Indent);
  TreePtr out = expressions();
  take(Token::Kind::Newline);
  take(Token::Kind::Dedent);
  if (!is(Token::Kind::End)) refuse("expected one expression");
  return out;
}

TreePtr ExpressionParser::expressions() {
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

bool ExpressionParser::ends_tuple() const {
  return is(Token::Kind::Newline) || is(Token::Kind::End) || is(")") || is("]") || is("}") || is("=") || is(":") ||
         is(";") || is("in");
}

TreePtr ExpressionParser::starred() {
  size_t begin = now().begin;
  if (take("*")) return make(Syntax::Starred, begin, {binary(0)});
  return expression();
}

TreePtr ExpressionParser::targets() {
  size_t begin = now().begin;
  std::vector<TreePtr> items{postfix()};
  if (!is(",")) return items[0];
  while (take(",")) {
    if (ends_tuple()) break;
    items.push_back(postfix());
  }
  return make(Syntax::Tuple, begin, items);
}

TreePtr ExpressionParser::expression() {
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

TreePtr ExpressionParser::disjunction() {
  size_t begin = now().begin;
  TreePtr left = conjunction();
  while (take("or")) {
    TreePtr right = conjunction();
    left = make(Syntax::Or, begin, {left, right});
  }
  return left;
}

TreePtr ExpressionParser::conjunction() {
  size_t begin = now().begin;
  TreePtr left = negation();
  while (take("and")) {
    TreePtr right = negation();
    left = make(Syntax::And, begin, {left, right});
  }
  return left;
}

TreePtr ExpressionParser::negation() {
  Depth guard(*this);
  size_t begin = now().begin;
  if (take("not")) {
    TreePtr inner = negation();
    return make(Syntax::Not, begin, {inner});
  }
  return comparison();
}

std::string ExpressionParser::comparison_operator() {
  for (const char* op : {"==", "!=", "<=", ">=", "<", ">", "in"})
    if (take(op)) return op;
  if (take("is")) return take("not") ? "is not" : "is";
  if (is("not") && next().text == "in") {
    at_ += 2;
    return "not in";
  }
  return "";
}

TreePtr ExpressionParser::comparison() {
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

TreePtr ExpressionParser::binary(size_t level) {
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

TreePtr ExpressionParser::unary() {
  Depth guard(*this);
  size_t begin = now().begin;
  for (const char* op : {"-", "+", "~"})
    if (take(op)) {
      TreePtr inner = unary();
      return make(Syntax::Unary, begin, {inner}, op);
    }
  return power();
}

TreePtr ExpressionParser::power() {
  size_t begin = now().begin;
  TreePtr base = postfix();
  if (!take("**")) return base;
  TreePtr exponent = unary();
  return make(Syntax::Binary, begin, {base, exponent}, "**");
}

TreePtr ExpressionParser::postfix() {
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

TreePtr ExpressionParser::argument() {
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

TreePtr ExpressionParser::subscript() {
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

TreePtr ExpressionParser::slice_or_index() {
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

TreePtr ExpressionParser::comprehension(Syntax kind, size_t begin, std::vector<TreePtr> parts) {
  expect("for");
  parts.push_back(targets());
  expect("in");
  parts.push_back(disjunction());
  if (is("if")) misused("Comprehension ifs are not supported yet", begin, begin + 1);
  if (is("for")) misused("Only a single generator is currently supported", begin, begin + 1);
  return make(kind, begin, std::move(parts));
}

TreePtr ExpressionParser::atom() {
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

TreePtr ExpressionParser::braces(size_t begin) {
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
TreePtr ExpressionParser::strings() {
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

size_t ExpressionParser::end_of_field(const std::string& s, size_t i) {
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

void ExpressionParser::format_parts(const Token& token, std::vector<TreePtr>& parts) {
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

TreePtr parse_expression(const SourcePtr& source) { return ExpressionParser(source).single_expression(); }

}  // namespace umbra::jit
