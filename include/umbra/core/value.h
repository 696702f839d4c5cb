// Value: anything an operator takes or returns, in sixteen bytes. The dispatcher's one calling convention is an array
// of these.
//
// A Value either owns what it refers to, or borrows it for the length of a call (typed C++ calls pass their arguments
// that way and allocate nothing). Copying a Value always makes an owner, so whoever keeps one may simply copy it.
#pragma once

#include <complex>
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {

class Generator;
class Value;

class Value {
 public:
  enum class Tag : uint8_t {
    None,
    Tensor,
    Int,
    UInt,  // an integer from 2^63 to 2^64 - 1, as a Scalar
    SymInt,
    Double,
    SymFloat,
    Bool,
    SymBool,
    Complex,
    String,
    Device,
    DType,
    Layout,
    MemoryFormat,
    Generator,
    IntList,  // ints and symbolic ints alike: int[], SymInt[]
    DoubleList,
    BoolList,
    TensorList,
    List,    // of anything: Scalar[], str[], tuples. Tensor?[] is a TensorList in which None is an undefined tensor
    Object,  // a subgraph, a Python callable, a custom object
  };
  template <class T> struct Boxed;

  Value() = default;
  Value(const Tensor& v);
  Value(Tensor&& v);
  Value(int64_t v) : tag_(Tag::Int), int_(v) {}
  Value(int v) : Value(static_cast<int64_t>(v)) {}
  Value(umbra::SymInt v) : tag_(v.is_symbolic() ? Tag::SymInt : Tag::Int), int_(v.raw()) {}
  Value(double v) : tag_(Tag::Double), double_(v) {}
  Value(const umbra::SymFloat& v);
  template <std::same_as<bool> T> Value(T v) : tag_(Tag::Bool), int_(v) {}  // no pointer, which would be true
  Value(const umbra::SymBool& v);
  Value(const Scalar& v);
  Value(std::complex<double> v);
  Value(std::string v);
  Value(const char* v) : Value(std::string(v)) {}
  Value(umbra::Device v) : tag_(Tag::Device), int_(static_cast<int>(v.type) << 8 | static_cast<uint8_t>(v.index)) {}
  Value(umbra::DType v) : tag_(Tag::DType), int_(static_cast<int>(v)) {}
  Value(umbra::Layout v) : tag_(Tag::Layout), int_(static_cast<int>(v)) {}
  Value(umbra::MemoryFormat v) : tag_(Tag::MemoryFormat), int_(static_cast<int>(v)) {}
  Value(IntrusivePtr<umbra::Generator> v);
  Value(std::vector<umbra::SymInt> v);
  Value(const std::vector<int64_t>& v);
  Value(std::vector<double> v);
  Value(std::vector<bool> v);
  Value(std::vector<Tensor> v);
  Value(std::vector<Value> v);
  template <class T> Value(const std::optional<T>& v) {
    if (v) *this = Value(*v);
  }
  static Value object(IntrusivePtr<RefCounted> v);

  // Borrowing: no copy, no count; the caller keeps the source alive while the Value is used.
  static Value borrow(const Tensor& v);
  static Value borrow(SymIntArrayRef v);
  static Value borrow(ArrayRef<double> v);
  static Value borrow(TensorList v);
  static Value borrow(const std::string& v);
  static Value borrow(const Value& v);

  Value(const Value& other);
  Value(Value&& other) noexcept : tag_(other.tag_), owned_(other.owned_), size_(other.size_), int_(other.int_) {
    other.tag_ = Tag::None;
    other.owned_ = false;
  }
  Value& operator=(const Value& other) { return *this = Value(other); }
  Value& operator=(Value&& other) noexcept {
    if (owned_) drop();
    tag_ = other.tag_;
    owned_ = other.owned_;
    size_ = other.size_;
    int_ = other.int_;
    other.tag_ = Tag::None;
    other.owned_ = false;
    return *this;
  }
  ~Value() {
    if (owned_) drop();
  }

  Tag tag() const { return tag_; }
  bool is_none() const { return tag_ == Tag::None; }
  /// A defined tensor; an undefined one is None.
  bool is_tensor() const { return tag_ == Tag::Tensor; }
  bool is_int() const { return tag_ == Tag::Int; }
  bool is_sym_int() const { return tag_ == Tag::SymInt; }
  bool is_double() const { return tag_ == Tag::Double; }
  bool is_bool() const { return tag_ == Tag::Bool; }
  bool is_string() const { return tag_ == Tag::String; }
  bool is_list() const { return tag_ == Tag::List; }
  bool is_tensor_list() const { return tag_ == Tag::TensorList; }
  bool is_int_list() const { return tag_ == Tag::IntList; }
  bool is_object() const { return tag_ == Tag::Object; }
  /// A number of any kind, symbolic ones included.
  bool is_scalar() const;
  bool is_symbolic() const { return tag_ == Tag::SymInt || tag_ == Tag::SymFloat || tag_ == Tag::SymBool; }

  // Access; an error names the kind that was expected and the one that is there. Numbers convert where Python's would.
  TensorImpl* tensor_impl() const { return tensor_; }  // only for Tag::Tensor; no count
  Tensor tensor() const;                               // undefined for None
  Tensor take_tensor();                                // moves it out
  /// The tensor without counting, as long as this Value stands: a Tensor is exactly its pointer.
  const Tensor& tensor_ref() const {
    static_assert(sizeof(Tensor) == sizeof(TensorImpl*));
    if (tag_ == Tag::Tensor) return *reinterpret_cast<const Tensor*>(&tensor_);
    return other_tensor_ref();
  }
  int64_t to_int() const;
  umbra::SymInt to_sym_int() const;
  double to_double() const;
  umbra::SymFloat to_sym_float() const;
  bool to_bool() const;
  umbra::SymBool to_sym_bool() const;
  Scalar to_scalar() const;
  std::complex<double> to_complex() const;
  const std::string& to_string() const;
  umbra::Device to_device() const;
  umbra::DType to_dtype() const;
  umbra::Layout to_layout() const;
  umbra::MemoryFormat to_memory_format() const;
  IntrusivePtr<umbra::Generator> to_generator() const;
  SymIntArrayRef int_list() const;
  ArrayRef<double> double_list() const;
  std::vector<bool> bool_list() const;
  TensorList tensor_list() const;
  ArrayRef<Value> list() const;
  RefCounted* object() const;

  /// Calls `visit` for each tensor inside, lists included.
  template <class F> void each_tensor(F&& visit) const {
    if (tag_ == Tag::Tensor) visit(tensor_);
    else if (tag_ == Tag::TensorList) {
      for (const Tensor& t : tensor_list())
        if (t.defined()) visit(t.impl());
    } else if (tag_ == Tag::List) {
      for (const Value& v : list()) v.each_tensor(visit);
    }
  }
  /// Deep equality of plain data; tensors and objects by identity.
  bool equals(const Value& other) const;

 private:
  void drop() noexcept;
  [[noreturn]] void wrong(const char* expected) const;
  const Tensor& other_tensor_ref() const;

  Tag tag_ = Tag::None;
  bool owned_ = false;
  uint32_t size_ = 0;  // length of a borrowed list
  union {
    int64_t int_ = 0;
    double double_;
    TensorImpl* tensor_;
    const SymNode* node_;
    RefCounted* box_;       // owned heap objects
    const void* borrowed_;  // borrowed arrays and strings
  };
};
static_assert(sizeof(Value) == 16);

const char* tag_name(Value::Tag tag);
/// The value as Python would print it.
std::string to_string(const Value& value);

}  // namespace umbra
