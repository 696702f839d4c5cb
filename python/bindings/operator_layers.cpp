// What an operator has to know of the layers that Python dispatches itself (HigherOrderOperator): which one its call
// meets next, how to go on below that, and what recording and functionalisation make of its tensors.
#include "operator_layers.h"

#include <memory>

#include "graph_objects.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/capture/functionalize.h"
#include "umbra/capture/lift.h"
#include "umbra/capture/tracer.h"
#include "umbra/transform/tracked.h"
#include "values.h"

namespace umbra::python {

namespace {

using transform::Level;

/// The layers at which such a call stops, by the names that Python has for them. It passes autocast; what a transform
/// tracks is a matter of its level.
struct NamedLayer {
  DispatchKey key;
  const char* name;
};
constexpr NamedLayer kLayers[] = {
    {DispatchKey::Level, "Level"},       {DispatchKey::Lift, "Lift"},
    {DispatchKey::PreProxy, "PreProxy"}, {DispatchKey::Autograd, "Autograd"},
    {DispatchKey::UserMode, "UserMode"}, {DispatchKey::Functionalize, "Functionalize"},
    {DispatchKey::Proxy, "Proxy"},       {DispatchKey::Subclass, "Subclass"},
    {DispatchKey::Fake, "Fake"},
};

DispatchKey key_of(const std::string& name) {
  for (const NamedLayer& layer : kLayers)
    if (name == layer.name) return layer.key;
  fail<ValueError>("no layer is called ", name);
}

/// A tensor class is passed on by the modes that do not know it: functionalisation and fake know none, a tracer those
/// that have a node.
DispatchKeySet passed_by_classes(const std::vector<Tensor>& tensors) {
  DispatchKeySet passed = DispatchKeySet(DispatchKey::Functionalize) | DispatchKey::Fake;
  for (DispatchKey key : {DispatchKey::Proxy, DispatchKey::PreProxy})
    for (const Tensor& t : tensors)
      if (Tracer* tracer = active_tracer(key); tracer && t.keys().has(DispatchKey::Subclass) && !tracer->node_of(t))
        passed |= key;
  return passed;
}

/// The outermost layer that a call on these tensors meets, but for those named; "" where a backend is next.
std::string next_layer(const std::vector<Tensor>& tensors, const std::vector<std::string>& but_for) {
  DispatchKeySet keys;
  for (const Tensor& t : tensors) keys |= t.keys();
  // Whether or not something requires gradients: a function may use what does.
  if (!tensors.empty() && !is_inference_mode_enabled()) keys |= DispatchKey::Autograd;
  DispatchKeySet passed = keys.has(DispatchKey::Subclass) ? passed_by_classes(tensors) : DispatchKeySet();
  keys = (keys | dispatch_state().include) - dispatch_state().exclude - passed;
  for (const std::string& name : but_for) keys = keys - key_of(name);
  for (const NamedLayer& layer : kLayers)
    if (keys.has(layer.key)) return layer.name;
  return "";
}

/// `with _OutsideLayer(name):` calls meet the layers further in. `inside()` is a scope that goes back.
class OutsideLayer {
 public:
  explicit OutsideLayer(const std::string& name) : key_(key_of(name)), inside_(dispatch_state()) {
    if (key_ == DispatchKey::Level && !transform::level_stack().empty()) innermost_ = transform::level_stack().back();
  }
  void enter() {
    before_ = dispatch_state();
    if (key_ == DispatchKey::Level) level_ = std::make_unique<transform::WithoutLevel>();
    else if (is_one_mode(key_)) mode_ = std::make_unique<WithoutMode>(key_);
    else dispatch_state().exclude |= key_;
    if (key_ == DispatchKey::Functionalize || key_ == DispatchKey::UserMode)
      dispatch_state().exclude |= DispatchKey::Autograd;
    // What lies below autograd is no tensor from outside of the program.
    if (key_ < DispatchKey::Autograd) dispatch_state().exclude |= DispatchKey::Lift;
  }
  void leave(nb::args) {
    level_.reset();
    mode_.reset();
    dispatch_state() = before_;
  }
  void enter_inside() {
    outside_.push_back(dispatch_state());
    if (innermost_) within_.push_back(std::make_unique<transform::WithinLevel>(innermost_));
    else dispatch_state().exclude = inside_.exclude;
  }
  void leave_inside(nb::args) {
    if (innermost_) within_.pop_back();
    dispatch_state() = outside_.back();
    outside_.pop_back();
  }
  /// Functionalisation's wrapper of a value, and the value in a wrapper.
  Tensor wrap(const Tensor& value) const { return innermost_ ? innermost_->as_own(value) : to_functional(value); }
  Tensor unwrap(const Tensor& tensor) const {
    if (innermost_) return innermost_->unwrap(tensor);
    return is_functional(tensor) ? from_functional(tensor) : tensor;
  }

 private:
  static bool is_one_mode(DispatchKey key) {
    return key == DispatchKey::UserMode || key == DispatchKey::Proxy || key == DispatchKey::PreProxy ||
           key == DispatchKey::Fake;
  }
  DispatchKey key_;
  DispatchState before_, inside_;
  std::vector<DispatchState> outside_;
  IntrusivePtr<Level> innermost_;
  std::unique_ptr<transform::WithoutLevel> level_;
  std::unique_ptr<WithoutMode> mode_;
  std::vector<std::unique_ptr<transform::WithinLevel>> within_;
};

/// A capture that is under way.
struct TracerObject {
  IntrusivePtr<Tracer> tracer;
};

nb::object active_tracer_object(const std::string& layer) {
  Tracer* tracer = active_tracer(key_of(layer));
  return tracer ? nb::cast(TracerObject{IntrusivePtr<Tracer>(tracer)}) : nb::none();
}

void bind_tracer(nb::module_& m) {
  nb::class_<TracerObject>(m, "_Tracer")
      .def_prop_ro("graph", [](const TracerObject& t) { return wrap(t.tracer->graph()); })
      .def_prop_ro("module", [](const TracerObject& t) { return nb::cast(GraphModuleObject{t.tracer->module()}); })
      .def("unused_path",
           [](const TracerObject& t, const std::string& prefix) { return t.tracer->module()->unused_path(prefix); })
      .def("argument",
           [](const TracerObject& t, nb::handle value) { return wrap(t.tracer->argument(read_any(value.ptr()))); })
      .def("node_of",
           [](const TracerObject& t, const Tensor& tensor) -> nb::object {
             fx::Node* node = t.tracer->node_of(tensor);
             return node ? wrap(node) : nb::none();
           })
      .def("note_grad_mode", [](const TracerObject& t) { t.tracer->record_grad_mode(); })
      .def("track",
           [](const TracerObject& t, nb::handle node, nb::handle value) {
             t.tracer->stand_for(nb::cast<NodeHandle&>(node).get(), read_any(value.ptr()));
           })
      .def("enter", [](const TracerObject& t) { push_mode(t.tracer); })
      .def("leave", [](const TracerObject& t) { pop_mode(t.tracer.get()); });
  m.def("_active_tracer", &active_tracer_object);
}

}  // namespace

void bind_operator_layers(nb::module_& m) {
  m.def("_next_layer", &next_layer);
  m.def("_value_if_ended", &transform::value_if_ended);
  m.def("_stand_in",
        [](const Tensor& t) { return static_cast<LiftMode*>(active_mode(DispatchKey::Lift))->replace(t); });
  struct Inside {
    OutsideLayer* layer;
  };
  nb::class_<Inside>(m, "_InsideLayer")
      .def("__enter__", [](Inside& i) { i.layer->enter_inside(); })
      .def("__exit__", [](Inside& i, nb::args args) { i.layer->leave_inside(args); });
  nb::class_<OutsideLayer>(m, "_OutsideLayer")
      .def(nb::init<const std::string&>())
      .def("__enter__", &OutsideLayer::enter)
      .def("__exit__", &OutsideLayer::leave)
      .def("wrap", &OutsideLayer::wrap)
      .def("unwrap", &OutsideLayer::unwrap)
      .def(
          "inside", [](OutsideLayer& layer) { return Inside{&layer}; }, nb::keep_alive<0, 1>());
  bind_tracer(m);
}

}  // namespace umbra::python
