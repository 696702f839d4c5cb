// The sizes of a program's inputs, by what dynamic_shapes says of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "export/flat_inputs.h"
#include "export/hinted_ranges.h"
#include "umbra/export/export.h"

namespace umbra {

/// One symbol for each name of a Dim, so that equal Dims are equal sizes; one for each size that may vary without a
/// name. Inputs are known by their paths, as dynamic_shapes names them: "parts['b'][0]".
class DimSizes {
 public:
  DimSizes(const ExportOptions& options, sym::ShapeEnv& env) : options_(options), env_(env) {}

  /// Looks at all inputs before the first size is asked for; UserError where dynamic_shapes fits none of them.
  void read(const FlatInputs& flat);
  SymInt size(const std::string& path, const Tensor& given, int64_t d);
  /// An integer is part of the program unless a Dim says that it may vary.
  SymInt integer(const std::string& path, int64_t given);
  /// What is said of a tensor's sizes where it is given once more has to fit what was said before.
  void declare_again(const Tensor& fake, const std::string& path);

  /// The input of a path, as guards name it: L['parts']['b'][0].
  std::string source_of(std::string path) const;
  /// What the program may take for granted of its inputs, in terms of the arguments that it is called with.
  std::vector<std::string> guards() const;
  /// Of a Dim that no size is by itself, what its sizes may be is declared of them.
  sym::Range declared_range(const sym::Symbol& symbol) const;
  HintedRanges& hinted() { return hinted_; }

 private:
  void check_fits(const FlatInputs& flat) const;
  void find_own_sources(const FlatInputs& flat);
  const Dim* find_dim(const std::string& path, int64_t d, int64_t rank) const;
  std::string size_source(const std::string& path, int64_t d) const;
  SymInt size_for(const std::string& path, int64_t d, int64_t hint, const Dim* dim);
  SymInt root_of(const Dim& dim, const std::string& size, int64_t hint, int64_t d);
  [[noreturn]] void fail_unequal(const std::string& size, int64_t hint, const Dim& dim, SymInt root) const;
  std::string naming_source(const std::string& path, int64_t d) const;
  void name_after(SymInt size, const std::string& naming);
  void add_derived(const std::string& size, const Dim& dim);
  bool is_promised(SymInt size, sym::Range range) const;
  std::string by_argument_names(std::string guard) const;

  const ExportOptions& options_;
  sym::ShapeEnv& env_;
  std::map<std::string, SymInt> roots_;
  std::map<std::string, std::string> first_sizes_;  // of Dims: the size that they were met in first
  std::map<std::string, std::string> own_sources_;  // of Dims: a size that is the Dim itself
  std::map<std::string, std::string> own_names_;    // what such a size is named after
  std::map<std::string, size_t> places_;            // of the flat inputs, by path
  std::set<uint32_t> taken_;                        // numbers of names, where they come from those places
  std::vector<std::string> derived_guards_;
  HintedRanges hinted_;
};

}  // namespace umbra
