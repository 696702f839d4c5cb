#include "files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "progress.h"
#include "umbra/io/npy.h"
#include "umbra/io/onnx.h"
#include "umbra/io/pickle.h"
#include "umbra/io/pt2_program.h"
#include "umbra/io/safetensors.h"

namespace umbra::cli {

namespace {

/// The path, and the name behind it.
std::pair<std::string, std::string> split_place(const std::string& place) {
  size_t at = place.rfind(".pt2#");
  if (at == std::string::npos) return {place, ""};
  return {place.substr(0, at + 4), place.substr(at + 5)};
}

}  // namespace

bool has_extension(const std::string& path, const char* extension) {
  return split_place(path).first.ends_with(extension);
}

void check_other_file(const std::string& read, const std::string& written) {
  std::error_code missing;
  bool same = std::filesystem::equivalent(split_place(read).first, split_place(written).first, missing) && !missing;
  check<ValueError>(!same, written, ": the file to write is the one that is read");
}

void check_place(const std::string& path) {
  io::AtomicFile attempt(path);  // leaves nothing where it is not committed
}

void check_tensor_place(const std::string& path) {
  bool known = false;
  for (const char* extension : {".safetensors", ".npz", ".npy", ".pt", ".pth"}) known |= has_extension(path, extension);
  check<ValueError>(known, path,
                    ": tensors are written to .safetensors, .npz, .npy, .pt and .pth, programs to .pt2 and .onnx");
  check_place(path);
}

void check_program_place(const std::string& path) {
  check<ValueError>(path.ends_with(".pt2"), path, ": a program is written to a .pt2 file");
  check_place(path);
}

std::string look_of(const Tensor& tensor) { return concat(name(tensor.dtype()), to_string(tensor.sizes())); }

std::string amount(int64_t number, const char* unit) {
  static constexpr char kUnits[] = " kMGTPE";
  double value = static_cast<double>(number);
  size_t power = 0;
  for (; value >= 1000 && kUnits[power + 1]; ++power) value /= 1000;
  char text[64];
  std::snprintf(text, sizeof text, "%.4g ", value);
  return (power ? text + std::string(1, kUnits[power]) : text) + unit;
}

ExportedProgram load_program(const std::string& place) {
  auto [path, name] = split_place(place);
  check<ValueError>(!path.ends_with(".onnx") || !std::filesystem::exists(path), path,
                    ": no program (.pt2). ONNX models are written, by `umbra convert`, and not read");
  for (const char* extension : {".pt", ".pth", ".safetensors", ".npz", ".npy"})
    check<ValueError>(
        !path.ends_with(extension) || !std::filesystem::exists(path), path,
        ": no program (.pt2). `umbra weights` lists the tensors of a file, and `umbra convert` makes a program of "
        "TorchScript (.pt)");
  io::Pt2Archive archive = io::load_pt2(path);
  if (name.empty() && archive.programs.size() == 1) return io::from_pt2(archive.programs[0]);
  std::string names;
  for (const io::Pt2Program& program : archive.programs) {
    if (program.name == name) return io::from_pt2(program);
    names += (names.empty() ? "" : ", ") + program.name;
  }
  check<ValueError>(!name.empty(), path, " holds ", archive.programs.size(), " programs: ", names,
                    "; name one of them behind it: ", path, "#", archive.programs.front().name);
  fail<ValueError>(path, " holds no program ", name, "; it holds ", names);
}

namespace {

/// The tensors of a checkpoint, however deep they lie, by their paths; and what it holds besides.
struct Checkpoint {
  void add(const io::PickleValue& value, const std::string& path, int depth = 0) {
    using Kind = io::PickleValue::Kind;
    check<ValueError>(depth < 100, "'", path.substr(0, 40),
                      "...' lies too deep: the file's containers hold each other");
    auto inside = [&](const std::string& name) { return path.empty() ? name : path + "." + name; };
    if (value.kind() == Kind::Tensor)
      return tensors.emplace_back(path.empty() ? "tensor" : path, value.as_tensor()), void();
    if (value.kind() == Kind::Dict) {
      for (const auto& [key, item] : value.pairs())
        add(item,
            inside(key.is_string()           ? key.as_string()
                   : key.kind() == Kind::Int ? std::to_string(key.as_int())
                                             : "?"),
            depth + 1);
    } else if (value.kind() == Kind::List || value.kind() == Kind::Tuple) {
      for (size_t i = 0; i < value.items().size(); ++i) add(value.items()[i], inside(std::to_string(i)), depth + 1);
    } else {
      others.push_back(concat(path, " (", value.kind_name(), ")"));
    }
  }
  NamedTensors tensors;
  std::vector<std::string> others;
};

NamedTensors load_checkpoint(const std::string& path) {
  if (is_torchscript(path)) return load_torchscript_tensors(path);
  Checkpoint found;
  found.add(io::load_pickle(path), "");
  check<ValueError>(!found.tensors.empty(), path, ": it holds no tensors");
  if (found.others.empty()) return found.tensors;
  std::string names = found.others.front();
  if (found.others.size() > 1) names += concat(" and ", found.others.size() - 1, " more");
  std::fprintf(stderr, "%s: only tensors are taken; it also holds %s\n", path.c_str(), names.c_str());
  return found.tensors;
}

}  // namespace

NamedTensors load_tensors(const std::string& path) {
  if (has_extension(path, ".safetensors")) return io::load_safetensors(path);
  if (has_extension(path, ".npz")) return io::load_npz(path);
  if (has_extension(path, ".npy")) return {{std::filesystem::path(path).stem().string(), io::load_npy(path)}};
  if (has_extension(path, ".pt") || has_extension(path, ".pth") || has_extension(path, ".bin"))
    return load_checkpoint(path);
  check<FileNotFoundError>(std::filesystem::exists(split_place(path).first), "[Errno 2] No such file or directory: '",
                           path, "'");
  check<ValueError>(has_extension(path, ".pt2"), path,
                    ": not a file of tensors that is known (.pt2, .safetensors, .npz, .npy, .pt, .pth, .bin)");
  ExportedProgram program = load_program(path);
  NamedTensors tensors = program.state;
  tensors.insert(tensors.end(), program.constants.begin(), program.constants.end());
  return tensors;
}

namespace {

size_t bytes_of(const NamedTensors& tensors) {
  size_t bytes = 0;
  for (const auto& [_, tensor] : tensors) bytes += static_cast<size_t>(tensor.numel() * tensor.item_size());
  return bytes;
}

}  // namespace

void save_program(const ExportedProgram& program, const std::string& path) {
  WriteProgress progress(bytes_of(program.state) + bytes_of(program.constants));
  if (has_extension(path, ".onnx")) return io::save_onnx(path, program);
  save(program, path);
}

void save_tensors(const std::string& path, const NamedTensors& tensors) {
  WriteProgress progress(bytes_of(tensors));
  if (has_extension(path, ".safetensors")) return io::save_safetensors(path, tensors);
  if (has_extension(path, ".npz")) return io::save_npz(path, tensors);
  if (has_extension(path, ".npy")) {
    check<ValueError>(tensors.size() == 1, path, ": an .npy file holds one tensor, and there are ", tensors.size(),
                      "; .npz and .safetensors files hold several");
    return io::save_npy(path, tensors[0].second);
  }
  check_tensor_place(path);
  io::save_state_dict(path, tensors);
}

// ---- inputs ----

namespace {

void add_leaves(const io::PickleValue& value, std::vector<Value>& leaves) {
  using Kind = io::PickleValue::Kind;
  switch (value.kind()) {
    case Kind::List:
    case Kind::Tuple:
      for (const io::PickleValue& item : value.items()) add_leaves(item, leaves);
      return;
    case Kind::Dict:
      for (const auto& [key, item] : value.pairs()) add_leaves(item, leaves);
      return;
    case Kind::Tensor: return leaves.push_back(Value(value.as_tensor()));
    case Kind::None: return leaves.push_back(Value());
    case Kind::Bool: return leaves.push_back(Value(value.as_bool()));
    case Kind::Int: return leaves.push_back(Value(value.as_int()));
    case Kind::Float: return leaves.push_back(Value(value.as_float()));
    case Kind::String: return leaves.push_back(Value(value.as_string()));
    default: fail<NotImplementedError>("the example inputs hold ", value.kind_name(), ", which cannot be given here");
  }
}

/// "x12" -> 12: files of our own number their tensors.
std::optional<int64_t> number_behind_letter(const std::string& name) {
  bool numbered = name.size() > 1 && std::isalpha(static_cast<unsigned char>(name[0])) &&
                  std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c); });
  return numbered ? std::optional(std::atoll(name.c_str() + 1)) : std::nullopt;
}

/// Tensors of a file in the order of the program's inputs: by their names, by numbers, or as they stand.
void add_file(const ExportedProgram& program, const std::string& path, std::vector<Value>& values) {
  NamedTensors tensors = load_tensors(path);
  std::vector<std::string> names = program.signature.user_inputs();
  auto place = [&](const std::string& name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  bool named = std::ranges::all_of(
      tensors, [&](const auto& t) { return place(t.first) < static_cast<ptrdiff_t>(names.size()); });
  bool numbered = std::ranges::all_of(tensors, [](const auto& t) { return number_behind_letter(t.first).has_value(); });
  if (named && tensors.size() > 1) std::ranges::stable_sort(tensors, {}, [&](const auto& t) { return place(t.first); });
  else if (numbered)
    std::ranges::stable_sort(tensors, {}, [](const auto& t) { return *number_behind_letter(t.first); });
  for (const auto& [name, tensor] : tensors) values.push_back(Value(tensor));
}

std::optional<Value> plain_value(const std::string& text) {
  if (text == "true" || text == "false") return Value(text == "true");
  char* end = nullptr;
  int64_t integer = std::strtoll(text.c_str(), &end, 10);
  if (!text.empty() && *end == '\0') return Value(integer);
  double number = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0') return Value(number);
  return std::nullopt;
}

}  // namespace

std::vector<Value> example_inputs(const ExportedProgram& program) {
  check<ValueError>(!program.example_inputs.empty(), "the file holds no example inputs; give them with --input");
  std::vector<Value> leaves;
  add_leaves(io::read_pickle(io::Bytes(program.example_inputs), "example inputs"), leaves);
  return leaves;
}

std::vector<Value> read_inputs(const ExportedProgram& program, const std::vector<std::string>& given) {
  std::vector<Value> values;
  for (const std::string& text : given) {
    if (std::optional<Value> value = plain_value(text)) values.push_back(*value);
    else add_file(program, text, values);
  }
  std::vector<Value> inputs;
  size_t next = 0, wanted = 0;
  for (const InputSpec& spec : program.signature.inputs) {
    bool constant = spec.kind == InputKind::ConstantInput;
    if (!constant && spec.kind != InputKind::UserInput) continue;
    if (constant && values.size() < program.signature.user_inputs().size()) {
      inputs.push_back(spec.value);
      continue;
    }
    ++wanted;
    if (next < values.size()) inputs.push_back(values[next++]);
  }
  check<ValueError>(next == values.size() && wanted == next, "the program takes ", wanted,
                    wanted == 1 ? " input" : " inputs", ", and ", values.size(), values.size() == 1 ? " was" : " were",
                    " given (--input FILE, or --example for those in the file); `umbra info` lists them");
  return inputs;
}

}  // namespace umbra::cli
