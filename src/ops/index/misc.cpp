// What belongs to no family: one_hot, hashes, casts by name, and helpers of PyTorch's own.
#include <functional>
#include <numeric>

#include "core/stored_types.h"
#include "dispatch/data_dependent.h"
#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/factory_arguments.h"
#include "ops/common/out_asks.h"
#include "ops/common/unbacked.h"
#include "ops/reduce/reduced_shape.h"
#include "ops/sparse/arithmetic.h"

namespace umbra::ops {
namespace {

// ---- one_hot ----

/// Without data the run checks the classes; how many there are has to be said.
Tensor one_hot_without_data(const Tensor& self, int64_t classes) {
  _assert_async(self.ge(0).all(), "one_hot: Class values must be non-negative.");
  _assert_async(self.lt(classes).all(), "one_hot: Class values must be smaller than num_classes.");
  Tensor column = self.unsqueeze(-1);
  return column.eq(arange(Scalar(classes), {.dtype = DType::Int64, .device = self.device(), .pin_memory = false}))
      .to(DType::Int64);
}

UMBRA_OPERATOR("one_hot(Tensor self, int num_classes=-1) -> Tensor")
    .composite([](const Tensor& self, int64_t classes) {
      check(self.dtype() == DType::Int64, "one_hot is only applicable to index tensor of type LongTensor.");
      SymShape sizes(self.sym_sizes());
      if (equal_or(self.sym_numel(), 0, false)) {
        check(classes > 0, "Can not infer total number of classes from empty tensor.");
        sizes.push_back(classes);
        return empty(sizes, self.options());
      }
      bool with_data = !self.is_fake() && !self.is_meta() && self.storage()->has_data();
      if (!with_data && classes >= 0) return one_hot_without_data(self, classes);
      auto [low, high] = aminmax(self);
      check(low.item().to_sym_int() >= 0, "Class values must be non-negative.");
      SymInt count = high.item().to_sym_int() + 1;
      check(classes == -1 || count <= classes, "Class values must be smaller than num_classes.");
      sizes.push_back(classes == -1 ? count : SymInt(classes));
      return zeros(sizes, self.options()).scatter_(-1, self.unsqueeze(-1), Scalar(1));
    })
    .tags({Tag::DynamicOutputShape});

// ---- hash_tensor: the bits of all elements, as 64-bit numbers, joined by exclusive or ----

UMBRA_OPERATOR("hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor")
    .out("hash_tensor.out")
    .use(out_asks("hash_tensor.out",
                  [](const Tensor&, std::vector<int64_t>, bool, int64_t, const Tensor& out) {
                    check(out.dtype() == DType::UInt64, "Expected result to be of dtype uint64, but got ",
                          kernel_name(out.dtype()));
                  }))
    .meta([](const Tensor& self, std::vector<int64_t> dims, bool keepdim, int64_t mode) {
      check(
          !dims.empty() || self.sym_numel().is_symbolic() || self.sym_numel().value() != 0,
          "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
          "the 'dim' argument.");
      for (int64_t d : dims) {  // before one is found twice
        int64_t at = wrap_dim(d, self.dim());
        check<IndexError>(self.dim() == 0 || !self.sym_sizes()[at].same(0), "hash_tensor: Expected reduction dim ", d,
                          " to have non-zero size.");
      }
      uint64_t mask = dim_mask(dims, self.dim());
      check(static_cast<int32_t>(mode) == 0 || only_metadata_is_asked(), "Unknown hash_tensor mode: ", mode);
      check<NotImplementedError>(!self.is_complex() && !is_float8(self.dtype()) && !is_wide_unsigned(self.dtype()),
                                 "\"xor_sum_cpu\" not implemented for '", kernel_name(self.dtype()), "'");
      return reduced_spec(self, mask, keepdim, DType::UInt64);
    })
    .cpu([](const Tensor& out, const Tensor& self, std::vector<int64_t> dims, bool, int64_t) {
      uint64_t mask = dim_mask(dims, self.dim());
      bool bits = is_floating(self.dtype());
      SymShape sizes, strides;  // what stays, then what is joined
      for (bool joined : {false, true})
        for (int64_t d = 0; d < self.dim(); ++d)
          if ((mask >> d & 1) == joined) sizes.push_back(self.sym_size(d)), strides.push_back(self.sym_stride(d));
      Tensor ordered = alias_tensor(self, sizes, strides, self.sym_storage_offset());
      Tensor wide = kernels::contiguous(kernels::cast(ordered, bits ? DType::Float64 : DType::Int64));
      Tensor kept = kernels::scratch(out.sizes(), DType::UInt64);
      uint64_t* to = kept.data<uint64_t>();
      const auto* from = static_cast<const uint64_t*>(wide.raw_data());
      int64_t rows = kept.numel(), n = wide.numel() / std::max<int64_t>(rows, 1);
      for (int64_t i = 0; i < rows; ++i, from += n)
        to[i] = std::accumulate(from, from + n, uint64_t{0}, std::bit_xor<uint64_t>());
      kernels::copy(out, kept);
    })
    .not_differentiable()
    .use(BatchInFront{.dims = {"dim"}, .empty_is_all = true, .scalars = true});

// ---- casts by name ----

template <DType dtype> Tensor cast_to(const Tensor& self, bool non_blocking) { return self.to(dtype, non_blocking); }

UMBRA_OPERATOR("_cast_Byte(Tensor self, bool non_blocking=False) -> Tensor").composite(cast_to<DType::UInt8>);
UMBRA_OPERATOR("_cast_Char(Tensor self, bool non_blocking=False) -> Tensor").composite(cast_to<DType::Int8>);
UMBRA_OPERATOR("_cast_Short(Tensor self, bool non_blocking=False) -> Tensor").composite(cast_to<DType::Int16>);
UMBRA_OPERATOR("_cast_Int(Tensor self, bool non_blocking=False) -> Tensor").composite(cast_to<DType::Int32>);
UMBRA_OPERATOR("_cast_Long(Tensor self, bool non_blocking=False) -> Tensor").composite(cast_to<DType::Int64>);
UMBRA_OPERATOR("_cast_Half(Tensor self, bool non_blocking=False) -> Tensor").composite(cast_to<DType::Float16>);
UMBRA_OPERATOR("_cast_Float(Tensor self, bool non_blocking=False) -> Tensor").composite(cast_to<DType::Float32>);
UMBRA_OPERATOR("_cast_Double(Tensor self, bool non_blocking=False) -> Tensor").composite(cast_to<DType::Float64>);

Tensor to_cpu(const Tensor& t) { return t.to(TensorOptions{.device = Device()}); }
UMBRA_OPERATOR("_to_cpu(Tensor[] tensors) -> Tensor[]").composite([](TensorList tensors) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(t.device().type == DeviceType::CPU ? t : to_cpu(t));
  return out;
});

/// Which tensors autocasting touches: floating ones of its device, while it is on there.
bool is_cast(const Tensor& self, bool cuda, bool cpu) {
  return self.is_floating_point() && self.dtype() != DType::Float64 &&
         ((self.device().type == DeviceType::CPU && cpu) || (self.device().type == DeviceType::CUDA && cuda));
}
UMBRA_OPERATOR("_autocast_to_full_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled) -> Tensor(a)")
    .composite([](const Tensor& self, bool cuda, bool cpu) {
      return is_cast(self, cuda, cpu) ? self.to(DType::Float32) : self;
    });
UMBRA_OPERATOR(
    "_autocast_to_reduced_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled, ScalarType cuda_dtype, "
    "ScalarType cpu_dtype) -> Tensor(a)")
    .composite([](const Tensor& self, bool cuda, bool cpu, DType cuda_dtype, DType cpu_dtype) {
      if (!is_cast(self, cuda, cpu) || self.dtype() != DType::Float32) return self;
      return self.to(self.device().type == DeviceType::CPU ? cpu_dtype : cuda_dtype);
    });

// ---- lazy conjugation carried out ----

UMBRA_OPERATOR("_conj_physical(Tensor self) -> Tensor")
    .generated_out("_conj_physical.out")
    .all_backends([](const Tensor& self) { return self.is_complex() ? _conj(self).clone() : self.clone(); })
    .use(sparse::OnValues{.linear = true})
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad.conj(); })
    .linear()
    .tags({Tag::Pointwise})
    .use(BatchInPlace{});
UMBRA_OPERATOR("conj_physical(Tensor self) -> Tensor")
    .inplace("conj_physical_")
    .out("conj_physical.out")
    .composite([](const Tensor& self) { return self.is_complex() ? _conj_physical(self) : self; })
    .sparse([](const Tensor& self) { return self.is_complex() ? _conj_physical(self) : self; })
    .tags({Tag::Pointwise, Tag::MaybeAliasingOrMutating, Tag::ExactOut});

// ---- helpers of PyTorch's own ----

UMBRA_OPERATOR("lift(Tensor self) -> Tensor")
    .generated_out("lift.out")
    .all_backends([](const Tensor& self) { return self; })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad; })
    .linear()
    .tags({Tag::LiftsData})
    .use(BatchInPlace{});

UMBRA_OPERATOR("_dim_arange(Tensor like, int dim) -> Tensor").composite([](const Tensor& like, int64_t dim) {
  return arange(Scalar(like.sym_size(dim)), {.dtype = DType::Int64, .device = like.device()});
});
UMBRA_OPERATOR("_shape_as_tensor(Tensor self) -> Tensor").composite([](const Tensor& self) {
  Tensor out = empty({self.dim()}, {.dtype = DType::Int64});
  for (int64_t d = 0; d < self.dim(); ++d) out.data<int64_t>()[d] = self.size(d);
  return out;
});
// As a CPU build of PyTorch answers.
UMBRA_OPERATOR("_nnpack_available() -> bool").all_backends([]() { return true; }).not_differentiable();

// Zeros with memory, which know that they are zeros until they are written.
UMBRA_OPERATOR(
    "_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .all_backends([](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                     OptionalBool pin_memory) {
      Tensor out = zeros(size, {.dtype = dtype, .layout = layout, .device = device, .pin_memory = pin_memory});
      mark_zero(out);
      return out;
    })
    .not_differentiable();
UMBRA_OPERATOR("_efficientzerotensor.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
    .all_backends([](SymIntArrayRef size, const Tensor& out) {
      if (!(out.sym_sizes() == size)) out.resize_(size);
      return out.zero_();
    })
    .not_differentiable()
    .tags({Tag::Generated, Tag::Out});

// Zeros for a tangent: the batch dimensions of one tensor, the rest as another lies in memory.
UMBRA_OPERATOR("_new_zeros_with_same_feature_meta(Tensor self, Tensor other, *, int self_num_batch_dims=0) -> Tensor")
    .generated_out("_new_zeros_with_same_feature_meta.out")
    .all_backends([](const Tensor& self, const Tensor& other, int64_t batch_dims) {
      check(batch_dims >= 0 && batch_dims <= 64, "self_num_batch_dims out of range");
      SymInt memory = other.storage()->bytes() / other.item_size();
      SymShape sizes, strides;
      SymInt step = memory;
      for (int64_t d = batch_dims; d-- > 0;) {
        SymInt size = d < self.dim() ? self.sym_size(d) : SymInt(0);
        sizes.insert(0, size);
        strides.insert(0, step);
        step = step * size;
      }
      for (SymInt s : other.sym_sizes()) sizes.push_back(s);
      for (SymInt s : other.sym_strides()) strides.push_back(s);
      return other.new_zeros({step}).as_strided(sizes, strides, SymInt(0));
    })
    .not_differentiable();

UMBRA_OPERATOR("_rowwise_prune(Tensor weight, Tensor mask, ScalarType compressed_indices_dtype) -> (Tensor, Tensor)")
    .composite([](const Tensor& weight, const Tensor& mask, DType dtype) {
      check(weight.dim() == 2 && mask.dim() == 1 && mask.size(0) == weight.size(0),
            "'mask' should have a value for each row of 'weight'");
      check(dtype == DType::Int32 || dtype == DType::Int64,
            "compressed_indices_dtype should be either int or long, but found ", kernel_name(dtype));
      Tensor kept = mask.to(DType::Int64), places = kept.cumsum(0).sub(1).masked_fill(mask.logical_not(), -1);
      return std::tuple(weight.index_select(0, mask.nonzero().squeeze(1)), places.to(dtype));
    });

}  // namespace
}  // namespace umbra::ops
