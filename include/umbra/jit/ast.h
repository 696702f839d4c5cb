// The part of Python that programs are written in, as a tree.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "umbra/core/error.h"
#include "umbra/jit/source_text.h"

namespace UMBRA_API umbra {
namespace jit {

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
  If,  // children[0] condition; body, orelse. text: the branch that leaves ("yes", "no"), once exits are rewritten
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
  std::string comment;  // `# type:` on the parameter's line
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

/// The part of the text that a tree takes up, without brackets that end it: what errors mark.
SourceRange whole_range(const Tree& tree);
/// The same, but of a call the function alone.
SourceRange shown_range(const Tree& tree);

/// While it lives, this function is the one that is compiled on this thread: errors inside name those that wait for it.
class Compilation {
 public:
  explicit Compilation(std::string function);
  ~Compilation();
  Compilation(const Compilation&) = delete;
  /// Where the function that is compiled has got to.
  static void reach(const Tree& tree);
  static const Tree* reached();
  /// The functions that wait for the one that is compiled, each with the place that it has got to.
  static std::string waiting();
};

/// The statements of a module, or of anything indented like one.
std::vector<TreePtr> parse(const SourcePtr& source);
/// One expression: a type, a default.
TreePtr parse_expression(const SourcePtr& source);

/// An error that points at a place of the program.
template <class... Args> [[noreturn]] void fail_at(const Tree& tree, const Args&... args) {
  throw CompileError(detail::concat("\n", args..., ":\n", shown_range(tree).pointed(), Compilation::waiting()));
}

/// The same, but of a call all of it is marked.
template <class... Args> [[noreturn]] void fail_whole(const Tree& tree, const Args&... args) {
  throw CompileError(detail::concat("\n", args..., ":\n", whole_range(tree).pointed(), Compilation::waiting()));
}

}  // namespace jit
}  // namespace umbra
