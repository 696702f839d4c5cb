// Loads the archives that real torch wrote, runs them without Python, and compares with torch's outputs; each is then
// written as an exported program, for torch to load.
//
// usage: interop_torchscript FOLDER
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "umbra/io/pickle.h"
#include "umbra/io/torchscript.h"
#include "umbra/jit/convert.h"
#include "umbra/jit/interpreter.h"
#include "umbra/umbra.h"

namespace {

using namespace umbra;

void gather(const Value& value, std::vector<Tensor>& out) {
  if (value.is_tensor()) return out.push_back(value.tensor());
  if (value.is_list())
    for (const Value& v : value.list()) gather(v, out);
  if (auto* list = jit::object_as<jit::ListObject>(value))
    for (const Value& v : list->items) gather(v, out);
  if (auto* dict = jit::object_as<jit::DictObject>(value))
    for (auto& [k, v] : dict->items) gather(v, out);
}

double difference(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  if (got.size() != expected.size()) return 1e9;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i].sizes() != expected[i].sizes()) return 1e9;
    Tensor scale = expected[i].abs().add(Scalar(1.0));
    worst = std::max(worst, got[i].sub(expected[i]).abs().div(scale).max().item().to_double());
  }
  return worst;
}

bool check_archive(const std::filesystem::path& path, size_t& converted) {
  std::string base = path.string().substr(0, path.string().size() - 3);
  NamedTensors tensors = io::load_state_dict(base + ".tensors.pth");
  std::vector<Tensor> expected;
  for (size_t i = 1; i < tensors.size(); ++i) expected.push_back(tensors[i].second);
  Value module = io::load_torchscript(path.string());
  auto* instance = jit::object_as<jit::Instance>(module);
  NoGrad no_grad;
  std::vector<Tensor> got;
  gather(jit::run(*instance->cls->method("forward"), {module, Value(tensors[0].second)}), got);
  double off = difference(got, expected);
  std::printf("%s: largest difference %.1e %s\n", path.filename().c_str(), off, off < 1e-4 ? "ok" : "FAILED");
  try {
    save(jit::to_exported_program(module, {Value(tensors[0].second)}), base + ".pt2");
    ++converted;
  } catch (const Error& error) {
    std::string text = error.what();
    std::printf("%s: not converted: %s\n", path.filename().c_str(), text.substr(0, 300).c_str());
  }
  return off < 1e-4;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: interop_torchscript FOLDER\n"), 2;
  std::vector<std::filesystem::path> archives;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1]))
    if (entry.path().extension() == ".pt") archives.push_back(entry.path());
  std::sort(archives.begin(), archives.end());
  size_t good = 0, converted = 0;
  for (const auto& path : archives) try {
      good += check_archive(path, converted);
    } catch (const std::exception& error) {
      std::string text = error.what();
      std::printf("%s: FAILED: %s\n", path.filename().c_str(), text.substr(0, 300).c_str());
    }
  std::printf("%zu of %zu archives of torch run as in torch; %zu converted\n", good, archives.size(), converted);
  return good == archives.size() ? 0 : 1;
}
