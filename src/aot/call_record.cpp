#include "aot/call_record.h"

#include <unordered_map>

#include "aot/graph_bytes.h"
#include "autograd/user_code.h"
#include "umbra/core/wrapped_number.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::aot {

namespace {
constexpr uint32_t kWrappedNumber = UINT32_MAX;  // in place of a tensor's own number
}

class CallRecord::Recorder final : public DispatchMode {
 public:
  bool handle(const Operator& op, Value* frame) override {
    record(op, frame);
    op.call(frame);
    for (size_t i = 0; i < op.return_count(); ++i) give_numbers(frame[i]);
    return true;
  }

  /// A new run of the function on these inputs.
  void begin(const std::vector<Value>& inputs) {
    for (const Value& v : inputs) give_numbers(v);
    user_code_ = autograd::user_code_calls();
    refuse_other_modes();
  }
  void end(const std::vector<Value>& results) {
    if (autograd::user_code_calls() != user_code_) refuse("code of the user's in the backward");
    attempt([&] {
      for (const Value& v : results) described(v);
    });
  }

  std::string finish(const CallInfo& info, std::string& why_not) const {
    why_not = why_not_;
    ByteWriter out;
    out.bytes() = bytes_.bytes();
    out.text(to_string(info));
    for (const Tensor& t : foreign_) {
      auto is_it = [&](const PrimalInfo& p) { return p.tensor.defined() && p.tensor.is_same(t); };
      if (std::any_of(info.primals.begin(), info.primals.end(), is_it)) continue;
      try {
        out.contents(t);
      } catch (const NotStorable& reason) {
        why_not = reason.why;
      }
    }
    return std::move(out.bytes());
  }

 private:
  void refuse(const std::string& why) {
    if (why_not_.empty()) why_not_ = why;
  }

  /// A mode may change calls, or have what it sees computed again (checkpoints).
  void refuse_other_modes() {
    for (const IntrusivePtr<Mode>& mode : mode_stack())
      if (mode->key() == DispatchKey::UserMode && mode.get() != this) refuse("a mode of the user's");
  }

  void give_numbers(const Value& v) {
    if (v.is_tensor()) number_of(v.tensor_ref());
    else if (v.tag() == Value::Tag::TensorList)
      for (const Tensor& t : v.tensor_list()) number_of(t);
    else if (v.tag() == Value::Tag::List)
      for (const Value& item : v.list()) give_numbers(item);
  }
  size_t number_of(const Tensor& t) {
    if (!t.defined()) return 0;
    auto [place, is_new] = numbers_.try_emplace(t.impl(), numbers_.size() + 1);
    if (is_new) kept_.push_back(t);  // so that no other tensor gets its address
    return place->second;
  }

  void tensor(const Tensor& t) {
    if (t.defined() && t.impl()->is_wrapped_number()) {
      bytes_.number<uint32_t>(kWrappedNumber);
      return bytes_.plain(Value(wrapped_scalar(t)));
    }
    bool is_foreign = t.defined() && !numbers_.contains(t.impl());
    bytes_.number<uint32_t>(static_cast<uint32_t>(number_of(t)));
    if (!t.defined()) return;
    bytes_.number<uint8_t>(t.requires_grad());
    if (!is_foreign) return;
    foreign_.push_back(t);
    bytes_.spec(TensorSpec(t.sym_sizes(), t.sym_strides(), t.dtype(), t.device()));
  }

  void described(const Value& v) {
    bytes_.number<uint8_t>(static_cast<uint8_t>(v.tag()));
    if (v.is_tensor()) return tensor(v.tensor_ref());
    if (v.tag() == Value::Tag::TensorList) {
      bytes_.number<uint32_t>(static_cast<uint32_t>(v.tensor_list().size()));
      for (const Tensor& t : v.tensor_list()) tensor(t);
      return;
    }
    if (v.tag() == Value::Tag::List) {
      bytes_.number<uint32_t>(static_cast<uint32_t>(v.list().size()));
      for (const Value& item : v.list()) described(item);
      return;
    }
    if (v.is_object()) return;  // the form of the results: no part of the graphs
    bytes_.plain(v);
  }

  void record(const Operator& op, const Value* frame) {
    refuse_other_modes();
    attempt([&] {
      if (!op.name().starts_with("aten::") && !op.name().starts_with("prims::")) refuse("the operator " + op.name());
      bytes_.text(op.name());
      bytes_.number<uint8_t>(is_grad_enabled());
      for (size_t i = 0; i < op.schema().arguments.size(); ++i) {
        if (op.schema().arguments[i].type.base == SchemaType::Base::Callable)
          refuse("an operator that takes functions");
        if (frame[i].is_object()) refuse("an argument that is an object");
        described(frame[i]);
      }
    });
  }

  /// What cannot be written down is a reason not to keep the graphs, not to fail.
  template <class Write> void attempt(const Write& write) {
    try {
      write();
    } catch (const NotStorable& reason) {
      refuse(reason.why);
    }
  }

  ByteWriter bytes_;
  std::string why_not_;
  uint64_t user_code_ = 0;
  std::unordered_map<const TensorImpl*, size_t> numbers_;
  std::vector<Tensor> kept_, foreign_;
};

CallRecord::CallRecord() : recorder_(make_counted<Recorder>()) {}
CallRecord::~CallRecord() = default;

ValueFunction CallRecord::watch(const ValueFunction& function) {
  return [recorder = recorder_, &function](const std::vector<Value>& inputs) {
    recorder->begin(inputs);
    EnterMode scope(recorder);
    std::vector<Value> results = function(inputs);
    recorder->end(results);
    return results;
  };
}

std::string CallRecord::finish(const CallInfo& info, std::string& why_not) const {
  return recorder_->finish(info, why_not);
}

}  // namespace umbra::aot
