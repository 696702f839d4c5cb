// TorchScript in C++: a module is traced and saved, loaded and run, and written as an exported program. docs/jit.md shows
// parts of this.
#include <cstdio>
#include <filesystem>

#include "umbra/io/torchscript.h"
#include "umbra/jit/convert.h"
#include "umbra/jit/interpreter.h"
#include "umbra/jit/trace.h"
#include "umbra/umbra.h"

using namespace umbra;

/// A module with one method, which is what a function does with an example.
Value traced_module(const Tensor& example) {
  auto cls = std::make_shared<jit::ClassType>();
  cls->name = "__torch__.Scale";
  cls->is_module = true;
  Value module = Value::object(make_counted<jit::Instance>(cls));
  auto trace = make_counted<jit::Trace>();
  trace->set_self(module);
  trace->add_input("x", Value(example));
  {
    jit::TraceScope scope(*trace);
    trace->set_output(Value(relu(example) * 2), true);
  }
  trace->make_methods("forward");
  return module;
}

int main() {
  std::string path = (std::filesystem::temp_directory_path() / "umbra_torchscript_example.pt").string();
  Tensor x = tensor({-1.0, 2.0, 3.0});
  io::save_torchscript(path, traced_module(x));

  Value module = io::load_torchscript(path);
  Value y = jit::run(*jit::object_as<jit::Instance>(module)->cls->method("forward"), {module, Value(x)});
  std::printf("%s\n", to_string(y.tensor()).c_str());

  ExportedProgram program = jit::to_exported_program(module, {Value(x)});
  save(program, path + "2");
  std::printf("%zu nodes\n", program.graph().size());
  std::filesystem::remove(path);
  std::filesystem::remove(path + "2");
}
