// The parts of a vmap as programs of PyTorch call them: a level begins, tensors are wrapped and unwrapped, it ends.
#include "core/per_thread.h"
#include "graph/unfinished.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/function.h"
#include "umbra/transform/vmap.h"

namespace umbra::transform {

namespace {

/// The levels that programs of this thread have begun and not ended, outermost first: programs name them by their
/// places in it, counted from 1.
std::vector<IntrusivePtr<VmapLevel>>& begun() {
  static PerThread<std::vector<IntrusivePtr<VmapLevel>>> levels;
  return *levels;
}

VmapLevel& level_at(const Value& place) {
  int64_t i = place.to_int();
  check<IndexError>(i >= 1 && i <= static_cast<int64_t>(begun().size()), "the program names the level ", i, " of ",
                    begun().size(), " vmaps");
  return *begun()[static_cast<size_t>(i - 1)];
}

Value begin(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() == 2, "_vmap_increment_nesting takes a size and the kind of randomness");
  std::string kind = arguments[1].to_string();
  Randomness randomness = kind == "same"        ? Randomness::Same
                          : kind == "different" ? Randomness::Different
                                                : Randomness::Error;
  begun().push_back(make_counted<VmapLevel>(arguments[0].to_sym_int(), randomness));
  push_level(begun().back());
  return Value(static_cast<int64_t>(begun().size()));
}

Value end(ArrayRef<Value>) {
  check(!begun().empty(), "the program ends a vmap that did not begin");
  IntrusivePtr<VmapLevel> level = std::move(begun().back());
  begun().pop_back();
  pop_level(level.get());
  return Value(static_cast<int64_t>(begun().size()));
}

size_t begun_count() { return begun().size(); }
void end_all_but(size_t kept) {
  while (begun().size() > kept) end({});
}

Value wrap(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() == 3, "_add_batch_dim takes a tensor, a dimension and a level");
  return Value(level_at(arguments[2]).wrap(arguments[0].tensor(), arguments[1].to_int()));
}

Value unwrap(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() == 4, "_remove_batch_dim takes a tensor, a level, a size and a dimension");
  VmapLevel& level = level_at(arguments[1]);
  WithoutLevel outside;
  return Value(level.result(arguments[0].tensor(), arguments[3].to_int()));
}

Value nothing(ArrayRef<Value>) { return {}; }

void define(const char* name, Value (*evaluate)(ArrayRef<Value>)) {
  fx::define_function({.name = concat("torch._functorch.predispatch.", name),
                       .format = {},
                       .evaluate = evaluate,
                       .has_side_effects = true});
}

[[maybe_unused]] const bool kDefined = [] {
  define("lazy_load_decompositions", nothing);
  define("_vmap_increment_nesting", begin);
  define("_vmap_decrement_nesting", end);
  define("_add_batch_dim", wrap);
  define("_remove_batch_dim", unwrap);
  fx::set_unfinished(begun_count, end_all_but);
  return true;
}();

}  // namespace

}  // namespace umbra::transform
