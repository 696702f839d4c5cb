#include "ops/common/batching.h"

#include "ops/common/promotion.h"
#include "umbra/core/warning.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

Tensor batch_first(const Batched& tensor) {
  return tensor.dim > 0 ? tensor.value.movedim(tensor.dim, 0) : tensor.value;
}

SymShape batch_sizes(SymIntArrayRef sizes) {
  SymShape out{batch_scope().size};
  for (SymInt s : sizes) out.push_back(s);
  return out;
}

Tensor batch_all(const Batched& tensor) {
  if (!tensor.defined() || tensor.is_batched()) return batch_first(tensor);
  return tensor.value.expand(batch_sizes(tensor.value.sym_sizes()));
}

Tensor batch_first(const Batched& tensor, int64_t rank) {
  Tensor value = batch_first(tensor);
  if (!tensor.is_batched() || tensor.rank() >= rank) return value;
  SymShape sizes{value.sym_sizes()[0]};
  for (int64_t i = tensor.rank(); i < rank; ++i) sizes.push_back(1);
  for (SymInt s : value.sym_sizes().drop_front()) sizes.push_back(s);
  return value.view(sizes);
}

Tensor fold_batch(const Batched& tensor, int64_t into) {
  if (!tensor.is_batched()) return tensor.value;
  Tensor value = tensor.value.movedim(tensor.dim, into);
  SymShape sizes(value.sym_sizes());
  sizes[into + 1] = sizes[into] * sizes[into + 1];
  sizes.erase(static_cast<size_t>(into));
  return value.reshape(sizes);
}

Batched unfold_batch(const Tensor& value, int64_t at) {
  SymShape sizes;
  for (int64_t d = 0; d < value.dim(); ++d) {
    SymInt size = value.sym_sizes()[d];
    if (d == at) {
      sizes.push_back(batch_scope().size);
      size = batch_scope().size == 0 ? SymInt(1) : size / batch_scope().size;
    }
    sizes.push_back(size);
  }
  return {value.reshape(sizes), at};
}

Tensor batch_flat(const Batched& tensor) {
  Tensor value = batch_first(tensor);
  if (value.dim() == 2) return value;
  return value.dim() == 1 ? value.unsqueeze(1) : value.flatten(1);
}

std::vector<int64_t> inner_dims(const Batched& tensor) {
  std::vector<int64_t> out;
  for (int64_t d = 0; d < tensor.rank(); ++d) out.push_back(d + 1);
  return out;
}

namespace {

Value wrap_results(const Value& v, int64_t dim) {
  if (v.is_tensor()) return Value(Batched(v.tensor_ref(), dim));
  if (!v.is_tensor_list()) return v;
  std::vector<Tensor> list;
  for (const Tensor& t : v.tensor_list()) list.push_back(Batched(t, dim).wrap());
  return Value(std::move(list));
}

std::vector<int> positions(const Operator& op, const std::vector<const char*>& names) {
  std::vector<int> out;
  for (const char* name : names) {
    int i = op.schema().find(name);
    check(i >= 0, op.name(), ": a batching rule names '", name, "', which the schema does not have");
    out.push_back(i);
  }
  return out;
}

// ---- the batch in front ----

struct FrontRule {
  const Operator* op;
  std::vector<int> dims, sizes;
  BatchInFront options;

  static void run(const void* context, Value* frame) { static_cast<const FrontRule*>(context)->apply(frame); }

  void apply(Value* frame) const {
    bool lifted = lifts(frame);
    int64_t rank = dims.empty() ? 0 : first_rank(frame);
    // What the operator refuses without a batch it refuses in its own words: a batch must not make a matrix of rows.
    bool counts_from_the_end = dims.empty() && sizes.empty();
    if (counts_from_the_end || (rank == 0 && !dims.empty() && !options.scalars)) (void)seen_sizes(frame);
    Frame inner(*op);
    for (size_t i = 0; i < op->argument_count(); ++i) inner[i] = physical(frame[i], lifted);
    for (int i : dims) inner[i] = shifted(frame[i], rank);
    for (int i : sizes)
      if (!frame[i].is_none()) inner[i] = Value(batch_sizes(frame[i].int_list()).vec());
    std::vector<SymShape> seen;
    if (lifted) seen = seen_sizes(frame);
    op->call(inner.data());
    for (size_t i = 0; i < seen.size() && i < op->return_count(); ++i)
      if (inner[i].is_tensor()) inner[i] = Value(inner[i].tensor_ref().reshape(batch_sizes(seen[i])));
    for (size_t i = 0; i < op->return_count(); ++i) frame[i] = wrap_results(inner[i], 0);
  }

  /// Whether 0-d tensors are given a dimension for the call.
  bool lifts(const Value* frame) const {
    bool any = false;
    if (options.scalars)
      for (size_t i = 0; i < op->argument_count(); ++i)
        frame[i].each_tensor([&](const TensorImpl* t) { any |= t->dim() == 0; });
    return any;
  }

  static int64_t first_rank(const Value* frame) {
    return frame[0].is_tensor_list() ? frame[0].tensor_list()[0].dim() : frame[0].tensor_ref().dim();
  }

  Tensor physical(const Tensor& t, bool lifted) const {
    Batched b = Batched::of(t);
    Tensor value = options.expand ? batch_all(b) : batch_first(b);
    bool lift = lifted && b.rank() == 0 && (options.expand || b.is_batched());
    return lift ? value.unsqueeze(1) : value;
  }
  Value physical(const Value& v, bool lifted) const {
    if (v.is_tensor()) return Value(physical(v.tensor_ref(), lifted));
    if (!v.is_tensor_list()) return Value::borrow(v);
    std::vector<Tensor> list;
    for (const Tensor& t : v.tensor_list()) list.push_back(t.defined() ? physical(t, lifted) : t);
    return Value(std::move(list));
  }

  Value shifted(const Value& v, int64_t rank) const {
    auto one = [&](int64_t d) { return wrap_dim(d, rank) + 1; };
    if (v.is_int()) return Value(one(v.to_int()));
    bool all = v.is_none() ? options.none_is_all : v.int_list().empty() && options.empty_is_all;
    std::vector<int64_t> out;
    if (all)
      for (int64_t d = 0; d < std::max<int64_t>(rank, 1); ++d) out.push_back(d + 1);
    else if (v.is_none()) return Value();
    else
      for (SymInt d : v.int_list()) out.push_back(one(d.guard_int()));
    return Value(std::move(out));
  }

  /// The sizes of the results as the function under vmap sees them.
  std::vector<SymShape> seen_sizes(const Value* frame) const {
    const Definition& d = op->definition();
    Frame logical(*op, frame);
    std::vector<SymShape> out;
    if (d.meta) {
      SpecList specs;
      d.meta(specs, logical.data());
      for (size_t i = 0; i < specs.size(); ++i) out.push_back(specs[i].sizes);
    } else if (d.view) {
      d.view(logical.data());
      if (logical[0].is_tensor()) out.emplace_back(logical[0].tensor_ref().sym_sizes());
    }
    return out;
  }
};

// ---- the batch in its place ----

struct PlaceRule {
  const Operator* op;
  int sizes, format;
  bool in_rows;

  static void run(const void* context, Value* frame) { static_cast<const PlaceRule*>(context)->apply(frame); }

  void apply(Value* frame) const {
    Frame inner(*op, frame);
    Batched self = placed(Batched::of(frame[0].tensor_ref()), format < 0 ? Value() : frame[format]);
    inner[0] = Value(self.value);
    if (sizes >= 0) inner[sizes] = Value(batch_sizes(frame[sizes].int_list()).vec());
    op->call(inner.data());
    for (size_t i = 0; i < op->return_count(); ++i) {
      if (self.is_batched()) frame[i] = wrap_results(inner[i], sizes >= 0 ? 0 : self.dim);
      else frame[i] = Value(unfold_batch(inner[i].tensor_ref(), 0));
    }
  }

  /// A memory format that asks for a certain rank is meant for what the function under vmap sees: the batch becomes a
  /// part of the first dimension.
  Batched placed(const Batched& self, const Value& format) const {
    if (format.is_none() || format.to_memory_format() == MemoryFormat::Preserve) return self;
    if (format.to_memory_format() == MemoryFormat::Contiguous) return in_rows ? Batched(batch_first(self), 0) : self;
    return {fold_batch(self, 0), -1};
  }
};

// ---- by other operators ----

void run_parts(const void* context, Value* frame) { (*static_cast<const BoxedFunction*>(context))(frame); }

// ---- random numbers ----

/// `Different` draws for the whole batch, `Same` for one element of it: a result without a batch dimension.
void run_random_like(const void* context, Value* frame) {
  const Operator& op = *static_cast<const Operator*>(context);
  Batched self = Batched::of(frame[0].tensor_ref());
  bool same = batch_scope().randomness == Randomness::Same;
  if (same && self.is_batched()) self = {self.value.select(self.dim, 0), -1};
  if (!same) self = {batch_all(self), 0};
  Frame inner(op, frame);
  inner[0] = Value(self.value);
  op.call(inner.data());
  frame[0] = Value(Batched(inner[0].tensor_ref(), self.dim));
}

/// The first tensor has the whole batch, for the numbers to be those of its elements.
void run_random(const void* context, Value* frame) {
  const Operator& op = *static_cast<const Operator*>(context);
  check_all_differ();
  int64_t rank = 0;
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (frame[i].is_tensor()) rank = std::max(rank, frame[i].tensor_ref().dim());
  Frame inner(op, frame);
  bool first = true;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (!frame[i].is_tensor()) continue;
    Batched b = Batched::of(frame[i].tensor_ref());
    if (first) b = {batch_all(b), 0};
    first = false;
    inner[i] = Value(batch_first(b, rank));
  }
  op.call(inner.data());
  frame[0] = Value(Batched(inner[0].tensor_ref(), 0));
}

void refuse_batch(const void* context, Value*) {
  fail("vmap: we do not yet support ", static_cast<const Operator*>(context)->name(), ". Please file an issue");
}

void run_one_by_one(const void* context, Value* frame) {
  batch_one_by_one(*static_cast<const Operator*>(context), frame);
}

}  // namespace

void BatchInFront::operator()(OperatorBuilder& builder) const {
  const Operator& op = builder.op();
  auto* rule = new FrontRule{&op, positions(op, dims), positions(op, sizes), *this};
  builder.definition().batch = {FrontRule::run, rule};
}

void BatchInPlace::operator()(OperatorBuilder& builder) const {
  const Operator& op = builder.op();
  auto* rule = new PlaceRule{&op, sizes ? positions(op, {sizes})[0] : -1, op.schema().find("memory_format"), in_rows};
  builder.definition().batch = {PlaceRule::run, rule};
}

void BatchRandomLike::operator()(OperatorBuilder& builder) const {
  builder.definition().batch = {run_random_like, &builder.op()};
}

void BatchRandom::operator()(OperatorBuilder& builder) const {
  builder.definition().batch = {run_random, &builder.op()};
}

void NotBatched::operator()(OperatorBuilder& builder) const {
  builder.definition().batch = {refuse_batch, &builder.op()};
}
bool is_refused(const BoxedFunction& rule) { return rule.function == refuse_batch; }

void check_all_differ() {
  check(batch_scope().randomness != Randomness::Same,
        "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with "
        "functorch");
}

BoxedFunction through_parts(BoxedFunction function) { return {run_parts, new BoxedFunction(function)}; }
const BoxedFunction* parts_of(const BoxedFunction& rule) {
  return rule.function == run_parts ? static_cast<const BoxedFunction*>(rule.context) : nullptr;
}

void BatchOneByOne::operator()(OperatorBuilder& builder) const {
  builder.definition().batch = {run_one_by_one, &builder.op()};
}

bool is_one_by_one(const BoxedFunction& rule) { return rule.function == run_one_by_one; }

void batch_one_by_one(const Operator& op, Value* frame) {
  if (!op.definition().random)
    warn("There is a performance drop because we have not yet implemented the batching rule for ", op.name(),
         ". Please file us an issue on GitHub so that we can prioritize its implementation.");
  int64_t count = batch_scope().size.guard_int();
  check(count > 0, op.name(), " has no batching rule, and there is nothing to take its shape from in an empty batch");
  std::vector<std::vector<Tensor>> results(op.return_count());
  for (int64_t i = 0; i < count; ++i) {
    auto slice = [&](const Tensor& t) {
      Batched b = Batched::of(t);
      return b.is_batched() ? b.value.select(b.dim, i) : b.value;
    };
    Frame one(op, frame);
    for (size_t a = 0; a < op.argument_count(); ++a) {
      if (frame[a].is_tensor()) one[a] = Value(slice(frame[a].tensor_ref()));
      if (!frame[a].is_tensor_list()) continue;
      std::vector<Tensor> list = frame[a].tensor_list().vec();
      for (Tensor& t : list)
        if (t.defined()) t = slice(t);
      one[a] = Value(std::move(list));
    }
    op.call(one.data());
    for (size_t r = 0; r < results.size(); ++r) results[r].push_back(one[r].take_tensor());
  }
  for (size_t r = 0; r < results.size(); ++r)
    frame[r] = results[r][0].defined() ? Value(Batched(stack(results[r], 0), 0)) : Value();
}

// ---- elementwise ----

namespace {

/// A 0-d tensor has a lower rank in promotion; with its batch dimension it would not. It gets the type that comes of
/// the ranks the function sees.
void keep_promotion(const Operator& op, const Value* frame, std::vector<Batched>& tensors) {
  ResultType seen, whole;
  bool some = false;
  for (size_t i = 0, next = 0; i < op.argument_count(); ++i) {
    if (!frame[i].is_tensor()) continue;
    Batched& t = tensors[next++];
    seen.add(frame[i].tensor_ref());
    whole.add(t.value);
    some |= t.is_batched() && t.rank() == 0;
  }
  if (!some || seen.get() == whole.get()) return;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Batched& t = tensors[i];
    if (op.is_inplace() && i == 0) continue;
    if (t.is_batched() && t.rank() == 0 && t.value.dtype() != DType::Bool) t.value = t.value.to(seen.get());
  }
}

}  // namespace

void batch_elementwise(const Operator& op, Value* frame) {
  std::vector<Batched> tensors;
  int64_t rank = 0;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (!frame[i].is_tensor()) continue;
    tensors.push_back(Batched::of(frame[i].tensor_ref()));
    rank = std::max(rank, tensors.back().rank());
  }
  Frame inner(op, frame);
  int64_t dim = 0;
  if (tensors.size() == 1) {
    dim = tensors[0].dim;
    for (size_t i = 0; i < op.argument_count(); ++i)
      if (frame[i].is_tensor()) inner[i] = Value(tensors[0].value);
  } else {
    keep_promotion(op, frame, tensors);
    for (size_t i = 0, next = 0; i < op.argument_count(); ++i)
      if (frame[i].is_tensor()) inner[i] = Value(batch_first(tensors[next++], rank));
  }
  op.call(inner.data());
  for (size_t i = 0; i < op.return_count(); ++i)
    if (inner[i].is_tensor()) frame[i] = Value(Batched(inner[i].tensor_ref(), dim));
    else frame[i] = std::move(inner[i]);
}

}  // namespace umbra::ops
