// What comes out of a pickle: tensors over their memory, and a result that whoever walks it can trust.
#include <unordered_set>

#include "io/tensor_bytes.h"
#include "io/unpickler.h"

namespace umbra::io {

namespace {
constexpr size_t kMaxDepth = 500;
}

void Unpickler::fill(const std::function<Bytes(const PickledStorage&)>& load) {
  for (PickledStorage& storage : storages_) {
    if (storage.storage) continue;
    int64_t size = 0;
    bool overflow = __builtin_mul_overflow(storage.numel, storage.item_size(), &size);
    Bytes bytes = load(storage);
    if (storage.numel < 0 || overflow || static_cast<uint64_t>(size) > bytes.size())
      refuse("the storage '", storage.key, "' has ", bytes.size(), " bytes, fewer than its ", storage.numel,
             " elements need");
    DType aligned_for = storage.dtype == DType::Undefined ? DType::Float64 : storage.dtype;
    storage.storage = storage_over(bytes.slice(0, static_cast<size_t>(size)), aligned_for);
  }
  std::string what = concat("cannot load '", label_, "': a tensor");
  for (Recipe& recipe : recipes_) {
    const Storage& storage = storages_[recipe.storage].storage;
    Tensor tensor = tensor_over(storage, recipe.dtype, recipe.sizes, recipe.strides, recipe.offset, what);
    tensor.impl()->set_conj(recipe.conj);
    tensor.impl()->set_neg(recipe.neg);
    recipe.node->tensor = std::move(tensor);
  }
  recipes_.clear();
  recipe_of_.clear();
}

/// Goes through a result without recursion, each container once, and measures how deep and how large it is when written
/// out.
class Unpickler::Walk {
 public:
  Walk(const Unpickler& owner, uint64_t limit) : owner_(owner), limit_(limit) {}

  void run(const PickleValue& root) {
    enter(root);
    while (!open_.empty()) {
      Visit& visit = open_.back();
      if (visit.measure.depth > kMaxDepth || open_.size() > kMaxDepth)
        owner_.refuse("it is nested deeper than ", kMaxDepth, " levels");
      if (visit.measure.count > limit_) owner_.refuse("it repeats its contents too many times");
      if (visit.next < visit.node->items.size()) {
        enter(visit.node->items[visit.next++]);
      } else {
        leave();
      }
    }
  }
  bool reached(const Node* node) const { return done_.contains(node); }

 private:
  struct Measure {
    size_t depth = 1;
    uint64_t count = 1;
  };
  struct Visit {
    const Node* node;
    size_t next = 0;
    Measure measure;
  };

  void enter(const PickleValue& value) {
    if (value.kind() == Kind::Global)
      owner_.refuse("it holds a reference to '", value.node_->text, "' where a value should be");
    if (value.kind() == Kind::Storage) owner_.refuse("it holds a bare storage, which is not supported");
    bool container = value.is_sequence() || value.is_dict() || value.kind() == Kind::Object;
    const Node* node = value.node_.get();
    if (!container) {
      add({0, 1});
    } else if (auto known = done_.find(node); known != done_.end()) {
      add(known->second);
    } else {
      if (!entered_.insert(node).second) owner_.refuse("it holds a container that contains itself");
      if (value.is_dict()) owner_.check_dict(*node);
      open_.push_back({node, 0, {}});
    }
  }
  void leave() {
    Visit visit = open_.back();
    open_.pop_back();
    done_[visit.node] = visit.measure;
    add(visit.measure);
  }
  /// Counts a part in with the container that is being walked.
  void add(Measure part) {
    if (open_.empty()) return;
    Measure& whole = open_.back().measure;
    whole.depth = std::max(whole.depth, part.depth + 1);
    whole.count += part.count;
  }

  const Unpickler& owner_;
  uint64_t limit_;
  std::vector<Visit> open_;
  std::unordered_set<const Node*> entered_;
  std::unordered_map<const Node*, Measure> done_;
};

PickleValue Unpickler::finish(PickleValue result) {
  // A small file may say "ten times the thing before" many times over; whoever walks the result would never end.
  Walk walk(*this, 1'000'000 + 64 * static_cast<uint64_t>(program_.size()));
  walk.run(result);
  stack_.clear();
  memo_.clear();
  // What is not part of the result may be a cycle, or nested too deep to go by recursion.
  for (const auto& container : containers_)
    if (!walk.reached(container.get())) container->items.clear();
  containers_.clear();
  return result;
}

void Unpickler::check_dict(const Node& node) const {
  std::unordered_set<std::string_view> names;
  std::unordered_set<int64_t> numbers;
  for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const PickleValue& key = node.items[i];
    bool fresh = true;
    if (key.is_string()) fresh = names.insert(key.as_string()).second;
    if (key.kind() == Kind::Int) fresh = numbers.insert(key.as_int()).second;
    if (!fresh)
      refuse("a dict has the key ", key.is_string() ? key.as_string() : std::to_string(key.as_int()), " twice");
  }
}

}  // namespace umbra::io
