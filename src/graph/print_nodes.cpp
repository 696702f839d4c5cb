// The list of nodes and the table.
#include "umbra/graph/print.h"

namespace umbra::fx {

namespace {

std::string keywords_text(const KeywordArguments& kwargs) {
  std::string out = "{";
  for (size_t i = 0; i < kwargs.size(); ++i)
    out += (i ? ", " : "") + kwargs[i].first + ": " + format_argument(kwargs[i].second);
  return out + "}";
}

std::string positional_text(const Arguments& args) {
  std::string out = "(";
  for (size_t i = 0; i < args.size(); ++i) out += (i ? ", " : "") + format_argument(args[i]);
  return out + (args.size() == 1 ? ",)" : ")");
}

}  // namespace

std::string Node::text() const {
  if (op_ == Op::Root) return "root";
  if (op_ == Op::Output) return args_.empty() ? "return" : "return " + python_repr(args_[0]);
  std::string out = "%" + name_ + " : [num_users=" + std::to_string(users_.size()) + "] = " + to_string(op_) +
                    "[target=" + target_.text() + "]";
  if (op_ == Op::Placeholder) return args_.empty() ? out : out + "(default=" + format_argument(args_[0]) + ")";
  if (op_ == Op::GetAttr) return out;
  return out + "(args = " + positional_text(args_) + ", kwargs = " + keywords_text(kwargs_) + ")";
}

std::string to_string(const Graph& graph) {
  std::string out = "graph():";
  for (Node* node : graph.nodes()) out += "\n    " + node->text();
  return out;
}

namespace {

/// "aten.add.Tensor", "<built-in function getitem>": what Python shows for the object.
std::string target_object(const Target& target) {
  if (target.op()) return target.text().substr(sizeof("torch.ops.") - 1);
  const Function* function = target.function();
  if (!function) return target.name();
  if (function->name.starts_with("torch.ops.higher_order.")) return std::string(function->short_name());
  bool built_in = !function->name.starts_with("torch.");
  return std::string(built_in ? "<built-in function " : "<function ") + std::string(function->short_name()) + ">";
}

using Row = std::vector<std::string>;

std::string table(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const std::string& title : rows[0]) widths.push_back(title.size() + 2);
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  auto line = [&](auto cell) {
    std::string text;
    for (size_t i = 0; i < widths.size(); ++i) {
      std::string content = cell(i);
      content.resize(widths[i], ' ');
      text += (i ? "  " : "") + content;
    }
    text.resize(text.find_last_not_of(' ') + 1);
    out += (out.empty() ? "" : "\n") + text;
  };
  for (size_t r = 0; r < rows.size(); ++r) {
    line([&](size_t i) { return rows[r][i]; });
    if (r == 0) line([&](size_t i) { return std::string(widths[i], '-'); });
  }
  return out;
}

}  // namespace

std::string tabular(const Graph& graph) {
  std::vector<Row> rows = {{"opcode", "name", "target", "args", "kwargs"}};
  for (Node* node : graph.nodes())
    rows.push_back({to_string(node->op()), node->name(), target_object(node->target()),
                    python_repr(Argument::tuple(node->args())), python_repr(Argument::dict(node->kwargs()))});
  return table(rows);
}

}  // namespace umbra::fx
