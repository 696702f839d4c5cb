// Optimisers: SGD, Adam, AdamW, with PyTorch's update rules and names of state.
//
//     optim::AdamW optimizer(model.parameters(), {.lr = 1e-3});
//     loss.backward();
//     optimizer.step();
//     optimizer.zero_grad();
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace optim {

/// What an optimiser keeps about one parameter: "momentum_buffer", or "step", "exp_avg", "exp_avg_sq".
using ParameterState = std::map<std::string, Tensor>;

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Changes every parameter that has a gradient.
  void step();
  void zero_grad(bool set_to_none = true);
  const std::vector<Tensor>& parameters() const { return parameters_; }
  /// Empty until the parameter's first step.
  ParameterState& state(const Tensor& parameter);

 protected:
  explicit Optimizer(std::vector<Tensor> parameters);
  virtual void update(const Tensor& parameter, Tensor gradient, ParameterState& state) = 0;

 private:
  std::vector<Tensor> parameters_;
  std::unordered_map<const TensorImpl*, ParameterState> states_;
};

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};

class SGD final : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> parameters, const SGDOptions& options = {});
  SGDOptions& options() { return options_; }

 private:
  void update(const Tensor& parameter, Tensor gradient, ParameterState& state) override;
  SGDOptions options_;
};

struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false, maximize = false;
};

/// Weight decay is added to the gradient.
class Adam final : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});
  AdamOptions& options() { return options_; }

 private:
  void update(const Tensor& parameter, Tensor gradient, ParameterState& state) override;
  AdamOptions options_;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false, maximize = false;
};

/// Weight decay shrinks the parameter itself.
class AdamW final : public Optimizer {
 public:
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& options = {});
  AdamWOptions& options() { return options_; }

 private:
  void update(const Tensor& parameter, Tensor gradient, ParameterState& state) override;
  AdamWOptions options_;
};

}  // namespace optim
}  // namespace umbra
