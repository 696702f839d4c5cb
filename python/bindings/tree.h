// Structures of arguments and results, kept in C++ so that a call of a compiled function makes no Python objects.
#pragma once

#include "python.h"
#include "umbra/core/value.h"

namespace umbra::python {

/// The structure of a tree: tuples, lists, named tuples, dicts and objects (`umbra._functorch.objects`) around leaves.
/// Some leaves are *kept*: no graph can hold them.
class Tree {
 public:
  /// From a TreeSpec of umbra.utils._pytree, with the kept leaves by their places. `usable()` is false where it has
  /// nodes of other classes. Where it does not keep types, a plain tuple or list of leaves is filled as a list and
  /// sizes as a tuple, which is what PyTorch's aot_function gives; torch.compile gives what the function gave.
  /// `leaves`, or None: the tensors among them tell of what class those of calls have to be. Where the class `float`
  /// stands for one, graphs take floats as tensors.
  Tree(nb::handle spec, nb::handle kept, bool keeps_types, nb::handle leaves);
  bool usable() const { return usable_; }

  /// Whether the arguments of a call, `(args, kwargs)`, have this structure and the kept leaves these values; the other
  /// leaves are added to `leaves`, and the objects that were taken apart to `objects`. The first `skipped` of args are
  /// not looked at: the caller knows them.
  bool match_call(PyObject* const* args, size_t count, PyObject* keywords, size_t skipped, std::vector<Value>& leaves,
                  std::vector<PyObject*>& objects) const;
  /// The tree of these leaves.
  nb::object fill_result(ArrayRef<Value> leaves) const;

 private:
  struct Node {
    enum class Kind : uint8_t { Leaf, Kept, Tuple, List, Dict, Object };
    Kind kind = Kind::Leaf;
    nb::object type, kept;  // of a leaf: the class that a tensor has to have, where one is asked for
    bool float_as_tensor = false;
    std::vector<nb::object> keys;
    std::vector<Node> children;
  };
  Node read(nb::handle spec, nb::handle kept, nb::handle leaves, size_t& leaf);
  /// What a call is compared with, and what was found in it.
  struct Found {
    std::vector<Value>& leaves;
    std::vector<PyObject*>& objects;
  };
  static bool match(const Node& node, PyObject* object, Found& found);
  static bool match_object(const Node& node, PyObject* object, Found& found);
  static nb::object build(const Node& node, const Value*& leaf);

  Node root_;
  nb::object spec_, kept_;
  bool usable_ = true, flat_ = false, keeps_types_ = true;
};

/// A leaf as graphs take it; false where it is none that C++ runs by itself (a tensor class of the user's, one with
/// a `__torch_function__`, a long int).
bool read_leaf(PyObject* object, Value& out);

}  // namespace umbra::python
