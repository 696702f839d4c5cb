// The state of autocast on this thread; the regions are written in Python (umbra/amp).
#include "umbra/autograd/autocast.h"

#include "construct.h"
#include "misc.h"
#include "umbra/dispatch/operator.h"
#include "values.h"

namespace umbra::python {

void bind_autocast(nb::module_& m) {
  m.def("_is_autocast_enabled", [](Device device) { return autocast_state(device.type).enabled; });
  m.def("_get_autocast_dtype", [](Device device) { return nb::steal(wrap(autocast_state(device.type).dtype)); });
  m.def("_set_autocast_enabled", [](Device device, bool enabled) { set_autocast_enabled(device.type, enabled); });
  m.def("_set_autocast_dtype", [](Device device, DType dtype) { set_autocast_dtype(device.type, dtype); });
  m.def("_set_autocast_inputs", [](const std::string& name, DType dtype) {
    const Operator* op = find_operator(name);
    check(op, "there is no operator ", name);
    set_autocast_inputs(*op, dtype);
  });
  m.def("is_autocast_cache_enabled", &is_autocast_cache_enabled,
        "Whether autocast keeps the casts of parameters for the rest of its region.");
  m.def("set_autocast_cache_enabled", &set_autocast_cache_enabled,
        "Whether autocast keeps the casts of parameters for the rest of its region.");
  m.def("clear_autocast_cache", &clear_autocast_cache, "Lets the casts go that autocast kept.");
  m.def("_autocast_region_begins", [](Device device, DType dtype, bool enabled, bool cache) {
    autocast_region_begins(device.type, {enabled, dtype}, cache);
  });
  m.def("_autocast_region_ends", &autocast_region_ends);
  m.def("autocast_increment_nesting", &autocast_increment_nesting, "Enters a region of autocast: how deep it is now.");
  m.def("autocast_decrement_nesting", &autocast_decrement_nesting, "Leaves a region of autocast: how deep it is now.");
}

}  // namespace umbra::python
