#include "aot/dynamic.h"

namespace umbra::aot {

namespace {

void add_geometry(std::vector<SymInt>& numbers, SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset) {
  numbers.insert(numbers.end(), sizes.begin(), sizes.end());
  numbers.insert(numbers.end(), strides.begin(), strides.end());
  numbers.push_back(offset);
}

bool is_integer(const Value& value) { return value.is_int() || value.is_sym_int(); }

/// What may differ from call to call, in a fixed order.
std::vector<SymInt> numbers_of(const std::vector<Value>& inputs, size_t first) {
  std::vector<SymInt> numbers;
  for (size_t i = first; i < inputs.size(); ++i) {
    if (is_integer(inputs[i])) numbers.push_back(inputs[i].to_sym_int());
    if (!inputs[i].is_tensor()) continue;
    const Tensor& t = inputs[i].tensor_ref();
    add_geometry(numbers, t.sym_sizes(), t.sym_strides(), t.sym_storage_offset());
  }
  return numbers;
}

}  // namespace

DynamicSizes::DynamicSizes(const CallInfo& info, size_t first) : env_(info.mode->options().shape_env), first_(first) {
  for (size_t i = first; i < info.inputs.size(); ++i) {
    const ArgumentInfo& argument = info.layout.arguments[i];
    const PrimalInfo& primal = info.primals[argument.primal];
    if (is_integer(info.inputs[i])) expected_.push_back(primal.plain.to_sym_int());
    if (!info.inputs[i].is_tensor()) continue;
    const Tensor& t = info.inputs[i].tensor_ref();
    if (argument.is_view) add_geometry(expected_, t.sym_sizes(), t.sym_strides(), t.sym_storage_offset());
    else add_geometry(expected_, primal.stand_in.sizes, primal.stand_in.strides, t.sym_storage_offset());
  }
}

bool DynamicSizes::accept(const std::vector<Value>& inputs) const {
  if (!env_) return true;
  std::vector<SymInt> actual = numbers_of(inputs, first_);
  if (actual.size() != expected_.size()) return false;
  std::vector<std::pair<SymInt, int64_t>> sizes;
  bool same = true, symbolic = false;
  for (size_t i = 0; i < actual.size(); ++i) {
    same &= actual[i].raw() == expected_[i].raw();
    symbolic |= actual[i].is_symbolic();
    if (!actual[i].is_symbolic()) sizes.emplace_back(expected_[i], actual[i].value());
  }
  return symbolic ? same : env_->accepts(sizes, true);
}

sym::Bindings DynamicSizes::bind(const std::vector<Value>& inputs) const {
  sym::Bindings bindings;
  std::vector<SymInt> actual = env_ ? numbers_of(inputs, first_) : std::vector<SymInt>();
  for (size_t i = 0; i < actual.size(); ++i) {
    if (!expected_[i].is_symbolic() || actual[i].is_symbolic()) continue;
    const sym::Expression* e = env_->expression(expected_[i]);
    if (e->is(sym::Kind::Symbol)) bindings.set(e, actual[i].value());
  }
  return bindings;
}

std::optional<Value> DynamicSizes::evaluate(const Value& value, const sym::Bindings& bindings) const {
  if (value.is_sym_int()) {
    std::optional<int64_t> number = env_->evaluate(value.to_sym_int(), bindings);
    return number ? std::optional<Value>(*number) : std::nullopt;
  }
  if (value.is_int_list()) {
    std::vector<SymInt> numbers = value.int_list().vec();
    for (SymInt& n : numbers) {
      if (!n.is_symbolic()) continue;
      std::optional<int64_t> number = env_->evaluate(n, bindings);
      if (!number) return std::nullopt;
      n = *number;
    }
    return Value(std::move(numbers));
  }
  return value;
}

}  // namespace umbra::aot
