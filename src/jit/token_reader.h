// Words one after the other, for those who make trees of them.
#pragma once

#include "jit/lexer.h"

namespace umbra::jit {

class TokenReader {
 protected:
  explicit TokenReader(const SourcePtr& source);

  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is(Token::Kind kind) const { return now().kind == kind; }
  bool is(const char* text) const;
  bool take(Token::Kind kind) { return is(kind) && (++at_, true); }
  bool take(const char* text) { return is(text) && (++at_, true); }
  void expect(const char* text);
  std::string name();

  [[noreturn]] void refuse(const std::string& why);
  [[noreturn]] void unsupported(const std::string& what, size_t begin, size_t length = 1);
  [[noreturn]] void misused(const std::string& what, size_t begin, size_t end);
  [[noreturn]] void variable_arguments(size_t begin, size_t end);
  /// Refuses what is nested too deeply for the stack.
  struct Depth {
    explicit Depth(TokenReader& reader);
    ~Depth() { --reader.depth_; }
    TokenReader& reader;
  };

  /// A tree of what was read since `begin`.
  TreePtr make(Syntax kind, size_t begin, std::vector<TreePtr> children = {}, std::string text = "");

  SourcePtr source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace umbra::jit
