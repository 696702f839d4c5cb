// functionalize as a transform: a level whose tensors wrap values that nothing writes.
#include "umbra/capture/functionalize.h"

#include <unordered_set>

#include "umbra/capture/higher_order.h"
#include "umbra/generated/functions.h"
#include "umbra/transform/level.h"
#include "umbra/transform/transform.h"

namespace umbra::transform {

namespace {

/// The function as a level sees it that is off the stack where it is called.
ValueFunction seen_by(IntrusivePtr<Level> level, ValueFunction function) {
  return [=](const std::vector<Value>& values) {
    WithinLevel scope(level);
    return function(values);
  };
}

std::vector<Value> call_outside(const FunctionCall& call) {
  WithoutLevel off;
  return call.call();
}

class FunctionalizeLevel final : public Level {
 public:
  explicit FunctionalizeLevel(bool whole_composites) : whole_composites_(whole_composites) {}

  void call(const Operator& op, Value* frame) override {
    if (op.is_composite() && !stays_whole(op)) return op.definition().composite(frame);
    if (made_inside_) refuse_outside_writes(op, frame);
    {
      WithoutLevel off;
      functional_level::call(op, frame, pointer());
    }
    if (!made_inside_) return;
    for (size_t i = 0; i < op.return_count(); ++i)
      frame[i].each_tensor([&](const TensorImpl* t) { made_inside_->insert(t->storage().get()); });
  }

  /// Below, the functions are functions of values.
  bool call_functions(const Operator& op, Value* frame) override {
    FunctionCall below = FunctionCall(op, frame).changed(
        [this](const Value& v) { return to_value(v); },
        [this](const Value& function, size_t) {
          return seen_by(IntrusivePtr<Level>(this), [this, function](const std::vector<Value>& values) {
            std::vector<Value> wrapped, results;
            for (const Value& v : values) wrapped.push_back(to_wrapper(v));
            InsideFunction scope(*this);
            results = call_function(function, wrapped);
            for (Value& v : results) v = to_value(v);
            return results;
          });
        });
    std::vector<Value> results = call_outside(below);
    for (Value& v : results) v = to_wrapper(v);
    frame[0] = Value(std::move(results));
    return true;
  }

  Tensor unwrap(const Tensor& tensor) const override {
    return tensor.defined() ? functional_level::unwrap(tensor, pointer()) : tensor;
  }
  Tensor as_own(const Tensor& value) const override { return functional_level::wrap(value, pointer()); }

 private:
  /// What may write its arguments, or give views of them, has to be looked into.
  bool stays_whole(const Operator& op) const {
    return whole_composites_ && !op.is_view() && !op.is_mutable() && !op.has_tag(Tag::MaybeAliasingOrMutating);
  }

  /// While a function runs that becomes a graph of its own: it must not write what others have.
  struct InsideFunction {
    explicit InsideFunction(FunctionalizeLevel& level) : level(level), before(level.made_inside_) {
      level.made_inside_ = &made;
    }
    ~InsideFunction() { level.made_inside_ = before; }
    FunctionalizeLevel& level;
    std::unordered_set<const StorageImpl*> made, *before;
  };

  void refuse_outside_writes(const Operator& op, const Value* frame) const {
    const auto& arguments = op.schema().arguments;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].alias.write) continue;
      frame[i].each_tensor([&](const TensorImpl* t) {
        check<UserError>(
            made_inside_->contains(t->storage().get()),
            "Encountered input mutation during higher order op tracing\n  A function writes an operand or a "
            "tensor from outside, by ",
            op.name(), ": return the new value instead.");
      });
    }
  }

  Value to_value(const Value& v) const { return v.is_tensor() ? Value(unwrap(v.tensor_ref())) : v; }
  Value to_wrapper(const Value& v) const { return v.is_tensor() ? Value(as_own(v.tensor_ref())) : v; }

  bool whole_composites_;
  std::unordered_set<const StorageImpl*>* made_inside_ = nullptr;

  IntrusivePtr<RefCounted> pointer() const { return IntrusivePtr<RefCounted>(const_cast<FunctionalizeLevel*>(this)); }
};

/// Stands around a functionalising level, and sees what that one calls: views become copies.
class CopyViewsLevel final : public Level {
 public:
  void call(const Operator& op, Value* frame) override {
    if (op.is_composite()) return op.definition().composite(frame);
    const Operator* copy = op.is_view() ? copy_of(op) : nullptr;
    WithoutLevel off;
    (copy ? *copy : op).call(frame);
  }
  bool call_functions(const Operator& op, Value* frame) override {
    auto same = [](const Value& v) { return v; };
    frame[0] = Value(call_outside(FunctionCall(op, frame).changed(same, [this](const Value& function, size_t) {
      return seen_by(IntrusivePtr<Level>(this),
                     [function](const std::vector<Value>& values) { return call_function(function, values); });
    })));
    return true;
  }
  Tensor unwrap(const Tensor& tensor) const override { return tensor; }

 private:
  /// `select_copy.int` for `select.int`; null where there is none.
  static const Operator* copy_of(const Operator& op) {
    const Schema& schema = op.schema();
    return find_operator(
        concat(schema.space, "::", schema.name, "_copy", schema.overload.empty() ? "" : ".", schema.overload));
  }
};

/// The first input that is the same tensor; the input itself where there is none before it.
size_t same_tensor(const std::vector<Value>& inputs, size_t i) {
  for (size_t k = 0; k < i; ++k)
    if (inputs[k].is_tensor() && inputs[i].is_tensor() && inputs[k].tensor_ref().is_same(inputs[i].tensor_ref()))
      return k;
  return i;
}

/// A write to one of two inputs that share memory would not be seen by the other.
void refuse_shared_write(const std::vector<Value>& inputs, const Tensor& written) {
  for (const Value& v : inputs)
    v.each_tensor([&](TensorImpl* t) {
      check<NotImplementedError>(t == written.impl() || t->storage() != written.storage(),
                                 "functionalize: the function writes an input that shares memory with another input; "
                                 "pass a clone of one of them");
    });
}

void refuse_written_element(TensorImpl* element) {
  Tensor wrapper{IntrusivePtr<TensorImpl>(element)};
  check<NotImplementedError>(
      !functional_level::was_written(wrapper) && !functional_level::became_view(wrapper),
      "functionalize: a tensor inside a list among the inputs was written in place; give it as an input of its own");
}

/// Gives an input that became a view of itself its new look; what was resized before that needs more memory.
void show_as(const Tensor& input, const TensorSpec& shown, SymInt offset) {
  SymInt bytes = storage_bytes(shown.sizes, shown.strides, offset, input.item_size());
  const Storage& storage = input.storage();
  if (!bytes.is_symbolic() && !storage->bytes().is_symbolic() && storage->bytes() < bytes)
    storage->resize(bytes.value());
  input.as_strided_(shown.sizes, shown.strides, offset);
}

}  // namespace

ValueFunction functionalize(ValueFunction function, FunctionalizeOptions options) {
  return [function = std::move(function), options](const std::vector<Value>& inputs) {
    std::optional<EnterLevel> copies;
    if (options.copy_views) copies.emplace(make_counted<CopyViewsLevel>());
    auto level = make_counted<FunctionalizeLevel>(options.whole_composites);
    std::vector<Value> wrapped, results;
    std::vector<Storage> memory(inputs.size());  // that each wrapper starts with
    {
      EnterLevel scope(level);
      for (size_t i = 0; i < inputs.size(); ++i) {
        size_t same = same_tensor(inputs, i);
        wrapped.push_back(same < i ? wrapped[same]
                                   : map_tensors(inputs[i], [&](const Tensor& t) { return level->as_own(t); }));
        if (inputs[i].is_tensor()) memory[i] = wrapped[i].tensor_ref().storage();
      }
      results = function(wrapped);
    }
    for (Value& v : results) v = map_tensors(v, [&](const Tensor& t) { return level->unwrap(t); });
    std::vector<Tensor> contents(inputs.size());
    // One that got another tensor's memory (set_) gets its contents.
    auto was_replaced = [&](size_t i) { return !(wrapped[i].tensor_ref().storage() == memory[i]); };
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].is_tensor() && (was_replaced(i) || functional_level::was_written(wrapped[i].tensor_ref())))
        contents[i] = level->unwrap(wrapped[i].tensor_ref());
    copies.reset();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].is_tensor()) wrapped[i].each_tensor(refuse_written_element);
      if (!inputs[i].is_tensor() || same_tensor(inputs, i) != i) continue;
      const Tensor& wrapper = wrapped[i].tensor_ref();
      bool changed = functional_level::became_view(wrapper) && !was_replaced(i);
      if (!changed && !contents[i].defined()) continue;
      refuse_shared_write(inputs, inputs[i].tensor_ref());
      TensorSpec shown(wrapper.sym_sizes(), wrapper.sym_strides(), wrapper.dtype(), wrapper.device());
      if (changed) show_as(inputs[i].tensor_ref(), shown, wrapper.sym_storage_offset());
      if (!changed && !(inputs[i].tensor_ref().sym_sizes() == wrapper.sym_sizes()))
        inputs[i].tensor_ref().resize_(wrapper.sym_sizes());
      if (contents[i].defined()) write_contents(inputs[i].tensor_ref(), shown, contents[i]);
    }
    return results;
  };
}

}  // namespace umbra::transform
