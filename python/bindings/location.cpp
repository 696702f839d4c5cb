// Where captured Python code stands: code objects and offsets are noted when a node is made, and become text when
// someone reads it.
#include "capture_watch.h"
#include "graph.h"
#include "lock.h"
#include "signals.h"

namespace umbra::python {

namespace {

class PythonLocation final : public fx::SourceLocation {
 public:
  struct Frame {
    PyCodeObject* code;  // owned
    int offset;
  };
  explicit PythonLocation(std::vector<Frame> frames) : frames_(std::move(frames)) {}
  ~PythonLocation() override {
    if (!Py_IsInitialized()) return;
    WithLock lock;
    for (Frame& f : frames_) Py_DECREF(f.code);
  }

  std::vector<fx::SourceFrame> frames() const override {
    WithLock lock;
    Capturing none(false);
    std::vector<fx::SourceFrame> out;
    for (auto f = frames_.rbegin(); f != frames_.rend(); ++f) {
      int line = PyCode_Addr2Line(f->code, f->offset);
      out.push_back({std::string(text_of(f->code->co_filename)), line, std::string(text_of(f->code->co_name)),
                     text_of_line(f->code->co_filename, line)});
    }
    return out;
  }

 private:
  /// Texts of errors have it, which are made where nothing may be raised: by handlers of signals, for one.
  static std::string text_of_line(nb::handle file, int line) {
    try {
      return nb::cast<std::string>(nb::module_::import_("linecache").attr("getline")(file, line).attr("strip")());
    } catch (const nb::python_error& error) {
      raise_later(error);
      return "";
    }
  }

  std::vector<Frame> frames_;  // innermost first
};

/// What a frame is to a reader: the user's own, a part of this package that is left out, or where capture began.
enum class Origin : uint8_t { User, Internal, Boundary };

Origin origin_of(PyCodeObject* code) {
  static const std::string root = nb::cast<std::string>(nb::module_::import_("os.path").attr("dirname")(
                                      nb::module_::import_("umbra").attr("__file__"))) +
                                  "/";
  std::string_view file = text_of(code->co_filename);
  if (!file.starts_with(root)) return Origin::User;
  file.remove_prefix(root.size());
  if (file.starts_with("export/") || file.starts_with("fx/") || file.starts_with("_functorch/"))
    return Origin::Boundary;
  // Layers are the reader's business, the machinery that calls them is not.
  bool machinery = file.ends_with("/module.py") || file.ends_with("/_hooks.py") || file.ends_with("/_capture.py");
  return file.starts_with("nn/modules/") && !machinery ? Origin::User : Origin::Internal;
}

IntrusivePtr<SourceLocation> python_location() {
  WithLock lock;  // operators that may take long are called without it
  constexpr size_t kDeepest = 32;
  std::vector<PythonLocation::Frame> frames;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame && frames.size() < kDeepest) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Origin origin = origin_of(code);
    if (origin == Origin::User) frames.push_back({code, PyFrame_GetLasti(frame)});
    else Py_DECREF(code);
    PyFrameObject* back = origin == Origin::Boundary ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return frames.empty() ? nullptr : IntrusivePtr<SourceLocation>(make_counted<PythonLocation>(std::move(frames)));
}

}  // namespace

void bind_location() {
  set_front_end(reinterpret_cast<const void*>(&bind_location));
  set_location_source(python_location);
}

}  // namespace umbra::python
