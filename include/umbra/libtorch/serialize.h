// Files and streams of tensors, modules and optimisers, in the form of torch.save; and archives of named parts.
#pragma once

#include "umbra/io/checkpoint.h"
#include "umbra/io/parts.h"
#include "umbra/libtorch/module.h"

namespace torch {

namespace serialize {
using umbra::io::InputArchive;
using umbra::io::OutputArchive;
using umbra::io::PickleValue;

/// What is written of a thing: of a holder or a pointer, what it leads to.
template <class T> PickleValue to_pickle(const T& thing) {
  if constexpr (requires { thing.get()->state_dict(); }) return umbra::io::to_pickle(thing.get()->state_dict());
  else if constexpr (requires { thing.state_dict(); }) return umbra::io::to_pickle(thing.state_dict());
  else if constexpr (std::same_as<T, std::vector<Tensor>>) return PickleValue::list({thing.begin(), thing.end()});
  else return PickleValue(thing);
}
/// How it becomes what it was.
template <class T> void from_pickle(const PickleValue& value, T& thing) {
  if constexpr (requires { thing.get()->state_dict(); }) {
    from_pickle(value, *thing);
  } else if constexpr (std::derived_from<T, umbra::optim::Optimizer>) {
    thing.load_state_dict(umbra::io::to_optimizer_state(value));
  } else if constexpr (std::derived_from<T, nn::Module>) {
    thing.load_state_dict(umbra::io::to_state_dict(value));
  } else if constexpr (std::same_as<T, std::vector<Tensor>>) {
    thing.clear();
    for (const PickleValue& item : value.items()) thing.push_back(item.as_tensor());
  } else {
    thing = value.as_tensor();
  }
}

}  // namespace serialize

template <class T> void save(const T& thing, const std::string& path) {
  umbra::io::save_pickle(path, serialize::to_pickle(thing));
}
template <class T> void save(const T& thing, std::ostream& out) {
  umbra::io::write_pickle(out, serialize::to_pickle(thing));
}
template <class T> void load(T& thing, const std::string& path) {
  serialize::from_pickle(umbra::io::load_pickle(path), thing);
}
template <class T> void load(T& thing, std::istream& in) { serialize::from_pickle(umbra::io::read_pickle(in), thing); }

}  // namespace torch
