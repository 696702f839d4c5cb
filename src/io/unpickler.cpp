#include "io/unpickler.h"

#include <bit>
#include <cstring>

#include "io/pickle_opcodes.h"
#include "io/text.h"

namespace umbra::io {

namespace {
constexpr size_t kMaxProgram = size_t{1} << 28;
}

Unpickler::Unpickler(std::string_view program, std::string label, const PickleOptions& options)
    : program_(program), label_(std::move(label)), options_(options) {}

Unpickler::~Unpickler() {
  // Containers still here belong to a pickle that was refused: it may be a cycle, or nested too deep to go by
  // recursion.
  for (const auto& container : containers_) container->items.clear();
}

PickleValue Unpickler::run(size_t& position) {
  position_ = position;
  stack_.clear();
  marks_.clear();
  memo_.clear();
  for (;;) {
    if (position_ - position > kMaxProgram) refuse("its pickle is longer than ", kMaxProgram, " bytes");
    auto opcode = static_cast<unsigned char>(take(1)[0]);
    if (opcode == op::kStop) break;
    step(opcode);
  }
  PickleValue result = pop();
  if (!stack_.empty() || !marks_.empty()) refuse("its pickle is damaged: values are left over");
  position = position_;
  return result;
}

// ---- the machine ----

void Unpickler::step(unsigned char opcode) {
  if (step_constant(opcode) || step_container(opcode) || step_memo(opcode) || step_name(opcode)) return;
  refuse("its pickle uses the instruction ", static_cast<int>(opcode), " at byte ", position_ - 1,
         ", which files of tensors do not need");
}

bool Unpickler::step_constant(unsigned char opcode) {
  switch (opcode) {
    case op::kProto: {
      uint64_t protocol = number(1);
      if (protocol > 5) refuse("its pickle has protocol ", protocol, ", which is not known");
      return true;
    }
    case op::kFrame: number(8); return true;
    case op::kNone: push({}); return true;
    case op::kNewTrue: push(true); return true;
    case op::kNewFalse: push(false); return true;
    case op::kBinInt: push(static_cast<int64_t>(static_cast<int32_t>(number(4)))); return true;
    case op::kBinInt1: push(static_cast<int64_t>(number(1))); return true;
    case op::kBinInt2: push(static_cast<int64_t>(number(2))); return true;
    case op::kLong1: push(long_number(number(1))); return true;
    case op::kBinFloat: push(std::bit_cast<double>(__builtin_bswap64(number(8)))); return true;
    case op::kShortBinUnicode: push(take_text(number(1))); return true;
    case op::kBinUnicode: push(take_text(number(4))); return true;
    case op::kBinUnicode8: push(take_text(number(8))); return true;
    case op::kShortBinBytes: push(PickleValue::bytes(std::string(take(number(1))))); return true;
    case op::kBinBytes: push(PickleValue::bytes(std::string(take(number(4))))); return true;
    case op::kBinBytes8: push(PickleValue::bytes(std::string(take(number(8))))); return true;
    default: return false;
  }
}

bool Unpickler::step_container(unsigned char opcode) {
  auto tuple_of = [&](size_t count) {
    Items items(count);
    while (count > 0) items[--count] = pop();
    push(keep(PickleValue::tuple(std::move(items))));
  };
  switch (opcode) {
    case op::kMark: marks_.push_back(stack_.size()); return true;
    case op::kPop: pop(); return true;
    case op::kPopMark: pop_to_mark(); return true;
    case op::kEmptyTuple: tuple_of(0); return true;
    case op::kTuple1: tuple_of(1); return true;
    case op::kTuple2: tuple_of(2); return true;
    case op::kTuple3: tuple_of(3); return true;
    case op::kTuple: push(keep(PickleValue::tuple(pop_to_mark()))); return true;
    case op::kEmptyList: push(keep(PickleValue::list())); return true;
    case op::kEmptyDict: push(keep(PickleValue::dict())); return true;
    case op::kAppend: {
      PickleValue item = pop();
      top(Kind::List, "appends to").node_->items.push_back(std::move(item));
      return true;
    }
    case op::kAppends: {
      Items added = pop_to_mark();
      Items& items = top(Kind::List, "appends to").node_->items;
      items.insert(items.end(), added.begin(), added.end());
      return true;
    }
    case op::kSetItem: {
      PickleValue value = pop(), key = pop();
      Items& items = top(Kind::Dict, "sets an item of").node_->items;
      items.push_back(std::move(key));
      items.push_back(std::move(value));
      return true;
    }
    case op::kSetItems: {
      Items added = pop_to_mark();
      if (added.size() % 2) refuse("its pickle is damaged: a key without a value");
      Items& items = top(Kind::Dict, "sets items of").node_->items;
      items.insert(items.end(), added.begin(), added.end());
      return true;
    }
    default: return false;
  }
}

bool Unpickler::step_memo(unsigned char opcode) {
  switch (opcode) {
    case op::kBinPut: memoize(number(1)); return true;
    case op::kLongBinPut: memoize(number(4)); return true;
    case op::kMemoize: memoize(memo_.size()); return true;
    case op::kBinGet: recall(number(1)); return true;
    case op::kLongBinGet: recall(number(4)); return true;
    default: return false;
  }
}

bool Unpickler::step_name(unsigned char opcode) {
  switch (opcode) {
    case op::kGlobal: {
      std::string_view module = take_line(), name = take_line();
      push(global(module, name));
      return true;
    }
    case op::kStackGlobal: {
      PickleValue name = pop(), module = pop();
      if (!name.is_string() || !module.is_string()) refuse("its pickle is damaged: a name that is no text");
      push(global(module.as_string(), name.as_string()));
      return true;
    }
    case op::kReduce: {
      PickleValue arguments = pop(), function = pop();
      push(reduce(function, arguments));
      return true;
    }
    case op::kNewObject: {
      PickleValue arguments = pop(), type = pop();
      push(create(type, arguments));
      return true;
    }
    case op::kBuild: {
      PickleValue state = pop();
      if (stack_.empty()) refuse("its pickle is damaged: it takes from an empty stack");
      build(stack_.back(), state);
      return true;
    }
    case op::kBinPersistentId: push(persistent(pop())); return true;
    default: return false;
  }
}

std::string_view Unpickler::take(size_t count) {
  if (program_.size() - position_ < count) refuse("its pickle is cut: it ends at byte ", program_.size());
  std::string_view bytes = program_.substr(position_, count);
  position_ += count;
  return bytes;
}

std::string Unpickler::take_text(size_t count) {
  std::string_view bytes = take(count);
  if (!is_utf8(bytes)) refuse("its pickle has a text that is not UTF-8: '", printable(bytes), "'");
  return std::string(bytes);
}

std::string_view Unpickler::take_line() {
  size_t end = program_.find('\n', position_);
  if (end == std::string_view::npos || end - position_ > 4096) refuse("its pickle is cut: a name does not end");
  std::string_view line = program_.substr(position_, end - position_);
  position_ = end + 1;
  if (!is_utf8(line)) refuse("its pickle has a name that is not UTF-8: '", printable(line), "'");
  return line;
}

uint64_t Unpickler::number(size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, take(bytes).data(), bytes);
  return value;
}

/// A two's complement integer of any length that fits 64 bits.
int64_t Unpickler::long_number(size_t bytes) {
  std::string_view digits = take(bytes);
  if (bytes == 0) return 0;
  if (bytes > 8) refuse("its pickle has an integer of more than 64 bits");
  uint64_t value = digits.back() & 0x80 ? ~uint64_t{0} : 0;
  std::memcpy(&value, digits.data(), bytes);
  return static_cast<int64_t>(value);
}

PickleValue Unpickler::pop() {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size()))
    refuse("its pickle is damaged: it takes from an empty stack");
  PickleValue value = std::move(stack_.back());
  stack_.pop_back();
  return value;
}

PickleValue::Items Unpickler::pop_to_mark() {
  if (marks_.empty() || marks_.back() > stack_.size()) refuse("its pickle is damaged: there is no mark on its stack");
  auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  Items items(std::make_move_iterator(from), std::make_move_iterator(stack_.end()));
  stack_.erase(from, stack_.end());
  marks_.pop_back();
  return items;
}

/// The value on top, which must be of that kind.
PickleValue& Unpickler::top(Kind kind, const char* what) {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size()))
    refuse("its pickle is damaged: it takes from an empty stack");
  if (stack_.back().kind() != kind) refuse("its pickle is damaged: it ", what, " ", stack_.back().kind_name());
  return stack_.back();
}

PickleValue Unpickler::keep(PickleValue container) {
  containers_.push_back(container.node_);
  return container;
}

void Unpickler::memoize(uint64_t slot) {
  if (stack_.empty()) refuse("its pickle is damaged: it takes from an empty stack");
  memo_[slot] = stack_.back();
}

void Unpickler::recall(uint64_t slot) {
  auto found = memo_.find(slot);
  if (found == memo_.end()) refuse("its pickle is damaged: it recalls slot ", slot, ", which was never set");
  push(found->second);
}

}  // namespace umbra::io
