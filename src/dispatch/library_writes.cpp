#include "dispatch/library_writes.h"

#include <map>
#include <mutex>

#include "dispatch/layers.h"

namespace umbra {

namespace {

constexpr const char* kSpace = "auto_functionalized";

/// An operator with plain tensors in the places of the written lists and optional tensors of another.
struct Flat {
  const Operator* original;
  std::vector<int> counts;  // by argument: tensors that stand for it; -1: the argument as it is
  Operator* op;
};

// Never destroyed: operators are called while the process ends.
struct Forms {
  std::mutex mutex;
  std::multimap<const Operator*, Operator*> made;
  std::map<std::pair<const Operator*, std::vector<int>>, const Flat*> flat;
};
Forms& forms() {
  static auto* all = new Forms;
  return *all;
}

bool returns_aliases(const Schema& schema) {
  for (const SchemaReturn& r : schema.returns)
    if (!r.alias.set.empty()) return true;
  return false;
}

bool is_written_plainly(const SchemaArgument& a) { return !a.alias.write || (a.type.is_tensor() && !a.type.optional); }

bool writes_plainly(const Schema& schema) {
  for (const SchemaArgument& a : schema.arguments)
    if (!is_written_plainly(a)) return false;
  return true;
}

/// Calls the operator on copies; its results, then the copies.
void run_on_copies(const void* context, Value* frame) {
  static const Operator& clone = get_operator("aten::clone");
  const auto& op = *static_cast<const Operator*>(context);
  Frame inner(op, frame);
  std::vector<Value> copies, results;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (!op.schema().arguments[i].alias.write) continue;
    Value copy[2] = {Value::borrow(frame[i]), Value()};
    clone.call(copy);
    copies.push_back(copy[0]);
    inner[i] = std::move(copy[0]);
  }
  op.call(inner.data());
  for (size_t i = 0; i < op.return_count(); ++i) results.push_back(std::move(inner[i]));
  for (Value& copy : copies) results.push_back(std::move(copy));
  for (size_t i = 0; i < results.size(); ++i) frame[i] = std::move(results[i]);
}

/// The same arguments, none of them written; its results, then the new contents of each written tensor.
Operator& make_functional(Operator& op, std::string name, std::string overload) {
  Schema schema = op.schema();
  schema.space = kSpace;
  schema.name = std::move(name);
  schema.overload = std::move(overload);
  for (SchemaArgument& a : schema.arguments) {
    if (a.alias.write) schema.returns.push_back({"", a.type, {}});
    a.alias = {};
  }
  Operator& functional = register_operator(std::move(schema));
  functional.mutable_definition().all_backends = {run_on_copies, &op};
  op.set_functional_name(functional.name());
  return functional;
}

std::string plain_name(const Schema& schema) { return schema.space + "_" + schema.name; }

// ---- lists and optional tensors ----

std::vector<int> counts_of(const Operator& op, const Value* frame) {
  std::vector<int> counts;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    int count = 0;
    frame[i].each_tensor([&](TensorImpl*) { ++count; });
    counts.push_back(is_written_plainly(op.schema().arguments[i]) ? -1 : count);
  }
  return counts;
}

std::string text_of(const std::vector<int>& counts) {
  std::string text;
  for (int count : counts)
    if (count >= 0) text += (text.empty() ? "" : "_") + std::to_string(count);
  return text;
}

/// Puts the tensors back into lists, and calls the operator that was meant.
void run_original(const void* context, Value* frame) {
  const auto& flat = *static_cast<const Flat*>(context);
  const Operator& op = *flat.original;
  Frame inner(op);
  size_t next = 0;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (flat.counts[i] < 0) {
      inner[i] = Value::borrow(frame[next++]);
    } else if (op.schema().arguments[i].type.list) {
      std::vector<Tensor> tensors;
      for (int k = 0; k < flat.counts[i]; ++k) tensors.push_back(frame[next++].tensor());
      inner[i] = Value(std::move(tensors));
    } else {
      inner[i] = flat.counts[i] ? Value::borrow(frame[next++]) : Value();
    }
  }
  op.call(inner.data());
  std::vector<Value> results;
  for (size_t i = 0; i < op.return_count(); ++i) results.push_back(std::move(inner[i]));
  for (size_t i = 0; i < results.size(); ++i) frame[i] = std::move(results[i]);
}

Schema flat_schema(const Operator& op, const std::vector<int>& counts) {
  Schema schema = op.schema();
  schema.space = kSpace;
  schema.name = plain_name(op.schema());
  schema.overload = "writes_" + text_of(counts);
  schema.arguments.clear();
  for (size_t i = 0; i < op.argument_count(); ++i) {
    SchemaArgument argument = op.schema().arguments[i];
    argument.default_value.reset();  // calls give everything
    if (counts[i] < 0) schema.arguments.push_back(argument);
    argument.type = {};
    for (int k = 0; k < counts[i]; ++k) {
      schema.arguments.push_back(argument);
      schema.arguments.back().name += "_" + std::to_string(k);
      schema.arguments.back().alias.set += std::to_string(k);
    }
  }
  return schema;
}

const Flat& flat_form(const Operator& op, const std::vector<int>& counts) {
  Forms& all = forms();
  std::lock_guard lock(all.mutex);
  const Flat*& form = all.flat[{&op, counts}];
  if (form) return *form;
  Operator& made = register_operator(flat_schema(op, counts));
  auto* flat = new Flat{&op, counts, &made};  // as long as the operator: for good
  made.mutable_definition().all_backends = {run_original, flat};
  all.made.emplace(&op, &made);
  if (made.is_mutable()) all.made.emplace(&op, &make_functional(made, plain_name(op.schema()), text_of(counts)));
  form = flat;
  return *form;
}

}  // namespace

void define_functional_form(Operator& op) {
  const Schema& schema = op.schema();
  if (!op.is_mutable() || returns_aliases(schema) || !writes_plainly(schema)) return;
  Operator& made = make_functional(op, plain_name(schema), schema.overload);
  std::lock_guard lock(forms().mutex);
  forms().made.emplace(&op, &made);
}

bool functionalize_writes(const Operator& op, DispatchKeySet keys, Value* frame) {
  if (!op.is_mutable() || returns_aliases(op.schema()) || writes_plainly(op.schema())) return false;
  const Flat& flat = flat_form(op, counts_of(op, frame));
  Frame inner(*flat.op);
  size_t next = 0;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (flat.counts[i] < 0) inner[next++] = Value::borrow(frame[i]);
    else frame[i].each_tensor([&](TensorImpl* t) { inner[next++] = Value(Tensor(IntrusivePtr<TensorImpl>(t))); });
  }
  flat.op->redispatch(keys, inner.data());
  std::vector<Value> results;
  for (size_t i = 0; i < op.return_count(); ++i) results.push_back(std::move(inner[i]));
  for (size_t i = 0; i < results.size(); ++i) frame[i] = std::move(results[i]);
  return true;
}

bool runs_on_copies(const Operator& op) { return op.schema().space == kSpace; }

std::string name_for_users(const Operator& op) {
  if (!runs_on_copies(op)) return op.name();
  Forms& all = forms();
  std::lock_guard lock(all.mutex);
  for (const auto& [original, made] : all.made)
    if (made == &op) return original->name();
  return op.name();
}

const Operator* original_of(const Operator& functional) {
  if (!runs_on_copies(functional)) return nullptr;
  Forms& all = forms();
  std::lock_guard lock(all.mutex);
  for (const auto& [original, made] : all.made)
    if (made == &functional && writes_plainly(original->schema())) return original;
  return nullptr;
}

void remove_functional_forms(const Operator& op) {
  Forms& all = forms();
  std::lock_guard lock(all.mutex);
  auto [first, last] = all.made.equal_range(&op);
  for (auto it = first; it != last; ++it) remove_operator(*it->second);
  all.made.erase(first, last);
  std::erase_if(all.flat, [&](const auto& entry) { return entry.first.first == &op; });
}

}  // namespace umbra
