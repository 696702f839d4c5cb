// TorchScript in C++: a module is traced and saved, loaded and run, and written as an exported program. docs/jit.md
// shows parts of this.
#include "umbra/io/torchscript.h"

#include <cstdio>
#include <filesystem>

#include "umbra/jit/convert.h"
#include "umbra/jit/interpreter.h"
#include "umbra/jit/trace.h"
#include "umbra/umbra.h"

using namespace umbra;

int main() {
  std::string path = (std::filesystem::temp_directory_path() / "umbra_torchscript_example.pt").string();
  Tensor x = tensor({-1.0, 2.0, 3.0});
  Tensor scale = full({3}, 2.0).requires_grad_();
  Value traced = jit::trace_module([&](const auto& in) { return Value(relu(in[0].tensor()) * scale); }, {Value(x)},
                                   {{"scale", scale}});
  io::save_torchscript(path, traced);

  Value module = io::load_torchscript(path);
  Value y = jit::run(*jit::object_as<jit::Instance>(module)->cls->method("forward"), {module, Value(x)});
  std::printf("%s\n", to_string(y.tensor()).c_str());

  ExportedProgram program = jit::to_exported_program(module, {Value(x)});
  save(program, path + "2");
  std::printf("%zu nodes\n", program.graph().size());
  std::filesystem::remove(path);
  std::filesystem::remove(path + "2");
}
