// Composites: an operator that is made of others below autograd calls those that PyTorch calls, in the same order. That
// is what a dispatch mode sees of it, and what a capture records.
#include "levels.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::golden {
namespace {

/// Writes down the operators that come by.
class Log final : public DispatchMode {
 public:
  bool handle(const Operator& op, Value* frame) override {
    const Schema& schema = op.schema();
    seen.push_back(concat(schema.space, "::", schema.name, ".", schema.overload.empty() ? "default" : schema.overload));
    op.call(frame);
    return true;
  }
  std::vector<std::string> seen;
};

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " ") + name;
  return out;
}

}  // namespace

bool check_calls(const Operator& op, const Group& group, const Json& record) {
  if (!record.contains("calls")) return false;
  std::vector<Tensor> tensors = build_tensors(group, record, true);
  std::vector<Value> arguments = build_arguments(op, record, tensors);
  auto log = make_counted<Log>();
  {
    EnterMode scope(log);
    op(std::move(arguments));
  }
  auto wanted = record["calls"].get<std::vector<std::string>>();
  if (log->seen != wanted) throw Mismatch(concat("calls ", joined(log->seen), ", expected ", joined(wanted)));
  return true;
}

}  // namespace umbra::golden
