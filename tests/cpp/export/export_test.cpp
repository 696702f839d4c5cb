// Export: dynamic sizes, signature, ranges, input checks, files.
#include <filesystem>

#include "../../../examples/cpp/models.h"
#include "autograd/testing.h"
#include "umbra/capture/tracer.h"
#include "umbra/export/input_check.h"

namespace umbra {
namespace {

ExportOptions dynamic_batch(Dim::Bounds bounds = {.min = 0, .max = 4096}) {
  return {.dynamic_shapes = {{"x", {{0, Dim("batch", bounds)}}}}};
}

double difference(const Tensor& a, const Tensor& b) {
  NoGrad no_grad;
  return (a - b).abs().max().item().to_double();
}

TEST(Export, ADynamicBatchRunsAtOtherSizes) {
  examples::Mlp model;
  ExportedModule program = export_program(model, {randn({8, 64})}, dynamic_batch()).module();
  for (int64_t batch : {2, 3, 100}) {
    Tensor x = randn({batch, 64});
    EXPECT_EQ(difference(program(x), model(x)), 0) << batch;
  }
}

TEST(Export, TheSignatureSaysWhatEachInputIs) {
  ExportedProgram program = export_program(examples::Mlp(), {randn({8, 64})}, dynamic_batch());
  EXPECT_THAT(program.signature.parameters(), ElementsAre("up.weight", "up.bias", "down.weight", "down.bias"));
  EXPECT_THAT(program.signature.user_inputs(), ElementsAre("x"));
  EXPECT_EQ(program.signature.inputs[0].name, "p_up_weight");
  ASSERT_EQ(program.ranges.size(), 1u);
  EXPECT_EQ(program.ranges[0].range.upper, 4096);
}

TEST(Export, CompositeOperatorsStayWholeAndKnowTheirModule) {
  ExportedProgram program = export_program(examples::Mlp(), {randn({8, 64})}, dynamic_batch());
  std::vector<std::string> calls, paths;
  for (fx::Node* node : program.graph().nodes())
    if (node->op() == fx::Op::CallFunction) {
      calls.push_back(node->name());
      paths.push_back(node->meta.modules ? node->meta.modules->frames().back().path : "?");
    }
  EXPECT_THAT(calls, ElementsAre("linear", "gelu", "linear_1"));
  EXPECT_THAT(paths, ElementsAre("up", "", "down"));
}

TEST(Export, ModulesCalledTwiceAreToldApart) {
  struct Twice : nn::Module {
    nn::Linear layer = add("layer", nn::Linear(4, 4));
    Tensor forward(Tensor x) override { return layer(layer(x)); }
  };
  ExportedProgram program = export_program(Twice(), {randn({2, 4})});
  std::vector<std::string> keys;
  for (fx::Node* node : program.graph().nodes())
    if (node->op() == fx::Op::CallFunction) keys.push_back(node->meta.modules->frames().back().key);
  EXPECT_THAT(keys, ElementsAre("L__self__layer", "L__self__layer@1"));
}

TEST(Export, InputsAreCheckedInTheWordsOfPyTorch) {
  ExportedModule program =
      export_program(nn::Linear(8, 4), {randn({4, 8})},
                     {.dynamic_shapes = {{"x", {{0, Dim("batch", {.max = 16})}}}}, .argument_names = {"x"}})
          .module();
  EXPECT_EQ(
      error_of<InputMismatch>([&] {
        program(randn({4, 9}));
      }),
      "Guard failed: x.size()[1] == 8\nExpected input at *args[0].shape[1] to be equal to 8, but got 9. If you meant "
      "for this dimension to be dynamic, please re-export and specify dynamic_shapes (e.g. with Dim.DYNAMIC)");
  EXPECT_EQ(error_of<InputMismatch>([&] {
              program(randn({17, 8}));
            }),
            "Guard failed: x.size()[0] <= 16\nExpected input at *args[0].shape[0] to be <= 16, but got 17");
  EXPECT_EQ(error_of<InputMismatch>([&] {
              program(randn({4, 8, 1}));
            }),
            "Guard failed: len(x.size()) == 2\nUnexpected number of dimensions in input at *args[0].shape (expected "
            "torch.Size([s77, 8]), got torch.Size([4, 8, 1]))");
  EXPECT_THAT(error_of<AssertionError>([&] {
                program(randn({4, 8}, {.dtype = DType::Float64}));
              }),
              HasSubstr("x.dtype"));
  EXPECT_THAT(error_of<ValueError>([&] { program(randn({4, 8}), randn({4, 8})); }), HasSubstr("2 were given"));
}

TEST(Export, ADimThatTheProgramFixesIsAViolatedConstraint) {
  struct Fixed : nn::Module {
    Tensor forward(Tensor x) override { return x.view({4, 2, -1}); }
  };
  struct Branch : nn::Module {
    Tensor forward(Tensor x) override { return x.size(0) == 4 ? x + 1 : x + 2; }
  };
  EXPECT_NE(error_of([] { export_program(Branch(), {randn({4, 8})}, dynamic_batch()); }), "no error");
  EXPECT_EQ(error_of<UserError>([] {
              export_program(Fixed(), {randn({4, 8})}, {.dynamic_shapes = {{"y", {{0, Dim("batch")}}}}});
            }),
            "dynamic_shapes names 'y', which is no tensor among the inputs: x");
}

TEST(Export, TheRootOfADerivedDimFollowsFromTheSize) {
  struct Halves : nn::Module {
    Tensor forward(Tensor x) override {
      SymInt half = (x.sym_size(0) - 1) / 2;
      return x.narrow(0, 1, half) + full({half}, 2.0);
    }
  };
  ExportedProgram program =
      export_program(Halves(), {randn({9})}, {.dynamic_shapes = {{"x", {{0, 2 * Dim("d", {.max = 50}) + 1}}}}});
  EXPECT_THAT(program.graph_module->code(), HasSubstr("sub = sym_size_int - 1"));
  EXPECT_THAT(program.graph_module->code(), HasSubstr("floordiv = sub // 2"));
  ASSERT_EQ(program.ranges.size(), 2u);
  EXPECT_EQ(program.ranges[0].expression, "2*s40 + 1");  // as PyTorch names the symbol of a Dim that is called d
  EXPECT_EQ(program.ranges[0].range.upper, 101);
  ExportedModule module = program.module();
  for (int64_t size : {7, 21}) {
    Tensor x = randn({size});
    EXPECT_EQ(difference(module(x), x.narrow(0, 1, size / 2) + 2.0), 0) << size;
  }
  EXPECT_THAT(error_of<AssertionError>([&] { module(randn({8})); }),
              HasSubstr("Guard failed: x.size()[0] == (1 + 2*((x.size()[0] - 1) // 2))"));
  EXPECT_THAT(error_of<AssertionError>([&] { module(randn({103})); }), HasSubstr("x.size()[0] <= 101"));
}

TEST(Export, GuardsOnTheRootOfADerivedDimAreAboutTheSize) {
  struct Branch : nn::Module {
    Tensor forward(Tensor x) override { return x.sym_size(0) / 2 != 7 ? x + 1 : x; }
  };
  ExportedProgram program = export_program(Branch(), {randn({8})}, {.dynamic_shapes = {{"x", {{0, 2 * Dim("d")}}}}});
  EXPECT_THAT(program.guards,
              ElementsAre("L['x'].size()[0] == 2*(L['x'].size()[0] // 2)", "(L['x'].size()[0] // 2) != 7"));
  ExportedModule module = program.module();
  module(randn({12}));
  EXPECT_THAT(error_of<AssertionError>([&] { module(randn({14})); }), HasSubstr("(x.size()[0] // 2) != 7"));
}

TEST(Export, AProgramThatAsksHowATensorLiesRefusesSizesOfOne) {
  struct Asks : nn::Module {
    bool strides;
    explicit Asks(bool strides) : strides(strides) {}
    Tensor forward(Tensor x) override {
      Tensor turned = x.t();
      if (strides) return x * turned.contiguous().sym_stride(1);
      return turned.is_contiguous() ? x + 1 : x * 2;
    }
  };
  for (bool strides : {false, true}) {
    ExportedModule program = export_program(Asks(strides), {ones({3, 4})}, dynamic_batch()).module();
    Tensor x = ones({5, 4});
    EXPECT_EQ(difference(program(x), Asks(strides)(x)), 0);
    EXPECT_THROW(program(ones({1, 4})), InputMismatch);
  }
}

TEST(Export, BranchesOfCondMayCloseOverSizesAndTensors) {
  struct Model : nn::Module {
    nn::Linear layer = add("layer", nn::Linear(4, 4));
    Tensor literal = full({4}, 1.5);
    Tensor forward(Tensor x) override {
      SymInt rows = x.sym_size(0);
      Tensor twice = x * 2;
      auto yes = [&](const std::vector<Value>& v) {
        return std::vector<Value>{layer(v[0].tensor()) + full({rows, 1}, 3.0)};
      };
      auto no = [&](const std::vector<Value>& v) {
        return std::vector<Value>{(twice - v[0].tensor() + literal) * Scalar(rows)};
      };
      return cond(Value(x.sum() > 0), yes, no, {Value(x.select(0, 0))})[0].tensor();
    }
  };
  Model model;
  ExportedProgram program = export_program(model, {randn({4, 4})}, dynamic_batch());
  const std::string path = std::filesystem::temp_directory_path() / "umbra_cond_test.pt2";
  save(program, path);
  ExportedProgram again = load(path);
  std::filesystem::remove(path);
  for (int64_t rows : {3, 8})
    for (double sign : {1.0, -1.0}) {
      Tensor x = rand({rows, 4}) * sign;
      EXPECT_LT(difference(program.module()(x), model(x)), 1e-6);
      EXPECT_LT(difference(again.module()(x), model(x)), 1e-6);
    }
}

TEST(Export, BuffersThatAreWrittenKeepWhatIsWritten) {
  struct Counter : nn::Module {
    Tensor count = buffer("count", zeros({1}));
    Tensor forward(Tensor x) override {
      count += 1;
      return x + count;
    }
  };
  Counter model;
  ExportedProgram program = export_program(model, {zeros({2})});
  EXPECT_THAT(values(model.count), ElementsAre(0));  // capture itself changed nothing
  ExportedModule module = program.module();
  module(zeros({2}));
  EXPECT_THAT(values(module(zeros({2}))), ElementsAre(2, 2));
}

struct Counter : nn::Module {
  Tensor& calls = buffer("calls", zeros({}));
  Tensor forward(Tensor x) override {
    calls = calls + 1;
    return x * calls;
  }
};

TEST(Export, BuffersThatAreReplacedKeepWhatTheyBecome) {
  Counter model;
  ExportedProgram program = export_program(model, {ones({2})});
  EXPECT_FALSE(model.calls.is_fake());
  EXPECT_EQ(model.calls.item().to_double(), 0);
  ExportedModule run = program.module();
  EXPECT_EQ(run(ones({2})).sum().item().to_double(), 2);
  EXPECT_EQ(run(ones({2})).sum().item().to_double(), 4);
  EXPECT_EQ(run.program().find("calls").item().to_double(), 2);
}

struct Swapping : nn::Module {
  Tensor& weight = parameter("weight", ones({2}));
  Tensor forward(Tensor x) override {
    weight = weight * 2;
    return x * weight;
  }
};

TEST(Export, AParameterThatIsReplacedIsRefused) {
  Swapping model;
  EXPECT_THROW(export_program(model, {ones({2})}), NotImplementedError);
  EXPECT_EQ(model.weight.sum().item().to_double(), 2);
}

TEST(Export, ProgramsComeBackFromTheirFile) {
  const std::string path = std::filesystem::temp_directory_path() / "umbra_export_test.pt2";
  examples::Gpt model({.vocabulary = 32, .context = 16, .width = 32, .heads = 4, .layers = 2});
  ExportedProgram program = export_program(model, {randint(32, {2, 8})}, dynamic_batch());
  save(program, path);
  ExportedProgram again = load(path);
  std::filesystem::remove(path);
  EXPECT_EQ(to_string(again.signature), to_string(program.signature));
  EXPECT_EQ(again.graph_module->code(), program.graph_module->code());
  Tensor x = randint(32, {5, 8});
  EXPECT_EQ(difference(again.module()(x), model(x)), 0);
}

TEST(Export, TheCnnExportsInTrainingAndEvaluation) {
  examples::Cnn model;
  Tensor x = randn({4, 3, 16, 16});
  EXPECT_TRUE(export_program(model, {x}, dynamic_batch()).graph().size() > 0);
  model.eval();
  ExportedModule program = export_program(model, {x}, dynamic_batch()).module();
  Tensor other = randn({3, 3, 16, 16});
  EXPECT_LT(difference(program(other), model(other)), 1e-6);
}

TEST(Export, AnExceptionInForwardLeavesTheThreadAsItWas) {
  struct Throws : nn::Module {
    Tensor forward(Tensor x) override { return x.view({3, 3, 3}); }
  };
  EXPECT_NE(error_of([] { export_program(Throws(), {randn({4, 8})}); }), "no error");
  EXPECT_TRUE(mode_stack().empty());
  EXPECT_TRUE(is_grad_enabled());
  EXPECT_EQ(current_modules(), nullptr);
  EXPECT_FALSE(zeros({2}).is_fake());
}

TEST(Export, SwitchesOfTheGradModeAreRecorded) {
  struct Half : nn::Module {
    Tensor forward(Tensor x) override {
      Tensor doubled;
      {
        NoGrad no_grad;
        doubled = x * 2;
      }
      return doubled + x;
    }
  };
  ExportedProgram program = export_program(Half(), {ones({2})});
  ASSERT_EQ(program.graph_module->submodules().size(), 1u);
  EXPECT_EQ(program.signature.outputs[0].name, "add");
  Tensor x = ones({2}).requires_grad_();
  program.module()(x).sum().backward();
  EXPECT_EQ(difference(x.grad(), ones({2})), 0);
}

TEST(Export, GuardsAreReadOnceAndCheckedAtEachCall) {
  struct Even : nn::Module {
    Tensor forward(Tensor x) override { return x.sym_size(0) % 2 == 0 && x.sym_size(0) > 4 ? x + 1 : x; }
  };
  ExportedModule module =
      export_program(Even(), {ones({8})}, {.dynamic_shapes = {{"x", {{0, Dim::automatic()}}}}}).module();
  EXPECT_EQ(module(ones({6})).size(0), 6);
  EXPECT_THAT(error_of([&] { module(ones({7})); }), HasSubstr("Guard failed: "));
  EXPECT_EQ(module(ones({10})).size(0), 10);
}

// PyTorch's files say L['xs'][0] of what decompositions call L['xs_0'].
TEST(Export, GuardsMayCallOneSizeByTwoNames) {
  struct Twice : nn::Module {
    Tensor forward(Tensor x) override { return x * 2; }
  };
  ExportedProgram program =
      export_program(Twice(), {ones({8})}, {.dynamic_shapes = {{"xs_0", {{0, Dim("n")}}}}, .argument_names = {"xs_0"}});
  program.guards = {"L['xs'][0].size()[0] != 5", "L['xs_0'].size()[0] != 7", "L['xs'][0].size()[0] != 9"};
  ExportedModule module = program.module();
  EXPECT_EQ(module(ones({6})).size(0), 6);
  for (int64_t refused : {5, 7, 9})
    EXPECT_THAT(error_of([&] { module(ones({refused})); }), HasSubstr("Guard failed: ")) << refused;
}

}  // namespace
}  // namespace umbra
