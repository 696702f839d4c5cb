// Quantiles, with and without numbers that are none.
#include "kernels/copy.h"
#include "kernels/order_statistics.h"
#include "ops/common/batching.h"
#include "ops/common/may_read.h"
#include "ops/common/number_text.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/reduce/reduced_shape.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

enum class Between { Linear, Lower, Higher, Midpoint, Nearest };

Between between_from(const char* name, const std::string& word) {
  if (word == "linear") return Between::Linear;
  if (word == "lower") return Between::Lower;
  if (word == "higher") return Between::Higher;
  if (word == "midpoint") return Between::Midpoint;
  if (word == "nearest") return Between::Nearest;
  fail(name, "() interpolation must be one of linear, lower, higher, midpoint or nearest, but got ", word);
}

void check_quantile(const char* name, const Tensor& self, const Tensor& q) {
  check(expect_less(0, self.sym_numel()), name, "() input tensor must be non-empty");
  check(q.dim() <= 1, name, "() q must be a scalar or 1D tensor");
  check(self.dtype() == DType::Float32 || self.dtype() == DType::Float64, name,
        "() input tensor must be either float or double dtype");
  check(q.dtype() == self.dtype(), name, "() q tensor must be same dtype as the input tensor");
  if (!q.storage()->has_data() || q.device() != Device()) return;
  Tensor exact = kernels::contiguous(kernels::cast(q, DType::Float64));
  for (int64_t i = 0; i < exact.numel(); ++i) {
    double each = exact.data<double>()[i];
    check(each >= 0 && each <= 1, name, "() q values must be in the range [0, 1]");
  }
}

/// The elements to choose from in the last dimension, the others as the result has them.
Tensor rows_of(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  SymShape shape;
  Tensor rows;
  if (!dim) {
    if (keepdim) shape = SymShape(static_cast<size_t>(self.dim()), SymInt(1));
    rows = self.flatten();
  } else {
    int64_t d = wrap_dim(*dim, self.dim());
    for (int64_t i = 0; i < self.dim(); ++i)
      if (i != d) shape.push_back(self.sym_sizes()[i]);
      else if (keepdim) shape.push_back(1);
    rows = d == self.dim() - 1 ? self : self.unsqueeze(-1).transpose(d, -1);
  }
  shape.push_back(rows.sym_sizes()[rows.dim() - 1]);
  return rows.reshape(shape);
}

/// Where the quantiles lie in the sorted rows, as numbers with fractions.
Tensor ranks_in(const Tensor& rows, const Tensor& q, bool ignore_nan) {
  if (ignore_nan) {
    Tensor last = rows.isnan().logical_not_().sum({-1}, true).sub(1), ranks = q.to(DType::Float64).mul(last);
    return ranks.masked_fill_(ranks.lt(0), 0);
  }
  Tensor exact = q.to(DType::Float64);
  SymInt last = rows.sym_sizes()[rows.dim() - 1] - 1;
  // A row with a NaN ends in one, and it is the answer.
  std::vector<Tensor> both = broadcast_tensors({exact.mul(Scalar(last)), rows.isnan().any(-1, true)});
  return masked_fill(both[0], both[1], Scalar(last));
}

/// Values lie in the last dimension of what was computed, and belong in front where there are several.
enum class Moving { InPlace, AsViews };

Tensor moved_in_front(Tensor values, bool several, Moving how) {
  if (how == Moving::AsViews) {
    if (several) values = values.unsqueeze(0).transpose(0, -1);
    return values.squeeze(-1);
  }
  if (several) values = values.unsqueeze_(0).transpose_(0, -1);
  return values.squeeze_(-1);
}

/// The elements at these places of each sorted row.
Tensor at_ranks(const Tensor& rows, const Tensor& ranks) {
  if (!values_alone(rows)) return std::get<0>(rows.sort()).gather(-1, ranks);
  Tensor out = kernels::scratch(ranks.sizes(), rows.dtype());
  kernels::elements_at_ranks(out, rows, ranks);
  return out;
}

/// The elements at two places of each sorted row.
std::pair<Tensor, Tensor> at_two_ranks(const Tensor& rows, const Tensor& below, const Tensor& above) {
  if (values_alone(rows)) {
    int64_t count = below.size(-1);
    Tensor both = at_ranks(rows, cat({below, above}, -1));
    return {both.narrow(-1, 0, count).contiguous(), both.narrow(-1, count, count)};
  }
  Tensor sorted = std::get<0>(rows.sort());
  return {sorted.gather(-1, below), sorted.gather(-1, above)};
}

Tensor quantile_of(const char* name, const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   const std::string& interpolation, bool ignore_nan, Moving how = Moving::InPlace) {
  check_quantile(name, self, q);
  Between between = between_from(name, interpolation);
  Tensor rows = rows_of(self, dim, keepdim), ranks = ranks_in(rows, q, ignore_nan);
  if (between == Between::Lower) ranks = ranks.floor_();
  else if (between == Between::Higher) ranks = ranks.ceil_();
  else if (between == Between::Nearest) ranks = ranks.round_();
  Tensor below = ranks.to(DType::Int64), values;
  if (between == Between::Linear || between == Between::Midpoint) {
    Tensor weights = between == Between::Midpoint ? full_like(ranks, 0.5, {.dtype = self.dtype()})
                                                  : ranks.sub(below).to(self.dtype());
    auto [low, high] = at_two_ranks(rows, below, ranks.ceil_().to(DType::Int64));
    values = low.lerp_(high, weights);
  } else {
    values = at_ranks(rows, below);
  }
  return moved_in_front(values, q.dim() > 0, how);
}

/// vmap has no changes of metadata in place.
template <bool ignore_nan>
Tensor quantile_under_vmap(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                           const std::string& interpolation) {
  return quantile_of(ignore_nan ? "nanquantile" : "quantile", self, q, dim, keepdim, interpolation, ignore_nan,
                     Moving::AsViews);
}
template <bool ignore_nan>
Tensor one_quantile_under_vmap(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                               const std::string& interpolation) {
  return quantile_under_vmap<ignore_nan>(self, scalar_tensor(q, self.options()), dim, keepdim, interpolation);
}

Tensor as_tensor(double q, const Tensor& self) { return scalar_tensor(q, self.options()); }
void check_one(const char* name, double q) {
  check(q >= 0 && q <= 1, name, "() q must be in the range [0, 1] but got ", number_text(q));
}

/// What out variants ask of their output; `Q` is a tensor or a number.
template <class Q> auto same_type_out(const char* variant) {
  return out_asks(
      variant, [](const Tensor& self, const Q&, std::optional<int64_t>, bool, const std::string&, const Tensor& out) {
        check(self.dtype() == out.dtype(), "quantile() out tensor must be same dtype as the input tensor");
      });
}

UMBRA_OPERATOR(
    "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor")
    .out("quantile.out")
    .use(same_type_out<Tensor>("quantile.out"))
    .composite([](const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                  const std::string& interpolation) {
      return quantile_of("quantile", self, q, dim, keepdim, interpolation, false);
    })
    .use(batch_through(quantile_under_vmap<false>))
    .use(OutCopied{});
UMBRA_OPERATOR(
    "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> "
    "Tensor")
    .out("quantile.scalar_out")
    .use(same_type_out<double>("quantile.scalar_out"))
    .composite([](const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                  const std::string& interpolation) {
      check_one("quantile", q);
      return quantile_of("quantile", self, as_tensor(q, self), dim, keepdim, interpolation, false);
    })
    .use(batch_through(one_quantile_under_vmap<false>))
    .use(OutCopied{});
UMBRA_OPERATOR(
    "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor")
    .out("nanquantile.out")
    .use(same_type_out<Tensor>("nanquantile.out"))
    .composite([](const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                  const std::string& interpolation) {
      return quantile_of("nanquantile", self, q, dim, keepdim, interpolation, true);
    })
    .use(batch_through(quantile_under_vmap<true>))
    .use(OutCopied{});
UMBRA_OPERATOR(
    "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> "
    "Tensor")
    .out("nanquantile.scalar_out")
    .use(same_type_out<double>("nanquantile.scalar_out"))
    .composite([](const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                  const std::string& interpolation) {
      check_one("nanquantile", q);
      return quantile_of("nanquantile", self, as_tensor(q, self), dim, keepdim, interpolation, true);
    })
    .use(batch_through(one_quantile_under_vmap<true>))
    .use(OutCopied{});

}  // namespace
}  // namespace umbra::ops
