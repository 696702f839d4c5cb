// From Python's arguments to a frame of Values: one matcher for each operator overload, built once from its schema.
#pragma once

#include <memory>
#include <vector>

#include "python.h"
#include "umbra/dispatch/operator.h"

namespace umbra::python {

/// What one call's arguments borrow from while it runs, so that lists of ints need no memory of their own.
class Scratch {
 public:
  /// A place for a list of ints, or null when all are taken.
  SymShape* next_list() { return used_ < kLists ? &lists_[used_++] : nullptr; }
  void reset() {
    for (size_t i = 0; i < used_; ++i) lists_[i].clear();
    used_ = 0;
    saw_subclass = false;
  }
  bool saw_subclass = false;   // a tensor of a user's class: __torch_function__ may want the call
  bool split_tensors = false;  // a tensor may stand for the list of its rows, as operators (not functions) have it

 private:
  static constexpr size_t kLists = 4;
  SymShape lists_[kLists];
  size_t used_ = 0;
};

/// The arguments of a call as CPython's vectorcall passes them.
struct CallArguments {
  PyObject* const* values;
  size_t positional;
  PyObject* keywords;  // a tuple of names, or null; their values follow the positional ones

  size_t keyword_count() const { return keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0; }
  PyObject* keyword(size_t i) const { return PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i)); }
  PyObject* keyword_value(size_t i) const { return values[positional + i]; }
};

/// How strictly arguments are read: an operator (ops.aten.add.Tensor) or a function or method (umbra.add, x.add).
enum class Reading : uint8_t { Operator, Function, Method };

/// Why arguments did not fit.
struct Mismatch {
  enum class Reason : uint8_t { None, TooMany, UnknownKeyword, Duplicate, Missing, WrongType } reason = Reason::None;
  size_t parameter = 0;
  PyObject* object = nullptr;  // the value or the keyword, borrowed

  /// Says why, and false.
  bool set(Reason r, size_t p, PyObject* o) {
    *this = {r, p, o};
    return false;
  }
};

class Matcher {
 public:
  explicit Matcher(const Operator& op);
  /// The operator's own, made on first use.
  static Matcher& of(const Operator& op);

  const Operator& op() const { return op_; }
  /// Fills the frame. False, and why, where the arguments are not this overload's.
  bool read(const CallArguments& call, Reading reading, Value* frame, Scratch& scratch, Mismatch& why) const;
  /// Whether the only positional parameter (besides self) is a list of ints, which may then be spelt out: x.view(2, 3).
  bool takes_spelt_out_ints(Reading reading) const {
    return reading == Reading::Method ? method_ints_ : function_ints_;
  }
  size_t positional_count() const { return positional_; }
  bool numbers_as_tensors() const { return numbers_as_tensors_; }
  /// Whether it is a factory's out variant, which takes the factory's options to compare with.
  bool is_factory_out() const { return factory_out_; }
  /// A function that makes a tensor says where, even when its caller does not: the CPU, and memory that is not pinned.
  void fill_factory_options(Value* frame) const;
  /// The parameter's name as users of functions know it: self is `input` there.
  std::string parameter_name(size_t i, Reading reading) const;

 private:
  struct Parameter {
    PyObject* name;
    SchemaType type;
    const Value* default_value;  // null: must be given
    bool none_is_default;        // functions take None for a list of ints that is empty by default
  };
  int find(PyObject* keyword, Reading reading) const;
  bool read_parameter(PyObject* object, Reading reading, size_t i, Value* frame, Scratch& scratch) const;
  bool read_spelt_out(const CallArguments& call, size_t first, Value* frame, Scratch& scratch) const;
  bool read_positional(const CallArguments& call, Reading reading, Value* frame, Scratch& scratch, size_t& given,
                       Mismatch& why) const;
  bool read_keywords(const CallArguments& call, Reading reading, Value* frame, Scratch& scratch, uint64_t& filled,
                     Mismatch& why) const;
  bool read_extra_keyword(PyObject* keyword, PyObject* value, Value* frame, Scratch& scratch, uint64_t& filled,
                          Mismatch& why) const;

  const Operator& op_;
  std::vector<Parameter> parameters_;
  size_t positional_ = 0;
  int device_ = -1, pin_memory_ = -1;  // of factories
  bool factory_out_ = false;           // a factory's out variant, which takes the factory's options too
  int reduction_ = -1;                 // of losses, where it has a default
  bool numbers_as_tensors_ = false, method_ints_ = false, function_ints_ = false;
};

/// One argument by its type; false where it does not fit. `numbers`: a number may stand for a Tensor.
bool read_value(PyObject* object, const SchemaType& type, Value& out, Scratch& scratch, bool numbers);
/// Any Python object as a Value: tensors, numbers, strings, lists, None; other objects are carried as they are.
Value read_any(PyObject* object);
/// A tuple as the value it stands for in Python callbacks, by schema type (a number for a Tensor becomes a tensor).
Value read_result(PyObject* object, const SchemaType& type);

/// A Value as a Python object, a new reference.
PyObject* wrap(const Value& value);
/// The results of a call: one object, a tuple, or None.
PyObject* wrap_results(const Operator& op, Value* frame);

/// Runs an operator, without the interpreter lock where it may take long.
void call_operator(const Operator& op, Value* frame);

/// A Python object inside a Value; let go under the interpreter lock.
class PythonObject final : public RefCounted {
 public:
  explicit PythonObject(PyObject* object) : object_(Py_NewRef(object)) {}
  ~PythonObject() override;
  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

}  // namespace umbra::python
