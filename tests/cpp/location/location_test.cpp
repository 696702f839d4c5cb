// Nodes, guards and errors name the user's line. Compiled with debug information, once with and once without
// optimisation.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/symbolize.h"
#include "umbra/umbra.h"

namespace {

using namespace umbra;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Each notes its own line and does something there.
int g_outer_line, g_inner_line;

Tensor helper(const Tensor& x) {
  Tensor y = x.cos();
  g_inner_line = __LINE__ + 1;
  y = relu(x + y);
  return y;
}

struct Mlp : nn::Module {
  nn::Linear up = add("up", nn::Linear(4, 8)), down = add("down", nn::Linear(8, 4));
  Tensor forward(Tensor x) override {
    g_outer_line = __LINE__ + 1;
    Tensor y = up(x);
    y = helper(y);
    y = down(y);
    return y;
  }
};

/// A branch on the batch size.
struct Branching : nn::Module {
  Tensor forward(Tensor x) override {
    g_outer_line = __LINE__ + 1;
    if (x.sym_size(0) > 4) return x.sin();
    return x.cos();
  }
};

const fx::Node* find(const fx::Graph& graph, const std::string& name) {
  for (fx::Node* node : graph.nodes())
    if (node->name() == name) return node;
  return nullptr;
}

SourceFrame innermost(const IntrusivePtr<SourceLocation>& location) {
  std::vector<SourceFrame> frames = location ? location->frames() : std::vector<SourceFrame>();
  return frames.empty() ? SourceFrame() : frames.back();
}

SourceFrame origin(const fx::Graph& graph, const std::string& name) {
  const fx::Node* node = find(graph, name);
  EXPECT_NE(node, nullptr) << name;
  return node ? innermost(node->meta.source) : SourceFrame();
}

std::string this_file(int line) { return "location_test.cpp\", line " + std::to_string(line) + ", in "; }

TEST(Location, ANodeKnowsItsLine) {
  int line = __LINE__ + 3;
  auto module = make_fx(
      [](const Tensor& x) {
        Tensor y = x.sin();
        return y.cos();
      },
      {randn({3})});
  SourceFrame sin = origin(module->graph(), "sin"), cos = origin(module->graph(), "cos");
  EXPECT_THAT(sin.file, EndsWith("location_test.cpp"));
  EXPECT_EQ(sin.line, line);
  EXPECT_EQ(sin.code, "Tensor y = x.sin();");
  EXPECT_THAT(sin.function, EndsWith("<lambda>"));
  EXPECT_EQ(cos.line, line + 1);
}

TEST(Location, ThroughModulesOfTheLibraryAndHelpers) {
  Mlp model;
  ExportedProgram program = export_program(model, {randn({2, 4})});
  SourceFrame linear = origin(program.graph(), "linear"), relu = origin(program.graph(), "relu");
  EXPECT_EQ(linear.line, g_outer_line);
  EXPECT_THAT(linear.function, EndsWith("forward"));
  EXPECT_EQ(linear.code, "Tensor y = up(x);");
  EXPECT_EQ(relu.line, g_inner_line);
  EXPECT_THAT(relu.function, EndsWith("helper"));
  EXPECT_EQ(origin(program.graph(), "linear_1").line, g_outer_line + 2);
}

TEST(Location, WhatCalledTheCaptureIsNoPartOfTheProgram) {
  Mlp model;
  ExportedProgram program = export_program(model, {randn({2, 4})});
  for (const SourceFrame& frame : find(program.graph(), "relu")->meta.source->frames())
    EXPECT_THAT(frame.function, Not(HasSubstr("TestBody")));
}

TEST(Location, PrintedAndSaved) {
  Mlp model;
  ExportedProgram program = export_program(model, {randn({2, 4})});
  std::string line = std::to_string(g_inner_line);
  EXPECT_THAT(to_string(program),
              AllOf(HasSubstr("location_test.cpp:" + line + " in "), HasSubstr("helper, code: y = relu(x + y);")));
  std::string path = std::filesystem::temp_directory_path() / "umbra_location_test.pt2";
  save(program, path);
  ExportedProgram loaded = load(path);
  std::filesystem::remove(path);
  EXPECT_EQ(origin(loaded.graph(), "relu").line, g_inner_line);
  EXPECT_EQ(to_string(loaded), to_string(program));
}

TEST(Location, AGuardKnowsItsBranch) {
  Branching model;
  ExportedProgram program =
      export_program(model, {randn({8, 4})}, {.dynamic_shapes = {{"x", {{0, Dim("batch", {.min = 5})}}}}});
  program = export_program(model, {randn({8, 4})}, {.dynamic_shapes = {{"x", {{0, Dim::automatic()}}}}});
  ASSERT_EQ(program.shape_env->guards().size(), 1u);
  SourceFrame frame = innermost(program.shape_env->guards()[0].location);
  EXPECT_EQ(frame.line, g_outer_line);
  EXPECT_THAT(frame.function, EndsWith("forward"));
}

TEST(Location, AViolatedConstraintNamesTheBranch) {
  Branching model;
  try {
    export_program(model, {randn({8, 4})}, {.dynamic_shapes = {{"x", {{0, Dim("batch")}}}}});
    FAIL();
  } catch (const ConstraintViolationError& error) {
    EXPECT_THAT(error.what(),
                AllOf(StartsWith("Constraints violated (batch)!"), HasSubstr("batch = Dim('batch', min=5)"),
                      HasSubstr(this_file(g_outer_line)), HasSubstr("if (x.sym_size(0) > 4)")));
  }
}

TEST(Location, DataDependentErrorsNameTheLine) {
  FakeMode fake;
  auto scope = fake.enter();
  Tensor x = empty({3});
  int line = __LINE__ + 2;
  try {
    if (x.sum().item().to_double() > 0) x = x + 1;
    FAIL();
  } catch (const DataDependentOutputException& error) {
    EXPECT_THAT(error.what(), AllOf(StartsWith("aten._local_scalar_dense.default\n"), HasSubstr(this_file(line)),
                                    HasSubstr("if (x.sum().item()"), HasSubstr("torch.cond")));
  }
  line = __LINE__ + 2;
  try {
    x = nonzero(x);
    FAIL();
  } catch (const DynamicOutputShapeException& error) {
    EXPECT_THAT(error.what(),
                AllOf(StartsWith("aten.nonzero.default\n"), HasSubstr(this_file(line)), HasSubstr("torch.where")));
  }
}

TEST(Location, ABranchOnAnUnbackedSymbolNamesTheLine) {
  auto env = make_counted<sym::ShapeEnv>();
  SymInt u0 = env->create_unbacked();
  int line = __LINE__ + 2;
  try {
    if (u0 > 3) FAIL();
    FAIL();
  } catch (const GuardOnDataDependentSymNode& error) {
    EXPECT_THAT(error.what(),
                AllOf(StartsWith("Could not guard on data-dependent expression u0 > 3 (unhinted: u0 > 3)."),
                      HasSubstr(this_file(line)), HasSubstr("torch._check(u0 > 3)"), HasSubstr("torch.cond")));
  }
}

TEST(Location, OtherErrorsKeepTheirTextAndKnowThePlace) {
  Tensor x = randn({2, 3});
  int line = __LINE__ + 2;
  try {
    x = x.matmul(x);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("location_test.cpp")));
    EXPECT_THAT(error.location(), HasSubstr(this_file(line)));
    Error copy = error;
    EXPECT_EQ(copy.location(), error.location());
  }
}

TEST(Location, OnAnyThread) {
  std::string text;
  int line = __LINE__ + 1;
  std::thread([&] { text = current_location()->text(); }).join();
  EXPECT_THAT(text, HasSubstr(this_file(line)));
}

TEST(Location, FunctionNames) {
  EXPECT_EQ(short_function_name("Mlp::forward(umbra::Tensor)"), "Mlp::forward");
  EXPECT_EQ(short_function_name("umbra::Tensor ns::apply<int>(std::function<int (int)>) const"), "ns::apply<int>");
  EXPECT_EQ(short_function_name("main::{lambda(umbra::Tensor const&)#1}::operator()(umbra::Tensor const&) const"),
            "main::<lambda>");
  EXPECT_EQ(short_function_name("run()::$_0::operator()(umbra::Tensor const&) const"), "run()::<lambda>");
  EXPECT_EQ(short_function_name("(anonymous namespace)::helper(int, char)"), "(anonymous namespace)::helper");
  EXPECT_EQ(short_function_name("Functor::operator()(int)"), "Functor::operator()");
  EXPECT_EQ(short_function_name("main"), "main");
}

TEST(Location, FilesAsCompilersNameThem) {
  std::filesystem::path folder = std::filesystem::temp_directory_path();
  std::string file = folder / "umbra_location_test.cpp";
  std::ofstream(file) << "int main() {}\n";
  EXPECT_EQ(source_file(file), file);
  EXPECT_EQ(source_file("/somewhere/build/" + file), file);
  EXPECT_EQ(source_file(folder.string() + "//umbra_location_test.cpp"), folder.string() + "//umbra_location_test.cpp");
  std::filesystem::remove(file);
  EXPECT_EQ(source_file("/somewhere/build/" + file), "/somewhere/build/" + file);

  for (const char* header :
       {"include/umbra/core/sym_int.h", "/usr/include/umbra/umbra.h", "/usr/include/c++/12/vector"})
    EXPECT_TRUE(is_library_header(header)) << header;
  for (const char* source : {"model.cpp", "/home/include/model.h", "my_include/umbra/model.cpp"})
    EXPECT_FALSE(is_library_header(source)) << source;
}

}  // namespace
