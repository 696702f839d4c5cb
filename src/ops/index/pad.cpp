// Padding: with a number, or with elements from the tensor's own edges.
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

// Padding is given from the last dimension on, before and after each: [last before, last after, the one ahead before,
// ...].
int64_t padded_dim(const Tensor& self, size_t pair) { return self.dim() - 1 - static_cast<int64_t>(pair); }

void check_padding(const Tensor& self, SymIntArrayRef pad) {
  check(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  check(static_cast<int64_t>(pad.size()) / 2 <= self.dim(),
        "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ", pad.size(),
        " while the input has ", self.dim(), " dimensions.");
}

SymShape padded_sizes(const Tensor& self, SymIntArrayRef pad) {
  SymShape sizes(self.sym_sizes());
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t d = padded_dim(self, i);
    sizes[d] = sizes[d] + pad[2 * i] + pad[2 * i + 1];
    check(sizes[d] >= 0, "The input size ", self.sym_sizes()[d], ", plus negative padding ", pad[2 * i], " and ",
          pad[2 * i + 1], " resulted in a negative output size, which is invalid. Check dimension ", d,
          " of your input.");
  }
  return sizes;
}

// Cuts off what negative padding takes away, and makes the rest of the padding positive.
Tensor crop(Tensor t, SymIntArrayRef pad, SymShape& positive) {
  positive = SymShape(pad);
  for (size_t i = 0; i < pad.size(); ++i) {
    if (pad[i] >= 0) continue;
    int64_t d = padded_dim(t, i / 2);
    SymInt cut = -pad[i], start = i % 2 == 0 ? cut : SymInt(0);
    t = t.narrow(d, start, t.sym_sizes()[d] - cut);
    positive[i] = 0;
  }
  return t;
}

UMBRA_OPERATOR("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor")
    .generated_out("constant_pad_nd.out")
    .all_backends([](const Tensor& self, SymIntArrayRef pad, const Scalar& value) {
      check_padding(self, pad);
      SymShape sizes = padded_sizes(self, pad), positive;
      Tensor inside = crop(self, pad, positive);
      MemoryFormat format = self.suggested_format();
      Tensor out = empty(sizes, self.options(), format).fill_(value);
      Tensor middle = out;
      for (size_t i = 0; i < pad.size() / 2; ++i) {
        int64_t d = padded_dim(self, i);
        middle = middle.narrow(d, positive[2 * i], inside.sym_sizes()[d]);
      }
      middle.copy_(inside);
      return out;
    })
    .gradient("self", {"grad", "pad"},
              [](const Tensor& grad, std::vector<SymInt> pad) {
                for (SymInt& p : pad) p = -p;
                return grad.constant_pad_nd(pad, 0);
              })
    .tags({Tag::Core})
    .use(BatchInFront{});

// Which element of a dimension of size n stands at place i, which may lie outside: mirrored at the edge, the edge
// itself, or round about.
enum class Edge { Reflect, Replicate, Circular };

Tensor padded_places(SymInt before, SymInt after, SymInt n, Edge edge, Device device) {
  Tensor place = arange(Scalar(-before), Scalar(n + after), {.dtype = DType::Int64, .device = device});
  switch (edge) {
    case Edge::Reflect: return place.abs().sub(Scalar(n - 1)).abs().neg().add(Scalar(n - 1));
    case Edge::Replicate: return place.clamp(0, Scalar(n - 1));
    case Edge::Circular: return place.remainder(Scalar(n));
  }
  return place;
}

Tensor pad_by_edges(const Tensor& self, SymIntArrayRef pad, Edge edge) {
  check_padding(self, pad);
  SymShape positive;
  Tensor out = crop(self, pad, positive);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t d = padded_dim(self, i);
    SymInt before = positive[2 * i], after = positive[2 * i + 1], n = self.sym_sizes()[d];
    check(edge != Edge::Reflect || (before < n && after < n),
          "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (", before,
          ", ", after, ") at dimension ", d, " of input ", to_string(self.sym_sizes()));
    check(edge != Edge::Circular || (before <= n && after <= n),
          "Padding value causes wrapping around more than once.");
    if (before != 0 || after != 0)
      out = out.index_select(d, padded_places(before, after, out.sym_sizes()[d], edge, self.device()));
  }
  return out;
}

UMBRA_OPERATOR("_pad_circular(Tensor self, SymInt[] pad) -> Tensor")
    .composite([](const Tensor& self, SymIntArrayRef pad) { return pad_by_edges(self, pad, Edge::Circular); });

UMBRA_OPERATOR("pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor")
    .composite([](const Tensor& self, SymIntArrayRef pad, const std::string& mode, std::optional<double> value) {
      if (mode == "constant") return self.constant_pad_nd(pad, value.value_or(0));
      check(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
      int64_t padded = static_cast<int64_t>(pad.size()) / 2;
      bool fits = padded >= 1 && padded <= 3 && (self.dim() == padded + 1 || self.dim() == padded + 2);
      check<NotImplementedError>(fits, "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
      if (mode == "reflect") return pad_by_edges(self, pad, Edge::Reflect);
      if (mode == "replicate") return pad_by_edges(self, pad, Edge::Replicate);
      if (mode == "circular") return _pad_circular(self, pad);
      fail<NotImplementedError>("Unrecognised padding mode ", mode);
    });

UMBRA_OPERATOR(
    "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side=\"right\") -> "
    "Tensor")
    .composite([](TensorList sequences, bool batch_first, double value, const std::string& side) {
      check(!sequences.empty(), "received an empty list of sequences");
      check(side == "left" || side == "right", "Expected padding_side to be one of left or right, but got ", side, ".");
      SymInt longest = 0;
      for (const Tensor& t : sequences) check(t.dim() > 0, "pad_sequence: sequences must have at least one dimension");
      for (const Tensor& t : sequences) longest = sym_max(longest, t.sym_size(0));
      std::vector<Tensor> rows;
      for (const Tensor& t : sequences) {
        std::vector<SymInt> pad(static_cast<size_t>(2 * t.dim()), SymInt(0));
        pad[pad.size() - (side == "left" ? 2 : 1)] = longest - t.sym_size(0);
        rows.push_back(t.constant_pad_nd(pad, value));
      }
      return stack(rows, batch_first ? 0 : 1);
    });

}  // namespace
}  // namespace umbra::ops
