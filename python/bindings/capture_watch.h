// What a function that torch.compile captures must not do, since its graphs would not do it again.
#pragma once

#include "python.h"
#include "umbra/core/tensor.h"

namespace umbra::python {

/// Ends the capture that is under way on this thread, if there is one, before the change is made: the function then
/// runs as it is. `what` is a call in the user's words: "Tensor.grad".
void end_capture(const char* what, const char* why);
/// The same for what changes, or asks for, a tensor's part in autograd: of a tensor that the function did not make.
void end_capture_for(const Tensor& tensor, const char* what);

/// Whether torch.compile captures on this thread.
bool is_capturing();
/// What `is_capturing` is for a while: not for what this package does by itself.
class Capturing {
 public:
  explicit Capturing(bool on);
  ~Capturing();
  Capturing(const Capturing&) = delete;

 private:
  bool before_;
};
/// Notes that int() made a number of a size, which a compiler of source would not have to.
void note_int_conversion();

void bind_capture_watch(nb::module_& m);

}  // namespace umbra::python
