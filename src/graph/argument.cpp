#include "umbra/graph/argument.h"

namespace umbra::fx {

Argument::Argument(Kind kind, Arguments items, std::vector<std::string> keys)
    : kind_(kind), container_(new Container{std::move(items), std::move(keys)}) {}

Argument Argument::list(Arguments items) { return Argument(Kind::List, std::move(items), {}); }
Argument Argument::tuple(Arguments items) { return Argument(Kind::Tuple, std::move(items), {}); }

Argument Argument::dict(KeywordArguments entries) {
  Arguments items;
  std::vector<std::string> keys;
  for (auto& [key, value] : entries) {
    keys.push_back(std::move(key));
    items.push_back(std::move(value));
  }
  return Argument(Kind::Dict, std::move(items), std::move(keys));
}

Argument Argument::slice(Argument start, Argument stop, Argument step) {
  return Argument(Kind::Slice, {std::move(start), std::move(stop), std::move(step)}, {});
}

Argument::Argument(const Argument& other) : kind_(other.kind_), node_(nullptr) {
  if (kind_ == Kind::Node) node_ = other.node_;
  else if (kind_ == Kind::Value) new (&value_) umbra::Value(other.value_);
  else container_ = new Container(*other.container_);
}

Argument::Argument(Argument&& other) noexcept : kind_(other.kind_), node_(nullptr) { take(other); }

Argument& Argument::operator=(Argument other) noexcept {
  destroy();
  kind_ = other.kind_;
  take(other);
  return *this;
}

void Argument::take(Argument& other) noexcept {
  if (kind_ == Kind::Value) {
    new (&value_) umbra::Value(std::move(other.value_));
    return;
  }
  if (kind_ == Kind::Node) node_ = other.node_;
  else container_ = other.container_;
  other.kind_ = Kind::Node;  // nothing left to free
  other.node_ = nullptr;
}

void Argument::destroy() noexcept {
  if (kind_ == Kind::Value) value_.~Value();
  else if (kind_ != Kind::Node) delete container_;
}

bool Argument::is_sequence() const {
  if (kind_ != Kind::Value) return kind_ == Kind::List || kind_ == Kind::Tuple;
  return value_.tag() >= umbra::Value::Tag::IntList && value_.tag() <= umbra::Value::Tag::List;
}

Arguments Argument::elements() const {
  if (kind_ == Kind::List || kind_ == Kind::Tuple) return items();
  check<TypeError>(is_sequence(), "expected a list or tuple of arguments");
  Arguments out;
  switch (value_.tag()) {
    case umbra::Value::Tag::IntList:
      for (SymInt v : value_.int_list()) out.emplace_back(v);
      break;
    case umbra::Value::Tag::DoubleList:
      for (double v : value_.double_list()) out.emplace_back(v);
      break;
    case umbra::Value::Tag::BoolList:
      for (bool v : value_.bool_list()) out.emplace_back(v);
      break;
    case umbra::Value::Tag::TensorList:
      for (const Tensor& v : value_.tensor_list()) out.emplace_back(v);
      break;
    default:
      for (const umbra::Value& v : value_.list()) out.emplace_back(v);
  }
  return out;
}

bool Argument::has_nodes() const {
  if (kind_ == Kind::Node) return true;
  if (kind_ == Kind::Value) return false;
  for (const Argument& item : items())
    if (item.has_nodes()) return true;
  return false;
}

bool Argument::equals(const Argument& other) const {
  if (kind_ == Kind::Node || other.kind_ == Kind::Node) return kind_ == other.kind_ && node_ == other.node_;
  if (kind_ == Kind::Value && other.kind_ == Kind::Value && value_.equals(other.value_)) return true;
  if (is_sequence() && other.is_sequence()) {
    if ((kind_ == Kind::Tuple) != (other.kind_ == Kind::Tuple)) return false;
    if (kind_ == Kind::Value && other.kind_ == Kind::Value) return false;
    Arguments a = elements(), b = other.elements();
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Argument& x, const Argument& y) { return x.equals(y); });
  }
  if (kind_ != other.kind_ || kind_ == Kind::Value || keys() != other.keys()) return false;
  return std::equal(items().begin(), items().end(), other.items().begin(), other.items().end(),
                    [](const Argument& x, const Argument& y) { return x.equals(y); });
}

}  // namespace umbra::fx
