// What a captured function read besides its arguments, and whether it is still the same. Dicts know a version, so that
// asking costs a comparison for each dict that nobody has changed.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "python.h"
#include "umbra/core/tensor.h"
#include "umbra/core/value.h"

namespace umbra::python {

/// The number that changes when a dict does; 0 where the interpreter has none, which is the same as no other.
uint64_t dict_version(PyObject* dict);

/// An object as it was.
class Watched {
 public:
  /// What all the objects of one watch share.
  struct Scope {
    std::unordered_set<PyObject*> seen;
    PyObject* names;          // a set of the names that the functions use: attributes of other names are read by nobody
    bool restorable = false;  // what is watched can be put back
    size_t left = 20'000;     // objects that are looked into, at most
    bool own = false;         // inside of the package's modules, of which only settings near the top change
    bool whole = false;       // functions ask objects for all that they have: no attribute is read by nobody
    PyObject* returned = nullptr;  // a list of objects that no equal one can stand for
    std::string hidden;            // the class of an object that cannot be watched, if there is one
    std::unordered_set<const TensorImpl*> tensors = {};
    // The slots of classes that are asked for, where names decide and where all are.
    std::unordered_map<PyTypeObject*, std::vector<nb::object>> slots[2] = {};
  };
  Watched() = default;
  Watched(Watched&&) noexcept = default;
  Watched& operator=(Watched&&) noexcept = default;
  Watched(PyObject* object, Scope& scope, int depth);

  /// Whether an object that stands where this one stood is as good as it. `why` gets the path to what is not.
  bool holds(PyObject* now, std::string* why = nullptr);
  /// The same of the object itself, where it is known to stand in its place still: only what can change is looked at.
  bool still_holds(std::string* why) { return is_fixed() || holds(object_.ptr(), why); }
  /// Puts back what lists, dicts and attributes held; only where the scope was `restorable`.
  void restore();
  /// Whether `still_holds` may be asked while this object stands there.
  bool is_known(PyObject* now) const { return is_fixed() || object_.ptr() == now; }

 private:
  /// Parts: one object from several sides, its elements, attributes, class. Fields: the dict of an object's attributes.
  /// BareTensor: one of a module that has no attributes of the user's.
  /// Referents: what an object of a class written in C holds. Contents: bytes. Owner: the class and dict of a module.
  enum class Kind : uint8_t {
    Anything,
    Plain,
    Same,
    Tensor,
    BareTensor,
    Function,
    Sequence,
    Dict,
    Fields,
    Slots,
    Parts,
    Referents,
    Weak,
    Contents,
    Class,
    Module,
    Owner
  };
  struct Item {
    nb::object key;
    std::unique_ptr<Watched> value;
    PyObject* holder = nullptr;  // of a class: which of its bases has it
  };
  bool is_fixed() const { return kind_ == Kind::Anything || kind_ == Kind::Plain || kind_ == Kind::Same; }
  void look_into(PyObject* object, Scope& scope, int depth);
  void watch_parts(PyObject* object, Scope& scope, int depth);
  void watch_sequence(PyObject* object, Scope& scope, int depth);
  void watch_dict(PyObject* object, Scope& scope, int depth);
  void watch_fields(PyObject* object, Scope& scope, int depth);
  void watch_slots(PyObject* object, Scope& scope, int depth);
  void watch_referents(PyObject* object, Scope& scope, int depth);
  void watch_class(PyTypeObject* type, Scope& scope, int depth);
  void watch_base(PyTypeObject* base, nb::handle name, Scope& scope, int depth);
  void watch_class_of_class(PyTypeObject* type, Scope& scope, int depth);
  bool class_has_changed(PyTypeObject* type, std::string* why) const;
  void watch_module(PyObject* object, Scope& scope, int depth);
  void watch_module_part(PyObject* part, Scope& scope, int depth);
  void watch_members(PyObject* dict, Scope& scope, int depth);
  Watched& add_part(PyObject* object);
  void add(PyObject* key, PyObject* value, Scope& scope, int depth);
  bool sequence_holds(PyObject* now, std::string* why);
  bool dict_holds(PyObject* now, std::string* why);
  bool order_holds(PyObject* now) const;
  bool fields_hold(PyObject* now, std::string* why);
  bool slots_hold(PyObject* now, std::string* why);
  bool parts_hold(PyObject* now, std::string* why);
  bool referents_hold(PyObject* now, std::string* why);
  size_t count_in_bases() const;
  nb::object new_names(PyObject* dict) const;
  nb::object new_names(PyTypeObject* type) const;
  bool class_holds(PyObject* now, std::string* why);
  bool module_holds(PyObject* now, std::string* why);
  void restore_dict(PyObject* dict);
  void restore_sequence(PyObject* object);
  void let_go(PyObject* object);
  bool is_other(PyObject* now) const { return object_.is_valid() && object_.ptr() != now; }

  Kind kind_ = Kind::Anything;
  nb::object object_;
  Py_ssize_t length_ = 0;
  uint64_t version_ = 0;
  bool exact_ = false;    // no other keys may be there
  bool ordered_ = false;  // the keys stand in their order
  bool requires_grad_ = false;
  bool moving_ = false;  // an item can change while its dict does not
  bool same_ = false;    // no equal object can stand for it
  bool module_ = false;  // the dict of a Python module: of its names only those that are read
  nb::object copy_;      // what it held, where it is to be put back; of Parts: the class
  std::vector<Item> items_;
  std::vector<nb::object>
      absent_;  // slots that are asked for and not there; of classes and Python modules: the set of all names
};

/// What functions decide by beside their arguments: what they take from closures, globals, defaults and their owners.
class Reads {
 public:
  /// `names`: more names by which attributes are asked for; `whole`: all names are. `restorable`: what they change
  /// besides their results can be put back.
  /// `returned`: objects that must stay the same ones, since captures give them as results.
  Reads(nb::handle functions, nb::handle owners, nb::handle names, bool restorable, bool whole, nb::handle returned);
  Reads(const Reads&) = delete;
  bool hold(std::string* why = nullptr);
  void restore();
  /// Whether a tensor is one of theirs: as an argument it would have a stand-in that is another object.
  bool have(const Tensor& tensor) const { return tensors_.contains(tensor.impl()); }
  /// Whether an object is one of those that are watched.
  bool saw(PyObject* object) const { return seen_.contains(object); }
  /// The class of an object among them that does not tell when it changes.
  const std::string& hidden() const { return hidden_; }

 private:
  struct Function {
    nb::object function, code, globals, closure, defaults;
    uint64_t version = 0;
    std::vector<std::pair<nb::object, Watched>> names;
    std::vector<nb::object> absent;  // names that are no globals
    std::vector<Watched> cells, default_values;
    nb::object keyword_defaults;
    Watched keyword_values, itself;
    std::vector<nb::object> cell_contents, global_values;  // to be put back
  };
  void add(nb::handle function, Watched::Scope& scope);
  static void restore_function(Function& f);
  static bool holds(Function& f, std::string* why);
  static bool cells_hold(Function& f, std::string* why);
  static bool names_hold(Function& f, std::string* why);

  std::vector<std::unique_ptr<Function>> functions_;
  std::vector<std::pair<nb::object, Watched>> owners_;
  std::string hidden_;
  std::unordered_set<const TensorImpl*> tensors_;
  std::unordered_set<PyObject*> seen_;
};

/// A module's tensors, and what else says which graphs run, looked up anew when one of its dicts has changed.
class ModuleState {
 public:
  /// `look_up()` gives (key, tensors); `modules()` the module and all its parts.
  ModuleState(nb::object look_up, nb::object modules) : look_up_(std::move(look_up)), modules_(std::move(modules)) {}
  /// Looks up where need be.
  void refresh();
  /// What has to be equal for graphs to be used again: names, training flags.
  const nb::object& key() const { return key_; }
  const std::vector<Value>& tensors() const { return tensors_; }

 private:
  bool is_current() const;
  nb::object look_up_, modules_, key_;
  std::vector<std::pair<nb::object, uint64_t>> dicts_;
  std::vector<Value> tensors_;
};

}  // namespace umbra::python
