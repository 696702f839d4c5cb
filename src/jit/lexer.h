// Words of Python source.
#pragma once

#include "umbra/jit/ast.h"

namespace umbra::jit {

struct Token {
  enum class Kind : uint8_t { Name, Number, String, Symbol, Newline, Indent, Dedent, End } kind;
  std::string text;    // of a string: its prefix and what stands between the quotes, with escapes resolved
  std::string prefix;  // of a string: f, r, b, u
  size_t begin, end;
};

/// What `# type:` says on the line of a function's colon or on the next.
std::string type_comment(const SourceText& source, size_t colon, int lines = 2);

std::vector<Token> tokenize(const SourcePtr& source);

}  // namespace umbra::jit
