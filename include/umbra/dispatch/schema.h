// ATen's schema language: `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "umbra/core/value.h"

namespace UMBRA_API umbra {

/// The type of an argument or a return: a base, maybe optional, maybe a list (of optional elements).
struct SchemaType {
  enum class Base : uint8_t {
    Tensor,
    Int,
    SymInt,
    Float,
    SymFloat,
    Bool,
    SymBool,
    Scalar,
    Complex,
    String,
    Device,
    DType,
    Layout,
    MemoryFormat,
    Generator,
    Storage,
    Any,
    Callable,  // a function or a graph: operators that take functions
  };
  Base base = Base::Tensor;
  bool optional = false;
  bool list = false;
  bool element_optional = false;  // Tensor?[]
  int list_size = 0;              // int[2] takes a single int, twice
  bool is_tensor() const { return base == Base::Tensor && !list; }
  bool is_tensor_list() const { return base == Base::Tensor && list; }
  bool operator==(const SchemaType&) const = default;
};

/// `(a!)`: the values it may alias, and whether it is written.
struct AliasInfo {
  std::string set;  // empty: none
  bool write = false;
};

struct SchemaArgument {
  std::string name;
  SchemaType type;
  AliasInfo alias;
  bool keyword_only = false;
  std::optional<Value> default_value;
  bool is_out() const { return keyword_only && alias.write; }
};

struct SchemaReturn {
  std::string name;
  SchemaType type;
  AliasInfo alias;
};

/// A parsed schema. `parse_schema("aten::relu_(Tensor(a!) self) -> Tensor(a!)")`.
struct Schema {
  std::string space = "aten", name, overload;  // overload is "" for the unnamed one
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaReturn> returns;

  /// "aten::add.Tensor"; the unnamed overload is written without a dot.
  std::string full_name() const;
  /// Writes an argument.
  bool is_mutable() const;
  /// Writes its first argument and returns it.
  bool is_inplace() const;
  bool has_out() const;
  /// Returns an alias of an argument and writes none.
  bool is_view() const;
  /// Position of an argument by name, or -1.
  int find(std::string_view argument) const;
};

/// Reads a schema; an error points at the place that does not fit. The namespace may be left out (aten).
Schema parse_schema(std::string_view text);
std::string to_string(const SchemaType& type, const AliasInfo& alias = {});
/// The schema as ATen spells it.
std::string to_string(const Schema& schema);

}  // namespace umbra
