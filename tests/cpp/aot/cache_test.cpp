// Which captures a compiled function keeps and uses again, in memory and on disk.
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "autograd/testing.h"
#include "umbra/aot/disk_cache.h"
#include "umbra/autograd/autocast.h"

namespace umbra {
namespace {

TEST(AotCache, CallsThatKeepTheGuardsFindGraphs) {
  auto f = aot::compile([](const Tensor& x, double n) { return x * n; });
  f(ones({2}), 2.0);
  f(zeros({2}), 2.0);
  f(ones({3}), 2.0);
  f(ones({3}), 3.0);
  f(ones({2}), 2.0);
  aot::CacheInfo info = f.cache_info();
  EXPECT_EQ(info.hits, 2u);
  EXPECT_EQ(info.misses, 3u);
  EXPECT_EQ(info.size, 3u);
  EXPECT_EQ(info.reasons.at("first call"), 1u);
  EXPECT_EQ(info.reasons.at("tensor 'inputs[0]' size mismatch at index 0. expected 2, actual 3"), 1u);
  f.clear_cache();
  EXPECT_EQ(f.cache_info().size, 0u);
}

TEST(AotCache, NothingIsCapturedWhereOnlyKnownGraphsMayRun) {
  auto f = aot::compile([](const Tensor& x) { return x + 1; });
  EXPECT_FALSE(f.run_known({Value(ones({2}))}).has_value());
  f(ones({2}));
  EXPECT_TRUE(f.run_known({Value(ones({2}))}).has_value());
}

TEST(AotCache, ItIsBounded) {
  auto f = aot::compile([](const Tensor& x) { return x + 1; }, {.cache_limit = 2});
  for (int64_t size : {1, 2, 3, 3, 2, 1}) f(ones({size}));
  aot::CacheInfo info = f.cache_info();
  EXPECT_EQ(info.size, 2u);
  EXPECT_EQ(info.evictions, 2u);
  EXPECT_EQ(info.hits, 2u);
}

TEST(AotCache, RelationsOfSizesAreGuards) {
  auto f = aot::compile(
      [](const Tensor& x, const Tensor& y) { return x.sym_size(0) == y.sym_size(0) * SymInt(2) ? x.sum() : y.sum(); },
      {.dynamic = true});
  f(ones({4}), ones({2}));
  f(ones({10}), ones({5}));
  EXPECT_EQ(f.cache_info().misses, 1u);
  EXPECT_EQ(f(ones({10}), ones({4})).item().to_double(), 4);
  EXPECT_EQ(f(ones({100}), ones({7})).item().to_double(), 7);
  EXPECT_EQ(f(ones({100}), ones({50})).item().to_double(), 100);
  EXPECT_EQ(f.cache_info().misses, 2u);
}

TEST(AotCache, AutocastIsAGuard) {
  Tensor x = randn({4, 4});
  auto f = aot::compile([](const Tensor& a) { return matmul(a, a); });
  EXPECT_EQ(f(x).dtype(), DType::Float32);
  {
    AutocastScope scope;
    EXPECT_EQ(f(x).dtype(), DType::BFloat16);
  }
  EXPECT_EQ(f(x).dtype(), DType::Float32);
  EXPECT_EQ(f.cache_info().misses, 2u);
}

/// A folder for a test, used as the cache while it lasts.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("umbra_cache_test_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    aot::set_cache_directory(path_);
  }
  ~Folder() {
    aot::set_cache_directory("");
    std::filesystem::remove_all(path_);
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> out;
    if (std::filesystem::exists(path_))
      for (const auto& entry : std::filesystem::directory_iterator(path_)) out.push_back(entry.path());
    return out;
  }

 private:
  std::filesystem::path path_;
};

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Value and gradient of a freshly compiled function.
std::vector<double> run_fresh() {
  Tensor x = vector_of({0.5, 1, 2}).requires_grad_(true);
  auto f = aot::compile([](const Tensor& a) { return (a.sin() * a + a.softmax(0)).square().sum(); });
  Tensor y = f(x);
  y.backward();
  std::vector<double> out = values(x.grad());
  out.push_back(y.item().to_double());
  return out;
}

TEST(AotDiskCache, GraphsAreFoundAgain) {
  std::vector<double> expected = run_fresh();
  Folder folder;
  aot::DiskCacheInfo before = aot::disk_cache_info();
  EXPECT_EQ(run_fresh(), expected);
  EXPECT_EQ(folder.files().size(), 1u);
  EXPECT_EQ(run_fresh(), expected);
  aot::DiskCacheInfo after = aot::disk_cache_info();
  EXPECT_EQ(after.hits - before.hits, 1u);
  EXPECT_EQ(after.stored - before.stored, 1u);
}

/// The sum that a file begins with, after its first line.
uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 3 ^ bytes.size();
  while (!bytes.empty()) {
    uint64_t word = 0;
    size_t taken = std::min<size_t>(8, bytes.size());
    std::memcpy(&word, bytes.data(), taken);
    bytes.remove_prefix(taken);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

TEST(AotDiskCache, AFileThatIsNotRightNeverDoesMoreThanBeReplaced) {
  std::vector<double> expected = run_fresh();
  Folder folder;
  run_fresh();
  std::filesystem::path file = folder.files().at(0);
  std::string whole = read(file);
  size_t header = whole.find('\n') + 1 + sizeof(uint64_t);
  std::mt19937 random(0);
  size_t damaged = aot::disk_cache_info().damaged;
  for (int round = 0; round < 300; ++round) {
    std::string changed = whole;
    for (int n = 0; n < 1 + round % 3; ++n)
      changed[header + random() % (changed.size() - header)] ^= 1 + random() % 255;
    if (round % 5 == 0) changed.resize(header + random() % (changed.size() - header));
    uint64_t sum = checksum(std::string_view(changed).substr(header));
    std::memcpy(changed.data() + header - sizeof(sum), &sum, sizeof(sum));
    write(file, changed);
    // With the right checksum a file may still tell of another operator or number. It is read, or refused and replaced.
    Tensor x = vector_of({0.5, 1, 2}).requires_grad_(true);
    aot::compile([](const Tensor& a) { return (a.sin() * a + a.softmax(0)).square().sum(); }).prepare({Value(x)});
  }
  EXPECT_GT(aot::disk_cache_info().damaged, damaged + 50);
  write(file, whole.substr(0, whole.size() / 2));
  EXPECT_EQ(run_fresh(), expected);
  EXPECT_EQ(read(file), whole);
}

TEST(AotDiskCache, ThreadsShareAFolder) {
  std::vector<double> expected = run_fresh();
  Folder folder;
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 10; ++n) right += run_fresh() == expected;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 80);
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(AotDiskCache, WhatCannotBeKeptIsCounted) {
  Folder folder;
  struct Doubled : autograd::Function<Doubled> {
    static Tensor forward(autograd::FunctionContext&, const Tensor& x) { return x * 1; }
    static autograd::Gradients backward(autograd::FunctionContext&, autograd::Gradients grads) {
      return {grads[0] * 2};
    }
  };
  Tensor x = vector_of({1, 2, 3}).requires_grad_(true);
  aot::compile([](const Tensor& a) { return Doubled::apply(a).sum(); })(x).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(2, 2, 2));
  aot::compile([](const Tensor& a) { return a.masked_select(a.gt(1)) * 2; }, {.dynamic = true})(x.detach());
  EXPECT_EQ(folder.files().size(), 0u);
  EXPECT_GE(aot::disk_cache_info().bypassed.at("code of the user's in the backward"), 1u);
  EXPECT_GE(aot::disk_cache_info().bypassed.at("sizes that only the run tells"), 1u);
}

TEST(AotDiskCache, GraphsOfSymbolicSizesAndOfConstantsAreKept) {
  Folder folder;
  size_t hits = aot::disk_cache_info().hits;
  for (int run = 0; run < 2; ++run) {
    auto compiled = aot::compile(
        [](const Tensor& a) {
          Tensor scaled = a * tensor({2.0, 3.0}).sum();
          return a.sym_size(0) > SymInt(2) ? scaled.view({-1}) * 2 : scaled.view({-1});
        },
        {.dynamic = true});
    for (int64_t rows : {3, 4, 2, 1}) {
      Tensor x = ones({rows, 2}).requires_grad_(true);
      compiled(x).sum().backward();
      EXPECT_EQ(x.grad().sum().item().to_double(), static_cast<double>(rows * 2 * (rows > 2 ? 10 : 5)));
    }
  }
  EXPECT_GT(aot::disk_cache_info().hits, hits);
}

}  // namespace
}  // namespace umbra
