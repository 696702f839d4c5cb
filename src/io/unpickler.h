// A pickle machine that knows values and a closed list of names, and can call nothing.
#pragma once

#include <functional>
#include <unordered_map>

#include "io/pickle_node.h"
#include "umbra/io/file.h"
#include "umbra/io/pickle.h"

namespace umbra::io {

/// Memory that tensors of a pickle refer to by key. Untyped storages have no dtype and count bytes.
struct PickledStorage {
  std::string key;
  DType dtype = DType::Undefined;
  int64_t numel = 0;
  Storage storage;

  int64_t item_size() const { return dtype == DType::Undefined ? 1 : umbra::item_size(dtype); }
};

/// Interprets pickles of one file. Use: run(), then fill() to give the tensors memory, then finish().
class Unpickler {
 public:
  Unpickler(std::string_view program, std::string label, const PickleOptions& options);
  ~Unpickler();

  /// Runs the pickle at `position` and moves past its end.
  PickleValue run(size_t& position);
  /// Makes the tensors that runs so far have described; `load` gives the bytes of a storage.
  void fill(const std::function<Bytes(const PickledStorage&)>& load);
  /// A result without cycles, internal kinds, dicts with a key twice, or nesting that would overflow its readers.
  PickleValue finish(PickleValue result);
  const std::vector<PickledStorage>& storages() const { return storages_; }
  template <class... Args> [[noreturn]] void refuse(const Args&... args) const {
    fail<ValueError>("cannot load '", label_, "': ", args...);
  }

 private:
  using Kind = PickleValue::Kind;
  using Node = PickleValue::Node;
  using Items = PickleValue::Items;
  class Walk;
  /// A tensor whose memory has yet to come.
  struct Recipe {
    std::shared_ptr<Node> node;
    size_t storage;
    DType dtype;
    std::vector<int64_t> sizes, strides;
    int64_t offset;
    bool conj = false, neg = false;
  };

  // The machine.
  void step(unsigned char opcode);
  bool step_constant(unsigned char opcode);
  bool step_container(unsigned char opcode);
  bool step_memo(unsigned char opcode);
  bool step_name(unsigned char opcode);
  std::string_view take(size_t count);
  std::string take_text(size_t count);
  std::string_view take_line();
  uint64_t number(size_t bytes);
  int64_t long_number(size_t bytes);
  void push(PickleValue value) { stack_.push_back(std::move(value)); }
  PickleValue pop();
  Items pop_to_mark();
  PickleValue& top(PickleValue::Kind kind, const char* what);
  PickleValue keep(PickleValue container);
  void memoize(uint64_t slot);
  void recall(uint64_t slot);

  // What names stand for (unpickler_names.cpp).
  PickleValue global(std::string_view module, std::string_view name) const;
  PickleValue reduce(const PickleValue& function, const PickleValue& arguments);
  PickleValue create(const PickleValue& type, const PickleValue& arguments);
  void build(PickleValue& target, const PickleValue& state);
  PickleValue persistent(const PickleValue& id);
  PickleValue rebuild_tensor(const Items& arguments, bool with_dtype);
  PickleValue rebuild_parameter(const Items& arguments);
  PickleValue ordered_dict(const Items& arguments);
  PickleValue make_device(const Items& arguments) const;
  PickleValue make_bytes(const Items& arguments) const;
  std::vector<int64_t> integers(const PickleValue& value, const char* what) const;
  void check_dict(const Node& node) const;

  std::string_view program_;
  size_t position_ = 0;
  std::string label_;
  PickleOptions options_;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleValue> memo_;
  std::vector<std::shared_ptr<Node>> containers_;  // to take cycles apart when something is refused
  std::vector<Recipe> recipes_;
  std::unordered_map<const Node*, size_t> recipe_of_;
  std::vector<PickledStorage> storages_;
  std::unordered_map<std::string, size_t> storage_of_;
};

}  // namespace umbra::io
