// Tensors side by side, on top of each other and in grids, by way of cat and stack.
#include "ops/common/alias.h"
#include "ops/common/batching.h"
#include "ops/common/list_shapes.h"
#include "ops/common/promotion.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Tensors = std::vector<Tensor>;

UMBRA_OPERATOR("concat(Tensor[] tensors, int dim=0) -> Tensor").out("concat.out").use(AliasOf{"cat"});
UMBRA_OPERATOR("concatenate(Tensor[] tensors, int dim=0) -> Tensor").out("concatenate.out").use(AliasOf{"cat"});

// ---- at least so many dimensions ----

Tensor to_1d(const Tensor& self) { return self.dim() == 0 ? self.reshape({1}) : self; }
Tensor to_2d(const Tensor& self) {
  return self.dim() == 0 ? self.reshape({1, 1}) : self.dim() == 1 ? self.unsqueeze(0) : self;
}
Tensor to_3d(const Tensor& self) {
  switch (self.dim()) {
    case 0: return self.reshape({1, 1, 1});
    case 1: return self.unsqueeze(0).unsqueeze(-1);
    case 2: return self.unsqueeze(-1);
    default: return self;
  }
}
template <Tensor (*one)(const Tensor&)> Tensors each(TensorList tensors) {
  Tensors out;
  for (const Tensor& t : tensors) out.push_back(one(t));
  return out;
}

UMBRA_OPERATOR("atleast_1d(Tensor self) -> Tensor").composite(to_1d).tags({Tag::MaybeAliasingOrMutating});
UMBRA_OPERATOR("atleast_2d(Tensor self) -> Tensor").composite(to_2d).tags({Tag::MaybeAliasingOrMutating});
UMBRA_OPERATOR("atleast_3d(Tensor self) -> Tensor").composite(to_3d).tags({Tag::MaybeAliasingOrMutating});
UMBRA_OPERATOR("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]").composite(each<to_1d>);
UMBRA_OPERATOR("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]").composite(each<to_2d>);
UMBRA_OPERATOR("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]").composite(each<to_3d>);

// ---- side by side, on top of each other, behind each other ----

/// The tensors as a family of stacks sees them, and the dimension along which they are joined.
struct Stack {
  Tensors tensors;
  int64_t dim;
};
void check_any(const char* name, TensorList tensors) {
  check(!tensors.empty(), name, " expects a non-empty TensorList");
}
Stack horizontal(TensorList tensors) {
  check_any("hstack", tensors);
  Tensors rows = each<to_1d>(tensors);
  return {rows, rows[0].dim() == 1 ? 0 : 1};
}
Stack vertical(TensorList tensors) {
  check_any("vstack", tensors);
  return {each<to_2d>(tensors), 0};
}
Stack deep(TensorList tensors) {
  check_any("dstack", tensors);
  return {each<to_3d>(tensors), 2};
}
Stack columns(TensorList tensors) {
  check_any("column_stack", tensors);
  Tensors out;
  for (const Tensor& t : tensors) out.push_back(t.dim() <= 1 ? t.reshape({t.sym_numel(), 1}) : t);
  return {out, 1};
}
template <Stack (*arrange)(TensorList)> Tensor join(TensorList tensors) {
  Stack stack = arrange(tensors);
  return cat(stack.tensors, stack.dim);
}
template <Stack (*arrange)(TensorList)> Tensor join_into(TensorList tensors, const Tensor& out) {
  Stack stack = arrange(tensors);
  return cat_out(out, stack.tensors, stack.dim);
}

UMBRA_OPERATOR("hstack(Tensor[] tensors) -> Tensor").composite(join<horizontal>);
UMBRA_OPERATOR("hstack.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)")
    .composite(join_into<horizontal>)
    .tags({Tag::Out});
UMBRA_OPERATOR("vstack(Tensor[] tensors) -> Tensor").composite(join<vertical>);
UMBRA_OPERATOR("vstack.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)")
    .composite(join_into<vertical>)
    .tags({Tag::Out});
UMBRA_OPERATOR("row_stack(Tensor[] tensors) -> Tensor").composite(join<vertical>);
UMBRA_OPERATOR("row_stack.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)")
    .composite(join_into<vertical>)
    .tags({Tag::Out});
UMBRA_OPERATOR("dstack(Tensor[] tensors) -> Tensor").composite(join<deep>);
UMBRA_OPERATOR("dstack.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)")
    .composite(join_into<deep>)
    .tags({Tag::Out});
UMBRA_OPERATOR("column_stack(Tensor[] tensors) -> Tensor").composite(join<columns>);
UMBRA_OPERATOR("column_stack.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)")
    .composite(join_into<columns>)
    .tags({Tag::Out});

// ---- grids ----

Tensors grid(TensorList tensors) {
  check(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  SymShape shape;
  for (const Tensor& t : tensors) {
    check(t.dtype() == tensors[0].dtype(), "meshgrid expects all tensors to have the same dtype");
    check(t.device() == tensors[0].device(), "meshgrid expects all tensors to have the same device");
  }
  for (const Tensor& t : tensors) {
    check(t.dim() <= 1, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: ", t.dim(), "D");
    shape.push_back(t.sym_numel());
  }
  Tensors out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    SymShape alone(tensors.size(), 1);
    alone[i] = -1;
    out.push_back(tensors[i].view(alone).expand(shape));
  }
  return out;
}

UMBRA_OPERATOR("meshgrid(Tensor[] tensors) -> Tensor[]").composite([](TensorList tensors) {
  warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.");
  return grid(tensors);
});
UMBRA_OPERATOR("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]")
    .composite([](TensorList tensors, const std::string& indexing) {
      check(!tensors.empty(), "meshgrid expects a non-empty TensorList");
      check(indexing == "ij" || indexing == "xy",
            "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
      if (indexing == "ij" || tensors.size() < 2) return grid(tensors);
      // The first runs along columns, the second along rows.
      Tensors swapped = tensors.vec();
      std::swap(swapped[0], swapped[1]);
      Tensors out = grid(swapped);
      std::swap(out[0], out[1]);
      return out;
    });

UMBRA_OPERATOR("cartesian_prod(Tensor[] tensors) -> Tensor")
    .composite([](TensorList tensors) {
      for (const Tensor& t : tensors) check(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sym_sizes());
      if (tensors.size() == 1) return tensors[0];
      Tensors flat;
      for (const Tensor& t : grid(tensors)) flat.push_back(t.flatten());
      return stack(flat, 1);
    })
    .tags({Tag::MaybeAliasingOrMutating});

// Which positions are chosen is known without the elements: all places of a grid whose coordinates ascend.
UMBRA_OPERATOR("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor")
    .composite([](const Tensor& self, int64_t r, bool with_replacement) {
      check(self.dim() == 1, "Expect a 1D vector, but got shape ", self.sym_sizes());
      check(r >= 0, "Expect a non-negative number, but got ", r);
      check(r <= 64, "combinations of ", r, " elements would need a grid of as many dimensions");
      if (r == 0) return empty({0}, self.options());
      SymInt size = self.sym_numel(), count = 1;
      for (int64_t i = 0; i < r; ++i) count = count * (with_replacement ? size + i : size - i);
      for (int64_t i = 2; i <= r; ++i) count = count / i;
      if (!with_replacement && less_or(size, r, false)) count = 0;
      Tensors places(r, arange(Scalar(size), {.dtype = DType::Int64, .device = self.device()}));
      places = grid(places);
      Tensor mask = full(places[0].sym_sizes(), Scalar(true), {.dtype = DType::Bool, .device = self.device()});
      for (int64_t i = 0; i + 1 < r; ++i)
        mask.mul_(with_replacement ? places[i].le(places[i + 1]) : places[i].lt(places[i + 1]));
      return index(self, {nonzero_static(mask, count)});
    });

// ---- other ways to join ----

/// Rows of blocks: each block between zeros, by operators that have batching rules.
Tensor blocks_by_parts(TensorList tensors) {
  Tensors blocks, rows;
  SymInt width = 0, before = 0;
  for (const Tensor& t : tensors) {
    blocks.push_back(to_2d(t));
    width += blocks.back().sym_size(1);
  }
  for (const Tensor& block : blocks) {
    SymInt height = block.sym_size(0), own = block.sym_size(1);
    rows.push_back(cat({block.new_zeros({height, before}), block, block.new_zeros({height, width - before - own})}, 1));
    before += own;
  }
  return cat(rows, 0);
}

UMBRA_OPERATOR("block_diag(Tensor[] tensors) -> Tensor")
    .generated_out("block_diag.out")
    .all_backends([](TensorList tensors) {
      if (tensors.empty()) return empty({1, 0});
      SymInt rows = 0, columns = 0;
      ResultType type;
      Tensors blocks;
      for (size_t i = 0; i < tensors.size(); ++i) {
        const Tensor& t = tensors[i];
        check(t.device() == tensors[0].device(),
              "torch.block_diag: input tensors must all be on the same device. Input 0 is on device ",
              tensors[0].device(), " and input ", i, " is on device ", t.device());
        check(t.dim() <= 2, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input ", i, " has ",
              t.dim(), " dimensions");
        blocks.push_back(t.dim() == 2 ? t : t.expand({SymInt(1), t.dim() == 0 ? SymInt(1) : t.sym_size(0)}));
        type.add(t);
        rows += blocks.back().sym_size(0);
        columns += blocks.back().sym_size(1);
      }
      Tensor out = zeros({rows, columns}, {.dtype = type.get(), .device = tensors[0].device()});
      SymInt row = 0, column = 0;
      for (const Tensor& block : blocks) {
        SymInt below = row + block.sym_size(0), behind = column + block.sym_size(1);
        slice(slice(out, 0, row, below), 1, column, behind).copy_(block);
        row = below;
        column = behind;
      }
      return out;
    })
    .gradient("tensors", {"grad", "tensors.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) {
                Tensors parts;
                SymInt row = 0, column = 0;
                for (SymIntArrayRef shape : shapes_in(sizes)) {
                  SymInt height = shape.size() == 2 ? shape[0] : SymInt(1);
                  SymInt width = shape.empty() ? SymInt(1) : shape[shape.size() - 1];
                  Tensor part = slice(slice(grad, 0, row, row + height), 1, column, column + width);
                  parts.push_back(part.reshape(shape));
                  row += height;
                  column += width;
                }
                return parts;
              })
    .linear()
    .use(batch_through(blocks_by_parts));

}  // namespace
}  // namespace umbra::ops
