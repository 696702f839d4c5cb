// Programs: regions of autocast, drafts, conditions left to the run, ONNX.
#include "../../../examples/cpp/models.h"
#include "autograd/testing.h"
#include "umbra/autograd/autocast.h"
#include "umbra/io/onnx.h"

namespace umbra {
namespace {

struct Cast : nn::Module {
  nn::Linear layer = add("layer", nn::Linear(4, 4));
  Tensor forward(Tensor x) override {
    Tensor short_ones;
    {
      AutocastScope scope(DType::BFloat16);
      short_ones = layer(x);
    }
    return layer(x) - short_ones.to(DType::Float32);
  }
};

TEST(Programs, ARegionOfAutocastIsCastWhenTheProgramRuns) {
  Cast model;
  ExportedProgram program = export_program(model, {randn({2, 4})});
  Tensor x = randn({2, 4});
  EXPECT_TRUE(program.module()(x).detach().equal(model(x).detach()));
  EXPECT_NE(to_string(program).find("wrap_with_autocast('cpu', torch.bfloat16, True, False"), std::string::npos)
      << to_string(program);
}

TEST(Programs, ParametersAreGivenToAnOptimiser) {
  nn::Sequential model{nn::Linear(3, 2), nn::BatchNorm1d(2)};
  ExportedModule program = export_program(model, {randn({4, 3})}).module();
  std::vector<std::string> names;
  for (auto& [name, parameter] : program.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias"}));
  EXPECT_TRUE(program.named_buffers().contains("1.running_mean"));
  optim::SGD optimizer(program.parameters(), {.lr = 0.5});
  Tensor before = program.program().find("0.bias").detach().clone();
  program(randn({4, 3})).square().sum().backward();
  program.parameters()[1].set_grad(ones({2}));
  optimizer.step();
  EXPECT_TRUE(program.program().find("0.bias").detach().allclose(before - 0.5));
}

TEST(Programs, ACallSaysHowManyInputsThereAre) {
  ExportedModule program = export_program(nn::Linear(3, 2), {randn({4, 3})}).module();
  EXPECT_EQ(error_of<ValueError>([&] { program(); }), "the program takes 1 input, 0 were given");
  EXPECT_EQ(error_of<ValueError>([&] { program(ones({1}), ones({1})); }), "the program takes 1 input, 2 were given");
}

struct Decides : nn::Module {
  Tensor forward(Tensor x) override { return (x.sum() > 2).item().to_bool() ? x + 1 : x - 1; }
};

TEST(Programs, ADraftGoesByTheExampleAndAssertsIt) {
  EXPECT_THROW(export_program(Decides(), {ones({4})}), Error);
  std::vector<sym::DraftAnswer> answers;
  ExportedModule draft = export_program(Decides(), {ones({4})}, {.draft = &answers}).module();
  EXPECT_EQ(answers.size(), 1u);
  EXPECT_EQ(draft(full({4}, 3.0)).sum().item().to_double(), 16);
  EXPECT_THROW(draft(zeros({4})), Error);
}

struct Pairs : nn::Module {
  Tensor forward(Tensor x) override { return x.reshape({2, -1}); }
};

TEST(Programs, ConditionsOnSizesCanBeLeftToTheRun) {
  ExportOptions options{.dynamic_shapes = {{"x", {{0, Dim("n")}}}}};
  EXPECT_THROW(export_program(Pairs(), {ones({4})}, options), Error);
  options.defer_guards = true;
  ExportedModule program = export_program(Pairs(), {ones({4})}, options).module();
  EXPECT_EQ(program(ones({6})).size(1), 3);
  EXPECT_THROW(program(ones({5})), Error);
}

TEST(Programs, AnOnnxModelHoldsTheWeightsAndNamesTheDimension) {
  ExportedProgram program =
      export_program(examples::Mlp(), {randn({8, 64})}, {.dynamic_shapes = {{"x", {{0, Dim("batch")}}}}});
  std::string model = io::to_onnx(program);
  for (const char* word : {"MatMul", "up.weight", "down.bias", "s77"})
    EXPECT_NE(model.find(word), std::string::npos) << word;
  EXPECT_GT(model.size(), 4u * (64 * 256 + 256 + 256 * 64 + 64));
}

}  // namespace
}  // namespace umbra
