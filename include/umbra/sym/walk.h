// Going through expressions without recursion: they may be nested as deeply as a loop of the user's cares to run.
#pragma once

#include <unordered_map>
#include <vector>

#include "umbra/sym/shape_env.h"

namespace UMBRA_API umbra {
namespace sym {

/// Below this depth plain recursion is as safe, and quicker.
inline constexpr uint32_t kDeep = 32;

/// Calls `visit` for the expression and everything in it that `needs` it, arguments first. A visit has to end the need.
template <class Needs, class Visit> void bottom_up(const Expression* a, Needs&& needs, Visit&& visit) {
  struct Place {
    const Expression* node;
    size_t next;
  };
  if (!needs(a)) return;
  SmallVector<Place, 32> path = {Place{a, 0}};
  while (!path.empty()) {
    Place& place = path.back();
    const Expression* node = place.node;
    if (place.next < node->args().size()) {
      const Expression* arg = node->arg(place.next++);
      if (needs(arg)) path.push_back({arg, 0});
      continue;
    }
    path.pop_back();
    if (needs(node)) visit(node);
  }
}

/// An expression made anew in a table, its atoms by `atom`. What occurs several times is made once; what stays the same
/// is made only if it `always` is to be.
template <class Atom>
const Expression* rebuild(const Expression* a, ExpressionTable& table, Atom&& atom, bool always = false) {
  std::unordered_map<const Expression*, const Expression*> made;
  std::vector<const Expression*> args;
  bottom_up(
      a, [&](const Expression* node) { return !made.count(node); },
      [&](const Expression* node) {
        if (node->args().empty()) {
          made.emplace(node, atom(node));
          return;
        }
        args.clear();
        bool changed = always || &node->env().table() != &table;
        for (const Expression* arg : node->args()) {
          args.push_back(made.at(arg));
          changed |= args.back() != arg;
        }
        made.emplace(node, changed ? table.remake(node, args) : node);
      });
  return made.at(a);
}

}  // namespace sym
}  // namespace umbra
