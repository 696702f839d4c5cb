#include "ops/sparse/reduce.h"

#include <algorithm>

#include "ops/common/shape.h"
#include "ops/sparse/parts.h"
#include "umbra/dispatch/define.h"
#include "umbra/ops/tensor_of.h"

namespace umbra::ops {
namespace sparse {
namespace {

/// Dimensions in order, each once.
std::vector<int64_t> wrapped(const std::vector<int64_t>& dims, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t d : dims) {
    int64_t at = wrap_dim(d, rank);
    check(std::find(out.begin(), out.end(), at) == out.end(), "dim ", at,
          " appears multiple times in the list of dims");
    out.push_back(at);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool has(const std::vector<int64_t>& dims, int64_t d) { return std::binary_search(dims.begin(), dims.end(), d); }

/// A COO tensor's dimensions, by whether they are summed over and whether they are sparse.
struct Split {
  std::vector<int64_t> kept_sparse, summed_dense;  // the latter among the dimensions of the values
  SymShape sizes;                                  // of what is left
  Split(const Tensor& self, const std::vector<int64_t>& dims) {
    int64_t sparse_dim = sparse_dims(self);
    for (int64_t d = 0; d < self.dim(); ++d) {
      if (!has(dims, d)) sizes.push_back(self.sym_sizes()[d]);
      if (d < sparse_dim && !has(dims, d)) kept_sparse.push_back(d);
      if (d >= sparse_dim && has(dims, d)) summed_dense.push_back(d - sparse_dim + 1);
    }
  }
};

Tensor sum_coo(const Tensor& self, const std::vector<int64_t>& dims) {
  Split split(self, dims);
  const SparseParts& parts = sparse_parts(self);
  Tensor values = parts.values;
  if (!split.summed_dense.empty()) values = values.sum(split.summed_dense, false, values.dtype());
  if (split.kept_sparse.empty()) return values.sum(IntArrayRef{0});
  Tensor indices = parts.indices.index_select(0, tensor(split.kept_sparse));
  return coalesced(make_coo(indices, values, split.sizes));
}

Tensor sum_compressed(const Tensor& self, const std::vector<int64_t>& dims, bool keepdim, DType dtype) {
  check(keepdim, "reduction operations on CSR tensors with keepdim=False is unsupported");
  check<NotImplementedError>(self.layout() == Layout::SparseCsr && self.dim() == 2, "sums over dimensions of layout ",
                             to_string(self.layout()), " other than of a CSR matrix are not in Umbra yet");
  Tensor elements = as_coo(self);
  if (dims.size() == 2) {
    Tensor total = sparse_parts(elements).values.sum(dtype).reshape({1});
    return as_compressed(make_coo(zeros({2, 1}, {.dtype = DType::Int64, .device = self.device()}), total, {1, 1}),
                         Layout::SparseCsr);
  }
  Tensor flat = sum_coo(with_values(elements, sparse_parts(elements).values.to(dtype)), dims);
  return as_compressed(flat.unsqueeze(dims[0]), Layout::SparseCsr);
}

}  // namespace

Tensor sum(const Tensor& self, std::optional<DType> dtype) { return sparse_parts(self).values.sum(dtype); }

Tensor sum_over(const Tensor& self, std::vector<int64_t> dims, bool keepdim, std::optional<DType> dtype) {
  if (dims.empty())
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  dims = wrapped(dims, self.dim());
  DType type = dtype.value_or(is_integral(self.dtype(), true) ? DType::Int64 : self.dtype());
  if (!is_coo(self)) return sum_compressed(self, dims, keepdim, type);
  Tensor out = sum_coo(type == self.dtype() ? self : with_values(self, sparse_parts(self).values.to(type)), dims);
  for (size_t i = 0; keepdim && i < dims.size(); ++i) out = out.unsqueeze(dims[i]);
  return out;
}

Tensor norm(const Tensor& self, const std::optional<Scalar>& p, const std::vector<int64_t>& dims, bool keepdim,
            std::optional<DType> dtype) {
  check<NotImplementedError>(is_coo(self),
                             "Could not run 'aten::norm' with arguments from the 'SparseCsrCPU' backend: ",
                             "it is not defined for tensors of layout ", to_string(self.layout()), " in Umbra yet");
  check(dims.empty() || wrapped(dims, self.dim()).size() == static_cast<size_t>(self.dim()),
        "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions ",
        "of the input");
  check(!keepdim, "norm_sparse currently does not support keepdim=True");
  check(!dtype, "norm_sparse currently does not support 'dtype' argument");
  return sparse_parts(coalesced(self)).values.norm(p.value_or(2));
}

Tensor any(const Tensor& self) {
  check<NotImplementedError>(is_coo(self), "any of a tensor of layout ", to_string(self.layout()),
                             " is not in Umbra yet");
  return sparse_parts(coalesced(self)).values.any();
}

}  // namespace sparse

namespace {

using namespace sparse;

// ---- torch.sparse.sum ----

UMBRA_OPERATOR("_sparse_sum(Tensor self) -> Tensor").composite([](const Tensor& self) {
  return self.coalesce().values().sum();
});
UMBRA_OPERATOR("_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor")
    .composite([](const Tensor& self, DType dtype) { return self.coalesce().values().sum(dtype); });

UMBRA_OPERATOR("_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor")
    .all_backends([](const Tensor& self, std::vector<int64_t> dims) -> Tensor {
      dim_mask(dims, self.dim());
      fail<NotImplementedError>("Could not run 'aten::_sparse_sum.dim' with arguments from the '", self.device(),
                                "' backend: it is defined for COO tensors only");
    })
    .sparse([](const Tensor& self, std::vector<int64_t> dims) {
      check<NotImplementedError>(is_coo(self), "Could not run 'aten::_sparse_sum.dim' with arguments from the ",
                                 "'SparseCsrCPU' backend: it is defined for COO tensors only");
      return sum_coo(self, wrapped(dims, self.dim()));
    })
    .gradient("self", {"grad", "self", "dim"},
              [](const Tensor& grad, const Tensor& self, std::vector<int64_t> dims) {
                return _sparse_sum_backward(grad, self, dims);
              })
    .node("SparseSumBackward0");
UMBRA_OPERATOR("_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor")
    .composite([](const Tensor& self, std::vector<int64_t> dims, DType dtype) {
      dim_mask(dims, self.dim());
      return _sparse_sum(self.to(dtype), dims);
    });

/// Each element gets the gradient of the sum that it went into.
Tensor sum_gradient(const Tensor& grad, const Tensor& self, std::vector<int64_t> dims) {
  dims = wrapped(dims, self.dim());
  Tensor elements = coalesced(self);
  const SparseParts& parts = sparse_parts(elements);
  Split split(elements, dims);
  Tensor values;
  if (is_strided(grad)) {
    values = grad.unsqueeze(0);
  } else {
    Tensor sums = coalesced(grad);
    Tensor indices = parts.indices.index_select(0, tensor(split.kept_sparse));
    values = values_at(sparse_parts(sums).values, find(flat_positions(sums), flat_positions(indices, sums.sizes())));
  }
  for (int64_t d : split.summed_dense) values = values.unsqueeze(d);
  return with_values(elements, values.expand(parts.values.sym_sizes()).to(self.dtype()));
}

UMBRA_OPERATOR("_sparse_sum_backward(Tensor grad, Tensor self, int[] dim) -> Tensor").sparse(sum_gradient);

// ---- softmax over the elements that are there ----

/// Elements that differ in one sparse dimension alone, by number.
struct Groups {
  Tensor group;
  int64_t count;
  Groups(const Tensor& coo, int64_t dim) {
    std::vector<int64_t> others, sizes;
    for (int64_t d = 0; d < sparse_dims(coo); ++d)
      if (d != dim) others.push_back(d), sizes.push_back(coo.sizes()[d]);
    Tensor indices = others.empty() ? zeros({0, element_count(coo)}, {.dtype = DType::Int64, .device = coo.device()})
                                    : sparse_parts(coo).indices.index_select(0, tensor(others));
    auto [sorted, order] = flat_positions(indices, sizes).sort(true, 0, false);
    auto [places, inverse, counts] = unique_consecutive(sorted, true, false);
    group = zeros_like(inverse).index_copy(0, order, inverse);
    count = places.numel();
  }
  Tensor sums(const Tensor& values) const {
    SymShape sizes(values.sym_sizes());
    sizes[0] = count;
    return zeros(sizes, {.dtype = values.dtype(), .device = values.device()}).index_add(0, group, values);
  }
  Tensor greatest(const Tensor& values) const {
    SymShape sizes(values.sym_sizes());
    sizes[0] = count;
    Tensor start = empty(sizes, {.dtype = values.dtype(), .device = values.device()});
    return start.scatter_reduce(0, beside(group, values).expand(values.sym_sizes()), values, "amax", false);
  }
  Tensor of_each(const Tensor& per_group) const { return per_group.index_select(0, group); }
};

Tensor softmax_of_elements(const Tensor& self, int64_t dim, bool logarithm) {
  expect_sparse(self, logarithm ? "_sparse_log_softmax" : "_sparse_softmax");
  check<NotImplementedError>(is_coo(self), "Could not run 'aten::_sparse_softmax' with arguments from the ",
                             "'SparseCsrCPU' backend: it is defined for COO tensors only");
  int64_t at = wrap_dim(dim, self.dim());
  Tensor elements = coalesced(self);
  Tensor values = sparse_parts(elements).values;
  check<NotImplementedError>(is_floating(values.dtype()), "\"softmax\" not implemented for '",
                             kernel_name(values.dtype()), "'");
  if (int64_t inner = at - sparse_dims(self); inner >= 0)
    return with_values(elements, logarithm ? values.log_softmax(inner + 1) : values.softmax(inner + 1));
  Groups groups(elements, at);
  Tensor shifted = values - groups.of_each(groups.greatest(values)), powers = shifted.exp();
  Tensor sums = groups.of_each(groups.sums(powers));
  return with_values(elements, logarithm ? shifted - sums.log() : powers / sums);
}

Tensor softmax_gradient(const Tensor& grad, const Tensor& output, int64_t dim, const Tensor& self, bool logarithm) {
  int64_t at = wrap_dim(dim, self.dim());
  Tensor result = sparse_parts(output).values, above = sparse_parts(grad.sparse_mask(output)).values;
  Tensor terms = logarithm ? above : above * result, sums;
  if (int64_t inner = at - sparse_dims(self); inner >= 0) {
    sums = terms.sum(IntArrayRef{inner + 1}, true);
  } else {
    Groups groups(output, at);
    sums = groups.of_each(groups.sums(terms));
  }
  return with_values(output, logarithm ? above - result.exp() * sums : result * (above - sums));
}

UMBRA_OPERATOR("_sparse_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
    .all_backends([](const Tensor& self, int64_t dim, bool) { return softmax_of_elements(self, dim, false); })
    .sparse([](const Tensor& self, int64_t dim, bool) { return softmax_of_elements(self, dim, false); })
    .gradient("self", {"grad", "result", "dim", "self"},
              [](const Tensor& grad, const Tensor& result, int64_t dim, const Tensor& self) {
                return _sparse_softmax_backward_data(grad, result, dim, self);
              });
UMBRA_OPERATOR("_sparse_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
    .all_backends([](const Tensor& self, int64_t dim, bool) { return softmax_of_elements(self, dim, true); })
    .sparse([](const Tensor& self, int64_t dim, bool) { return softmax_of_elements(self, dim, true); })
    .gradient("self", {"grad", "result", "dim", "self"},
              [](const Tensor& grad, const Tensor& result, int64_t dim, const Tensor& self) {
                return _sparse_log_softmax_backward_data(grad, result, dim, self);
              });
UMBRA_OPERATOR("_sparse_softmax_backward_data(Tensor grad_output, Tensor output, int dim, Tensor self) -> Tensor")
    .sparse([](const Tensor& grad, const Tensor& output, int64_t dim, const Tensor& self) {
      return softmax_gradient(grad, output, dim, self, false);
    });
UMBRA_OPERATOR("_sparse_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, Tensor self) -> Tensor")
    .sparse([](const Tensor& grad, const Tensor& output, int64_t dim, const Tensor& self) {
      return softmax_gradient(grad, output, dim, self, true);
    });

UMBRA_OPERATOR("_sparse_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
    .composite([](const Tensor& self, int64_t dim, std::optional<DType> dtype) {
      return _sparse_softmax(dtype ? self.to(*dtype) : self, dim, false);
    });
UMBRA_OPERATOR("_sparse_log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
    .composite([](const Tensor& self, int64_t dim, std::optional<DType> dtype) {
      return _sparse_log_softmax(dtype ? self.to(*dtype) : self, dim, false);
    });

}  // namespace
}  // namespace umbra::ops
