// Things by their names, in the order in which they came: what `named_parameters()`, state dicts and readers of files
// give.
//
//     model.state_dict()["fc.weight"];
//     for (auto& [name, parameter] : model.named_parameters()) ...
//     for (auto& item : model.named_parameters()) ... item.key(), item.value() ...
//     model.named_parameters()["fc.weight"].requires_grad_(false);
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "umbra/core/error.h"
#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {

template <class T> struct NamedItem : std::pair<std::string, T> {
  using std::pair<std::string, T>::pair;
  NamedItem() = default;
  NamedItem(std::pair<std::string, T> item) : std::pair<std::string, T>(std::move(item)) {}

  const std::string& key() const { return this->first; }
  T& value() { return this->second; }
  const T& value() const { return this->second; }
};

/// A list of items with a key() and a value() each. Names are looked for from the front: these lists are short, or
/// walked through.
template <class Item> class NamedList : public std::vector<Item> {
 public:
  using Value = std::remove_cvref_t<decltype(std::declval<const Item&>().value())>;
  using std::vector<Item>::vector;
  using std::vector<Item>::operator[];

  bool is_empty() const { return this->empty(); }
  bool contains(const std::string& name) const { return position(name) < this->size(); }
  /// Null where there is none of the name.
  const Value* find(const std::string& name) const {
    size_t at = position(name);
    return at < this->size() ? &(*this)[at].value() : nullptr;
  }
  /// A KeyError where there is none of the name.
  const Value& operator[](const std::string& name) const {
    const Value* found = find(name);
    if (!found) throw KeyError("there is nothing of the name '" + name + "'");
    return *found;
  }
  Value& operator[](const std::string& name) { return const_cast<Value&>(std::as_const(*this)[name]); }
  using std::vector<Item>::at;
  const Value& at(const std::string& name) const { return (*this)[name]; }
  Value& at(const std::string& name) { return (*this)[name]; }
  std::vector<std::string> keys() const {
    std::vector<std::string> out;
    for (const Item& item : *this) out.push_back(item.key());
    return out;
  }
  std::vector<Value> values() const {
    std::vector<Value> out;
    for (const Item& item : *this) out.push_back(item.value());
    return out;
  }

 private:
  size_t position(const std::string& name) const {
    size_t at = 0;
    while (at < this->size() && (*this)[at].key() != name) ++at;
    return at;
  }
};

/// Tensors by their paths: parameters, a state dict, what a file holds.
using NamedTensors = NamedList<NamedItem<Tensor>>;
/// Text by name: metadata of files, extra files of archives.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

}  // namespace umbra
