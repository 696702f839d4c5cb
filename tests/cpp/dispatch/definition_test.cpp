// Definitions are checked against their schemas when they are made: a function that does not fit is refused by name.
#include <gtest/gtest.h>

#include "umbra/dispatch/define.h"
#include "umbra/umbra.h"

namespace umbra {
namespace {

/// What the library defines, without what tests add.
const std::vector<const Operator*> kOwn = all_operators();

TEST(Definitions, EveryOperatorOfTheRegistryFitsItsSchema) {
  for (const Operator* op : kOwn)
    for (const std::string& problem : definition_problems(*op)) ADD_FAILURE() << problem;
  EXPECT_GT(kOwn.size(), 900u);
}

TEST(Definitions, OnlyFamiliesAndVariantsAreWrittenOverFrames) {
  for (const Operator* op : kOwn) {
    const Definition& d = op->definition();
    bool decides_type = op->has_out() && op->functional();  // a family: sum, cumsum and their like (OutDecidesType)
    EXPECT_TRUE(!d.meta || d.meta.signature || d.functor || decides_type) << op->name();
    EXPECT_TRUE(!d.kernels[Backend::CPU] || d.kernels[Backend::CPU].signature || d.functor) << op->name();
  }
}

Operator& fresh_operator(const char* schema) {
  static std::vector<Library> kept;
  kept.emplace_back("definitiontest" + std::to_string(kept.size()));
  return kept.back().define(schema);
}

/// A new operator's definition is built by `give`; the message that it is refused with.
template <class F> std::string refusal(const char* schema, F give) {
  OperatorBuilder builder(fresh_operator(schema));
  try {
    give(builder);
  } catch (const TypeError& error) {
    return error.what();
  }
  return "";
}
bool names(const std::string& message, const char* what) {
  return message.find("definitiontest") == 0 && message.find(what) != std::string::npos;
}

constexpr const char* kSchema = "f(Tensor x, float factor) -> Tensor";
TensorSpec spec_of(const Tensor& x) { return TensorSpec(x.sym_sizes(), x.dtype(), x.device()); }

// ---- a parameter too few, too many or of another type, for each slot ----

TEST(Definitions, MetadataOfTheWrongArityIsRefused) {
  std::string few = refusal(kSchema, [](auto& b) { b.meta(spec_of); });
  EXPECT_TRUE(
      names(few, "its metadata function takes 1 parameters (Tensor) where 2 are given: (Tensor x, float factor)"))
      << few;
  std::string type = refusal(kSchema, [](auto& b) { b.meta([](const Tensor& x, bool) { return spec_of(x); }); });
  EXPECT_TRUE(names(type, "parameter 2 of its metadata function is 'bool', which cannot take 'float factor'")) << type;
  std::string outputs = refusal(
      kSchema, [](auto& b) { b.meta([](const Tensor& x, double) { return std::tuple(spec_of(x), spec_of(x)); }); });
  EXPECT_TRUE(names(outputs, "gives metadata of 2 outputs, the schema has 1")) << outputs;
}

TEST(Definitions, AKernelOfTheWrongArityIsRefused) {
  std::string few = refusal(kSchema, [](auto& b) { b.cpu([](const Tensor&, const Tensor&) {}); });
  EXPECT_TRUE(names(few, "its kernel takes 2 parameters (Tensor, Tensor) where 3 are given")) << few;
  std::string many = refusal(kSchema, [](auto& b) { b.cpu([](const Tensor&, const Tensor&, double, double) {}); });
  EXPECT_TRUE(names(many, "takes 4 parameters")) << many;
  std::string outputs =
      refusal(kSchema, [](auto& b) { b.template cpu<2>([](const Tensor&, const Tensor&, const Tensor&, double) {}); });
  EXPECT_TRUE(names(outputs, "takes 4 parameters")) << outputs;
  std::string type = refusal(kSchema, [](auto& b) { b.cpu([](const Tensor&, const Tensor&, int64_t) {}); });
  EXPECT_TRUE(names(type, "parameter 3 of its kernel is 'int', which cannot take 'float factor'")) << type;
}

TEST(Definitions, AViewOfTheWrongArityIsRefused) {
  const char* schema = "f(Tensor(a) x, int dim) -> Tensor(a)";
  std::string few = refusal(schema, [](auto& b) { b.view([](const Tensor& x) { return x; }); });
  EXPECT_TRUE(names(few, "its view takes 1 parameters")) << few;
  std::string result = refusal(schema, [](auto& b) { b.view([](const Tensor&, int64_t dim) { return dim; }); });
  EXPECT_TRUE(names(result, "result 1 of its view is 'int', not 'Tensor'")) << result;
}

TEST(Definitions, AViewsInverseTakesBaseWrittenAndWhich) {
  const char* schema = "f(Tensor(a) x, int dim) -> Tensor(a)";
  std::string few = refusal(
      schema, [](auto& b) { b.view_inverse([](const Tensor&, const Tensor& written, int64_t) { return written; }); });
  EXPECT_TRUE(names(few, "the inverse of its view takes 3 parameters (Tensor, Tensor, int) where 4 are given")) << few;
}

TEST(Definitions, FunctionsByOtherOperatorsAreChecked) {
  auto one = [](const Tensor& x) { return x; };
  auto nothing = [](const Tensor&, double) {};
  EXPECT_TRUE(names(refusal(kSchema, [&](auto& b) { b.composite(one); }), "its composite takes 1 parameters"));
  EXPECT_TRUE(names(refusal(kSchema, [&](auto& b) { b.all_backends(one); }), "its function for all backends takes 1"));
  EXPECT_TRUE(names(refusal(kSchema, [&](auto& b) { b.decomposition(one); }), "its decomposition takes 1 parameters"));
  EXPECT_TRUE(names(refusal(kSchema, [&](auto& b) { b.real(one); }), "its function for real tensors takes 1"));
  EXPECT_TRUE(names(refusal(kSchema, [&](auto& b) { b.fake(one); }), "its function for fake tensors takes 1"));
  EXPECT_TRUE(names(refusal(kSchema, [&](auto& b) { b.tangents_through(one); }), "its form for tangents takes 1"));
  EXPECT_TRUE(names(refusal(kSchema, [&](auto& b) { b.unchanged(one); }), "its test for nothing to do takes 1"));
  EXPECT_TRUE(names(refusal(kSchema, [&](auto& b) { b.composite(nothing); }), "its composite gives 0 results"));
  EXPECT_TRUE(names(refusal(kSchema, [&](auto& b) { b.real(nothing); }), "its function for real tensors gives 0"));
}

TEST(Definitions, AWriterGivesNothing) {
  const char* schema = "f_(Tensor(a!) x, float factor) -> Tensor(a!)";
  std::string few = refusal(schema, [](auto& b) { b.mutate([](const Tensor&) {}); });
  EXPECT_TRUE(names(few, "its writing function takes 1 parameters")) << few;
  std::string result = refusal(schema, [](auto& b) { b.mutate([](const Tensor& x, double) { return x; }); });
  EXPECT_TRUE(names(result, "its writing function gives 1 results (Tensor) where 0 are asked for")) << result;
}

TEST(Definitions, AGradientFitsWhatItNames) {
  auto grad = [](const Tensor& g) { return g; };
  std::string few = refusal(kSchema, [&](auto& b) { b.gradient("x", {"grad", "factor"}, grad); });
  EXPECT_TRUE(
      names(few, "the gradient of 'x' takes 1 parameters (Tensor) where 2 are given: (Tensor grad, float factor)"))
      << few;
  std::string type = refusal(kSchema, [](auto& b) {
    b.gradient("x", {"grad", "x.sym_sizes"}, [](const Tensor& g, const Tensor&) { return g; });
  });
  EXPECT_TRUE(names(type, "parameter 2 of the gradient of 'x' is 'Tensor', which cannot take 'SymInt[] x.sym_sizes'"))
      << type;
  std::string results =
      refusal("f(Tensor x, Tensor y) -> Tensor", [&](auto& b) { b.gradient("x, y", {"grad"}, grad); });
  EXPECT_TRUE(names(results, "the gradient of 'x, y' gives 1 results (Tensor) where 2 are asked for")) << results;
  std::string output = refusal(kSchema, [&](auto& b) { b.gradient("x", {"grad1"}, grad); });
  EXPECT_TRUE(names(output, "a gradient names output 1, the schema has 1")) << output;
  std::string bits = refusal("f(Tensor x, Tensor y) -> Tensor", [](auto& b) {
    b.gradient("x, y", {"grad", "needs"}, [](const Tensor& g, std::array<bool, 3>) { return std::tuple(g, g); });
  });
  EXPECT_TRUE(names(bits, "'bool[3]', which cannot take 'bool[2] needs'")) << bits;
}

// ---- what counts as fitting ----

TEST(Definitions, AnOptionalArgumentNeedsAParameterThatCanBeAbsent) {
  const char* schema = "f(Tensor x, int? dim=None, Tensor? weight=None) -> Tensor";
  std::string plain =
      refusal(schema, [](auto& b) { b.composite([](const Tensor& x, int64_t, const Tensor&) { return x; }); });
  EXPECT_TRUE(names(plain, "parameter 2 of its composite is 'int', which cannot take 'int? dim'")) << plain;
  EXPECT_EQ(
      refusal(schema,
              [](auto& b) { b.composite([](const Tensor& x, std::optional<int64_t>, const Tensor&) { return x; }); }),
      "");
}

TEST(Definitions, AListIsNoSingleValue) {
  std::string single = refusal("f(Tensor x, int[] dims) -> Tensor",
                               [](auto& b) { b.composite([](const Tensor& x, int64_t) { return x; }); });
  EXPECT_TRUE(names(single, "parameter 2 of its composite is 'int', which cannot take 'int[] dims'")) << single;
}

TEST(Definitions, AnIntegerIsTakenSymbolicallyOrNot) {
  const char* schema = "f(Tensor x, SymInt n, int m) -> Tensor";
  EXPECT_EQ(refusal(schema, [](auto& b) { b.composite([](const Tensor& x, int64_t, SymInt) { return x; }); }), "");
}

TEST(Definitions, ALibrarysFunctionsAreCheckedToo) {
  Library library("definitiontest_library");
  library.define("g(Tensor x, float factor) -> Tensor");
  EXPECT_THROW(library.implement("g", [](const Tensor& x) { return x; }), TypeError);
  EXPECT_THROW(library.implement("g", [](const Tensor& x, const Tensor&) { return x; }), TypeError);
  EXPECT_THROW(library.fake("g", [](const Tensor& x, double) { return std::tuple(x, x); }), TypeError);
  EXPECT_THROW(library.composite("g", [](double) { return Tensor(); }), TypeError);
  EXPECT_THROW(library.gradient("g", "x", {"grad"}, [](double) { return Tensor(); }), TypeError);
}

// ---- variants ----

TEST(Definitions, VariantsAreDeclaredByTheirFullNames) {
  EXPECT_EQ(get_operator("aten::add_.Tensor").functional(), &get_operator("aten::add.Tensor"));
  EXPECT_EQ(get_operator("aten::pow_.Scalar").functional(), &get_operator("aten::pow.Tensor_Scalar"));
  Library library("definitiontest_variant");
  OperatorBuilder builder(library.define("scale(Tensor x) -> Tensor"));
  EXPECT_THROW(builder.inplace("scaled_"), Error);
  EXPECT_THROW(builder.out("scale_.out"), Error);
  EXPECT_THROW(builder.on_inplace([](OperatorBuilder&) {}), Error);
  builder.inplace("scale_").out("scale.to", {"to"});
  EXPECT_EQ(to_string(get_operator("definitiontest_variant::scale.to").schema()),
            "definitiontest_variant::scale.to(Tensor x, *, Tensor(a!) to) -> Tensor(a!)");
}

TEST(Definitions, AViewInPlaceChangesMetadata) {
  const Operator& op = get_operator("aten::t_");
  EXPECT_EQ(op.functional(), &get_operator("aten::t"));
  EXPECT_TRUE(op.has_tag(Tag::InPlaceView));
  Tensor x = arange(6).reshape({2, 3});
  const void* memory = x.raw_data();
  EXPECT_TRUE(x.t_().is_same(x));
  EXPECT_EQ(x.sizes(), IntArrayRef({3, 2}));
  EXPECT_EQ(x.strides(), IntArrayRef({1, 3}));
  EXPECT_EQ(x.raw_data(), memory);
}

TEST(Definitions, AnOperatorOverAListWritesItInPlace) {
  static Library library("definitiontest_list");
  OperatorBuilder builder(library.define("twice(Tensor[] xs) -> Tensor[]"));
  builder.inplace("twice_").all_backends([](TensorList xs) {
    std::vector<Tensor> out;
    for (const Tensor& x : xs) out.push_back(x.mul(2));
    return out;
  });
  const Operator& op = get_operator("definitiontest_list::twice_");
  EXPECT_EQ(to_string(op.schema()), "definitiontest_list::twice_(Tensor(a!)[] xs) -> ()");
  Tensor a = ones({2}), b = ones({1, 3});
  op({Value(std::vector<Tensor>{a, b})});
  EXPECT_EQ(a.sum().item().to_double(), 4);
  EXPECT_EQ(b.sum().item().to_double(), 6);
  EXPECT_THROW(op({Value(std::vector<Tensor>{a, a})}), Error);
}

// ---- outputs ----

std::string twelve_times(const char* text) {
  std::string out;
  for (int i = 0; i < 12; ++i) out += (i ? ", " : "") + std::string(text);
  return out;
}

TEST(Definitions, AnOperatorMayHaveManyOutputs) {
  static const Operator& op = []() -> const Operator& {
    static Library library("definitiontest_many");
    std::string schema = "many(Tensor x) -> (" + twelve_times("Tensor") + ")";
    OperatorBuilder builder(library.define(schema));
    builder.meta([](const Tensor& x) { return std::vector<TensorSpec>(12, spec_of(x)); })
        .cpu<12>([](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e,
                    const Tensor& f, const Tensor& g, const Tensor& h, const Tensor& i, const Tensor& j,
                    const Tensor& k, const Tensor& l, const Tensor& x) {
          int64_t factor = 0;
          for (const Tensor* out : {&a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k, &l})
            out->data<float>()[0] = x.data<float>()[0] * static_cast<float>(++factor);
        })
        .gradient("x", {"grad2", "grad11"}, [](const Tensor& third, const Tensor& last) {
          Tensor sum;
          if (third.defined()) sum = third.mul(3);
          if (last.defined()) sum = sum.defined() ? sum.add(last.mul(12)) : last.mul(12);
          return sum;
        });
    return builder.op();
  }();
  Tensor x = full({1}, 2.0).requires_grad_();
  std::vector<Value> results = op({Value(x)});
  ASSERT_EQ(results.size(), 12u);
  EXPECT_EQ(results[11].tensor().item().to_double(), 24);
  results[2].tensor().add(results[11].tensor()).sum().backward();
  EXPECT_EQ(x.grad().item().to_double(), 15);

  auto module = make_fx([](const Tensor& t) { return op({Value(t)})[9].tensor(); }, std::vector<Tensor>{ones({1})});
  EXPECT_NE(module->code().find("many[9]"), std::string::npos) << module->code();
}

TEST(Definitions, AKernelFillsAListOfOutputs) {
  Library library("definitiontest_list");
  OperatorBuilder builder(library.define("halves(Tensor[] xs) -> Tensor[]"));
  builder
      .meta([](TensorList xs) {
        std::vector<TensorSpec> specs;
        for (const Tensor& x : xs) specs.push_back(spec_of(x));
        return specs;
      })
      .cpu([](TensorList outs, TensorList xs) {
        for (size_t i = 0; i < xs.size(); ++i) outs[i].data<float>()[0] = xs[i].data<float>()[0] / 2;
      });
  Value result = builder.op()({Value(std::vector<Tensor>{full({1}, 2.0), full({1}, 6.0)})})[0];
  ASSERT_EQ(result.tensor_list().size(), 2u);
  EXPECT_EQ(result.tensor_list()[1].item().to_double(), 3);
}

// ---- a kernel and a decomposition ----

TEST(Definitions, ACaptureMayTakeTheDecompositionOfWhatHasAKernel) {
  const Operator& silu = get_operator("aten::silu");
  EXPECT_TRUE(silu.definition().kernels[Backend::CPU]);
  EXPECT_TRUE(silu.definition().decomposition);
  auto capture = [](DecompositionTable table) {
    return make_fx([](const Tensor& x) { return x.silu(); }, std::vector<Tensor>{randn({3})},
                   {.decompositions = std::move(table)})
        ->code();
  };
  EXPECT_NE(capture({}).find("aten.silu.default"), std::string::npos);
  std::string apart = capture(own_decompositions({"aten::silu"}));
  EXPECT_EQ(apart.find("aten.silu.default"), std::string::npos) << apart;
  EXPECT_NE(apart.find("aten.sigmoid.default"), std::string::npos) << apart;
}

// ---- scalar functors ----

TEST(Definitions, APointwiseOperatorKeepsItsFunctor) {
  const ScalarFunctor& functor = get_operator("aten::leaky_relu").definition().functor;
  ASSERT_TRUE(functor);
  EXPECT_EQ(functor.name(), "umbra::functors::LeakyRelu");
  EXPECT_EQ(functor.arity, 1u);
  Value arguments[] = {Value(ones({2})), Value(0.5)};
  EXPECT_TRUE(functor.make(functor.context, arguments));
  EXPECT_EQ(functor.compute_type(functor.context, arguments), DType::Float32);
}

}  // namespace
}  // namespace umbra
