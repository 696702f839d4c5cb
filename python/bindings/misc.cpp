#include "misc.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <numbers>
#include <set>

#include "capture_frames.h"
#include "construct.h"
#include "tensor_type.h"
#include "umbra/core/print.h"
#include "umbra/core/threads.h"
#include "umbra/dispatch/operator.h"

namespace umbra::python {

namespace {

std::vector<std::string> function_names() {
  std::set<std::string> names;
  for (const Operator* op : all_operators())
    if (op->schema().space == "aten") names.insert(op->schema().name);
  return {names.begin(), names.end()};
}

void set_print_options(std::optional<int> precision, std::optional<int64_t> threshold,
                       std::optional<int64_t> edge_items, std::optional<int64_t> line_width, nb::object sci_mode) {
  PrintOptions& options = print_options();
  if (precision) options.precision = *precision;
  if (threshold) options.threshold = *threshold;
  if (edge_items) options.edge_items = *edge_items;
  if (line_width) options.line_width = *line_width;
  options.sci_mode = sci_mode.is_none() ? std::nullopt : std::optional(nb::cast<bool>(sci_mode));
}

nb::dict get_print_options() {
  const PrintOptions& options = print_options();
  nb::dict out;
  out["precision"] = options.precision;
  out["threshold"] = options.threshold;
  out["edgeitems"] = options.edge_items;
  out["linewidth"] = options.line_width;
  out["sci_mode"] = options.sci_mode ? nb::cast(*options.sci_mode) : nb::none();
  return out;
}

}  // namespace

void bind_misc(nb::module_& m) {
  m.attr("_inf") = std::numeric_limits<double>::infinity();
  m.attr("_nan") = std::numeric_limits<double>::quiet_NaN();
  m.attr("_pi") = std::numbers::pi;
  m.attr("_e") = std::numbers::e;
  m.def("_function_names", &function_names);
  m.def(
      "promote_types", [](DType a, DType b) { return promote_types(a, b); }, nb::arg("type1"), nb::arg("type2"),
      "The smallest type that holds the elements of both.");
  m.def(
      "can_cast", [](DType from, DType to) { return can_cast(from, to); }, nb::arg("from_"), nb::arg("to"),
      "Whether results of the first type may be written to a tensor of the second.");
  m.def(
      "get_num_threads",
      [] {
        end_capture_of_question("torch.get_num_threads()");
        return get_num_threads();
      },
      "How many threads one operator may use.");
  m.def(
      "set_num_threads",
      [](nb::handle count) {
        end_capture_of_question("torch.set_num_threads()");
        check(PyLong_Check(count.ptr()) && !PyBool_Check(count.ptr()), "set_num_threads expects an int, but got ",
              short_type_name(Py_TYPE(count.ptr())));
        int threads = nb::cast<int>(count);
        check(threads > 0, "set_num_threads expects a positive integer");
        umbra::set_num_threads(threads);
      },
      "How many threads one operator may use.");
  m.def(
      "set_flush_denormal",
      [](bool enabled) {
#ifdef __SSE2__
        // Results and operands that are too small to be normal numbers count as zero, in this thread.
        constexpr unsigned kFlushToZero = 1u << 15, kDenormalsAreZero = 1u << 6;
        unsigned flags = _mm_getcsr() & ~(kFlushToZero | kDenormalsAreZero);
        _mm_setcsr(enabled ? flags | kFlushToZero | kDenormalsAreZero : flags);
        return true;
#else
        return !enabled;
#endif
      },
      "Takes floats below the normal range for 0, or not. False where the processor cannot.");
  m.def("_set_print_options", &set_print_options, nb::arg("precision").none(), nb::arg("threshold").none(),
        nb::arg("edgeitems").none(), nb::arg("linewidth").none(), nb::arg("sci_mode").none());
  m.def("_get_print_options", &get_print_options);
  m.def("_format_tensor", [](const Tensor& t, const std::string& head, const std::vector<std::string>& facts) {
    return format_tensor(t, head, facts);
  });
  m.def("_grad_fact", [](const Tensor& t) { return grad_fact(t); });
}

}  // namespace umbra::python
