// One function as source.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "umbra/jit/source.h"

namespace umbra::jit {

bool is_identifier(const std::string& s);
/// Words that have a meaning of their own in source.
bool is_reserved(const std::string& word);
/// The length of a text without the marks in it.
size_t shown_size(std::string_view text);

class FunctionPrinter {
 public:
  FunctionPrinter(SourcePrinter& owner, Function& function, bool as_method)
      : owner_(owner), function_(function), as_method_(as_method) {}
  std::string run(const std::string& name);

 private:
  // ---- what is written where it is read ----
  using Position = Block::Nodes::const_reverse_iterator;
  void count_uses(const Block& block);
  void find_inlined(const Block& block);
  Position scan(const Block& block, Position before, const Variables& inputs, bool named);
  bool can_inline(const Variable* v) const;
  /// Gives values that would make a line too long a line of their own, and all that are computed before them.
  void split_long(const Variables& inputs, const Node* user);
  void gather_before(const Variables& inputs, const Node* user, size_t count, std::vector<const Node*>& out);

  // ---- names and values ----
  std::string fresh(std::string wanted);
  std::string name_of(const Variable* v, const std::string& wanted = "");
  std::string text(const Variable* v);
  std::string texts(const Variables& values, size_t first = 0);
  std::string arguments(const Variables& values);
  /// An object before a dot.
  std::string owner_text(const Variable* v);

  // ---- nodes ----
  void line(const std::string& text);
  void block(const Block& b);
  void node(const Node& n);
  void assign(const Node& n, const std::string& value);
  std::string expression(const Node& n) { return owner_.mark(n) + plain_expression(n); }
  std::string plain_expression(const Node& n);
  std::string container(const Node& n);
  std::string conversion(const Node& n);
  std::string operator_call(const Node& n);
  void if_node(const Node& n);
  void results(const Node& n, const Variables& values, size_t first, const std::string& type);
  void loop_node(const Node& n);
  void loop_body(const Node& n, const std::string& condition);
  [[noreturn]] static void refuse_python(const std::string& name);

  SourcePrinter& owner_;
  Function& function_;
  bool as_method_;
  std::string out_;
  std::string mark_;  // of the node that the next lines are written for
  size_t depth_ = 0;
  std::unordered_map<const Variable*, std::string> names_;
  struct Reader {
    const Node* node = nullptr;  // null: the block's end
    size_t place = 0;
  };
  std::unordered_map<const Variable*, size_t> uses_;
  std::unordered_map<const Variable*, Reader> readers_;       // the last of each
  std::unordered_map<const Node*, std::string> expressions_;  // of those that are written where they are read
  std::unordered_map<std::string, size_t> next_;
  std::unordered_set<std::string> used_;
  std::unordered_set<const Node*> inlined_;
};

}  // namespace umbra::jit
