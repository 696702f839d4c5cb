// Convolutions by oneDNN, shared out among threads by samples, groups or channels.
#include "kernels/convolution_geometry.h"
#include "kernels/copy.h"
#include "kernels/onednn.h"
#include "kernels/parallel.h"

namespace umbra::kernels {
namespace {

using Dims = dnnl::memory::dims;
using Geometry = ConvolutionGeometry;
using Kind = ConvolutionResult;

// So many multiplications are worth a second thread.
constexpr int64_t kSharedWork = 1 << 20;
// So many bytes of a weight a thread brings into another layout at a time, about.
constexpr int64_t kWeightCopy = 2 << 20;

// A primitive with the layouts it wants, next to those the tensors have.
struct ConvolutionPlan {
  dnnl::primitive primitive;
  dnnl::memory::desc image, map, weight, bias, scratch;  // the primitive's
  dnnl::memory::desc user_image, user_map, user_weight;  // the tensors'
  dnnl::reorder image_way, map_way, weight_way;          // between them, where they differ: for results from the first
};

struct Operands {
  Tensor image, map, weight, bias;
  bool keep_layout = false;  // channels last, all of them: taken as they are
};

Dims dims_of(const SmallVector<int64_t>& values) { return Dims(values.begin(), values.end()); }

dnnl::memory::desc describe(const Tensor& t) {
  return {Dims(t.sizes().begin(), t.sizes().end()), onednn::data_type(t.dtype()),
          Dims(t.strides().begin(), t.strides().end())};
}

dnnl::memory::desc describe_weight(const Tensor& weight, int64_t groups) {
  if (groups == 1) return describe(weight);
  Dims sizes = {groups, weight.size(0) / groups},
       strides = {weight.size(0) / groups * weight.stride(0), weight.stride(0)};
  for (int64_t d = 1; d < weight.dim(); ++d) sizes.push_back(weight.size(d)), strides.push_back(weight.stride(d));
  return {sizes, onednn::data_type(weight.dtype()), strides};
}

dnnl::memory::desc any_layout(const dnnl::memory::desc& like) {
#if DNNL_VERSION_MAJOR >= 3
  return {like.get_dims(), like.get_data_type(), dnnl::memory::format_tag::any};
#else
  return {like.dims(), like.data_type(), dnnl::memory::format_tag::any};
#endif
}

// The padding behind the image: as asked for where the sizes follow from it, else what makes them fit (output padding).
Dims padding_behind(const Geometry& g) {
  Dims behind;
  for (int64_t d = 0; d < g.dims(); ++d) {
    int64_t reach = (g.kernel[d] - 1) * g.dilation[d] + 1, room = g.image[d] + 2 * g.padding[d] - reach;
    bool fits = room >= 0 && room / g.stride[d] + 1 == g.map[d];
    behind.push_back(fits ? g.padding[d] : (g.map[d] - 1) * g.stride[d] + reach - g.image[d] - g.padding[d]);
  }
  return behind;
}

bool channels_last(const Tensor& t) {
  if (t.dim() == 4) return t.is_contiguous(MemoryFormat::ChannelsLast) && !t.is_contiguous();
  return t.dim() == 5 && t.is_contiguous(MemoryFormat::ChannelsLast3d) && !t.is_contiguous();
}

dnnl::convolution_forward::primitive_desc forward_description(const Geometry& g, const dnnl::memory::desc& image,
                                                              const dnnl::memory::desc& weight,
                                                              const dnnl::memory::desc& bias,
                                                              const dnnl::memory::desc& map) {
  Dims stride = dims_of(g.stride), dilation = dims_of(g.dilation), padding = dims_of(g.padding),
       behind = padding_behind(g);
  for (auto& d : dilation) d -= 1;
  constexpr auto kind = dnnl::prop_kind::forward_training;
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
  using Forward = dnnl::convolution_forward;
  auto attributes = onednn::attributes();
  if (bias.is_zero())
    return onednn::choose<Forward>(attributes, kind, algorithm, image, weight, map, stride, dilation, padding, behind);
  return onednn::choose<Forward>(attributes, kind, algorithm, image, weight, bias, map, stride, dilation, padding,
                                 behind);
}

template <class Description> bool usable(const Description& description) {
  return description && !std::string_view(description.impl_info_str()).starts_with("ref");
}

// Null where oneDNN has nothing better than its reference implementation.
std::shared_ptr<const ConvolutionPlan> make_plan(Kind kind, const Operands& t, const Geometry& g) try {
  ConvolutionPlan plan;
  plan.user_image = describe(t.image);
  plan.user_map = describe(t.map);
  plan.user_weight = describe_weight(t.weight, g.groups);
  // Tensors with channels last are taken as they are; others go through the layout that oneDNN likes best.
  dnnl::memory::desc image = t.keep_layout ? plan.user_image : any_layout(plan.user_image);
  dnnl::memory::desc map = t.keep_layout ? plan.user_map : any_layout(plan.user_map);
  dnnl::memory::desc weight = any_layout(plan.user_weight), bias;
  if (t.bias.defined()) bias = {{g.map_channels}, onednn::data_type(t.bias.dtype()), dnnl::memory::format_tag::x};

  auto forward = forward_description(g, image, weight, bias, map);
  if (!forward) return nullptr;
  Dims stride = dims_of(g.stride), dilation = dims_of(g.dilation), padding = dims_of(g.padding),
       behind = padding_behind(g);
  for (auto& d : dilation) d -= 1;
  auto take = [&](const auto& chosen, const auto& image_desc, const auto& weight_desc, const auto& map_desc) {
    plan.image = image_desc;
    plan.weight = weight_desc;
    plan.map = map_desc;
    plan.scratch = chosen.scratchpad_desc();
  };
  constexpr auto direct = dnnl::algorithm::convolution_direct;
  if (kind == Kind::Map) {
    if (!usable(forward)) return nullptr;
    take(forward, forward.src_desc(), forward.weights_desc(), forward.dst_desc());
    plan.bias = bias;
    plan.primitive = dnnl::convolution_forward(forward);
  } else if (kind == Kind::Image) {
    using Backward = dnnl::convolution_backward_data;
    auto chosen =
        onednn::choose_backward<Backward>(forward, direct, image, weight, map, stride, dilation, padding, behind);
    if (!usable(chosen)) return nullptr;
    take(chosen, chosen.diff_src_desc(), chosen.weights_desc(), chosen.diff_dst_desc());
    plan.primitive = Backward(chosen);
  } else {
    using Backward = dnnl::convolution_backward_weights;
    auto chosen =
        onednn::choose_backward<Backward>(forward, direct, image, weight, map, stride, dilation, padding, behind);
    if (!usable(chosen)) return nullptr;
    take(chosen, chosen.src_desc(), chosen.diff_weights_desc(), chosen.diff_dst_desc());
    plan.primitive = Backward(chosen);
  }
  auto way = [](const dnnl::memory::desc& user, const dnnl::memory::desc& wanted, bool is_result) {
    if (user == wanted) return dnnl::reorder();
    auto &from = is_result ? wanted : user, &to = is_result ? user : wanted;
    return dnnl::reorder(dnnl::reorder::primitive_desc(onednn::engine(), from, onednn::engine(), to));
  };
  plan.image_way = way(plan.user_image, plan.image, kind == Kind::Image);
  plan.map_way = way(plan.user_map, plan.map, kind == Kind::Map);
  plan.weight_way = way(plan.user_weight, plan.weight, kind == Kind::Weight);
  return std::make_shared<const ConvolutionPlan>(std::move(plan));
} catch (const dnnl::error&) {
  return nullptr;
}

std::shared_ptr<const ConvolutionPlan> plan_for(Kind kind, const Operands& t, const Geometry& g) {
  static auto& cache = *new onednn::PlanCache<ConvolutionPlan>;
  onednn::Key key = {static_cast<int64_t>(kind), static_cast<int64_t>(t.image.dtype()), g.groups, t.bias.defined(),
                     t.keep_layout};
  for (const Tensor* tensor : {&t.image, &t.map, &t.weight}) {
    onednn::append(key, tensor->sizes());
    onednn::append(key, tensor->strides());
  }
  for (const auto* values : {&g.stride, &g.padding, &g.dilation}) onednn::append(key, *values);
  return cache.get(std::move(key), [&] { return make_plan(kind, t, g); });
}

// A tensor in the layout a primitive wants: its own memory where that is the layout it has.
class Placed {
 public:
  Placed(const Tensor& t, const dnnl::memory::desc& user, const dnnl::memory::desc& wanted, const dnnl::reorder& way)
      : user_(user, onednn::engine(), t.raw_data()), placed_(user_), way_(way) {
    if (user == wanted) return;
    storage_ = StorageImpl::allocate(static_cast<int64_t>(wanted.get_size()));
    placed_ = dnnl::memory(wanted, onednn::engine(), storage_->data());
  }
  const dnnl::memory& memory() const { return placed_; }
  void bring() {
    if (storage_) dnnl::reorder(way_).execute(onednn::stream(), user_, placed_);
  }
  void take_back() {
    if (storage_) dnnl::reorder(way_).execute(onednn::stream(), placed_, user_);
  }

 private:
  dnnl::memory user_, placed_;
  const dnnl::reorder& way_;
  Storage storage_;
};

// Strided in a way that oneDNN's descriptions hold: every element with a place of its own.
Tensor dense(const Tensor& t) { return t.is_non_overlapping_and_dense() ? t : contiguous(t); }

bool run_part(Kind kind, const Operands& t, const Geometry& g) {
  onednn::OneThread here;
  auto plan = plan_for(kind, t, g);
  if (!plan) return false;
  Placed image(t.image, plan->user_image, plan->image, plan->image_way);
  Placed map(t.map, plan->user_map, plan->map, plan->map_way);
  Placed weight(t.weight, plan->user_weight, plan->weight, plan->weight_way);
  if (kind != Kind::Image) image.bring();
  if (kind != Kind::Map) map.bring();
  if (kind != Kind::Weight) weight.bring();
  std::unordered_map<int, dnnl::memory> arguments = {
      {kind == Kind::Image ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, image.memory()},
      {kind == Kind::Map ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, map.memory()},
      {kind == Kind::Weight ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, weight.memory()}};
  if (t.bias.defined()) arguments.emplace(DNNL_ARG_BIAS, dnnl::memory(plan->bias, onednn::engine(), t.bias.raw_data()));
  if (size_t bytes = plan->scratch.get_size())
    arguments.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(plan->scratch, onednn::engine(), onednn::scratch(bytes)));
  plan->primitive.execute(onednn::stream(), arguments);
  (kind == Kind::Map ? map : kind == Kind::Image ? image : weight).take_back();
  return true;
}

// ---- parts for threads ----

Tensor some_of(const Tensor& t, int64_t dim, int64_t from, int64_t to) {
  if (!t.defined()) return t;
  SymShape sizes(t.sym_sizes());
  sizes[dim] = to - from;
  return alias_tensor(t, sizes, t.sym_strides(), t.storage_offset() + from * t.stride(dim));
}

struct Part {
  Operands operands;
  Geometry geometry;
};

Part some_samples(Kind, Operands t, Geometry g, int64_t from, int64_t to) {
  t.image = some_of(t.image, 0, from, to);
  t.map = some_of(t.map, 0, from, to);
  g.batch = to - from;
  return {t, g};
}
Part some_groups(Kind, Operands t, Geometry g, int64_t from, int64_t to) {
  int64_t images = g.image_channels / g.groups, maps = g.map_channels / g.groups;
  t.image = some_of(t.image, 1, from * images, to * images);
  t.map = some_of(t.map, 1, from * maps, to * maps);
  t.weight = some_of(t.weight, 0, from * maps, to * maps);
  t.bias = some_of(t.bias, 0, from * maps, to * maps);
  g.groups = to - from;
  g.image_channels = g.groups * images;
  g.map_channels = g.groups * maps;
  return {t, g};
}
// Channels of what the computation makes: each is made of all of the inputs.
constexpr int64_t kChannelBlock = 16;
Part some_channels(Kind kind, Operands t, Geometry g, int64_t from, int64_t to) {
  int64_t& channels = kind == Kind::Image ? g.image_channels : g.map_channels;
  from *= kChannelBlock;
  to = std::min(to * kChannelBlock, channels);
  if (kind == Kind::Image) {
    t.image = some_of(t.image, 1, from, to);
    t.weight = some_of(t.weight, 1, from, to);
  } else {
    t.map = some_of(t.map, 1, from, to);
    t.weight = some_of(t.weight, 0, from, to);
    t.bias = some_of(t.bias, 0, from, to);
  }
  channels = to - from;
  return {t, g};
}

// How a computation comes apart: what is summed over (the samples, for a weight's gradient) stays together.
struct Division {
  int64_t count;
  Part (*part)(Kind, Operands, Geometry, int64_t, int64_t);
};
// Every part brings into oneDNN's layout what it shares with the others: by samples the weight, by channels all of the
// input. The smaller of the two it is, that time and memory go for the work.
Division division(Kind kind, const Operands& t, const Geometry& g) {
  int64_t input = (kind == Kind::Image ? t.map : t.image).numel();
  bool by_channels = g.groups == 1 && t.weight.numel() > input;
  if (kind != Kind::Weight && g.batch >= num_threads() && !by_channels) return {g.batch, some_samples};
  if (g.groups > 1) return {g.groups, some_groups};
  int64_t channels = kind == Kind::Image ? g.image_channels : g.map_channels;
  return {(channels + kChannelBlock - 1) / kChannelBlock, some_channels};
}

// Whether oneDNN has the types, and can write the result in place; inputs may be copied.
bool takes(Kind kind, const Operands& t) {
  if (onednn::data_type(t.image.dtype()) == dnnl::memory::data_type::undef || !is_floating(t.image.dtype()))
    return false;
  const Tensor& result = kind == Kind::Map ? t.map : kind == Kind::Image ? t.image : t.weight;
  return result.is_non_overlapping_and_dense();
}

// The parts that threads take: one where it is not worth more, or where oneDNN has no way for one of several.
class Shares {
 public:
  Shares(Kind kind, const Operands& t, const Geometry& g) : kind_(kind), t_(t), g_(g), parts_(division(kind, t, g)) {
    int64_t work = g.batch * g.map_channels * g.map_size() * (g.image_channels / g.groups) * g.kernel_size();
    int64_t threads = num_threads(), work_of_one = std::max<int64_t>(1, work / parts_.count);
    // As many parts as threads, since each part brings the weight, or the input, into oneDNN's layout anew; or some
    // times as many where copies of parts of a large weight would else take much memory.
    bool large = parts_.part == some_channels && t.weight.numel() > (kind == Kind::Image ? t.map : t.image).numel();
    int64_t weight_bytes = t.weight.numel() * static_cast<int64_t>(t.weight.item_size());
    int64_t turns = large ? std::max<int64_t>(1, weight_bytes / (threads * kWeightCopy)) : 1;
    int64_t wanted = std::min(parts_.count, threads * turns);
    grain_ = std::max((kSharedWork + work_of_one - 1) / work_of_one, (parts_.count + wanted - 1) / wanted);
    if (grain_ >= parts_.count || in_parallel_region()) return;
    count_ = (parts_.count + grain_ - 1) / grain_;
    for (int64_t i : {int64_t{0}, count_ - 1}) {  // all but the last are of one size
      Part part = at(i);
      onednn::OneThread here;
      if (!plan_for(kind, part.operands, part.geometry)) {
        count_ = 1;
        return;
      }
    }
  }
  int64_t count() const { return count_; }
  Part at(int64_t i) const {
    if (count_ == 1) return {t_, g_};
    return parts_.part(kind_, t_, g_, i * grain_, std::min(parts_.count, (i + 1) * grain_));
  }

 private:
  Kind kind_;
  const Operands& t_;
  const Geometry& g_;
  Division parts_;
  int64_t grain_ = 1, count_ = 1;
};

bool run(Kind kind, Operands t, const Geometry& g) {
  if (!takes(kind, t)) return false;
  t = {dense(t.image), dense(t.map), dense(t.weight), t.bias.defined() ? contiguous(t.bias) : Tensor()};
  t.keep_layout = channels_last(t.image) && channels_last(t.map);
  Shares shares(kind, t, g);
  if (shares.count() == 1) return run_part(kind, t, g);
  parallel_for(0, shares.count(), 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      Part part = shares.at(i);
      run_part(kind, part.operands, part.geometry);
    }
  });
  return true;
}

// ---- what it takes beside its operands ----

/// The tensor as `dense` gives it, without its contents; the bytes of a copy are added up.
Tensor dense_look(const Tensor& t, int64_t& bytes) {
  if (t.is_non_overlapping_and_dense()) return t;
  bytes += t.numel() * t.item_size();
  return alias_tensor(t, t.sym_sizes(), contiguous_strides(t.sym_sizes()), 0);
}

std::optional<int64_t> bytes_of_part(Kind kind, const Part& part) {
  onednn::OneThread here;
  auto plan = plan_for(kind, part.operands, part.geometry);
  if (!plan) return std::nullopt;
  int64_t bytes = 0;
  auto add = [&](const dnnl::memory::desc& user, const dnnl::memory::desc& wanted) {
    if (!(user == wanted)) bytes += static_cast<int64_t>(wanted.get_size());
  };
  add(plan->user_image, plan->image);
  add(plan->user_map, plan->map);
  add(plan->user_weight, plan->weight);
  return bytes;
}

std::optional<int64_t> workspace(Kind kind, Operands t, const Geometry& g) {
  if (!takes(kind, t)) return std::nullopt;
  int64_t bytes = 0;
  t = {dense_look(t.image, bytes), dense_look(t.map, bytes), dense_look(t.weight, bytes), t.bias};
  t.keep_layout = channels_last(t.image) && channels_last(t.map);
  Shares shares(kind, t, g);
  for (int64_t i = 0; i < std::min<int64_t>(shares.count(), num_threads()); ++i) {  // at a time
    std::optional<int64_t> of_part = bytes_of_part(kind, shares.at(i));
    if (!of_part) return std::nullopt;
    bytes += *of_part;
  }
  return bytes;
}

}  // namespace

std::optional<int64_t> onednn_workspace(ConvolutionResult result, const Tensor& image, const Tensor& map,
                                        const Tensor& weight, const Tensor& bias, const ConvolutionGeometry& geometry) {
  return workspace(result, {image, map, weight, bias}, geometry);
}

bool onednn_map_of_image(const Tensor& map, const Tensor& image, const Tensor& weight, const Tensor& bias,
                         const ConvolutionGeometry& geometry) {
  return run(Kind::Map, {image, map, weight, bias}, geometry);
}

bool onednn_image_of_map(const Tensor& image, const Tensor& map, const Tensor& weight,
                         const ConvolutionGeometry& geometry) {
  return run(Kind::Image, {image, map, weight, Tensor()}, geometry);
}

bool onednn_weight_gradient(const Tensor& grad_weight, const Tensor& map, const Tensor& image,
                            const ConvolutionGeometry& geometry) {
  return run(Kind::Weight, {image, map, grad_weight, Tensor()}, geometry);
}

}  // namespace umbra::kernels
