// Gather and scatter: along one dimension, each element of the index says which element of the other tensor is meant.
#include "kernels/gather.h"

#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/index/scatter_spec.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_index(const char* name, const Tensor& index) {
  check(index.dtype() == DType::Int64 || index.dtype() == DType::Int32 || index.sym_numel() == 0, name,
        "(): Expected dtype int32/int64 for index");
}

// Where the index has elements, the other tensor must have places, save along the dimension itself.
void check_fits(const char* name, const Tensor& self, int64_t dim, const Tensor& index, const Tensor* source) {
  int64_t at = wrap_dim(dim, self.dim());
  check_index(name, index);
  if (!index.sym_numel().is_symbolic() && index.sym_numel().value() == 0) return;
  auto rank = [](const Tensor& t) { return std::max<int64_t>(t.dim(), 1); };
  check(rank(self) == rank(index), "Index tensor must have the same number of dimensions as ",
        std::string_view(name) == "gather" ? "input" : "self", " tensor");
  check(!source || rank(*source) == rank(index), "Index tensor must have the same number of dimensions as src tensor");
  for (int64_t d = 0; d < self.dim() && d < index.dim(); ++d) {
    if (d != at && !expect_at_most(index.sym_sizes()[d], self.sym_sizes()[d]))
      fail("Size does not match at dimension ", d, " expected index ", index.sym_sizes(), " to be no larger than self ",
           self.sym_sizes(), " apart from dimension ", at);
    if (source && d < source->dim() && !expect_at_most(index.sym_sizes()[d], source->sym_sizes()[d]))
      fail("Expected index ", index.sym_sizes(), " to be no larger than self ", self.sym_sizes(),
           " apart from dimension ", at, " and to be no larger size than src ", source->sym_sizes());
  }
}

/// The gradient as a sparse tensor: an element for each of the gradient. The dimension need not be one of the tensor's.
Tensor sparse_gather_gradient(const Tensor& grad, SymIntArrayRef sizes, int64_t dim, const Tensor& index) {
  TensorOptions integers{.dtype = DType::Int64, .device = index.device()};
  auto rank = static_cast<int64_t>(sizes.size());
  check(index.dtype() == DType::Int64 || (rank > 0 && grad.dim() > 0), "indices must be an int64 tensor");
  if (rank == 0) return _sparse_coo_tensor_unsafe(zeros({0, grad.sym_numel()}, integers), grad.reshape({-1}), sizes);
  if (grad.dim() == 0) return _sparse_coo_tensor_unsafe(index.reshape({1, 1}), grad.reshape({1}), sizes);
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < rank; ++d) {
    SymInt size = grad.sym_size(d);  // too few dimensions are an IndexError
    SymShape ones(grad.sym_sizes().size(), 1);
    ones[d] = size;
    bool chosen = d == (dim < 0 ? dim + rank : dim);
    rows.push_back(chosen ? index.to(DType::Int64).reshape({-1}).expand({grad.sym_numel()})
                          : arange(Scalar(size), integers).view(ones).expand(grad.sym_sizes()).reshape({-1}));
  }
  return _sparse_coo_tensor_unsafe(stack(rows, 0), grad.reshape({-1}), sizes);
}

Tensor gather_gradient(const Tensor& grad, SymIntArrayRef sizes, int64_t dim, const Tensor& index, bool sparse) {
  if (sparse) return sparse_gather_gradient(grad, sizes, dim, index);
  return grad.new_zeros(sizes).scatter_add(dim, index, grad);
}

UMBRA_OPERATOR("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor")
    .out("gather.out")
    .meta([](const Tensor& self, int64_t dim, const Tensor& index, bool) {
      check_fits("gather", self, dim, index, nullptr);
      return TensorSpec(index.sym_sizes(), self.dtype(), common_device({&self, &index}));
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, bool) {
      kernels::gather(out, self, wrap_dim(dim, self.dim()), index);
    })
    .gradient("self", {"grad", "self.sym_sizes", "dim", "index", "sparse_grad"}, gather_gradient)
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor")
    .composite([](const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, bool sparse) {
      return gather_gradient(grad, self.sym_sizes(), dim, index, sparse);
    });

// ---- gather where the index is broadcast ----

/// What take_along_dim gathers: the tensor and the index in one shape, save along the dimension.
struct AlongDim {
  Tensor self, index;
  int64_t dim;
};
AlongDim along_dim(const Tensor& self, const Tensor& index, std::optional<int64_t> dim) {
  if (!dim) return {self.reshape({-1}), index.reshape({-1}), 0};
  check(index.dtype() == DType::Int64, "torch.take_along_dim(): dtype of indices should be Long but got ",
        kernel_name(index.dtype()));
  check(self.dim() == index.dim(),
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but got ", self.dim(),
        " dimensions for input, and ", index.dim(), " dimensions for indices");
  int64_t at = wrap_dim(*dim, self.dim());
  SymShape own(self.sym_sizes()), wanted(index.sym_sizes());
  if (self.dim() > 0) {
    own[at] = index.sym_sizes()[at];
    wanted[at] = self.sym_sizes()[at];
  }
  Tensor places = index.expand(broadcast_shapes(own, index.sym_sizes()));
  Tensor all = self.expand(broadcast_shapes(wanted, self.sym_sizes()));
  // Negative positions count from the end.
  if (self.dim() > 0) places = places.remainder(Scalar(all.sym_size(at)));
  return {all, places, at};
}

UMBRA_OPERATOR("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
    .composite([](const Tensor& self, const Tensor& index, std::optional<int64_t> dim) {
      AlongDim parts = along_dim(self, index, dim);
      return parts.self.gather(parts.dim, parts.index);
    });
UMBRA_OPERATOR("take_along_dim.out(Tensor self, Tensor indices, int? dim=None, *, Tensor(a!) out) -> Tensor(a!)")
    .composite([](const Tensor& self, const Tensor& index, std::optional<int64_t> dim, const Tensor& out) {
      AlongDim parts = along_dim(self, index, dim);
      return gather_out(out, parts.self, parts.dim, parts.index);
    })
    .tags({Tag::Out});

}  // namespace

TensorSpec scatter_spec(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_fits("scatter", self, dim, index, &src);
  check(self.dtype() == src.dtype(), "scatter(): Expected self.dtype to be equal to src.dtype");
  return TensorSpec(self.sym_sizes(), self.dtype(), common_device({&self, &index, &src}));
}

void check_scatter(const Tensor& self, int64_t dim, const Tensor& index) {
  check_fits("scatter", self, dim, index, nullptr);
}

namespace {

UMBRA_OPERATOR("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
    .inplace("scatter_.src")
    .out("scatter.src_out")
    .meta(scatter_spec)
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
      if (!out.is_same(self)) kernels::copy(out, self);
      kernels::scatter(out, wrap_dim(dim, out.dim()), index, src);
    })
    .writes_straight()
    .gradient("self", {"grad", "dim", "index"},
              [](const Tensor& grad, int64_t dim, const Tensor& index) { return grad.scatter(dim, index, Scalar(0)); })
    .gradient("src", {"grad", "dim", "index"},
              [](const Tensor& grad, int64_t dim, const Tensor& index) { return grad.gather(dim, index); })
    .linear()
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
    .inplace("scatter_.value")
    .out("scatter.value_out")
    .meta([](const Tensor& self, int64_t dim, const Tensor& index, const Scalar&) {
      check_scatter(self, dim, index);
      return TensorSpec(self.sym_sizes(), self.dtype(), common_device({&self, &index}));
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
      if (!out.is_same(self)) kernels::copy(out, self);
      if (index.numel() > 0) kernels::scatter(out, wrap_dim(dim, out.dim()), index, value);
    })
    .writes_straight()
    .gradient("self", {"grad", "dim", "index"},
              [](const Tensor& grad, int64_t dim, const Tensor& index) { return grad.scatter(dim, index, Scalar(0)); })
    .node("ScatterBackward1")
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
    .inplace("scatter_add_")
    .out("scatter_add.out")
    .meta(scatter_spec)
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
      if (!out.is_same(self)) kernels::copy(out, self);
      kernels::scatter(out, wrap_dim(dim, out.dim()), index, src, kernels::ScatterReduce::Sum);
    })
    .writes_straight()
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad; })
    .gradient("src", {"grad", "dim", "index"},
              [](const Tensor& grad, int64_t dim, const Tensor& index) { return grad.gather(dim, index); })
    .linear()
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

}  // namespace
}  // namespace umbra::ops
