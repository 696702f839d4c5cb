// Which node of another graph a node was made of, and by what: PyTorch's `from_node`.
#pragma once

#include <optional>

#include "umbra/graph/node.h"

namespace UMBRA_API umbra {
namespace fx {

/// A node that another one was made of.
class Origin final : public RefCounted {
 public:
  /// `pass`: what made the other one; `action`: "create" or "create+replace". Both are literals.
  Origin(const Node& node, const char* pass, const char* action);
  /// A node of a copy that was made of `from`, its like.
  Origin(const Node& node, const char* pass, const char* action, IntrusivePtr<Origin> from);
  /// {"name": "linear", "target": "aten.linear.default", ..., "from_node": [...]}
  std::string text() const;

 private:
  std::string name_;
  Target target_;
  const Graph* graph_;  // a number that tells graphs apart, nothing else
  const char *pass_, *action_;
  Value from_;
};

/// Says of a node what it was made of.
void set_origin(Node& node, IntrusivePtr<Origin> origin);
/// Whether it is known what the node was made of.
bool has_origin(const Node& node);
/// The list of what the node was made of, as it stands in files; none where that is not known.
std::optional<std::string> origins_text(const Meta& meta);
/// The same from a file.
void set_origins_text(Meta& meta, std::string text);

}  // namespace fx
}  // namespace umbra
