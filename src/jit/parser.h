// Python's grammar as far as programs use it, by recursive descent: expressions. Statements are parser.cpp's.
#pragma once

#include "jit/token_reader.h"

namespace umbra::jit {

class ExpressionParser : public TokenReader {
 public:
  explicit ExpressionParser(const SourcePtr& source) : TokenReader(source) {}
  TreePtr single_expression();

 protected:
  /// One, or a tuple without parentheses.
  TreePtr expressions();
  TreePtr expression();
  /// What can be assigned to.
  TreePtr targets();
  /// Of a call: `x`, `name=x`, `*x`.
  TreePtr argument();

 private:
  bool ends_tuple() const;
  TreePtr starred();
  TreePtr disjunction();
  TreePtr conjunction();
  TreePtr negation();
  std::string comparison_operator();
  TreePtr comparison();
  TreePtr binary(size_t level);
  TreePtr unary();
  TreePtr power();
  TreePtr postfix();
  TreePtr subscript();
  TreePtr slice_or_index();
  TreePtr comprehension(Syntax kind, size_t begin, std::vector<TreePtr> parts);
  TreePtr atom();
  TreePtr braces(size_t begin);
  TreePtr strings();
  /// Where the expression of an f-string's field ends: at its brace, or at the mark of a conversion or a format. Those
  /// inside brackets and strings belong to the expression.
  static size_t end_of_field(const std::string& s, size_t i);
  void format_parts(const Token& token, std::vector<TreePtr>& parts);
};

}  // namespace umbra::jit
