#include "aot/dynamic.h"

#include <algorithm>

#include "umbra/sym/print.h"

namespace umbra::aot {

namespace {

constexpr size_t kMostNumbers = 256;  // of a call that is asked fast

void add_geometry(std::vector<SymInt>& numbers, SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset) {
  numbers.insert(numbers.end(), sizes.begin(), sizes.end());
  numbers.insert(numbers.end(), strides.begin(), strides.end());
  numbers.push_back(offset);
}

bool is_integer(const Value& value) { return value.is_int() || value.is_sym_int(); }

/// Calls `see` with each number that may differ from call to call, in a fixed order.
template <class See> void each_number(ArrayRef<Value> inputs, size_t first, See see) {
  for (size_t i = first; i < inputs.size(); ++i) {
    if (is_integer(inputs[i])) see(inputs[i].to_sym_int());
    if (!inputs[i].is_tensor()) continue;
    const Tensor& t = inputs[i].tensor_ref();
    for (SymInt s : t.sym_sizes()) see(s);
    for (SymInt s : t.sym_strides()) see(s);
    see(t.sym_storage_offset());
  }
}

std::vector<SymInt> numbers_of(ArrayRef<Value> inputs, size_t first) {
  std::vector<SymInt> numbers;
  each_number(inputs, first, [&](SymInt n) { numbers.push_back(n); });
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
  prepare();
}

void DynamicSizes::prepare() {
  std::vector<const sym::Expression*> seen;  // symbols, by slot
  for (size_t i = 0; i < expected_.size(); ++i) {
    if (!expected_[i].is_symbolic()) continue;
    const sym::Expression* e = env_->expression(expected_[i]);
    if (!e->is(sym::Kind::Symbol) || std::find(seen.begin(), seen.end(), e) != seen.end()) continue;
    seen.push_back(e);
    symbols_.emplace_back(i, env_->symbol(e).initial);
  }
  auto slot_of = [&](const sym::Expression* symbol) -> int64_t {
    auto found = std::find(seen.begin(), seen.end(), symbol);
    return found == seen.end() ? -1 : found - seen.begin();
  };
  bool all = true;
  auto add = [&](const sym::Expression* e, Condition condition) {
    std::optional<SizeProgram> program = SizeProgram::of(e, slot_of);
    all &= program.has_value();
    if (program) condition.program = std::move(*program), conditions_.push_back(std::move(condition));
  };
  for (size_t i = 0; i < expected_.size(); ++i) {
    bool binds = std::any_of(symbols_.begin(), symbols_.end(), [&](const auto& s) { return s.first == i; });
    if (expected_[i].is_symbolic() && !binds)
      add(env_->expression(expected_[i]), {.program = {}, .number = i, .is_number = true});
  }
  for (const std::vector<sym::Guard>* guards : {&env_->guards(), &env_->assumptions()})
    for (const sym::Guard& guard : *guards) add(guard.condition, {});
  known_conditions_ = condition_count();
  has_programs_ = all && expected_.size() <= kMostNumbers && symbols_.size() <= kMostNumbers;
}

DynamicSizes::Answer DynamicSizes::ask_programs(const int64_t* numbers) const {
  int64_t slots[kMostNumbers];
  for (size_t i = 0; i < expected_.size(); ++i)
    if (!expected_[i].is_symbolic() && expected_[i].value() != numbers[i]) return Answer::No;
  for (size_t i = 0; i < symbols_.size(); ++i) {
    slots[i] = numbers[symbols_[i].first];
    if (!symbols_[i].second.contains(slots[i])) return Answer::No;
  }
  for (const Condition& condition : conditions_) {
    std::optional<int64_t> value = condition.program.run(slots);
    if (!value) return Answer::AskExpressions;
    if (*value != (condition.is_number ? numbers[condition.number] : condition.value)) return Answer::No;
  }
  return Answer::Yes;
}

bool DynamicSizes::accept(ArrayRef<Value> inputs) const {
  if (!env_) return true;
  if (has_programs_ && known_conditions_ == condition_count()) {
    int64_t numbers[kMostNumbers];
    size_t count = 0;
    bool symbolic = false;
    each_number(inputs, first_, [&](SymInt n) {
      symbolic |= n.is_symbolic();
      if (count < kMostNumbers) numbers[count] = n.raw();
      ++count;
    });
    if (count != expected_.size()) return false;
    Answer answer = symbolic ? Answer::AskExpressions : ask_programs(numbers);
    if (answer != Answer::AskExpressions) return answer == Answer::Yes;
  }
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

std::string DynamicSizes::broken_by(ArrayRef<Value> inputs) const {
  if (accept(inputs)) return "";
  sym::Bindings bindings = bind(inputs);
  for (const std::vector<sym::Guard>* guards : {&env_->guards(), &env_->assumptions()})
    for (const sym::Guard& guard : *guards) {
      std::optional<sym::Number> holds = env_->evaluate(guard.condition, bindings);
      if (holds && holds->integer != 0) continue;
      return concat(sym::to_text(guard.condition), guard.location ? "  # " + guard.location->text() : std::string());
    }
  std::vector<SymInt> actual = numbers_of(inputs, first_);
  for (size_t i = 0; i < std::min(actual.size(), expected_.size()); ++i)
    if (!expected_[i].is_symbolic() && actual[i].raw() != expected_[i].raw())
      return concat("a size, stride or offset mismatch. expected ", expected_[i], ", actual ", actual[i]);
  return "sizes are in the ranges, and related as, they were";
}

sym::Bindings DynamicSizes::bind(ArrayRef<Value> inputs) const {
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
  bool symbolic = value.is_sym_int() || (value.is_int_list() && any_symbolic(value.int_list()));
  check<NotImplementedError>(env_ || !symbolic,
                             "a function that was compiled for sizes that are numbers is called with symbolic ones, of "
                             "fake tensors: call the function itself, or compile it with dynamic=True");
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
