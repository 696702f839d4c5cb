#include "graph/annotate.h"

#include <typeinfo>
#include <utility>

#include "umbra/graph/interpreter.h"

namespace umbra::fx {

namespace {

template <class... Types> struct TypeList {};

/// Throws an error of the dynamic type of `error`, if that is one of the list.
template <class First, class... Rest>
void throw_same(const Error& error, const std::string& message, TypeList<First, Rest...>) {
  if (typeid(error) == typeid(First)) throw First(message);
  if constexpr (sizeof...(Rest) > 0) throw_same(error, message, TypeList<Rest...>());
}

thread_local bool g_plain = false;

}  // namespace

PlainErrors::PlainErrors() : before_(std::exchange(g_plain, true)) {}
PlainErrors::~PlainErrors() { g_plain = before_; }

void rethrow_annotated(const Node& node, const std::string& detail) {
  try {
    throw;
  } catch (const Error& error) {
    if (g_plain && detail.empty()) throw;
    std::string message = concat(error.what(), detail);
    if (!g_plain) message += concat("\n\nWhile executing ", node.text());
    if (node.meta.source && !g_plain) message += "\nOriginal traceback:\n" + node.meta.source->text();
    throw_same(
        error, message,
        TypeList<Error, IndexError, ValueError, TypeError, KeyError, AttributeError, AssertionError, FileNotFoundError,
                 NotImplementedError, OutOfMemoryError, DataDependentOutputException, DynamicOutputShapeException,
                 UnsupportedOperatorException, GuardOnDataDependentSymNode, ConstraintViolationError, UserError>());
    throw;
  }
}

}  // namespace umbra::fx
