#include "aot/outputs.h"

#include <algorithm>

#include "umbra/autograd/autograd.h"
#include "umbra/autograd/function.h"

namespace umbra::aot {

namespace {

using Kind = OutputInfo::Kind;

TensorSpec spec_of(const Tensor& t) { return TensorSpec(t.sym_sizes(), t.sym_strides(), t.dtype(), t.device()); }

bool same_step(const ViewStep& a, const ViewStep& b) {
  if (a.op != b.op || a.output != b.output) return false;
  for (size_t i = 1; i < a.arguments.size(); ++i)
    if (!a.arguments[i].equals(b.arguments[i])) return false;
  return true;
}

/// Whether a tensor can be made of another by views, and by how many of the steps that it is from their common base.
bool is_view_of(const Tensor& t, const Tensor& other) {
  if (!other.defined() || !is_functional(other) || !(other.storage() == t.storage())) return false;
  const std::vector<ViewStep>&all = functional_state(t).views, &first = functional_state(other).views;
  return first.size() <= all.size() && std::equal(first.begin(), first.end(), all.begin(), same_step);
}

/// The view of `source` that lies where the tensor lies, and has no history where the tensor has none.
std::vector<ViewStep> place_of(const Tensor& t, const Tensor& source) {
  std::vector<Value> place{Value(), Value(t.sym_sizes().vec()), Value(t.sym_strides().vec()),
                           Value(t.sym_storage_offset())};
  std::vector<ViewStep> steps{ViewStep{&get_operator("aten::as_strided"), std::move(place)}};
  if (source.requires_grad() && !t.requires_grad()) steps.push_back(ViewStep{&get_operator("aten::detach"), {Value()}});
  return steps;
}

std::vector<ViewStep> steps_from(const Tensor& source, const Tensor& t) {
  const std::vector<ViewStep>& all = functional_state(t).views;
  auto first = all.begin() + static_cast<ptrdiff_t>(functional_state(source).views.size());
  // A step that looks at another tensor (slice_inverse) cannot be made again at a call, where that one is gone.
  bool looks_elsewhere = false;
  for (auto step = first; step != all.end(); ++step)
    for (size_t i = 1; i < step->arguments.size(); ++i)
      step->arguments[i].each_tensor([&](TensorImpl*) { looks_elsewhere = true; });
  if (looks_elsewhere) return place_of(t, source);
  return {first, all.end()};
}

/// The outputs of one call, one after the other.
class Outputs {
 public:
  Outputs(CallInfo& info, const std::vector<Value>& results, const std::vector<Tensor>& sources)
      : info_(info), sources_(sources) {
    for (const Value& v : results) tensors_.push_back(v.is_tensor() ? v.tensor() : Tensor());
    for (size_t i = 0; i < results.size(); ++i)
      info.outputs.push_back(tensors_[i].defined() ? describe(i) : plain(results[i]));
  }

 private:
  static OutputInfo plain(const Value& value) {
    value.each_tensor([](TensorImpl*) {
      fail<NotImplementedError>(
          "the function returns a list that holds tensors: ahead-of-time autograd takes tensors one by one");
    });
    OutputInfo out;
    out.kind = value.is_symbolic() ? Kind::Computed : Kind::Plain;
    out.value = value;
    return out;
  }

  OutputInfo describe(size_t i) {
    const Tensor& t = tensors_[i];
    OutputInfo out;
    out.requires_grad = t.requires_grad();
    out.made_without_grad = t.is_view() && t.impl()->view_kind() == ViewKind::NoGrad;
    out.spec = spec_of(t);
    if (out.requires_grad) autograd::grad_fn(t);  // a view whose history is lost is refused, as where it is used
    if (find_same(i, out) || has_own_gradient(t)) return out;
    if (is_functional(t) && !find_source(t, out) && !find_changed_source(t, out) && !find_output(i, out))
      find_intermediate(i, out);
    refuse_own_history(t, out);
    return out;
  }

  /// A view that a custom function made goes back by that function, which a view that is taken again would not know of.
  static bool has_own_gradient(const Tensor& t) {
    if (!t.requires_grad() || !is_functional(t)) return false;
    if (t.is_view()) return t.impl()->view_kind() == ViewKind::CustomFunction;
    auto cuts_history = [](const ViewStep& step) { return step.op->definition().not_differentiable; };
    return std::ranges::any_of(functional_state(t).views, cuts_history) &&
           dynamic_cast<const autograd::FunctionNode*>(autograd::grad_fn(t).get());
  }

  /// What was detached and then written with gradients has a history apart from that of the memory it shares.
  static void refuse_own_history(const Tensor& t, const OutputInfo& out) {
    for (const ViewStep& step : out.views)
      check<NotImplementedError>(
          !step.op->definition().not_differentiable || !t.requires_grad(),
          "the function returns a tensor that shares memory with another by ", step.op->name(),
          " and was then written with gradients: that cannot be captured; clone() it before it is written");
  }

  /// A view that was taken before its input became a view of itself lies where it lies, whatever the input is now; also
  /// where that changed nothing of the input's look.
  bool find_changed_source(const Tensor& t, OutputInfo& out) const {
    for (size_t i = 0; i < sources_.size(); ++i) {
      const Tensor& source = sources_[i];
      if (!source.defined() || !is_functional(source) || !(source.storage() == t.storage())) continue;
      out.kind = Kind::InputView;
      out.base = i;
      out.views = place_of(t, source);
      return true;
    }
    return false;
  }

  /// One tensor that is given twice is one tensor for the caller.
  bool find_same(size_t i, OutputInfo& out) const {
    auto same = [&](const Tensor& other) { return other.defined() && other.is_same(tensors_[i]); };
    if (std::ranges::any_of(sources_, same)) return false;
    auto end = tensors_.begin() + static_cast<ptrdiff_t>(i), first = std::find_if(tensors_.begin(), end, same);
    if (first == end) return false;
    out.kind = Kind::Output;
    out.base = static_cast<size_t>(first - tensors_.begin());
    return true;
  }

  bool find_source(const Tensor& t, OutputInfo& out) const {
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (!is_view_of(t, sources_[i])) continue;
      bool nearer = out.kind == Kind::Fresh ||
                    functional_state(sources_[i]).views.size() > functional_state(sources_[out.base]).views.size();
      if (sources_[i].is_same(t)) return out.kind = Kind::Input, out.base = i, true;
      if (nearer) out.kind = Kind::InputView, out.base = i;
    }
    if (out.kind == Kind::InputView) out.views = steps_from(sources_[out.base], t);
    return out.kind == Kind::InputView;
  }

  bool find_output(size_t i, OutputInfo& out) const {
    const Tensor& t = tensors_[i];
    for (size_t j = 0; j < tensors_.size(); ++j) {
      const Tensor& other = tensors_[j];
      if (!other.defined() || i == j) continue;
      if (!is_whole(other) || is_whole(t) || !is_view_of(t, other)) continue;
      out.kind = Kind::OutputView;
      out.base = j;
      out.views = steps_from(other, t);
      return true;
    }
    return false;
  }

  static bool is_whole(const Tensor& t) { return is_functional(t) && functional_state(t).views.empty(); }

  /// Two outputs that are views of one tensor change together when one is written: both are made of that tensor.
  void find_intermediate(size_t i, OutputInfo& out) {
    const Tensor& t = tensors_[i];
    if (is_whole(t)) return;
    Tensor base;
    size_t members = 0, view = i;
    for (size_t j = 0; j < tensors_.size(); ++j) {
      if (!tensors_[j].defined() || !(tensors_[j].storage() == t.storage()) || (i != j && tensors_[j].is_same(t)))
        continue;
      ++members;
      if (tensors_[j].is_view()) base = Tensor(tensors_[j].impl()->view_base()), view = j;
    }
    bool needs_base =
        members > 1 || (out.made_without_grad && out.requires_grad);  // such a view has no history but its base's
    if (!needs_base || !base.defined()) return;
    size_t number = 0;
    while (number < info_.intermediates.size() &&
           !(tensors_[info_.intermediates[number].output].storage() == t.storage()))
      ++number;
    if (number == info_.intermediates.size())
      info_.intermediates.push_back({view, base.requires_grad(), spec_of(base)});
    out.kind = Kind::IntermediateView;
    out.base = number;
    // A base that became a view of itself meanwhile is not what the views were taken of; they lie where they lie.
    bool moved = is_functional(base) && !is_whole(base);
    out.views = moved ? place_of(t, base) : functional_state(t).views;
  }

  CallInfo& info_;
  const std::vector<Tensor>& sources_;
  std::vector<Tensor> tensors_;
};

}  // namespace

void describe_outputs(CallInfo& info, const std::vector<Value>& results, const std::vector<Tensor>& sources) {
  Outputs(info, results, sources);
}

std::string to_string(const OutputInfo& o) {
  constexpr const char* kKinds[] = {
      "fresh", "input", "view of input", "output", "view of output", "view of intermediate", "plain", "computed"};
  std::string out = kKinds[static_cast<int>(o.kind)];
  if (o.kind != Kind::Fresh && o.kind != Kind::Plain && o.kind != Kind::Computed) out += concat(" ", o.base);
  if (o.requires_grad) out += ", requires grad";
  return out;
}

}  // namespace umbra::aot
