#include "ops/common/out_asks.h"

namespace umbra::ops {

Operator& out_variant(const Operator& functional, const char* name) {
  for (const Operator* op : operator_overloads(functional.schema().space + "::" + functional.schema().name))
    if (op->functional() == &functional && op->has_out() && op->name() == functional.schema().space + "::" + name)
      return const_cast<Operator&>(*op);
  fail(functional.name(), ": it has no variant ", name);
}

}  // namespace umbra::ops
