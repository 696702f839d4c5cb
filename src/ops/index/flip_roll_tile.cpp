// The same elements elsewhere: flip, roll, rot90, repeat.
#include "kernels/concatenate.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Ints = std::vector<int64_t>;
constexpr int64_t kLowestShift = -(int64_t{1} << 62);

Ints wrap_all(const Ints& dims, int64_t rank) {
  dim_mask(dims, rank, false);
  if (rank == 0) return {};  // a single number looks the same from every side
  Ints out;
  for (int64_t d : dims) out.push_back(wrap_dim(d, rank));
  return out;
}

UMBRA_OPERATOR("flip(Tensor self, int[] dims) -> Tensor")
    .generated_out("flip.out")
    .meta([](const Tensor& self, Ints dims) {
      if (only_metadata_is_asked())  // dimensions are looked at before repetitions
        for (int64_t d : dims) wrap_dim(d, self.dim());
      wrap_all(dims, self.dim());
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor& self, Ints dims) { kernels::flip(out, self, wrap_all(dims, self.dim())); })
    .gradient("self", {"grad", "dims"}, [](const Tensor& grad, Ints dims) { return grad.flip(dims); })
    .linear()
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dims"}});

UMBRA_OPERATOR("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor")
    .generated_out("roll.out")
    .meta([](const Tensor& self, SymIntArrayRef shifts, Ints dims) {
      bool meta = self.is_meta() && !self.is_fake();
      if (meta)  // dimensions are looked at before they are paired with shifts
        for (int64_t d : dims) wrap_dim(d, self.dim(), false);
      if (meta && self.sym_numel().same(0)) return spec_like(self);
      check(!shifts.empty(), "`shifts` required");
      // A list holds numbers from -2^62 on: which one a lower one was is not known here, and PyTorch takes none either.
      for (SymInt shift : shifts) check(!shift.same(kLowestShift), "roll(): a shift of -2^62 or less is not supported");
      check(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
            "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
      SymInt count = self.sym_numel();
      if (!dims.empty() && !count.is_symbolic() && count.value() == 0) return spec_like(self);
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, SymIntArrayRef shifts, Ints dims) {
      if (out.numel() == 0) return;  // whatever the dimensions
      for (int64_t& d : dims) d = wrap_dim(d, self.dim());
      kernels::roll(out, self, guard_ints(shifts), dims);
    })
    .gradient("self", {"grad", "shifts", "dims"},
              [](const Tensor& grad, std::vector<SymInt> shifts, Ints dims) {
                for (SymInt& s : shifts) s = -s;
                return grad.roll(shifts, dims);
              })
    .linear()
    .batch([](const Batched& self, SymIntArrayRef shifts, std::vector<int64_t> dims) {
      Tensor value = batch_first(self);
      if (dims.empty()) return Batched(roll(batch_flat(self), shifts, IntArrayRef{1}).reshape(value.sym_sizes()), 0);
      for (int64_t& d : dims) d = wrap_dim(d, self.rank()) + 1;
      return Batched(roll(value, shifts, dims), 0);
    });

UMBRA_OPERATOR("repeat(Tensor self, SymInt[] repeats) -> Tensor")
    .generated_out("repeat.out")
    .all_backends([](const Tensor& self, SymIntArrayRef repeats) {
      int64_t lead = static_cast<int64_t>(repeats.size()) - self.dim();
      check(lead >= 0, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
      // Each dimension becomes a pair, the first of which is expanded; joined again they are the repetition.
      SymShape apart, wide, joined;
      for (size_t d = 0; d < repeats.size(); ++d) {
        SymInt size = static_cast<int64_t>(d) < lead ? SymInt(1) : self.sym_sizes()[d - static_cast<size_t>(lead)];
        SymInt times = size.same(0) && has_elements(self) ? SymInt(1) : repeats[d];  // nothing, however often
        apart.push_back(1);
        apart.push_back(size);
        wide.push_back(times);
        wide.push_back(size);
        joined.push_back(times * size);
      }
      for (size_t d = 0; d < repeats.size(); ++d)
        if (!expect_size(wide[2 * d]))
          fail("Trying to create tensor with negative dimension ", joined[d], ": ", to_string(joined));
      Tensor parts = self.reshape(apart).expand(wide);
      return parts.clone(MemoryFormat::Contiguous).view(joined);
    })
    .gradient("self", {"grad", "repeats", "self.sym_sizes"},
              [](const Tensor& grad, std::vector<SymInt> repeats, SymIntArrayRef sizes) {
                if (equal_or(grad.sym_numel(), 0, false)) return grad.new_zeros(sizes);
                SymShape wide;
                Ints copies;
                size_t lead = repeats.size() - sizes.size();
                for (size_t d = 0; d < repeats.size(); ++d) {
                  copies.push_back(static_cast<int64_t>(wide.size()));
                  wide.push_back(repeats[d]);
                  if (d >= lead) wide.push_back(sizes[d - lead]);
                }
                return copies.empty() ? grad : grad.reshape(wide).sum(IntArrayRef(copies));
              })
    .linear()
    .tags({Tag::Core})
    .batch([](const Batched& self, SymIntArrayRef repeats) {
      check(static_cast<int64_t>(repeats.size()) >= self.rank(),
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
      SymShape times{1};
      for (SymInt r : repeats) times.push_back(r);
      return Batched(repeat(batch_first(self, static_cast<int64_t>(repeats.size())), times), 0);
    });

UMBRA_OPERATOR("tile(Tensor self, SymInt[] dims) -> Tensor").composite([](const Tensor& self, SymIntArrayRef dims) {
  SymShape times;
  for (int64_t d = static_cast<int64_t>(dims.size()); d < self.dim(); ++d) times.push_back(1);
  for (SymInt n : dims) times.push_back(n);
  return self.repeat(times);
});

UMBRA_OPERATOR("fliplr(Tensor self) -> Tensor").composite([](const Tensor& self) {
  check(self.dim() >= 2, "Input must be >= 2-d.");
  return self.flip({1});
});
UMBRA_OPERATOR("flipud(Tensor self) -> Tensor").composite([](const Tensor& self) {
  check(self.dim() >= 1, "Input must be >= 1-d.");
  return self.flip({0});
});

UMBRA_OPERATOR("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor")
    .generated_out("rot90.out")
    .all_backends([](const Tensor& self, int64_t k, Ints dims) {
      check(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
      check(self.dim() >= 2, "expected total dims >= 2, but got total dims = ", self.dim());
      int64_t a = wrap_dim(dims[0], self.dim()), b = wrap_dim(dims[1], self.dim());
      check(a != b, "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
      switch ((k % 4 + 4) % 4) {
        case 1: return self.flip({b}).transpose_(a, b);
        case 2: return self.flip(dims);
        case 3: return self.flip({a}).transpose_(a, b);
        default: return self.clone(MemoryFormat::Contiguous);
      }
    })
    .gradient("self", {"grad", "k", "dims"},
              [](const Tensor& grad, int64_t k, Ints dims) { return grad.rot90(-k, dims); })
    .linear()
    .use(BatchInFront{.dims = {"dims"}});

}  // namespace
}  // namespace umbra::ops
