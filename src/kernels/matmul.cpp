#include "kernels/matmul.h"

#include <bit>
#include <complex>
#include <limits>

#include "kernels/blas.h"
#include "kernels/copy.h"
#include "kernels/fits.h"
#include "kernels/onednn.h"
#include "kernels/parallel.h"
#include "kernels/product_loops.h"
#include "kernels/vector/convert.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

// Products with fewer multiplications than this are done by plain loops, if a library would need copies to do them.
constexpr int64_t kSmallWork = 8192;
// Up to this many in one matrix, BLAS is faster than oneDNN, whose calls cost some microseconds.
constexpr int64_t kBlasWork = 60 * 60 * 60;
// So many multiplications are worth a second thread.
constexpr int64_t kSharedWork = 1 << 20;
// Of many matrices, which are parted without copies.
constexpr int64_t kSharedMatrices = 1 << 18;
// Below this many a thread is seldom held up within its part.
constexpr int64_t kLongWork = 1 << 28;
// Up to so many elements of a part's right operand, and of its result: a library's copies of them are memory that
// stays.
constexpr int64_t kLargeOperand = 1 << 18;

void advance(Matrices& m, int64_t elements) { m.data += elements * m.tensor.item_size(); }

Product some_matrices(Product p, int64_t from, int64_t to) {
  for (Matrices* m : {&p.out, &p.a, &p.b}) advance(*m, from * m->batch_stride);
  p.batch = to - from;
  return p;
}
Product some_rows(Product p, int64_t from, int64_t to) {
  for (Matrices* m : {&p.out, &p.a}) {
    advance(*m, from * m->row_stride);
    m->rows = to - from;
  }
  return p;
}
Product some_columns(Product p, int64_t from, int64_t to) {
  for (Matrices* m : {&p.out, &p.b}) {
    advance(*m, from * m->column_stride);
    m->columns = to - from;
  }
  p.bias_at += from;
  return p;
}

/// How a result is cut into blocks: each is a product by itself, whose operands are brought into the order of the
/// machine's registers anew. Blocks are up to `width` times as wide as high: rows that stay whole are multiplied faster
/// than parts of them, and those near to squares have the smallest operands.
struct Grid {
  int64_t rows = 1, columns = 1;  // of blocks

  Grid(const Product& p, int64_t blocks, int64_t width) {
    double least = std::numeric_limits<double>::infinity();
    for (int64_t by_rows = 1; by_rows <= blocks; ++by_rows) {
      if (blocks % by_rows != 0) continue;
      double side = static_cast<double>(p.out.rows) / static_cast<double>(by_rows) +
                    static_cast<double>(p.out.columns) / static_cast<double>(width * (blocks / by_rows));
      if (side > least) continue;
      least = side;
      rows = by_rows;
      columns = blocks / by_rows;
    }
  }
};

/// Where the k-th of `parts` parts of a side begins; parts are whole registers long.
int64_t begin_of(int64_t side, int64_t parts, int64_t k) {
  constexpr int64_t kBlock = 16;
  int64_t length = ((side + parts - 1) / parts + kBlock - 1) / kBlock * kBlock;
  return std::min(side, k * length);
}

/// Calls `multiply` for parts of the product, on several threads where it is large enough: some of the matrices, or
/// blocks of the result. Where it takes long, two blocks for each thread: who is held up leaves one to the others.
template <class Fn> void share(const Product& p, const Fn& multiply) {
  int threads = num_threads();
  if (p.batch >= 2 * threads) {
    int64_t work = std::max<int64_t>(1, p.work() / p.batch);
    return parallel_for(0, p.batch, (kSharedMatrices + work - 1) / work,
                        [&](int64_t from, int64_t to) { multiply(some_matrices(p, from, to)); });
  }
  bool is_short = p.work() < kLongWork && std::max(p.b.rows, p.out.rows) * p.b.columns <= kLargeOperand * threads;
  int64_t most = is_short ? threads : 2 * threads;
  int64_t blocks = threads > 1 && !in_parallel_region() ? std::min(most, p.work() / kSharedWork) : 1;
  if (blocks <= 1) return multiply(p);
  Grid grid(p, blocks, is_short ? 4 : 1);
  parallel_for(0, blocks, 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      auto row = [&](int64_t k) { return begin_of(p.out.rows, grid.rows, i / grid.columns + k); };
      auto column = [&](int64_t k) { return begin_of(p.out.columns, grid.columns, i % grid.columns + k); };
      if (row(0) == row(1) || column(0) == column(1)) continue;
      multiply(some_columns(some_rows(p, row(0), row(1)), column(0), column(1)));
    }
  });
}

Matrices matrices(const Tensor& t) {
  int64_t d = t.dim();
  Matrices m{t, static_cast<char*>(t.raw_data()), t.size(d - 2), t.size(d - 1), 0, t.stride(d - 2), t.stride(d - 1)};
  if (d == 3 && t.size(0) > 1) m.batch_stride = t.stride(0);
  // The stride of a single row or column means nothing; one that reads as dense keeps later choices simple.
  if (m.columns == 1 && m.rows == 1) m.row_stride = m.column_stride = 1;
  else if (m.columns == 1) m.column_stride = 1;
  else if (m.rows == 1) m.row_stride = m.column_stride == 1 ? m.columns : 1;
  return m;
}

Matrices transposed(const Matrices& m) {
  SymShape sizes(m.tensor.sym_sizes()), strides(m.tensor.sym_strides());
  size_t last = sizes.size() - 1;
  std::swap(sizes[last], sizes[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  return matrices(alias_tensor(m.tensor, sizes, strides, m.tensor.storage_offset()));
}

Matrices dense(const Matrices& m) { return matrices(contiguous(m.tensor)); }

Tensor expanded_to(const Tensor& t, IntArrayRef sizes) {
  SymShape strides(sizes.size(), 0);
  for (int64_t i = 0, lead = static_cast<int64_t>(sizes.size()) - t.dim(); i < t.dim(); ++i)
    strides[lead + i] = t.size(i) == 1 ? 0 : t.stride(i);
  return alias_tensor(t, as_sym(sizes), strides, t.storage_offset());
}

bool same_memory(const Tensor& a, const Tensor& b) {
  return a.raw_data() == b.raw_data() && a.strides() == b.strides();
}

// ---- BLAS
// ------------------------------------------------------------------------------------------------------------

template <class T> blas::Matrix<const T> blas_matrix(const Matrices& m, int64_t batch) {
  const T* data = reinterpret_cast<const T*>(m.data) + batch * m.batch_stride;
  if (m.rows_dense()) return {data, false, m.row_stride};
  return {data, true, m.column_stride};
}

template <class T> void multiply_part_with_blas(const Product& p) {
  T alpha = p.alpha.to<T>(), beta = p.beta.to<T>();
  int64_t rows = p.out.rows, columns = p.out.columns, inner = p.a.columns;
  auto multiply_one = [&](int64_t i) {
    T* out = reinterpret_cast<T*>(p.out.data) + i * p.out.batch_stride;
    auto a = blas_matrix<T>(p.a, i), b = blas_matrix<T>(p.b, i);
    if (columns == 1) {
      blas::gemv<T>(rows, inner, alpha, a, b.data, p.b.row_stride, beta, out, p.out.row_stride);
    } else if (rows == 1) {
      b.transposed = !b.transposed;
      blas::gemv<T>(columns, inner, alpha, b, a.data, p.a.column_stride, beta, out, p.out.column_stride);
    } else {
      blas::gemm<T>(rows, columns, inner, alpha, a, b, beta, out, p.out.row_stride);
    }
  };
  for (int64_t i = 0; i < p.batch; ++i) multiply_one(i);
}

template <class T> void multiply_with_blas(const Product& p) { share(p, multiply_part_with_blas<T>); }

// ---- oneDNN
// ----------------------------------------------------------------------------------------------------------

struct MatmulPlan {
  dnnl::matmul primitive;
  dnnl::memory::desc a, b, out, bias, scratch;
  bool blas_is_better = false;
};

/// oneDNN's second way, for matrices that lie in parts of larger ones, first writes code for all cases: milliseconds,
/// and megabytes that stay. It repays that where much is multiplied, but for two matrices by columns, where it is half
/// as fast.
bool is_better_by_blas(const Product& p, std::string_view way) {
  constexpr int64_t kMuchWork = 1 << 25;
  bool by_columns = !p.a.rows_dense() && !p.b.rows_dense();
  return p.out.tensor.dtype() == DType::Float32 && way.starts_with("gemm") && (by_columns || p.work() < kMuchWork);
}

dnnl::memory::desc describe(const Matrices& m, int64_t batch) {
  using Dims = dnnl::memory::dims;
  auto type = onednn::data_type(m.tensor.dtype());
  if (batch == 1) return {Dims{m.rows, m.columns}, type, Dims{m.row_stride, m.column_stride}};
  // A matrix that is the same for the whole batch is a batch of one, which oneDNN broadcasts.
  bool shared = m.batch_stride == 0;
  int64_t stride = shared ? std::max(m.rows * m.row_stride, m.columns * m.column_stride) : m.batch_stride;
  return {Dims{shared ? 1 : batch, m.rows, m.columns}, type, Dims{stride, m.row_stride, m.column_stride}};
}

// Null where oneDNN does not take the product, or only in its reference implementation, which is slower by orders of
// magnitude than a copy to a layout that has a fast one.
std::shared_ptr<const MatmulPlan> make_plan(const Product& p) try {
  MatmulPlan plan{{}, describe(p.a, p.batch), describe(p.b, p.batch), describe(p.out, p.batch), {}, {}};
  if (p.bias.defined()) {
    dnnl::memory::dims sizes(p.batch == 1 ? 2 : 3, 1), strides(sizes.size(), p.out.columns);
    sizes.back() = p.out.columns;
    strides.back() = 1;
    plan.bias = {sizes, onednn::data_type(p.bias.dtype()), strides};
  }
  auto attributes = onednn::attributes(p.alpha.to<float>(), p.beta.to<float>());
  auto chosen = p.bias.defined() ? onednn::choose<dnnl::matmul>(attributes, plan.a, plan.b, plan.bias, plan.out)
                                 : onednn::choose<dnnl::matmul>(attributes, plan.a, plan.b, plan.out);
  if (!chosen || std::string_view(chosen.impl_info_str()).starts_with("ref")) return nullptr;
  plan.blas_is_better = is_better_by_blas(p, chosen.impl_info_str());
  if (!plan.blas_is_better) plan.primitive = dnnl::matmul(chosen);
  plan.scratch = chosen.scratchpad_desc();
  return std::make_shared<const MatmulPlan>(std::move(plan));
} catch (const dnnl::error&) {
  return nullptr;
}

std::shared_ptr<const MatmulPlan> plan_for(const Product& p) {
  static auto& cache = *new onednn::PlanCache<MatmulPlan>;
  onednn::Key key = {static_cast<int64_t>(p.out.tensor.dtype()),
                     static_cast<int64_t>(p.a.tensor.dtype()),
                     p.batch,
                     p.out.rows,
                     p.out.columns,
                     p.a.columns,
                     std::bit_cast<int64_t>(p.alpha.to_double()),
                     std::bit_cast<int64_t>(p.beta.to_double()),
                     p.bias.defined() ? static_cast<int64_t>(p.bias.dtype()) : -1};
  for (const Matrices* m : {&p.out, &p.a, &p.b})
    key.insert(key.end(), {m->batch_stride, m->row_stride, m->column_stride});
  return cache.get(std::move(key), [&] { return make_plan(p); });
}

/// The product with the bias' row in the result already.
template <class T> Product with_bias_written(Product p) {
  if (!p.bias.defined()) return p;
  const T* bias = p.bias.data<T>() + p.bias_at;
  T* out = reinterpret_cast<T*>(p.out.data);
  for (int64_t i = 0; i < p.batch * p.out.rows; ++i)
    std::copy_n(bias, p.out.columns, out + i / p.out.rows * p.out.batch_stride + i % p.out.rows * p.out.row_stride);
  p.bias = Tensor();
  p.beta = 1;
  return p;
}

void multiply_part_with_onednn(const Product& p) {
  onednn::OneThread here;
  auto plan = plan_for(p);
  if (!plan)  // for a part, though there is a fast way for the whole
    return visit<FloatingTypes>(p.out.tensor.dtype(), "matmul", [&](auto tag) {
      using T = typename decltype(tag)::type;
      LoopProduct<T>(with_bias_written<T>(p)).run();
    });
  if (plan->blas_is_better) return multiply_part_with_blas<float>(with_bias_written<float>(p));
  auto& engine = onednn::engine();
  std::unordered_map<int, dnnl::memory> arguments = {{DNNL_ARG_SRC, {plan->a, engine, p.a.data}},
                                                     {DNNL_ARG_WEIGHTS, {plan->b, engine, p.b.data}},
                                                     {DNNL_ARG_DST, {plan->out, engine, p.out.data}}};
  if (p.bias.defined()) {
    char* bias = static_cast<char*>(p.bias.raw_data()) + p.bias_at * p.bias.item_size();
    arguments.emplace(DNNL_ARG_BIAS, dnnl::memory(plan->bias, engine, bias));
  }
  if (size_t bytes = plan->scratch.get_size())
    arguments.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(plan->scratch, engine, onednn::scratch(bytes)));
  plan->primitive.execute(onednn::stream(), arguments);
}

/// Whether a few rows, which fill registers, meet a large matrix that lies by columns, as a layer's weight does: oneDNN
/// would bring all of it into another order for them. The other way round it reads it as it lies.
bool is_faster_turned(const Product& p) {
  constexpr int64_t kRegister = 16, kFewRows = 48;
  bool few = p.out.rows % kRegister == 0 && p.out.rows <= kFewRows && p.out.columns >= 4 * p.out.rows;
  bool plain = p.batch == 1 && p.beta.equals(0) && p.out.tensor.dtype() == DType::Float32;
  return few && plain && p.a.rows_dense() && p.b.columns_dense() && !p.b.rows_dense() && p.out.rows_dense();
}

/// The product of the transposed matrices, whose result is then turned to where it belongs.
void multiply_part_turned(const Product& p) {
  auto turned = [](Matrices m) {
    std::swap(m.rows, m.columns);
    std::swap(m.row_stride, m.column_stride);
    return m;
  };
  const int64_t rows = p.out.rows, columns = p.out.columns, size = sizeof(float);
  Product other{matrices(scratch({columns, rows}, DType::Float32)), turned(p.b), turned(p.a), 1, 0, p.alpha};
  multiply_part_with_onednn(other);
  UMBRA_VECTOR(copy_transposed)
  (p.out.data, p.out.row_stride * size, other.out.data, rows * size, size, columns, rows);
  if (!p.bias.defined()) return;
  const float* bias = p.bias.data<float>() + p.bias_at;
  for (int64_t i = 0; i < rows; ++i) {
    float* to = reinterpret_cast<float*>(p.out.data) + i * p.out.row_stride;
    for (int64_t j = 0; j < columns; ++j) to[j] += bias[j];
  }
}

// False where oneDNN has no fast way for these types or layouts.
bool multiply_with_onednn(const Product& p) {
  {
    onednn::OneThread here;
    if (!plan_for(p)) return false;
  }
  share(p, is_faster_turned(p) ? multiply_part_turned : multiply_part_with_onednn);
  return true;
}

// ---- the choice between them
// -----------------------------------------------------------------------------------------

void multiply(const Product& p, const char* kernel);

// Computes in float what oneDNN cannot do in a narrow type; one rounding at the end.
void multiply_in_float(const Product& p, const char* kernel) {
  auto as_float = [](const Matrices& m) { return matrices(contiguous(cast(m.tensor, DType::Float32))); };
  Product wide = p;
  wide.a = as_float(p.a);
  wide.b = as_float(p.b);
  if (p.beta.equals(0)) wide.out = matrices(scratch(p.out.tensor.sizes(), DType::Float32));
  else wide.out = as_float(p.out);
  if (p.bias.defined()) wide.bias = cast(p.bias, DType::Float32);
  multiply(wide, kernel);
  copy(p.out.tensor, wide.out.tensor);
}

// For outputs that lie in no regular order: the product is made in a contiguous tensor and then copied there.
void multiply_into_copy(const Product& p, const char* kernel) {
  Product through = p;
  through.out = p.beta.equals(0) ? matrices(scratch(p.out.tensor.sizes(), p.out.tensor.dtype())) : dense(p.out);
  multiply(through, kernel);
  copy(p.out.tensor, through.out.tensor);
}

void add_bias_first(Product& p) {
  copy(p.out.tensor, expanded_to(p.bias, p.out.tensor.sizes()));
  p.bias = Tensor();
  p.beta = 1;
}

void multiply_floats(Product p, const char* kernel) {
  bool is_float = p.out.tensor.dtype() == DType::Float32, is_vector = p.out.rows == 1 || p.out.columns == 1;
  if (is_float && (is_vector || p.work() / p.batch < kBlasWork)) {
    if (p.bias.defined()) add_bias_first(p);
    return multiply_with_blas<float>(p);
  }
  if (multiply_with_onednn(p)) return;
  // Perhaps the layout was the trouble.
  Product packed = p;
  packed.a = dense(p.a);
  packed.b = dense(p.b);
  if (multiply_with_onednn(packed)) return;
  if (p.bias.defined()) add_bias_first(packed);
  if (is_float) multiply_with_blas<float>(packed);
  else multiply_in_float(packed, kernel);
}

bool needs_loops(const Product& p) {
  DType dtype = p.out.tensor.dtype();
  if (is_integral(dtype, /*include_bool=*/true) || p.work() == 0) return true;
  bool regular = p.out.regular() && p.a.regular() && p.b.regular();
  return p.work() < kSmallWork && (is_reduced_floating(dtype) || !regular);
}

void multiply(const Product& p, const char* kernel) {
  DType dtype = p.out.tensor.dtype();
  Product q = p;
  if (needs_loops(p)) {
    if (q.bias.defined()) add_bias_first(q);
    if (q.b.column_stride != 1 && p.work() >= kSmallWork) q.b = dense(q.b);
    visit<NumberTypes>(dtype, kernel, [&](auto tag) { LoopProduct<typename decltype(tag)::type>(q).run(); });
    return;
  }
  if (!p.out.regular()) return multiply_into_copy(p, kernel);
  if (!q.a.regular()) q.a = dense(q.a);
  if (!q.b.regular()) q.b = dense(q.b);
  if (!q.out.rows_dense()) {
    // A column-major result is the row-major result of the transposed product.
    if (q.bias.defined()) add_bias_first(q);
    std::tie(q.out, q.a, q.b) = std::make_tuple(transposed(p.out), transposed(q.b), transposed(q.a));
  }
  switch (dtype) {
    case DType::Float32:
    case DType::BFloat16: return multiply_floats(q, kernel);
    case DType::Float16: return multiply_in_float(q, kernel);
    case DType::Float64: return multiply_with_blas<double>(q);
    case DType::Complex64: return multiply_with_blas<std::complex<float>>(q);
    case DType::Complex128: return multiply_with_blas<std::complex<double>>(q);
    default: unsupported_dtype(kernel, dtype);
  }
}

/// Factors have to be numbers of the type that is computed in.
void check_factors(const Product& p, DType type) {
  if (!p.alpha.equals(1)) check_fits(p.alpha, type);
  if (!p.beta.equals(0) && !p.beta.equals(1)) check_fits(p.beta, type);
}

// out = beta * self + alpha * a b, for two- and three-dimensional tensors.
void multiply_add(const Tensor& out, const Tensor* self, const Tensor& a, const Tensor& b, const Scalar& beta,
                  const Scalar& alpha, const char* kernel) {
  if (out.numel() == 0) return;  // of any type
  if (a.size(-1) == 0 && (!self || beta.equals(0))) return fill(out, 0);
  visit<NumberTypes>(out.dtype(), kernel, [](auto) {});
  Product p{matrices(out), matrices(a), matrices(b), out.dim() == 3 ? out.size(0) : 1, self ? beta : Scalar(0), alpha};
  if (p.a.columns > 0) check_factors(p, is_floating(out.dtype()) ? compute_type(out.dtype()) : out.dtype());
  // Of the libraries only oneDNN, which serves these, takes a bias.
  bool takes_bias = compute_type(out.dtype()) == DType::Float32;
  if (!p.beta.equals(0)) {
    Tensor added = expanded_to(*self, out.sizes());
    bool row = added.stride(-1) == 1 && added.stride(-2) == 0 && (out.dim() == 2 || added.stride(0) == 0);
    if (takes_bias && row && p.beta.equals(1) && p.alpha.equals(1) && p.work() >= kSmallWork) {
      p.bias = *self;
      p.beta = 0;
    } else if (!same_memory(added, out)) {
      copy(out, added);
    }
    if (p.a.columns == 0 && p.beta.equals(1)) return;  // nothing is added
  }
  multiply(p, kernel);
}

/// Of two matrices. Here 8-bit floats but for scales have a product, too: in float, and rounded once.
void multiply_matrices(const Tensor& out, const Tensor* self, const Tensor& a, const Tensor& b, const Scalar& beta,
                       const Scalar& alpha) {
  constexpr const char* kernel = "addmm_impl_cpu_";
  if (!is_float8(out.dtype()) || out.dtype() == DType::Float8E8M0FNU)
    return multiply_add(out, self, a, b, beta, alpha, kernel);
  Tensor wide = scratch(out.sizes(), DType::Float32), added = self ? cast(*self, DType::Float32) : Tensor();
  multiply_add(wide, self ? &added : nullptr, cast(a, DType::Float32), cast(b, DType::Float32), beta, alpha, kernel);
  copy(out, wide);
}

Tensor with_unit_dim(const Tensor& t, int64_t at) {
  SymShape sizes(t.sym_sizes()), strides(t.sym_strides());
  sizes.insert(at, 1);
  strides.insert(at, 1);
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

}  // namespace

void mm(const Tensor& out, const Tensor& a, const Tensor& b) { multiply_matrices(out, nullptr, a, b, 0, 1); }

void addmm(const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
           const Scalar& alpha) {
  multiply_matrices(out, &self, a, b, beta, alpha);
}

void multiply_bytes(const Tensor& out, const Tensor& a, const Tensor& b) {
  // Without these instructions products of bytes are added up in sixteen bits, which do not hold them.
  static const bool exact = __builtin_cpu_supports("avx512vnni");
  bool dense = out.is_contiguous() && a.is_contiguous() && b.is_contiguous() && out.numel() > 0 && a.numel() > 0;
  if (!exact || !dense) return mm(out, cast(a, DType::Int32), cast(b, DType::Int32));
  Product p{matrices(out), matrices(a), matrices(b)};
  onednn::OneThread here;
  if (plan_for(p)) return multiply_part_with_onednn(p);
  int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const int32_t zero = 0;
  auto* left = a.raw_data();
  auto* right = static_cast<const int8_t*>(b.raw_data());
  auto* to = static_cast<int32_t*>(out.raw_data());
  if (a.dtype() == DType::UInt8)
    dnnl::gemm_u8s8s32('N', 'N', 'F', m, n, k, 1, static_cast<const uint8_t*>(left), k, 0, right, n, 0, 0, to, n,
                       &zero);
  else
    dnnl::gemm_s8s8s32('N', 'N', 'F', m, n, k, 1, static_cast<const int8_t*>(left), k, 0, right, n, 0, 0, to, n, &zero);
}

void bmm(const Tensor& out, const Tensor& a, const Tensor& b) { multiply_add(out, nullptr, a, b, 0, 1, "bmm"); }

void baddbmm(const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha) {
  multiply_add(out, &self, a, b, beta, alpha, "baddbmm");
}

void mv(const Tensor& out, const Tensor& a, const Tensor& v) {
  multiply_add(with_unit_dim(out, 1), nullptr, a, with_unit_dim(v, 1), 0, 1, "addmv_impl_cpu");
}

void addmv(const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& v, const Scalar& beta,
           const Scalar& alpha) {
  if (is_reduced_floating(out.dtype()) && out.numel() > 0 && v.numel() > 0)  // here, narrow ones are rounded first
    for (const Scalar* factor : {&alpha, &beta}) check_fits(*factor, out.dtype());
  Tensor added = self.dim() == 0 ? self : with_unit_dim(self, 1);
  multiply_add(with_unit_dim(out, 1), &added, a, with_unit_dim(v, 1), beta, alpha, "addmv_impl_cpu");
}

void dot(const Tensor& out, const Tensor& a, const Tensor& b) {
  // As a product of matrices it takes twice as long.
  const int64_t n = a.size(0);
  if (a.stride(0) == 1 && b.stride(0) == 1 && n <= std::numeric_limits<int>::max()) {
    if (a.dtype() == DType::Float32) {
      *out.data<float>() = blas::dot(n, a.data<float>(), b.data<float>());
      return;
    }
    if (a.dtype() == DType::Float64) {
      *out.data<double>() = blas::dot(n, a.data<double>(), b.data<double>());
      return;
    }
  }
  Tensor cell = with_unit_dim(with_unit_dim(out, 0), 0);
  multiply_add(cell, nullptr, with_unit_dim(a, 0), with_unit_dim(b, 1), 0, 1, "dot");
}

}  // namespace umbra::kernels
