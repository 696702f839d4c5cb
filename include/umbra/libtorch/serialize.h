// Files and streams of tensors, modules and optimisers, in the form of torch.save; and archives of named parts.
#pragma once

#include <istream>
#include <iterator>
#include <ostream>

#include "umbra/core/ivalue.h"
#include "umbra/io/file.h"
#include "umbra/libtorch/containers.h"

namespace torch {

namespace serialize {

/// Parts by their names, which are written together. Parts of parts have names with dots.
class OutputArchive {
 public:
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false) {
    (void)is_buffer;
    parts_.emplace_back(key, tensor);
  }
  void write(const std::string& key, const IValue& value) {
    switch (value.tag()) {
      case Value::Tag::Tensor: return write(key, value.toTensor());
      case Value::Tag::Int: parts_.emplace_back(key, value.toInt()); return;
      case Value::Tag::Double: parts_.emplace_back(key, value.toDouble()); return;
      case Value::Tag::Bool: parts_.emplace_back(key, value.toBool()); return;
      case Value::Tag::String: parts_.emplace_back(key, value.toStringRef()); return;
      default: throw NotImplementedError("an archive keeps tensors, numbers and texts; '" + key + "' is none");
    }
  }
  void write(const std::string& key, const OutputArchive& nested) {
    for (const auto& [name, part] : nested.parts_) parts_.emplace_back(key + "." + name.as_string(), part);
  }
  void save_to(const std::string& path) const { umbra::io::save_pickle(path, value()); }
  void save_to(std::ostream& out) const;
  umbra::io::PickleValue value() const { return umbra::io::PickleValue::dict(parts_, true); }

 private:
  std::vector<umbra::io::PickleValue::Pair> parts_;
};

class InputArchive {
 public:
  void load_from(const std::string& path) { value_ = umbra::io::load_pickle(path); }
  void load_from(std::istream& in);
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false) {
    (void)is_buffer;
    tensor = value_[key].as_tensor();
  }
  void read(const std::string& key, IValue& value) {
    const umbra::io::PickleValue& part = value_[key];
    using Kind = umbra::io::PickleValue::Kind;
    switch (part.kind()) {
      case Kind::Tensor: value = IValue(part.as_tensor()); return;
      case Kind::Int: value = IValue(part.as_int()); return;
      case Kind::Float: value = IValue(part.as_float()); return;
      case Kind::Bool: value = IValue(part.as_bool()); return;
      default: value = IValue(part.as_string()); return;
    }
  }
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false) {
    (void)is_buffer;
    const umbra::io::PickleValue* part = value_.find(key);
    if (part) tensor = part->as_tensor();
    return part != nullptr;
  }
  const umbra::io::PickleValue& value() const { return value_; }

 private:
  umbra::io::PickleValue value_;
};

namespace detail {
inline void write_stream(std::ostream& out, const umbra::io::PickleValue& value) {
  umbra::io::BufferSink sink;
  umbra::io::write_pickle(sink, value);
  out.write(sink.text.data(), static_cast<std::streamsize>(sink.text.size()));
  if (!out) throw Error("the stream took no more");
}
inline umbra::io::PickleValue read_stream(std::istream& in) {
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return umbra::io::read_pickle(umbra::io::Bytes(std::move(text)), "the stream");
}
}  // namespace detail
inline void OutputArchive::save_to(std::ostream& out) const { detail::write_stream(out, value()); }
inline void InputArchive::load_from(std::istream& in) { value_ = detail::read_stream(in); }

// What is written of each thing, and how it becomes what it was.
inline umbra::io::PickleValue to_pickle(const Tensor& tensor) { return tensor; }
inline umbra::io::PickleValue to_pickle(const std::vector<Tensor>& tensors) {
  return umbra::io::PickleValue::list({tensors.begin(), tensors.end()});
}
inline umbra::io::PickleValue to_pickle(const nn::Module& module) { return umbra::io::to_pickle(module.state_dict()); }
inline umbra::io::PickleValue to_pickle(const umbra::optim::Optimizer& optimizer) {
  return umbra::io::to_pickle(optimizer.state_dict());
}
inline void from_pickle(const umbra::io::PickleValue& value, Tensor& tensor) { tensor = value.as_tensor(); }
inline void from_pickle(const umbra::io::PickleValue& value, std::vector<Tensor>& tensors) {
  tensors.clear();
  for (const umbra::io::PickleValue& item : value.items()) tensors.push_back(item.as_tensor());
}
inline void from_pickle(const umbra::io::PickleValue& value, nn::Module& module) {
  module.load_state_dict(umbra::io::to_state_dict(value));
}
inline void from_pickle(const umbra::io::PickleValue& value, umbra::optim::Optimizer& optimizer) {
  optimizer.load_state_dict(umbra::io::to_optimizer_state(value));
}
/// What a holder or a pointer leads to, and anything else itself.
template <class T> auto& target(T& thing) {
  if constexpr (requires { thing.get()->state_dict(); }) return *thing;
  else return thing;
}

}  // namespace serialize

template <class T>
requires requires(const T& thing) { serialize::to_pickle(serialize::target(thing)); }
void save(const T& thing, const std::string& path) {
  umbra::io::save_pickle(path, serialize::to_pickle(serialize::target(thing)));
}
template <class T>
requires requires(const T& thing) { serialize::to_pickle(serialize::target(thing)); }
void save(const T& thing, std::ostream& out) {
  serialize::detail::write_stream(out, serialize::to_pickle(serialize::target(thing)));
}
template <class T>
requires requires(T& thing) { serialize::to_pickle(serialize::target(thing)); }
void load(T& thing, const std::string& path) {
  serialize::from_pickle(umbra::io::load_pickle(path), serialize::target(thing));
}
template <class T>
requires requires(T& thing) { serialize::to_pickle(serialize::target(thing)); }
void load(T& thing, std::istream& in) {
  serialize::from_pickle(serialize::detail::read_stream(in), serialize::target(thing));
}

}  // namespace torch
