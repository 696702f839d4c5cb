#include "umbra/optim/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "umbra/core/error.h"

namespace umbra::optim {

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (size_t group = 0; group < optimizer.group_count(); ++group) base_rates_.push_back(optimizer.lr(group));
}

void LRScheduler::start() { step(); }

void LRScheduler::step() {
  ++epoch_;
  // Groups that were added since start from the rate they have.
  for (size_t group = base_rates_.size(); group < optimizer_.group_count(); ++group)
    base_rates_.push_back(optimizer_.lr(group));
  for (size_t group = 0; group < base_rates_.size(); ++group)
    optimizer_.lr(group) = rate(epoch_, base_rates_[group], optimizer_.lr(group));
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (size_t group = 0; group < optimizer_.group_count(); ++group) rates.push_back(optimizer_.lr(group));
  return rates;
}

void LRScheduler::load_state_dict(const State& state) {
  check<ValueError>(state.base_lrs.size() == optimizer_.group_count(), "the state is that of a scheduler of ",
                    state.base_lrs.size(), " parameter groups, the optimizer has ", optimizer_.group_count());
  epoch_ = state.last_epoch;
  base_rates_ = state.base_lrs;
}

// ---- rates from the epoch, one factor after the other, as PyTorch computes them ----

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& options) : LRScheduler(optimizer), options_(options) {
  check<ValueError>(options.step_size > 0, "step_size should be positive, got ", options.step_size);
  start();
}
double StepLR::rate(int64_t epoch, double, double now) const {
  return epoch == 0 || epoch % options_.step_size != 0 ? now : now * options_.gamma;
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  start();
}
double MultiStepLR::rate(int64_t epoch, double, double now) const {
  return now * std::pow(gamma_, std::ranges::count(milestones_, epoch));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) { start(); }
double ExponentialLR::rate(int64_t epoch, double, double now) const { return epoch == 0 ? now : now * gamma_; }

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& options) : LRScheduler(optimizer), options_(options) {
  check<ValueError>(options.start_factor > 0 && options.start_factor <= 1,
                    "Starting multiplicative factor expected to be greater than 0 and less or equal to 1.");
  check<ValueError>(options.end_factor >= 0 && options.end_factor <= 1,
                    "Ending multiplicative factor expected to be between 0 and 1.");
  start();
}
double LinearLR::rate(int64_t epoch, double, double now) const {
  if (epoch == 0) return now * options_.start_factor;
  if (epoch > options_.total_iters) return now;
  double rise = options_.end_factor - options_.start_factor, count = static_cast<double>(options_.total_iters);
  return now * (1 + rise / (count * options_.start_factor + static_cast<double>(epoch - 1) * rise));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  check<ValueError>(options.T_max > 0, "T_max should be positive, got ", options.T_max);
  start();
}
double CosineAnnealingLR::rate(int64_t epoch, double base, double now) const {
  auto [half_period, least] = options_;
  double count = static_cast<double>(half_period), pi = std::numbers::pi;
  if (epoch == 0) return now;
  if ((epoch - 1 - half_period) % (2 * half_period) == 0) return now + (base - least) * (1 - std::cos(pi / count)) / 2;
  double turn = static_cast<double>(epoch);
  return (1 + std::cos(pi * turn / count)) / (1 + std::cos(pi * (turn - 1) / count)) * (now - least) + least;
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda)
    : LRScheduler(optimizer), factor_(std::move(lr_lambda)) {
  start();
}
double LambdaLR::rate(int64_t epoch, double base, double) const { return base * factor_(epoch); }

// ---- rates from what came of them ----

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options)
    : optimizer_(optimizer),
      options_(options),
      best_(options.maximize ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()) {
  check<ValueError>(options.factor < 1, "Factor should be < 1.0.");
}

bool ReduceLROnPlateau::is_better(double metric) const {
  return options_.maximize ? metric > best_ * (1 + options_.threshold) : metric < best_ * (1 - options_.threshold);
}

void ReduceLROnPlateau::step(double metric) {
  if (is_better(metric)) {
    best_ = metric;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (cooling_ > 0) {
    --cooling_;
    bad_epochs_ = 0;
  }
  if (bad_epochs_ <= options_.patience) return;
  for (size_t group = 0; group < optimizer_.group_count(); ++group) {
    double& now = optimizer_.lr(group);
    double lower = std::max(now * options_.factor, options_.min_lr);
    if (now - lower > options_.eps) now = lower;
  }
  cooling_ = options_.cooldown;
  bad_epochs_ = 0;
}

}  // namespace umbra::optim
