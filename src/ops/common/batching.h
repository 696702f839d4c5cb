// What batching rules share: where the batch dimension stands, and rules that follow from an operator's arguments.
#pragma once

#include "umbra/dispatch/batching.h"
#include "umbra/dispatch/define.h"

namespace umbra::ops {

/// The value with its batch dimension in front; as it is where it has none.
Tensor batch_first(const Batched& tensor);
/// The same, and an unbatched one expanded: every result has a batch dimension in front.
Tensor batch_all(const Batched& tensor);
/// Batch first, and as many dimensions of size 1 after it as make the tensor of `rank` to the function under vmap.
Tensor batch_first(const Batched& tensor, int64_t rank);
/// `sizes` with the batch in front.
SymShape batch_sizes(SymIntArrayRef sizes);
/// Joins the batch dimension, moved next to it, with the dimension `into` of what the function sees.
Tensor fold_batch(const Batched& tensor, int64_t into);
/// Undoes it: the dimension `at` becomes the batch and the rest of it.
Batched unfold_batch(const Tensor& value, int64_t at);
/// All but the batch in one dimension.
Tensor batch_flat(const Batched& tensor);
/// All dimensions that the function under vmap sees, of a value with the batch in front.
std::vector<int64_t> inner_dims(const Batched& tensor);

/// The rule of operators whose tensors are independent of each other along a new first dimension: every tensor gets it,
/// the dimensions named in `dims` count one further, and the sizes named in `sizes` begin with it.
///     .use(BatchInFront{.dims = {"dim"}})
struct BatchInFront {
  std::vector<const char*> dims = {}, sizes = {};
  bool none_is_all = false;   // no list of dimensions means every one
  bool empty_is_all = false;  // and so does an empty one: most reductions
  bool scalars = false;       // a 0-d tensor may be asked for its dimension 0, as if it had one
  bool expand = true;         // unbatched tensors get the dimension too; else they stay as they are
  void operator()(OperatorBuilder& builder) const;
};

/// The rule of operators on one tensor that do not care about the order of its dimensions: the batch stays where it is.
/// Where the operator takes sizes of its own, named in `sizes`, they begin with the batch.
struct BatchInPlace {
  const char* sizes = nullptr;
  bool in_rows = false;  // a contiguous result is so for each element: the batch goes in front
  void operator()(OperatorBuilder& builder) const;
};

/// The rule of operators that draw random numbers in the shape of their first argument, whose contents do not matter.
struct BatchRandomLike {
  void operator()(OperatorBuilder& builder) const;
};

/// The rule of operators that draw a random number for each element of their tensors: for the whole batch at once, each
/// element of which gets numbers of its own. (Where nothing is batched and all are to get the same, no rule is asked.)
struct BatchRandom {
  void operator()(OperatorBuilder& builder) const;
};
/// Operators that draw numbers and that vmap does not carry, even where none of their tensors is batched.
struct NotBatched {
  void operator()(OperatorBuilder& builder) const;
};
bool is_refused(const BoxedFunction& rule);
/// Refuses the same numbers for all elements of a batch, where these say what is drawn.
void check_all_differ();

BoxedFunction through_parts(BoxedFunction function);
/// Under vmap the operator is computed by others: `f` takes its arguments, as the function under vmap sees them, and
/// gives its results.
template <class F> auto batch_through(F f) {
  return [boxed = boxing::box_function(std::move(f))](OperatorBuilder& builder) {
    builder.definition().batch = through_parts(boxed);
  };
}
/// The function of batch_through; null for other rules.
const BoxedFunction* parts_of(const BoxedFunction& rule);

/// The operator is called for one element of the batch after the other: said of those whose kind would promise more.
struct BatchOneByOne {
  void operator()(OperatorBuilder& builder) const;
};
void batch_one_by_one(const Operator& op, Value* frame);
bool is_one_by_one(const BoxedFunction& rule);

/// Elementwise operators: the batch in front, ranks made equal behind it, types promoted as the function sees the
/// ranks.
void batch_elementwise(const Operator& op, Value* frame);

}  // namespace umbra::ops
