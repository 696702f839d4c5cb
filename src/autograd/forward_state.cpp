#include "autograd/forward_state.h"

#include "autograd/meta.h"
#include "core/per_thread.h"
#include "umbra/autograd/forward.h"
#include "umbra/core/tangent.h"
#include "umbra/dispatch/batching.h"
#include "umbra/generated/functions.h"

namespace umbra::autograd {

namespace {

// Read by every call that passes autograd.
constinit thread_local int g_visible __attribute__((tls_model("initial-exec"))) = 0;

// Whether levels that are open are hidden, until another is opened.
constinit thread_local bool g_hidden __attribute__((tls_model("initial-exec"))) = false;

struct Level {
  std::vector<WeakPtr<TensorImpl>> tensors;  // those that were given tangents, so that these end with it
  bool hidden_before;
};
std::vector<Level>& levels() {
  static PerThread<std::vector<Level>> stack;
  return *stack;
}

int checked_level(int level) {
  int count = static_cast<int>(levels().size());
  check(level < count, "Trying to use a dual level that is not open: ", level);
  return level < 0 ? count : level + 1;
}

const Tensor* own_tangent(const TensorImpl* tensor, int level) {
  const AutogradMeta* meta = meta_of(tensor);
  if (!meta || !meta->rare) return nullptr;
  for (const Tangent& t : meta->rare->tangents)
    if (t.level == level) return &t.value;
  return nullptr;
}

int own_highest_level(const TensorImpl* tensor) {
  const AutogradMeta* meta = meta_of(tensor);
  int highest = 0;
  if (meta && meta->rare)
    for (const Tangent& t : meta->rare->tangents)
      if (t.level <= g_visible) highest = std::max(highest, t.level);
  return highest;
}

}  // namespace

bool (*is_batch)(const Tensor& tensor) = [](const Tensor&) { return false; };

int visible_level() { return g_visible; }

ShowLevels::ShowLevels(int level) : before_(std::exchange(g_visible, level)) {}
ShowLevels::~ShowLevels() { g_visible = before_; }

const Tensor* tangent_at(const TensorImpl* tensor, int level) {
  if (const Tensor* own = own_tangent(tensor, level)) return own;
  const IntrusivePtr<TensorImpl>& base = tensor->view_base();
  const Tensor* whole = base ? own_tangent(base.get(), level) : nullptr;
  if (!whole) return nullptr;
  // The base was written after the view was made: the view's tangent is a view of the base's, from now on.
  ShowLevels lower(level - 1);
  Tensor view{IntrusivePtr<TensorImpl>(const_cast<TensorImpl*>(tensor))};
  set_tangent(view, same_view(*whole, Tensor(base), view), level);
  return own_tangent(tensor, level);
}

int highest_level(const TensorImpl* tensor) {
  int own = own_highest_level(tensor);
  return tensor->view_base() ? std::max(own, own_highest_level(tensor->view_base().get())) : own;
}

int highest_level(TensorList tensors) {
  int highest = 0;
  if (g_visible > 0)
    for (const Tensor& t : tensors)
      if (t.defined()) highest = std::max(highest, highest_level(t.impl()));
  return highest;
}

namespace {

SymInt elements_in_memory(const Tensor& t) { return t.storage()->bytes() / t.item_size(); }

bool lie_alike(const Tensor& a, const Tensor& b) {
  if (!(a.sym_storage_offset() == b.sym_storage_offset())) return false;
  SymInt around_a = elements_in_memory(a), around_b = elements_in_memory(b);
  bool known = !around_a.is_symbolic() && !around_b.is_symbolic();
  if (known && !around_a.same(around_b) && !is_batch(a) && !is_batch(b)) return false;
  for (int64_t d = 0; d < a.dim(); ++d) {
    SymInt size = a.sym_sizes()[d], one = a.sym_strides()[d], other = b.sym_strides()[d];
    if (!one.same(other) && !size.same(1) && !size.same(0) && !(one == other)) return false;
  }
  return true;
}

/// A tangent in memory as its tensor is: what looks into the tensor's memory (as_strided) will look into the tangent's.
Tensor laid_out_as(const Tensor& tensor, const Tensor& tangent, int level) {
  bool strided = tensor.layout() == Layout::Strided && tangent.layout() == Layout::Strided;
  const IntrusivePtr<TensorImpl>& base = tensor.impl()->view_base();
  bool follows = base && own_tangent(base.get(), level);  // a view of the base's tangent lies as it does
  if (!strided || follows || lie_alike(tensor, tangent)) return tangent;
  for (SymInt size : tensor.sym_sizes())
    if (size.same(0)) return tangent;
  Tensor memory = tangent.new_zeros({elements_in_memory(tensor)});
  return memory.as_strided(tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset()).copy_(tangent);
}

/// Views of a lazily conjugated or negated tensor look into its memory, and will do so with its tangent; those of
/// another (view_as_real) refuse a tangent that is lazy.
Tensor as_lazy_as(const Tensor& tensor, Tensor tangent) {
  if (tangent.is_conj() != tensor.is_conj())
    tangent = tangent.is_conj() ? tangent.resolve_conj() : _conj(_conj(tangent).clone());
  if (tangent.is_neg() != tensor.is_neg())
    tangent = tangent.is_neg() ? tangent.resolve_neg() : _neg_view(_neg_view(tangent).clone());
  return tangent;
}

}  // namespace

void set_tangent(const Tensor& tensor, const Tensor& tangent, int level) {
  check(tensor.sym_sizes() == tangent.sym_sizes(),
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
        "supported. Tensor is of "
        "size ",
        to_string(tensor.sym_sizes()), " while the given forward gradient is of size ", to_string(tangent.sym_sizes()),
        ".");
  Tensor kept = as_lazy_as(tensor, laid_out_as(tensor, tangent, level));
  std::vector<Tangent>& tangents = ensure_meta(tensor.impl()).rarely().tangents;
  for (Tangent& t : tangents)
    if (t.level == level) {
      t.value = std::move(kept);
      return;
    }
  tangents.push_back({level, std::move(kept)});
  levels().at(level - 1).tensors.emplace_back(tensor.pointer());
}

int enter_dual_level() {
  levels().push_back({{}, std::exchange(g_hidden, false)});
  g_visible = static_cast<int>(levels().size());
  return g_visible - 1;
}

bool forward_mode_enabled() { return !g_hidden; }

void set_forward_mode_enabled(bool enabled) {
  g_hidden = !enabled;
  g_visible = enabled ? static_cast<int>(levels().size()) : 0;
}

void exit_dual_level(int level) {
  auto& stack = levels();
  check(!stack.empty(), "Trying to exit a forward AD level but no level exists.");
  int count = static_cast<int>(stack.size());
  check(level < 0 || level == count - 1,
        "Trying to exit a forward AD level that was not the last one that was created.");
  std::vector<WeakPtr<TensorImpl>> tensors = std::move(stack.back().tensors);
  g_hidden = stack.back().hidden_before;
  stack.pop_back();
  g_visible = g_hidden ? 0 : std::min(g_visible, count - 1);
  for (const WeakPtr<TensorImpl>& weak : tensors)
    if (IntrusivePtr<TensorImpl> t = weak.lock())
      std::erase_if(meta_of(t.get())->rarely().tangents,
                    [&](const Tangent& tangent) { return tangent.level >= count; });
}

DualLevel::DualLevel() : level_(enter_dual_level()) {}
DualLevel::~DualLevel() { exit_dual_level(level_); }

namespace {

/// Takes a fresh view's tangent at a level from it, and the base that it would have it from again.
void without_tangent(const Tensor& view, int level) {
  view.impl()->set_view_base(nullptr);
  std::erase_if(ensure_meta(view.impl()).rarely().tangents, [&](const Tangent& t) { return t.level == level; });
}

}  // namespace

Tensor make_dual(const Tensor& primal, const Tensor& tangent, int level) {
  check(!levels().empty(),
        "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.");
  if (!is_differentiable(primal.dtype()))
    fail<ValueError>("Expected primal to be floating point or complex, but got: ", primal.dtype());
  if (!is_differentiable(tangent.dtype()))
    fail<ValueError>("Expected tangent to be floating point or complex, but got: ", tangent.dtype());
  check(!batched_state(primal.impl(), nullptr) && !batched_state(tangent.impl(), nullptr),
        "Batching rule not implemented for aten::_make_dual; the fallback path doesn't work on out= or view ops.");
  int at = checked_level(level);
  check(!tangent_at(tangent.impl(), at), "Setting a forward grad that itself has a forward gradient at the same level",
        at - 1, " is not supported.");
  check(!tangent_at(primal.impl(), at),
        "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level ", at - 1,
        " is not supported.");
  ShowLevels lower(at - 1);
  Tensor dual = alias(primal);
  set_tangent(dual, tangent, at);
  return dual;
}

Dual unpack_dual(const Tensor& tensor, int level) {
  if (levels().empty()) return {tensor, {}};
  int at = checked_level(level);
  const Tensor* tangent = tangent_at(tensor.impl(), at);
  if (!tangent) return {tensor, {}};
  ShowLevels lower(at - 1);
  Tensor primal = alias(tensor);
  // A view takes after the tensor that it looks into; the primal has no tangent at this level, whatever that one has.
  if (tangent_at(primal.impl(), at)) without_tangent(primal, at);
  return {primal, *tangent};
}

}  // namespace umbra::autograd

namespace umbra {

bool has_tangent(const Tensor& tensor) { return autograd::highest_level(tensor.impl()) > 0; }

}  // namespace umbra
