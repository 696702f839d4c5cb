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

class MissingOperator final : public RefCounted {
 public:
  explicit MissingOperator(std::string target) : target_(std::move(target)) {}
  const std::string& target() const { return target_; }

 private:
  std::string target_;
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

Value missing_operator_value(std::string target) {
  return Value::object(make_counted<MissingOperator>(std::move(target)));
}

const std::string* missing_operator_in(const Value& value) {
  if (!value.is_object()) return nullptr;
  auto* object = dynamic_cast<const MissingOperator*>(value.object());
  return object ? &object->target() : nullptr;
}

}  // namespace umbra::fx
