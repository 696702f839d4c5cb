// LBFGS ends where PyTorch 2.15's does, after as many calls of the closure.
#include <filesystem>

#include "autograd/testing.h"
#include "umbra/io/checkpoint.h"

namespace umbra {
namespace {

/// Rosenbrock's valley from (-1.5, 2).
struct Valley {
  explicit Valley(const optim::LBFGSOptions& options) : optimizer({p}, options) {}
  Tensor step() {
    return optimizer.step([&] {
      ++calls;
      optimizer.zero_grad();
      Tensor loss = (1 - p[0]).square() + 100 * (p[1] - p[0].square()).square();
      loss.backward();
      return loss;
    });
  }
  Tensor p = vector_of({-1.5, 2}).requires_grad_();
  optim::LBFGS optimizer;
  int calls = 0;
};

void expect_at(const Valley& valley, double x, double y, int calls) {
  EXPECT_NEAR(values(valley.p)[0], x, 1e-9);
  EXPECT_NEAR(values(valley.p)[1], y, 1e-9);
  EXPECT_EQ(valley.calls, calls);
}

TEST(Lbfgs, WithASearchAlongTheLine) {
  Valley valley({.max_iter = 5, .line_search_fn = "strong_wolfe"});
  valley.step();
  EXPECT_NEAR(valley.step().item<double>(), 5.851898414902332, 1e-9);
  expect_at(valley, -1.2050322831643026, 1.3935585763354525, 12);
  Valley long_one({.max_iter = 60, .max_eval = 100, .line_search_fn = "strong_wolfe"});
  long_one.step();
  expect_at(long_one, 0.9999979943196398, 0.9999973438921637, 51);
}

TEST(Lbfgs, WithStepsOfOneLength) {
  Valley valley({.lr = 0.1, .max_iter = 4, .history_size = 2});
  for (int i = 0; i < 3; ++i) valley.step();
  expect_at(valley, -1.410811232662666, 2.0006061402115076, 12);
}

TEST(Lbfgs, GoesOnFromAFile) {
  Valley whole({.max_iter = 5, .line_search_fn = "strong_wolfe"}), other({.lr = 0.5});
  whole.step();
  std::string path = (std::filesystem::temp_directory_path() / "umbra_lbfgs.pt").string();
  io::save_pickle(path, io::to_pickle(whole.optimizer.state_dict()));
  other.optimizer.load_state_dict(io::to_optimizer_state(io::load_pickle(path)));
  std::filesystem::remove(path);
  {
    NoGrad no_grad;
    other.p.copy_(whole.p);
  }
  whole.step();
  other.step();
  EXPECT_EQ(values(other.p), values(whole.p));
  EXPECT_EQ(other.optimizer.options().line_search_fn, "strong_wolfe");
}

TEST(Lbfgs, RefusesWhatItCannotDo) {
  Valley valley({});
  EXPECT_THROW(valley.optimizer.step(), TypeError);
  EXPECT_THROW(valley.optimizer.add_param_group({{vector_of({1}).requires_grad_()}, {}}), ValueError);
  EXPECT_THROW(Valley({.line_search_fn = "golden"}), Error);
  valley.step();
  optim::LBFGS larger({vector_of({1, 2, 3}).requires_grad_()});
  EXPECT_THROW(larger.load_state_dict(valley.optimizer.state_dict()), ValueError);
  EXPECT_THROW(optim::SGD({vector_of({1, 2}).requires_grad_()}).load_state_dict(valley.optimizer.state_dict()),
               ValueError);
}

}  // namespace
}  // namespace umbra
