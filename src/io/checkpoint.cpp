#include "umbra/io/checkpoint.h"

#include <algorithm>

#include "umbra/ops/tensor_of.h"

namespace umbra::io {

namespace {

using optim::OptimizerState;

/// Options that are flags in PyTorch, which writes them as such; an OptimizerState has numbers alone.
constexpr std::string_view kFlags[] = {"amsgrad", "centered", "decoupled_weight_decay", "maximize", "nesterov"};

PickleValue option_value(const std::string& name, double value) {
  if (name == "line_search_fn") return value != 0 ? PickleValue("strong_wolfe") : PickleValue();
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
    } else if (name == "line_search_fn") {
      check<ValueError>(entry.is_none() || entry.as_string() == "strong_wolfe", "the option '", name, "' is unknown");
      group.options[name] = entry.is_none() ? 0 : 1;
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

namespace {

/// What is kept of one parameter. "old_dirs.0" and those that follow are one list.
PickleValue kept_value(const optim::ParameterState& kept) {
  std::vector<PickleValue::Pair> pairs;
  for (const auto& [name, tensor] : kept) {
    size_t dot = name.find('.');
    if (dot == std::string::npos) pairs.emplace_back(name, tensor);
    if (dot == std::string::npos || !name.ends_with(".0")) continue;
    std::string whole = name.substr(0, dot);
    PickleValue::Items items;
    for (auto item = kept.begin(); (item = kept.find(concat(whole, ".", items.size()))) != kept.end();)
      items.emplace_back(item->second);
    pairs.emplace_back(whole, PickleValue::list(std::move(items)));
  }
  return PickleValue::dict(pairs);
}

void take_kept(optim::ParameterState& into, const std::string& name, const PickleValue& entry) {
  if (entry.is_none()) return;  // a buffer that the optimiser did not need
  if (!entry.is_sequence()) {
    into[name] = entry.is_tensor() ? entry.as_tensor() : tensor(number(name, entry));
    return;
  }
  for (size_t i = 0; i < entry.items().size(); ++i) take_kept(into, concat(name, ".", i), entry.items()[i]);
}

}  // namespace

PickleValue to_pickle(const OptimizerState& state) {
  std::vector<PickleValue::Pair> by_number;
  for (const auto& [parameter, kept] : state.state) by_number.emplace_back(parameter, kept_value(kept));
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
    for (const auto& [name, entry] : kept.pairs()) take_kept(into, name.as_string(), entry);
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
