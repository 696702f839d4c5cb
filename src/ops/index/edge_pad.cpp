// Padding by the tensor's own edges: mirrored (reflection) or repeated (replication), over one to three dimensions.
#include "kernels/edge_pad.h"

#include "dispatch/layers.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "ops/common/sizes_only.h"
#include "ops/common/unbacked.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using kernels::Edge;
using Sizes = std::vector<SymInt>;
using Pad = decltype(&reflection_pad1d);
using PadBackward = decltype(&reflection_pad1d_backward);

constexpr const char* kNames[] = {"D", "H", "W"};

/// What the operators of one kind and number of dimensions share.
struct EdgePad {
  const char* name;
  Edge edge;
  int64_t dims;
  Pad pad;
  PadBackward backward;

  /// "D: 4 H: 4 W: 2".
  std::string spatial_text(SymIntArrayRef sizes, const char* separator) const {
    std::string text;
    for (int64_t d = 0; d < dims; ++d)
      text += (d ? separator : "") + std::string(kNames[3 - dims + d]) + ": " +
              to_string(sizes[sizes.size() - static_cast<size_t>(dims - d)]);
    return text;
  }
  void check_image(const Tensor& self) const {
    bool fits = self.dim() == dims + 1 || self.dim() == dims + 2;
    for (int64_t d = self.dim() == dims + 2 ? 1 : 0; fits && d < self.dim(); ++d)
      fits = self.sym_sizes()[d].is_symbolic() || self.sym_sizes()[d].value() != 0;
    check(fits, "Expected ", dims + 1, "D or ", dims + 2,
          "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: ",
          self.sym_sizes());
  }
  void check_sizes(const Tensor& grad, const Tensor& self) const {
    for (int64_t d = dims + 1; d >= 1; --d) self.sym_size(-d);
    for (int64_t d = 1; d <= dims; ++d) grad.sym_size(self.dim() - d);
  }
  void check_count(SymIntArrayRef padding) const {
    check(static_cast<int64_t>(padding.size()) == 2 * dims, "padding size is expected to be ", 2 * dims,
          ", but got: ", padding.size());
  }
  SymShape padded(const Tensor& self, SymIntArrayRef padding) const {
    check_count(padding);
    if (only_metadata_is_asked()) self.sym_size(0);  // no dimension is an IndexError
    check_image(self);
    SymShape sizes(self.sym_sizes());
    bool too_small = false;
    for (int64_t i = 0; i < dims; ++i) {
      int64_t d = self.dim() - 1 - i;
      SymInt before = padding[static_cast<size_t>(2 * i)], after = padding[static_cast<size_t>(2 * i + 1)];
      SymInt size = sizes[static_cast<size_t>(d)];
      check(edge != Edge::Reflect || (expect_less(before, size) && expect_less(after, size)), "Argument #", 4 + 2 * i,
            ": Padding size should be less than the corresponding input dimension, but got: padding (", before, ", ",
            after, ") at dimension ", d, " of input ", self.sym_sizes());
      sizes[static_cast<size_t>(d)] = size + before + after;
      too_small |= !expect_at_most(1, sizes[static_cast<size_t>(d)]);
    }
    if (too_small && dims == 1)
      fail("input (", spatial_text(self.sym_sizes(), ", "), ") is too small. Calculated output ",
           spatial_text(sizes, " "));
    if (too_small)
      fail("Calculated output ", spatial_text(sizes, " "), " must be >= 1 in every dimension (input ",
           spatial_text(self.sym_sizes(), ", "), ")");
    return sizes;
  }
  std::vector<int64_t> before(SymIntArrayRef padding) const {
    std::vector<int64_t> out;
    for (int64_t i = dims - 1; i >= 0; --i) out.push_back(padding[static_cast<size_t>(2 * i)].guard_int());
    return out;
  }
  static TensorSpec spec(const Tensor& self, SymIntArrayRef sizes) {
    return TensorSpec(sizes, strides_for(sizes, self.suggested_format()), self.dtype(), self.device());
  }
  /// Images with a batch of their own take vmap's next to it.
  Tensor images(const Batched& t) const {
    return t.rank() == dims + 2 ? fold_batch({batch_all(t), 0}, 0) : batch_all(t);
  }
  Batched apart(const Tensor& t, const Batched& like) const {
    return like.rank() == dims + 2 ? unfold_batch(t, 0) : Batched(t, 0);
  }

  void operator()(OperatorBuilder& builder) const {
    auto family = *this;
    builder
        .meta([family](const Tensor& self, SymIntArrayRef padding) { return spec(self, family.padded(self, padding)); })
        .cpu([family](const Tensor& out, const Tensor& self, SymIntArrayRef padding) {
          check<NotImplementedError>(self.dtype() != DType::Bool, "\"", family.name, "\" not implemented for 'Bool'");
          kernels::edge_pad(out, self, family.edge, family.before(padding));
        })
        .gradient("self", {"grad", "self", "padding"},
                  [family](const Tensor& grad, const Tensor& self, Sizes padding) {
                    return family.backward(grad, self, padding);
                  })
        .linear()
        .batch([family](const Batched& self, SymIntArrayRef padding) {
          return family.apart(family.pad(family.images(self), padding), self);
        });
  }
};

struct EdgePadBackward : EdgePad {
  void operator()(OperatorBuilder& builder) const {
    auto family = static_cast<const EdgePad&>(*this);
    builder
        .meta([family](const Tensor& grad, const Tensor& self, SymIntArrayRef padding) {
          bool reflects = family.edge == Edge::Reflect;
          size_t ends = static_cast<size_t>(2 * family.dims);
          if (only_metadata_is_asked() && (family.dims == 2 || (family.dims == 1 && reflects)))
            check<ValueError>(padding.size() == ends, padding.size() < ends ? "not enough" : "too many",
                              " values to unpack (expected ", ends, ", got ", padding.size(), ")");
          // One dimension, and two that are reflected, compare channels first, of too few dimensions some other one.
          if (family.dims == 1 || (family.dims == 2 && reflects)) {
            if (family.dims == 2 && !only_metadata_is_asked()) check_held(padding);
            if (!reflects) family.check_count(padding);
            if (family.dims == 1 && reflects) {
              SymInt width = self.sym_size(-1);
              for (SymInt p : padding.slice(0, std::min<size_t>(padding.size(), 2)))
                check(p < width,
                      "Argument #4: Padding size should be less than the corresponding input dimension, but ",
                      "got: padding ", p, " at dimension ", self.dim() - 1, " of input ", to_string(self.sym_sizes()));
            }
            int64_t d = self.dim() - 1 - family.dims;
            SymInt channels = self.sym_size(d), given = grad.sym_size(d);
            check(channels == given, "grad_output channel unexpected. Expected: ", channels, ", Got: ", given);
            for (int64_t d = 1; d <= family.dims; ++d) grad.sym_size(self.dim() - d);
          }
          SymShape sizes = family.padded(self, padding);
          if (family.dims < 3 || !reflects) family.check_sizes(grad, self);
          check(grad.dim() == self.dim(), "grad_output: expected ", self.dim(), " dimensions, but got ", grad.dim());
          static constexpr const char* kWords[] = {"depth", "height", "width"};
          for (int64_t d = 0; d < self.dim(); ++d) {
            int64_t word = d - (self.dim() - 3);
            check(grad.sym_sizes()[d] == sizes[static_cast<size_t>(d)], "grad_output ",
                  word >= 3 - family.dims ? kWords[word] : "size",
                  " unexpected. Expected: ", sizes[static_cast<size_t>(d)], ", Got: ", grad.sym_sizes()[d]);
          }
          check(grad.dtype() == self.dtype(), "expected scalar type ", kernel_name(self.dtype()), " but found ",
                kernel_name(grad.dtype()));
          return spec(self, self.sym_sizes());
        })
        .cpu([family](const Tensor& out, const Tensor& grad, const Tensor&, SymIntArrayRef padding) {
          kernels::edge_pad_backward(out, grad, family.edge, family.before(padding));
        })
        .use(SizesOnly{})
        .gradient("grad_output", {"grad", "padding"},
                  [family](const Tensor& grad, Sizes padding) { return family.pad(grad, padding); })
        .linear()
        .batch([family](const Batched& grad, const Batched& self, SymIntArrayRef padding) {
          return family.apart(family.backward(family.images(grad), family.images(self), padding), self);
        });
  }
};

UMBRA_OPERATOR("reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor")
    .out("reflection_pad1d.out")
    .use(EdgePad{"reflection_pad1d", Edge::Reflect, 1, reflection_pad1d, reflection_pad1d_backward})
    .tags({Tag::Core});
UMBRA_OPERATOR("reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor")
    .out("reflection_pad1d_backward.grad_input", {"grad_input"})
    .use(EdgePadBackward{{"reflection_pad1d", Edge::Reflect, 1, reflection_pad1d, reflection_pad1d_backward}});

UMBRA_OPERATOR("reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor")
    .out("reflection_pad2d.out")
    .use(EdgePad{"reflection_pad2d", Edge::Reflect, 2, reflection_pad2d, reflection_pad2d_backward})
    .tags({Tag::Core});
UMBRA_OPERATOR("reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor")
    .out("reflection_pad2d_backward.grad_input", {"grad_input"})
    .use(EdgePadBackward{{"reflection_pad2d", Edge::Reflect, 2, reflection_pad2d, reflection_pad2d_backward}});

UMBRA_OPERATOR("reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor")
    .out("reflection_pad3d.out")
    .use(EdgePad{"reflection_pad3d", Edge::Reflect, 3, reflection_pad3d, reflection_pad3d_backward})
    .tags({Tag::Core});
UMBRA_OPERATOR("reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor")
    .out("reflection_pad3d_backward.grad_input", {"grad_input"})
    .use(EdgePadBackward{{"reflection_pad3d", Edge::Reflect, 3, reflection_pad3d, reflection_pad3d_backward}});

UMBRA_OPERATOR("replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor")
    .out("replication_pad1d.out")
    .use(EdgePad{"replication_pad1d", Edge::Replicate, 1, replication_pad1d, replication_pad1d_backward});
UMBRA_OPERATOR("replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor")
    .out("replication_pad1d_backward.grad_input", {"grad_input"})
    .use(EdgePadBackward{{"replication_pad1d", Edge::Replicate, 1, replication_pad1d, replication_pad1d_backward}});

UMBRA_OPERATOR("replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor")
    .out("replication_pad2d.out")
    .use(EdgePad{"replication_pad2d", Edge::Replicate, 2, replication_pad2d, replication_pad2d_backward})
    .tags({Tag::Core});
UMBRA_OPERATOR("replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor")
    .out("replication_pad2d_backward.grad_input", {"grad_input"})
    .use(EdgePadBackward{{"replication_pad2d", Edge::Replicate, 2, replication_pad2d, replication_pad2d_backward}});

UMBRA_OPERATOR("replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor")
    .out("replication_pad3d.out")
    .use(EdgePad{"replication_pad3d", Edge::Replicate, 3, replication_pad3d, replication_pad3d_backward})
    .tags({Tag::Core});
UMBRA_OPERATOR("replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor")
    .out("replication_pad3d_backward.grad_input", {"grad_input"})
    .use(EdgePadBackward{{"replication_pad3d", Edge::Replicate, 3, replication_pad3d, replication_pad3d_backward}});

}  // namespace
}  // namespace umbra::ops
