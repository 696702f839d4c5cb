#include "ops/sparse/arithmetic.h"

#include "dispatch/data_dependent.h"
#include "ops/common/promotion.h"
#include "ops/sparse/parts.h"
#include "umbra/ops/tensor_of.h"

namespace umbra::ops::sparse {
namespace {

DType promoted(const Tensor& a, const Tensor& b) { return ResultType().add(a).add(b).get(); }
Tensor in_type(const Tensor& values, DType dtype) { return values.dtype() == dtype ? values : values.to(dtype); }

// ---- sums ----

void check_same_sizes(const Tensor& self, const Tensor& other) {
  check(self.sizes() == other.sizes(), "add: expected sizes of 'self' and 'other' to match, but ",
        to_string(self.sizes()), " != ", to_string(other.sizes()));
}

/// Where each element of two COO tensors goes in their sum: the elements of both in one walk, as if both were in order.
struct Merge {
  std::vector<int64_t> from_left, from_right;  // the place of each element
  std::vector<int64_t> places;                 // the flat position at each place
};

Merge merge(const Tensor& left, const Tensor& right) {
  Tensor a = left.contiguous(), b = right.contiguous();
  const int64_t *x = a.data<int64_t>(), *y = b.data<int64_t>();
  int64_t i = 0, j = 0, n = a.numel(), m = b.numel();
  Merge out;
  while (i < n || j < m) {
    bool take_left = j >= m || (i < n && x[i] <= y[j]), take_right = i >= n || (j < m && y[j] <= x[i]);
    int64_t place = static_cast<int64_t>(out.places.size());
    out.places.push_back(take_left ? x[i] : y[j]);
    if (take_left) out.from_left.push_back(place), ++i;
    if (take_right) out.from_right.push_back(place), ++j;
  }
  return out;
}

/// Row-major positions taken apart into one row of indices for each dimension.
Tensor indices_of(Tensor positions, IntArrayRef sizes) {
  std::vector<Tensor> rows(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    Scalar size(std::max<int64_t>(sizes[d], 1));
    rows[d] = positions.remainder(size);
    positions = positions.floor_divide(size);
  }
  return rows.empty() ? zeros({0, positions.numel()}, {.dtype = DType::Int64}) : stack(rows, 0);
}

Tensor add_coo(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_same_sizes(self, other);
  if (!self.is_fake() && (element_count(self) == 0 || element_count(other) == 0)) {  // any number of sparse dimensions
    bool left = element_count(other) == 0;
    Tensor values = in_type(sparse_parts(left ? self : other).values, promoted(self, other));
    return with_values(left ? self : other, left ? values.clone() : values.mul(alpha));
  }
  int64_t sparse_dim = sparse_dims(self);
  check(sparse_dim == sparse_dims(other), "add: expected 'self' and 'other' to have same number of sparse dimensions, ",
        "but 'self' has ", sparse_dim, " sparse dimensions while 'other' has ", sparse_dims(other),
        " sparse dimensions");
  DType dtype = promoted(self, other);
  Tensor left = in_type(sparse_parts(self).values, dtype),
         right = in_type(sparse_parts(other).values, dtype).mul(alpha);
  // PyTorch puts values that do not lie in one piece one after the other; so the elements are those that it has.
  if (!sparse_parts(self).values.is_contiguous() || !sparse_parts(other).values.is_contiguous())
    return make_coo(cat({sparse_parts(self).indices, sparse_parts(other).indices}, 1), cat({left, right}, 0),
                    self.sym_sizes());
  bool ordered = sparse_parts(self).coalesced && sparse_parts(other).coalesced;
  if (self.is_fake()) {  // places that both have are one
    SymShape sizes(left.sym_sizes());
    sizes[0] = unknown_size("aten::add", left.sym_size(0) + right.sym_size(0));
    TensorOptions integers{.dtype = DType::Int64, .device = self.device()};
    return make_coo(empty({sparse_dim, sizes[0]}, integers), empty(sizes, {.dtype = dtype, .device = self.device()}),
                    self.sym_sizes(), ordered);
  }
  Merge merged = merge(flat_positions(self), flat_positions(other));
  SymShape sizes(left.sym_sizes());
  sizes[0] = static_cast<int64_t>(merged.places.size());
  Tensor values = zeros(sizes, {.dtype = dtype, .device = self.device()});
  values = values.index_add(0, tensor(merged.from_left), left).index_add(0, tensor(merged.from_right), right);
  Tensor indices = indices_of(tensor(merged.places), self.sizes().slice(0, static_cast<size_t>(sparse_dim)));
  return make_coo(indices, values, self.sym_sizes(), ordered);
}

/// Whether two compressed tensors have their places in the same memory.
bool share_places(const Tensor& self, const Tensor& other) {
  const SparseParts &a = sparse_parts(self), &b = sparse_parts(other);
  auto same = [](const Tensor& x, const Tensor& y) {
    return x.storage() == y.storage() && x.storage_offset() == y.storage_offset() && x.sizes() == y.sizes() &&
           x.strides() == y.strides();
  };
  return self.layout() == other.layout() && self.sizes() == other.sizes() && same(a.indices, b.indices) &&
         same(a.compressed, b.compressed);
}

Tensor add_compressed(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (share_places(self, other))
    return with_values(self, sparse_parts(self).values.add(sparse_parts(other).values, alpha));
  check(self.layout() == other.layout() && self.layout() == Layout::SparseCsr,
        "crow_indices expected sparse row compressed tensor layout but got ",
        short_name(self.layout() == Layout::SparseCsr ? other.layout() : self.layout()));
  check(self.sizes() == other.sizes(),
        "torch.add: Expected input tensors to have the same shape, but got tensor `self` ", "with shape ",
        to_string(self.sizes()), " and tensor `other` with shape ", to_string(other.sizes()));
  return with_index_type_of(as_compressed(add_coo(as_coo(self), as_coo(other), alpha), Layout::SparseCsr), self);
}

void check_no_broadcast(const Tensor& dense, const Tensor& sparse) {
  check(dense.sizes() == sparse.sizes(), "add: expected 'self' and 'other' to have same size, but self has size ",
        to_string(dense.sizes()), " while other has size ", to_string(sparse.sizes()),
        " (FYI: ", is_coo(sparse) ? "dense" : "op2", "-sparse addition does not currently support broadcasting)");
}

/// Adds the elements of a sparse tensor to a contiguous one.
void add_elements(const Tensor& to, const Tensor& sparse, const Scalar& alpha) {
  Tensor elements = is_coo(sparse) ? sparse : as_coo(sparse);
  Tensor values = in_type(sparse_parts(elements).values, to.dtype());
  SymShape flat{-1};
  for (int64_t d = sparse_dims(elements); d < to.dim(); ++d) flat.push_back(to.sym_sizes()[d]);
  if (to.numel() > 0) to.view(flat).index_add_(0, flat_positions(elements), values, alpha);
}

Tensor add_to_strided(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_no_broadcast(self, other);
  Tensor out = self.to(promoted(self, other), false, true, MemoryFormat::Contiguous);
  add_elements(out, other, alpha);
  return out;
}

constexpr const char* kSparsePlusDense = "add(sparse, dense) is not supported. Use add(dense, sparse) instead.";

}  // namespace

Tensor add_tensors(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (is_strided(self)) return add_to_strided(self, other, alpha);
  check(!is_coo(self) || !is_strided(other), kSparsePlusDense);
  // PyTorch exchanges the two and scales the compressed one; blocks it refuses.
  if (is_strided(other))
    return in_blocks(self.layout()) ? add_to_strided(other.mul(alpha), self, 1) : add_to_strided(other, self, alpha);
  if (is_coo(self) && is_coo(other)) return add_coo(self, other, alpha);
  return add_compressed(self, other, alpha);
}

Tensor add_in_place(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  DType dtype = promoted(self, other);
  check(can_cast(dtype, self.dtype()), "Can't convert result type ", kernel_name(dtype), " to output ",
        kernel_name(self.dtype()), " in add operation");
  if (is_strided(self)) {
    check_no_broadcast(self, other);
    if (self.is_contiguous() && self.dtype() == dtype) add_elements(self, other, alpha);
    else self.copy_(add_to_strided(self, other, alpha));
    return self;
  }
  Tensor sum = add_tensors(self, other, alpha);
  check(sum.layout() == self.layout(), kSparsePlusDense);
  SparseParts parts = sparse_parts(sum);
  parts.values = in_type(parts.values, self.dtype());
  set_sparse(self, self.sym_sizes(), std::move(parts));
  return self;
}

Tensor subtract_tensors(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check(!is_compressed(self.layout()) && !is_compressed(other.layout()),
        "unsupported tensor layout: ", short_name(is_compressed(self.layout()) ? self.layout() : other.layout()));
  return add_tensors(self, other, -alpha);
}

Tensor refuse_number(const Tensor& self, const Scalar&, const Scalar&) {
  if (is_coo(self)) fail(kSparsePlusDense);
  fail("add: expected 'self' and 'other' to have same size, but self has size [] while other has size ",
       to_string(self.sizes()), " (FYI: op2-sparse addition does not currently support broadcasting)");
}

// ---- products ----

namespace {

/// A product of two COO tensors has the places that both have. Where one is not in order its places are kept, zeros
/// too.
Tensor multiply_coo(Tensor self, Tensor other) {
  for (bool swap : {false, true}) {  // a tensor without dimensions is a number
    const Tensor &number = swap ? self : other, &elements = swap ? other : self;
    if (number.dim() == 0 && elements.dim() > 0) return multiply_tensors(elements, strided(number));
  }
  auto outer = [](const Tensor& coo) { return coo.sizes().slice(0, static_cast<size_t>(sparse_dims(coo))); };
  check(self.dim() == other.dim() && outer(self) == outer(other),
        "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of sparse ",
        "dimensions, and shape of sparse dimensions");
  bool left_ordered = sparse_parts(self).coalesced, right_ordered = sparse_parts(other).coalesced;
  bool keep_right = left_ordered == right_ordered ? element_count(other) < element_count(self) : left_ordered;
  if (keep_right) std::swap(self, other);
  DType dtype = promoted(self, other);
  Tensor among = coalesced(other);
  Places places = find(flat_positions(among), flat_positions(self));
  Tensor values =
      in_type(sparse_parts(self).values, dtype).mul(values_at(in_type(sparse_parts(among).values, dtype), places));
  SymShape sizes(self.sym_sizes());  // dense dimensions may have been expanded
  for (int64_t d = 1; d < values.dim(); ++d) sizes[sparse_dims(self) + d - 1] = values.size(d);
  if (!sparse_parts(self).coalesced) return make_coo(sparse_parts(self).indices, values, sizes);
  Tensor both = places.found.nonzero().reshape({-1});
  return make_coo(sparse_parts(self).indices.index_select(1, both), values.index_select(0, both), sizes, true);
}

/// A COO tensor repeated along new first dimensions.
Tensor repeated(const Tensor& coo, IntArrayRef first) {
  const SparseParts& parts = sparse_parts(coo);
  int64_t copies = 1, count = element_count(coo);
  for (int64_t size : first) copies *= size;
  Tensor copy = counting(copies, parts.indices).repeat_interleave(count);
  Tensor indices = cat({indices_of(copy, first), parts.indices.repeat({1, copies})}, 0);
  std::vector<int64_t> times(static_cast<size_t>(parts.values.dim()), 1);
  times[0] = copies;
  SymShape sizes(as_sym(first));
  for (SymInt size : coo.sym_sizes()) sizes.push_back(size);
  return make_coo(indices, parts.values.repeat(as_sym(times)), sizes, parts.coalesced);
}

/// The elements of a strided tensor, expanded to the sparse one's sizes, at the sparse one's places.
Tensor elements_at(const Tensor& dense, const Tensor& coo) {
  int64_t sparse_dim = sparse_dims(coo);
  Tensor whole = dense.expand(coo.sym_sizes());
  if (sparse_dim == 0) return whole.unsqueeze(0);
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < sparse_dim; ++d) rows.push_back(sparse_parts(coo).indices.select(0, d));
  return index(whole, rows);
}

void check_keeps_sizes(const Tensor& sparse, const Tensor& dense) {
  size_t rank = sparse.sizes().size();
  for (size_t d = 0; d < std::min(rank, dense.sizes().size()); ++d) {
    int64_t a = dense.sizes()[dense.sizes().size() - 1 - d], b = sparse.sizes()[rank - 1 - d];
    check(a == b || a == 1 || b == 1, "The size of tensor a (", a, ") must match the size of tensor b (", b,
          ") at non-singleton dimension ", rank - 1 - d);
    check<NotImplementedError>(a == b || a == 1, "a sparse tensor of sizes ", to_string(sparse.sizes()),
                               " that is expanded by one of ", to_string(dense.sizes()), " is not in Umbra yet");
  }
  check<NotImplementedError>(dense.dim() <= sparse.dim(), "a sparse tensor of sizes ", to_string(sparse.sizes()),
                             " that is expanded by one of ", to_string(dense.sizes()), " is not in Umbra yet");
}

Tensor multiply_by_strided(const Tensor& sparse, const Tensor& dense) {
  if (dense.dim() == 0) return with_values(sparse, sparse_parts(sparse).values.mul(dense));
  if (is_coo(sparse) && dense.dim() > sparse.dim()) {
    require_data(sparse, "a product with a tensor of more dimensions");
    IntArrayRef first = dense.sizes().slice(0, static_cast<size_t>(dense.dim() - sparse.dim()));
    return multiply_by_strided(repeated(sparse, first), dense);
  }
  check_keeps_sizes(sparse, dense);
  DType dtype = promoted(sparse, dense);
  if (is_coo(sparse))
    return with_values(sparse,
                       in_type(sparse_parts(sparse).values, dtype).mul(in_type(elements_at(dense, sparse), dtype)));
  check<NotImplementedError>(!in_blocks(sparse.layout()), "blocks times a strided tensor are not in Umbra yet");
  Tensor elements = as_coo(sparse);
  Tensor values = in_type(sparse_parts(elements).values, dtype).mul(in_type(elements_at(dense, elements), dtype));
  return with_index_type_of(as_compressed(with_values(elements, values), sparse.layout()), sparse);
}

}  // namespace

Tensor multiply_tensors(const Tensor& self, const Tensor& other) {
  if (is_strided(other)) return multiply_by_strided(self, other);
  if (is_strided(self)) return multiply_by_strided(other, self);
  if (is_coo(self) && is_coo(other)) return multiply_coo(self, other);
  check<NotImplementedError>(!in_blocks(self.layout()) && !in_blocks(other.layout()),
                             "products of blocks element by element are not in Umbra yet");
  Layout layout = is_coo(self) ? other.layout() : self.layout();
  return with_index_type_of(as_compressed(multiply_coo(as_coo(self), as_coo(other)), layout),
                            is_coo(self) ? other : self);
}

Tensor multiply_in_place(const Tensor& self, const Tensor& other) {
  Tensor product = multiply_tensors(self, other);
  check(product.sizes() == self.sizes(), "output with shape ", to_string(self.sizes()),
        " doesn't match the broadcast shape ", to_string(product.sizes()));
  check(can_cast(product.dtype(), self.dtype()), "result type ", kernel_name(product.dtype()),
        " can't be cast to the desired output type ", kernel_name(self.dtype()));
  if (is_strided(self)) return self.copy_(strided(product));
  check(product.layout() == self.layout(), "mul_: a product of layout ", to_string(product.layout()),
        " does not fit a tensor of layout ", to_string(self.layout()));
  SparseParts parts = sparse_parts(product);
  parts.values = in_type(parts.values, self.dtype());
  if (is_strided(other)) parts.coalesced = parts.values.size(0) < 2;  // as in PyTorch, which does not look
  set_sparse(self, self.sym_sizes(), std::move(parts));
  return self;
}

Tensor multiply_by_number(const Tensor& self, const Scalar& other) {
  return with_values(self, sparse_parts(self).values.mul(other));
}

// ---- quotients and powers ----

namespace {
void check_dividend(const Tensor& self) {
  check(is_coo(self), "unsupported tensor layout: ", short_name(self.layout()));
}
}  // namespace

Tensor divide_tensors(const Tensor& self, const Tensor& other) {
  check(is_strided(other) && other.dim() == 0,
        "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape ", to_string(other.sizes()),
        " for divisor)");
  check_dividend(self);
  return with_values(self, sparse_parts(self).values.div(other));
}

Tensor divide_by_number(const Tensor& self, const Scalar& other) {
  check_dividend(self);
  return with_values(self, sparse_parts(self).values.div(other));
}

Tensor divide_rounded(const Tensor& self, const Tensor& other, const std::optional<std::string>& mode) {
  if (!mode || !is_coo(self)) return divide_tensors(self, other);
  check(is_strided(other) && other.dim() == 0,
        "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape ", to_string(other.sizes()),
        " for divisor)");
  Tensor elements = coalesced(self);
  return with_values(elements, sparse_parts(elements).values.div(other, mode));
}

Tensor raise_to(const Tensor& self, const Scalar& exponent) {
  check(is_coo(self), "unsupported tensor layout: ", short_name(self.layout()));
  check(exponent.to_complex() != std::complex<double>(0),
        "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense");
  Tensor elements = coalesced(self);
  return with_values(elements, sparse_parts(elements).values.pow(exponent));
}

// ---- operators of each element ----

namespace {

/// Calls the operator on the values of the tensor in the frame.
Tensor call_on_values(const Operator& op, const Tensor& elements, const Value* frame) {
  Frame arguments(op, frame);
  arguments[0] = Value(sparse_parts(elements).values);
  op.call(arguments.data());
  return with_values(elements, arguments[0].tensor());
}

}  // namespace

namespace {

struct ValuesRule {
  const Operator* op;
  bool any_order;

  static void run(const void* context, Value* frame) {
    const auto& rule = *static_cast<const ValuesRule*>(context);
    Tensor self = frame[0].tensor();
    frame[0] = Value(call_on_values(*rule.op, is_coo(self) && !rule.any_order ? coalesced(self) : self, frame));
  }
  static void run_in_place(const void* context, Value* frame) {
    const auto& rule = *static_cast<const ValuesRule*>(context);
    Tensor self = frame[0].tensor();
    check(!is_coo(self) || rule.any_order || sparse_parts(self).coalesced, rule.op->inplace()->schema().name,
          " requires coalesced input");
    Tensor result = call_on_values(*rule.op, self, frame);
    check(result.dtype() == self.dtype(), "result type ", kernel_name(result.dtype()),
          " can't be cast to the desired output type ", kernel_name(self.dtype()));
    set_sparse(self, self.sym_sizes(), sparse_parts(result));
    frame[0] = Value(self);
  }
};

}  // namespace

void OnValues::operator()(OperatorBuilder& builder) const {
  const auto* rule = new ValuesRule{&builder.op(), linear};  // lives as long as the operator
  builder.definition().sparse = {ValuesRule::run, rule};
  if (!builder.op().inplace()) return;
  builder.on_inplace([rule](OperatorBuilder& variant) {
    variant.definition().sparse = {ValuesRule::run_in_place, rule};
  });
}

}  // namespace umbra::ops::sparse
