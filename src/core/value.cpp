#include "umbra/core/value.h"

#include "core/low_numbers.h"
#include "umbra/core/generator.h"

namespace umbra {

/// The heap side of a Value: a counted box around one C++ object.
template <class T> struct Value::Boxed final : RefCounted {
  explicit Boxed(T v) : value(std::move(v)) {}
  T value;
};

namespace {
template <class T> RefCounted* box(T value) {
  auto* boxed = new Value::Boxed<T>(std::move(value));
  boxed->retain();
  return boxed;
}
template <class T> const T& unbox(const RefCounted* b) { return static_cast<const Value::Boxed<T>*>(b)->value; }
}  // namespace

Value::Value(const Tensor& v) {
  if (!v.defined()) return;
  tag_ = Tag::Tensor;
  owned_ = true;
  tensor_ = v.impl();
  tensor_->retain();
}
Value::Value(Tensor&& v) {
  if (!v.defined()) return;
  tag_ = Tag::Tensor;
  owned_ = true;
  tensor_ = const_cast<IntrusivePtr<TensorImpl>&>(v.pointer()).leak();  // given away, so nothing is counted
}
Value::Value(const umbra::SymFloat& v) : tag_(v.is_symbolic() ? Tag::SymFloat : Tag::Double) {
  if (v.is_symbolic()) node_ = v.node();
  else double_ = v.value();
}
Value::Value(const umbra::SymBool& v) : tag_(v.is_symbolic() ? Tag::SymBool : Tag::Bool) {
  if (v.is_symbolic()) node_ = v.node();
  else int_ = v.value();
}
Value::Value(const Scalar& v) {
  switch (v.kind()) {
    case Scalar::Kind::Bool: *this = Value(v.to_bool()); break;
    case Scalar::Kind::Int: *this = Value(v.to_int()); break;
    case Scalar::Kind::UInt:
      tag_ = Tag::UInt;
      int_ = static_cast<int64_t>(v.to_uint());
      break;
    case Scalar::Kind::Double: *this = Value(v.to_double()); break;
    case Scalar::Kind::Complex: *this = Value(v.to_complex()); break;
    case Scalar::Kind::SymInt: *this = Value(v.to_sym_int()); break;
    case Scalar::Kind::SymFloat: *this = Value(v.to_sym_float()); break;
    case Scalar::Kind::SymBool: *this = Value(v.to_sym_bool()); break;
  }
}
Value::Value(std::complex<double> v) : tag_(Tag::Complex), owned_(true) { box_ = box(v); }
Value::Value(std::string v) : tag_(Tag::String), owned_(true) { box_ = box(std::move(v)); }
Value::Value(IntrusivePtr<umbra::Generator> v) {
  if (!v) return;
  tag_ = Tag::Generator;
  owned_ = true;
  box_ = v.leak();
}
Value::Value(std::vector<umbra::SymInt> v) : tag_(Tag::IntList), owned_(true) { box_ = box(std::move(v)); }
Value::Value(const std::vector<int64_t>& v) : Value(std::vector<umbra::SymInt>(v.begin(), v.end())) {}
Value::Value(std::vector<double> v) : tag_(Tag::DoubleList), owned_(true) { box_ = box(std::move(v)); }
Value::Value(std::vector<bool> v) : tag_(Tag::BoolList), owned_(true) { box_ = box(std::move(v)); }
Value::Value(std::vector<Tensor> v) : tag_(Tag::TensorList), owned_(true) { box_ = box(std::move(v)); }
Value::Value(std::vector<Value> v) : tag_(Tag::List), owned_(true) { box_ = box(std::move(v)); }
Value Value::object(IntrusivePtr<RefCounted> v) {
  Value result;
  result.tag_ = Tag::Object;
  result.owned_ = true;
  result.box_ = v.leak();
  return result;
}

Value Value::borrow(const Tensor& v) {
  Value result;
  if (!v.defined()) return result;
  result.tag_ = Tag::Tensor;
  result.tensor_ = v.impl();
  return result;
}
namespace {
template <class T> void set_borrowed(ArrayRef<T> v, uint32_t& size, const void*& data) {
  size = static_cast<uint32_t>(v.size());
  data = v.data();
}
}  // namespace
Value Value::borrow(SymIntArrayRef v) {
  Value result;
  result.tag_ = Tag::IntList;
  set_borrowed(v, result.size_, result.borrowed_);
  return result;
}
Value Value::borrow(ArrayRef<double> v) {
  Value result;
  result.tag_ = Tag::DoubleList;
  set_borrowed(v, result.size_, result.borrowed_);
  return result;
}
Value Value::borrow(TensorList v) {
  Value result;
  result.tag_ = Tag::TensorList;
  set_borrowed(v, result.size_, result.borrowed_);
  return result;
}
Value Value::borrow(const std::string& v) {
  Value result;
  result.tag_ = Tag::String;
  result.borrowed_ = &v;
  return result;
}
Value Value::borrow(const Value& v) {
  Value result;
  switch (v.tag_) {
    case Tag::IntList: return borrow(v.int_list());
    case Tag::DoubleList: return borrow(v.double_list());
    case Tag::TensorList: return borrow(v.tensor_list());
    case Tag::String: return borrow(v.to_string());
    case Tag::List:
    case Tag::BoolList:
    case Tag::Complex:
    case Tag::Generator:
    case Tag::Object: return v;
    default:
      result.tag_ = v.tag_;
      result.int_ = v.int_;
      return result;
  }
}

Value::Value(const Value& other) : tag_(other.tag_) {
  switch (tag_) {
    case Tag::None:
    case Tag::Int:
    case Tag::UInt:
    case Tag::SymInt:
    case Tag::Double:
    case Tag::SymFloat:
    case Tag::Bool:
    case Tag::SymBool:
    case Tag::Device:
    case Tag::DType:
    case Tag::Layout:
    case Tag::MemoryFormat: int_ = other.int_; return;
    default: break;
  }
  owned_ = true;
  if (tag_ == Tag::Tensor) {
    tensor_ = other.tensor_;
    tensor_->retain();
  } else if (other.owned_) {
    box_ = other.box_;
    box_->retain();
  } else if (tag_ == Tag::IntList) {
    box_ = box(other.int_list().vec());
  } else if (tag_ == Tag::DoubleList) {
    box_ = box(other.double_list().vec());
  } else if (tag_ == Tag::TensorList) {
    box_ = box(other.tensor_list().vec());
  } else {
    box_ = box(other.to_string());
  }
}

void Value::drop() noexcept {
  if (tag_ == Tag::Tensor) tensor_->release();
  else box_->release();
}

bool Value::is_scalar() const {
  return tag_ == Tag::Int || tag_ == Tag::UInt || tag_ == Tag::Double || tag_ == Tag::Bool || tag_ == Tag::Complex ||
         is_symbolic();
}

void Value::wrong(const char* expected) const {
  fail<TypeError>("expected a value of type ", expected, ", got ", tag_name(tag_));
}

Tensor Value::tensor() const {
  if (tag_ == Tag::None) return Tensor();
  if (tag_ != Tag::Tensor) wrong("Tensor");
  return Tensor(IntrusivePtr<TensorImpl>(tensor_));
}
const Tensor& Value::other_tensor_ref() const {
  static const Tensor undefined;
  if (tag_ != Tag::None) wrong("Tensor");
  return undefined;
}
Tensor Value::take_tensor() {
  if (tag_ != Tag::Tensor || !owned_) return tensor();
  tag_ = Tag::None;
  owned_ = false;
  return Tensor(IntrusivePtr<TensorImpl>::adopt(tensor_));
}
int64_t Value::to_int() const {
  if (tag_ == Tag::Int || tag_ == Tag::Bool) return int_;
  if (tag_ == Tag::SymInt) return to_sym_int().guard_int();
  if (tag_ == Tag::UInt) return to_scalar().to_int();  // refuses
  wrong("int");
}
umbra::SymInt Value::to_sym_int() const {
  if (tag_ == Tag::SymInt) return umbra::SymInt::from_raw(int_);
  return any_number(to_int());
}
double Value::to_double() const {
  if (tag_ == Tag::Double) return double_;
  if (tag_ == Tag::SymFloat) return node_->guard_float();
  if (tag_ == Tag::Int || tag_ == Tag::Bool || tag_ == Tag::SymInt) return static_cast<double>(to_int());
  if (tag_ == Tag::UInt) return to_scalar().to_double();
  wrong("float");
}
umbra::SymFloat Value::to_sym_float() const {
  if (tag_ == Tag::SymFloat) return umbra::SymFloat(node_);
  if (tag_ == Tag::SymInt) return sym_float(to_sym_int());
  return to_double();
}
bool Value::to_bool() const {
  if (tag_ == Tag::Bool || tag_ == Tag::Int || tag_ == Tag::UInt) return int_ != 0;
  if (tag_ == Tag::SymBool) return node_->guard_bool();
  wrong("bool");
}
umbra::SymBool Value::to_sym_bool() const {
  return tag_ == Tag::SymBool ? umbra::SymBool(node_) : umbra::SymBool(to_bool());
}
Scalar Value::to_scalar() const {
  switch (tag_) {
    case Tag::Int: return Scalar(int_);
    case Tag::UInt: return Scalar(static_cast<uint64_t>(int_));
    case Tag::Bool: return Scalar(int_ != 0);
    case Tag::Double: return Scalar(double_);
    case Tag::Complex: return Scalar(unbox<std::complex<double>>(box_));
    case Tag::SymInt: return Scalar(to_sym_int());
    case Tag::SymFloat: return Scalar(umbra::SymFloat(node_));
    case Tag::SymBool: return Scalar(umbra::SymBool(node_));
    default: wrong("number");
  }
}
std::complex<double> Value::to_complex() const {
  return tag_ == Tag::Complex ? unbox<std::complex<double>>(box_) : to_scalar().to_complex();
}
const std::string& Value::to_string() const {
  if (tag_ != Tag::String) wrong("str");
  return owned_ ? unbox<std::string>(box_) : *static_cast<const std::string*>(borrowed_);
}
umbra::Device Value::to_device() const {
  if (tag_ != Tag::Device) wrong("Device");
  return {static_cast<DeviceType>(int_ >> 8), static_cast<int8_t>(int_ & 0xff)};
}
umbra::DType Value::to_dtype() const {
  if (tag_ != Tag::DType) wrong("ScalarType");
  return static_cast<umbra::DType>(int_);
}
umbra::Layout Value::to_layout() const {
  if (tag_ != Tag::Layout) wrong("Layout");
  return static_cast<umbra::Layout>(int_);
}
umbra::MemoryFormat Value::to_memory_format() const {
  if (tag_ != Tag::MemoryFormat) wrong("MemoryFormat");
  return static_cast<umbra::MemoryFormat>(int_);
}
IntrusivePtr<umbra::Generator> Value::to_generator() const {
  if (tag_ == Tag::None) return nullptr;
  if (tag_ != Tag::Generator) wrong("Generator");
  return IntrusivePtr<umbra::Generator>(static_cast<umbra::Generator*>(box_));
}
SymIntArrayRef Value::int_list() const {
  if (tag_ != Tag::IntList) {
    if ((tag_ == Tag::List && list().empty()) || (tag_ == Tag::TensorList && tensor_list().empty())) return {};
    wrong("int[]");
  }
  if (owned_) return unbox<std::vector<umbra::SymInt>>(box_);
  return {static_cast<const umbra::SymInt*>(borrowed_), size_};
}
ArrayRef<double> Value::double_list() const {
  if (tag_ != Tag::DoubleList) wrong("float[]");
  if (owned_) return unbox<std::vector<double>>(box_);
  return {static_cast<const double*>(borrowed_), size_};
}
std::vector<bool> Value::bool_list() const {
  if (tag_ != Tag::BoolList) wrong("bool[]");
  return unbox<std::vector<bool>>(box_);
}
TensorList Value::tensor_list() const {
  if (tag_ != Tag::TensorList) {
    if (tag_ == Tag::List && list().empty()) return {};
    wrong("Tensor[]");
  }
  if (owned_) return unbox<std::vector<Tensor>>(box_);
  return {static_cast<const Tensor*>(borrowed_), size_};
}
ArrayRef<Value> Value::list() const {
  if (tag_ != Tag::List) wrong("list");
  return unbox<std::vector<Value>>(box_);
}
RefCounted* Value::object() const {
  if (tag_ != Tag::Object) wrong("object");
  return box_;
}

bool Value::equals(const Value& other) const {
  if (tag_ != other.tag_) return false;
  auto all = [](const auto& a, const auto& b, auto same) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
  };
  switch (tag_) {
    case Tag::Double: return double_ == other.double_ || (double_ != double_ && other.double_ != other.double_);
    case Tag::Complex: return to_complex() == other.to_complex();
    case Tag::String: return to_string() == other.to_string();
    case Tag::IntList:
      return all(int_list(), other.int_list(), [](umbra::SymInt a, umbra::SymInt b) { return a.same(b); });
    case Tag::DoubleList: return double_list() == other.double_list();
    case Tag::BoolList: return bool_list() == other.bool_list();
    case Tag::TensorList:
      return all(tensor_list(), other.tensor_list(), [](const Tensor& a, const Tensor& b) { return a.is_same(b); });
    case Tag::List: return all(list(), other.list(), [](const Value& a, const Value& b) { return a.equals(b); });
    default: return int_ == other.int_;
  }
}

const char* tag_name(Value::Tag tag) {
  constexpr const char* kNames[] = {"None",       "Tensor",   "int",          "int",       "SymInt", "float",
                                    "SymFloat",   "bool",     "SymBool",      "complex",   "str",    "Device",
                                    "ScalarType", "Layout",   "MemoryFormat", "Generator", "int[]",  "float[]",
                                    "bool[]",     "Tensor[]", "list",         "object"};
  return kNames[static_cast<int>(tag)];
}

std::string to_string(const Value& value) {
  auto join = [](const auto& items, auto text) {
    std::string out = "[";
    for (size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + text(items[i]);
    return out + "]";
  };
  switch (value.tag()) {
    case Value::Tag::None: return "None";
    case Value::Tag::Tensor: return "Tensor" + to_string(value.tensor().sym_sizes());
    case Value::Tag::String: return "'" + value.to_string() + "'";
    case Value::Tag::Device: return "device(type='" + to_string(value.to_device()) + "')";
    case Value::Tag::DType: return to_string(value.to_dtype());
    case Value::Tag::Layout: return to_string(value.to_layout());
    case Value::Tag::MemoryFormat: return to_string(value.to_memory_format());
    case Value::Tag::IntList: return join(value.int_list(), [](SymInt v) { return to_string(v); });
    case Value::Tag::DoubleList: return join(value.double_list(), [](double v) { return concat(v); });
    case Value::Tag::BoolList: {
      std::vector<bool> bits = value.bool_list();
      return join(bits, [](bool v) { return std::string(v ? "True" : "False"); });
    }
    case Value::Tag::TensorList:
      return join(value.tensor_list(), [](const Tensor& v) { return to_string(Value::borrow(v)); });
    case Value::Tag::List: return join(value.list(), [](const Value& v) { return to_string(v); });
    case Value::Tag::Generator: return "<Generator>";
    case Value::Tag::Object: return "<object>";
    default: return to_string(value.to_scalar());
  }
}

}  // namespace umbra
