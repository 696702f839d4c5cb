// Uses the library through its installed headers alone.
#include <umbra/umbra.h>

int main() {
  umbra::Tensor tensor = umbra::ones({2, 3});
  return tensor.numel() == 6 ? 0 : 1;
}
