#include "umbra/aot/analysis.h"

#include "umbra/autograd/autograd.h"
#include "umbra/capture/functionalize.h"
#include "umbra/capture/lift.h"

namespace umbra::aot {

std::vector<size_t> CallInfo::written() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < primals.size(); ++i)
    if (primals[i].written) out.push_back(i);
  return out;
}

std::vector<size_t> CallInfo::differentiable_primals() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < primals.size(); ++i)
    if (primals[i].requires_grad) out.push_back(i);
  return out;
}

bool CallInfo::needs_gradients() const {
  bool any = false;
  for (const OutputInfo& o : outputs) any |= o.requires_grad && o.kind == OutputInfo::Kind::Fresh;
  return any && !differentiable_primals().empty();
}

Tensor untracked(const Tensor& tensor) {
  Tensor out = alias_tensor(tensor, tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset());
  out.impl()->remove_key(DispatchKey::Autograd);
  return out;
}

namespace {

Tensor stand_in(FakeModeImpl& mode, const Tensor& real) {
  Tensor fake = mode.from_tensor(untracked(real));
  Tensor wrapper = to_functional(fake);
  if (real.requires_grad()) wrapper.requires_grad_();
  return wrapper;
}

// A write to memory that two of the tensors share would have to be seen through both.
void check_no_shared_writes(const CallInfo& info) {
  for (size_t i = 0; i < info.primals.size(); ++i)
    for (size_t j = 0; j < info.primals.size(); ++j)
      if (!info.primals[i].tensor.is_same(info.primals[j].tensor) && info.primals[i].written &&
          info.primals[i].tensor.storage() == info.primals[j].tensor.storage())
        fail<NotImplementedError>("the function writes tensor ", i, ", which shares memory with tensor ", j,
                                  ": ahead-of-time autograd does not support that yet; pass a clone of one of them");
}

OutputInfo describe(const Value& result, const std::vector<Tensor>& primals, const std::vector<Tensor>& earlier) {
  OutputInfo info;
  if (!result.is_tensor()) {
    info.kind = OutputInfo::Kind::Plain;
    info.value = result;
    return info;
  }
  const Tensor& t = result.tensor_ref();
  info.requires_grad = t.requires_grad();
  info.dtype = t.dtype();
  info.device = t.device();
  info.sizes = SymShape(t.sym_sizes());
  info.strides = SymShape(t.sym_strides());
  info.offset = t.sym_storage_offset();
  for (size_t i = 0; i < primals.size(); ++i) {
    if (!(primals[i].storage() == t.storage())) continue;
    info.kind = primals[i].is_same(t) ? OutputInfo::Kind::Input : OutputInfo::Kind::InputView;
    info.base = i;
    info.views = functional_state(t).views;
    return info;
  }
  for (size_t i = 0; i < earlier.size(); ++i) {
    // Views of a fresh output can be made again from it where it is the whole of its storage.
    if (!earlier[i].defined() || !(earlier[i].storage() == t.storage()) || earlier[i].is_view()) continue;
    info.kind = OutputInfo::Kind::OutputView;
    info.base = i;
    info.views = functional_state(t).views;
    return info;
  }
  return info;
}

}  // namespace

CallInfo analyse(const ValueFunction& function, const std::vector<Tensor>& inputs) {
  FakeOptions fake;
  fake.allow_non_fake_inputs = true;
  auto mode = make_counted<FakeModeImpl>(std::move(fake));
  CallInfo info;
  info.input_count = inputs.size();
  std::vector<Tensor> wrappers;
  auto add = [&](const Tensor& real) {
    wrappers.push_back(stand_in(*mode, real));
    info.primals.push_back({real, real.requires_grad(), false});
    return wrappers.back();
  };
  auto lift = make_counted<LiftMode>(add);
  for (const Tensor& t : inputs) lift->set(t, add(t));
  std::vector<Value> results;
  {
    EnterMode fake_scope(mode), functional_scope(make_counted<FunctionalMode>()), lift_scope(lift);
    results = function(std::vector<Value>(wrappers.begin(), wrappers.begin() + static_cast<ptrdiff_t>(inputs.size())));
  }
  for (size_t i = 0; i < wrappers.size(); ++i) info.primals[i].written = was_written(wrappers[i]);
  check_no_shared_writes(info);
  std::vector<Tensor> earlier;
  for (const Value& v : results) {
    info.outputs.push_back(describe(v.is_tensor() ? Value(lift->replace(v.tensor_ref())) : v, wrappers, earlier));
    earlier.push_back(info.outputs.back().kind == OutputInfo::Kind::Fresh ? v.tensor() : Tensor());
  }
  return info;
}

std::string to_string(const CallInfo& info) {
  constexpr const char* kKinds[] = {"fresh", "input", "view of input", "view of output", "plain"};
  std::string out;
  for (size_t i = 0; i < info.primals.size(); ++i) {
    const PrimalInfo& p = info.primals[i];
    out += concat("primal ", i, i < info.input_count ? " (input)" : " (closed over)", p.requires_grad ? ", requires grad" : "", p.written ? ", written" : "", "\n");
  }
  for (size_t i = 0; i < info.outputs.size(); ++i) {
    const OutputInfo& o = info.outputs[i];
    out += concat("output ", i, ": ", kKinds[static_cast<int>(o.kind)]);
    if (o.kind != OutputInfo::Kind::Fresh && o.kind != OutputInfo::Kind::Plain) out += concat(" ", o.base);
    out += o.requires_grad ? ", requires grad\n" : "\n";
  }
  return out;
}

}  // namespace umbra::aot
