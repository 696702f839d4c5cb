#include "export/size_arithmetic.h"

#include <algorithm>

#include "umbra/sym/expression.h"

namespace umbra {

namespace {

SizeArithmetic::Sizes sizes_of(const Tensor& t) { return {t.sym_sizes().begin(), t.sym_sizes().end()}; }
SizeArithmetic::Sizes strides_of(const Tensor& t) { return {t.sym_strides().begin(), t.sym_strides().end()}; }

SizeArithmetic::Sizes without_last(SizeArithmetic::Sizes sizes, size_t count = 1) {
  sizes.resize(sizes.size() - count);
  return sizes;
}

bool is_any_symbolic(const Tensor& t) {
  return std::ranges::any_of(t.sym_sizes(), [](SymInt size) { return size.is_symbolic(); });
}

}  // namespace

bool SizeArithmetic::begin(const Operator& op, const Value* frame) {
  static const Operator &linear_op = get_operator("aten::linear"), &matmul = get_operator("aten::matmul"),
                        &reshape = get_operator("aten::reshape"), &flatten = get_operator("aten::flatten.using_ints"),
                        &contiguous = get_operator("aten::contiguous"),
                        &attention = get_operator("aten::scaled_dot_product_attention");
  if (&op == &attention)
    return asks_attention(frame[0].tensor_ref(), frame[1].tensor_ref(), frame[2].tensor_ref()), counted_ = true;
  if (&op == &linear_op) return linear(frame[0].tensor_ref(), frame[2].is_tensor() ? frame[2].tensor() : Tensor());
  if (&op == &matmul) return product(frame[0].tensor_ref(), frame[1].tensor_ref());
  if (&op != &reshape && &op != &flatten && &op != &contiguous) return false;
  const Tensor& self = frame[0].tensor_ref();
  if (!is_any_symbolic(self)) return false;
  if (&op == &reshape) {
    if (!asks_contiguous(self)) asks_strided(self, frame[1].int_list());
    return false;
  }
  if (&op == &contiguous) {
    if (!asks_contiguous(self)) asks_order(self);
    return false;
  }
  int64_t rank = self.dim(), first = frame[1].to_int(), last = frame[2].to_int();
  if (first < 0) first += rank;
  if (last < 0) last += rank;
  if (first < 0 || last >= rank || first >= last) return false;
  Sizes sizes = sizes_of(self);
  product_of(Sizes(sizes.begin() + first, sizes.begin() + last + 1), true);
  return false;
}

bool SizeArithmetic::linear(const Tensor& input, const Tensor& bias) {
  if (!bias.defined() || input.dim() < 3 || !is_any_symbolic(input) || !asks_contiguous(input)) return false;
  product_of(without_last(sizes_of(input)), true);
  return true;
}

bool SizeArithmetic::product(const Tensor& left, const Tensor& right) {
  if (left.dim() < 3 || (!is_any_symbolic(left) && !is_any_symbolic(right))) return false;
  if (right.dim() > 2) return batched_product(left, right), false;
  Sizes sizes = sizes_of(left);
  bool rows = asks_foldable(sizes, strides_of(left));
  if (rows) product_of(without_last(sizes), true);
  else batched_product(left, right);
  return rows;
}

void SizeArithmetic::batched_product(const Tensor& left, const Tensor& right) {
  Sizes a = without_last(sizes_of(left), 2), b = right.dim() > 2 ? without_last(sizes_of(right), 2) : Sizes();
  if (a.size() == 1 && b.size() == 1) ask("ne", a[0], b[0]);
  Sizes batch;
  for (size_t n = std::max(a.size(), b.size()); n > 0; --n) {
    SymInt x = n > a.size() ? SymInt(1) : a[a.size() - n], y = n > b.size() ? SymInt(1) : b[b.size() - n];
    SymInt size = x.same(1) ? y : x;
    batch.push_back(size);
    if (!size.is_symbolic()) continue;
    for (const char* asked : {"eq", "lt", "eq"}) take(asked);
    for (SymInt given : {x, y})
      if (given.is_symbolic()) take("eq");
  }
  product_of(batch, true);
}

void SizeArithmetic::end(const Operator& op, fx::Node* view) {
  static const Operator& attention = get_operator("aten::scaled_dot_product_attention");
  if (&op == &attention) return void(counted_ = false);
  static const Operator& size = get_operator("aten::sym_size.int");
  fx::Node* rows = view->args().empty() ? nullptr : view->arg(0).node();
  if (!rows || !rows->meta.val.is_tensor() || !view->meta.val.is_tensor()) return;
  Sizes from = sizes_of(rows->meta.val.tensor_ref());
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d].is_symbolic()) tracer_.graph().call(size, {rows, static_cast<int64_t>(d)})->meta.val = Value(from[d]);
  asks_rows(from, strides_of(rows->meta.val.tensor_ref()), sizes_of(view->meta.val.tensor_ref()));
}

void SizeArithmetic::stack(ArrayRef<Tensor> tensors, int64_t dim) {
  if (tensors.empty() || dim == -1 || dim == tensors[0].dim()) return;
  for (size_t i = 1; i < tensors.size(); ++i) {
    bool symbolic = false;
    for (SymInt size : tensors[i].sym_sizes()) {
      ask("eq", size, 0);
      symbolic |= size.is_symbolic();
      if (symbolic) take("and_");
    }
  }
}

/// A size of an input or of a call gets its node.
void SizeArithmetic::read(SymInt size) {
  if (size.is_symbolic() && static_cast<const sym::Expression*>(size.node())->is(sym::Kind::Symbol))
    tracer_.argument(Value(size));
}

void SizeArithmetic::ask(const char* name, SymInt a, SymInt b) {
  for (SymInt size : {a, b}) read(size);
  if (a.is_symbolic() || b.is_symbolic()) take(name);
}

SymInt SizeArithmetic::times(SymInt a, SymInt b, bool stays) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a * b;
  if (a.same(1)) return b;
  if (b.same(1)) return a;
  SymInt result = a * b;
  if (!stays) return take("mul"), result;
  static const fx::Function& multiply = fx::function("operator.mul");
  for (SymInt size : {a, b}) read(size);
  fx::Node* last = tracer_.graph().last();
  tracer_.note_symbol_call(multiply, {Value(a), Value(b)}, Value(result));
  tracer_.argument(Value(result));
  if (tracer_.graph().last() == last) take("mul");
  return result;
}

SymInt SizeArithmetic::product_of(const Sizes& sizes, bool stays) {
  SymInt result = 1;
  for (SymInt size : sizes) {
    read(size);
    result = times(result, size, stays);
  }
  return result;
}

bool SizeArithmetic::asks_contiguous(const Tensor& tensor) {
  if (auto known = contiguous_.find(tensor.impl()); known != contiguous_.end()) return known->second.second;
  bool contiguous = asks_contiguous(sizes_of(tensor), strides_of(tensor));
  contiguous_.emplace(tensor.impl(), std::pair(tensor, contiguous));
  return contiguous;
}

bool SizeArithmetic::asks_contiguous(const Sizes& sizes, const Sizes& strides) {
  SymInt elements = 1;
  for (SymInt size : sizes) elements = counted_ ? elements * size : times(elements, size);
  for (SymInt size : sizes) read(size);
  ask("eq", elements, 0);
  SymInt expected = 1, at_most = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    ask("eq", sizes[d], 1);
    if (sizes[d].same(1)) continue;
    if (strides[d].is_symbolic() || expected.is_symbolic()) take("ne");
    if (!strides[d].same(expected)) {
      if (strides[d].is_symbolic() || at_most.is_symbolic()) take("ne");
      return false;
    }
    if (sizes[d].is_symbolic()) take("sym_max");
    at_most = times(at_most, sizes[d]);
    expected = times(expected, sizes[d]);
  }
  return true;
}

/// Whether the rows of all matrices lie in memory as those of one.
bool SizeArithmetic::asks_foldable(const Sizes& sizes, const Sizes& strides) {
  ask("eq", product_of(sizes), 0);
  Sizes expected = strides;
  for (size_t d = sizes.size() - 1; d-- > 0;) expected[d] = times(sizes[d + 1], expected[d + 1]);
  for (size_t d = 0; d + 1 < sizes.size(); ++d) {
    ask("eq", sizes[d], 1);
    if (sizes[d].same(1)) continue;
    if (strides[d].is_symbolic() || expected[d].is_symbolic()) take("eq");
    if (!strides[d].same(expected[d])) return false;
  }
  return true;
}

/// Whether a tensor that was found not to be contiguous is so after all, as an expression and once more.
void SizeArithmetic::asks_order(const Tensor& tensor) {
  Sizes sizes = sizes_of(tensor), strides = strides_of(tensor);
  if (!tensor.sym_numel().is_symbolic()) return;
  SymInt expected = 1;
  take("eq");
  bool symbolic = false;  // whether the answer so far is
  for (size_t d = sizes.size(); d-- > 0;) {
    ask("eq", sizes[d], 1);
    bool lies = strides[d].is_symbolic() || expected.is_symbolic();
    if (lies) take("eq");
    if (lies || sizes[d].is_symbolic()) take("or_");
    symbolic |= lies || sizes[d].is_symbolic();
    if (symbolic) take("and_");
    expected = times(expected, sizes[d]);
  }
  for (const char* asked : {"or_", "eq"}) take(asked);
  expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    ask("eq", sizes[d], 1);
    if (sizes[d].same(1)) continue;
    if (strides[d].is_symbolic() || expected.is_symbolic()) take("ne");
    if (!strides[d].same(expected)) return;
    expected = times(expected, sizes[d]);
  }
}

/// Which way attention is computed.
void SizeArithmetic::asks_attention(const Tensor& query, const Tensor& key, const Tensor& value) {
  if (query.dim() < 3) return;
  ask("eq", product_of(sizes_of(query)), 0);
  SymInt batch = query.sym_size(0);
  ask("eq", key.sym_size(-2), 0);
  for (const Tensor& other : {key, value}) ask("eq", batch, other.sym_size(0));
  for (const Tensor& other : {query, key}) ask("ne", other.sym_size(-2), 0);
}

/// What a reshape of a tensor that is not contiguous asks before it knows whether it is a view.
void SizeArithmetic::asks_strided(const Tensor& tensor, SymIntArrayRef shape) {
  Sizes sizes = sizes_of(tensor), strides = strides_of(tensor);
  SymInt count = tensor.sym_numel();
  asks_order(tensor);
  if (!count.is_symbolic()) return;
  Sizes to = asks_shape(count, shape);
  product_of(sizes);
  take("eq");
  if (asks_view(sizes, strides, to)) return;
  Sizes dense(sizes.size(), SymInt(1));
  for (size_t d = sizes.size() - 1; d-- > 0;) dense[d] = dense[d + 1] * sizes[d + 1];
  asks_rows(sizes, dense, to);
}

/// The sizes that a shape means, in which one may be -1.
SizeArithmetic::Sizes SizeArithmetic::asks_shape(SymInt count, SymIntArrayRef shape) {
  Sizes sizes(shape.begin(), shape.end());
  SymInt known = 1;
  SymInt* open = nullptr;
  for (SymInt& size : sizes) {
    ask("eq", size, -1);
    ask("gt", size, -1);
    if (size.same(-1)) open = &size;
    else known = times(known, size);
  }
  if (!open) {
    if (count.is_symbolic() || known.is_symbolic()) take("eq");
    return sizes;
  }
  if (known.is_symbolic())
    for (const char* asked : {"gt", "and_", "ne"}) take(asked);
  if (count.is_symbolic() || known.is_symbolic())
    for (const char* asked : {"mod", "eq", "or_", "floordiv"}) take(asked);
  *open = known.same(0) ? SymInt(0) : count / known;
  return sizes;
}

void SizeArithmetic::asks_rows(const Sizes& from, const Sizes& strides, const Sizes& to) {
  SymInt count = product_of(from);
  asks_shape(count, to);
  if (!count.is_symbolic()) return;
  product_of(from);
  take("eq");
  asks_view(from, strides, to);
}

/// Whether a view lies in memory as its tensor does.
bool SizeArithmetic::asks_view(const Sizes& from, const Sizes& strides, const Sizes& to) {
  if (from.empty()) return true;
  SymInt rows = 1, viewed = 1, base = strides.back();
  size_t next = to.size();
  for (size_t d = from.size(); d-- > 0;) {
    rows = times(rows, from[d]);
    if (d > 0) {
      ask("ne", from[d - 1], 1);
      if (from[d - 1].same(1)) continue;
      SymInt reach = times(rows, base);
      if (strides[d - 1].is_symbolic() || reach.is_symbolic()) take("ne");
      if (strides[d - 1].same(reach)) continue;
    }
    while (next > 0) {
      if (viewed.is_symbolic() || rows.is_symbolic()) take("lt");
      if (!sym_lt(viewed, rows).known_true()) {
        ask("eq", to[next - 1], 1);
        if (!to[next - 1].same(1)) break;
      }
      times(viewed, base);
      viewed = times(viewed, to[--next]);
    }
    if (viewed.is_symbolic() || rows.is_symbolic()) take("ne");
    if (!viewed.same(rows)) return false;
    if (d > 0) base = strides[d - 1], rows = viewed = 1;
  }
  return true;
}

}  // namespace umbra
