// What follows only from the sizes that inputs are taken to have.
#pragma once

#include "umbra/sym/shape_env.h"

namespace umbra::sym {

/// Something follows from the least value that a size can have. Where that is what the example's sizes are taken for,
/// inputs have to keep it: a size of 0 or 1 would pass what the program asked, and not be what it goes by.
inline void rely_on_least(ShapeEnv& env, const Symbol& symbol) {
  if (symbol.backed && symbol.type == Type::Int && !symbol.replacement && symbol.range.lower == 2)
    env.rely_on(SymOp::Lt, ShapeEnv::sym_int(symbol.expression), 2);
}

/// The same of every size that inputs are taken to have; one that follows from others may follow to be 0 or 1.
inline void rely_on_sizes_above_one(ShapeEnv& env) {
  ExpressionTable& table = env.table();
  for (const Symbol& symbol : env.symbols()) {
    rely_on_least(env, symbol);
    if (symbol.backed && symbol.type == Type::Int && symbol.replacement && symbol.range.lower == 2)
      env.rely_on(table.relation(Kind::Le, table.integer(2), env.simplify(symbol.expression)));
  }
}

}  // namespace umbra::sym
