// auto_functionalized: how graphs of PyTorch call an operator that writes its arguments, as values. The operator runs
// on copies, which are given back. Umbra's own captures have functional operators instead (dispatch/library_writes.h).
#include "capture/auto_functionalized.h"

#include <map>

#include "dispatch/library_writes.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/function.h"
#include "umbra/graph/graph.h"
#include "umbra/graph/operator_value.h"

namespace umbra {

namespace {

using Keywords = std::map<std::string, Value, std::less<>>;

/// A node's arguments in a row: the operator, the names of the keywords, their values.
fx::Arguments positional(const fx::Node& node) {
  check<TypeError>(node.args().size() == 1 && node.arg(0).is_value() && fx::operator_in(node.arg(0).value()),
                   node.target().text(), " takes an operator and its arguments by name");
  std::vector<Value> names;
  for (const auto& [name, value] : node.kwargs()) names.push_back(Value(name));
  fx::Arguments row{node.arg(0), fx::Argument(Value(std::move(names)))};
  for (const auto& [name, value] : node.kwargs()) row.push_back(value);
  return row;
}

Keywords keywords_of(ArrayRef<Value> arguments) {
  Keywords keywords;
  for (size_t i = 2; i < arguments.size(); ++i) keywords[arguments[1].list()[i - 2].to_string()] = arguments[i];
  return keywords;
}

Value copy_of(const Value& value) {
  if (value.is_tensor()) return Value(clone(value.tensor()));
  if (!value.is_tensor_list() && !value.is_list()) return value;
  std::vector<Tensor> copies;
  if (value.is_tensor_list())
    for (const Tensor& t : value.tensor_list()) copies.push_back(clone(t));
  else
    for (const Value& item : value.list()) copies.push_back(clone(item.tensor()));
  return Value(std::move(copies));
}

Value take(Keywords& keywords, const std::string& name) {
  auto found = keywords.find(name);
  if (found == keywords.end()) return {};
  Value value = std::move(found->second);
  keywords.erase(found);
  return value;
}

/// The view of a base that the keywords with this prefix tell of, which are taken out; nothing where there is no
/// tensor.
Value view_of(Keywords& keywords, const std::string& prefix, ArrayRef<Tensor> bases) {
  Value index = take(keywords, prefix + "_base_index");
  if (index.is_none()) return {};
  size_t i = static_cast<size_t>(index.to_int());
  check<IndexError>(i < bases.size(), "auto_functionalized_v2 has ", bases.size(), " bases, and an argument of base ",
                    i);
  Value size = take(keywords, prefix + "_size"), stride = take(keywords, prefix + "_stride");
  Value offset = take(keywords, prefix + "_storage_offset"), dim = take(keywords, prefix + "_slice_dim");
  Value start = take(keywords, prefix + "_slice_start"), end = take(keywords, prefix + "_slice_end");
  if (!take(keywords, prefix + "_alias").is_none()) return Value(alias(bases[i]));
  if (!size.is_none()) return Value(as_strided(bases[i], size.int_list(), stride.int_list(), offset.to_sym_int()));
  if (dim.is_none()) return Value(bases[i]);
  return Value(slice(bases[i], dim.to_int(), start.to_sym_int(), end.to_sym_int()));
}

/// What an operator gives, in front of the new values: nothing counts as one result that is none.
Value results_with(const Operator& op, Keywords given, std::vector<Value> written) {
  std::vector<Value> frame(std::max(op.argument_count(), op.return_count()));
  const auto& schema = op.schema().arguments;
  for (size_t i = 0; i < schema.size(); ++i) {
    auto found = given.find(schema[i].name);
    check<TypeError>(found != given.end() || schema[i].default_value, op.name(), "() is missing value for argument '",
                     schema[i].name, "'");
    frame[i] = found != given.end() ? found->second : *schema[i].default_value;
  }
  op.call(frame.data());
  std::vector<Value> out(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(op.return_count()));
  if (out.empty()) out.emplace_back();
  for (Value& value : written) out.push_back(std::move(value));
  return Value(std::move(out));
}

Value evaluate(ArrayRef<Value> arguments) {
  const Operator& op = *fx::operator_in(arguments[0]);
  Keywords keywords = keywords_of(arguments);
  std::vector<Value> written;
  for (const SchemaArgument& a : op.schema().arguments)
    if (a.alias.write) written.push_back(keywords[a.name] = copy_of(keywords[a.name]));
  return results_with(op, std::move(keywords), std::move(written));
}

Value evaluate_v2(ArrayRef<Value> arguments) {
  const Operator& op = *fx::operator_in(arguments[0]);
  Keywords keywords = keywords_of(arguments);
  Value copies = copy_of(take(keywords, "_all_bases"));
  std::vector<Tensor> bases = copies.is_tensor_list() ? copies.tensor_list().vec() : std::vector<Tensor>();
  for (const SchemaArgument& a : op.schema().arguments) {
    if (!a.alias.write) continue;
    std::string prefix = "_" + a.name;
    Value length = take(keywords, prefix + "_length");
    if (length.is_none()) {
      keywords[a.name] = view_of(keywords, prefix, bases);
      continue;
    }
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < length.to_int(); ++i)
      parts.push_back(view_of(keywords, prefix + "_" + std::to_string(i), bases).tensor());
    keywords[a.name] = Value(std::move(parts));
  }
  return results_with(op, std::move(keywords), std::vector<Value>(bases.begin(), bases.end()));
}

[[maybe_unused]] const fx::Function& kFirst = fx::define_function({.name = "torch.ops.higher_order.auto_functionalized",
                                                                   .format = {},
                                                                   .evaluate = evaluate,
                                                                   .positional = positional});
[[maybe_unused]] const fx::Function& kSecond = fx::define_function({
    .name = "torch.ops.higher_order.auto_functionalized_v2",
    .format = {},
    .evaluate = evaluate_v2,
    .positional = positional,
});

}  // namespace

namespace {

/// The arguments of a functional form by name: what is written is given as bases.
fx::KeywordArguments with_bases(const Operator& original, const fx::Node& node) {
  fx::KeywordArguments keywords, places;
  fx::Arguments bases;
  for (size_t i = 0; i < original.argument_count(); ++i) {
    const SchemaArgument& a = original.schema().arguments[i];
    const fx::Argument* given = node.argument(i);
    if (a.alias.write) {
      places.emplace_back("_" + a.name + "_base_index", Value(static_cast<int64_t>(bases.size())));
      bases.push_back(*given);
    } else if (given) {
      keywords.emplace_back(a.name, *given);
    }
  }
  keywords.insert(keywords.end(), places.begin(), places.end());
  keywords.emplace_back("_all_bases", fx::Argument::list(std::move(bases)));
  return keywords;
}

void replace_call(fx::Graph& graph, const Operator& original, fx::Node* node) {
  // Its results come first; one that gives nothing has none for a result.
  int64_t shift = original.return_count() == 0;
  std::vector<Value> values(static_cast<size_t>(shift));
  const Value& old = node->meta.val;
  if (old.is_list()) values.insert(values.end(), old.list().begin(), old.list().end());
  else if (old.is_tensor_list()) values.insert(values.end(), old.tensor_list().begin(), old.tensor_list().end());
  else values.push_back(old);
  auto scope = graph.inserting_before(node);
  fx::Node* made = graph.create_node(fx::Op::CallFunction, kSecond, {fx::operator_value(original)},
                                     with_bases(original, *node), "auto_functionalized_v2");
  made->meta = node->meta;
  made->meta.val = Value(std::move(values));
  auto element = [&](int64_t i, const fx::Node& from) {
    fx::Node* item = graph.call(fx::function("operator.getitem"), {made, i + shift});
    item->meta = from.meta;
    return item;
  };
  if (node->target().op()->return_count() == 1) {
    node->replace_all_uses_with(element(0, *node));
  } else {
    std::vector<fx::Node*> parts(node->users().begin(), node->users().end());
    for (fx::Node* part : parts) {
      part->replace_all_uses_with(element(part->arg(1).value().to_int(), *part));
      graph.erase_node(part);
    }
  }
  graph.erase_node(node);
}

}  // namespace

void call_by_auto_functionalized(fx::Graph& graph) {
  std::vector<std::pair<const Operator*, fx::Node*>> calls;
  for (fx::Node* node : graph.nodes())
    if (const Operator* op = node->target().op())
      if (const Operator* original = original_of(*op)) calls.emplace_back(original, node);
  for (auto [original, node] : calls) replace_call(graph, *original, node);
}

}  // namespace umbra
