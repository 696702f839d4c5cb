// Strided tensors turned into sparse ones, and sparse ones into strided ones and into each other.
#include "ops/common/factory_arguments.h"
#include "ops/common/needs_data.h"
#include "ops/sparse/parts.h"
#include "umbra/dispatch/define.h"

namespace umbra::ops {
namespace {

using namespace sparse;

using OptionalInt = std::optional<int64_t>;
using OptionalBlock = std::optional<SymIntArrayRef>;

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
                if (is_coo(self)) return grad.to_sparse(sparse_dims(self));
                check<NotImplementedError>(!in_blocks(self.layout()),
                                           "to_dense of blocks with masked_grad=False is not in Umbra yet");
                return by_rows(self.layout()) ? grad.to_sparse_csr() : grad.to_sparse_csc();
              })
    .node("ToDenseBackward0");

UMBRA_OPERATOR("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor")
    .composite([](const Tensor& self, OptionalDType dtype, OptionalBool masked_grad) {
      if (is_sparse(self.layout())) return _to_dense(self, dtype, masked_grad);
      return dtype ? self.to(*dtype) : self;
    });

UMBRA_OPERATOR("to_dense_backward(Tensor grad, Tensor input, bool? masked_grad=None) -> Tensor")
    .composite([](const Tensor& grad, const Tensor& input, OptionalBool masked_grad) {
      if (is_strided(input)) return grad.to_dense();
      check<NotImplementedError>(masked_grad.value_or(true), "to_dense_backward without a mask is not in Umbra yet");
      return grad.sparse_mask(is_coo(input) ? input.coalesce() : input);
    });

// ---- from strided ----

Tensor strided_to_coo(const Tensor& self, int64_t sparse_dim) {
  check(sparse_dim >= 0 && sparse_dim <= self.dim(), "dense_to_sparse: sparse_dim argument must be in [0,", self.dim(),
        "] range, but ", sparse_dim, " is given");
  check(sparse_dim > 0 || self.dim() == 0, "dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0");
  require_data(self, "to_sparse");
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

Tensor strided_to_compressed(const Tensor& self, Layout layout, std::pair<int64_t, int64_t> block) {
  for (int64_t d = 0; d < self.dim() - 2; ++d)
    check(self.size(d) > 0, "to_", to_string(layout).substr(6),
          ": Expected product of batch dimensions to be non-zero.");
  check<NotImplementedError>(self.dim() == 2, "a tensor of layout ", to_string(layout),
                             " of other than two dimensions is not in Umbra yet");
  require_data(self, "to_sparse");
  auto [height, width] = block;
  check(height > 0 && width > 0 && self.size(0) % height == 0 && self.size(1) % width == 0, "dense_to_",
        to_string(layout).substr(6), ": tensor sparse size (", self.size(0), ",", self.size(1),
        ") must be divisible by given blocksize (", height, ",", width, ")");
  int64_t down = self.size(0) / height, across = self.size(1) / width;
  Tensor blocks = self.reshape({down, height, across, width}).permute({0, 2, 1, 3});
  if (!by_rows(layout)) blocks = blocks.transpose(0, 1);
  Tensor mask = (blocks != Scalar(0)).flatten(2, 3).any(-1);
  Tensor found = mask.nonzero();
  Tensor counts = mask.sum({1}, false, DType::Int64).cumsum(0);
  Tensor compressed = cat({zeros({1}, {.dtype = DType::Int64, .device = self.device()}), counts}, 0);
  Tensor values = blocks.flatten(0, 1).index_select(0, found.select(1, 0) * Scalar(mask.size(1)) + found.select(1, 1));
  if (!in_blocks(layout)) values = values.reshape({-1});
  return make_sparse(layout, self.sym_sizes(),
                     {.indices = found.select(1, 1).contiguous(), .compressed = compressed, .values = values});
}

/// What a strided tensor has to be, in the order in which PyTorch asks for it.
void check_compressible(const Tensor& self, Layout wanted, OptionalBlock blocksize, OptionalInt dense_dim) {
  std::string name = concat("dense_to_", to_string(wanted).substr(6));  // without "torch."
  if (blocksize) {
    check(blocksize->size() == 2, name, ": blocksize needs to be a tuple of size 2, but got ", blocksize->size());
    check((*blocksize)[0] > 0 && (*blocksize)[1] > 0, name, ": blocksize needs to be positive, but got ",
          to_string(*blocksize));
    self.sym_size(-dense_dim.value_or(0) - 2);
    self.sym_size(-dense_dim.value_or(0) - 1);
    return;
  }
  check(!dense_dim || (*dense_dim >= 0 && *dense_dim <= self.dim() - 2), name, ": dense_dim argument must be in [0,",
        self.dim() - 2, "] range, but ", dense_dim.value_or(0), " is given");
  check<IndexError>(self.dim() >= 2, "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
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
  if (wanted == Layout::SparseCoo && is_strided(self)) return strided_to_coo(self, self.dim() - dense_dim.value_or(0));
  if (wanted == Layout::SparseCoo) return as_coo(self);
  // Zeros among the elements stay elements.
  if (!is_strided(self) && !in_blocks(wanted) && self.dim() == 2 && !dense_dim) {
    Tensor elements = as_coo(self);
    if (sparse_dims(elements) == 2) return as_compressed(elements, wanted);
  }
  Tensor whole = strided(self);
  check_compressible(whole, wanted, blocksize, dense_dim);
  check<NotImplementedError>(dense_dim.value_or(0) == 0, "dense dimensions of layout ", to_string(wanted),
                             " are not in Umbra yet");
  std::pair<int64_t, int64_t> block(1, 1);
  if (blocksize) block = {(*blocksize)[0].guard_int(), (*blocksize)[1].guard_int()};
  return strided_to_compressed(whole, wanted, block);
}

/// The gradient has the layout of what it belongs to.
Tensor conversion_gradient(const Tensor& grad, const Tensor& self) {
  if (is_strided(self)) return grad.to_dense();
  if (is_coo(self)) return grad.to_sparse(sparse_dims(self));
  check<NotImplementedError>(!in_blocks(self.layout()), "the gradient of blocks in another layout is not in Umbra yet");
  return by_rows(self.layout()) ? grad.to_sparse_csr() : grad.to_sparse_csc();
}

/// A conversion: one function for all layouts, and the gradient converted back.
template <class F> struct Conversion {
  F function;
  void operator()(OperatorBuilder& builder) const {
    builder.all_backends(function).sparse(function).gradient("self", {"grad", "self"}, conversion_gradient);
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
  check<NotImplementedError>(!in_blocks(mask.layout()), "sparse_mask by blocks is not in Umbra yet");
}

Tensor gathered(const Tensor& self, const Tensor& mask) {
  Tensor flat = sparse_dims(mask) == 0 ? self.unsqueeze(0) : self.flatten(0, sparse_dims(mask) - 1);
  return flat.index_select(0, flat_positions(mask));
}

Tensor masked(const Tensor& self, const Tensor& mask) {
  check_mask(self, mask);
  if (!is_coo(mask)) {
    Tensor places = as_coo(mask);
    if (is_strided(self)) return as_compressed(with_values(places, gathered(self, places)), mask.layout());
    // What only one of them has is left out here, where COO tensors have zeros; both are PyTorch's.
    Tensor ones = with_values(places, ones_like(sparse_parts(places).values, self.dtype()));
    return as_compressed(as_coo(self).mul(ones), mask.layout());
  }
  if (is_strided(self)) return with_values(mask, gathered(self, mask));
  Tensor elements = as_coo(self);
  check(sparse_dims(elements) == sparse_dims(mask),
        "sparse_mask(): expected the same number of sparse dimensions, but got ", sparse_dims(elements), " and ",
        sparse_dims(mask));
  return with_values(mask,
                     values_at(sparse_parts(elements).values, find(flat_positions(elements), flat_positions(mask))));
}

UMBRA_OPERATOR("sparse_mask(Tensor self, Tensor mask) -> Tensor")
    .all_backends(masked)
    .sparse(masked)
    .gradient("self", {"grad", "self"},
              [](const Tensor& grad, const Tensor& self) { return is_strided(self) ? grad.to_dense() : grad; })
    .gradient("mask", {"grad"}, [](const Tensor&) { return Tensor(); });  // only its places count

}  // namespace
}  // namespace umbra::ops
