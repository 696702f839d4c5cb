// Which operators capture takes apart, and into what.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "umbra/dispatch/boxing.h"

namespace UMBRA_API umbra {

/// Thrown by an entry of a table that leaves a call whole.
struct DecompositionDeclined {};

/// From operators to what they are recorded as: `table.add("aten::silu", [](const Tensor& x) { return x * x.sigmoid();
/// })`.
class DecompositionTable {
 public:
  using Function = std::function<void(Value* frame)>;

  DecompositionTable();
  ~DecompositionTable();
  DecompositionTable(const DecompositionTable& other);
  DecompositionTable& operator=(const DecompositionTable& other);

  template <class F> void add(std::string_view name, F f) {
    set(get_operator(name), [boxed = boxing::box_function(std::move(f))](Value* frame) { boxed(frame); });
  }
  void set(const Operator& op, Function f);
  void remove(const Operator& op);
  /// What the operator is recorded as, or null where it stays whole.
  const Function* find(const Operator& op) const;
  bool empty() const { return size() == 0; }
  size_t size() const;

 private:
  struct Functions;
  Functions& own();
  IntrusivePtr<Functions> functions_;  // shared by copies until one of them is changed
};

/// A table that takes the named operators apart as their own definitions say (a decomposition beside a kernel,
/// composites, and what is made of other operators).
DecompositionTable own_decompositions(const std::vector<std::string>& names);

/// PyTorch's core table: operators outside the core set are recorded as the core operators that PyTorch 2.15 makes of
/// them.
DecompositionTable core_decompositions();

}  // namespace umbra
