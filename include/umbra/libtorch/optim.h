// Optimisers with options that are set one after the other, and groups whose options can be changed while they train.
#pragma once

#include "umbra/libtorch/settings.h"

namespace torch::optim {
using namespace umbra::optim;
namespace native = umbra::optim;

class OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
};

// The options of an optimiser: its name, and what may be set besides the learning rate.
#define UMBRA_OPTIMIZER_OPTIONS(Name, ...)                \
  struct Name : OptimizerOptions, native::Name {          \
    using Native = native::Name;                          \
    Name(double lr = Native().lr) { Native::lr = lr; }    \
    double get_lr() const override { return Native::lr; } \
    void set_lr(double lr) override { Native::lr = lr; }  \
    UMBRA_SETTINGS(Name, lr, __VA_ARGS__)                 \
  }
UMBRA_OPTIMIZER_OPTIONS(SGDOptions, momentum, dampening, weight_decay, nesterov);
UMBRA_OPTIMIZER_OPTIONS(AdamOptions, betas, eps, weight_decay, amsgrad);
UMBRA_OPTIMIZER_OPTIONS(AdamWOptions, betas, eps, weight_decay, amsgrad);
UMBRA_OPTIMIZER_OPTIONS(RMSpropOptions, alpha, eps, weight_decay, momentum, centered);
UMBRA_OPTIMIZER_OPTIONS(AdagradOptions, lr_decay, weight_decay, initial_accumulator_value, eps);
UMBRA_OPTIMIZER_OPTIONS(LBFGSOptions, max_iter, max_eval, tolerance_grad, tolerance_change, history_size,
                        line_search_fn);

/// Parameters, and what they are optimised with; those of the optimiser where nothing is said.
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::shared_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  template <class O>
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<O> options)
      : OptimizerParamGroup(std::move(params), std::shared_ptr<OptimizerOptions>(std::move(options))) {}

  const std::vector<Tensor>& params() const { return params_; }
  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() const {
    if (!options_) throw Error("the group has no options of its own yet");
    return *options_;
  }

 private:
  std::vector<Tensor> params_;
  std::shared_ptr<OptimizerOptions> options_;
};

/// An optimiser whose groups hold options of libtorch's form; they are what counts.
template <class Native, class Options> class OptimizerOf : public Native {
 public:
  explicit OptimizerOf(std::vector<Tensor> params, Options defaults = {})
      : OptimizerOf(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, defaults) {}
  explicit OptimizerOf(std::vector<OptimizerParamGroup> groups, Options defaults = {})
      : Native(first(groups).params(), own(first(groups), defaults)), defaults_(defaults) {
    groups_.push_back(with_options(groups[0]));
    for (size_t i = 1; i < groups.size(); ++i) add_param_group(groups[i]);
  }

  void add_param_group(const OptimizerParamGroup& group) {
    groups_.push_back(with_options(group));
    Native::add_param_group({group.params(), own(groups_.back(), defaults_)});
  }
  std::vector<OptimizerParamGroup>& param_groups() { return groups_; }
  OptimizerOptions& defaults() { return defaults_; }
  /// How many parameters there are.
  size_t size() const { return this->parameters().size(); }

  void step() override {
    take_over();
    Native::step();
  }
  Tensor step(const std::function<Tensor()>& closure) override {
    take_over();
    return Native::step(closure);
  }
  double& lr(size_t group) override { return options_of(group).Options::Native::lr; }

 protected:
  void visit_options(size_t group, const native::Optimizer::OptionVisitor& visit) override {
    take_over();
    Native::visit_options(group, visit);
    static_cast<typename Options::Native&>(options_of(group)) = Native::param_groups()[group].options;
  }

 private:
  static const OptimizerParamGroup& first(const std::vector<OptimizerParamGroup>& groups) {
    if (groups.empty()) throw ValueError("optimizer got an empty parameter list");
    return groups.front();
  }
  static const Options& own(const OptimizerParamGroup& group, const Options& defaults) {
    return group.has_options() ? static_cast<const Options&>(group.options()) : defaults;
  }
  OptimizerParamGroup with_options(const OptimizerParamGroup& group) const {
    return {group.params(), std::make_shared<Options>(own(group, defaults_))};
  }
  Options& options_of(size_t group) { return static_cast<Options&>(groups_.at(group).options()); }
  void take_over() {
    for (size_t i = 0; i < groups_.size(); ++i) Native::param_groups()[i].options = options_of(i);
  }

  Options defaults_;
  std::vector<OptimizerParamGroup> groups_;
};

using SGD = OptimizerOf<native::SGD, SGDOptions>;
using Adam = OptimizerOf<native::Adam, AdamOptions>;
using AdamW = OptimizerOf<native::AdamW, AdamWOptions>;
using RMSprop = OptimizerOf<native::RMSprop, RMSpropOptions>;
using Adagrad = OptimizerOf<native::Adagrad, AdagradOptions>;
using LBFGS = OptimizerOf<native::LBFGS, LBFGSOptions>;
#undef UMBRA_OPTIMIZER_OPTIONS

/// Lowers the rates when a number has not become better for a while.
class ReduceLROnPlateauScheduler : public native::ReduceLROnPlateau {
 public:
  enum SchedulerMode { min, max };
  explicit ReduceLROnPlateauScheduler(native::Optimizer& optimizer, SchedulerMode mode = min, double factor = 0.1,
                                      int64_t patience = 10, double threshold = 1e-4)
      : ReduceLROnPlateau(optimizer,
                          {.maximize = mode == max, .factor = factor, .patience = patience, .threshold = threshold}) {}
};

}  // namespace torch::optim
