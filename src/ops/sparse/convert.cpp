// Strided tensors turned into sparse ones, and sparse ones into strided ones and into each other.
#include "dispatch/data_dependent.h"
#include "ops/common/factory_arguments.h"
#include "ops/common/needs_data.h"
#include "ops/sparse/parts.h"
#include "umbra/dispatch/define.h"

namespace umbra::ops {
namespace {

using namespace sparse;

using OptionalInt = std::optional<int64_t>;
using OptionalBlock = std::optional<SymIntArrayRef>;

/// A gradient in the layout of what it belongs to.
Tensor in_layout_of(const Tensor& grad, const Tensor& self) {
  if (is_strided(self)) return grad.to_dense();
  if (is_coo(self)) return is_compressed(grad.layout()) ? grad.to_sparse() : grad.to_sparse(sparse_dims(self));
  if (grad.layout() == self.layout() && (!in_blocks(self.layout()) || block_size(grad) == block_size(self)))
    return grad;
  auto [height, width] = block_size(self);
  std::vector<int64_t> block{height, width};
  OptionalInt inner = is_strided(grad) ? OptionalInt(inner_dims(self)) : std::nullopt;
  if (in_blocks(self.layout())) return _to_sparse(grad, self.layout(), block, inner);
  return _to_sparse(grad, self.layout(), std::nullopt, inner);
}

// ---- to strided ----

Tensor to_strided(const Tensor& self, OptionalDType dtype, OptionalBool) {
  check<NotImplementedError>(is_sparse(self.layout()),
                             "Could not run 'aten::_to_dense' with arguments from the 'CPU' backend: it is ",
                             "for tensors that are not strided.");
  check(!dtype, "dtype argument is not supported by ", is_coo(self) ? "sparse_to_dense" : "sparse_csr_to_dense");
  return strided(self);
}

UMBRA_OPERATOR("_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor")
    .all_backends(to_strided)
    .sparse(to_strided)
    .use(NeedsData{})
    .gradient("self", {"grad", "self", "masked_grad"},
              [](const Tensor& grad, const Tensor& self, OptionalBool masked_grad) {
                if (masked_grad.value_or(true)) return grad.sparse_mask(is_coo(self) ? self.coalesce() : self);
                return in_layout_of(grad, self);
              })
    .node("ToDenseBackward0");

UMBRA_OPERATOR("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor")
    .composite([](const Tensor& self, OptionalDType dtype, OptionalBool masked_grad) {
      if (is_sparse(self.layout())) return _to_dense(self, dtype, masked_grad);
      return dtype ? self.to(*dtype) : self;
    });

UMBRA_OPERATOR("to_dense_backward(Tensor grad, Tensor input, bool? masked_grad=None) -> Tensor")
    .composite([](const Tensor& grad, const Tensor& input, OptionalBool masked_grad) {
      if (is_strided(input)) return grad.to_dense(input.dtype());
      check<NotImplementedError>(masked_grad.value_or(true), "to_dense_backward without a mask is not in Umbra yet");
      return grad.sparse_mask(is_coo(input) ? input.coalesce() : input);
    });

// ---- from strided ----

/// A COO tensor of a tensor without data: how many elements it has only the run tells.
Tensor unknown_coo(const Tensor& self, int64_t sparse_dim) {
  SymShape places(self.sym_sizes().slice(0, static_cast<size_t>(sparse_dim)));
  bool each_element = sparse_dim == self.dim();
  SymInt count = each_element ? unknown_count("aten::_to_sparse", self)
                              : unknown_size("aten::_to_sparse", product(SymIntArrayRef(places)));
  SymShape values{count};
  for (int64_t d = sparse_dim; d < self.dim(); ++d) values.push_back(self.sym_sizes()[d]);
  return make_coo(empty({sparse_dim, count}, {.dtype = DType::Int64, .device = self.device()}),
                  empty(values, {.dtype = self.dtype(), .device = self.device()}), self.sym_sizes(), true);
}

Tensor strided_to_coo(const Tensor& self, int64_t sparse_dim) {
  if (!self.is_fake()) require_data(self, "to_sparse");
  check(sparse_dim >= 0 && sparse_dim <= self.dim(), "dense_to_sparse: sparse_dim argument must be in [0,", self.dim(),
        "] range, but ", sparse_dim, " is given");
  check(sparse_dim > 0 || self.dim() == 0, "dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0");
  if (self.is_fake()) return unknown_coo(self, sparse_dim);
  if (sparse_dim == 0) {
    int64_t count = self.ne(Scalar(0)).item().to_bool() ? 1 : 0;
    Tensor indices = zeros({0, count}, {.dtype = DType::Int64, .device = self.device()});
    return make_coo(indices, self.reshape({1}).slice(0, 0, count), self.sym_sizes(), true);
  }
  Tensor mask = self != Scalar(0);
  if (sparse_dim < self.dim()) mask = mask.flatten(sparse_dim, -1).any(-1);
  Tensor indices = mask.nonzero().t();
  Tensor values = self.flatten(0, sparse_dim - 1).index_select(0, flat_positions(indices, self.sizes()));
  return make_coo(indices, values, self.sym_sizes(), true);
}

/// The same of the layouts that are compressed by rows or columns: as many elements in each matrix of a batch.
Tensor unknown_compressed(const Tensor& self, Layout layout, std::pair<int64_t, int64_t> block, int64_t inner) {
  int64_t batch = self.dim() - 2 - inner;
  SymInt down = self.sym_size(batch) / block.first, across = self.sym_size(batch + 1) / block.second;
  bool each_element = self.dim() == 2 && !in_blocks(layout);
  SymShape compressed(self.sym_sizes().slice(0, static_cast<size_t>(batch))), indices(compressed);
  compressed.push_back((by_rows(layout) ? down : across) + 1);
  indices.push_back(each_element ? unknown_count("aten::_to_sparse", self)
                                 : unknown_size("aten::_to_sparse", down * across));
  SymShape values(indices);
  if (in_blocks(layout)) {
    values.push_back(block.first);
    values.push_back(block.second);
  }
  for (int64_t d = batch + 2; d < self.dim(); ++d) values.push_back(self.sym_sizes()[d]);
  TensorOptions integers{.dtype = DType::Int64, .device = self.device()};
  return make_sparse(layout, self.sym_sizes(),
                     {.indices = empty(indices, integers),
                      .compressed = empty(compressed, integers),
                      .values = empty(values, {.dtype = self.dtype(), .device = self.device()})});
}

/// `inner`: how many of the last dimensions are dense. The dimensions before the matrices are a batch.
Tensor strided_to_compressed(const Tensor& self, Layout layout, std::pair<int64_t, int64_t> block, int64_t inner) {
  int64_t batch = self.dim() - 2 - inner;
  for (int64_t d = 0; d < batch; ++d)
    check(self.sym_size(d) > 0, "to_", to_string(layout).substr(6),
          ": Expected product of batch dimensions to be non-zero.");
  if (self.is_fake()) return unknown_compressed(self, layout, block, inner);
  Tensor blocks = as_blocks(self, batch, block);
  if (!by_rows(layout)) blocks = blocks.transpose(batch, batch + 1);
  Tensor mask = (blocks != Scalar(0)).flatten(batch + 2, -1).any(-1);
  Tensor found = mask.nonzero(), counts = mask.sum({-1}, false, DType::Int64).cumsum(-1);
  SymShape sizes(self.sym_sizes().slice(0, static_cast<size_t>(batch))), first(sizes);
  first.push_back(1);
  Tensor compressed = cat({zeros(first, {.dtype = DType::Int64, .device = self.device()}), counts}, -1);
  Tensor each = compressed.select(-1, -1);  // how many elements the matrices have
  int64_t count = each.numel() == 0 ? 0 : each.amax().item().to_int();
  check(each.eq(Scalar(count)).all().item().to_bool(), "Expect the same number of specified elements per batch.");
  sizes.push_back(count);
  Tensor plain = found.select(1, -1).reshape(sizes);
  for (int64_t d = in_blocks(layout) ? batch + 2 : batch + 4; d < blocks.dim(); ++d) sizes.push_back(blocks.size(d));
  Tensor values = blocks.flatten(0, batch + 1).index_select(0, flat_positions(found.t(), mask.sizes())).reshape(sizes);
  return make_sparse(layout, self.sym_sizes(), {.indices = plain, .compressed = compressed, .values = values});
}

/// What a strided tensor has to be, in the order in which PyTorch asks for it.
void check_compressible(const Tensor& self, Layout wanted, OptionalBlock blocksize, OptionalInt dense_dim) {
  std::string name = concat("dense_to_", to_string(wanted).substr(6));  // without "torch."
  if (blocksize) {
    check(blocksize->size() == 2, name, ": blocksize needs to be a tuple of size 2, but got ", blocksize->size());
    check((*blocksize)[0] > 0 && (*blocksize)[1] > 0, name, ": blocksize needs to be positive, but got ",
          to_string(*blocksize));
    int64_t dense = dense_dim.value_or(0);
    SymInt down = self.sym_size(-dense - 2), across = self.sym_size(-dense - 1);
    check(down % (*blocksize)[0] == 0 && across % (*blocksize)[1] == 0, name, ": tensor sparse size (", down, ",",
          across, ") must be divisible by given blocksize (", (*blocksize)[0], ",", (*blocksize)[1], ")");
  }
  check<IndexError>(self.dim() >= 2 || dense_dim,
                    "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  check(!dense_dim || (*dense_dim >= 0 && *dense_dim <= self.dim() - 2), name, ": dense_dim argument must be in [0,",
        self.dim() - 2, "] range, but ", dense_dim.value_or(0), " is given");
}

Tensor to_layout(const Tensor& self, OptionalLayout layout, OptionalBlock blocksize, OptionalInt dense_dim) {
  Layout wanted = layout.value_or(Layout::SparseCoo);
  if (self.is_meta())
    fail<NotImplementedError>("aten::_to_", to_string(wanted).substr(6),
                              ": attempted to run this operator with Meta tensors, ",
                              "but there was no fake impl or Meta kernel registered.");
  check(is_sparse(wanted), "to_sparse: conversion from ", short_name(self.layout()), " to ", short_name(wanted),
        " is not supported");
  check(in_blocks(wanted) == blocksize.has_value(), "to_sparse: ", to_string(wanted),
        in_blocks(wanted) ? " needs a blocksize" : " takes no blocksize");
  if (wanted == Layout::SparseCoo && is_strided(self)) {
    int64_t dense = dense_dim.value_or(0);
    check(dense >= 0 && dense <= self.dim(), "dense_to_sparse: dense_dim argument must be in [0,", self.dim(),
          "] range, but ", dense, " is given");
    return strided_to_coo(self, self.dim() - dense);
  }
  if (wanted == Layout::SparseCoo) return is_coo(self) ? coalesced(self) : elements_of(self);
  std::string name = concat("to_", to_string(wanted).substr(6));
  check(is_strided(self) || !dense_dim, name, ": conversion from ", short_name(self.layout()), " to ",
        short_name(wanted), " with dense_dim argument given is not supported");
  check(!is_coo(self) || sparse_dims(self) == 2, "coo_", name, ": conversion from Sparse to ", short_name(wanted),
        " for input tensors with sparse_dim()!=2 is not supported");
  // Zeros among the elements stay elements.
  if (!is_strided(self) && !in_blocks(wanted)) return with_index_type_of(as_compressed(as_coo(self), wanted), self);
  check(!blocksize || blocksize->size() == 2, "dense_", name, ": blocksize needs to be a tuple of size 2, but got ",
        blocksize ? blocksize->size() : 0);
  std::pair<int64_t, int64_t> block(1, 1);
  if (blocksize) block = {(*blocksize)[0].guard_int(), (*blocksize)[1].guard_int()};
  if (in_blocks(self.layout()) && block == block_size(self))
    return with_index_type_of(as_blocks_of(self, wanted), self);
  check(!is_compressed(self.layout()) || batch_dims(self) == 0, "sparse_compressed_to_sparse: conversion from ",
        short_name(self.layout()), " to ", short_name(wanted), " for batched inputs is not supported");
  OptionalInt inner = dense_dim;
  if (is_compressed(self.layout())) inner = inner_dims(self);
  if (is_coo(self)) inner = self.dim() - 2;
  Tensor whole = strided(self);
  check_compressible(whole, wanted, blocksize, inner);
  return with_index_type_of(strided_to_compressed(whole, wanted, block, inner.value_or(0)), self);
}

/// A conversion: one function for all layouts, and the gradient converted back.
template <class F> struct Conversion {
  F function;
  void operator()(OperatorBuilder& builder) const {
    builder.all_backends(function).sparse(function).gradient("self", {"grad", "self"}, in_layout_of);
  }
};
template <class F> Conversion(F) -> Conversion<F>;

UMBRA_OPERATOR("_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor")
    .use(Conversion{[](const Tensor& self, int64_t sparse_dim) {
      check(is_strided(self), "to_sparse: conversion from ", short_name(self.layout()),
            " to Sparse with sparse_dim argument !=self.sparse_dim() is not supported");
      return strided_to_coo(self, sparse_dim);
    }})
    .node("ToSparseBackward0");
UMBRA_OPERATOR("_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor")
    .use(Conversion{to_layout})
    .node("ToSparseBackward1");
UMBRA_OPERATOR("_to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor")
    .use(Conversion{[](const Tensor& self, OptionalInt dense_dim) {
      return to_layout(self, Layout::SparseCsr, std::nullopt, dense_dim);
    }});
UMBRA_OPERATOR("_to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor")
    .use(Conversion{[](const Tensor& self, OptionalInt dense_dim) {
      return to_layout(self, Layout::SparseCsc, std::nullopt, dense_dim);
    }});
UMBRA_OPERATOR("_to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor")
    .use(Conversion{[](const Tensor& self, SymIntArrayRef blocksize, OptionalInt dense_dim) {
      return to_layout(self, Layout::SparseBsr, blocksize, dense_dim);
    }});
UMBRA_OPERATOR("_to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor")
    .use(Conversion{[](const Tensor& self, SymIntArrayRef blocksize, OptionalInt dense_dim) {
      return to_layout(self, Layout::SparseBsc, blocksize, dense_dim);
    }});

// ---- as users call it: nothing is done to what has the layout already ----

UMBRA_OPERATOR("to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor")
    .composite([](const Tensor& self, int64_t sparse_dim) {
      bool done = is_coo(self) && sparse_dims(self) == sparse_dim;
      return done ? self : _to_sparse(self, sparse_dim);
    });
UMBRA_OPERATOR("to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor")
    .composite([](const Tensor& self, OptionalLayout layout, OptionalBlock blocksize, OptionalInt dense_dim) {
      bool done = self.layout() == layout.value_or(Layout::SparseCoo) && !blocksize;
      if (done) return self;
      return blocksize ? _to_sparse(self, layout, guard_ints(*blocksize), dense_dim)
                       : _to_sparse(self, layout, std::nullopt, dense_dim);
    });
UMBRA_OPERATOR("to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor")
    .composite([](const Tensor& self, OptionalInt dense_dim) {
      return self.layout() == Layout::SparseCsr ? self : _to_sparse_csr(self, dense_dim);
    });
UMBRA_OPERATOR("to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor")
    .composite([](const Tensor& self, OptionalInt dense_dim) {
      return self.layout() == Layout::SparseCsc ? self : _to_sparse_csc(self, dense_dim);
    });
UMBRA_OPERATOR("to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor")
    .composite([](const Tensor& self, SymIntArrayRef blocksize, OptionalInt dense_dim) {
      return _to_sparse_bsr(self, guard_ints(blocksize), dense_dim);
    });
UMBRA_OPERATOR("to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor")
    .composite([](const Tensor& self, SymIntArrayRef blocksize, OptionalInt dense_dim) {
      return _to_sparse_bsc(self, guard_ints(blocksize), dense_dim);
    });

// ---- the elements at another tensor's places ----

/// Whether a tensor and what chooses from it go together.
void check_mask(const Tensor& self, const Tensor& mask) {
  expect_sparse(mask, "sparse_mask");
  check(self.sizes() == mask.sizes(), "sparse_mask(): operands have incompatible sizes; self has size ",
        to_string(self.sizes()), " but mask has size ", to_string(mask.sizes()));
}

/// The elements or blocks of a strided tensor at the places of a compressed one.
Tensor gathered_blocks(const Tensor& self, const Tensor& mask) {
  int64_t batch = batch_dims(mask);
  Tensor blocks = as_blocks(self, batch, block_size(mask));
  Tensor places = flat_positions(compressed_places(mask), blocks.sizes());
  SymShape sizes(sparse_parts(mask).values.sym_sizes());
  return blocks.flatten(0, batch + 1).index_select(0, places).reshape(sizes);
}

Tensor gathered(const Tensor& self, const Tensor& mask) {
  Tensor flat = sparse_dims(mask) == 0 ? self.unsqueeze(0) : self.flatten(0, sparse_dims(mask) - 1);
  return flat.index_select(0, flat_positions(mask));
}

/// The elements of a sparse tensor at the places of a COO one, zeros where it has none.
Tensor elements_at(const Tensor& self, const Tensor& mask) {
  Tensor elements = as_coo(self);
  check(sparse_dims(elements) == sparse_dims(mask),
        "sparse_mask(): expected the same number of sparse dimensions, but got ", sparse_dims(elements), " and ",
        sparse_dims(mask));
  return values_at(sparse_parts(elements).values, find(flat_positions(elements), flat_positions(mask)));
}

Tensor masked(const Tensor& self, const Tensor& mask) {
  check_mask(self, mask);
  if (!is_coo(mask)) {
    if (is_strided(self)) return with_values(mask, gathered_blocks(self, mask));
    if (in_blocks(mask.layout())) return with_values(mask, gathered_blocks(strided(self), mask));
    if (is_coo(self))
      return with_values(mask, elements_at(self, elements_of(mask)).reshape_as(sparse_parts(mask).values));
    Tensor places = as_coo(mask);
    // What only one of them has is left out here, where COO tensors have zeros; both are PyTorch's.
    Tensor ones = with_values(places, ones_like(sparse_parts(places).values, self.dtype()));
    return as_compressed(as_coo(self).mul(ones), mask.layout());
  }
  if (is_strided(self)) return with_values(mask, gathered(self, mask));
  return with_values(mask, elements_at(self, mask));
}

UMBRA_OPERATOR("sparse_mask(Tensor self, Tensor mask) -> Tensor")
    .all_backends(masked)
    .sparse(masked)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return is_strided(self) ? grad.to_dense() : grad; })
    .gradient("mask", {"grad"}, [](const Tensor&) { return Tensor(); });  // only its places count

}  // namespace
}  // namespace umbra::ops
