// Programs from source in C++, as archives hold them: run, converted, and their graphs as text.
#include "umbra/jit/source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "umbra/core/interrupt.h"
#include "umbra/export/unlift.h"
#include "umbra/generated/functions.h"
#include "umbra/jit/convert.h"
#include "umbra/jit/interpreter.h"

namespace umbra {
namespace {

/// A module whose class stands in this source, with its attributes in order.
Value module_of(const std::string& source, std::vector<Value> slots) {
  auto load = [source](const std::string& file) -> jit::SourcePtr {
    if (file != "code/__torch__.py") return nullptr;
    return std::make_shared<jit::SourceText>(jit::SourceText{.text = source, .file = file});
  };
  static std::vector<std::unique_ptr<jit::SourceReader>> readers;  // classes keep nothing of them alive by themselves
  readers.push_back(std::make_unique<jit::SourceReader>(load, std::vector<Value>{}));
  jit::TypePtr type = readers.back()->type("__torch__.M");
  auto made = make_counted<jit::Instance>(type->cls);
  made->slots = std::move(slots);
  return Value::object(made);
}

jit::Function& forward_of(const Value& module) {
  return *jit::object_as<jit::Instance>(module)->cls->method("forward");
}

const char* const kBranch = R"(class M(Module):
  __parameters__ = ["w", ]
  __buffers__ = []
  w : Tensor
  def forward(self: __torch__.M, x: Tensor) -> Tensor:
    if bool(torch.gt(torch.sum(x), 0)):
      _0 = torch.mul(x, self.w)
    else:
      _0 = torch.sub(x, self.w)
    return _0
)";

TEST(Source, AModuleRunsWithoutPython) {
  Value m = module_of(kBranch, {Value(full({2}, Scalar(3.0)))});
  EXPECT_EQ(jit::run(forward_of(m), {m, Value(ones({2}))}).tensor().sum().item().to_double(), 6);
  EXPECT_EQ(jit::run(forward_of(m), {m, Value(ones({2}).neg())}).tensor().sum().item().to_double(), -8);
}

TEST(Source, ThreadsThatCallAMethodForTheFirstTimeAllRunIt) {
  Value m = module_of(R"(class M(Module):
  __parameters__ = []
  __buffers__ = []
  last : Tensor
  def forward(self: __torch__.M, x: Tensor) -> Tensor:
    y = (self).twice(x, )
    self.last = y
    return torch.add(self.last, y)
  def twice(self: __torch__.M, x: Tensor) -> Tensor:
    return torch.add(x, x)
)",
                      {Value(zeros({2}))});
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round)
        right += jit::run(forward_of(m), {m, Value(ones({2}))}).tensor().sum().item().to_double() == 8;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

TEST(Source, AProgramThatDoesNotEndIsInterrupted) {
  Value m = module_of(R"(class M(Module):
  __parameters__ = []
  __buffers__ = []
  def forward(self: __torch__.M, x: Tensor) -> int:
    i = 0
    go_on = True
    while go_on:
      i = torch.add(i, 1)
    return i
)",
                      {});
  static int rounds = 0;
  set_interrupt_check([] {
    if (++rounds == 1000) throw std::runtime_error("that is enough");
  });
  EXPECT_THROW(jit::run(forward_of(m), {m, Value(ones({2}))}), std::runtime_error);
  EXPECT_EQ(rounds, 1000);
  set_interrupt_check(nullptr);
}

TEST(Source, ABranchOnDataBecomesCond) {
  Value m = module_of(kBranch, {Value(full({2}, Scalar(3.0)))});
  ExportedProgram program = jit::to_exported_program(m, {Value(ones({2}))});
  EXPECT_EQ(program.state.at(0).first, "w");
  auto graph = jit::to_graph_module(m, {Value(ones({2}))});
  for (double sign : {1.0, -1.0}) {
    Tensor x = full({2}, Scalar(sign));
    Tensor y = graph->run({Value(x)}).at(0).tensor();
    EXPECT_TRUE(y.equal(jit::run(forward_of(m), {m, Value(x)}).tensor()));
  }
}

TEST(Source, ALoopThatDataEndsBecomesWhileLoop) {
  Value m = module_of(R"(class M(Module):
  __parameters__ = []
  __buffers__ = []
  def forward(self: __torch__.M, x: Tensor) -> Tensor:
    y = x
    _c = bool(torch.lt(torch.sum(y), 100))
    while _c:
      y = torch.mul(y, 2)
      _c = bool(torch.lt(torch.sum(y), 100))
    return y
)",
                      {});
  auto graph = jit::to_graph_module(m, {Value(ones({2}))});
  EXPECT_EQ(graph->run({Value(full({2}, Scalar(3.0)))}).at(0).tensor().sum().item().to_double(), 192);
}

TEST(Source, WhatAnExportedProgramCannotDoIsRefusedByName) {
  Value m = module_of(R"(class M(Module):
  __parameters__ = []
  __buffers__ = []
  n : int
  def forward(self: __torch__.M, x: Tensor) -> Tensor:
    self.n = torch.add(self.n, 1)
    return torch.add(x, self.n)
)",
                      {Value(0)});
  try {
    jit::to_exported_program(m, {Value(ones({2}))});
    FAIL();
  } catch (const NotImplementedError& error) {
    EXPECT_NE(std::string(error.what()).find("'n'"), std::string::npos) << error.what();
  }
  EXPECT_EQ(jit::object_as<jit::Instance>(m)->slots[0].to_int(), 0);  // and nothing is left behind
}

TEST(Source, SizesStayDynamic) {
  Value m = module_of(R"(class M(Module):
  __parameters__ = []
  __buffers__ = []
  def forward(self: __torch__.M, x: Tensor) -> Tensor:
    n = torch.mul(torch.size(x, 0), 2)
    return torch.reshape(torch.cat([x, x]), [n, -1])
)",
                      {});
  ExportOptions options{.dynamic_shapes = {{"x", {{0, Dim("batch")}}}}};
  ExportedProgram program = jit::to_exported_program(m, {Value(ones({3, 2}))}, {}, options);
  EXPECT_EQ(unlift(program)->run({Value(ones({5, 2}))}).at(0).tensor().size(0), 10);
}

TEST(GraphText, IsReadBack) {
  Value m = module_of(kBranch, {Value(ones({2}))});
  std::string text = forward_of(m).ensure()->text();
  EXPECT_EQ(jit::parse_graph(text)->text(), text);
  EXPECT_THROW(jit::parse_graph(text.substr(0, text.size() / 2)), ValueError);
}

TEST(JitSource, BranchesOnNestedTensorsAreRefusedWhenTheyAreTaken) {
  Value module = module_of(R"(class M(Module):
  __parameters__ = []
  __buffers__ = []
  def forward(self: __torch__.M, x: Tensor, nested: bool) -> Tensor:
    if nested:
      _0 = torch._nested_tensor_from_mask(x, x)
    else:
      _0 = x
    return _0
)",
                           {});
  Tensor x = ones({1, 1});
  EXPECT_TRUE(jit::run(forward_of(module), {module, Value(x), Value(false)}).tensor().is_same(x));
  EXPECT_THROW(jit::run(forward_of(module), {module, Value(x), Value(true)}), NotImplementedError);
}

}  // namespace
}  // namespace umbra
