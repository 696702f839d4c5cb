#include "graph/annotate.h"

#include <typeinfo>

namespace umbra::fx {

namespace {

template <class... Types> struct TypeList {};

/// Throws an error of the dynamic type of `error`, if that is one of the list.
template <class First, class... Rest>
void throw_same(const Error& error, const std::string& message, TypeList<First, Rest...>) {
  if (typeid(error) == typeid(First)) throw First(message);
  if constexpr (sizeof...(Rest) > 0) throw_same(error, message, TypeList<Rest...>());
}

}  // namespace

void rethrow_annotated(const Node& node, const std::string& detail) {
  try {
    throw;
  } catch (const Error& error) {
    std::string message = concat(error.what(), detail, "\n\nWhile executing ", node.text());
    if (node.meta.source) message += "\nOriginal traceback:\n" + node.meta.source->text();
    throw_same(
        error, message,
        TypeList<Error, IndexError, ValueError, TypeError, KeyError, AttributeError, AssertionError, FileNotFoundError,
                 NotImplementedError, OutOfMemoryError, DataDependentOutputException, DynamicOutputShapeException,
                 UnsupportedOperatorException, GuardOnDataDependentSymNode, ConstraintViolationError, UserError>());
    throw;
  }
}

}  // namespace umbra::fx
