// What a pickle of torch.save holds, as plain data: numbers, text, lists, dicts and tensors, and nothing that could
// run.
//
//     PickleValue checkpoint = load_pickle("training.pt");
//     int64_t epoch = checkpoint["epoch"].as_int();
//     Tensor weight = checkpoint["model"]["weight"].as_tensor();
//
//     save_pickle("out.pt", PickleValue::dict({{"epoch", 4}, {"weight", weight}}));
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace io {

/// A value. Copies share containers, as Python's names do; values that were one object in the file are one object here.
class PickleValue {
 public:
  enum class Kind : uint8_t {
    None,
    Bool,
    Int,
    Float,
    String,
    Bytes,
    List,
    Tuple,
    Dict,
    Tensor,
    DType,
    Device,
    Object,   // an instance of a TorchScript class, as data: its class's name and its state
    Global,   // only while a pickle is read: a function or class by name
    Storage,  // only while a pickle is read: the memory of tensors
  };
  using Items = std::vector<PickleValue>;
  using Pair = std::pair<PickleValue, PickleValue>;

  PickleValue() = default;
  PickleValue(bool value) : kind_(Kind::Bool), int_(value) {}
  PickleValue(int64_t value) : kind_(Kind::Int), int_(value) {}
  PickleValue(int value) : PickleValue(static_cast<int64_t>(value)) {}
  PickleValue(double value) : kind_(Kind::Float), float_(value) {}
  PickleValue(std::string value);
  PickleValue(const char* value) : PickleValue(std::string(value)) {}
  PickleValue(umbra::Tensor value);
  PickleValue(umbra::DType value) : kind_(Kind::DType), int_(static_cast<int>(value)) {}
  PickleValue(umbra::Device value);
  static PickleValue bytes(std::string value);
  static PickleValue list(Items items = {});
  static PickleValue tuple(Items items = {});
  /// torch.Size: a tuple that says so.
  static PickleValue size(Items items);
  static PickleValue dict(const std::vector<Pair>& pairs = {}, bool ordered = false);
  static PickleValue parameter(umbra::Tensor value, bool requires_grad = true);
  static PickleValue object(std::string class_name);

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::None; }
  bool is_string() const { return kind_ == Kind::String; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
  bool is_dict() const { return kind_ == Kind::Dict; }
  bool is_list() const { return kind_ == Kind::List; }
  bool is_tuple() const { return kind_ == Kind::Tuple; }
  /// A list or a tuple.
  bool is_sequence() const { return is_list() || is_tuple(); }

  // Access; an error names the kind that was expected and the one that is there.
  bool as_bool() const;
  int64_t as_int() const;
  /// A float or an integer.
  double as_float() const;
  const std::string& as_string() const;
  const std::string& as_bytes() const;
  const umbra::Tensor& as_tensor() const;
  umbra::DType as_dtype() const;
  umbra::Device as_device() const;
  /// The elements of a list or tuple.
  const Items& items() const;
  /// Keys and values of a dict, in order.
  std::vector<Pair> pairs() const;
  /// The value of a string key of a dict, or null.
  const PickleValue* find(std::string_view key) const;
  /// The same where it has to be there: a KeyError names the keys that are.
  const PickleValue& operator[](std::string_view key) const;
  /// An element of a list or tuple; an IndexError where there is none.
  const PickleValue& operator[](size_t index) const;
  const std::string& class_name() const;
  /// What an Object was built from: as a rule a dict of its attributes.
  const PickleValue& state() const;

  /// Tensors: whether it was an nn.Parameter, and whether it required a gradient. The tensor itself is a plain one.
  bool is_parameter() const;
  bool requires_grad() const;
  /// A dict that was an OrderedDict, a tuple that was a torch.Size.
  bool is_special() const;
  /// Equal for values that are one object; null for plain numbers and None.
  const void* identity() const { return node_.get(); }
  /// "a dict", "a tensor": for messages.
  const char* kind_name() const;

 private:
  friend class Unpickler;
  struct Node;
  PickleValue(Kind kind, std::shared_ptr<Node> node) : kind_(kind), node_(std::move(node)) {}
  const Node& node(Kind kind, const char* expected) const;
  [[noreturn]] void wrong(const char* expected) const;

  Kind kind_ = Kind::None;
  union {
    int64_t int_ = 0;
    double float_;
  };
  std::shared_ptr<Node> node_;
};

}  // namespace io
}  // namespace umbra
