// Where libFuzzer and the plain runner call a target.
#include <cstdio>
#include <cstdlib>

#include "target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    umbra::fuzz::run({reinterpret_cast<const char*>(data), size});
  } catch (const umbra::OutOfMemoryError& e) {  // memory that a file merely claims to need
    std::fprintf(stderr, "%s\n", e.what());
    std::abort();
  } catch (const umbra::Error&) {  // a refusal
  }
  return 0;
}
