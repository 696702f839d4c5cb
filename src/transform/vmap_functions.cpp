// Operators that take functions, captured inside vmap, where no batch decides: the call goes on to the next level out,
// with functions of the whole batch.
#include "transform/function_calls.h"
#include "umbra/generated/functions.h"
#include "umbra/transform/vmap.h"

namespace umbra::transform {

namespace {

using LevelPointer = IntrusivePtr<VmapLevel>;

class BatchedFunctions {
 public:
  BatchedFunctions(const FunctionCall& call, const LevelPointer& level)
      : level_(level), call_(std::make_shared<LevelCall>(call, *level, [&](const Tensor& t) {
          return batched_state(t.impl(), level.get()) != nullptr;
        })) {
    for (const Value& v : call_->elements()) note_element(v);
    // A loop's way back sums up what it owes to these, and sums are theirs in form.
    bool sums = call.rule().by_others != nullptr;
    for (size_t i = 0; i < batched_.size(); ++i)
      if (const Value& v = call_->elements()[i]; sums && v.is_tensor() && is_differentiable(v.tensor_ref().dtype()))
        batched_[i] = true;
    run_aside(call_->call(), [&] { follow_steps(); });
  }

  std::vector<Value> results() const {
    std::vector<Value> out;
    {
      WithoutLevel off;
      out = lowered().call();
    }
    std::vector<bool> batched = of_results(call_->call().functions().size() - 1, out.size());
    for (size_t i = 0; i < out.size(); ++i)
      if (batched[i] && out[i].is_tensor()) out[i] = Value(level_->wrap(out[i].tensor_ref(), 0));
    return out;
  }

 private:
  void note_element(const Value& v) {
    batched_.push_back(v.is_tensor() && batched_state(v.tensor_ref().impl(), level_.get()));
    check<NotImplementedError>(!batched_.back() || !v.tensor_ref().requires_grad() || !is_grad_enabled(),
                               call_->call().op().schema().name,
                               ": a gradient inside of another transform cannot be captured yet");
  }

  /// What is carried is a batch where a step makes it one.
  void follow_steps() {
    for (bool more = true; more;) {
      more = false;
      for (const CarriedList& step : call_->call().rule().steps) {
        WithoutLevel off;
        std::vector<Value> values;
        for (size_t i : call_->inputs(step.function)) values.push_back(shown(i));
        auto level = make_counted<VmapLevel>(level_->size(), level_->randomness());
        std::vector<Value> given = run(*level, step.function, values, *call_, batched_);
        std::vector<size_t> carried = call_->carried_by(step.function);
        for (size_t k = 0; k < std::min(carried.size(), given.size()); ++k) {
          bool is_batch = given[k].is_tensor() && batched_state(given[k].tensor_impl(), level.get());
          if (is_batch && !batched_[carried[k]]) batched_[carried[k]] = more = true;
        }
      }
    }
  }

  /// What stands one level out for an element.
  Value shown(size_t element) const {
    const Value& v = call_->elements()[element];
    return v.is_tensor() && batched_[element] ? Value(in_front(level_->value(v.tensor_ref()))) : v;
  }

  static std::vector<Value> run(VmapLevel& level, size_t which, const std::vector<Value>& values, const LevelCall& call,
                                const std::vector<bool>& batched) {
    EnterLevel scope{LevelPointer(&level)};
    std::vector<Value> inputs = values;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].is_tensor() && batched[call.inputs(which)[i]])
        inputs[i] = Value(level.wrap(inputs[i].tensor_ref(), 0));
    return call.run(level, which, inputs);
  }

  /// Which results of a function are batches: what is carried where it is one, what others give always; a condition
  /// never.
  std::vector<bool> of_results(size_t which, size_t count) const {
    std::vector<bool> out(count, which != call_->call().rule().single_result);
    std::vector<size_t> carried = call_->carried_by(which);
    for (size_t k = 0; k < std::min(count, carried.size()); ++k) out[k] = batched_[carried[k]];
    return out;
  }

  FunctionCall lowered() const {
    size_t next = 0;
    FunctionCall out = with_lists(call_->call(), [&](size_t list) {
      std::vector<Value> of_list;
      for (; next < batched_.size() && call_->list_of(next) == list; ++next) of_list.push_back(shown(next));
      return of_list;
    });
    std::vector<size_t> positions = out.functions();
    for (size_t which = 0; which < positions.size(); ++which) {
      auto function = [self = *this, which](const std::vector<Value>& values) { return self.whole(which, values); };
      out.set_argument(positions[which], function_value(function, is_closed(call_->call().argument(positions[which]))));
    }
    return out;
  }

  std::vector<Value> whole(size_t which, const std::vector<Value>& values) const {
    auto level = make_counted<VmapLevel>(level_->size(), level_->randomness());
    std::vector<Value> results = run(*level, which, values, *call_, batched_);
    std::vector<bool> batched = of_results(which, results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].is_tensor()) continue;
      bool is_batch = batched_state(results[i].tensor_impl(), level.get());
      check<NotImplementedError>(batched[i] || !is_batch, call_->call().op().schema().name,
                                 ": inside vmap, a loop that goes on for some elements of a batch and not for others "
                                 "cannot be captured");
      if (batched[i]) results[i] = Value(in_front(level->value(results[i].tensor_ref())));
    }
    return results;
  }

  Tensor in_front(const Batched& b) const {
    if (b.is_batched()) return b.dim == 0 ? b.value : b.value.movedim(b.dim, 0);
    SymShape sizes{level_->size()};
    for (SymInt s : b.value.sym_sizes()) sizes.push_back(s);
    return b.value.unsqueeze(0).expand(sizes).contiguous();
  }

  LevelPointer level_;
  std::shared_ptr<LevelCall> call_;
  std::vector<bool> batched_;
};

}  // namespace

bool VmapLevel::call_functions(const Operator& op, Value* frame) {
  FunctionCall call(op, frame);
  if (!call.rule().rehearse) return false;
  check<NotImplementedError>(!frame[0].is_tensor() || !batched_state(frame[0].tensor_impl(), this), op.schema().name,
                             ": inside a transform, a batch that decides cannot be captured");
  frame[0] = Value(BatchedFunctions(call, LevelPointer(this)).results());
  return true;
}

}  // namespace umbra::transform
