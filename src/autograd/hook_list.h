// Hooks that users register and take back.
#pragma once

#include <utility>
#include <vector>

#include "umbra/autograd/node.h"

namespace umbra::autograd {

/// Hooks by id, in the order of registration.
template <class F> class HookList {
 public:
  void add(HookId id, F hook) { hooks_.emplace_back(id, std::move(hook)); }
  bool remove(HookId id) {
    return std::erase_if(hooks_, [&](const auto& h) { return h.first == id; }) > 0;
  }
  bool empty() const { return hooks_.empty(); }
  /// Visits a copy: a hook may remove itself.
  template <class V> void each(V&& visit) const {
    if (hooks_.empty()) return;
    auto copy = hooks_;
    for (auto& [id, hook] : copy) visit(hook);
  }

 private:
  std::vector<std::pair<HookId, F>> hooks_;
};

}  // namespace umbra::autograd
