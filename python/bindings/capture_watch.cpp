#include "capture_watch.h"

#include <unordered_set>

#include "tensor_type.h"
#include "umbra/aot/analysis.h"
#include "umbra/autograd/autograd.h"
#include "umbra/capture/functionalize.h"

namespace umbra::python {

namespace {

thread_local bool g_capturing = false, g_converted = false;

/// Whether gradients of the tensor reach something that the capture stands for: an input, or what it closes over.
bool reaches_inputs(const Tensor& result) {
  std::vector<const autograd::Node*> left{autograd::grad_fn(result).get()};
  std::unordered_set<const autograd::Node*> seen;
  while (!left.empty()) {
    const autograd::Node* node = left.back();
    left.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (aot::is_origin(*node)) return true;
    for (const autograd::Edge& edge : node->next_edges()) left.push_back(edge.node.get());
  }
  return false;
}

/// What of a result the graphs do not give: see `_lost_of_result`.
const char* lost_of(const Tensor& result, bool from_outside) {
  if (!is_functional(result) || aot::stands_for_input(result)) return nullptr;
  if (autograd::retains_grad(result)) return "retains_grad";
  if (result.impl()->is_inference() && !is_inference_mode_enabled()) return "values of an inference mode";
  if (result.requires_grad() && result.is_leaf() && !result.is_view()) return "a leaf that requires gradients";
  return from_outside && result.requires_grad() && !reaches_inputs(result) ? "requires_grad" : nullptr;
}

/// `Capturing` for a `with`.
struct CapturingInside {
  bool on;
  std::optional<Capturing> inside;
};

}  // namespace

bool is_capturing() { return g_capturing; }

Capturing::Capturing(bool on) : before_(std::exchange(g_capturing, on)) {}
Capturing::~Capturing() { g_capturing = before_; }

void note_int_conversion() { g_converted |= g_capturing; }

void end_capture(const char* what, const char* why) {
  if (g_capturing) nb::module_::import_("umbra._dynamo.breaks").attr("stop")(what, why);
}

void end_capture_for(const Tensor& tensor, const char* what) {
  if (!g_capturing || (is_functional(tensor) && !aot::stands_for_input(tensor))) return;
  end_capture(what, "it is about a tensor that the function was given or closes over, and graphs know values alone");
}

void bind_capture_watch(nb::module_& m) {
  m.def("_is_capturing", [] { return g_capturing; });
  // _Capturing(on): inside, torch.compile captures on this thread, or does not.
  nb::class_<CapturingInside>(m, "_Capturing")
      .def("__init__",
           [](CapturingInside* self, bool on) {
             new (self) CapturingInside{on, {}};
           })
      .def("__enter__", [](CapturingInside& self) { self.inside.emplace(self.on); })
      .def("__exit__", [](CapturingInside& self, nb::args) { self.inside.reset(); });
  // _end_capture_for_text(tensor): where the text of a captured tensor, which has no data, is asked for.
  m.def("_end_capture_for_text", [](const Tensor& t) {
    if (is_functional(t)) end_capture("repr() on tensor", "a graph would keep the text of when it was captured");
  });
  // _converted_to_int(): whether int() made a number of a size since this was asked last.
  m.def("_converted_to_int", [] { return std::exchange(g_converted, false); });
  // _steps_from_base(tensor): by how many views a captured tensor was made of its base; t_() and its like add one.
  m.def("_steps_from_base",
        [](const Tensor& tensor) { return is_functional(tensor) ? functional_state(tensor).views.size() : 0; });
  // _lost_of_result(tensor, from_outside): what of a result that the captured function made its graphs would not give,
  // or None. Where gradients can only come from outside, those of leaves that were made inside are lost.
  m.def("_lost_of_result", [](const Tensor& result, bool from_outside) { return lost_of(result, from_outside); });
}

}  // namespace umbra::python
