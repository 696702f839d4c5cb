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
  if (!active_mode(DispatchKey::Fake))
    fail<NotImplementedError>(op,
                              ": attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
                              "kernel registered.");
}
/// Of a tensor with data; a fake one has the mark in its own state.
class ZeroState final : public RefCounted, public ZeroMark {
 public:
  explicit ZeroState(const Storage& storage) : storage_(storage), version_(storage->version()) {}
  bool is_zero() const override {
    Storage storage = storage_.lock();
    return storage && storage->version() == version_;
  }

 private:
  WeakPtr<StorageImpl> storage_;
  uint32_t version_;
};
}  // namespace

void mark_zero(const Tensor& zeros) {
  if (zeros.is_fake()) answers().mark_zero(zeros);
  else if (!zeros.impl()->layer_state()) zeros.impl()->set_layer_state(make_counted<ZeroState>(zeros.storage()));
}

bool is_marked_zero(const Tensor& tensor) {
  auto* mark = dynamic_cast<const ZeroMark*>(tensor.impl()->layer_state().get());
  return mark && mark->is_zero();
}

SymInt unknown_size(const char* op, SymInt most, MostIs known) {
  check_fake_run(op);
  return answers().size(op, most, known);
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
