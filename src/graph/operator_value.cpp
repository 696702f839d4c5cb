#include "umbra/graph/operator_value.h"

#include <mutex>
#include <unordered_map>

namespace umbra::fx {

namespace {
class OperatorObject final : public RefCounted {
 public:
  explicit OperatorObject(const Operator& op) : op_(&op) {}
  const Operator* op() const { return op_; }

 private:
  const Operator* op_;
};
}  // namespace

Value operator_value(const Operator& op) {
  static std::mutex mutex;
  static auto* objects = new std::unordered_map<const Operator*, IntrusivePtr<OperatorObject>>;
  std::lock_guard lock(mutex);
  IntrusivePtr<OperatorObject>& object = (*objects)[&op];
  if (!object) object = make_counted<OperatorObject>(op);
  return Value::object(object);
}

const Operator* operator_in(const Value& value) {
  if (!value.is_object()) return nullptr;
  auto* object = dynamic_cast<const OperatorObject*>(value.object());
  return object ? object->op() : nullptr;
}

}  // namespace umbra::fx
