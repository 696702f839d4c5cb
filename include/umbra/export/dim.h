// Dynamic dimensions: which sizes of a program's inputs may vary, and in which range.
//
//     Dim batch("batch", {.max = 1024}), length("length", {.min = 2});
//     export_program(model, {x}, {.dynamic_shapes = {{"x", {{0, batch}, {1, length}}}}});
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "umbra/sym/range.h"

namespace UMBRA_API umbra {

/// A dimension that may vary: `Dim("batch", {.max = 4096})`, or one that follows from another: `2 * batch + 1`.
class Dim {
 public:
  struct Bounds {
    int64_t min = 0;
    int64_t max = std::numeric_limits<int64_t>::max();  // no bound
  };
  enum class Hint : uint8_t { Named, Auto, Dynamic, Static };

  explicit Dim(std::string name, Bounds bounds = {0, std::numeric_limits<int64_t>::max()});
  /// May become a number if the program asks for it (AUTO), must not (DYNAMIC), is one (STATIC).
  static Dim automatic(Bounds bounds) { return Dim(Hint::Auto, bounds); }
  static Dim automatic() { return Dim(Hint::Auto, {}); }
  static Dim dynamic(Bounds bounds) { return Dim(Hint::Dynamic, bounds); }
  static Dim dynamic() { return Dim(Hint::Dynamic, {}); }
  static Dim fixed(Bounds bounds) { return Dim(Hint::Static, bounds); }
  static Dim fixed() { return Dim(Hint::Static, {}); }

  Hint hint() const { return hint_; }
  const std::string& name() const { return name_; }
  sym::Range range() const {
    return {bounds_.min, bounds_.max == std::numeric_limits<int64_t>::max() ? sym::kInfinity : bounds_.max};
  }
  /// scale * root + offset; a plain Dim is 1 * itself + 0.
  int64_t scale() const { return scale_; }
  int64_t offset() const { return offset_; }
  bool is_derived() const { return scale_ != 1 || offset_ != 0; }
  /// "batch", "2*batch + 1".
  std::string text() const;

  friend Dim operator*(int64_t factor, const Dim& dim) { return dim.scaled(factor); }
  friend Dim operator*(const Dim& dim, int64_t factor) { return dim.scaled(factor); }
  friend Dim operator+(const Dim& dim, int64_t number) { return dim.shifted(number); }
  friend Dim operator-(const Dim& dim, int64_t number) { return dim.shifted(-number); }

 private:
  Dim(Hint hint, Bounds bounds) : hint_(hint), bounds_(bounds) {}
  Dim scaled(int64_t factor) const;
  Dim shifted(int64_t number) const;
  Hint hint_ = Hint::Named;
  std::string name_;
  Bounds bounds_;
  int64_t scale_ = 1, offset_ = 0;
};

/// Which dimensions of which inputs: {{"x", {{0, batch}}}}. A nested input is named by its path: "parts['b'][0]".
using DynamicShapes = std::map<std::string, std::map<int64_t, Dim>>;

}  // namespace umbra
