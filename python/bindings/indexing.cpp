// x[...] and x[...] = v: ints select, slices slice, None adds a dimension, tensors and masks gather or scatter.
#include <limits>
#include <optional>

#include "call.h"
#include "construct.h"
#include "functions.h"
#include "kernels/fits.h"
#include "numpy_arrays.h"
#include "ops/index/subscript.h"
#include "overridable.h"
#include "properties.h"
#include "tensor_type.h"
#include "umbra/capture/tracer.h"
#include "umbra/core/warning.h"
#include "umbra/jit/trace.h"
#include "umbra/transform/vmap.h"
#include "values.h"

namespace umbra::python {

namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = -(int64_t{1} << 62);  // that a SymInt holds; no tensor has as many elements

struct Slice {
  SymInt start = 0, stop = kToTheEnd;
  int64_t step = 1;
};

/// The tensor after ints, slices and None have been applied, and the tensors that index what is left.
struct Prepared {
  Tensor result;
  std::vector<Tensor> indices;  // by dimension of result, a mask counting as one; undefined where there is none
  bool any_index() const { return !indices.empty(); }
  void set_index(size_t dim, Tensor index) {
    if (indices.size() <= dim) indices.resize(dim + 1);
    indices[dim] = std::move(index);
  }
};

[[noreturn]] void fail_kind(PyObject* object) {
  fail<IndexError>(
      "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got ",
      short_type_name(Py_TYPE(object)), ")");
}

SymInt slice_bound(PyObject* object, SymInt none) {
  if (object == Py_None) return none;
  SymInt value;
  bool number = is_tensor(object) && tensor_of(object).dim() == 0 && is_integral(tensor_of(object).dtype(), false);
  if (number && active_mode(DispatchKey::PreProxy))  // as PyTorch's programs read it
    return call_value<"aten::item">(tensor_of(object)).to_scalar().to_sym_int();
  if (PyLong_Check(object)) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow > 0) return kToTheEnd;
    if (overflow == 0 && number >= kLeast) return number;
    warn(
        "Truncating the start/stop/step of slice. This is likely because of saved old models when the start/stop/step "
        "were larger.");
    return kLeast;
  }
  check<TypeError>(read_int(object, value), "slice indices must be integers or None or have an __index__ method");
  return value;
}

Slice read_slice(PyObject* object) {
  auto* s = reinterpret_cast<PySliceObject*>(object);
  Slice out;
  SymInt step = slice_bound(s->step, 1);
  out.step = step.guard_int();
  check<ValueError>(out.step != 0, "slice step cannot be zero");
  check<ValueError>(out.step > 0, "step must be greater than zero");
  out.start = slice_bound(s->start, 0);
  out.stop = slice_bound(s->stop, kToTheEnd);
  return out;
}

bool is_int_like(PyObject* object) {
  if (is_tensor(object) || PyBool_Check(object) || is_numpy_array(object)) return false;
  if (PyLong_Check(object) || is_sym_int(object)) return true;
  PyNumberMethods* number = Py_TYPE(object)->tp_as_number;
  return number && number->nb_index && !is_sym_bool(object);
}

/// What PyTorch asks of a size, by a call that has a name in graphs.
void note_question(const char* function, SymInt size, SymInt bound) {
  if (size.is_symbolic() && are_symbol_calls_noted()) note_symbol_call(function, {size, bound}, true);
}

Tensor select(const Tensor& t, int64_t dim, SymInt index, int64_t shown_dim) {
  indexing::check_index(t, dim, index, shown_dim);
  SymInt size = t.sym_sizes()[static_cast<size_t>(dim)];
  if (size.is_symbolic() && !index.is_symbolic() && are_symbol_calls_noted()) {
    note_question("operator.gt", size, -1 - index.value());
    note_question("operator.gt", size, index);
    note_symbol_call("operator.and_", {true, true}, true);
  }
  return call<"aten::select.int">(t, dim, index);
}

/// Reads an index for select(); what is too small for a SymInt is out of bounds of every tensor.
bool read_index(PyObject* item, const Tensor& t, int64_t dim, int64_t shown_dim, SymInt& out) {
  if (!is_int_like(item)) return false;
  int overflow = 0;
  int64_t number = PyLong_Check(item) ? PyLong_AsLongLongAndOverflow(item, &overflow) : 0;
  if (number < kLeast && t.dim() > 0) indexing::fail_bounds(number, shown_dim, t.sym_sizes()[static_cast<size_t>(dim)]);
  return read_int(item, out);
}

/// `beside_symbols`: another part of the index is symbolic, and the program is exported. There, and beside a symbolic
/// end, an end that is not given stays out, as PyTorch's graphs have it.
Tensor slice(const Tensor& t, int64_t dim, const Slice& s, bool beside_symbols = false) {
  check<IndexError>(t.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  bool from_start = (beside_symbols || s.stop.is_symbolic()) && s.start.same(0),
       to_end = (beside_symbols || s.start.is_symbolic()) && s.stop.same(kToTheEnd);
  std::optional<SymInt> start = s.start, stop = s.stop;
  if (from_start) start.reset();
  if (to_end) stop.reset();
  return call<"aten::slice.Tensor">(t, dim, start, stop, s.step);
}

bool is_whole(const Tensor& t, int64_t dim, const Slice& s) {
  if (!s.start.same(0)) return false;
  SymInt size = t.sym_sizes()[static_cast<size_t>(dim)];
  note_question("operator.le", size, s.stop);
  if (s.step != 1) return false;
  // As in PyTorch, `:` over a size without bounds stays in graphs.
  return s.stop.same(kToTheEnd) ? sym_le(size, s.stop).known_true() : known_equal(s.stop, size);
}

Tensor bool_index(const Tensor& like, bool value) {
  std::vector<int64_t> sizes = {value ? 1 : 0};
  Tensor index = call<"aten::empty.memory_format">(Value(sizes), DType::Int64, Layout::Strided, like.device());
  return value ? call<"aten::fill_.Scalar">(index, 0.0) : index;
}

/// Whether a sequence that is no tuple is meant as one: it holds something that indexes by itself. An array is data.
bool stands_for_tuple(PyObject* index) {
  constexpr Py_ssize_t kLongest = 32;  // longer ones are data
  if (PyTuple_Check(index) || is_tensor(index) || is_numpy_array(index) || !PySequence_Check(index)) return false;
  nb::object items = nb::steal(PySequence_Fast(index, ""));
  if (!items) {
    PyErr_Clear();
    return false;
  }
  Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
  if (count >= kLongest) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.ptr(), i);
    bool indexes =
        is_tensor(item) || PySequence_Check(item) || PySlice_Check(item) || item == Py_Ellipsis || item == Py_None;
    if (indexes) return true;
  }
  return false;
}

/// The index that a sequence of numbers is: masks stay what they are, everything else becomes integers.
Tensor index_from(PyObject* sequence) {
  if (PyUnicode_Check(sequence) || PyBytes_Check(sequence))
    fail<TypeError>("new(): invalid data type '", short_type_name(Py_TYPE(sequence)), "'");
  Tensor data = tensor_from_data(sequence);
  bool kept = data.dtype() == DType::Bool || data.dtype() == DType::UInt8;
  data = call<"aten::lift_fresh">(data);
  return kept || data.dtype() == DType::Int64 ? data : call<"aten::_to_copy">(data, DType::Int64);
}

/// How many dimensions of the tensor an index takes up.
int64_t dimensions_of(PyObject* item) {
  if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item)) return 0;
  if (!is_tensor(item)) return 1;
  const Tensor& t = tensor_of(item);
  if (t.dtype() == DType::Bool || t.dtype() == DType::UInt8) return t.dim();
  return 1;
}

/// Whether a number of an index is symbolic.
bool has_symbols(PyObject* const* items, size_t count) {
  return std::any_of(items, items + count, [](PyObject* item) {
    if (!PySlice_Check(item)) return is_sym_int(item);
    auto* s = reinterpret_cast<PySliceObject*>(item);
    return is_sym_int(s->start) || is_sym_int(s->stop) || is_sym_int(s->step);
  });
}

/// Applies the items of an index one after the other.
class Applier {
 public:
  explicit Applier(const Tensor& self, bool beside_symbols = false) : self_(self), beside_symbols_(beside_symbols) {
    out_.result = self;
  }

  Prepared apply(PyObject* const* items, size_t count) {
    int64_t specified = 0;
    for (size_t i = 0; i < count; ++i) specified += dimensions_of(items[i]);
    check<IndexError>(specified <= self_.dim(), "too many indices for tensor of dimension ", self_.dim());
    for (size_t i = 0; i < count; ++i) one(items[i], specified, static_cast<int64_t>(i));
    return std::move(out_);
  }

 private:
  void one(PyObject* item, int64_t specified, int64_t position) {
    SymInt integer;
    if (is_tensor(item)) return tensor(tensor_of(item), position);
    if (PyBool_Check(item)) return boolean(item == Py_True);
    if (read_index(item, out_.result, dim_, position, integer)) {
      out_.result = select(out_.result, dim_, integer, position);
    } else if (PySlice_Check(item)) {
      Slice s = read_slice(item);
      bool colon = s.start.same(0) && s.stop.same(kToTheEnd) && s.step == 1;
      if (!(beside_symbols_ && colon) && (!skip_whole_ || !is_whole(out_.result, dim_, s)))
        out_.result = slice(out_.result, dim_, s, beside_symbols_);
      ++dim_;
    } else if (item == Py_Ellipsis) {
      dim_ += self_.dim() - specified;
    } else if (item == Py_None) {
      out_.result = call<"aten::unsqueeze">(out_.result, dim_);
      ++dim_;
    } else if (PySequence_Check(item)) {
      tensor(index_from(item), position);
    } else {
      fail_kind(item);
    }
  }

  void boolean(bool value) {
    out_.result = call<"aten::unsqueeze">(out_.result, dim_);
    out_.set_index(static_cast<size_t>(dim_ - covered_), bool_index(out_.result, value));
    ++dim_;
  }

  void tensor(const Tensor& index, int64_t position) {
    // A number that differs from one element of a batch to the next cannot be read: it is an index like any other.
    if (index.dim() == 0 && is_integral(index.dtype(), true) && !transform::is_batched_inside(index)) {
      jit::Trace* trace = jit::active_trace();
      bool is_number = index.dtype() != DType::Bool && index.dtype() != DType::UInt8;
      if (trace && trace->on && is_number) {
        out_.result = select(out_.result, dim_, trace->integer(index), position);
        return;
      }
      Scalar value = call_value<"aten::item">(index).to_scalar();
      if (!is_number) return boolean(value.to_bool());
      if (value.kind() == Scalar::Kind::Int && value.to_int() < kLeast && dim_ < out_.result.dim())
        indexing::fail_bounds(value.to_int(), position, out_.result.sym_sizes()[static_cast<size_t>(dim_)]);
      out_.result = select(out_.result, dim_, value.to_sym_int(), position);
      return;
    }
    out_.set_index(static_cast<size_t>(dim_ - covered_), index);
    // A mask stands for as many dimensions as it has, in one place of the list.
    bool mask = index.dtype() == DType::Bool || index.dtype() == DType::UInt8;
    dim_ += mask ? index.dim() : 1;
    covered_ += mask ? index.dim() - 1 : 0;
  }

  const Tensor& self_;
  const bool beside_symbols_;
  Prepared out_;
  int64_t dim_ = 0, covered_ = 0;
  /// `x[:]` is x; a trace has it as it was written.
  const bool skip_whole_ = !jit::active_trace() || !jit::active_trace()->on;
};

Value index_list(const std::vector<Tensor>& indices) { return Value(std::vector<Tensor>(indices)); }

/// The items of an index: those of a tuple, or the one that is given.
struct Items {
  explicit Items(PyObject*& index) {
    if (stands_for_tuple(index)) {
      warn(
          "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; ",
          "use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, ",
          "x[torch.tensor(seq)], which will result either in an error or a different result");
      tuple = owned(PySequence_Tuple(index));
    }
    PyObject* items = tuple ? tuple.ptr() : index;
    if (PyTuple_Check(items)) {
      data = &PyTuple_GET_ITEM(items, 0);
      count = static_cast<size_t>(PyTuple_GET_SIZE(items));
    } else {
      data = &index;
      count = 1;
    }
  }
  PyObject* const* data;
  size_t count;
  nb::object tuple;  // made of another sequence
};

Tensor get(const Tensor& self, PyObject* index) {
  SymInt integer;
  if (index == Py_None) return call<"aten::unsqueeze">(self, int64_t{0});
  if (index == Py_Ellipsis) return call<"aten::alias">(self);
  if (read_index(index, self, 0, 0, integer)) return select(self, 0, integer, 0);
  if (PySlice_Check(index)) return slice(self, 0, read_slice(index));
  Items items(index);
  bool beside_symbols = active_mode(DispatchKey::PreProxy) && has_symbols(items.data, items.count);
  Prepared prepared = Applier(self, beside_symbols).apply(items.data, items.count);
  if (prepared.any_index()) return call<"aten::index.Tensor">(prepared.result, index_list(prepared.indices));
  return prepared.result.is_same(self) ? call<"aten::alias">(self) : prepared.result;
}

// ---- assignment ----

void copy_to(const Tensor& to, const Tensor& from) {
  if (to.sym_sizes() == from.sym_sizes()) return void(call<"aten::copy_">(to, from));
  if (from.dim() == 0) return void(call<"aten::fill_.Tensor">(to, from));
  // Leading dimensions of size one do not count.
  SymIntArrayRef sizes = from.sym_sizes();
  while (!sizes.empty() && sizes[0] == 1) sizes = sizes.drop_front();
  Tensor source = call<"aten::view">(from, Value(sizes.vec()));
  source = call<"aten::expand">(source, Value(to.sym_sizes().vec()));
  call<"aten::copy_">(to, source);
}

/// Values to be written: a tensor, or a number of the tensor's dtype.
struct Assigned {
  Tensor tensor;
  std::optional<Scalar> number;
};

Assigned read_assigned(const Tensor& self, PyObject* value) {
  if (is_tensor(value)) return {tensor_of(value), std::nullopt};
  Scalar number;
  if (PyLong_Check(value) && !PyBool_Check(value) && self.dtype() == DType::UInt64) {
    uint64_t whole = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) throw nb::python_error();
    return {{}, Scalar(whole)};
  }
  if (PyLong_Check(value)) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(value, &overflow);
    check<ValueError>(!overflow, "Overflow when unpacking long long");
  }
  // Of NumPy's numbers torch assigns integers, and those that are Python's floats and complex numbers too.
  bool kind = PyLong_Check(value) || PyFloat_Check(value) || PyComplex_Check(value) || is_int_like(value) ||
              is_sym_int(value) || is_sym_float(value) || is_sym_bool(value);
  if (kind && read_scalar(value, number))
    return {{}, number.kind() == Scalar::Kind::Bool ? Scalar(number.to_int()) : number};
  fail<TypeError>("can't assign a ", short_type_name(Py_TYPE(value)), " to a torch.", kernel_name(self.dtype()),
                  "Tensor");
}

/// The index of a tensor that is written through one index alone.
struct OnlyIndex {
  explicit OnlyIndex(const std::vector<Tensor>& indices) {
    for (size_t i = 0; i < indices.size(); ++i)
      if (indices[i].defined()) ++count, dim = i;
  }
  size_t count = 0, dim = 0;
};

bool covers(const Tensor& mask, const Tensor& target, size_t dim) {
  SymIntArrayRef sizes = target.sym_sizes();
  for (size_t d = 0; d < static_cast<size_t>(mask.dim()); ++d)
    if (dim + d >= sizes.size() || mask.sym_sizes()[d] != sizes[dim + d]) return false;
  return true;
}

/// Fills what one mask or one tensor of positions picks with a number; false where only index_put_ can.
bool fill_indexed(const Tensor& target, Tensor index, size_t dim, const Scalar& number) {
  bool mask = index.dtype() == DType::Bool || index.dtype() == DType::UInt8;
  if (mask && covers(index, target, dim)) {
    size_t behind = static_cast<size_t>(target.dim() - index.dim()) - dim;
    for (size_t i = 0; i < behind; ++i) index = call<"aten::unsqueeze">(index, int64_t{-1});
    call<"aten::masked_fill_.Scalar">(target, index, number);
    return true;
  }
  if (index.dtype() != DType::Int64) return false;
  if (index.dim() != 1) index = call<"aten::reshape">(index, Value(std::vector<int64_t>{-1}));
  call<"aten::index_fill_.int_Scalar">(target, static_cast<int64_t>(dim), index, number);
  return true;
}

void assign_indexed(const Prepared& prepared, const Assigned& value, PyObject* object) {
  const Tensor& target = prepared.result;
  OnlyIndex only(prepared.indices);
  if (value.number && only.count == 1 && fill_indexed(target, prepared.indices[only.dim], only.dim, *value.number))
    return;
  Tensor source = value.tensor;
  if (source.defined()) {  // leading dimensions of size one do not count
    SymIntArrayRef sizes = source.sym_sizes();
    while (!sizes.empty() && known_equal(sizes[0], 1)) sizes = sizes.drop_front();
    if (sizes.size() != source.sym_sizes().size()) source = call<"aten::view">(source, Value(sizes.vec()));
  } else if (value.number->is_symbolic()) {
    source = call<"aten::scalar_tensor">(*value.number, target.dtype(), Value(), target.device());
  } else {
    if (value.number->is_complex()) kernels::check_fits(*value.number, target.dtype());
    source = call<"aten::lift_fresh">(tensor_from_data(object, target.dtype()));
  }
  call<"aten::index_put_">(target, index_list(prepared.indices), source);
}

void set(const Tensor& self, PyObject* index, PyObject* object) {
  Assigned value = read_assigned(self, object);
  auto store = [&](const Tensor& to) {
    if (value.number) call<"aten::fill_.Scalar">(to, *value.number);
    else copy_to(to, value.tensor);
  };
  if (index == Py_False) return;
  if (index == Py_True) return store(call<"aten::unsqueeze">(self, int64_t{0}));
  if (index == Py_Ellipsis) return store(self);
  if (self.dim() == 0 && (PySlice_Check(index) || is_int_like(index))) get(self, index);  // refuses it
  Items items(index);
  Prepared prepared = Applier(self).apply(items.data, items.count);
  if (prepared.any_index()) return assign_indexed(prepared, value, object);
  store(prepared.result);
}

// ---- slots ----

/// Whether a user's class may want an access because of an operand: a tensor class, or a class that only has a handler.
bool of_user(PyObject* object) {
  if (PyLong_Check(object) || PySlice_Check(object) || PyFloat_Check(object) || object == Py_None) return false;
  if (is_tensor(object)) return !is_plain_tensor_type(Py_TYPE(object));
  return !PyTuple_Check(object) && !PyList_Check(object) && class_has_torch_function(Py_TYPE(object));
}
/// Whether one may want it: the tensor's, or that of something in the index.
bool wants_offer(PyObject* self, PyObject* index) {
  if (may_be_overridden(self) || of_user(index)) return true;
  if (!PyTuple_Check(index) && !PyList_Check(index)) return false;
  PyObject* const* items = PySequence_Fast_ITEMS(index);
  return std::any_of(items, items + PySequence_Fast_GET_SIZE(index), of_user);
}

PyObject* subscript(PyObject* self, PyObject* index) {
  PyObject* values[] = {self, index};
  PyObject* result = nullptr;
  if (wants_offer(self, index) && offer_member("__getitem__", values, 2, nullptr, &result)) return result;
  return guarded([&] { return wrap(get(tensor_of(self), index)); });
}
int assign(PyObject* self, PyObject* index, PyObject* value) {
  PyObject* values[] = {self, index, value};
  PyObject* result = nullptr;
  if (value && (wants_offer(self, index) || of_user(value)) &&
      offer_member("__setitem__", values, 3, nullptr, &result)) {
    Py_XDECREF(result);
    return result ? 0 : -1;
  }
  return guarded_int([&] {
    check<TypeError>(value != nullptr, "Tensor does not support deleting items");
    check<TypeError>(!tensor_of(self).keys().has(DispatchKey::Sparse), "Cannot assign to a sparse tensor");
    set(tensor_of(self), index, value);
    return 0;
  });
}

Py_ssize_t length(PyObject* self) {
  try {
    const Tensor& t = tensor_of(self);
    check<TypeError>(t.dim() > 0, "len() of a 0-d tensor");
    if (jit::active_trace() && jit::active_trace()->on)
      jit::trace_warning(
          "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would be "
          "tensor.shape[0]. Passing a tensor of different shape might lead to errors or silently give incorrect "
          "results.");
    return static_cast<Py_ssize_t>(t.size(0));
  } catch (...) {
    raise_current();
    return -1;
  }
}

PyObject* iterate(PyObject* self) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    check<TypeError>(t.dim() > 0, "iteration over a 0-d tensor");
    if (jit::active_trace() && jit::active_trace()->on)
      jit::trace_warning(
          "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different shape won't "
          "change the number of iterations executed (and might lead to errors or silently give incorrect results).");
    static PyObject* unbind =
        make_function("aten::unbind", Reading::Method, "unbind");  // of which a user's class hears
    nb::object parts = owned(call_function(unbind, &self, 1, nullptr));
    return checked(PyObject_GetIter(parts.ptr()));
  });
}

int contains(PyObject* self, PyObject* element) {
  return guarded_int([&]() -> int {
    Scalar number;
    if (!is_tensor(element) && !read_scalar(element, number))
      fail("Tensor.__contains__ only supports Tensor or scalar, but you passed in a ",
           repr_of(reinterpret_cast<PyObject*>(Py_TYPE(element))), ".");
    nb::object equal = owned(PyObject_RichCompare(self, element, Py_EQ));
    return call_value<"aten::item">(call<"aten::any">(tensor_of(equal.ptr()))).to_bool();
  });
}

}  // namespace

void add_index_slots(std::vector<PyType_Slot>& slots) {
  std::initializer_list<PyType_Slot> own = {
      slot(Py_mp_length, integer_slot<"__len__", length>),
      slot(Py_mp_subscript, subscript),
      slot(Py_mp_ass_subscript, assign),
      slot(Py_tp_iter, iterate),
      slot(Py_sq_contains, integer_slot<"__contains__", contains, PyObject*>),
  };
  slots.insert(slots.end(), own);
}

}  // namespace umbra::python
