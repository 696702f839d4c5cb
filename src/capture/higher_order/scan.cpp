// scan: a function called on each row and on what it carries from row to row; its other results are stacked.
#include "capture/higher_order/layers.h"
#include "capture/higher_order/metadata.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

enum { kCombine, kInit, kRows, kAdditional };

std::vector<Value> inputs(const FunctionCall& call, size_t) {
  row_count("scan", call.list(kRows));
  std::vector<Value> out;
  for (const Value& v : call.list(kInit)) out.push_back(stand_in(v));
  for (const Value& v : call.list(kRows)) out.push_back(row_stand_in(v));
  return joined(std::move(out), call.list(kAdditional));
}

void check_carry(const std::vector<Value>& before, const std::vector<Value>& results) {
  check(results.size() >= before.size(), "scan: combine_fn is given ", before.size(), " values to carry and gives ",
        results.size());
  for (size_t i = 0; i < before.size(); ++i) {
    check(results[i].is_tensor() && before[i].is_tensor(), "scan: what is carried must be tensors");
    const Tensor &a = before[i].tensor_ref(), &b = results[i].tensor_ref();
    bool same = a.dtype() == b.dtype() && a.device() == b.device() && a.sym_sizes() == b.sym_sizes();
    check<UserError>(same, "Expected init and carry to have same metadata but found:\ncarried value ", i, " is ",
                     a.dtype(), to_string(a.sym_sizes()), " and becomes ", b.dtype(), to_string(b.sym_sizes()));
  }
}

std::vector<Value> run(const FunctionCall& call) {
  std::vector<Value> carry = call.list(kInit), all = call.list(kRows), additional = call.list(kAdditional);
  int64_t count = row_count("scan", all).guard_int();
  std::vector<std::vector<Value>> collected;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Value> results = call.run_function(0, joined(joined(carry, row(all, i)), additional));
    check_carry(carry, results);
    carry = part(results, 0, carry.size());
    collected.push_back(part(results, carry.size(), results.size()));
  }
  return joined(carry, stack_rows(collected));
}

std::vector<Value> results(const FunctionCall& call, const std::vector<std::vector<Value>>& of) {
  std::vector<Value> carry = call.list(kInit);
  check_carry(carry, of[0]);
  forget_memory(std::span(of[0]).first(carry.size()));
  return joined(fresh(part(of[0], 0, carry.size())),
                fresh_stacked(part(of[0], carry.size(), of[0].size()), row_count("scan", call.list(kRows))));
}

// ---- gradient ----

std::vector<Value> flipped(const std::vector<Value>& rows) {
  std::vector<Value> out;
  for (const Value& v : rows) out.push_back(Value(v.tensor_ref().flip({0})));
  return out;
}

/// The way back: the rows from the last to the first, with what was carried into each; gradients of what is carried are
/// carried, those of what every row is given are summed up on the way.
struct WayBack {
  ValueFunction carries;   // the function, but what is collected is what was carried in
  ValueFunction gradient;  // of one step
  std::vector<size_t> wanted, given;
  size_t carry_count, row_inputs;
  enum class Part { Carry, Rows, Additional };

  Part part_of(size_t input) const {
    return input < carry_count ? Part::Carry : input < carry_count + row_inputs ? Part::Rows : Part::Additional;
  }
  size_t count(Part which) const {
    size_t n = 0;
    for (size_t i : wanted) n += part_of(i) == which;
    return n;
  }

  /// [gradients carried, sums, rows, what was carried in, gradients of what was collected, additional].
  std::vector<Value> step(const std::vector<Value>& values) const {
    size_t at = 0;
    auto take = [&](size_t n) {
      std::vector<Value> out = part(values, at, at + n);
      at += n;
      return out;
    };
    std::vector<Value> carried = take(count(Part::Carry)), sums = take(count(Part::Additional));
    std::vector<Value> rows = take(row_inputs), carried_in = take(carry_count);
    std::vector<Value> collected = take(given.size() - carried.size());
    std::vector<Value> all = joined(joined(carried_in, rows), part(values, at, values.size()));
    std::vector<Value> found = gradient(joined(joined(all, carried), collected)), next, of_rows;
    std::vector<Value> new_sums;
    for (size_t k = 0, sum = 0; k < wanted.size(); ++k) {
      if (part_of(wanted[k]) == Part::Carry) next.push_back(found[k]);
      else if (part_of(wanted[k]) == Part::Rows) of_rows.push_back(found[k]);
      else new_sums.push_back(Value(sums[sum++].tensor().add(found[k].tensor())));
    }
    return joined(joined(next, new_sums), of_rows);
  }

  std::vector<Tensor> run(const FunctionCall& saved, const std::vector<Tensor>& incoming) const {
    std::vector<Value> init = saved.list(kInit), rows = saved.list(kRows), additional = saved.list(kAdditional);
    std::vector<Value> before =
        FunctionCall(saved.op(), {function_value(carries, true), Value(init), Value(rows), Value(additional)}).call();
    std::vector<Value> start, collected;
    for (size_t i : given) (i < carry_count ? start : collected).push_back(Value(incoming[i]));
    for (size_t i : wanted)
      if (part_of(i) == Part::Additional)
        start.push_back(Value(zeros_like(additional[i - carry_count - row_inputs].tensor().detach())));
    std::vector<Value> all = joined(joined(rows, part(before, carry_count, before.size())), collected);
    WayBack self = *this;
    Value function = function_value([self](const std::vector<Value>& v) { return self.step(v); }, true);
    std::vector<Value> found =
        FunctionCall(saved.op(), {function, Value(start), Value(flipped(all)), Value(additional)}).call();
    return arranged(joined(joined(init, rows), additional), found);
  }

  std::vector<Tensor> arranged(const std::vector<Value>& inputs, const std::vector<Value>& found) const {
    size_t carry = 0, sum = count(Part::Carry), rows = sum + count(Part::Additional);
    return gradients_of(inputs, wanted, [&](size_t, size_t i) {
      if (part_of(i) == Part::Carry) return found[carry++].tensor();
      return part_of(i) == Part::Additional ? found[sum++].tensor() : found[rows++].tensor().flip({0});
    });
  }
};

FunctionBackward gradient(const FunctionCall& call, const std::vector<Value>& results) {
  std::vector<Value> examples = call.inputs(0), weights;
  WayBack back;
  back.carry_count = call.list(kInit).size();
  back.row_inputs = call.list(kRows).size();
  back.wanted = differentiable(examples);
  back.given = differentiable(results);
  for (size_t i : back.given) weights.push_back(i < back.carry_count ? results[i] : row_stand_in(results[i]));
  back.gradient = function_gradient(call, 0, examples, back.wanted, weights, back.given);
  size_t count = back.carry_count;
  auto carries = [count](const ValueFunction& run) -> ValueFunction {
    return [=](const std::vector<Value>& v) {
      std::vector<Value> out = part(run(v), 0, count);
      for (size_t i = 0; i < count; ++i) out.push_back(Value(v[i].tensor().clone()));
      return out;
    };
  };
  back.carries = record_lowered(carries(with_history(call, 0)), examples, carries(plain_function(call, 0)));
  return [back](const FunctionCall& saved, const std::vector<Tensor>& incoming) { return back.run(saved, incoming); };
}

const RegisterHigherOrder kScan({
    .schema = "scan(Callable combine_fn, Any[] init, Any[] xs, Any[] additional_inputs) -> Any[]",
    .graphs = {"scan_combine_graph_"},
    .operands = kAdditional,
    .inputs = inputs,
    .run = run,
    .results = results,
    .gradient = gradient,
    .prints_lists = true,
    .lists_results = true,
    .carried = kInit,
});

}  // namespace

std::vector<Value> scan(const ValueFunction& combine, const std::vector<Value>& init, const std::vector<Value>& rows) {
  return FunctionCall(*kScan.op, {function_value(combine), Value(init), Value(rows), Value(std::vector<Value>{})})
      .call();
}

}  // namespace umbra
