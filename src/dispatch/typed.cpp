#include "umbra/dispatch/typed.h"

namespace umbra::detail {

const Operator& typed_operator(std::string_view name, std::span<const CppType> arguments,
                               std::span<const CppType> results) {
  const Operator& op = get_operator(name);
  const Schema& schema = op.schema();
  check<TypeError>(arguments.size() <= schema.arguments.size(), op.name(), ": takes ", schema.arguments.size(),
                   " arguments, ", arguments.size(), " are given: ", to_string(schema));
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const SchemaArgument& argument = schema.arguments[i];
    if (i >= arguments.size()) {
      check<TypeError>(argument.default_value.has_value(), op.name(), ": argument '", argument.name,
                       "' has no default and is not given: ", to_string(schema));
      continue;
    }
    bool fits = gives(arguments[i], argument.type) && (!arguments[i].optional || argument.type.optional);
    check<TypeError>(fits, op.name(), ": argument '", argument.name, "' is ", to_string(argument.type), ", not ",
                     to_string(arguments[i]));
  }
  check<TypeError>(results.size() == schema.returns.size(), op.name(), ": gives ", schema.returns.size(), " results, ",
                   results.size(), " are asked for");
  for (size_t i = 0; i < results.size(); ++i)
    check<TypeError>(takes(results[i], schema.returns[i].type), op.name(), ": result ", i + 1, " is ",
                     to_string(schema.returns[i].type), ", not ", to_string(results[i]));
  return op;
}

void fill_defaults(const Operator& op, Value* frame, size_t given) {
  for (size_t i = given; i < op.argument_count(); ++i)
    frame[i] = Value::borrow(op.schema().arguments[i].default_value.value());
}

}  // namespace umbra::detail
