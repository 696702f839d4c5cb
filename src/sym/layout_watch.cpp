#include "sym/layout_watch.h"

#include <algorithm>
#include <utility>

#include "sym/rely.h"

namespace umbra::sym {

namespace {
thread_local LayoutWatch* g_current = nullptr;
}  // namespace

LayoutWatch::LayoutWatch(ShapeEnv& env, Composites composites)
    : env_(env), composites_(composites), before_(std::exchange(g_current, this)) {}
LayoutWatch::~LayoutWatch() { g_current = before_; }
LayoutWatch* LayoutWatch::current() { return g_current; }

void LayoutWatch::note_copy(const Tensor& from, const Tensor& copy, CopyIs what) {
  storages_.insert(from.storage().get());
  storages_.insert(copy.storage().get());
  reshaped_ |= what == CopyIs::Reshaped;
  for (SymInt size : from.sym_sizes())
    if (size.is_symbolic()) sizes_.insert(size.raw());
  for (SymIntArrayRef numbers : {from.sym_sizes(), from.sym_strides()})
    open_ |= std::any_of(numbers.begin(), numbers.end(), [](SymInt number) { return !number.has_hint(); });
}

void LayoutWatch::note_shared(const Tensor& t) {
  if (in_doubt() && t.is_symbolic()) storages_.insert(t.storage().get());
}

const Tensor& LayoutWatch::original(const Tensor& t) const {
  auto found = same_.find(t.impl());
  return found == same_.end() ? t : original(found->second.second);
}

void LayoutWatch::rely_on_condition(SymBool holds) {
  const Expression* condition = env_.simplify(env_.expression(holds));
  if (condition->has_hint()) return env_.rely_on(condition);
  check(holds.expect_true(), "a tensor whose layout the program goes by lies otherwise");
}

void LayoutWatch::rely_on_size(SymInt size) {
  if (!size.is_symbolic()) return;
  if (!size.has_hint()) {
    check(sym_gt(size, 1).expect_true(), "a size of a tensor whose layout the program goes by is not above 1");
    return;
  }
  const Expression* expression = env_.simplify(env_.expression(size));
  int64_t example = size.hint();
  check<NotImplementedError>(example != 0,
                             "how a tensor lies in memory, which the program goes by, is not known where ", "its size ",
                             size, " is 0");
  ExpressionTable& table = env_.table();
  env_.rely_on(example == 1 ? table.relation(Kind::Eq, expression, table.integer(1))
                            : table.relation(Kind::Le, table.integer(2), expression));
}

void LayoutWatch::rely_on(const Tensor& t) {
  check<NotImplementedError>(!open_, "how tensors lie in memory, which the program goes by, depends on a copy that is ",
                             "made where it has to be, which only the run tells; make it with clone() instead");
  rely_on_sizes_above_one(env_);
  for (SymInt size : t.sym_sizes()) rely_on_size(size);
  for (int64_t raw : sizes_) rely_on_size(SymInt::from_raw(raw));
  for (SymBool holds : conditions_) rely_on_condition(holds);
  for (auto [a, b] : orders_) env_.rely_on(SymOp::Lt, a, b);
}

Tensor with_noted_copy(const Tensor& from, Tensor copy, CopyIs what) {
  LayoutWatch* watch = LayoutWatch::current();
  if (watch && (from.is_symbolic() || copy.is_symbolic())) watch->note_copy(from, copy, what);
  return copy;
}

Tensor with_noted_sharing(const Tensor& from, Tensor view) {
  if (LayoutWatch* watch = LayoutWatch::current()) watch->note_shared(from);
  return view;
}

}  // namespace umbra::sym
