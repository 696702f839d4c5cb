// Fake tensors and shape environments as Python sees them.
#pragma once

#include "python.h"
#include "umbra/fake/fake_mode.h"

namespace umbra::python {

/// A shape environment behind a Python object.
struct ShapeEnvObject {
  IntrusivePtr<sym::ShapeEnv> env;
};
/// A fake mode behind a Python object.
struct FakeModeObject {
  IntrusivePtr<FakeModeImpl> mode;
};
/// A converter behind a Python object.
struct ConverterObject {
  IntrusivePtr<FakeConverter> converter;
};

void bind_shape_env(nb::module_& m);
void bind_fake(nb::module_& m);

}  // namespace umbra::python
