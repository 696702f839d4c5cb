// Differences and sums of neighbours along a dimension: diff, gradient, the trapezoidal rule.
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Ints = std::vector<int64_t>;
using Tensors = std::vector<Tensor>;
using OptionalInt = std::optional<int64_t>;

// ---- diff ----

void check_joins(const Tensor& self, int64_t given, const Tensor& other) {
  if (!other.defined()) return;
  check(other.dim() == self.dim(), "diff expects prepend or append to be the same dimension as input");
  int64_t dim = wrap_dim(given, self.dim());
  for (int64_t d = 0; d < self.dim(); ++d)
    check(d == dim || self.sym_size(d) == other.sym_size(d),
          "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
          "dimension; input.size(",
          d, ") = ", self.sym_size(d), ", but got tensor.size(", d, ") = ", other.sym_size(d));
}

/// What differences are taken of.
Tensor diff_input(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  check(self.dim() >= 1, "diff expects input to be at least one-dimensional");
  check(n >= 0, "order must be non-negative but got ", n);
  check_joins(self, dim, prepend);
  check_joins(self, dim, append);
  if (n == 0 || (!prepend.defined() && !append.defined())) return self;
  Tensors parts;
  for (const Tensor& t : {prepend, self, append})
    if (t.defined()) parts.push_back(t);
  return cat(parts, dim);
}

/// How often there is something to subtract.
int64_t diff_times(const Tensor& input, int64_t n, int64_t dim) {
  SymInt size = input.sym_size(dim);
  return size < n ? size.guard_int() : n;
}

struct Neighbours {
  Tensor later, earlier;
  Neighbours(const Tensor& t, int64_t dim) {
    SymInt length = t.sym_size(dim) - 1;
    later = t.narrow(dim, 1, length);
    earlier = t.narrow(dim, 0, length);
  }
};

UMBRA_OPERATOR("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor")
    .composite([](const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
      Tensor input = diff_input(self, n, dim, prepend, append);
      if (n == 0) return zeros_like(input).copy_(input);
      for (int64_t i = 0, times = diff_times(input, n, dim); i < times; ++i) {
        Neighbours pair(input, dim);
        input = input.dtype() == DType::Bool ? pair.later.logical_xor(pair.earlier) : pair.later.sub(pair.earlier);
      }
      return input;
    });
UMBRA_OPERATOR(
    "diff.out(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None, *, Tensor(a!) out) -> "
    "Tensor(a!)")
    .composite([](const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append,
                  const Tensor& out) {
      Tensor input = diff_input(self, n, dim, prepend, append);
      int64_t times = n == 0 ? 0 : diff_times(input, n, dim);
      if (times == 0) {
        if (!(out.sym_sizes() == input.sym_sizes())) out.resize_(input.sym_sizes());
        return out.copy_(input);
      }
      bool truth = input.dtype() == DType::Bool;
      for (int64_t i = 0; i + 1 < times; ++i) {
        Neighbours pair(input, dim);
        input = truth ? pair.later.logical_xor(pair.earlier) : pair.later.sub(pair.earlier);
      }
      Neighbours pair(input, dim);
      return truth ? logical_xor_out(out, pair.later, pair.earlier) : sub_out(out, pair.later, pair.earlier);
    })
    .tags({Tag::Out});

// ---- gradient ----

Tensor between(const Tensor& t, int64_t dim, int64_t from, std::optional<int64_t> to = {}) {
  return t.slice(dim, SymInt(from), to ? std::optional<SymInt>(SymInt(*to)) : std::nullopt);
}

void check_gradient(const Tensor& self, size_t spacings, const Ints& dims, int64_t edge_order) {
  check<NotImplementedError>(self.dtype() != DType::UInt8, "torch.gradient does not support uint8 input.");
  check(
      spacings == dims.size(),
      "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same "
      "length, but got a spacing argument of length ",
      spacings, " and a dim argument of length ", dims.size());
  check(edge_order == 1 || edge_order == 2, "torch.gradient only supports edge_order=1 and edge_order=2.");
  dim_mask(dims, self.dim(), false);
  for (int64_t d : dims)
    check(self.sym_size(d) > edge_order, "torch.gradient expected each dimension size to be at least edge_order+1");
}

Tensor with_edges(const Tensor& first, const Tensor& center, const Tensor& last, int64_t dim) {
  return cat({first, center, last}, dim);
}

/// Even steps. In the order in which operands are computed here, later ones come first: graphs show it so.
Tensor even_gradient(const Tensor& self, int64_t dim, const Scalar& step, int64_t edge_order) {
  Tensor center = between(self, dim, 2).sub(between(self, dim, 0, -2)).div(step), first, last;
  if (edge_order == 1) {
    first = between(self, dim, 1, 2).sub(between(self, dim, 0, 1)).div(step);
    last = between(self, dim, -1).sub(between(self, dim, -2, -1)).div(step);
  } else {
    Tensor a = between(self, dim, 0, 1).mul(-1.5), b = between(self, dim, 1, 2).mul(2),
           c = between(self, dim, 2, 3).mul(0.5);
    first = a.add(b).sub(c).div(step);
    a = between(self, dim, -3, -2).mul(0.5), b = between(self, dim, -2, -1).mul(2), c = between(self, dim, -1).mul(1.5);
    last = a.sub(b).add(c).div(step);
  }
  return with_edges(first, center.div(2), last, dim);
}

/// A weight, and the part of a dimension that it is for.
struct Term {
  Tensor weight;
  int64_t from;
  std::optional<int64_t> to;
};
Tensor weighted(const Tensor& self, int64_t dim, const Term& a, const Term& b, const Term& c) {
  Tensor third = c.weight.mul(between(self, dim, c.from, c.to));
  Tensor second = b.weight.mul(between(self, dim, b.from, b.to));
  return a.weight.mul(between(self, dim, a.from, a.to)).add(second).add(third);
}

/// The weights of a parabola through three points, differentiated at the nearest: it and the next are `steps[0]` apart,
/// counted from the edge.
struct EdgeWeights {
  const Tensor& steps;
  bool at_end;

  Tensor step(int64_t i) const { return steps.select(0, at_end ? -1 - i : i); }
  Tensor sum() const {
    Tensor second = step(1);
    return step(0).add(second);
  }
  Tensor over(const Tensor& top, bool positive, const Tensor& below) const {
    return (positive ? top : top.neg()).div(below);
  }
  Tensor near() const {
    Tensor both = sum(), below = step(0).mul(both), second = step(1);
    return over(step(0).mul(2).add(second), at_end, below);
  }
  Tensor middle() const {
    Tensor second = step(1), below = step(0).mul(second);
    return over(sum(), !at_end, below);
  }
  Tensor far() const {
    Tensor both = sum(), below = step(1).mul(both);
    return over(step(0), at_end, below);
  }
};
Tensor steep_start(const Tensor& self, int64_t dim, const Tensor& steps) {
  EdgeWeights weights{steps, false};
  Tensor near = weights.near(), middle = weights.middle(), far = weights.far();
  return weighted(self, dim, {near, 0, 1}, {middle, 1, 2}, {far, 2, 3});
}
Tensor steep_end(const Tensor& self, int64_t dim, const Tensor& steps) {
  EdgeWeights weights{steps, true};
  Tensor far = weights.far(), middle = weights.middle(), near = weights.near();
  return weighted(self, dim, {far, -3, -2}, {middle, -2, -1}, {near, -1, {}});
}

/// Steps of any length, between given coordinates.
Tensor uneven_gradient(const Tensor& self, int64_t dim, const Tensor& coordinates, int64_t edge_order) {
  SymShape shape(self.sym_sizes().size(), 1);
  shape[dim] = -1;
  Tensor steps = coordinates.diff(1, 0), before = between(steps, 0, 0, -1), behind = between(steps, 0, 1);
  Tensor below = before.mul(before.add(behind));
  Tensor a = behind.neg().div(below).reshape(shape);
  below = before.mul(behind);
  Tensor b = behind.sub(before).div(below).reshape(shape);
  below = behind.mul(before.add(behind));
  Tensor c = before.div(below).reshape(shape);
  Tensor center = weighted(self, dim, {a, 0, -2}, {b, 1, -1}, {c, 2, {}});
  if (edge_order == 2) {
    Tensor start = steep_start(self, dim, steps);
    return with_edges(start, center, steep_end(self, dim, steps), dim);
  }
  Tensor first_step = steps.select(0, 0);
  Tensor first = between(self, dim, 1, 2).sub(between(self, dim, 0, 1)).div(first_step);
  Tensor last_step = steps.select(0, -1);
  Tensor last = between(self, dim, -1).sub(between(self, dim, -2, -1)).div(last_step);
  return with_edges(first, center, last, dim);
}

Ints all_dims_or(const Tensor& self, OptionalInt dim) {
  if (dim) return {*dim};
  Ints dims;
  for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  return dims;
}
Tensors even_gradients(const Tensor& self, const std::vector<Scalar>& steps, const Ints& dims, int64_t edge_order) {
  check_gradient(self, steps.size(), dims, edge_order);
  Tensors out;
  for (size_t i = 0; i < dims.size(); ++i)
    out.push_back(even_gradient(self, wrap_dim(dims[i], self.dim()), steps[i], edge_order));
  return out;
}
Tensors uneven_gradients(const Tensor& self, TensorList spacing, const Ints& dims, int64_t edge_order) {
  check_gradient(self, spacing.size(), dims, edge_order);
  for (size_t i = 0; i < dims.size(); ++i) {
    check(spacing[i].dim() == 1,
          "torch.gradient expected each element of spacing to have one dimension, but got an "
          "element with ",
          spacing[i].dim(), " dimensions!");
    check(spacing[i].device() == self.device(),
          "torch.gradient expected each tensor to be on the same device, but got devices ", spacing[i].device(),
          " and ", self.device(), "!");
  }
  Tensors out;
  for (size_t i = 0; i < dims.size(); ++i)
    out.push_back(uneven_gradient(self, wrap_dim(dims[i], self.dim()), spacing[i], edge_order));
  return out;
}
std::vector<Scalar> scalars(const Value& list) {
  std::vector<Scalar> out;
  for (const Value& v : list.list()) out.push_back(v.to_scalar());
  return out;
}

UMBRA_OPERATOR("gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]")
    .composite([](const Tensor& self, std::optional<Scalar> spacing, OptionalInt dim, int64_t edge_order) {
      Ints dims = all_dims_or(self, dim);
      return even_gradients(self, std::vector<Scalar>(dims.size(), spacing.value_or(Scalar(1))), dims, edge_order);
    });
UMBRA_OPERATOR("gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]")
    .composite([](const Tensor& self, const Scalar& spacing, Ints dims, int64_t edge_order) {
      return even_gradients(self, std::vector<Scalar>(dims.size(), spacing), dims, edge_order);
    });
UMBRA_OPERATOR("gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]")
    .composite([](const Tensor& self, Ints dims, int64_t edge_order) {
      return even_gradients(self, std::vector<Scalar>(dims.size(), Scalar(1)), dims, edge_order);
    });
UMBRA_OPERATOR("gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]")
    .composite([](const Tensor& self, const Value& spacing, OptionalInt dim, int64_t edge_order) {
      return even_gradients(self, scalars(spacing), all_dims_or(self, dim), edge_order);
    });
UMBRA_OPERATOR("gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]")
    .composite([](const Tensor& self, const Value& spacing, Ints dims, int64_t edge_order) {
      return even_gradients(self, scalars(spacing), dims, edge_order);
    });
UMBRA_OPERATOR("gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]")
    .composite([](const Tensor& self, TensorList spacing, OptionalInt dim, int64_t edge_order) {
      return uneven_gradients(self, spacing, all_dims_or(self, dim), edge_order);
    });
UMBRA_OPERATOR("gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]")
    .composite(uneven_gradients);

// ---- the trapezoidal rule ----

/// Zeros in the shape without the dimension: the integral over nothing.
Tensor zeros_without(const Tensor& y, int64_t dim) {
  SymShape sizes(y.sym_sizes());
  sizes.erase(wrap_dim(dim, y.dim()));
  return zeros(sizes, y.options());
}
void check_integrand(const char* name, const Tensor& y) {
  check<NotImplementedError>(y.dtype() != DType::Bool, name,
                             ": received a bool input for `y`, but bool is not supported");
}
void check_step(const char* name, const Scalar& dx) {
  check(!dx.is_complex() && !dx.is_bool(), name, ": Currently, we only support dx as a real number.");
}
Tensor neighbour_sums(const Tensor& y, int64_t dim) {
  Tensor left = between(y, dim, 0, -1), right = between(y, dim, 1);
  return left.add(right);
}
/// The steps between coordinates, seen at the shape of y.
Tensor coordinate_steps(const char* name, const Tensor& y, const Tensor& x, int64_t dim) {
  check<NotImplementedError>(y.dtype() != DType::Bool && x.dtype() != DType::Bool, name,
                             ": received a bool input for `x` or `y`, but bool is not supported");
  Tensor wide = x;
  if (x.dim() == 1) {
    check(x.sym_size(0) == y.sym_size(dim), name, ": There must be one `x` value for each sample point");
    SymShape sizes(y.sym_sizes().size(), 1);
    sizes[wrap_dim(dim, y.dim())] = x.sym_size(0);
    wide = x.view(sizes);
  } else if (x.dim() < y.dim()) {
    SymShape sizes(y.sym_sizes().size() - x.sym_sizes().size(), 1);
    for (SymInt s : x.sym_sizes()) sizes.push_back(s);
    wide = x.view(sizes);
  }
  Tensor left = between(wide, dim, 0, -1), right = between(wide, dim, 1);
  return right.sub(left);
}

Tensor trapezoid_even(const Tensor& y, const Scalar& dx, int64_t dim) {
  if (y.sym_size(dim) == 0) return zeros_without(y, dim);
  check_integrand("trapezoid", y);
  check_step("trapezoid", dx);
  Tensor ends = y.select(dim, 0).add(y.select(dim, -1)).mul(0.5);
  return y.sum(IntArrayRef{dim}).sub(ends).mul(dx);
}
Tensor trapezoid_uneven(const Tensor& y, const Tensor& x, int64_t given) {
  int64_t dim = wrap_dim(given, y.dim());
  if (y.sym_size(dim) == 0) return zeros_without(y, dim);
  Tensor steps = coordinate_steps("trapezoid", y, x, dim);
  return neighbour_sums(y, dim).mul(steps).sum(IntArrayRef{dim}).div(2.0);
}

UMBRA_OPERATOR("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor").composite(trapezoid_even);
UMBRA_OPERATOR("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor").composite(trapezoid_uneven);
UMBRA_OPERATOR("trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor")
    .composite([](const Tensor& y, double dx, int64_t dim) { return trapezoid_even(y, Scalar(dx), dim); });
UMBRA_OPERATOR("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor").composite(trapezoid_uneven);

UMBRA_OPERATOR("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor")
    .composite([](const Tensor& y, const Scalar& dx, int64_t dim) {
      check_integrand("cumulative_trapezoid", y);
      check_step("cumulative_trapezoid", dx);
      return neighbour_sums(y, dim).mul(Scalar(dx.to_double() / 2)).cumsum(dim);
    });
UMBRA_OPERATOR("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
    .composite([](const Tensor& y, const Tensor& x, int64_t given) {
      int64_t dim = wrap_dim(given, y.dim());
      Tensor steps = coordinate_steps("cumulative_trapezoid", y, x, dim);
      return neighbour_sums(y, dim).mul(steps).cumsum(dim).div(2.0);
    });

}  // namespace
}  // namespace umbra::ops
