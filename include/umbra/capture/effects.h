// Effects in captured programs: calls of operators that have some (dispatch/effects.h) hand on a token.
//
//     with_effects = torch.ops.higher_order.with_effects(token, torch.ops.aten._print.default, 'hi')
//     getitem = with_effects[0]                                       # the next one's token
//
// A token is a tensor without elements. Because of it each such call depends on the one before, and the last one's is a
// result of the graph: no pass drops or reorders them.
#pragma once

#include <functional>
#include <vector>

#include "umbra/capture/tracer.h"

namespace UMBRA_API umbra {

/// While it lasts, functionalisation on this thread makes calls with effects pass a token on.
class EffectScope {
 public:
  /// `first` gives the token of the first effect.
  explicit EffectScope(std::function<Tensor()> first);
  ~EffectScope();
  EffectScope(const EffectScope&) = delete;
  EffectScope& operator=(const EffectScope&) = delete;

  /// The token after the last effect; undefined where there was none.
  const Tensor& token() const { return token_; }
  /// A call with effects on values below functionalisation; the results take the arguments' places in the frame.
  void call(const Operator& op, Value* frame);

  /// The innermost one of this thread, or null.
  static EffectScope* current();

 private:
  std::function<Tensor()> first_;
  Tensor token_;
  EffectScope* before_;
};

/// Inside a function that becomes a graph of its own, calls are recorded as they are.
class WithoutEffectScope {
 public:
  WithoutEffectScope();
  ~WithoutEffectScope();
  WithoutEffectScope(const WithoutEffectScope&) = delete;
  WithoutEffectScope& operator=(const WithoutEffectScope&) = delete;

 private:
  EffectScope* before_;
};

/// What a token looks like.
TensorSpec token_spec();
/// A token of its own, as graphs are given one.
Tensor make_token();

/// Makes a graph make its token by itself (prims._make_token) rather than take it as its first or last input, and sink
/// the last one (prims._sink_tokens) rather than give it.
void unlift_token(fx::Graph& graph, bool first);

/// Makes calls that hand on tokens calls of their operators, which stand where they stood.
void drop_tokens(fx::Graph& graph);

/// Calls an operator with its arguments, as a call that takes a token: gives a new one and the results. Recorded where
/// a tracer is active.
std::vector<Value> with_effects(const Tensor& token, const Operator& op, std::vector<Value> arguments);

}  // namespace umbra
