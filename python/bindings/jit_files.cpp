// TorchScript archives in Python.
#include <nanobind/stl/map.h>

#include "jit.h"
#include "umbra/io/torchscript.h"

namespace umbra::python {

void bind_jit_files(nb::module_& m) {
  m.def("_jit_save",
        [](const JitObject& module, const std::string& root, const std::map<std::string, std::string>& extra) {
          io::BufferSink sink;
          io::write_torchscript(sink, module.value, root, extra);
          return nb::bytes(sink.text.data(), sink.text.size());
        });
  m.def("_jit_load", [](nb::bytes bytes, const std::string& label, std::map<std::string, std::string> extra) {
    Value module = io::read_torchscript(io::Bytes(std::string(bytes.c_str(), bytes.size())), label, &extra);
    nb::dict files;
    for (const auto& [name, contents] : extra) files[name.c_str()] = nb::bytes(contents.data(), contents.size());
    return nb::make_tuple(JitObject{module}, files);
  });
}

}  // namespace umbra::python
