// make_fx and the modules that run while it records.
#include "capture.h"

#include "autograd.h"
#include "dispatch_mode.h"
#include "fake.h"
#include "operators.h"
#include "signatures.h"
#include "tensor_type.h"
#include "umbra/capture/effects.h"
#include "umbra/capture/higher_order.h"
#include "umbra/capture/operand_order.h"
#include "umbra/capture/out_dtype.h"
#include "umbra/capture/tracer.h"
#include "umbra/dispatch/effects.h"
#include "umbra/transform/transform.h"

namespace umbra::python {

const DecompositionTable& core_table() {
  static const DecompositionTable table = core_decompositions();
  return table;
}

DecompositionTable read_decompositions(nb::handle table) {
  DecompositionTable out;
  if (table.is_none()) return out;
  for (auto [key, value] : nb::borrow<nb::dict>(table)) {
    const Operator* op = operator_of(key.ptr());
    if (!op) continue;
    if (PyObject_HasAttrString(value.ptr(), "_core_operator")) {  // an entry of the core table stays here
      nb::object named = nb::getattr(value, "_core_operator");
      const Operator* own = operator_of(named.ptr());
      // A composite comes apart without a table.
      if (const DecompositionTable::Function* parts = own ? core_table().find(*own) : nullptr) out.set(*op, *parts);
      continue;
    }
    out.set(*op, [op, function = Callable(value)](Value* frame) {
      WithLock lock;
      auto [args, kwargs] = wrap_arguments(*op, frame);
      nb::object results = owned(PyObject_Call(function.get(), args.ptr(), kwargs.ptr()));
      if (results.ptr() == Py_NotImplemented) throw DecompositionDeclined{};
      store_results(*op, results.ptr(), frame);
    });
  }
  return out;
}

ValueFunction value_function(nb::handle callable) {
  return [function = Callable(callable)](const std::vector<Value>& inputs) {
    WithLock lock;
    return read_values(owned(PyObject_CallOneArg(function.get(), wrap_values(inputs).ptr())));
  };
}

namespace {

/// The results in the shape the traced function gave them: `pattern` has the position of each where it belongs.
fx::Argument arrange(const fx::Arguments& results, nb::handle pattern) {
  PyObject* object = pattern.ptr();
  if (PyLong_Check(object)) return results.at(nb::cast<size_t>(pattern));
  if (PyDict_Check(object)) {
    fx::KeywordArguments entries;
    for (auto [key, value] : nb::borrow<nb::dict>(pattern))
      entries.emplace_back(str_of(key.ptr()), arrange(results, value));
    return fx::Argument::dict(std::move(entries));
  }
  fx::Arguments items;
  for (nb::handle item : nb::borrow<nb::sequence>(pattern)) items.push_back(arrange(results, item));
  return PyTuple_Check(object) ? fx::Argument::tuple(std::move(items)) : fx::Argument::list(std::move(items));
}

TracingMode read_mode(const std::string& name) {
  if (name == "real") return TracingMode::Real;
  if (name == "fake") return TracingMode::Fake;
  check<AssertionError>(name == "symbolic", "Unexpected tracing type: ", name);
  return TracingMode::Symbolic;
}

GraphModuleObject capture(nb::handle function, nb::handle inputs, std::vector<std::string> names,
                          const std::string& mode, bool pre_dispatch, nb::handle decompositions,
                          std::optional<FakeModeObject> fake, bool locations, bool keeps_read_data) {
  CaptureOptions options;
  options.mode = read_mode(mode);
  options.pre_dispatch = pre_dispatch;
  options.decompositions = read_decompositions(decompositions);
  options.names = std::move(names);
  if (fake) options.fake_mode = fake->mode;
  options.locations = locations;
  options.keeps_read_data = keeps_read_data;
  nb::object parameter = nb::module_::import_("umbra.nn.parameter").attr("Parameter");
  options.is_parameter = [&](const Tensor& tensor) {
    WithLock locked;  // a backward pass runs without
    nb::object object = nb::steal(checked(wrap(tensor)));
    int found = PyObject_IsInstance(object.ptr(), parameter.ptr());  // which is Python's to say
    checked(found);
    return found == 1;
  };
  return {make_fx(value_function(function), read_values(inputs), options)};
}

/// An operator that takes functions, by name: functions of lists in the places of functions, lists in those of lists.
nb::object call_higher_order(const std::string& name, nb::args arguments) {
  const Operator& op = get_operator("higher_order::" + name);
  const auto& schema = op.schema().arguments;
  check<TypeError>(arguments.size() == schema.size(), name, " takes ", schema.size(), " arguments, ", arguments.size(),
                   " were given");
  std::vector<Value> values;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (schema[i].type.base == SchemaType::Base::Callable)
      values.push_back(function_value(value_function(arguments[i])));
    else if (schema[i].type.list) values.push_back(Value(read_values(arguments[i])));
    else values.push_back(read_any(arguments[i].ptr()));
  }
  return wrap_values(FunctionCall(op, std::move(values)).call());
}

/// Reads an operator's arguments into a frame, and runs something on it while they are there.
template <class Run>
auto with_frame(const Operator& op, const nb::tuple& args, const nb::dict& kwargs, const Run& run) {
  std::vector<PyObject*> values;
  for (nb::handle value : args) values.push_back(value.ptr());
  for (auto [key, value] : kwargs) values.push_back(value.ptr());
  nb::object names = owned(PySequence_Tuple(nb::list(kwargs.keys()).ptr()));
  CallArguments call{values.data(), args.size(), kwargs.size() ? names.ptr() : nullptr};
  Scratch scratch;
  Frame frame(op);
  Mismatch why;
  if (!Matcher::of(op).read(call, Reading::Operator, frame.data(), scratch, why)) fail_schema(op, call, why);
  return run(frame.data());
}

nb::object run_core_decomposition(nb::handle which, nb::tuple args, nb::dict kwargs) {
  const Operator* op = operator_of(which.ptr());
  const DecompositionTable::Function* parts = op ? core_table().find(*op) : nullptr;
  check<TypeError>(op && (parts || op->is_composite()), "no entry of the core table: ", str_of(which.ptr()));
  return with_frame(*op, args, kwargs, [&](Value* frame) {
    if (parts) (*parts)(frame);
    else op->call(frame);
    return owned(wrap_results(*op, frame));
  });
}

/// Past autograd, which what the kernel calls is not.
nb::object call_below_autograd(nb::handle which, nb::tuple args, nb::dict kwargs) {
  const Operator* op = operator_of(which.ptr());
  check<TypeError>(op, "an operator is called");
  return with_frame(*op, args, kwargs, [&](Value* frame) {
    op->redispatch(op->keys(frame).below(DispatchKey::Autograd), frame);
    return owned(wrap_results(*op, frame));
  });
}

nb::object call_with_effects(const Tensor& token, nb::handle which, nb::tuple args, nb::dict kwargs) {
  const Operator* op = operator_of(which.ptr());
  check<TypeError>(op, "with_effects takes an operator");
  return with_frame(*op, args, kwargs, [&](Value* frame) {
    return wrap_values(with_effects(token, *op, std::vector<Value>(frame, frame + op->argument_count())));
  });
}

nb::object call_out_dtype(nb::handle which, nb::handle dtype, nb::tuple args, nb::dict kwargs) {
  const Operator* op = operator_of(which.ptr());
  check<TypeError>(op, "out_dtype takes an operator");
  return with_frame(*op, args, kwargs, [&](Value* frame) {
    return nb::steal(checked(wrap(
        out_dtype(*op, read_any(dtype.ptr()).to_dtype(), std::vector<Value>(frame, frame + op->argument_count())))));
  });
}

/// Python's order of operands, or None; gives the one before.
nb::object set_operand_order(nb::object order) {
  static thread_local nb::object* current = new nb::object(nb::none());
  nb::object before = std::exchange(*current, order);
  operand_order() = {};
  if (!order.is_none())
    operand_order() = [order](const std::vector<Value>& values, const std::vector<std::vector<bool>>& used) {
      return nb::cast<std::vector<size_t>>(order(wrap_values(values), nb::cast(used)));
    };
  return before;
}

/// What stands for tensors that the code running now closes over; a context in which it does so again.
class StandIns {
 public:
  StandIns() {
    if (!dispatch_state().exclude.has(DispatchKey::Lift)) mode_ = IntrusivePtr<Mode>(active_mode(DispatchKey::Lift));
  }
  StandIns(StandIns&&) = default;
  StandIns(const StandIns&) = delete;
  void enter() { scopes_.push_back(mode_ && captures() ? std::make_unique<EnterMode>(mode_) : nullptr); }
  void leave() { scopes_.pop_back(); }

 private:
  static bool captures() { return active_tracer(DispatchKey::Proxy) || active_tracer(DispatchKey::PreProxy); }
  IntrusivePtr<Mode> mode_;
  std::vector<std::unique_ptr<EnterMode>> scopes_;
};

}  // namespace

void bind_capture(nb::module_& m) {
  m.def("_set_operand_order", &set_operand_order, nb::arg("order").none());
  m.def("_run_core_decomposition", &run_core_decomposition);
  m.def("_with_effects", &call_with_effects);
  m.def("_out_dtype", &call_out_dtype);
  m.def("_call_below_autograd", &call_below_autograd);
  m.def("_set_effect", &set_effect);
  m.def("_is_effectful", &is_effectful);
  m.def("_make_fx", &capture, nb::arg("function"), nb::arg("inputs"), nb::arg("names"), nb::arg("mode"),
        nb::arg("pre_dispatch"), nb::arg("decompositions").none(), nb::arg("fake_mode").none(), nb::arg("locations"),
        nb::arg("keeps_read_data"));
  m.def("_arrange_output", [](GraphModuleObject& g, nb::handle pattern) {
    fx::Node* output = g.module->graph().output_node();
    output->set_args({arrange(g.module->graph().outputs(), pattern)});
  });
  m.def("_functionalize", [](nb::handle function, nb::handle inputs, bool whole_composites, bool copy_views) {
    FunctionalizeOptions options{whole_composites, copy_views};
    return wrap_values(functionalize(value_function(function), options)(read_values(inputs)));
  });
  m.def("_call_higher_order", &call_higher_order);
  m.def(
      "_enter_module",
      [](const std::string& path, std::string type, const std::string& prefix) {
        enter_module(path, std::move(type), prefix);
      },
      nb::arg("path"), nb::arg("type"), nb::arg("prefix") = "L__self__");
  m.def("_leave_module", [] { leave_module(); });
  nb::class_<StandIns>(m, "_StandIns").def("__enter__", &StandIns::enter).def("__exit__", [](StandIns& s, nb::args) {
    s.leave();
  });
  m.def("_stand_ins", [] { return StandIns(); });
  m.def("_is_tracing", [] { return active_tracer(DispatchKey::Proxy) || active_tracer(DispatchKey::PreProxy); });
}

}  // namespace umbra::python
