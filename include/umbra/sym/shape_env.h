// ShapeEnv: the symbols of one captured program and everything that is known about them.
//
//   auto env = make_counted<sym::ShapeEnv>();
//   SymInt batch = env->create_symbol(8, "L['x'].size()[0]");     // s0, hint 8, range [2, int_oo]
//   SymInt tokens = batch * 128;                                   // 128*s0
//   if (tokens % 2 == 0) ...                                       // known: no guard
//   if (batch > 4) ...                                             // answered by the hint; the guard s0 > 4 is kept
//
// A question is answered by facts first, by the hint (which leaves a guard) second, and for unbacked symbols, whose
// values only the run will tell, by an error that says how to go on. An env serves one capture at a time; it is not
// locked. Expressions are owned by it: whoever keeps a SymInt keeps the env.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "umbra/core/source.h"
#include "umbra/core/sym_int.h"
#include "umbra/sym/expression.h"
#include "umbra/sym/range.h"

namespace UMBRA_API umbra {
namespace sym {

/// What becomes of a size: a number; a symbol, shared by all sizes of equal hint; a symbol of its own.
enum class Policy : uint8_t { Static, Duck, Dynamic };

/// s0, s1, ... in order of creation; or, as recent versions of PyTorch do, a number made from the source's name (s77).
enum class Naming : uint8_t { Sequential, BySource };

struct ShapeEnvOptions {
  bool duck_shape = true;
  bool specialize_zero_one = true;
  Naming naming = Naming::Sequential;
};

struct SymbolOptions {
  Policy policy = Policy::Duck;
  std::optional<Range> range;   // what a Dim promises; without it sizes are [2, int_oo], integer inputs unbounded
  std::string dim;              // the Dim's text, `batch` or `2*batch + 1`; its promise is checked by check_constraints
  bool size = true;             // a tensor's size rather than an integer argument
  bool keep_zero_one = false;   // an example of 0 or 1 becomes a symbol as others do
  bool marked_dynamic = false;  // Dim.DYNAMIC: no name, but a constant is an error all the same
};

/// A size that is a Dim or one derived from it: `2*batch + 1` of `L['x'].size()[0]`.
struct DimUse {
  std::string dim, source;
  int64_t scale = 1, offset = 0;
};

struct Symbol {
  std::string name;
  const Expression* expression = nullptr;
  Type type = Type::Int;
  bool backed = true;
  bool positive = false;   // printed in files; sizes are positive
  bool size_like = false;  // unbacked, and said to be a size (torch._check_is_size)
  Range range;             // what is known now
  Range initial;           // what was known at first, which inputs have to keep
  std::optional<Range> promised;
  std::string dim;
  bool marked_dynamic = false;
  std::vector<std::string> sources;  // `L['x'].size()[0]`; several under duck shaping
  std::vector<DimUse> uses;          // of its Dim, in the order of the inputs, where they are known
  const Expression* replacement = nullptr;
  const Expression* declared = nullptr;  // the replacement, where it was declared and not found out
};

/// A condition on backed symbols that held for the hints and that the program relies on.
struct Guard {
  const Expression* condition;
  IntrusivePtr<SourceLocation> location;  // of the branch that asked; null where it is not known
};

/// A condition on unbacked symbols that the program has to check when it runs.
struct RuntimeAssert {
  const Expression* condition;
  std::string message;
  IntrusivePtr<SourceLocation> location;
};

/// The program goes by the answer to a comparison; see ShapeEnv::rely_on. Nothing to note where both are numbers, or
/// where one has no hint.
void rely_on(SymOp op, SymInt a, SymInt b);

/// A dimension that was marked dynamic and became a number at once (hint 0 or 1).
struct SpecializedDim {
  std::string dim;
  std::string source;
  int64_t value;
};

/// Values of symbols, for evaluation.
class Bindings {
 public:
  void set(const Expression* symbol, int64_t value);
  void set(const Expression* symbol, double value);
  const Number* find(const Expression* symbol) const;

 private:
  std::vector<std::optional<Number>> values_;
};

class ShapeEnv final : public RefCounted {
 public:
  explicit ShapeEnv(ShapeEnvOptions options = {});
  ~ShapeEnv() override;
  const ShapeEnvOptions& options() const { return options_; }
  ExpressionTable& table() { return table_; }

  // ---- symbols
  /// A size or integer of the example inputs: a plain number where the policy or 0/1 specialisation says so. Without a
  /// source, it is the root of derived Dims that no input has by itself (`dimx` of `2*dimx`).
  SymInt create_symbol(int64_t hint, const std::string& source, const SymbolOptions& options = {});
  /// A number that only the run will tell: u0, u1, ...
  SymInt create_unbacked(Range range = {}, bool size_like = false);
  SymFloat create_unbacked_float();
  SymBool create_unbacked_bool();
  /// A symbol by name, as a file declares it; made if it is new. Names that begin with `u` are unbacked.
  const Expression* declare_symbol(std::string_view name, bool positive, std::optional<int64_t> hint = {},
                                   Range range = {});
  const Expression* find_symbol(std::string_view name) const;
  const Symbol& symbol(const Expression* expression) const { return symbols_[expression->symbol_index()]; }
  const std::deque<Symbol>& symbols() const { return symbols_; }
  /// torch._check_is_size: nonnegative, and taken to be at least 2 where guard_or has to choose.
  void mark_size_like(SymInt value);
  /// Another input whose size must be this symbol.
  void add_source(const Expression* symbol, const std::string& source);
  void add_use(const Expression* symbol, DimUse use);

  // ---- expressions
  /// A handle's expression; an error where it is another ShapeEnv's.
  const Expression* expression(SymInt value);
  const Expression* expression(const SymFloat& value);
  const Expression* expression(const SymBool& value);
  /// Back to handles; constants become plain numbers.
  static SymInt sym_int(const Expression* a);
  static SymFloat sym_float(const Expression* a);
  static SymBool sym_bool(const Expression* a);
  /// The expression after what has been learnt: equal symbols replaced by one, specialised ones by their number.
  const Expression* simplify(const Expression* a);
  SymInt simplify(SymInt value);
  const Expression* substitute(const Expression* a, const std::function<const Expression*(const Expression*)>& symbol);
  /// An expression of another environment in this one, its symbols by `symbol`.
  const Expression* translate(const Expression* a, const std::function<const Expression*(const Expression*)>& symbol);
  /// The value under bindings; nothing where a symbol is unbound, a divisor is zero or a number does not fit.
  std::optional<Number> evaluate(const Expression* a, const Bindings& bindings) const;
  std::optional<int64_t> evaluate(SymInt value, const Bindings& bindings) const;

  // ---- what is known
  Range range(const Expression* a);
  FloatRange float_range(const Expression* a);
  Range bound_range(SymInt value);
  /// 1 true, 0 false, -1 not known; leaves no guard.
  int known(const Expression* condition);
  /// Takes a condition for granted without recording it: facts about inputs that others check.
  void assume(const Expression* condition);
  /// An equality that the user declares by giving sizes one Dim or derived ones: `declare_equal(y, 2*x + 1)`.
  void declare_equal(SymInt a, SymInt b);
  void constrain_range(const Expression* symbol, Range range);
  /// Counts up whenever something new is learnt; caches of answers key on it.
  uint32_t version() const { return version_; }

  // ---- questions
  bool guard_bool(const Expression* condition);
  bool guard_or(const Expression* condition, bool fallback);
  /// guard_bool where unbacked sizes are taken to be two or more (torch's guard_size_oblivious).
  bool guard_size_oblivious(const Expression* condition);
  int64_t guard_int(const Expression* a);
  /// guard_int of numbers that 64 bits need not hold.
  Integer guard_integer(const Expression* a);
  double guard_float(const Expression* a);
  bool expect_true(const Expression* condition, const char* message);
  SymInt int_binary(SymOp op, SymInt a, SymInt b);
  SymBool compare(SymOp op, SymInt a, SymInt b);
  bool decide(SymOp op, SymInt a, SymInt b, const void* asker);
  /// compare() for a program that may go on without asking for the answer: one that follows only because sizes are
  /// taken to be two or more stays a condition, which is relied on when its truth is asked.
  SymBool hold(SymOp op, SymInt a, SymInt b);
  /// The program goes by the answer to a comparison. Where that follows only because sizes are taken to be two or more,
  /// it becomes an assumption, which inputs have to keep.
  void rely_on(SymOp op, SymInt a, SymInt b);
  /// The same of a condition that is known to hold.
  void rely_on(const Expression* condition);

  const std::vector<Guard>& guards() const { return guards_; }
  /// What the program takes for granted although a Dim allows sizes for which it does not hold: `Ne(s0, 1)`.
  const std::vector<Guard>& assumptions() const { return assumptions_; }
  const std::vector<RuntimeAssert>& runtime_asserts() const { return runtime_asserts_; }
  const std::vector<SpecializedDim>& specialized_dims() const { return specialized_dims_; }
  /// From here on questions are answered without guards being added: the program has been captured.
  void freeze() { frozen_ = true; }
  bool frozen() const { return frozen_; }
  /// The same for a while: questions of code that is not the program's. Returns what was set before.
  bool suppress_guards(bool suppressed) { return std::exchange(suppressed_, suppressed); }

  /// The guards as Python text over the inputs: `(L['ids'].size()[0] % 2) == 0`; sources of one symbol come first.
  std::vector<std::string> guard_texts() const;
  std::vector<std::string> assumption_texts() const;
  /// Whether other inputs could have been the example: `sizes` are what stood for its sizes and integers, each with
  /// what is there now. Numbers are left alone unless `numbers` are to be equal, too.
  bool accepts(ArrayRef<std::pair<SymInt, int64_t>> sizes, bool numbers) const;
  /// Checks inputs at run time. `value_of` gives the value at a source. Returns the first guard that fails.
  std::optional<std::string> failing_guard(const std::function<int64_t(const std::string& source)>& value_of) const;

 private:
  const Expression* own(const SymNode* node) const;
  /// While it lives, divisors are taken not to be zero, or are not.
  struct DivisorScope {
    DivisorScope(ExpressionTable& table, bool nonzero)
        : table(table), before(std::exchange(table.divisors_are_nonzero_, nonzero)) {}
    ~DivisorScope() { table.divisors_are_nonzero_ = before; }
    ExpressionTable& table;
    bool before;
  };
  struct Linear {
    Integer scale = 0, constant = 0;
    const Expression* form = nullptr;  // null where the expression is the constant
  };
  /// An operation seen before. Entries of an earlier version are stale.
  struct MemoEntry {
    int64_t a = 0, b = 0, result = 0;
    SymOp op{};
    /// A known answer may follow only for sizes of two and more (Unexamined). One of which that is so and which the
    /// program has not asked for has its condition for a result (Held).
    enum class Standing : uint8_t { Settled, Unexamined, Held } standing{};
    uint32_t version = 0;
  };
  /// What is taken to be known of sizes: what is known; that unbacked ones are above one, too; or nothing that is only
  /// assumed because the example's sizes are two or more.
  enum class Sizes : uint8_t { AsKnown, AboveOne, NotAssumed };

  const Expression* new_symbol(Symbol symbol, const Number* hint);
  std::string symbol_name(const std::string& source);
  MemoEntry* find_memo(SymOp op, SymInt a, SymInt b);
  MemoEntry& remember(SymOp op, SymInt a, SymInt b, int64_t result);
  const Expression* relation(SymOp op, SymInt a, SymInt b);
  MemoEntry& compare_entry(SymOp op, SymInt a, SymInt b);
  void examine(MemoEntry& entry);
  SymBool answer_of(const MemoEntry& entry);

  const Expression* canonical(const Expression* a);
  const Expression* rewrite_divisions(const Expression* a);
  static Linear decompose(const Expression* a);
  const Expression* without_common_factors(const Expression* form, Sizes sizes);
  Range range(const Expression* a, Sizes sizes);
  Range range_of_node(const Expression* a, const std::function<Range(const Expression*)>& of);
  Range range_of_symbol(const Symbol& symbol, Sizes sizes) const;
  FloatRange float_range_of_node(const Expression* a);
  int compute_known(const Expression* condition);
  int known_relation(const Expression* condition, Sizes sizes);
  bool follows_without_assumptions(const Expression* condition);
  const Expression* simplified(const Expression* a) const;
  const Expression* simplify_node(const Expression* a);
  int known_float_relation(const Expression* condition);
  int known_and_relied_on(const Expression* condition);
  void check_same_env(SymInt a, SymInt b) const;

  void learn(const Expression* condition);
  void learn_one(const Expression* condition);
  void learn_relation(const Expression* condition);
  void learn_equal(const Linear& linear);
  void learn_unequal(const Linear& linear);
  bool narrow(const Expression* form, Range range);
  bool narrow_symbol(const Expression* symbol, Range range);
  void narrow_terms(const Expression* sum, Range whole);
  void narrow_parts(const Expression* form, Range range);
  void narrow_linear(const Linear& linear, Range range);
  void propagate();
  void replace(const Expression* symbol, const Expression* by);
  void record(const Expression* condition);
  [[noreturn]] void fail_data_dependent(const Expression* a);
  [[noreturn]] void fail_unknown(const Expression* a);
  bool quiet() const { return frozen_ || suppressed_; }
  void bind_roots(Bindings& bindings) const;

  struct Tables;  // sym/tables.h
  ShapeEnvOptions options_;
  IntrusivePtr<Tables> tables_;
  std::deque<Symbol> symbols_;
  uint32_t backed_count_ = 0, unbacked_count_ = 0, unbacked_float_count_ = 0;
  uint32_t version_ = 1;
  bool frozen_ = false;
  bool suppressed_ = false;
  bool declaring_ = false;
  int narrowing_ = 0;  // how far the consequences of a fact have been followed
  std::vector<Guard> guards_;
  std::vector<Guard> assumptions_;
  std::vector<RuntimeAssert> runtime_asserts_;
  std::vector<SpecializedDim> specialized_dims_;
  std::vector<MemoEntry> memo_;
  ExpressionTable table_;
};

}  // namespace sym
}  // namespace umbra
