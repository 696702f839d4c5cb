// Programs as source: written out of graphs, and read back into classes and functions.
#pragma once

#include <functional>
#include <map>

#include "umbra/jit/objects.h"

namespace UMBRA_API umbra {
namespace jit {

/// A file of an archive: its text, and what the parts of it were written from.
struct SourceFile {
  std::string text;
  SourceOrigins origins;
};

/// Writes functions and classes as TorchScript's archives hold them.
class SourcePrinter {
 public:
  /// `with_origins`: notes what the text is written from, for `files`.
  explicit SourcePrinter(bool with_origins = false) : with_origins_(with_origins) {}
  /// The source of a function; `as_method` writes the type of `self`.
  std::string function(Function& function, const std::string& name, bool as_method);
  /// Takes a class, and all that it and its methods use, into `files()`.
  void add_class(const ClassPtr& cls);
  void add_function(const FunctionPtr& function);
  /// Tensors that the source calls CONSTANTS.c0, CONSTANTS.c1, ...
  const std::vector<Tensor>& constants() const { return constants_; }
  /// "code/__torch__/torch/nn/modules/linear.py" and what stands in it.
  std::map<std::string, SourceFile> files() const;

 private:
  friend class FunctionPrinter;
  void use(const TypePtr& type);
  std::string constant(const Tensor& tensor);
  /// A mark in the text where what a node was written from begins; `files` takes it out.
  std::string mark(const Node& node);
  std::string class_text(ClassType& cls);
  std::string interface_text(const ClassType& cls, const std::string& name);
  std::string function_name(const FunctionPtr& function);
  bool with_origins_;
  std::vector<SourceRange> marked_;
  std::vector<Tensor> constants_;
  std::vector<std::pair<std::string, std::string>> texts_;  // full name, text
  std::map<std::string, bool> seen_;
  std::map<const Function*, std::string> function_names_;
};

/// The version of archives whose operators mean what they mean now.
inline constexpr int64_t kArchiveVersion = 10;

/// Reads classes and functions by their full names from the files of an archive, when they are first needed.
class SourceReader {
 public:
  using Load = std::function<SourcePtr(const std::string& file)>;
  /// `load` gives the text of "code/__torch__.py", or null. `version` is the archive's: operators that have meant
  /// something else since are refused in older ones.
  SourceReader(Load load, std::vector<Value> constants, int64_t version = kArchiveVersion);
  ~SourceReader();
  /// A type by its full name, or null.
  TypePtr type(const std::string& name);

 private:
  class Implementation;
  std::shared_ptr<Implementation> implementation_;
};

}  // namespace jit
}  // namespace umbra
