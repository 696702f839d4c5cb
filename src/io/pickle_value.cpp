#include "umbra/io/pickle_value.h"

#include "io/pickle_node.h"

namespace umbra::io {

PickleValue::PickleValue(std::string value) : kind_(Kind::String), node_(std::make_shared<Node>()) {
  node_->text = std::move(value);
}

PickleValue::PickleValue(umbra::Tensor value) : kind_(Kind::Tensor), node_(std::make_shared<Node>()) {
  node_->requires_grad = value.defined() && value.requires_grad();
  node_->tensor = std::move(value);
}

PickleValue::PickleValue(umbra::Device value) : kind_(Kind::Device), node_(std::make_shared<Node>()) {
  node_->device = value;
}

PickleValue PickleValue::bytes(std::string value) {
  PickleValue result(std::move(value));
  result.kind_ = Kind::Bytes;
  return result;
}

PickleValue PickleValue::list(Items items) {
  PickleValue result(Kind::List, std::make_shared<Node>());
  result.node_->items = std::move(items);
  return result;
}

PickleValue PickleValue::tuple(Items items) {
  PickleValue result = list(std::move(items));
  result.kind_ = Kind::Tuple;
  return result;
}

PickleValue PickleValue::size(Items items) {
  PickleValue result = tuple(std::move(items));
  result.node_->special = true;
  return result;
}

PickleValue PickleValue::dict(const std::vector<Pair>& pairs, bool ordered) {
  PickleValue result(Kind::Dict, std::make_shared<Node>());
  result.node_->special = ordered;
  for (const auto& [key, value] : pairs) {
    result.node_->items.push_back(key);
    result.node_->items.push_back(value);
  }
  return result;
}

PickleValue PickleValue::parameter(umbra::Tensor value, bool requires_grad) {
  PickleValue result(std::move(value));
  result.node_->parameter = true;
  result.node_->requires_grad = requires_grad;
  return result;
}

PickleValue PickleValue::object(std::string class_name) {
  PickleValue result(Kind::Object, std::make_shared<Node>());
  result.node_->text = std::move(class_name);
  result.node_->items.emplace_back();
  return result;
}

const char* PickleValue::kind_name() const {
  constexpr const char* kNames[] = {"None",    "a bool",   "an int",    "a float",    "a string",
                                    "bytes",   "a list",   "a tuple",   "a dict",     "a tensor",
                                    "a dtype", "a device", "an object", "a function", "a storage"};
  return kNames[static_cast<int>(kind_)];
}

void PickleValue::wrong(const char* expected) const { fail<TypeError>("expected ", expected, ", found ", kind_name()); }

const PickleValue::Node& PickleValue::node(Kind kind, const char* expected) const {
  if (kind_ != kind) wrong(expected);
  return *node_;
}

bool PickleValue::as_bool() const {
  if (kind_ != Kind::Bool) wrong("a bool");
  return int_ != 0;
}

int64_t PickleValue::as_int() const {
  if (kind_ != Kind::Int) wrong("an int");
  return int_;
}

double PickleValue::as_float() const {
  if (kind_ == Kind::Int) return static_cast<double>(int_);
  if (kind_ != Kind::Float) wrong("a float");
  return float_;
}

const std::string& PickleValue::as_string() const { return node(Kind::String, "a string").text; }
const std::string& PickleValue::as_bytes() const { return node(Kind::Bytes, "bytes").text; }
const umbra::Tensor& PickleValue::as_tensor() const { return node(Kind::Tensor, "a tensor").tensor; }
umbra::Device PickleValue::as_device() const { return node(Kind::Device, "a device").device; }

umbra::DType PickleValue::as_dtype() const {
  if (kind_ != Kind::DType) wrong("a dtype");
  return static_cast<umbra::DType>(int_);
}

const PickleValue::Items& PickleValue::items() const {
  if (!is_sequence()) wrong("a list or tuple");
  return node_->items;
}

std::vector<PickleValue::Pair> PickleValue::pairs() const {
  const Items& items = node(Kind::Dict, "a dict").items;
  std::vector<Pair> result;
  result.reserve(items.size() / 2);
  for (size_t i = 0; i + 1 < items.size(); i += 2) result.emplace_back(items[i], items[i + 1]);
  return result;
}

const PickleValue* PickleValue::find(std::string_view key) const {
  const Items& items = node(Kind::Dict, "a dict").items;
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i].is_string() && items[i].as_string() == key) return &items[i + 1];
  return nullptr;
}

const PickleValue& PickleValue::operator[](std::string_view key) const {
  if (const PickleValue* found = find(key)) return *found;
  std::string known;
  for (const auto& [name, value] : pairs())
    if (name.is_string()) known += (known.empty() ? "'" : ", '") + name.as_string() + "'";
  fail<KeyError>("there is no '", key, "' here; there is ", known.empty() ? "nothing" : known);
}

const PickleValue& PickleValue::operator[](size_t index) const {
  check<IndexError>(index < items().size(), "index ", index, " is out of range of ", kind_name(), " of ",
                    items().size());
  return items()[index];
}

const std::string& PickleValue::class_name() const { return node(Kind::Object, "an object").text; }
const PickleValue& PickleValue::state() const { return node(Kind::Object, "an object").items[0]; }
bool PickleValue::is_parameter() const { return is_tensor() && node_->parameter; }
bool PickleValue::requires_grad() const { return is_tensor() && node_->requires_grad; }
bool PickleValue::is_special() const { return (is_dict() || is_tuple()) && node_->special; }

}  // namespace umbra::io
