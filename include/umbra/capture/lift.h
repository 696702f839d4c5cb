// Lifting: tensors that captured code closes over (a model's parameters) become inputs of the graph.
#pragma once

#include <functional>
#include <unordered_map>

#include "umbra/dispatch/dispatcher.h"

namespace UMBRA_API umbra {

/// While it is active, each tensor that reaches an operator is replaced by its stand-in: one that was set, or one that
/// is made for each tensor from outside the program. Plain numbers and literals of the program stay.
class LiftMode final : public Mode {
 public:
  /// Makes the stand-in of a tensor that is met for the first time; an undefined one leaves it as it is.
  using MakeStandIn = std::function<Tensor(const Tensor& real)>;
  /// What tells that a tensor is from outside: that it has data, or, where functionalisation is on inside, that it is
  /// no wrapper (a parameter of a model that was built under FakeMode has no data either).
  enum class Outside : uint8_t {
    HasData,
    NotFunctional,
    Any,  // every tensor: for whoever hands on to another
  };
  explicit LiftMode(MakeStandIn make, Outside outside = Outside::HasData)
      : Mode(DispatchKey::Lift), make_(std::move(make)), outside_(outside) {}

  Tensor replace(const Tensor& tensor);
  void set(const Tensor& real, Tensor stand_in) { stand_ins_[real.impl()] = {real, std::move(stand_in)}; }

 private:
  struct Entry {
    Tensor real, stand_in;
  };
  bool is_outside(const Tensor& tensor) const;
  MakeStandIn make_;
  Outside outside_;
  std::unordered_map<const TensorImpl*, Entry> stand_ins_;
};

}  // namespace umbra
