// grad, vjp, jvp and Jacobians over lists of tensors.
#include "umbra/transform/derivatives.h"

#include "autograd/forward_state.h"
#include "umbra/generated/functions.h"
#include "umbra/transform/transform.h"

namespace umbra::transform {

Tensor differentiable(const TrackedLevel& level, const Tensor& value) {
  Tensor t = level.wrap(value);
  return t.requires_grad_();
}

std::vector<Tensor> pull(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& cotangents, const Level& level, autograd::BackwardOptions options) {
  std::vector<Tensor> roots, weights;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad() || level.unwrap(outputs[i]).is_same(outputs[i])) continue;
    roots.push_back(outputs[i]);
    if (!cotangents.empty()) weights.push_back(cotangents[i]);
  }
  std::vector<Tensor> found(inputs.size());
  if (!roots.empty()) found = autograd::grad(roots, inputs, weights, options, true);
  for (size_t i = 0; i < inputs.size(); ++i)
    found[i] = found[i].defined() ? value_if_ended(found[i]) : zeros_like(level.unwrap(inputs[i]));
  return found;
}

Tensor make_dual(const TrackedLevel& level, const Tensor& primal, const Tensor& tangent) {
  if (!is_differentiable(primal.dtype()))
    fail<ValueError>("Expected primal to be floating point or complex, but got: ", primal.dtype());
  if (!is_differentiable(tangent.dtype()))
    fail<ValueError>("Expected tangent to be floating point or complex, but got: ", tangent.dtype());
  Tensor dual = level.wrap(primal);
  autograd::set_tangent(dual, level.wrap(tangent), level.dual_level());
  return dual;
}

Tensor tangent(const TrackedLevel& level, const Tensor& result) {
  const Tensor* found = autograd::tangent_at(result.impl(), level.dual_level());
  return found ? level.unwrap(*found) : Tensor();
}

namespace {

std::vector<Tensor> unwrap_all(const Level& level, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(level.unwrap(t));
  return out;
}

}  // namespace

PullBack vjp(const TensorFunction& function, const std::vector<Tensor>& primals) {
  auto level = make_counted<TrackedLevel>(TrackedLevel::Kind::Reverse);
  std::vector<Tensor> inputs, outputs;
  {
    EnterLevel scope(level);
    for (const Tensor& p : primals) inputs.push_back(differentiable(*level, p));
    outputs = function(inputs);
  }
  auto pull_back = [level, inputs, outputs](const std::vector<Tensor>& cotangents) {
    check(cotangents.size() == outputs.size(), "vjp: the function has ", outputs.size(), " results, but ",
          cotangents.size(), " cotangents are given");
    return pull(outputs, inputs, cotangents, *level, {.retain_graph = true, .create_graph = is_grad_enabled()});
  };
  return {unwrap_all(*level, outputs), pull_back};
}

PushForward jvp(const TensorFunction& function, const std::vector<Tensor>& primals,
                const std::vector<Tensor>& tangents) {
  check(primals.size() == tangents.size(), "jvp: ", primals.size(), " primals and ", tangents.size(), " tangents");
  auto level = make_counted<TrackedLevel>(TrackedLevel::Kind::Forward);
  PushForward result;
  std::vector<Tensor> outputs, along, inputs;
  // Views, as PyTorch's: what the function writes is seen by the caller, what it changes of sizes is not.
  for (const Tensor& primal : primals) inputs.push_back(primal.alias());
  {
    EnterLevel scope(level);
    for (size_t i = 0; i < primals.size(); ++i) inputs[i] = make_dual(*level, inputs[i], tangents[i]);
    outputs = function(inputs);
    for (const Tensor& t : outputs) along.push_back(tangent(*level, t));
  }
  result.outputs = unwrap_all(*level, outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    result.tangents.push_back(along[i].defined() ? along[i] : zeros_like(result.outputs[i]));
  return result;
}

ValueAndGradients grad_and_value(const TensorFunction& function, const std::vector<Tensor>& inputs,
                                 const std::vector<int64_t>& positions) {
  auto level = make_counted<TrackedLevel>(TrackedLevel::Kind::Reverse);
  std::vector<Tensor> arguments = inputs, wanted, outputs;
  {
    EnterLevel scope(level);
    for (Tensor& argument : arguments) argument = level->wrap(argument);
    for (int64_t p : positions)
      wanted.push_back(arguments.at(wrap_dim(p, static_cast<int64_t>(inputs.size()))).requires_grad_());
    outputs = function(arguments);
  }
  check(outputs.size() == 1, "grad: the function has ", outputs.size(), " results, expected one");
  check(outputs[0].dim() == 0, "Expected f(*args) to return a scalar tensor, got tensor with ", outputs[0].dim(),
        " dims. Maybe you wanted to use the vjp or jacrev APIs instead?");
  return {level->unwrap(outputs[0]), pull(outputs, wanted, {}, *level, {.create_graph = is_grad_enabled()})};
}

// ---- Jacobians ----

namespace {

SymShape joined(SymIntArrayRef a, SymIntArrayRef b) {
  SymShape out(a);
  for (SymInt s : b) out.push_back(s);
  return out;
}

/// One unit vector in each place of a tensor of this shape, along a new first dimension.
Tensor unit_vectors(const Tensor& like) {
  SymInt count = like.sym_numel();
  Tensor eye = zeros(SymShape{count, count}, {.dtype = like.dtype(), .device = like.device()});
  eye.diagonal().fill_(1);
  return eye.view(joined(SymShape{count}, like.sym_sizes()));
}

/// The function of one of its inputs, the others fixed.
TensorFunction of_input(const TensorFunction& function, const std::vector<Tensor>& inputs, int64_t position) {
  return [=](const std::vector<Tensor>& one) {
    std::vector<Tensor> all = inputs;
    all.at(position) = one[0];
    return function(all);
  };
}

/// A Jacobian of complex numbers would not be one tensor of numbers.
void check_real(const char* transform, const char* what, const std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i)
    check(!is_complex(tensors[i].dtype()), transform, ": Expected all ", what,
          " to be real but received complex tensor at flattened input idx: ", i);
}

}  // namespace

std::vector<Tensor> jacrev(const TensorFunction& function, const std::vector<Tensor>& inputs, int64_t position) {
  position = wrap_dim(position, static_cast<int64_t>(inputs.size()));
  const Tensor& input = inputs[position];
  check_real("jacrev", "inputs", {input});
  PullBack pulled = vjp(of_input(function, inputs, position), {input});
  check_real("jacrev", "outputs", pulled.outputs);
  std::vector<Tensor> jacobians;
  for (size_t i = 0; i < pulled.outputs.size(); ++i) {
    const Tensor& output = pulled.outputs[i];
    auto row = [&](const std::vector<Tensor>& unit) {
      std::vector<Tensor> cotangents;
      for (size_t k = 0; k < pulled.outputs.size(); ++k)
        cotangents.push_back(k == i ? unit[0] : zeros_like(pulled.outputs[k]));
      return pulled.pull_back(cotangents);
    };
    Tensor rows = vmap(row, {unit_vectors(output)}, {0})[0];
    jacobians.push_back(rows.view(joined(output.sym_sizes(), input.sym_sizes())));
  }
  return jacobians;
}

std::vector<Tensor> jacfwd(const TensorFunction& function, const std::vector<Tensor>& inputs, int64_t position) {
  position = wrap_dim(position, static_cast<int64_t>(inputs.size()));
  const Tensor& input = inputs[position];
  TensorFunction single = of_input(function, inputs, position);
  check_real("jacfwd", "inputs", {input});
  auto column = [&](const std::vector<Tensor>& unit) {
    PushForward pushed = jvp(single, {input}, unit);
    check_real("jacfwd", "outputs", pushed.outputs);
    return pushed.tangents;
  };
  std::vector<Tensor> jacobians;
  for (const Tensor& columns : vmap(column, {unit_vectors(input)}, {0})) {
    Tensor last = columns.movedim(0, -1);
    jacobians.push_back(last.reshape(joined(last.sym_sizes().drop_back(), input.sym_sizes())));
  }
  return jacobians;
}

}  // namespace umbra::transform
