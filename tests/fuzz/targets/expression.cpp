// Symbolic expressions: what is read is printed, and the printed text is an expression again.
#include "target.h"
#include "umbra/sym/parse.h"
#include "umbra/sym/shape_env.h"

void umbra::fuzz::run(std::string_view input) {
  auto env = make_counted<sym::ShapeEnv>();
  sym::ParseOptions options;
  options.source = [&](std::string_view) { return sym::parse(*env, "s0"); };
  const sym::Expression* expression = sym::parse(*env, input, options);
  sym::parse(*env, expression->to_string());
}
