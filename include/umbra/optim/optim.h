// Optimisers: SGD, Adam, AdamW, RMSprop, Adagrad, SparseAdam and LBFGS, with PyTorch's update rules and names of
// options and state.
//
//     optim::AdamW optimizer(model.parameters(), {.lr = 1e-3});
//     loss.backward();
//     optimizer.step();
//     optimizer.zero_grad();
//
// Groups of parameters have options of their own:
//
//     optim::SGD optimizer({{model.body.parameters(), {.lr = 1e-3}}, {model.head.parameters(), {.lr = 1e-2}}});
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace optim {

/// What an optimiser keeps about one parameter: "momentum_buffer", or "step", "exp_avg", "exp_avg_sq".
using ParameterState = std::map<std::string, Tensor>;

/// All that an optimiser has to know to go on where another one was: parameters are known by their numbers.
struct OptimizerState {
  struct Group {
    std::map<std::string, double> options;  // "lr", "momentum", "betas.0"; a bool is 0 or 1
    std::vector<int64_t> parameters;
  };
  std::map<int64_t, ParameterState> state;
  std::vector<Group> param_groups;
};

class Optimizer {
 public:
  virtual ~Optimizer();
  /// Changes every parameter that has a gradient.
  virtual void step();
  /// The same after `closure`, which computes the gradients, and gives the loss that it gave.
  virtual Tensor step(const std::function<Tensor()>& closure);
  void zero_grad(bool set_to_none = true);
  /// Those of all groups, in order.
  const std::vector<Tensor>& parameters() const { return parameters_; }
  /// Empty until the parameter's first step.
  ParameterState& state(const Tensor& parameter);

  virtual size_t group_count() const = 0;
  /// The rate of a group; schedulers change it.
  virtual double& lr(size_t group) = 0;

  /// The state shares its tensors with the optimiser.
  OptimizerState state_dict() const;
  /// Goes on from the state of an optimiser of the same kind, with groups of the same sizes. Tensors are converted to
  /// the types of their parameters; what fits already is shared. A state of another kind, with options that this one
  /// does not have, is refused before anything has changed.
  void load_state_dict(const OptimizerState& state);

 protected:
  Optimizer();
  /// Takes over the parameters of a new group, which has to be the last.
  void take(const std::vector<Tensor>& parameters);
  virtual void update(size_t group, const Tensor& parameter, Tensor gradient, ParameterState& state) = 0;
  /// Calls `visit(name, value)` with every option of a group; what `visit` writes is taken over.
  using OptionVisitor = std::function<void(const std::string& name, double& value)>;
  virtual void visit_options(size_t group, const OptionVisitor& visit) = 0;
  /// Refuses what is no state of this parameter; by default a tensor of another size.
  virtual void check_state(const Tensor& parameter, const ParameterState& state) const;

 private:
  void check_options_of(const OptimizerState::Group& given, size_t group);

  std::vector<Tensor> parameters_;
  std::vector<size_t> group_sizes_;
  struct States;
  IntrusivePtr<States> states_;
};

/// Parameters, and the options they are optimised with.
template <class Options> struct ParameterGroup {
  std::vector<Tensor> parameters;
  Options options = {};
};

/// What optimisers with options of one type share: the groups.
template <class Options> class GroupedOptimizer : public Optimizer {
 public:
  using Group = ParameterGroup<Options>;

  /// The options of the first group.
  Options& options() { return groups_.front().options; }
  std::vector<Group>& param_groups() { return groups_; }
  void add_param_group(Group group) {
    check_options(group.options);
    take(group.parameters);
    groups_.push_back(std::move(group));
  }
  size_t group_count() const override { return groups_.size(); }
  double& lr(size_t group) override { return groups_.at(group).options.lr; }

 protected:
  GroupedOptimizer() = default;
  virtual void check_options(const Options& options) const = 0;
  void add_all(std::vector<Group> groups);
  const Options& options_of(size_t group) const { return groups_[group].options; }

 private:
  std::vector<Group> groups_;
};

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};

struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false, maximize = false;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false, maximize = false;
};

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};

struct SparseAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool maximize = false;
};

struct LBFGSOptions {
  double lr = 1;
  int64_t max_iter = 20;
  std::optional<int64_t> max_eval = {};  // 1.25 max_iter where it is left out
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  int64_t history_size = 100;
  std::string line_search_fn = "";  // or "strong_wolfe"
  bool maximize = false;
};

// Each is made of parameters and options, or a rate alone, or of groups of them.
#define UMBRA_OPTIMIZER(Name)                                                                            \
  class Name : public GroupedOptimizer<Name##Options> {                                                  \
   public:                                                                                               \
    explicit Name(std::vector<Tensor> parameters, const Name##Options& options = {});                    \
    template <std::same_as<double> D>                                                                    \
    Name(std::vector<Tensor> parameters, D lr) : Name(std::move(parameters), Name##Options{.lr = lr}) {} \
    explicit Name(std::vector<Group> groups);                                                            \
                                                                                                         \
   protected:                                                                                            \
    void check_options(const Name##Options& options) const override;                                     \
    void update(size_t group, const Tensor& parameter, Tensor gradient, ParameterState& state) override; \
    void visit_options(size_t group, const OptionVisitor& visit) override;                               \
  }

/// Gradient descent, with momentum. Takes sparse gradients, as Adagrad does.
UMBRA_OPTIMIZER(SGD);
/// Weight decay is added to the gradient.
UMBRA_OPTIMIZER(Adam);
/// Weight decay shrinks the parameter itself.
UMBRA_OPTIMIZER(AdamW);
/// Steps divided by the root of the mean square of the gradients.
UMBRA_OPTIMIZER(RMSprop);
/// Steps divided by the root of the sum of squares of the gradients.
UMBRA_OPTIMIZER(Adagrad);
/// Adam for sparse gradients: changes those elements alone, and the moments of those, that a gradient has.
UMBRA_OPTIMIZER(SparseAdam);

#undef UMBRA_OPTIMIZER

/// Quasi-Newton steps from the last `history_size` gradients. One step is up to `max_iter` of them, each of which calls
/// the closure: the gradients are to be zeroed there. There is one group alone.
class LBFGS : public GroupedOptimizer<LBFGSOptions> {
 public:
  explicit LBFGS(std::vector<Tensor> parameters, const LBFGSOptions& options = {});
  template <std::same_as<double> D>
  LBFGS(std::vector<Tensor> parameters, D lr) : LBFGS(std::move(parameters), LBFGSOptions{.lr = lr}) {}
  /// Refused: the gradient at one place is not enough.
  void step() override;
  /// The loss where the step began.
  Tensor step(const std::function<Tensor()>& closure) override;

 protected:
  void check_options(const LBFGSOptions& options) const override;
  void update(size_t group, const Tensor& parameter, Tensor gradient, ParameterState& state) override;
  void visit_options(size_t group, const OptionVisitor& visit) override;
  void check_state(const Tensor& parameter, const ParameterState& state) const override;

 private:
  class Search;
};

}  // namespace optim
}  // namespace umbra
