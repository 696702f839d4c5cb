// What a page about a program holds, and what a call of the program costs.
#include "umbra/view/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "umbra/umbra.h"
#include "umbra/view/program_cost.h"

namespace umbra {
namespace {

struct Mlp : nn::Module {
  nn::Linear up = add("up", nn::Linear(8, 16)), down = add("down", nn::Linear(16, 4));
  Tensor forward(Tensor x) override { return down(relu(up(x))); }
};

ExportedProgram mlp() {
  Mlp model;
  return export_program(model, {randn({3, 8})}, {.dynamic_shapes = {{"x", {{0, Dim("batch", {.max = 64})}}}}});
}

TEST(ProgramCost, CountsOperationsByNodeAndModule) {
  ProgramCost cost = cost_of(mlp(), {.sizes = {"10"}});
  EXPECT_EQ(cost.report.flops(), 2 * 10 * (8 * 16 + 16 * 4));
  EXPECT_EQ(cost.report.flops_by_scope().at("up"), 2 * 10 * 8 * 16);
  EXPECT_EQ(cost.weights, 4 * (8 * 16 + 16 + 16 * 4 + 4));
  ASSERT_EQ(cost.nodes.size(), 3u);
  EXPECT_EQ(cost.nodes[1].first, "relu");
  EXPECT_EQ(cost.nodes.back().second, cost.report.operations.size());
}

TEST(ProgramCost, TakesTheExamplesSizesWhereNoneAreGiven) {
  ProgramCost cost = cost_of(mlp());
  ASSERT_EQ(cost.sizes.size(), 1u);
  EXPECT_EQ(cost.sizes[0].second, 3);
}

TEST(ProgramCost, RefusesSizesThatTheProgramDoesNotTake) {
  EXPECT_THROW(cost_of(mlp(), {.sizes = {"65"}}), Error);
  EXPECT_THROW(cost_of(mlp(), {.sizes = {"many"}}), ValueError);
  EXPECT_THROW(cost_of(mlp(), {.sizes = {"batch=64"}}), ValueError);
  EXPECT_THROW(cost_of(mlp(), {.sizes = {"=64"}}), ValueError);
  EXPECT_THROW(cost_of(mlp(), {.sizes = {"6", "7"}}), ValueError);
}

TEST(ProgramCost, ABackwardPassCostsMore) {
  EXPECT_GT(cost_of(mlp(), {.training = true}).report.flops(), cost_of(mlp()).report.flops());
}

TEST(Page, HoldsTheProgramAsDataThatCannotLeaveItsPlace) {
  std::string page = program_page(mlp(), {.title = "</script> & co"});
  EXPECT_THAT(page, ::testing::HasSubstr("<title>&lt;/script> &amp; co</title>"));
  EXPECT_THAT(page, ::testing::HasSubstr("\"title\": \"\\u003c/script> & co\""));
  EXPECT_THAT(page, ::testing::Not(::testing::HasSubstr("@umbra:")));
}

TEST(Page, NodesNameTheirInputsAndModules) {
  io::Json data = program_data(mlp());
  const io::Json::Array& nodes = data.find("nodes")->array();
  const io::Json& relu = nodes.at(6);
  EXPECT_EQ(relu.find("name")->as_string(), "relu");
  EXPECT_EQ(nodes.at(static_cast<size_t>(relu.find("in")->array().at(0).as_int())).find("name")->as_string(), "linear");
  const io::Json& up = data.find("modules")->array().at(static_cast<size_t>(nodes.at(5).find("module")->as_int()));
  EXPECT_EQ(up.find("path")->as_string(), "up");
}

}  // namespace
}  // namespace umbra
