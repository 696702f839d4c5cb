#include "umbra/transform/level.h"

#include <algorithm>

#include "core/per_thread.h"
#include "umbra/capture/higher_order.h"
#include "umbra/transform/tracked.h"
#include "umbra/transform/vmap.h"

namespace umbra::transform {

namespace {

constexpr DispatchKeySet kKey = DispatchKey::Level;

std::vector<IntrusivePtr<Level>>& levels() {
  static PerThread<std::vector<IntrusivePtr<Level>>> stack;
  return *stack;
}

/// A tensor that a differentiating transform left behind is its value; nothing remembers the tape.
bool replace_ended(const Operator& op, Value* frame) {
  bool any = false;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    bool here = false;
    frame[i].each_tensor([&](TensorImpl* t) { here |= is_ended(t); });
    if (here) frame[i] = map_tensors(frame[i], value_if_ended);
    any |= here;
  }
  return any;
}

void refuse_wrappers(const Operator& op, const Value* frame) {
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([](const TensorImpl* t) {
      check(!t->keys().has(DispatchKey::Level),
            "Either your tensor may have escaped from inside a function being vmapped and this is a user error (see "
            "https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal functorch error in "
            "`gen_vmap_plumbing` Please file an issue if it looks like the latter");
    });
}

void put_stand_ins(const Operator& op, Value* frame, const Level& level) {
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i] = map_tensors(frame[i], [&](const Tensor& t) { return level.stand_in(t); });
}

void level_layer(const Operator& op, DispatchKeySet, Value* frame) {
  if (!levels().empty() && levels().back()->has_stand_ins()) put_stand_ins(op, frame, *levels().back());
  bool replaced = replace_ended(op, frame);
  if (levels().empty()) {
    refuse_wrappers(op, frame);
    check<AssertionError>(replaced, "a call reached the layer of transforms, and none is running");
    return op.call(frame);
  }
  IntrusivePtr<Level> innermost = levels().back();
  innermost->call(op, frame);
}

bool is_captured() {
  for (DispatchKey key : {DispatchKey::Proxy, DispatchKey::PreProxy, DispatchKey::Functionalize, DispatchKey::Fake})
    if (active_mode(key)) return true;
  return false;
}

/// Whether all ways of a call may run, for each element of a batch to take its own. A derivative of a way that was not
/// taken may be infinite, and spoil that of the one that was.
bool may_take_all_ways(const Value& decides) {
  if (!decides.is_tensor()) return false;
  if (is_batched_inside(decides.tensor_ref())) return true;
  return is_captured() && std::ranges::all_of(levels(), [](const IntrusivePtr<Level>& level) {
           return dynamic_cast<const VmapLevel*>(level.get()) != nullptr;
         });
}

/// Operators that take functions simply run: what the functions do comes back to the level, and is captured where calls
/// are. That takes a run whose course follows from sizes.
void level_functions(const Operator& op, DispatchKeySet, Value* frame) {
  const HigherOrder& rule = *op.definition().higher_order;
  if (!levels().empty() && levels().back()->has_stand_ins()) put_stand_ins(op, frame, *levels().back());
  replace_ended(op, frame);
  if (levels().empty()) {
    refuse_wrappers(op, frame);
    frame[0] = Value(FunctionCall(op, frame).call());
    return;
  }
  if (rule.run_undecided && may_take_all_ways(frame[0])) {
    frame[0] = Value(rule.run_undecided(FunctionCall(op, frame)));
    return;
  }
  if (is_captured() && levels().back()->call_functions(op, frame)) return;
  bool follows_data = rule.rehearse != nullptr;
  check<NotImplementedError>(!follows_data || !is_captured(), op.schema().name,
                             ": inside a transform (grad, vmap, ...) it cannot be captured yet");
  op.redispatch(DispatchKey::CPU, frame);
}

const RegisterLayer kLevel(DispatchKey::Level, level_layer);
const RegisterFunctionLayer kLevelFunctions(DispatchKey::Level, level_functions);

}  // namespace

const std::vector<IntrusivePtr<Level>>& level_stack() { return levels(); }

bool Level::call_functions(const Operator&, Value*) { return false; }

void Level::set_stand_in(const Tensor& tensor, const Tensor& here) {
  stand_ins_[tensor.impl()] = {.of = tensor, .here = here};
}

const Tensor& Level::stand_in(const Tensor& tensor) const {
  auto found = stand_ins_.find(tensor.impl());
  return found == stand_ins_.end() ? tensor : found->second.here;
}

std::vector<Tensor> Level::stands_for(const Tensor& own) const {
  std::vector<Tensor> out;
  for (const auto& [_, stand_in] : stand_ins_)
    if (stand_in.here.is_same(own)) out.push_back(stand_in.of);
  return out;
}

void push_level(IntrusivePtr<Level> level) {
  dispatch_state().include |= kKey;
  level->depth_ = static_cast<int>(levels().size()) + 1;
  levels().push_back(level);
  level->on_begin();
}

void pop_level(const Level* level) {
  auto& stack = levels();
  size_t place = stack.size();
  while (place > 0 && stack[place - 1].get() != level) --place;
  if (place == 0) return;  // an outer one has ended before, and this one with it
  while (stack.size() >= place) {
    IntrusivePtr<Level> last = std::move(stack.back());
    stack.pop_back();
    last->ended_ = true;
    last->on_end();
  }
  if (stack.empty()) dispatch_state().include = dispatch_state().include - kKey;
}

WithoutLevel::WithoutLevel() : level_(levels().back()), before_(dispatch_state()) {
  levels().pop_back();
  if (levels().empty()) dispatch_state().include = before_.include - kKey;
}

WithoutLevel::~WithoutLevel() {
  levels().push_back(std::move(level_));
  dispatch_state() = before_;
}

WithinLevel::WithinLevel(const IntrusivePtr<Level>& level) : before_(dispatch_state()) {
  levels().push_back(level);
  dispatch_state().include |= kKey;
  dispatch_state().exclude = dispatch_state().exclude - kKey;
}

WithinLevel::~WithinLevel() {
  levels().pop_back();
  dispatch_state() = before_;
}

}  // namespace umbra::transform
