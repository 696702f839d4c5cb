// Limited-memory BFGS, with PyTorch's rules for when to stop and its search along a line.
#include <algorithm>
#include <cmath>

#include "optim/options.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"
#include "umbra/ops/tensor_of.h"
#include "umbra/optim/optim.h"

namespace umbra::optim {

namespace {

double dot_of(const Tensor& a, const Tensor& b) { return a.dot(b).item<double>(); }
double largest(const Tensor& a) { return a.abs().max().item<double>(); }

/// A place on the line: how far along it, the function there, its gradient, and its slope along the line.
struct Place {
  double t = 0, value = 0;
  Tensor gradient;
  double slope = 0;
};

/// Where the cubic through two places with their slopes is least, between two bounds.
double cubic_minimum(const Place& a, const Place& b, double low, double high) {
  double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t), square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  double d2 = std::sqrt(square);
  double at = a.t <= b.t ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                         : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return std::min(std::max(at, low), high);
}

/// A step that is short enough to lower the function (`kLower`) and long enough to flatten it (`kFlatter`): the strong
/// Wolfe conditions. `at(t)` goes to a place of the line.
template <class At> class LineSearch {
 public:
  LineSearch(const Place& start, double size, double tolerance, const At& at)
      : start_(start), size_(size), tolerance_(tolerance), at_(at) {}

  Place find(double t) {
    bool done = bracket(t);
    if (!done) narrow();
    return ends_[low_];
  }

 private:
  static constexpr double kLower = 1e-4, kFlatter = 0.9;
  static constexpr int kMost = 25;

  bool too_high(const Place& p) const { return p.value > start_.value + kLower * p.t * start_.slope; }
  bool flat_enough(const Place& p) const { return std::abs(p.slope) <= -kFlatter * start_.slope; }
  void set_ends(const Place& a, const Place& b) {
    ends_[0] = a;
    ends_[1] = b;
    order();
  }
  void order() { low_ = ends_[0].value <= ends_[1].value ? 0 : 1; }

  /// Two places that have a good one between them, or a good one itself: then true.
  bool bracket(double t) {
    Place before = start_, now = at_(t);
    for (; count_ < kMost; ++count_) {
      if (too_high(now) || (count_ > 1 && now.value >= before.value)) return set_ends(before, now), false;
      if (flat_enough(now)) return set_ends(now, now), true;
      if (now.slope >= 0) return set_ends(before, now), false;
      double next = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
      before = std::exchange(now, at_(next));
    }
    set_ends(start_, now);
    return false;
  }

  void narrow() {
    bool slow = false;
    while (count_ < kMost) {
      auto [low, high] = std::minmax(ends_[0].t, ends_[1].t);
      if ((high - low) * size_ < tolerance_) return;
      double t = cubic_minimum(ends_[0], ends_[1], low, high), margin = 0.1 * (high - low);
      bool near_end = std::min(high - t, t - low) < margin;
      if (near_end && (slow || t >= high || t <= low)) {  // twice near an end, or at it: a step away from it
        t = std::abs(t - high) < std::abs(t - low) ? high - margin : low + margin;
        near_end = false;
      }
      slow = near_end;
      Place now = at_(t);
      ++count_;
      if (too_high(now) || now.value >= ends_[low_].value) {
        ends_[1 - low_] = now;
        order();
        continue;
      }
      bool done = flat_enough(now);
      if (!done && now.slope * (ends_[1 - low_].t - ends_[low_].t) >= 0) ends_[1 - low_] = ends_[low_];
      ends_[low_] = now;
      if (done) return;
    }
  }

  const Place start_;
  const double size_, tolerance_;  // the largest element of the direction, and what is too little to go on
  const At& at_;
  Place ends_[2];
  int low_ = 0, count_ = 0;
};

}  // namespace

// ---- one step ----

/// What a step knows: all parameters as one vector, and the pairs of changes that make up the inverse Hessian.
class LBFGS::Search {
 public:
  Search(LBFGS& owner, const std::function<Tensor()>& closure, ParameterState& state)
      : options_(owner.options()), parameters_(owner.parameters()), closure_(closure), state_(state) {}

  Tensor run();

 private:
  struct Change {
    Tensor gradient, step;
    double ro;
  };

  /// Calls the closure, and takes the loss and the gradients.
  Tensor evaluate();
  Tensor flat_gradient() const;
  void move(double t, const Tensor& along) const;
  Place at(const std::vector<Tensor>& origin, double t, const Tensor& along);
  void remember(const Tensor& change_of_gradient, const Tensor& step);
  Tensor direction() const;
  bool iterate(int64_t most_evaluations, bool is_last);
  bool is_flat() const { return largest(gradient_) <= options_.tolerance_grad; }
  double sign() const { return options_.maximize ? -1 : 1; }

  void read();
  void write();
  double number(const char* name) const {
    auto found = state_.find(name);
    return found == state_.end() ? 0 : found->second.item<double>();
  }

  const LBFGSOptions& options_;
  const std::vector<Tensor>& parameters_;
  const std::function<Tensor()>& closure_;
  ParameterState& state_;
  int64_t steps_ = 0, evaluations_ = 0, evaluations_now_ = 0;
  double loss_ = 0, length_ = 0, scale_ = 1;
  Tensor gradient_, direction_, gradient_before_;
  std::vector<Change> changes_;
};

Tensor LBFGS::Search::evaluate() {
  Tensor loss;
  {
    SetGradEnabled recording(true);
    loss = closure_();
  }
  loss_ = sign() * loss.item<double>();
  gradient_ = flat_gradient();
  ++evaluations_;
  ++evaluations_now_;
  return loss;
}

Tensor LBFGS::Search::flat_gradient() const {
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters_) {
    Tensor part = p.grad();
    if (!part.defined()) part = zeros_like(p);
    if (part.layout() != Layout::Strided) part = part.to_dense();
    parts.push_back((p.is_complex() ? view_as_real(part) : part).reshape({-1}));
  }
  return cat(parts).mul(sign());
}

void LBFGS::Search::move(double t, const Tensor& along) const {
  int64_t begin = 0;
  for (const Tensor& p : parameters_) {
    Tensor target = p.is_complex() ? view_as_real(p) : p;
    target.add_(along.slice(0, begin, begin + target.numel()).view_as(target), t);
    begin += target.numel();
  }
}

Place LBFGS::Search::at(const std::vector<Tensor>& origin, double t, const Tensor& along) {
  move(t, along);
  evaluate();
  for (size_t i = 0; i < origin.size(); ++i) parameters_[i].copy_(origin[i]);
  return {t, loss_, gradient_, dot_of(gradient_, along)};
}

void LBFGS::Search::remember(const Tensor& change_of_gradient, const Tensor& step) {
  double product = dot_of(change_of_gradient, step);
  if (product <= 1e-10) return;  // the function does not curve upwards there
  if (static_cast<int64_t>(changes_.size()) == options_.history_size) changes_.erase(changes_.begin());
  changes_.push_back({change_of_gradient, step, 1 / product});
  scale_ = product / dot_of(change_of_gradient, change_of_gradient);
}

/// Minus the inverse Hessian times the gradient, by the two loops over what is remembered.
Tensor LBFGS::Search::direction() const {
  Tensor q = gradient_.neg();
  std::vector<double> weights(changes_.size());
  for (size_t i = changes_.size(); i-- > 0;) {
    weights[i] = dot_of(changes_[i].step, q) * changes_[i].ro;
    q.add_(changes_[i].gradient, -weights[i]);
  }
  Tensor r = q.mul(scale_);
  for (size_t i = 0; i < changes_.size(); ++i)
    r.add_(changes_[i].step, weights[i] - dot_of(changes_[i].gradient, r) * changes_[i].ro);
  return r;
}

/// One move; whether another one is to follow.
bool LBFGS::Search::iterate(int64_t most_evaluations, bool is_last) {
  bool is_first = ++steps_ == 1;
  if (!is_first) remember(gradient_.sub(gradient_before_), direction_.mul(length_));
  direction_ = is_first ? gradient_.neg() : direction();
  gradient_before_ = gradient_.clone();
  double loss_before = loss_;
  length_ = is_first ? std::min(1.0, 1 / gradient_.abs().sum().item<double>()) * options_.lr : options_.lr;
  double slope = dot_of(gradient_, direction_);
  if (slope > -options_.tolerance_change) return false;

  bool flat = false;
  if (options_.line_search_fn.empty()) {
    move(length_, direction_);
    if (!is_last) {  // where this is the last move, nobody looks
      evaluate();
      flat = is_flat();
    }
  } else {
    std::vector<Tensor> origin;
    for (const Tensor& p : parameters_) origin.push_back(p.detach().clone());
    auto go = [&](double t) { return at(origin, t, direction_); };
    Place start{0, loss_, gradient_, slope};
    Place found = LineSearch(start, largest(direction_), options_.tolerance_change, go).find(length_);
    length_ = found.t;
    loss_ = found.value;
    gradient_ = found.gradient;
    move(length_, direction_);
    flat = is_flat();
  }
  return !is_last && evaluations_now_ < most_evaluations && !flat &&
         largest(direction_.mul(length_)) > options_.tolerance_change &&
         std::abs(loss_ - loss_before) >= options_.tolerance_change;
}

Tensor LBFGS::Search::run() {
  read();
  Tensor first = evaluate();
  if (!is_flat()) {
    int64_t most = options_.max_eval.value_or(options_.max_iter * 5 / 4);
    for (int64_t i = 1; i <= options_.max_iter && iterate(most, i == options_.max_iter); ++i) {
    }
  }
  write();
  return first;
}

// ---- the state, under PyTorch's names: lists as "old_dirs.0", "old_dirs.1" ----

void LBFGS::Search::read() {
  steps_ = static_cast<int64_t>(number("n_iter"));
  evaluations_ = static_cast<int64_t>(number("func_evals"));
  if (steps_ == 0) return;
  length_ = number("t");
  scale_ = number("H_diag");
  direction_ = state_.at("d");
  gradient_before_ = state_.at("prev_flat_grad");
  for (size_t i = 0; state_.contains(concat("old_dirs.", i)); ++i)
    changes_.push_back({state_.at(concat("old_dirs.", i)), state_.at(concat("old_stps.", i)),
                        state_.at(concat("ro.", i)).item<double>()});
}

void LBFGS::Search::write() {
  auto number_of = [](double value) { return tensor(value, {.dtype = DType::Float64}); };
  state_.clear();
  state_["func_evals"] = tensor(evaluations_);
  state_["n_iter"] = tensor(steps_);
  if (steps_ == 0) return;
  state_["d"] = direction_;
  state_["t"] = number_of(length_);
  state_["H_diag"] = number_of(scale_);
  state_["prev_flat_grad"] = gradient_before_;
  state_["prev_loss"] = number_of(loss_);
  for (size_t i = 0; i < changes_.size(); ++i) {
    state_[concat("old_dirs.", i)] = changes_[i].gradient;
    state_[concat("old_stps.", i)] = changes_[i].step;
    state_[concat("ro.", i)] = number_of(changes_[i].ro);
  }
}

// ---- the optimiser ----

LBFGS::LBFGS(std::vector<Tensor> parameters, const LBFGSOptions& options) {
  add_param_group({std::move(parameters), options});
}

void LBFGS::check_options(const LBFGSOptions& options) const {
  check<ValueError>(group_count() == 0, "LBFGS doesn't support per-parameter options (parameter groups)");
  check_not_negative("learning rate", options.lr);
  check<ValueError>(options.max_iter >= 0 && options.history_size >= 1, "LBFGS: max_iter is ", options.max_iter,
                    " and history_size ", options.history_size);
  check(options.line_search_fn.empty() || options.line_search_fn == "strong_wolfe",
        "only 'strong_wolfe' is supported for line_search_fn, got '", options.line_search_fn, "'");
}

void LBFGS::step() { fail<TypeError>("LBFGS.step() needs a closure that computes the loss and its gradients"); }

Tensor LBFGS::step(const std::function<Tensor()>& closure) {
  NoGrad no_grad;
  return Search(*this, closure, state(parameters().front())).run();
}

void LBFGS::update(size_t, const Tensor&, Tensor, ParameterState&) { step(); }

void LBFGS::visit_options(size_t group, const OptionVisitor& visit) {
  LBFGSOptions& o = param_groups()[group].options;
  int64_t max_eval = o.max_eval.value_or(o.max_iter * 5 / 4), before = max_eval;
  bool searches = !o.line_search_fn.empty();
  Visit{visit}("lr", o.lr)("max_iter", o.max_iter)("max_eval", max_eval)("tolerance_grad", o.tolerance_grad)(
      "tolerance_change", o.tolerance_change)("history_size", o.history_size)("line_search_fn", searches)("maximize",
                                                                                                          o.maximize);
  if (max_eval != before) o.max_eval = max_eval;
  o.line_search_fn = searches ? "strong_wolfe" : "";
}

void LBFGS::check_state(const Tensor& parameter, const ParameterState& state) const {
  check<ValueError>(parameter.is_same(parameters().front()), "loaded state dict is not one of LBFGS");
  int64_t size = 0;
  for (const Tensor& p : parameters()) size += p.numel() * (p.is_complex() ? 2 : 1);
  for (const auto& [name, tensor] : state) {
    bool is_vector = name == "d" || name == "prev_flat_grad" || name.starts_with("old_");
    check<ValueError>(tensor.numel() == (is_vector ? size : 1) || name.starts_with("al"), "loaded state dict has a '",
                      name, "' of ", tensor.numel(), " elements for parameters of ", size);
  }
}

}  // namespace umbra::optim
