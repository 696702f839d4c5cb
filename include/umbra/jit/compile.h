// From trees to graphs: types are found, names resolved, control flow brought into blocks.
#pragma once

#include <functional>

#include "umbra/jit/ast.h"
#include "umbra/jit/objects.h"

namespace UMBRA_API umbra {
namespace jit {

struct Sugared;
using SugaredPtr = std::shared_ptr<Sugared>;

/// What a name stands for while a program is compiled.
struct Sugared {
  enum class Kind : uint8_t {
    Variable,   // a value of the graph
    Function,   // a compiled function
    Class,      // a class: calling it makes an object
    Type,       // a type, where one may be written (isinstance, annotate)
    Operators,  // a namespace: torch, torch.ops.aten, math; names inside are operators
    Builtin,    // a function by name: len, aten::add
    Method,     // of a value: `self` and its name
    Modules,    // the modules of a container, by name
    Values,     // a tuple that is known part by part
    Python,     // an object of the front end, which resolves its attributes and calls
    Range,      // range, enumerate, zip and the like, with their arguments
    Constant,   // a value that becomes a constant where it is used
    Overloads,  // functions of one name: the first that takes the arguments is meant
    Refused,    // what cannot be used: `name` says why
    Choice,     // two functions: a constant argument (`name`, `place`, default `value`) says which is meant
  } kind = Kind::Variable;
  Variable* variable = nullptr;
  FunctionPtr function;
  TypePtr type;
  std::string name;
  SugaredPtr self;
  std::vector<SugaredPtr> parts;
  std::vector<std::string> keys;  // of Modules
  size_t place = 0;               // of Choice
  umbra::Value value;
};

/// Where names that a program does not define come from: Python's globals, or the other files of an archive.
class Resolver {
 public:
  virtual ~Resolver() = default;
  /// What a name stands for, or null.
  virtual SugaredPtr name(const std::string& name) = 0;
  /// The type that an expression stands for, or null where it is none of the usual ones.
  virtual TypePtr type(const std::string& text) = 0;
  /// The name ("List") of the generic type that an expression stands for, or an empty text.
  virtual std::string generic(const std::string&) { return ""; }
  /// An attribute of what `name` gave as Python.
  virtual SugaredPtr attribute(const Sugared& of, const std::string& name) = 0;
  /// The method that an assignment to this attribute calls, or an empty text.
  virtual std::string setter(const Sugared&, const std::string&) { return ""; }
  /// The function that a call of what `name` gave as Python, with so many arguments, is left to; null where there is
  /// none.
  virtual FunctionPtr callable(const Sugared&, size_t) { return nullptr; }
  /// The full name of the class of exceptions that an expression names, or an empty text.
  virtual std::string exception(const std::string&) { return ""; }
  /// Whether a value of this type is a module of the class of modules that an expression names; none where it names
  /// something else.
  virtual std::optional<bool> module_instance(const TypePtr&, const std::string&) { return std::nullopt; }
  /// The version of the archive that the program is read from, or none.
  virtual std::optional<int64_t> version() const { return std::nullopt; }
};

/// The type of an annotation.
TypePtr resolve_type(const Tree& tree, Resolver& resolver);
/// A function's parameters and result, without its body. `self` is the type of a method's first parameter.
void declare(Function& function, const Tree& def, Resolver& resolver, const TypePtr& self);
/// Compiles the body of a function that was declared.
void define(Function& function, const TreePtr& def, Resolver& resolver);

SugaredPtr sugar(Variable* v);
SugaredPtr sugar_constant(umbra::Value value);
SugaredPtr sugar_builtin(std::string name);
SugaredPtr sugar_type(TypePtr type);
SugaredPtr sugar_function(FunctionPtr function);
SugaredPtr sugar_namespace(std::string name);

}  // namespace jit
}  // namespace umbra
