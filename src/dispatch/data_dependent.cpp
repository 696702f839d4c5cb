#include "dispatch/data_dependent.h"

#include "umbra/dispatch/dispatcher.h"

namespace umbra {

namespace {
DataDependentAnswers& answers() {
  static DataDependentAnswers known{};
  return known;
}
// A meta tensor has no mode that could answer.
void check_fake_run(const char* op) {
  if (!active_mode(DispatchKey::Fake)) fail<UnsupportedOperatorException>(op);
}
}  // namespace

SymInt unknown_size(const char* op, SymInt most) {
  check_fake_run(op);
  return answers().size(op, most);
}

SymInt unknown_count(const char* op, const Tensor& self) {
  check_fake_run(op);
  return answers().count(op, self);
}

Scalar unknown_element(const char* op, const Tensor& self) {
  check_fake_run(op);
  return answers().element(op, self);
}

void set_data_dependent_answers(DataDependentAnswers given) { answers() = given; }

}  // namespace umbra
