#include "export/hinted_ranges.h"

#include <algorithm>

#include "umbra/core/error.h"
#include "umbra/sym/constraints.h"
#include "umbra/sym/print.h"

namespace umbra {

namespace {

std::string bound_text(Integer bound, Integer none) { return bound == none ? "None" : integer_text(bound); }

}  // namespace

void HintedRanges::add(std::string place, SymInt number, int64_t example, const Dim& dim) {
  entries_.push_back({std::move(place), number, example, dim});
}

void HintedRanges::refuse_fixed_examples(sym::ShapeEnv& env) const {
  auto fixed = [](const Entry& e) { return e.dim.hint() == Dim::Hint::Dynamic && !e.number.is_symbolic(); };
  std::vector<RangeConstraint> none;
  if (std::ranges::any_of(entries_, fixed)) settle(env, none);
}

void HintedRanges::settle(sym::ShapeEnv& env, std::vector<RangeConstraint>& ranges) const {
  std::string conflicts;
  for (const Entry& entry : entries_) {
    const sym::Expression* e = entry.number.is_symbolic() ? env.simplify(env.expression(entry.number))
                                                          : env.table().integer(entry.number.value());
    bool is_number = e->is(sym::Kind::Integer);
    auto declared = std::ranges::find(ranges, sym::to_text(e), &RangeConstraint::expression);
    if (!is_number && declared == ranges.end()) continue;
    sym::Range found = is_number ? sym::Range::point(e->integer()) : declared->range;
    sym::Range left = found.intersect(entry.dim.range());
    conflicts += conflict(entry, found, left);
    if (is_number || left.empty() || left == found) continue;
    declared->range = left;
    env.constrain_range(e, left);
  }
  for (const Entry& entry : entries_) {  // sizes that are made of others, now that those are known
    if (!entry.number.is_symbolic()) continue;
    const sym::Expression* e = env.simplify(env.expression(entry.number));
    auto declared = std::ranges::find(ranges, sym::to_text(e), &RangeConstraint::expression);
    if (e->is(sym::Kind::Symbol) || declared == ranges.end()) continue;
    declared->range = declared->range.intersect(sym::exported_range(env, e));
  }
  check<ValueError>(conflicts.empty(),
                    "Found the following conflicts between user-specified ranges and inferred ranges from model "
                    "tracing:",
                    conflicts);
}

std::string HintedRanges::conflict(const Entry& entry, const sym::Range& found, const sym::Range& left) {
  sym::Range asked = entry.dim.range();
  std::string least = bound_text(asked.lower, 0), most = bound_text(asked.upper, sym::kInfinity);
  if (left.empty())
    return concat("\n- Received user-specified min/max range of [", least, ", ", most,
                  "], conflicting with the inferred min/max range of ", to_string(found), ", for ", entry.place, ".");
  if (entry.dim.hint() != Dim::Hint::Dynamic || !left.is_point()) return "";
  std::string start = concat("\n- Received user-specified dim hint Dim.DYNAMIC(min=", least, ", max=", most, "), but ");
  bool zero_one = found.is_point() && (entry.example == 0 || entry.example == 1);
  if (zero_one)
    return concat(start, "export 0/1 specialized due to hint of ", entry.example, " for dimension ", entry.place, ".");
  return concat(start, "tracing inferred a static shape of ", integer_text(left.lower), " for dimension ", entry.place,
                ".");
}

}  // namespace umbra
