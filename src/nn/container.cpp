#include "umbra/nn/container.h"

#include "umbra/core/dtype.h"

namespace umbra::nn {

Tensor Sequential::forward(Tensor x) {
  for (const NamedModule& m : children()) x = (*m.module)(x);
  return x;
}

// ---- parameters ----

namespace {
/// A line for each: "(0): Parameter containing: [torch.float32 of size 2x3]".
std::string lines_of(const StateDict& parameters) {
  std::string text;
  for (const auto& [name, tensor] : parameters) {
    std::string sizes;
    for (int64_t size : tensor.sizes()) sizes += concat(sizes.empty() ? "" : "x", size);
    text += concat(text.empty() ? "  (" : "\n  (", name, "): Parameter containing: [", tensor.dtype(), " of size ",
                   sizes, "]");
  }
  return text;
}
}  // namespace

ParameterList::ParameterList(const std::vector<Tensor>& parameters)
    : Layer("torch.nn.modules.container.ParameterList") {
  for (const Tensor& tensor : parameters) push_back(tensor);
}
void ParameterList::push_back(const Tensor& tensor) { parameter(std::to_string(size()), tensor); }
std::string ParameterList::extra_repr() const { return lines_of(named_parameters()); }

ParameterDict::ParameterDict(const StateDict& parameters) : Layer("torch.nn.modules.container.ParameterDict") {
  for (const auto& [name, tensor] : parameters) insert(name, tensor);
}
void ParameterDict::insert(const std::string& name, const Tensor& tensor) { parameter(name, tensor); }
bool ParameterDict::contains(const std::string& name) const { return find(name).defined(); }
Tensor ParameterDict::operator[](const std::string& name) const {
  Tensor found = find(name);
  check<KeyError>(found.defined(), name);
  return found;
}
Tensor ParameterDict::find(const std::string& name) const {
  for (const auto& [key, tensor] : named_parameters())
    if (key == name) return tensor;
  return {};
}
std::vector<std::string> ParameterDict::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, tensor] : named_parameters()) names.push_back(key);
  return names;
}
std::string ParameterDict::extra_repr() const { return lines_of(named_parameters()); }

}  // namespace umbra::nn
