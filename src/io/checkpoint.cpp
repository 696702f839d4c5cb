#include "umbra/io/checkpoint.h"

#include <algorithm>

#include "umbra/ops/tensor_of.h"

namespace umbra::io {

namespace {

using optim::OptimizerState;

/// Options that are flags in PyTorch, which writes them as such; an OptimizerState has numbers alone.
constexpr std::string_view kFlags[] = {"amsgrad", "centered", "maximize", "nesterov"};

PickleValue option_value(const std::string& name, double value) {
  if (std::ranges::find(kFlags, name) != std::end(kFlags)) return value != 0;
  return value;
}

/// "betas.0" and "betas.1" are one option, a tuple; both stand together, since names are in order.
std::vector<PickleValue::Pair> option_pairs(const std::map<std::string, double>& options) {
  std::vector<PickleValue::Pair> pairs;
  for (auto option = options.begin(); option != options.end(); ++option) {
    const auto& [name, value] = *option;
    size_t dot = name.find('.');
    if (dot == std::string::npos) {
      pairs.emplace_back(name, option_value(name, value));
    } else {
      PickleValue::Items items{value};
      std::string whole = name.substr(0, dot);
      while (std::next(option) != options.end() && std::next(option)->first.starts_with(whole + "."))
        items.emplace_back((++option)->second);
      pairs.emplace_back(whole, PickleValue::tuple(std::move(items)));
    }
  }
  return pairs;
}

double number(const std::string& name, const PickleValue& value) {
  switch (value.kind()) {
    case PickleValue::Kind::Bool: return value.as_bool() ? 1 : 0;
    case PickleValue::Kind::Int:
    case PickleValue::Kind::Float: return value.as_float();
    case PickleValue::Kind::Tensor: return value.as_tensor().item<double>();  // a rate may be one
    default: fail<ValueError>("the option '", name, "' of an optimizer is ", value.kind_name(), ", not a number");
  }
}

OptimizerState::Group to_group(const PickleValue& value) {
  OptimizerState::Group group;
  for (const auto& [key, entry] : value.pairs()) {
    const std::string& name = key.as_string();
    if (name == "params") {
      for (const PickleValue& p : entry.items()) group.parameters.push_back(p.as_int());
    } else if (entry.is_sequence()) {
      for (size_t i = 0; i < entry.items().size(); ++i)
        group.options[concat(name, ".", i)] = number(name, entry.items()[i]);
    } else if (!entry.is_none() && !entry.is_string()) {
      group.options[name] = number(name, entry);
    }
  }
  return group;
}

}  // namespace

PickleValue to_pickle(const NamedTensors& state) {
  std::vector<PickleValue::Pair> pairs;
  for (const auto& [name, tensor] : state) pairs.emplace_back(name, tensor);
  return PickleValue::dict(pairs, /*ordered=*/true);
}

PickleValue to_pickle(const OptimizerState& state) {
  std::vector<PickleValue::Pair> by_number;
  for (const auto& [parameter, kept] : state.state) {
    std::vector<PickleValue::Pair> tensors;
    for (const auto& [name, tensor] : kept) tensors.emplace_back(name, tensor);
    by_number.emplace_back(parameter, PickleValue::dict(tensors));
  }
  PickleValue::Items groups;
  for (const OptimizerState::Group& group : state.param_groups) {
    std::vector<PickleValue::Pair> pairs = option_pairs(group.options);
    pairs.emplace_back("params", PickleValue::list({group.parameters.begin(), group.parameters.end()}));
    groups.push_back(PickleValue::dict(pairs));
  }
  return PickleValue::dict({{"state", PickleValue::dict(by_number)}, {"param_groups", PickleValue::list(groups)}});
}

PickleValue to_pickle(const optim::LRScheduler::State& state) {
  return PickleValue::dict({{"last_epoch", state.last_epoch},
                            {"base_lrs", PickleValue::list({state.base_lrs.begin(), state.base_lrs.end()})}});
}

OptimizerState to_optimizer_state(const PickleValue& value) {
  OptimizerState state;
  for (const auto& [parameter, kept] : value["state"].pairs()) {
    optim::ParameterState& into = state.state[parameter.as_int()];
    for (const auto& [name, entry] : kept.pairs()) {
      if (entry.is_none()) continue;  // a buffer that the optimiser did not need
      into[name.as_string()] = entry.is_tensor() ? entry.as_tensor() : tensor(number(name.as_string(), entry));
    }
  }
  for (const PickleValue& group : value["param_groups"].items()) state.param_groups.push_back(to_group(group));
  return state;
}

optim::LRScheduler::State to_scheduler_state(const PickleValue& value) {
  optim::LRScheduler::State state{.last_epoch = value["last_epoch"].as_int(), .base_lrs = {}};
  for (const PickleValue& rate : value["base_lrs"].items()) state.base_lrs.push_back(rate.as_float());
  return state;
}

}  // namespace umbra::io
