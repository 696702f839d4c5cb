// The part of Python that programs are written in, as a tree.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "umbra/core/error.h"

namespace UMBRA_API umbra {
namespace jit {

/// The text of a program and where it came from.
struct SourceText {
  std::string text, file;
  int first_line = 1;
  /// "file.py:12:4"
  std::string place(size_t offset) const;
  /// The line with a mark under it, as errors show it.
  std::string pointed(size_t offset, size_t length) const;
};
using SourcePtr = std::shared_ptr<const SourceText>;

enum class Syntax : uint8_t {
  // expressions
  Name,       // text
  Number,     // text
  String,     // text, without quotes
  Constant,   // text: True, False, None, ...
  Attribute,  // children[0].text
  Subscript,  // children[0][children[1]]
  Slice,      // children: start, stop, step; null where absent
  Call,       // children[0](children[1...]); Keyword and Starred among them
  Keyword,    // text=children[0]
  Starred,    // *children[0]
  Binary,     // text is the operator
  Unary,
  Compare,  // a chain: children[0] text children[1]
  And,
  Or,
  Not,
  IfElse,  // children: condition, then, else
  Tuple,
  List,
  Dict,      // key, value, key, value ...
  ListComp,  // children: element, target, iterable
  DictComp,  // children: key, value, target, iterable
  Format,    // f"": children are Strings and expressions
  Lambda,
  // statements
  Expression,  // children[0]
  Assign,      // targets..., value last; text "": plain
  Annotated,   // target, annotation, [value]
  Augmented,   // text is the operator: target, value
  If,          // children[0] condition; body, orelse
  While,
  For,  // children: target, iterable; body
  Return,
  Break,
  Continue,
  Pass,
  Assert,
  Raise,
  Delete,
  With,
  Def,    // text name; parameters, returns, body
  Class,  // text name; children bases; body
  Import,
};

struct Tree;
using TreePtr = std::shared_ptr<Tree>;

struct ParameterTree {
  std::string name;
  TreePtr annotation, default_value;
  bool keyword_only = false;
};

struct Tree {
  Syntax kind;
  std::string text;
  std::vector<TreePtr> children;
  std::vector<TreePtr> body, orelse;
  std::vector<ParameterTree> parameters;  // of Def
  std::vector<TreePtr> decorators;
  TreePtr returns;
  std::string type_comment;
  SourcePtr source;
  size_t begin = 0, end = 0;
};

/// A program that cannot be compiled: the text says why and shows the place.
class CompileError : public Error {
 public:
  using Error::Error;
};
/// Python that programs cannot have at all: a statement or expression (UnsupportedNodeError), or a way of using one
/// (NotSupportedError).
class UnsupportedSyntax : public CompileError {
 public:
  UnsupportedSyntax(const std::string& text, bool node) : CompileError(text), node(node) {}
  bool node;
};

/// The statements of a module, or of anything indented like one.
std::vector<TreePtr> parse(const SourcePtr& source);
/// One expression: a type, a default.
TreePtr parse_expression(const SourcePtr& source);

/// An error that points at a place of the program.
template <class... Args> [[noreturn]] void fail_at(const Tree& tree, const Args&... args) {
  throw CompileError(detail::concat(args..., ":\n", tree.source->pointed(tree.begin, tree.end - tree.begin)));
}

}  // namespace jit
}  // namespace umbra
