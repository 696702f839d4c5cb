// Branches and loops that data decides, while a program is captured: they become cond and while_loop.
#include "jit/program.h"
#include "umbra/capture/higher_order.h"
#include "umbra/generated/functions.h"

namespace umbra::jit {

Value undecided(const Tensor& truth) { return Value::object(make_counted<Undecided>(truth)); }

namespace {

Tensor truth_of(const Value& v) {
  if (auto* open = object_as<Undecided>(v)) return open->truth;
  return full({}, Scalar(v.to_bool()), {.dtype = DType::Bool});
}

/// What a branch or a loop does beside computing tensors would happen on every way at once.
void refuse_writes(const Block& block) {
  static const char* const kinds[] = {"prim::SetAttr",    "aten::append",  "aten::extend",    "aten::insert",
                                      "aten::pop",        "aten::popitem", "aten::reverse",   "aten::sort",
                                      "aten::clear",      "aten::remove",  "aten::_set_item", "aten::Delete",
                                      "aten::setdefault", "aten::update",  "prim::Print",     "prim::PythonOp"};
  each_node(block, [&](const Node& n) {
    for (const char* kind : kinds)
      check<NotImplementedError>(!n.is(kind), "a branch or loop that depends on data has ", kind,
                                 " inside, which cannot be captured");
  });
}

}  // namespace

Value call_undecided(const std::string& name, const std::vector<Value>& arguments) {
  if (name == "aten::__not__") return undecided(truth_of(arguments[0]).logical_not());
  if (name == "aten::__and__" && arguments.size() == 2)
    return undecided(truth_of(arguments[0]).logical_and(truth_of(arguments[1])));
  if (name == "aten::__or__" && arguments.size() == 2)
    return undecided(truth_of(arguments[0]).logical_or(truth_of(arguments[1])));
  fail<NotImplementedError>("the program computes ", name,
                            " with a truth value that depends on data, which cannot be captured");
}

void Program::undecided_branch(const Step& s, const Tensor& truth, State& state) const {
  for (const auto& block : s.node->blocks()) refuse_writes(*block);
  std::vector<Value> plain[2];  // outputs that are no tensors, by branch
  auto way = [&](size_t which) {
    return [&, which](const std::vector<Value>&) {
      State inner{state.unlocked, state.r, {}};
      execute(*s.blocks[which], inner);
      std::vector<Value> tensors;
      plain[which].clear();
      for (uint32_t r : s.blocks[which]->outputs) {
        bool is_tensor = inner.r[r].is_tensor();
        if (is_tensor)
          tensors.push_back(inner.r[r].tensor_ref().is_fake() ? inner.r[r] : Value(inner.r[r].tensor().clone()));
        plain[which].push_back(is_tensor ? Value() : inner.r[r]);
      }
      return tensors;
    };
  };
  std::vector<Value> results = cond(Value(truth), way(0), way(1), {});
  size_t next = 0;
  for (size_t i = 0; i < s.outputs.size(); ++i) {
    bool is_tensor = s.node->output(i)->type()->is(TypeKind::Tensor);
    if (is_tensor) {
      state.out(s, i) = results.at(next++);
      continue;
    }
    check<NotImplementedError>(plain[0].size() > i && plain[1].size() > i && equal(plain[0][i], plain[1][i]),
                               "a branch that depends on data gives different values of type ",
                               s.node->output(i)->type()->annotation(), ", which cannot be captured");
    state.out(s, i) = plain[0][i];
  }
}

void Program::undecided_loop(const Step& s, const Tensor& truth, std::vector<Value> carried, State& state) const {
  const Code& body = *s.blocks[0];
  refuse_writes(*s.node->blocks()[0]);
  check<NotImplementedError>(state.in(s, 0).to_int() == std::numeric_limits<int64_t>::max(),
                             "a loop that ends at a count or by data, whichever comes first, cannot be captured");
  std::vector<bool> is_truth;  // truth values are carried as tensors
  for (Value& v : carried) {
    is_truth.push_back(v.is_bool() || object_as<Undecided>(v));
    if (is_truth.back()) v = Value(truth_of(v));
    check<NotImplementedError>(v.is_tensor(), "a loop that data ends carries a value of type ",
                               type_of(v)->annotation(), ", which cannot be captured");
  }
  carried.insert(carried.begin(), Value(truth.clone()));  // a carried truth value may be the same tensor
  auto go_on = [](const std::vector<Value>& v) { return std::vector<Value>{Value(v[0].tensor().clone())}; };
  auto turn = [&](const std::vector<Value>& v) {
    State inner{state.unlocked, state.r, {}};
    for (size_t k = 1; k < v.size(); ++k) inner.r[body.inputs[k]] = is_truth[k - 1] ? undecided(v[k].tensor()) : v[k];
    execute(body, inner);
    std::vector<Value> out{Value(truth_of(inner.r[body.outputs[0]]).clone())};
    for (size_t k = 1; k < v.size(); ++k) {
      const Value& now = inner.r[body.outputs[k]];
      out.push_back(is_truth[k - 1] ? Value(truth_of(now)) : now);
    }
    return out;
  };
  std::vector<Value> results = while_loop(go_on, turn, carried);
  for (size_t k = 0; k < s.outputs.size(); ++k)
    state.out(s, k) = is_truth[k] ? undecided(results.at(k + 1).tensor()) : results.at(k + 1);
}

}  // namespace umbra::jit
