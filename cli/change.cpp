// Commands that make files of files, and compare them: decompose, convert, diff.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "commands.h"
#include "files.h"
#include "umbra/export/decompose.h"

namespace umbra::cli {

int decompose_file(const std::string& from, const std::string& to, bool keep_composites) {
  check_program_place(to);
  check_other_file(from, to);
  DecomposeOptions options;
  if (keep_composites) options.keeps = [](const Operator&) { return true; };
  else options.table = core_decompositions();
  ExportedProgram program = decompose(load_program(from), options);
  save_program(program, to);
  std::printf("%s: %zu nodes\n", to.c_str(), program.graph().size());
  return 0;
}

int convert(const std::string& from, const std::string& to, const std::vector<std::string>& inputs) {
  check_other_file(from, to);
  bool torchscript = has_extension(from, ".pt") || has_extension(from, ".pth");
  if (has_extension(to, ".pt2") && torchscript) return convert_torchscript(from, to, inputs);
  check<ValueError>(inputs.empty(), "--input is for TorchScript files (.pt) that become programs (.pt2)");
  if (has_extension(to, ".onnx")) {
    check<ValueError>(has_extension(from, ".pt2"), from, ": only a program (.pt2) can be written as an ONNX model");
    check_place(to);
    try {
      save_program(load_program(from), to);
    } catch (const NotImplementedError& e) {  // of an operator somewhere in it
      fail<NotImplementedError>(from, ": ", e.what());
    }
    std::printf("%s: an ONNX model\n", to.c_str());
    return 0;
  }
  if (has_extension(to, ".pt2")) {
    check<ValueError>(has_extension(from, ".pt2"), from,
                      ": only a program (.pt2, or a TorchScript file, .pt) can be written as one");
    ExportedProgram program = load_program(from);
    save_program(program, to);
    std::printf("%s: %zu nodes\n", to.c_str(), program.graph().size());
    return 0;
  }
  check_tensor_place(to);
  NamedTensors tensors = load_tensors(from);
  save_tensors(to, tensors);
  std::printf("%s: %zu %s\n", to.c_str(), tensors.size(), tensors.size() == 1 ? "tensor" : "tensors");
  return 0;
}

// ---- diff ----

namespace {

/// NaN is what it is, too.
bool same_bytes(const Tensor& a, const Tensor& b) {
  Tensor first = a.contiguous(), second = b.contiguous();
  size_t bytes = static_cast<size_t>(first.numel() * item_size(first.dtype()));
  return bytes == 0 || std::memcmp(first.raw_data(), second.raw_data(), bytes) == 0;
}

int compare_tensors(const NamedTensors& first, const NamedTensors& second) {
  int differences = 0;
  auto find = [](const NamedTensors& list, const std::string& name) {
    return std::ranges::find(list, name, [](const auto& t) { return t.first; });
  };
  for (const auto& [name, tensor] : first) {
    auto other = find(second, name);
    if (other == second.end()) std::printf("- %s %s\n", name.c_str(), look_of(tensor).c_str());
    else if (look_of(tensor) != look_of(other->second))
      std::printf("  %s: %s, %s\n", name.c_str(), look_of(tensor).c_str(), look_of(other->second).c_str());
    else if (!same_bytes(tensor.detach(), other->second.detach())) std::printf("  %s: other values\n", name.c_str());
    else continue;
    ++differences;
  }
  for (const auto& [name, tensor] : second)
    if (find(first, name) == first.end())
      std::printf("+ %s %s\n", name.c_str(), look_of(tensor).c_str()), ++differences;
  return differences;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// The lines that differ, by the longest common subsequence; those around equal ends are cut off first.
int compare_lines(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  size_t start = 0, tail = 0;
  while (start < std::min(a.size(), b.size()) && a[start] == b[start]) ++start;
  while (tail < std::min(a.size(), b.size()) - start && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  size_t m = a.size() - start - tail, n = b.size() - start - tail;
  constexpr size_t kMost = 4000;
  check<ValueError>(m <= kMost && n <= kMost, "the programs differ in more than ", kMost, " lines");
  std::vector<std::vector<uint16_t>> common(m + 1, std::vector<uint16_t>(n + 1));
  for (size_t i = m; i-- > 0;)
    for (size_t j = n; j-- > 0;)
      common[i][j] =
          a[start + i] == b[start + j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  int differences = 0;
  for (size_t i = 0, j = 0; i < m || j < n;) {
    if (i < m && j < n && a[start + i] == b[start + j]) {
      ++i, ++j;
      continue;
    }
    bool removed = j == n || (i < m && common[i + 1][j] >= common[i][j + 1]);
    std::printf("%c %s\n", removed ? '-' : '+', (removed ? a[start + i++] : b[start + j++]).c_str());
    ++differences;
  }
  return differences;
}

}  // namespace

int diff(const std::string& first, const std::string& second) {
  bool programs = has_extension(first, ".pt2") && has_extension(second, ".pt2");
  int differences = 0;
  if (programs)
    differences += compare_lines(lines_of(to_string(load_program(first).graph())),
                                 lines_of(to_string(load_program(second).graph())));
  NamedTensors before = load_tensors(first), after = load_tensors(second);
  // Such files have one tensor each, and no names for them.
  if (has_extension(first, ".npy") && has_extension(second, ".npy")) after[0].first = before[0].first;
  differences += compare_tensors(before, after);
  if (differences) std::printf("%d difference%s\n", differences, differences == 1 ? "" : "s");
  else std::printf("no differences\n");
  return differences ? 1 : 0;
}

}  // namespace umbra::cli
