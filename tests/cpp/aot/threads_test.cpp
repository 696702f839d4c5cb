// Eight threads compile and run side by side. Under the thread sanitizer (`make tsan`) nothing that they share is
// touched by two of them at once without order.
#include <barrier>
#include <thread>

#include "autograd/testing.h"
#include "umbra/capture/make_fx.h"
#include "umbra/transform/transform.h"

namespace umbra {
namespace {

constexpr int kThreads = 8;

/// Runs the function in threads that start at once, each with its number; an exception in one fails the test.
void in_threads(const std::function<void(int)>& body) {
  std::barrier start(kThreads);
  std::vector<std::string> errors(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      try {
        body(i);
      } catch (const std::exception& e) {
        errors[i] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

Tensor step(const Tensor& x, const Tensor& w) { return x.matmul(w).relu().square().mean(); }

void expect_close(const Tensor& got, const Tensor& want) { EXPECT_TRUE(allclose(got, want, 1e-5, 1e-6)); }

TEST(Threads, CompileFunctionsOfTheirOwn) {
  in_threads([](int thread) {
    for (int round = 0; round < 20; ++round) {
      auto compiled = aot::compile([](const Tensor& x, const Tensor& w) { return step(x, w); },
                                   {.dynamic = (thread + round) % 2 == 1});
      for (int64_t rows : {3, 4, 5}) {
        Tensor x = arange(Scalar(rows * 6), {.dtype = DType::Float32}).view({rows, 6}).sin();
        Tensor w = ones({6, 4}).mul(0.1 * (thread + 1)).requires_grad_(), same = w.detach().clone().requires_grad_();
        compiled(x, w).backward();
        step(x, same).backward();
        expect_close(w.grad(), same.grad());
      }
    }
  });
}

TEST(Threads, ShareOneCompiledFunction) {
  Tensor shared = ones({6, 4}).mul(0.2);
  auto compiled = aot::compile([&](const Tensor& x) { return step(x, shared); }, {.dynamic = true});
  in_threads([&](int thread) {
    for (int64_t rows = 2; rows < 8; ++rows) {
      Tensor x = ones({rows + thread % 2, 6}).mul(0.3).requires_grad_(), same = x.detach().clone().requires_grad_();
      compiled(x).backward();
      step(same, shared).backward();
      expect_close(x.grad(), same.grad());
    }
  });
}

TEST(Threads, CaptureWithSymbolsOfTheirOwn) {
  in_threads([](int thread) {
    for (int round = 0; round < 20; ++round) {
      auto module = make_fx(
          [](const Tensor& x) {
            return x.view({-1, 2}).sum(IntArrayRef{0}) * Scalar(x.sym_size(0));
          },
          {ones({4 + thread, 6})}, {.mode = TracingMode::Symbolic});
      Tensor y = module->run({Value(ones({3, 6}))}).at(0).tensor();
      expect_close(y, full({2}, Scalar(27.0)));
    }
  });
}

TEST(Threads, ReadAndDifferentiateTheSameParameters) {
  Tensor w = ones({6, 4}).mul(0.2).requires_grad_();
  in_threads([&](int thread) {
    for (int round = 0; round < 20; ++round) {
      Tensor x = ones({3, 6}).mul(0.1 * (thread + 1));
      Tensor loss = step(x, w);
      std::vector<Tensor> gradients = autograd::grad({&loss, 1}, {&w, 1});
      expect_close(gradients[0], autograd::grad(std::vector<Tensor>{step(x, w)}, std::vector<Tensor>{w})[0]);
    }
  });
}

TEST(Threads, RunTransformsInsideOneAnother) {
  in_threads([](int thread) {
    for (int round = 0; round < 20; ++round) {
      Tensor x = arange(Scalar(6), {.dtype = DType::Float32}).view({2, 3}).add(thread);
      auto rows = transform::vmap(
          [](const std::vector<Tensor>& in) {
            return transform::grad_and_value(
                       [](const std::vector<Tensor>& t) { return std::vector<Tensor>{t[0].pow(2).sum()}; }, in, {0})
                .gradients;
          },
          {x}, {0});
      expect_close(rows[0], x * 2);
    }
  });
}

TEST(Threads, CaptureAboveAutograd) {
  in_threads([](int thread) {
    auto function = [](const Tensor& x) { return x.sin().matmul(x.t()).softmax(-1); };
    for (int round = 0; round < 20; ++round) {
      Tensor x = ones({3 + thread, 4});
      auto module = make_fx(function, {x}, {.pre_dispatch = true});
      expect_close(module->run({Value(x)}).at(0).tensor(), function(x));
    }
  });
}

}  // namespace
}  // namespace umbra
