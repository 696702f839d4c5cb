// associative_scan: the running results of a function of two rows, which may be taken in any grouping.
#include "capture/higher_order/metadata.h"

namespace umbra {

namespace {

enum { kFunction, kRows, kAdditional };

std::vector<Value> inputs(const FunctionCall& call, size_t) {
  row_count("associative_scan", call.list(kRows));
  std::vector<Value> out;
  for (int side = 0; side < 2; ++side)
    for (const Value& v : call.list(kRows)) out.push_back(row_stand_in(v));
  return joined(std::move(out), call.list(kAdditional));
}

std::vector<Value> run(const FunctionCall& call) {
  std::vector<Value> all = call.list(kRows), additional = call.list(kAdditional);
  int64_t count = row_count("associative_scan", all).guard_int();
  std::vector<std::vector<Value>> rows;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Value> next = row(all, i);
    rows.push_back(i == 0 ? next : call.run_function(0, joined(joined(rows.back(), next), additional)));
    check(rows.back().size() == all.size(), "associative_scan: the function of two times ", all.size(),
          " values gives ", rows.back().size());
  }
  return stack_rows(rows);
}

std::vector<Value> results(const FunctionCall& call, const std::vector<std::vector<Value>>& of) {
  return fresh_stacked(of[0], row_count("associative_scan", call.list(kRows)));
}

const RegisterHigherOrder kAssociativeScan({
    .schema = "associative_scan(Callable combine_fn, Any[] xs, Any[] additional_inputs) -> Any[]",
    .graphs = {"associative_scan_combine_graph_"},
    .operands = kAdditional,
    .inputs = inputs,
    .run = run,
    .results = results,
    .prints_lists = true,
});

}  // namespace
}  // namespace umbra
