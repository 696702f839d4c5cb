// Files of torch.save: the older stream as it is, the zip form as the text of an archive.
#include "umbra/io/pickle.h"

#include "target.h"
#include "umbra/io/file.h"

namespace {

/// Looks at everything, as a user would who prints it. A value may hold itself, or one list many times over.
size_t look(const umbra::io::PickleValue& value, int depth, size_t& budget) {
  using Kind = umbra::io::PickleValue::Kind;
  if (depth > 100 || budget == 0) return 0;
  --budget;
  size_t seen = 1;
  if (value.is_sequence())
    for (const auto& item : value.items()) seen += look(item, depth + 1, budget);
  if (value.is_dict())
    for (const auto& [key, item] : value.pairs()) seen += look(key, depth + 1, budget) + look(item, depth + 1, budget);
  if (value.kind() == Kind::Object) seen += look(value.state(), depth + 1, budget);
  if (value.is_tensor() && value.as_tensor().numel() < 1000) value.as_tensor().clone();
  return seen;
}

}  // namespace

void umbra::fuzz::run(std::string_view input) {
  io::Bytes bytes = input.starts_with("@@@ ") ? pack(input) : io::Bytes(std::string(input));
  io::PickleValue value = io::read_pickle(bytes, "input", {.script_classes = true});
  size_t budget = 10000;
  look(value, 0, budget);
  io::to_state_dict(value, "input");
}
