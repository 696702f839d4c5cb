// Counting: histograms of numbers and points, and how often each integer is there.
#include "kernels/histogram.h"

#include <cmath>

#include "dispatch/data_dependent.h"
#include "kernels/copy.h"
#include "kernels/fits.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/list_out.h"
#include "ops/common/needs_data.h"
#include "ops/common/number_text.h"
#include "ops/common/out_asks.h"
#include "ops/common/outputs_as_given.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Ints = std::vector<int64_t>;
using Range = std::optional<std::vector<double>>;
using kernels::BinSearch;

void check_wide_floating(const char* kernel, const Tensor& self) {
  check<NotImplementedError>(self.dtype() == DType::Float32 || self.dtype() == DType::Float64, "\"", kernel,
                             "\" not implemented for '", kernel_name(self.dtype()), "'");
}

/// As messages call types here: "float", "double".
const char* spoken(DType dtype) {
  return dtype == DType::Float32 ? "float" : dtype == DType::Float64 ? "double" : kernel_name(dtype);
}

/// All numbers as points of one coordinate.
Tensor as_points(const Tensor& self) {
  Tensor row = kernels::contiguous(self);
  return alias_tensor(row, {row.sym_numel(), SymInt(1)}, {SymInt(1), SymInt(1)}, row.sym_storage_offset());
}
/// Points in rows, whatever dimensions count them.
Tensor as_rows(const Tensor& self) {
  Tensor dense = kernels::contiguous(self);
  SymInt width = self.sym_sizes().back(), count = width == 0 ? SymInt(0) : self.sym_numel() / width;
  return alias_tensor(dense, {count, width}, {width, SymInt(1)}, dense.sym_storage_offset());
}

/// One weight for each point: `self` has `points`, whatever its own dimensions.
void check_weight(const Tensor& self, SymIntArrayRef points, SymInt width, const Tensor& weight) {
  if (!weight.defined()) return;
  check(
      weight.dtype() == self.dtype(),
      "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but "
      "got input(",
      spoken(self.dtype()), "), and weight(", spoken(weight.dtype()), ")");
  SymShape all(points), have(weight.sym_sizes());
  all.push_back(width);
  bool numbers = points.size() == 1;  // any tensor of as many numbers will do
  check(
      numbers ? weight.sym_numel() == points[0] : weight.sym_sizes() == points,
      "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its "
      "innermost dimension, but got input with shape ",
      to_string(all), " and weight with shape ", numbers ? concat("[", weight.sym_numel(), "]") : to_string(have));
}
void check_counts(const Ints& bins) {
  for (size_t d = 0; d < bins.size(); ++d)
    check(bins[d] > 0, "torch.histogram(): bins must be > 0, but got ", bins[d], " for dimension ", d);
}
void check_edges(const Tensor& self, TensorList bins) {
  for (size_t d = 0; d < bins.size(); ++d) {
    check(bins[d].dtype() == self.dtype(),
          "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype ",
          spoken(self.dtype()), " and bins for dimension ", d, " with dtype ", spoken(bins[d].dtype()));
    check(bins[d].dim() == 1, "torch.histogramdd: bins tensor should have one dimension, but got ", bins[d].dim(),
          " dimensions in the bins tensor for dimension ", d);
    check(bins[d].sym_numel() > 0,
          "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
          "dimension ",
          d);
  }
}
void check_points(const Tensor& self, size_t bins) {
  check<IndexError>(self.dim() > 0 || !only_metadata_is_asked(), "tuple index out of range");
  check(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, but got ", self.dim());
  SymInt dims = self.sym_sizes().back();
  check(dims == static_cast<int64_t>(bins), "torch.histogramdd: expected ", dims, " sequences of bin edges for a ",
        dims, "-dimensional histogram but got ", bins);
}

void check_range(const Range& range, int64_t dims) {
  check(!range || static_cast<int64_t>(range->size()) == 2 * dims, "torch.histogramdd: for a ", dims,
        "-dimensional histogram range should have ", 2 * dims, " elements, but got ", range ? range->size() : 0);
}
/// The ends of the bins in each dimension: as given, or from the smallest to the largest coordinate.
std::vector<std::pair<double, double>> find_ranges(const Tensor& points, const Range& range) {
  int64_t dims = points.sizes()[1];
  std::vector<std::pair<double, double>> out(dims, {0.0, 1.0});
  if (range) {
    for (int64_t d = 0; d < dims; ++d) out[d] = {(*range)[2 * d], (*range)[2 * d + 1]};
  } else if (points.numel() > 0) {
    out = kernels::column_ranges(points);
  }
  for (int64_t d = 0; d < dims; ++d) {
    auto& [low, high] = out[d];
    check(std::isfinite(low) && std::isfinite(high), "torch.histogramdd: dimension ", d, "'s range [", low, ", ", high,
          "] is not finite");
    check(low <= high, "torch.histogramdd: min should not exceed max, but got min ", low, " max ", high,
          " for dimension ", d);
    if (low == high) low -= 0.5, high += 0.5;
  }
  return out;
}
void fill_edges(TensorList edges, const Tensor& points, const Range& range) {
  auto ranges = find_ranges(points, range);
  for (size_t d = 0; d < edges.size(); ++d) kernels::bin_edges(edges[d], ranges[d].first, ranges[d].second);
}

// ---- histogram: numbers ----

void check_result_types(const Tensor& self, const Tensor& hist, const Tensor& edges) {
  for (auto [name, out] : {std::pair("hist", &hist), {"bin_edges", &edges}})
    check(out->dtype() == self.dtype(), "torch.histogram: input tensor and ", name,
          " tensor should have the same dtype, but got input ", kernel_name(self.dtype()), " and ", name, " ",
          kernel_name(out->dtype()));
}

std::tuple<TensorSpec, TensorSpec> histogram_specs(const Tensor& self, SymInt edges, const Tensor& weight) {
  check(edges > 1, "torch.histogram(): bins must be > 0, but got ", edges - 1, " for dimension 0");
  check_wide_floating("histogramdd", self);
  check_weight(self, {self.sym_numel()}, 1, weight);
  return {TensorSpec({edges - 1}, self.dtype(), self.device()), TensorSpec({edges}, self.dtype(), self.device())};
}

UMBRA_OPERATOR(
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> "
    "(Tensor hist, Tensor bin_edges)")
    .out("histogram.bin_ct_out", {"hist", "bin_edges"})
    .use(out_asks("histogram.bin_ct_out",
                  [](const Tensor& self, int64_t, Range, const Tensor&, bool, const Tensor& hist, const Tensor& edges) {
                    check_result_types(self, hist, edges);
                  }))
    .meta([](const Tensor& self, int64_t bins, Range range, const Tensor& weight, bool) {
      check_range(range, 1);
      return histogram_specs(self, SymInt(bins) + 1, weight);
    })
    .cpu<2>([](const Tensor& hist, const Tensor& edges, const Tensor& self, int64_t, Range range, const Tensor& weight,
               bool density) {
      Tensor points = as_points(self);
      fill_edges({&edges, 1}, points, range);
      kernels::histogram(hist, points, {&edges, 1}, weight, density, BinSearch::EvenWithEdges);
    })
    .use(NeedsData{});

UMBRA_OPERATOR(
    "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, "
    "Tensor "
    "bin_edges)")
    .out("histogram.bins_tensor_out", {"hist", "bin_edges"})
    .use(out_asks("histogram.bins_tensor_out",
                  [](const Tensor& self, const Tensor&, const Tensor&, bool, const Tensor& hist, const Tensor& edges) {
                    check_result_types(self, hist, edges);
                  }))
    .meta([](const Tensor& self, const Tensor& bins, const Tensor& weight, bool) {
      check_edges(self, {&bins, 1});
      return histogram_specs(self, bins.sym_numel(), weight);
    })
    .cpu<2>([](const Tensor& hist, const Tensor& edges, const Tensor& self, const Tensor& bins, const Tensor& weight,
               bool density) {
      kernels::copy(edges, bins);
      kernels::histogram(hist, as_points(self), {&bins, 1}, weight, density, BinSearch::Edges);
    })
    .use(NeedsData{});

UMBRA_OPERATOR("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor")
    .out("histc.out")
    .meta([](const Tensor& self, int64_t bins, const Scalar&, const Scalar&) {
      check_counts({bins});
      return TensorSpec({SymInt(bins)}, self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
      double low = min.to_double(), high = max.to_double();
      Tensor points = as_points(self), edges = kernels::scratch(std::vector<int64_t>{bins + 1}, self.dtype());
      // The range of the data where none is given; one more on each side where that is a single number.
      if (low == high && self.numel() > 0) {
        auto [least, most] = self.aminmax();
        low = least.item().to_double(), high = most.item().to_double();
      }
      if (low == high) low -= 1, high += 1;
      check(std::isfinite(low) && std::isfinite(high), "torch.histc: range of [", number_text(low), ", ",
            number_text(high), "] is not finite");
      check(low < high, "torch.histc: max must be larger than min");
      bool no_bins = self.item_size() == 1 && is_floating(self.dtype());
      if (no_bins || self.dtype() == DType::Bool || self.dtype() == DType::Complex32 || is_wide_unsigned(self.dtype()))
        kernels::unsupported_dtype("linspace_cpu", self.dtype());
      for (double end : {low, high}) kernels::check_fits(end, self.dtype());
      if (!is_floating(self.dtype())) kernels::unsupported_dtype("histogram_cpu", self.dtype());
      kernels::bin_edges(edges, low, high);
      kernels::histogram(out, points, {&edges, 1}, Tensor(), false, BinSearch::Even);
    })
    .not_differentiable();

// ---- histogramdd: points ----

/// Where no range is given the kernel that finds one has its say about types before bins are looked at. On the meta
/// device a number has no last size.
void check_range_of(const Tensor& self, const Range& range) {
  check<IndexError>(!only_metadata_is_asked() || self.dim() > 0, "tuple index out of range");
  check(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  check_range(range, self.sym_sizes().back().guard_int());
  if (!range && has_elements(self) && self.numel() > 0) check_wide_floating("histogramdd", self);
}

TensorSpec grid_spec(const Tensor& self, SymShape cells, const Tensor& weight) {
  check_points(self, cells.size());
  if (has_elements(self)) check_wide_floating(self.numel() == 0 ? "histogram_cpu" : "histogramdd", self);
  if (weight.defined()) check_weight(self, self.sym_sizes().drop_back(), self.sym_sizes().back(), weight);
  return TensorSpec(cells, self.dtype(), self.device());
}
SymShape cells_between(TensorList edges) {
  SymShape out;
  for (const Tensor& e : edges) out.push_back(e.sym_numel() - 1);
  return out;
}
SymShape cells_of(const Ints& bins) {
  SymShape out;
  for (int64_t n : bins) out.push_back(n);
  return out;
}

UMBRA_OPERATOR(
    "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) "
    "-> "
    "Tensor[]")
    .meta([](const Tensor& self, Ints bins, Range range, const Tensor&, bool) {
      check_range_of(self, range);
      check_points(self, bins.size());
      check_counts(bins);
      check_range(range, static_cast<int64_t>(bins.size()));
      check_wide_floating("histogramdd", self);
      std::vector<TensorSpec> specs;
      for (int64_t n : bins) specs.emplace_back(SymShape{SymInt(n) + 1}, self.dtype(), self.device());
      return specs;
    })
    .cpu([](TensorList edges, const Tensor& self, Ints, Range range, const Tensor&, bool) {
      fill_edges(edges, as_rows(self), range);
    })
    .use(ListOut{"_histogramdd_bin_edges.out"});

UMBRA_OPERATOR(
    "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
    "density=False) "
    "-> Tensor")
    .generated_out("_histogramdd_from_bin_cts.out")
    .meta([](const Tensor& self, Ints bins, Range range, const Tensor& weight, bool) {
      check_range_of(self, range);
      check_points(self, bins.size());
      check_counts(bins);
      check_range(range, static_cast<int64_t>(bins.size()));
      return grid_spec(self, cells_of(bins), weight);
    })
    .cpu([](const Tensor& out, const Tensor& self, Ints bins, Range range, const Tensor& weight, bool density) {
      std::vector<Tensor> edges;
      for (int64_t n : bins) edges.push_back(kernels::scratch(std::vector<int64_t>{n + 1}, self.dtype()));
      Tensor points = as_rows(self);
      fill_edges(edges, points, range);
      kernels::histogram(out, points, edges, weight, density, BinSearch::EvenWithEdges);
    });

UMBRA_OPERATOR(
    "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor")
    .generated_out("_histogramdd_from_bin_tensors.out")
    .meta([](const Tensor& self, TensorList bins, const Tensor& weight, bool) {
      check_points(self, bins.size());
      check_edges(self, bins);
      return grid_spec(self, cells_between(bins), weight);
    })
    .cpu([](const Tensor& out, const Tensor& self, TensorList bins, const Tensor& weight, bool density) {
      kernels::histogram(out, as_rows(self), bins, weight, density, BinSearch::Edges);
    });

using Histogram = std::tuple<Tensor, std::vector<Tensor>>;

Histogram even_grid(const Tensor& self, const Ints& bins, const Range& range, const Tensor& weight, bool density) {
  std::optional<ArrayRef<double>> ends;
  if (range) ends = ArrayRef<double>(*range);
  std::vector<Tensor> edges = _histogramdd_bin_edges(self, bins, ends, weight, density);
  return {_histogramdd_from_bin_cts(self, bins, ends, weight, density), edges};
}

UMBRA_OPERATOR(
    "histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor "
    "hist, "
    "Tensor[] bin_edges)")
    .composite([](const Tensor& self, Ints bins, Range range, const Tensor& weight, bool density) {
      return even_grid(self, bins, range, weight, density);
    });
UMBRA_OPERATOR(
    "histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> "
    "(Tensor "
    "hist, Tensor[] bin_edges)")
    .composite([](const Tensor& self, int64_t bins, Range range, const Tensor& weight, bool density) {
      self.sym_size(-1);  // a number is an IndexError
      check(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
      return even_grid(self, Ints(self.size(-1), bins), range, weight, density);
    });
UMBRA_OPERATOR(
    "histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool "
    "density=False) -> (Tensor hist, Tensor[] bin_edges)")
    .composite([](const Tensor& self, TensorList bins, Range, const Tensor& weight, bool density) -> Histogram {
      return {_histogramdd_from_bin_tensors(self, bins, weight, density), bins.vec()};
    });

// ---- how often each integer is there ----

DType count_dtype(const Tensor& self, const Tensor& weights) {
  bool counts = !weights.defined() || (self.dim() == 1 && equal_or(self.sym_numel(), 0, false));
  return counts ? DType::Int64 : weights.dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
}
void check_bincount(const Tensor& self, const Tensor& weights, SymInt minlength) {
  check<NotImplementedError>(is_integral(self.dtype(), false) && !is_wide_unsigned(self.dtype()),
                             "\"bincount_cpu\" not implemented for '", kernel_name(self.dtype()), "'");
  check(minlength >= 0, "minlength should be >= 0");
  check(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  check(!weights.defined() || (weights.dim() == 1 && expect_equal(weights.sym_numel(), self.sym_numel())),
        "weights should be 1-d and have the same length as input");
}

UMBRA_OPERATOR("bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor")
    .generated_out("bincount.out")
    .use(OutputsAsGiven{})
    .real([](const Tensor& self, const Tensor& weights, SymInt minlength) {
      check_bincount(self, weights, minlength);
      int64_t length = minlength.guard_int();
      if (self.numel() > 0) {
        auto [low, high] = kernels::range_of(self);
        check(low >= 0, "bincount only supports 1-d non-negative integral inputs.");
        length = std::max(length, high + 1);
      }
      Tensor out = zeros({length}, {.dtype = count_dtype(self, weights)});
      bool weighted = weights.defined() && self.numel() > 0;
      kernels::bin_count(out, self, weighted && weights.is_complex() ? real(weights) : weighted ? weights : Tensor());
      return out;
    })
    .fake([](const Tensor& self, const Tensor& weights, SymInt minlength) {
      check_bincount(self, weights, minlength);
      SymInt length = unknown_size("aten::bincount", INT64_MAX);
      return empty({length}, {.dtype = count_dtype(self, weights), .device = self.device()});
    })
    .tags({Tag::DynamicOutputShape})
    .use(BatchOneByOne{})
    .use(NeedsData{});

}  // namespace
}  // namespace umbra::ops
