#include "graph/unfinished.h"

#include <exception>

namespace umbra::fx {

namespace {
size_t (*g_count)() = nullptr;
void (*g_end)(size_t kept) = nullptr;
}  // namespace

void set_unfinished(size_t (*count)(), void (*end)(size_t kept)) {
  g_count = count;
  g_end = end;
}

EndUnfinished::EndUnfinished() : count_(g_count ? g_count() : 0), exceptions_(std::uncaught_exceptions()) {}
EndUnfinished::~EndUnfinished() {
  if (g_end && std::uncaught_exceptions() > exceptions_) g_end(count_);
}

}  // namespace umbra::fx
