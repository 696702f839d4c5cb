// A TorchScript archive, as the text of an archive: its pickles are read, its source is compiled. What it defines is
// not called: a program may run for ever.
#include "umbra/io/torchscript.h"

#include <set>

#include "target.h"

namespace {

using umbra::jit::ClassType;

void compile(const std::shared_ptr<ClassType>& cls, std::set<const ClassType*>& seen) {
  if (!seen.insert(cls.get()).second) return;
  for (const std::string& name : cls->method_order) {
    try {
      cls->method(name)->ensure();
    } catch (const umbra::Error&) {  // the other methods may be sound
    }
  }
  for (const auto& attribute : cls->attributes)
    if (attribute.type->cls) compile(attribute.type->cls, seen);
}

}  // namespace

void umbra::fuzz::run(std::string_view input) {
  Value module = io::read_torchscript(pack(input), "input");
  std::set<const ClassType*> seen;
  compile(jit::expect_object<jit::Instance>(module, "a module").cls, seen);
  io::BufferSink sink;
  io::write_torchscript(sink, module);
}
