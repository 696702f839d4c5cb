// Padding with a number or round about, and the choice among all ways to pad.
#include <algorithm>

#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/may_read.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "sym/layout_watch.h"
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
    check(expect_at_most(0, sizes[d]), "narrow(): length must be non-negative.");
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

/// The same of plain values, without views on the way; undefined where they are not plain, or more is taken than is
/// there.
Tensor padded_values(const Tensor& self, SymIntArrayRef pad, const Scalar& value, SymIntArrayRef sizes) {
  if (!may_read(self) || self.is_conj() || self.is_neg()) return {};
  for (SymInt p : pad)
    if (p.is_symbolic()) return {};
  SymShape strides = strides_for(sizes, self.suggested_format()), shared(self.sym_sizes());
  SymInt from = self.sym_storage_offset(), to = 0;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t d = padded_dim(self, i), before = pad[2 * i].value(), after = pad[2 * i + 1].value();
    int64_t size = self.size(d) + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    if (size < 0) return {};
    shared[d] = size;
    from += std::max<int64_t>(-before, 0) * self.stride(d);
    to += std::max<int64_t>(before, 0) * strides[d];
  }
  Tensor out = allocate_tensor(sizes, strides, self.dtype(), self.device());
  kernels::fill(out, value);
  kernels::copy(alias_tensor(out, shared, strides, to), alias_tensor(self, shared, self.sym_strides(), from));
  return out;
}

/// The result for padding that only the run tells, or that inputs decide. Where there turns out to be none, it lies as
/// `self` does.
Tensor empty_padded(const Tensor& self, SymIntArrayRef pad, SymIntArrayRef sizes, MemoryFormat format) {
  SymShape kept = strides_in_format(self, MemoryFormat::Preserve), made = strides_for(self.sym_sizes(), format);
  auto same = [](SymInt a, SymInt b) { return a.same(b); };
  if (std::equal(kept.begin(), kept.end(), made.begin(), same)) return empty(sizes, self.options(), format);
  SymBool any(false);
  for (SymInt p : pad) any = sym_or(any, sym_ne(p, 0));
  bool none = std::all_of(pad.begin(), pad.end(), [](SymInt p) { return p.has_hint() && p.hint() == 0; });
  if (sym::LayoutWatch* watch = sym::LayoutWatch::current()) watch->note_condition(none ? sym_not(any) : any);
  return none ? empty_strided(sizes, kept, self.options()) : empty(sizes, self.options(), format);
}

UMBRA_OPERATOR("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor")
    .generated_out("constant_pad_nd.out")
    .all_backends([](const Tensor& self, SymIntArrayRef pad, const Scalar& value) {
      check_padding(self, pad);
      SymShape sizes = padded_sizes(self, pad), positive;
      // What only takes away, or nothing at all, is a copy of the rest.
      auto adds_none = [](SymInt p) { return !p.is_symbolic() && p.value() <= 0; };
      if (std::all_of(pad.begin(), pad.end(), adds_none)) return crop(self, pad, positive).clone();
      if (Tensor plain = padded_values(self, pad, value, sizes); plain.defined()) return plain;
      MemoryFormat format = self.suggested_format();
      // Which padding is negative, and takes away, is no question of the result's size.
      if (self.is_fake() && any_symbolic(pad)) return empty_padded(self, pad, sizes, format);
      Tensor inside = crop(self, pad, positive);
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

// Fills what lies before `start` and from `end` on with the `kept` elements between them, over and over.
void wrap_around(const Tensor& out, int64_t d, SymInt kept, SymInt start, SymInt end) {
  while (start > 0) {
    SymInt begin = start > kept ? start - kept : SymInt(0);
    out.slice(d, begin, start).copy_(out.slice(d, begin + kept, start + kept));
    start = begin;
  }
  SymInt size = out.sym_sizes()[d];
  while (end < size) {
    SymInt stop = size - end > kept ? end + kept : size;
    out.slice(d, end, stop).copy_(out.slice(d, end - kept, stop - kept));
    end = stop;
  }
}

// Round about: elements of the other end. Corners are written more than once.
UMBRA_OPERATOR("_pad_circular(Tensor self, SymInt[] pad) -> Tensor")
    .composite([](const Tensor& self, SymIntArrayRef pad) {
      size_t spatial = pad.size() / 2;
      int64_t rest = self.dim() - static_cast<int64_t>(spatial);
      check(rest == 1 || rest == 2,
            "Invalid padding size, expected 1 or 2 non-padded dimensions, which would be equivalent to padding of "
            "length ",
            2 * (self.dim() - 1), " or ", 2 * (self.dim() - 2), " respectively but got ", pad.size());
      SymShape sizes(self.sym_sizes()), kept(self.sym_sizes());
      auto positive = [](SymInt p) { return sym_max(p, 0); };
      for (size_t i = 0; i < spatial; ++i) {
        int64_t d = padded_dim(self, i);
        SymInt before = pad[2 * i], after = pad[2 * i + 1], size = self.sym_sizes()[d];
        sizes[d] = size + before + after;
        kept[d] = size - positive(-before) - positive(-after);
        check(before <= size && after <= size, "Padding value causes wrapping around more than once.");
        check(sizes[d] >= 0, "Negative padding value is resulting in an empty dimension");
        check(sizes[d] == 0 || kept[d] > 0, "Negative padding value leaves nothing to wrap around in dimension ", d);
      }
      // More is taken away than there is, and the result is empty.
      if (std::any_of(kept.begin(), kept.end(), [](SymInt size) { return !size.is_symbolic() && size.value() < 0; }))
        return self.reshape({-1}).narrow(0, 0, 0).reshape(sizes).clone();
      Tensor out = self.new_empty(sizes, self.options()), to = out, from = self;
      for (size_t i = 0; i < spatial; ++i) {
        int64_t d = padded_dim(self, i);
        SymInt before = pad[2 * i], after = pad[2 * i + 1];
        to = to.slice(d, positive(before), sizes[d] - positive(after));
        from = from.slice(d, positive(-before), self.sym_sizes()[d] - positive(-after));
      }
      to.copy_(from);
      for (size_t i = 0; i < spatial; ++i) {
        int64_t d = padded_dim(self, i);
        wrap_around(out, d, kept[d], positive(pad[2 * i]), sizes[d] - positive(pad[2 * i + 1]));
      }
      return out;
    });

// The numbers are those of _pad_enum.
enum class PaddingMode : int64_t { Reflect, Replicate, Circular, Constant };
constexpr const char* kModeNames[] = {"reflect", "replicate", "circular", "constant"};

void check_pad_length(const Tensor& self, SymIntArrayRef pad) {
  check(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  auto length = static_cast<int64_t>(pad.size());
  check(length <= 2 * self.dim(),
        "Padding length should be less than or equal to two times the input dimension but got padding length ", length,
        " and input of dimension ", self.dim());
}

/// How many dimensions are padded by what they have themselves.
int64_t check_padded_dims(const Tensor& self, SymIntArrayRef pad) {
  int64_t dims = static_cast<int64_t>(pad.size()) / 2;
  bool fits = dims >= 1 && dims <= 3 && (self.dim() == dims + 1 || self.dim() == dims + 2);
  check<NotImplementedError>(fits, "Padding size ", pad.size(), " is not supported for ", self.dim(),
                             "D input tensor.");
  return dims;
}

Tensor pad_in_mode(const Tensor& self, SymIntArrayRef pad, PaddingMode mode, std::optional<double> value) {
  check_pad_length(self, pad);
  if (mode == PaddingMode::Constant) return self.constant_pad_nd(pad, value.value_or(0));
  check(!value || *value == 0, "Padding mode \"", kModeNames[static_cast<int64_t>(mode)],
        "\" doesn't take in value argument");
  int64_t dims = check_padded_dims(self, pad);
  if (mode == PaddingMode::Circular) return _pad_circular(self, pad);
  if (mode == PaddingMode::Reflect)
    return dims == 1   ? reflection_pad1d(self, pad)
           : dims == 2 ? reflection_pad2d(self, pad)
                       : reflection_pad3d(self, pad);
  return dims == 1   ? replication_pad1d(self, pad)
         : dims == 2 ? replication_pad2d(self, pad)
                     : replication_pad3d(self, pad);
}

UMBRA_OPERATOR("_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor")
    .composite([](const Tensor& self, SymIntArrayRef pad, int64_t mode, std::optional<double> value) {
      check_pad_length(self, pad);
      bool known = mode >= 0 && mode <= 3;
      check(known || !value || *value == 0, "Invalid padding mode (", mode, ")");
      check<NotImplementedError>(known, "Padding size ", pad.size(), " is not supported for ", self.dim(),
                                 "D input tensor in mode ", mode);
      return pad_in_mode(self, pad, static_cast<PaddingMode>(mode), value);
    });

UMBRA_OPERATOR("pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor")
    .composite([](const Tensor& self, SymIntArrayRef pad, const std::string& mode, std::optional<double> value) {
      for (int64_t i = 0; i < 4; ++i)
        if (mode == kModeNames[i]) return pad_in_mode(self, pad, static_cast<PaddingMode>(i), value);
      fail<NotImplementedError>("Unrecognised padding mode ", mode);
    });

SymInt longest_of(TensorList sequences, const std::string& side) {
  check(!sequences.empty(), "received an empty list of sequences");
  check(side == "left" || side == "right", "Expected padding_side to be one of left or right, but got ", side, ".");
  check(sequences[0].dim() > 0, "pad_sequence: sequences must have at least one dimension");
  SymInt longest = 0;
  for (const Tensor& t : sequences) wrap_dim(0, t.dim(), false);
  for (const Tensor& t : sequences) longest = sym_max(longest, t.sym_size(0));
  return longest;
}

/// By values, for batches: where only some of the sequences have one, there is nothing to write them to.
Tensor pad_sequence_values(TensorList sequences, bool batch_first, double value, const std::string& side) {
  SymInt longest = longest_of(sequences, side);
  std::vector<Tensor> rows;
  for (const Tensor& t : sequences) {
    std::vector<SymInt> pad(static_cast<size_t>(2 * t.dim()), SymInt(0));
    pad[pad.size() - (side == "left" ? 2 : 1)] = longest - t.sym_size(0);
    rows.push_back(t.to(sequences[0].dtype()).constant_pad_nd(pad, value));
  }
  return stack(rows, batch_first ? 0 : 1);
}

UMBRA_OPERATOR(
    "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side=\"right\") -> "
    "Tensor")
    .composite([](TensorList sequences, bool batch_first, double value, const std::string& side) {
      SymInt longest = longest_of(sequences, side), count = static_cast<int64_t>(sequences.size());
      SymShape shape(sequences[0].sym_sizes());
      shape[0] = batch_first ? count : longest;
      shape.insert(1, batch_first ? longest : count);
      Tensor out = full(shape, value, sequences[0].options());
      for (size_t i = 0; i < sequences.size(); ++i) {
        SymInt length = sequences[i].sym_size(0), start = side == "left" ? longest - length : SymInt(0);
        int64_t row = static_cast<int64_t>(i);
        Tensor place =
            batch_first ? out.select(0, row).narrow(0, start, length) : out.narrow(0, start, length).select(1, row);
        place.copy_(sequences[i]);
      }
      return out;
    })
    .use(batch_through(pad_sequence_values));

}  // namespace
}  // namespace umbra::ops
