// Schedulers: rates that change from epoch to epoch, with PyTorch's names and formulas.
//
//     optim::SGD optimizer(model.parameters(), {.lr = 0.1});
//     optim::StepLR scheduler(optimizer, {.step_size = 30});
//     for (int epoch = 0; epoch < 90; ++epoch) {
//       train(model, optimizer);
//       scheduler.step();
//     }
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "umbra/optim/optim.h"

namespace UMBRA_API umbra {
namespace optim {

/// Sets the rates of an optimiser's groups. The optimiser has to outlive it.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  /// Goes on to the next epoch.
  void step();
  /// The rates of the groups now.
  std::vector<double> get_last_lr() const;
  int64_t last_epoch() const { return epoch_; }

  /// What a scheduler has to know to go on where another one was.
  struct State {
    int64_t last_epoch = 0;
    std::vector<double> base_lrs;
  };
  State state_dict() const { return {epoch_, base_rates_}; }
  /// Takes over the epoch and the base rates; the optimiser's own state has the rates.
  void load_state_dict(const State& state);

 protected:
  explicit LRScheduler(Optimizer& optimizer);
  /// The rate of a group in an epoch, from the one it started with and the one it has.
  virtual double rate(int64_t epoch, double base, double now) const = 0;
  /// For constructors: sets the rates of the first epoch.
  void start();

 private:
  Optimizer& optimizer_;
  int64_t epoch_ = -1;
  std::vector<double> base_rates_;
};

struct StepLROptions {
  int64_t step_size = 1;
  double gamma = 0.1;
};
/// Times `gamma` every `step_size` epochs.
class StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, const StepLROptions& options);
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1)
      : StepLR(optimizer, StepLROptions{step_size, gamma}) {}

 private:
  double rate(int64_t epoch, double base, double now) const override;
  StepLROptions options_;
};

/// Times `gamma` at each milestone.
class MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 private:
  double rate(int64_t epoch, double base, double now) const override;
  std::vector<int64_t> milestones_;
  double gamma_;
};

/// Times `gamma` each epoch.
class ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double rate(int64_t epoch, double base, double now) const override;
  double gamma_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3, end_factor = 1;
  int64_t total_iters = 5;
};
/// From one factor of the base rate to another, along a line.
class LinearLR final : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, const LinearLROptions& options = {});

 private:
  double rate(int64_t epoch, double base, double now) const override;
  LinearLROptions options_;
};

struct CosineAnnealingLROptions {
  int64_t T_max = 1;
  double eta_min = 0;
};
/// Down to `eta_min` along half a cosine of `T_max` epochs, and up again.
class CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options);
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0)
      : CosineAnnealingLR(optimizer, CosineAnnealingLROptions{T_max, eta_min}) {}

 private:
  double rate(int64_t epoch, double base, double now) const override;
  CosineAnnealingLROptions options_;
};

/// The base rate times a function of the epoch.
class LambdaLR final : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda);

 private:
  double rate(int64_t epoch, double base, double now) const override;
  std::function<double(int64_t)> factor_;
};

struct ReduceLROnPlateauOptions {
  bool maximize = false;  // whether the number should grow; else it should shrink
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;  // how much better counts, relative to the best
  int64_t cooldown = 0;
  double min_lr = 0, eps = 1e-8;
};
/// Lowers the rates when a number, such as the loss, has not become better for `patience` epochs.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  void step(double metric);

 private:
  bool is_better(double metric) const;

  Optimizer& optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_;
  int64_t bad_epochs_ = 0, cooling_ = 0;
};

}  // namespace optim
}  // namespace umbra
