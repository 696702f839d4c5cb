// Kernels of libraries: where they stand, how long they stand there, and what is refused.
#include "umbra/dispatch/library.h"

#include <gtest/gtest.h>

#include "umbra/umbra.h"

namespace umbra {
namespace {

Tensor call(const char* name, const Tensor& x) { return get_operator(name)({Value(x)})[0].tensor(); }
double first(const Tensor& x) { return x.flatten().select(0, 0).item().to_double(); }

UMBRA_LIBRARY(umbra_started, library) {
  library.define("thrice(Tensor x) -> Tensor");
  library.composite("thrice", [](const Tensor& x) { return x * 3; });
}
UMBRA_LIBRARY_FRAGMENT(umbra_started, library) {
  auto scaled = [](const Tensor& x, double by) { return x * by; };
  library.define("scaled" + boxing::schema_text<decltype(scaled)>());
  library.composite("scaled", scaled);
}

TEST(Library, IsFilledWhereAProgramStarts) {
  Tensor x = ones({2});
  EXPECT_EQ(typed<Tensor(const Tensor&)>("umbra_started::thrice")(x).sum().item<double>(), 6);
  EXPECT_EQ(to_string(find_operator("umbra_started::scaled")->schema()),
            "umbra_started::scaled(Tensor a0, float a1) -> Tensor");
}

TEST(Library, TakesItsDefinitionsAndKernelsWithIt) {
  {
    Library library("gone");
    library.define("f(Tensor x) -> Tensor");
    library.implement("f", [](const Tensor& x) { return x.add(1); });
    EXPECT_EQ(first(call("gone::f", ones({2}))), 2);
  }
  EXPECT_EQ(find_operator("gone::f"), nullptr);
  EXPECT_TRUE(operator_overloads("gone::f").empty());
  Library again("gone");
  again.define("f(Tensor x, int n) -> Tensor");
  EXPECT_EQ(get_operator("gone::f").argument_count(), 2);
}

TEST(Library, ReplacesAKernelOfAtenForAsLongAsItIsThere) {
  Tensor x = ones({2}).neg();
  {
    Library library("aten", Library::Kind::Implement);
    library.implement("relu", [](const Tensor& self) { return self.mul(42); });
    EXPECT_EQ(first(relu(x)), -42);
    Library inner("aten", Library::Kind::Implement);
    inner.implement("relu", [](const Tensor& self) { return self.mul(43); });
    EXPECT_EQ(first(relu(x)), -43);
    inner.reset();
    EXPECT_EQ(first(relu(x)), -42);
  }
  EXPECT_EQ(first(relu(x)), 0);
}

TEST(Library, KernelsAreForTheirBackendAlone) {
  Library library("backends");
  library.define("f(Tensor x) -> Tensor");
  library.implement("f", [](const Tensor& x) { return x.add(1); });
  library.implement(
      "f", [](const Tensor& x) { return x.add(1000); }, KernelKey::CUDA);
  EXPECT_EQ(first(call("backends::f", ones({2}))), 2);
  EXPECT_THROW(call("backends::f", empty({2}, {.device = "meta"})), NotImplementedError);
  library.implement(
      "f", [](const Tensor&) { return empty({7}, {.device = "meta"}); }, KernelKey::Meta);
  EXPECT_EQ(to_string(call("backends::f", empty({2}, {.device = "meta"})).sym_sizes()), "[7]");
  EXPECT_EQ(first(call("backends::f", ones({2}))), 2);
}

TEST(Library, OneKernelMayServeAllBackends) {
  Library library("all_backends");
  library.define("f(Tensor x) -> Tensor");
  library.implement(
      "f", [](const Tensor& x) { return x.add(1); }, KernelKey::CompositeExplicitAutograd);
  EXPECT_EQ(first(call("all_backends::f", ones({2}))), 2);
  EXPECT_EQ(to_string(call("all_backends::f", empty({2}, {.device = "meta"})).sym_sizes()), "[2]");
}

TEST(Library, AKernelAtAutogradIsAskedFirstWhateverTheTensorsRequire) {
  Library library("above");
  library.define("f(Tensor x) -> Tensor");
  library.implement("f", [](const Tensor& x) { return x.add(1); });
  library.implement(
      "f",
      [](const Tensor& x) {
        ExcludeKeys below(DispatchKey::Autograd);
        return call("above::f", x).mul(10);
      },
      KernelKey::Autograd);
  EXPECT_EQ(first(call("above::f", ones({2}))), 20);
}

TEST(Library, AKernelForABackendTakesACompositeWhole) {
  Library library("whole");
  library.define("f(Tensor x) -> Tensor");
  library.composite("f", [](const Tensor& x) { return x.mul(2); });
  Tensor x = ones({2}).requires_grad_();
  call("whole::f", x).sum().backward();
  EXPECT_EQ(first(x.grad()), 2);
  library.implement("f", [](const Tensor& self) { return self.mul(5); });
  EXPECT_EQ(first(call("whole::f", ones({2}))), 5);
  EXPECT_EQ(to_string(call("whole::f", empty({2}, {.device = "meta"})).sym_sizes()), "[2]");
}

TEST(Library, AWriteOfAKernelIsCounted) {
  Library library("writes");
  library.define("touch(Tensor(a!) x) -> ()");
  library.implement("touch", [](const Tensor& x) { x.data<float>()[0] = 7; });
  Tensor x = ones({2});
  get_operator("writes::touch")({Value(x)});
  EXPECT_EQ(first(x), 7);
  EXPECT_EQ(x.impl()->version(), 1);
}

TEST(Library, AWriteBecomesAValueWhenItIsCaptured) {
  Library library("functional");
  library.define("touch(Tensor(a!) x) -> ()");
  library.implement("touch", [](const Tensor& x) { x.data<float>()[0] = 7; });
  library.fake("touch", [](const Tensor&) {});
  auto compiled = aot::compile([](const Tensor& t) {
    Tensor y = t.clone();
    get_operator("functional::touch")({Value(y)});
    return y.mul(2);
  });
  EXPECT_EQ(first(compiled(ones({2}))), 14);
}

TEST(Library, ItsBatchingRuleSeesTheWholeBatch) {
  Library library("batched");
  library.define("shifted(Tensor x, int by=1) -> Tensor");
  static int calls = 0;
  library.implement("shifted", [](const Tensor& x, int64_t by) {
    ++calls;
    return x.add(by);
  });
  library.fake("shifted", [](const Tensor& x, int64_t) { return empty_like(x); });
  library.gradient("shifted", "x", {"grad"}, [](const Tensor& grad) { return grad * 5; });
  auto shifted = typed<Tensor(const Tensor&, int64_t)>("batched::shifted");
  auto of_rows = [&] { return vmap([&](const Tensor& row) { return shifted(row, 2).sum(); })(ones({4, 3})); };
  EXPECT_TRUE(of_rows().equal(full({4}, 9.)));
  EXPECT_EQ(calls, 4);
  library.batch("shifted", [&](const Batched& x, int64_t by) { return Batched(shifted(x.value, by), x.dim); });
  EXPECT_TRUE(of_rows().equal(full({4}, 9.)));
  EXPECT_EQ(calls, 5);
  auto per_row = vmap(grad([&](const Tensor& row) { return shifted(row, 2).sum(); }));
  EXPECT_TRUE(per_row(ones({4, 3})).equal(full({4, 3}, 5.)));
  EXPECT_EQ(calls, 6);
  EXPECT_THROW(library.batch("shifted", [](const Batched& x) { return x; }), TypeError);
  EXPECT_THROW(library.batch("none", [](const Batched& x) { return x; }), Error);
}

TEST(Library, RefusesWhatDoesNotFit) {
  Library library("fits");
  library.define("f(Tensor x, int n) -> Tensor");
  EXPECT_THROW(library.implement("f", [](const Tensor& x) { return x; }), TypeError);
  EXPECT_THROW(library.implement("f", [](const Tensor&, int64_t) {}), TypeError);
  EXPECT_THROW(library.implement("g", [](const Tensor& x) { return x; }), Error);
  EXPECT_THROW(library.implement("aten::relu", [](const Tensor& x) { return x; }), Error);
  EXPECT_THROW(library.define("other::f(Tensor x) -> Tensor"), Error);
  EXPECT_THROW(library.define("f(Tensor x, int n) -> Tensor"), Error);
  EXPECT_THROW(Library("fits", Library::Kind::Implement).define("h(Tensor x) -> Tensor"), Error);
  EXPECT_THROW(Library("aten", Library::Kind::Define), Error);
  EXPECT_THROW(Library("aten").gradient("relu", "self", {"grad"}, [](const Tensor& g) { return g; }), Error);
}

TEST(Library, KnowsTheKeysOfPyTorchThatItHasNotBuilt) {
  EXPECT_EQ(parse_kernel_key("AutogradCPU"), KernelKey::AutogradCPU);
  EXPECT_THROW(parse_kernel_key("AutocastXPU"), NotImplementedError);
  EXPECT_THROW(parse_kernel_key("SparseCUDA"), NotImplementedError);
  EXPECT_THROW(parse_kernel_key("XLA"), NotImplementedError);
  EXPECT_THROW(parse_kernel_key("cpu"), Error);
  try {
    parse_kernel_key("Nonsense");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "could not parse dispatch key: Nonsense");
  }
}

}  // namespace
}  // namespace umbra
