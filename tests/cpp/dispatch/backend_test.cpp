// A backend comes in by two doors: an allocator for its device, and kernels in the slots of its name. Here a device of
// the host's own memory stands for one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "umbra/dispatch/define.h"
#include "umbra/umbra.h"

namespace umbra {
namespace {

class HostAllocator final : public Allocator {
 public:
  Block allocate(int64_t bytes, Device) override {
    ++blocks;
    void* memory = std::aligned_alloc(64, (static_cast<size_t>(bytes) + 63) / 64 * 64 + 64);
    return {memory, memory};
  }
  void free(Block block) noexcept override {
    --blocks;
    std::free(block.handle);
  }
  void copy(void* to, const void* from, int64_t bytes) override { std::memcpy(to, from, static_cast<size_t>(bytes)); }
  int blocks = 0;
};

/// The device has an allocator for a scope.
class WithAllocator {
 public:
  explicit WithAllocator(Allocator* allocator) : before_(set_allocator(DeviceType::CUDA, allocator)) {}
  ~WithAllocator() { set_allocator(DeviceType::CUDA, before_); }

 private:
  Allocator* before_;
};

Tensor on_device(float value) {
  Tensor t = allocate_tensor({SymInt(2)}, {SymInt(1)}, DType::Float32, Device(DeviceType::CUDA, 0));
  for (int i = 0; i < 2; ++i) t.data<float>()[i] = value;
  return t;
}

const Operator& twice() {
  static const Operator& op = []() -> const Operator& {
    static Library library("backendtest");
    OperatorBuilder builder(library.define("twice(Tensor x) -> Tensor"));
    auto scaled = [](float factor) {
      return [factor](const Tensor& out, const Tensor& x) {
        for (int64_t i = 0; i < x.numel(); ++i) out.data<float>()[i] = factor * x.data<float>()[i];
      };
    };
    builder.inplace("twice_")
        .meta([](const Tensor& x) { return TensorSpec(x.sym_sizes(), x.dtype(), x.device()); })
        .cpu(scaled(2))
        .kernel(Backend::CUDA, scaled(200))  // tells the two apart
        .elementwise();
    return builder.op();
  }();
  return op;
}

TEST(Backend, EachDeviceRunsItsOwnKernel) {
  HostAllocator allocator;
  {
    WithAllocator scope(&allocator);
    Tensor there = twice()({Value(on_device(1))})[0].tensor();
    EXPECT_EQ(to_string(there.device()), "cuda:0");
    EXPECT_EQ(there.data<float>()[1], 200);
    EXPECT_EQ(allocator.blocks, 1);
    Tensor here = twice()({Value(ones({2}))})[0].tensor();
    EXPECT_EQ(here.data<float>()[1], 2);
    Tensor written = on_device(3);
    (*twice().inplace())({Value(written)});
    EXPECT_EQ(written.data<float>()[0], 600);
  }
  EXPECT_EQ(allocator.blocks, 0);
}

TEST(Backend, AnOperatorWithoutAKernelThereSaysSo) {
  HostAllocator allocator;
  WithAllocator scope(&allocator);
  Tensor x = on_device(1);
  try {
    x.relu();
    FAIL() << "relu has no kernel for this backend";
  } catch (const NotImplementedError& error) {
    EXPECT_STREQ(error.what(),
                 "Could not run 'aten::relu' with arguments from the 'CUDA' backend: no kernel is defined for it");
  }
}

TEST(Backend, AKernelForOneBackendIsNoneForAnother) {
  Library library("backendtest");
  library.define("here_only(Tensor x) -> Tensor");
  library.implement(
      "here_only", [](const Tensor& x) { return x.clone(); }, KernelKey::CUDA);
  EXPECT_THROW(get_operator("backendtest::here_only")({Value(ones({2}))}), NotImplementedError);
}

TEST(Backend, WithoutAnAllocatorNothingHoldsDataThere) {
  Tensor x = allocate_tensor({SymInt(2)}, {SymInt(1)}, DType::Float32, Device(DeviceType::CUDA, 0));
  EXPECT_FALSE(x.storage()->has_data());
  EXPECT_THROW(twice()({Value(x)}), AssertionError);
  EXPECT_THROW(StorageImpl::allocate(8, Device(DeviceType::CUDA, 0)), NotImplementedError);
}

TEST(Backend, AStorageGrowsByItsAllocator) {
  HostAllocator allocator;
  WithAllocator scope(&allocator);
  Storage storage = StorageImpl::allocate(8, Device(DeviceType::CUDA, 0));
  std::memset(storage->data(), 7, 8);
  storage->resize(4096);
  EXPECT_EQ(static_cast<char*>(storage->data())[7], 7);
  EXPECT_EQ(allocator.blocks, 1);
  EXPECT_EQ(to_string(storage->device()), "cuda:0");
}

}  // namespace
}  // namespace umbra
