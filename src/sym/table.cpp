// The intern table: storage of expressions and their hints.
#include <bit>
#include <cstring>
#include <new>

#include "sym/store.h"
#include "umbra/core/error.h"
#include "umbra/sym/expression.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {
namespace {

constexpr size_t kListBlockSize = size_t{16} << 10;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

uint64_t hash_of(Kind kind, Terms args, Integer payload) {
  uint64_t hash = mix(static_cast<uint64_t>(kind) + 1, static_cast<uint64_t>(payload));
  if (!fits_int64(payload)) hash = mix(hash, static_cast<uint64_t>(payload >> 64));
  for (const Expression* arg : args) hash = mix(hash, reinterpret_cast<uintptr_t>(arg) >> 4);
  return hash;
}

}  // namespace

ExpressionTable::ExpressionTable(ShapeEnv& env) : env_(env), generation_(next_generation()), slots_(256) {}

ExpressionTable::~ExpressionTable() {
  for (Expression* block : nodes_) {
    size_t count = block == nodes_.back() ? used_ : kExpressionsInBlock;
    for (size_t i = 0; i < count; ++i) block[i].generation_ = 0;
    give_back_expression_block(reinterpret_cast<std::byte*>(block));
  }
  for (std::byte* block : lists_) delete[] block;
}

Expression* ExpressionTable::allocate(Kind kind, Type type) {
  static_assert(alignof(Expression) <= 16);
  if (nodes_.empty() || used_ == kExpressionsInBlock) {
    nodes_.push_back(reinterpret_cast<Expression*>(take_expression_block(sizeof(Expression))));
    used_ = 0;
  }
  auto* node = new (nodes_.back() + used_++) Expression();
  node->generation_ = generation_;
  node->kind_ = kind;
  node->type_ = type;
  node->env_ = &env_;
  node->id_ = static_cast<uint32_t>(count_);
  return node;
}

Terms ExpressionTable::keep(Terms args) {
  size_t bytes = args.size() * sizeof(const Expression*);
  if (static_cast<size_t>(end_ - free_) < bytes) {
    size_t block = std::max(kListBlockSize, bytes);
    lists_.push_back(new std::byte[block]);
    free_ = lists_.back();
    end_ = free_ + block;
  }
  std::memcpy(free_, args.data(), bytes);
  auto* list = reinterpret_cast<const Expression* const*>(free_);
  free_ += bytes;
  return {list, args.size()};
}

/// What a node has from its arguments: how deep it is, whether it is unbacked, and its hint.
void ExpressionTable::inherit(Expression& node) {
  SmallVector<Number, 6> values;
  bool hinted = true;
  bool divides = node.is(Kind::FloorDiv) || node.is(Kind::Mod);
  node.divided_ = divides && !node.arg(1)->is(Kind::Integer);
  for (const Expression* arg : node.args()) {
    node.divided_ |= arg->divided_;
    node.depth_ = std::max(node.depth_, arg->depth_ + 1);
    node.unbacked_ |= arg->unbacked_;
    hinted = hinted && arg->has_hint_;
    if (hinted) values.push_back(arg->hint());
  }
  if (!hinted) return;
  Number hint;
  node.has_hint_ = evaluate_node(node, values, hint);
  if (node.type_ == Type::Float) node.hint_real_ = hint.real;
  else node.hint_integer_ = hint.integer;
}

const Expression* ExpressionTable::intern(Kind kind, Type type, Terms args, Integer payload) {
  uint64_t hash = hash_of(kind, args, payload);
  size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at]; at = (at + 1) & mask) {
    const Expression* candidate = slots_[at];
    if (candidate->hash_ == hash && candidate->kind_ == kind && candidate->integer_ == payload &&
        candidate->args() == args)
      return candidate;
  }
  Expression* node = allocate(kind, type);
  node->hash_ = hash;
  node->integer_ = payload;
  node->count_ = static_cast<uint32_t>(args.size());
  if (!args.empty()) {
    node->args_ = keep(args).data();
    inherit(*node);
  } else if (kind != Kind::Symbol) {
    node->has_hint_ = true;
    node->hint_integer_ = payload;  // of a float, its bits
  }
  slots_[at] = node;
  if (++count_ * 2 > slots_.size()) grow();
  return node;
}

void ExpressionTable::grow() {
  std::vector<const Expression*> old(slots_.size() * 2);
  old.swap(slots_);
  size_t mask = slots_.size() - 1;
  for (const Expression* node : old) {
    if (!node) continue;
    size_t at = node->hash_ & mask;
    while (slots_[at]) at = (at + 1) & mask;
    slots_[at] = node;
  }
}

const Expression* ExpressionTable::integer(Integer value) { return intern(Kind::Integer, Type::Int, {}, value); }
const Expression* ExpressionTable::real(double value) {
  return intern(Kind::Float, Type::Float, {}, std::bit_cast<int64_t>(value));
}
const Expression* ExpressionTable::boolean(bool value) { return intern(Kind::Boolean, Type::Bool, {}, value); }
const Expression* ExpressionTable::symbol(uint32_t index) {
  return intern(Kind::Symbol, env_.symbols()[index].type, {}, index);
}

}  // namespace umbra::sym
