#include "kernels/repeated_matrix.h"

#include <string_view>

#include "kernels/copy.h"
#include "kernels/matmul.h"
#include "kernels/onednn.h"

namespace umbra::kernels {
namespace {

using Description = dnnl::memory::desc;

Description describe(const Tensor& matrix) {
  return {{matrix.size(0), matrix.size(1)},
          dnnl::memory::data_type::f32,
          dnnl::memory::dims{matrix.stride(0), matrix.stride(1)}};
}

/// What oneDNN would multiply with, where that is the way that reads matrices in an order of its own; else empty.
dnnl::matmul::primitive_desc packed_way(const Description& rows, const Description& matrix, const Description& out,
                                        bool add) {
  auto way = onednn::choose<dnnl::matmul>(onednn::attributes(1, add ? 1 : 0), rows, matrix, out);
  return way && std::string_view(way.impl_info_str()).starts_with("brg") ? way : dnnl::matmul::primitive_desc();
}

struct Plan {
  dnnl::matmul primitive;
  Description rows, out, scratch;
};

}  // namespace

struct RepeatedMatrix::Order {
  int64_t rows;  // that it was asked for
  Description matrix;
};

namespace {

std::shared_ptr<const RepeatedMatrix::Order> order_for(const Tensor& matrix, int64_t rows) {
  static auto& cache = *new onednn::PlanCache<RepeatedMatrix::Order>;
  const int64_t inner = matrix.size(0), columns = matrix.size(1);
  return cache.get({rows, inner, columns}, [&]() -> std::shared_ptr<const RepeatedMatrix::Order> {
    using Tag = dnnl::memory::format_tag;
    auto described = [](int64_t height, int64_t width, Tag tag) {
      return Description({height, width}, dnnl::memory::data_type::f32, tag);
    };
    auto way = packed_way(described(rows, inner, Tag::ab), described(inner, columns, Tag::any),
                          described(rows, columns, Tag::ab), /*add=*/true);
    if (!way) return nullptr;
    return std::make_shared<const RepeatedMatrix::Order>(RepeatedMatrix::Order{rows, way.weights_desc()});
  });
}

/// Null where oneDNN does not take these rows with a matrix in that order.
std::shared_ptr<const Plan> plan_for(const RepeatedMatrix::Order& order, const Tensor& out, const Tensor& rows,
                                     bool add) {
  static auto& cache = *new onednn::PlanCache<Plan>;
  onednn::Key key = {order.rows, rows.size(0), rows.size(1), out.size(1), rows.stride(0), out.stride(0), add};
  return cache.get(std::move(key), [&]() -> std::shared_ptr<const Plan> {
    Description from = describe(rows), to = describe(out);
    auto way = packed_way(from, order.matrix, to, add);
    if (!way) return nullptr;
    return std::make_shared<const Plan>(Plan{dnnl::matmul(way), from, to, way.scratchpad_desc()});
  });
}

}  // namespace

RepeatedMatrix::RepeatedMatrix(const Tensor& matrix, int64_t rows, int64_t products) : plain_(matrix) {
  constexpr int64_t kFewProducts = 3, kFewRows = 2, kSmall = 128 * 512;
  if (products < kFewProducts) return;
  if (matrix.dtype() == DType::Float32 && rows >= kFewRows && matrix.numel() >= kSmall) {
    onednn::OneThread here;
    order_ = order_for(matrix, rows);
  }
  if (!order_) {
    plain_ = contiguous(matrix);  // a product with one that lies the other way round turns it first
    return;
  }
  packed_ = scratch({static_cast<int64_t>(order_->matrix.get_size())}, DType::UInt8);
  onednn::OneThread here;
  dnnl::memory from(describe(matrix), onednn::engine(), matrix.raw_data());
  dnnl::memory to(order_->matrix, onednn::engine(), packed_.raw_data());
  dnnl::reorder(from, to).execute(onednn::stream(), from, to);
}

bool RepeatedMatrix::multiply_packed(const Tensor& out, const Tensor& rows, bool add) const {
  if (!order_ || out.stride(1) != 1 || rows.stride(1) != 1) return false;
  onednn::OneThread here;
  auto plan = plan_for(*order_, out, rows, add);
  if (!plan) return false;
  auto& engine = onednn::engine();
  std::unordered_map<int, dnnl::memory> arguments = {{DNNL_ARG_SRC, {plan->rows, engine, rows.raw_data()}},
                                                     {DNNL_ARG_WEIGHTS, {order_->matrix, engine, packed_.raw_data()}},
                                                     {DNNL_ARG_DST, {plan->out, engine, out.raw_data()}}};
  if (size_t bytes = plan->scratch.get_size())
    arguments.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(plan->scratch, engine, onednn::scratch(bytes)));
  plan->primitive.execute(onednn::stream(), arguments);
  return true;
}

void RepeatedMatrix::add_product(const Tensor& out, const Tensor& start, const Tensor& rows) const {
  if (!order_) return addmm(out, start, rows, plain_, 1, 1);
  copy(out, start);
  if (!multiply_packed(out, rows, /*add=*/true)) addmm(out, out, rows, plain_, 1, 1);
}

void RepeatedMatrix::product(const Tensor& out, const Tensor& rows) const {
  if (!multiply_packed(out, rows, /*add=*/false)) mm(out, rows, plain_);
}

}  // namespace umbra::kernels
