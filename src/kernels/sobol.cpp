#include "kernels/sobol.h"

#include <vector>

#include "umbra/core/error.h"

// The first direction numbers of each dimension but the first, as the file has them: of the number at place i, which is
// odd and below 2^(i+1), all bits but the last; for each dimension as many numbers as its polynomial has degrees, the
// one at place 0 left out. The polynomials are all primitive ones, in order.
asm(R"(
  .section .rodata
  .balign 8
umbra_sobol_table:
  .incbin ")" UMBRA_SOBOL_TABLE R"("
  .previous
)");
extern "C" const uint8_t umbra_sobol_table[] __attribute__((visibility("hidden")));

namespace umbra::kernels {
namespace {

/// A polynomial over the field of two elements; its bits are its coefficients.
using Polynomial = uint64_t;

Polynomial product(Polynomial a, Polynomial b, Polynomial modulus, int degree) {
  Polynomial out = 0;
  for (; b != 0; b >>= 1) {
    if (b & 1) out ^= a;
    a <<= 1;
    if (a >> degree & 1) a ^= modulus;
  }
  return out;
}

Polynomial power_of_x(uint64_t exponent, Polynomial modulus, int degree) {
  Polynomial out = 1, x = degree > 1 ? 2 : 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) out = product(out, x, modulus, degree);
    x = product(x, x, modulus, degree);
  }
  return out;
}

std::vector<uint64_t> prime_factors(uint64_t n) {
  std::vector<uint64_t> out;
  for (uint64_t p = 2; p * p <= n; ++p) {
    if (n % p != 0) continue;
    out.push_back(p);
    while (n % p == 0) n /= p;
  }
  if (n > 1) out.push_back(n);
  return out;
}

/// Goes through the primitive polynomials by degree, then by value: those whose root generates the whole field.
class PrimitivePolynomials {
 public:
  Polynomial next() {
    do advance();
    while (!is_primitive());
    return current_;
  }
  int degree() const { return degree_; }

 private:
  void advance() {
    current_ += 2;
    if (current_ >> (degree_ + 1) == 0) return;
    ++degree_;
    current_ = (uint64_t{1} << degree_) | 1;
    order_ = (uint64_t{1} << degree_) - 1;
    factors_ = prime_factors(order_);
  }
  bool is_primitive() const {
    if (power_of_x(order_, current_, degree_) != 1) return false;
    for (uint64_t p : factors_)
      if (power_of_x(order_ / p, current_, degree_) == 1) return false;
    return true;
  }

  int degree_ = 0;
  uint64_t order_ = 0;
  Polynomial current_ = 1;
  std::vector<uint64_t> factors_;
};

/// The bits of the table, one number after the other.
class Bits {
 public:
  int64_t take(int count) {
    int64_t out = 0;
    for (int i = 0; i < count; ++i, ++at_) out = out << 1 | (umbra_sobol_table[at_ / 8] >> (7 - at_ % 8) & 1);
    return out;
  }

 private:
  size_t at_ = 0;
};

}  // namespace

void sobol_directions(const Tensor& state) {
  int64_t row_stride = state.strides()[0], stride = state.strides()[1];
  PrimitivePolynomials polynomials;
  Bits bits;
  for (int64_t d = 0; d < state.sizes()[0]; ++d) {
    int64_t numbers[kSobolBits];
    Polynomial polynomial = d == 0 ? 1 : polynomials.next();
    int degree = d == 0 ? static_cast<int>(kSobolBits) : polynomials.degree();
    for (int i = 0; i < degree; ++i) numbers[i] = d == 0 ? 1 : bits.take(i) << 1 | 1;
    for (int i = degree; i < kSobolBits; ++i) {
      numbers[i] = numbers[i - degree] ^ numbers[i - degree] << degree;
      for (int k = 1; k < degree; ++k)
        if (polynomial >> (degree - k) & 1) numbers[i] ^= numbers[i - k] << k;
    }
    int64_t* row = state.data<int64_t>() + d * row_stride;
    for (int64_t i = 0; i < kSobolBits; ++i) row[i * stride] = numbers[i] << (kSobolBits - 1 - i);
  }
}

}  // namespace umbra::kernels
