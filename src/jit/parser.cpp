// Statements, from words to trees.
#include "jit/parser.h"

namespace umbra::jit {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  std::vector<TreePtr> module() {
    std::vector<TreePtr> out;
    bool indented = take(Token::Kind::Indent);  // methods come as they stand in their class
    while (!is(Token::Kind::End)) {
      if (indented && take(Token::Kind::Dedent)) break;
      statement(out);
    }
    return out;
  }

 private:
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
};

}  // namespace

std::vector<TreePtr> parse(const SourcePtr& source) { return Parser(source).module(); }

}  // namespace umbra::jit
