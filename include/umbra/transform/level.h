// The stack of running transforms. grad, vjp, jvp, vmap and functionalize each enter a level for as long as they run
// the function they transform.
//
// The innermost level sees a call first. It takes its own wrappers apart, does its part with itself off the stack (so
// that the next one out sees what it calls), and wraps the results. A wrapper of an outer level is just a tensor to an
// inner one: that is why any nesting is right, and why closures over outer tensors work.
#pragma once

#include <unordered_map>

#include "umbra/dispatch/dispatcher.h"

namespace UMBRA_API umbra {
namespace transform {

class Level;
/// For callers without scopes (Python); EnterLevel is the better way.
void push_level(IntrusivePtr<Level> level);
void pop_level(const Level* level);

class Level : public RefCounted {
 public:
  /// Carries out a call of the function that is being transformed, with this level innermost on the stack.
  virtual void call(const Operator& op, Value* frame) = 0;
  /// Hands a captured call of an operator that takes functions on to the next level out, with functions of its values;
  /// false: it has no such form here.
  virtual bool call_functions(const Operator& op, Value* frame);
  /// The tensor without this level's wrapper; others come back as they are.
  virtual Tensor unwrap(const Tensor& tensor) const = 0;
  /// A value as a tensor of this level's, where that takes nothing besides (functionalize); else the value.
  virtual Tensor as_own(const Tensor& value) const { return value; }

  /// The place on the stack, counted from 1: what printing shows as `lvl`.
  int depth() const { return depth_; }
  /// No longer on the stack, and never again.
  bool ended() const { return ended_; }

  /// Runs a function again that closes over tensors of another level: what stands for one of those here.
  void set_stand_in(const Tensor& tensor, const Tensor& here);
  /// The tensor, or what stands for it.
  const Tensor& stand_in(const Tensor& tensor) const;
  bool has_stand_ins() const { return !stand_ins_.empty(); }
  /// What a tensor of this level stands for.
  std::vector<Tensor> stands_for(const Tensor& own) const;
  /// Where the level's tensors are noted that a call takes apart; null: nowhere.
  void note_in(std::vector<Tensor>* noted) { noted_ = noted; }
  std::vector<Tensor>* noting() const { return noted_; }
  void note(const Tensor& own) const {
    if (noted_) noted_->push_back(own);
  }

 private:
  friend void push_level(IntrusivePtr<Level> level);
  friend void pop_level(const Level* level);
  virtual void on_begin() {}
  virtual void on_end() {}
  int depth_ = 0;
  bool ended_ = false;
  struct StandIn {
    Tensor of, here;
  };
  std::unordered_map<const TensorImpl*, StandIn> stand_ins_;
  std::vector<Tensor>* noted_ = nullptr;
};

/// The thread's levels, outermost first.
const std::vector<IntrusivePtr<Level>>& level_stack();

/// Enters a level for a scope; leaves it, and what was entered inside and not left, however the scope ends.
class EnterLevel {
 public:
  explicit EnterLevel(const IntrusivePtr<Level>& level) : level_(level) { push_level(level); }
  ~EnterLevel() { pop_level(level_.get()); }
  EnterLevel(const EnterLevel&) = delete;

 private:
  IntrusivePtr<Level> level_;
};
/// Takes the innermost level off the stack for a scope: what runs inside is seen by the next one out.
class WithoutLevel {
 public:
  WithoutLevel();
  ~WithoutLevel();
  WithoutLevel(const WithoutLevel&) = delete;

 private:
  IntrusivePtr<Level> level_;
  DispatchState before_;
};

/// Puts a level that was taken off back on the stack for a scope: what runs inside is seen by it.
class WithinLevel {
 public:
  explicit WithinLevel(const IntrusivePtr<Level>& level);
  ~WithinLevel();
  WithinLevel(const WithinLevel&) = delete;

 private:
  DispatchState before_;
};

/// What a wrapper of a level keeps: its layer state.
class Wrapped : public RefCounted {
 public:
  Wrapped(Tensor value, IntrusivePtr<Level> level) : value(std::move(value)), level(std::move(level)) {}
  Tensor value;
  IntrusivePtr<Level> level;
};

/// Applies `f` to each tensor of a value, lists included; anything else comes back as it is.
template <class F> Value map_tensors(const Value& value, F&& f) {
  if (value.is_tensor()) return Value(f(value.tensor_ref()));
  if (value.is_tensor_list()) {
    std::vector<Tensor> list = value.tensor_list().vec();
    for (Tensor& t : list)
      if (t.defined()) t = f(t);
    return Value(std::move(list));
  }
  if (value.is_list()) {
    std::vector<Value> list;
    for (const Value& v : value.list()) list.push_back(map_tensors(v, f));
    return Value(std::move(list));
  }
  return value;
}

}  // namespace transform
}  // namespace umbra
