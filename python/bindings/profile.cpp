// Profiles of operators; what users write is in umbra/profiler and umbra/autograd/profiler.py.
#include "umbra/dispatch/profile.h"

#include "misc.h"
#include "python.h"

namespace umbra::python {

namespace {

struct ProfileObject {
  IntrusivePtr<Profile> profile;
};

/// Name, begin, end, parent, whether it is a region, bytes, sizes.
nb::tuple as_tuple(const ProfiledCall& call) {
  nb::list sizes;
  for (const std::string& text : call.sizes) sizes.append(nb::cast(text));
  return nb::make_tuple(call.name, call.begin, call.end, call.parent, call.region, call.bytes, sizes);
}

}  // namespace

void bind_profile(nb::module_& m) {
  nb::class_<ProfileObject>(m, "_Profile")
      .def(
          "__init__",
          [](ProfileObject* self, bool sizes, bool memory) {
            new (self) ProfileObject{make_counted<Profile>(Profile::Options{sizes, memory})};
          },
          nb::arg("sizes"), nb::arg("memory"))
      .def("start", [](const ProfileObject& p) { push_mode(p.profile); })
      .def("stop",
           [](const ProfileObject& p) {
             pop_mode(p.profile.get());
             p.profile->stop();
           })
      .def("begin", [](const ProfileObject& p, const std::string& name) { p.profile->begin(name); })
      .def("end", [](const ProfileObject& p) { p.profile->end(); })
      .def("calls", [](const ProfileObject& p) {
        nb::list out;
        for (const ProfiledCall& call : p.profile->calls()) out.append(as_tuple(call));
        return out;
      });
}

}  // namespace umbra::python
