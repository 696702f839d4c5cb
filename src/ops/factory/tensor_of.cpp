#include "umbra/ops/tensor_of.h"

#include <algorithm>
#include <cstring>

#include "kernels/copy.h"
#include "umbra/core/value.h"
#include "umbra/generated/functions.h"

namespace umbra::detail {

Literal::Literal(std::initializer_list<Literal> items) : items_(items), is_list_(true) {}
Literal::Literal(const Literal& other) = default;
Literal::~Literal() = default;

Tensor tensor_of(const void* values, size_t count, DType stored, DType wanted, IntArrayRef sizes) {
  SymShape shape(as_sym(sizes));
  if (sizes.empty()) shape.push_back(count);
  check<ValueError>(product(shape) == SymInt(count), count, " values do not make a tensor of sizes ", to_string(shape));
  // Made below all modes, then handed to them: a fake mode or a capture takes it for the constant that it is.
  Tensor made = allocate_tensor(shape, contiguous_strides(shape), stored, Device());
  if (count > 0) std::memcpy(made.raw_data(), values, count * static_cast<size_t>(item_size(stored)));
  Tensor lifted = lift_fresh(made);
  return stored == wanted ? lifted : lifted.to(wanted);
}

}  // namespace umbra::detail

namespace umbra {

namespace {

using detail::Literal;

/// The numbers of nested lists in one row, and the sizes they agree on.
class Collected {
 public:
  explicit Collected(const Literal& values) {
    for (const Literal* level = &values; level->is_list(); level = level->items().data()) {
      sizes.push_back(level->items().size());
      if (level->items().empty()) break;
    }
    collect(values, 0);
  }
  std::vector<SymInt> sizes;
  std::vector<Scalar> numbers;

  /// The type that holds all of them: bool below integers below floats below complex numbers.
  DType dtype() const {
    bool integral = false, floating = false, complex = false;
    for (const Scalar& number : numbers) {
      integral |= number.is_integral(false);
      floating |= number.is_floating();
      complex |= number.is_complex();
    }
    if (complex) return complex_type(default_dtype());
    return floating || numbers.empty() ? default_dtype() : integral ? DType::Int64 : DType::Bool;
  }

 private:
  void collect(const Literal& values, size_t dim) {
    check<ValueError>(values.is_list() == (dim < sizes.size()),
                      "tensor(): lists and numbers do not stand side by side");
    if (!values.is_list()) return numbers.push_back(values.number());
    size_t count = values.items().size();
    check<ValueError>(SymInt(count) == sizes[dim], "expected sequence of length ", sizes[dim], " at dim ", dim,
                      " (got ", count, ")");
    for (const Literal& item : values.items()) collect(item, dim + 1);
  }
};

Tensor over_memory(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void()> release,
                   const TensorOptions& options) {
  check<NotImplementedError>(options.device.value_or(Device()).type == DeviceType::CPU,
                             "from_blob: memory of another device than the CPU");
  check<NotImplementedError>(options.layout.value_or(Layout::Strided) == Layout::Strided && !options.pin_memory,
                             "from_blob: a layout other than strided, or pinned memory");
  check<ValueError>(sizes.size() == strides.size(), "from_blob: ", sizes.size(), " sizes and ", strides.size(),
                    " strides");
  bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  check<ValueError>(data || empty, "from_blob: a null pointer for a tensor of size ", sizes);
  Tensor made = from_memory(data, sizes, strides, options.dtype.value_or(default_dtype()), std::move(release));
  if (options.requires_grad) made.requires_grad_();
  return made;
}

std::vector<int64_t> row_major(IntArrayRef sizes) { return guard_ints(contiguous_strides(as_sym(sizes))); }

}  // namespace

Tensor tensor(const Literal& values, const TensorOptions& options) {
  Collected collected(values);
  DType dtype = options.dtype.value_or(collected.dtype());
  Tensor made = allocate_tensor(collected.sizes, contiguous_strides(collected.sizes), dtype, Device());
  auto* element = static_cast<char*>(made.raw_data());
  for (const Scalar& number : collected.numbers) {
    kernels::write_element(element, dtype, number);
    element += item_size(dtype);
  }
  Tensor result = lift_fresh(made);
  if (options.device) result = result.to(*options.device);
  if (options.requires_grad) result.requires_grad_();
  return result;
}

Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return over_memory(data, sizes, row_major(sizes), {}, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return over_memory(data, sizes, strides, {}, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> release, const TensorOptions& options) {
  return from_blob(data, sizes, row_major(sizes), std::move(release), options);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void(void*)> release,
                 const TensorOptions& options) {
  return over_memory(
      data, sizes, strides,
      [data, release] {
        if (release) release(data);
      },
      options);
}

}  // namespace umbra
