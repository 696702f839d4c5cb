#include "jit/tensor_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "umbra/generated/functions.h"

namespace umbra::jit {
namespace {

/// How the numbers of a tensor are written, so that they stand below each other.
struct Form {
  int width = 0;
  int digits = 0;  // behind the point; none for whole numbers
  bool scientific = false;
  double scale = 1;

  std::string text(double v) const {
    char buffer[512];
    std::snprintf(buffer, sizeof buffer, scientific ? "%*.*e" : "%*.*f", width, digits, v / scale);
    return buffer;
  }
};

int exponent(double v) { return v == 0 ? 1 : static_cast<int>(std::floor(std::log10(v))) + 1; }

Form form_of(const double* v, size_t count) {
  Form form;
  bool whole = true, any = false;
  double least = 0, most = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(v[i])) continue;
    double size = std::abs(v[i]);
    whole &= v[i] == std::ceil(v[i]);
    least = any ? std::min(least, size) : size;
    most = any ? std::max(most, size) : size;
    any = true;
  }
  int low = any ? exponent(least) : 1, high = any ? exponent(most) : 1;
  bool far_apart = whole ? high > 9 : high - low > 4;
  form.scientific = far_apart;
  form.digits = whole && !far_apart ? 0 : 4;
  if (far_apart) form.width = !whole && (std::abs(high) > 99 || std::abs(low) > 99) ? 12 : 11;
  else if (whole) form.width = high + 1;
  else if (high > 5 || high < 0) form.width = 7, form.scale = std::pow(10, high - 1);
  else form.width = high == 0 ? 7 : high + 6;
  return form;
}

void write_scale(std::ostream& out, const Form& form) {
  if (form.scale != 1) out << form.scale << " *\n";
}

void write_matrix(std::ostream& out, const double* v, size_t rows, size_t columns, size_t indent) {
  Form form = form_of(v, rows * columns);
  const std::string margin(indent + (form.scale != 1 ? 1 : 0), ' ');
  size_t per_line = std::max<size_t>((80 - indent) / static_cast<size_t>(form.width + 1), 1);
  for (size_t first = 0; first < columns; first += per_line) {
    size_t end = std::min(first + per_line, columns);
    if (per_line < columns) {
      if (first) out << '\n';
      out << "Columns " << first + 1 << " to " << end << std::string(indent, ' ');
    }
    if (form.scale != 1) {
      write_scale(out, form);
      out << std::string(indent, ' ');
    }
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = first; c < end; ++c) {
        out << form.text(v[r * columns + c]) << (c + 1 < end ? ' ' : '\n');
        if (c + 1 == end && r + 1 < rows) out << margin;
      }
  }
}

/// Matrices one below the other, with the numbers of their places.
void write_matrices(std::ostream& out, const double* v, const std::vector<int64_t>& sizes) {
  auto rows = static_cast<size_t>(sizes[sizes.size() - 2]), columns = static_cast<size_t>(sizes.back());
  std::vector<int64_t> place(sizes.size() - 2, 0);
  for (bool first = true;; first = false) {
    if (!first) out << '\n';
    out << '(';
    for (int64_t p : place) out << p + 1 << ',';
    out << ".,.) = \n";
    write_matrix(out, v, rows, columns, 1);
    v += rows * columns;
    size_t d = place.size();
    while (d > 0 && ++place[d - 1] == sizes[d - 1]) place[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

std::string tensor_text(const Tensor& tensor) {
  std::ostringstream out;
  std::vector<int64_t> sizes = tensor.sizes().vec();
  Tensor real = tensor.detach();
  if (is_complex(real.dtype())) real = umbra::real(real);
  real = real.to(DType::Float64).contiguous();
  const double* v = real.numel() ? real.data<double>() : nullptr;
  auto count = static_cast<size_t>(real.numel());
  if (sizes.empty()) {
    out << v[0] << '\n';
  } else if (count && sizes.size() == 1) {
    Form form = form_of(v, count);
    write_scale(out, form);
    for (size_t i = 0; i < count; ++i) out << form.text(v[i]) << '\n';
  } else if (count && sizes.size() == 2) {
    write_matrix(out, v, static_cast<size_t>(sizes[0]), static_cast<size_t>(sizes[1]), 0);
  } else if (count) {
    write_matrices(out, v, sizes);
  }
  std::string device = to_string(tensor.device().type == DeviceType::CPU ? Device("cpu") : tensor.device());
  std::ranges::transform(device, device.begin(), ::toupper);
  out << "[ " << device << kernel_name(tensor.dtype()) << "Type{";
  for (size_t i = 0; i < sizes.size(); ++i) out << (i ? "," : "") << sizes[i];
  out << "} ]";
  return out.str();
}

}  // namespace umbra::jit
