// The module umbra._C: everything that Python sees of the library.
#include "autograd.h"
#include "capture_frames.h"
#include "capture_watch.h"
#include "construct.h"
#include "conversions.h"
#include "errors.h"
#include "fake.h"
#include "functions.h"
#include "generator.h"
#include "graph.h"
#include "jit.h"
#include "misc.h"
#include "operator_layers.h"
#include "operators.h"
#include "properties.h"
#include "signals.h"
#include "tensor_type.h"
#include "torch_function.h"
#include "transform.h"
#include "values.h"

NB_MODULE(_C, m) {
  using namespace umbra::python;
  nb::set_leak_warnings(false);  // operators, dtypes and classes live as long as the process
  bind_errors(m);
  bind_dtype(m);
  bind_device(m);
  bind_sym(m);
  bind_size(m);
  bind_torch_function(m);
  bind_functions(m);
  bind_tensor_type(m);
  bind_generator(m);
  bind_schemas(m);
  bind_operators(m);
  bind_return_types(m);
  bind_storage(m);
  bind_construct(m);
  bind_conversions(m);
  bind_interop(m);
  bind_dlpack(m);
  bind_misc(m);
  bind_nodes(m);
  bind_autograd(m);
  bind_autograd_function(m);
  bind_autocast(m);
  bind_profile(m);
  bind_nn_module(m);
  bind_dispatch(m);
  bind_subclass(m);
  bind_library(m);
  bind_shape_env(m);
  bind_fake(m);
  bind_properties(m);
  bind_location();
  bind_graph(m);
  bind_graph_module(m);
  bind_capture(m);
  bind_export(m);
  bind_tree(m);
  bind_watch(m);
  bind_signals(m);
  bind_capture_watch(m);
  bind_capture_frames(m);
  bind_compiled_call(m);
  bind_aot(m);
  bind_transform(m);
  bind_operator_layers(m);
  bind_jit(m);
}
