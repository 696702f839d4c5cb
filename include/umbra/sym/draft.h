// Drafts of programs: while one is made, questions about numbers that only the run will tell are answered by the
// example, become assertions of the program, and are noted for a report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "umbra/sym/shape_env.h"

namespace UMBRA_API umbra {
namespace sym {

/// A question that the example answered.
struct DraftAnswer {
  std::string condition;  // as it holds for the example: "u0 > 2"
  IntrusivePtr<SourceLocation> location;
};

/// The draft that this thread makes, as long as it stands.
class Draft {
 public:
  Draft();
  ~Draft();
  Draft(const Draft&) = delete;
  static Draft* current();

  /// What a symbol is for the example.
  void set(const Expression* symbol, int64_t value) { values_.set(symbol, value); }
  void set(const Expression* symbol, double value) { values_.set(symbol, value); }
  /// The example's value of an expression; nothing where a symbol's is not known.
  std::optional<Number> value(ShapeEnv& env, const Expression* a) const;
  void note(DraftAnswer answer);
  const std::vector<DraftAnswer>& answers() const { return answers_; }

 private:
  Draft* before_;
  Bindings values_;
  std::vector<DraftAnswer> answers_;
};

/// While it stands, conditions on sizes that are more than a relation of two symbols, or of a symbol and a number, are
/// left to the program's run: they become assertions instead of guards.
class DeferGuards {
 public:
  explicit DeferGuards(bool deferred);
  ~DeferGuards();
  DeferGuards(const DeferGuards&) = delete;
  /// Whether a condition is to be left to the run now.
  static bool defers(const Expression* condition);

 private:
  bool before_;
};

}  // namespace sym
}  // namespace umbra
