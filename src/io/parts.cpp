#include "umbra/io/parts.h"

#include <istream>
#include <iterator>
#include <ostream>

#include "umbra/io/file.h"

namespace umbra::io {

void write_pickle(std::ostream& out, const PickleValue& value) {
  BufferSink sink;
  write_pickle(sink, value);
  out.write(sink.text.data(), static_cast<std::streamsize>(sink.text.size()));
  check(static_cast<bool>(out), "the stream took no more");
}

PickleValue read_pickle(std::istream& in) {
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return read_pickle(Bytes(std::move(text)), "the stream");
}

void OutputArchive::write(const std::string& key, const Tensor& tensor, bool) { parts_.emplace_back(key, tensor); }

void OutputArchive::write(const std::string& key, const IValue& value) {
  switch (value.tag()) {
    case Value::Tag::Tensor: parts_.emplace_back(key, value.toTensor()); return;
    case Value::Tag::Int: parts_.emplace_back(key, value.toInt()); return;
    case Value::Tag::Double: parts_.emplace_back(key, value.toDouble()); return;
    case Value::Tag::Bool: parts_.emplace_back(key, value.toBool()); return;
    case Value::Tag::String: parts_.emplace_back(key, value.toStringRef()); return;
    default: fail<NotImplementedError>("an archive keeps tensors, numbers and texts; '", key, "' is none");
  }
}

void OutputArchive::write(const std::string& key, const OutputArchive& nested) {
  for (const auto& [name, part] : nested.parts_) parts_.emplace_back(key + "." + name.as_string(), part);
}

void OutputArchive::save_to(const std::string& path) const { save_pickle(path, PickleValue::dict(parts_, true)); }
void OutputArchive::save_to(std::ostream& out) const { write_pickle(out, PickleValue::dict(parts_, true)); }

void InputArchive::load_from(const std::string& path) { value_ = load_pickle(path); }
void InputArchive::load_from(std::istream& in) { value_ = read_pickle(in); }

void InputArchive::read(const std::string& key, Tensor& tensor, bool) const { tensor = value_[key].as_tensor(); }

void InputArchive::read(const std::string& key, IValue& value) const {
  const PickleValue& part = value_[key];
  switch (part.kind()) {
    case PickleValue::Kind::Tensor: value = IValue(part.as_tensor()); return;
    case PickleValue::Kind::Int: value = IValue(part.as_int()); return;
    case PickleValue::Kind::Float: value = IValue(part.as_float()); return;
    case PickleValue::Kind::Bool: value = IValue(part.as_bool()); return;
    default: value = IValue(part.as_string()); return;
  }
}

bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool) const {
  const PickleValue* part = value_.find(key);
  if (part) tensor = part->as_tensor();
  return part != nullptr;
}

}  // namespace umbra::io
