// Products, convolutions, norms, poolings, resampling and attention.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "io/onnx/formula.h"
#include "umbra/generated/functions.h"

namespace umbra::io::onnx {

namespace {

// ---- products ----

Name scaled(const Call& c, const Name& value, std::string_view factor) {
  return c.plain(factor).to_double() == 1 ? value : c.emit("Mul", {value, c.as(factor, c.result_type())});
}

void add_products(Table& table) {
  for (const char* name : {"aten::mm", "aten::bmm", "aten::mv", "aten::dot"})
    table[name] = [](Call& c) {
      const char* second = c.node().target().op()->schema().arguments[1].name.c_str();
      c.give(c.emit("MatMul", {c["self"], c[second]}));
    };
  table["aten::matmul"] = [](Call& c) { c.give(c.emit("MatMul", {c["self"], c["other"]})); };
  for (auto [name, a, b] : {std::tuple("addmm", "mat1", "mat2"), {"baddbmm", "batch1", "batch2"}})
    table[concat("aten::", name)] = [a = a, b = b](Call& c) {
      Name product = scaled(c, c.emit("MatMul", {c[a], c[b]}), "alpha");
      if (c.plain("beta").to_double() == 0) return c.give(product);
      c.give(c.emit("Add", {scaled(c, c["self"], "beta"), product}));
    };
  for (auto [name, product] :
       {std::pair("addmv", "MatMul(@mat, @vec)"), {"addbmm", "ReduceSum{keepdims=0}(MatMul(@batch1, @batch2), [0])"}})
    table[concat("aten::", name)] = [product = product](Call& c) {
      Name scaled = c.emit("Mul", {evaluate(c, product), c.as("alpha", c.result_type())});
      if (c.plain("beta").to_double() == 0) return c.give(scaled);
      c.give(evaluate(c, "Add(Mul(@self, beta), product)", {{"product", scaled}}));
    };
  table["aten::linear"] = [](Call& c) {
    Name weight = c["weight"];
    if (c.rank("weight") == 2) weight = c.emit("Transpose", {weight}, Attributes().set("perm", {1, 0}));
    Name product = c.emit("MatMul", {c["input"], weight});
    c.give(c.has("bias") ? c.emit("Add", {product, c["bias"]}) : product);
  };
}

// ---- convolutions, poolings ----

std::vector<int64_t> both_ends(std::vector<int64_t> pads) {
  size_t count = pads.size();
  for (size_t i = 0; i < count; ++i) pads.push_back(pads[i]);
  return pads;
}

void convolution(Call& c) {
  size_t spatial = static_cast<size_t>(c.rank("weight")) - 2;
  if (c.rank("input") != c.rank("weight")) c.refuse("an input without a batch");
  Attributes attributes;
  attributes.set("strides", c.numbers("stride", spatial)).set("pads", both_ends(c.numbers("padding", spatial)));
  attributes.set("dilations", c.numbers("dilation", spatial)).set("group", c.number("groups"));
  bool transposed = c.flag("transposed");
  if (transposed) attributes.set("output_padding", c.numbers("output_padding", spatial));
  Names inputs = {c["input"], c["weight"]};
  if (c.has("bias")) inputs.push_back(c["bias"]);
  c.give(c.emit(transposed ? "ConvTranspose" : "Conv", inputs, attributes));
}

// ---- gradients of convolutions ----

/// What both gradients of one convolution are made of.
struct Windows {
  explicit Windows(const Call& c) : spatial(static_cast<size_t>(c.rank("weight")) - 2) {
    if (c.rank("input") != c.rank("weight")) c.refuse("an input without a batch");
    stride = c.numbers("stride", spatial), padding = c.numbers("padding", spatial);
    dilation = c.numbers("dilation", spatial), groups = c.number("groups");
    for (size_t i = 0; i < spatial; ++i) kernel.push_back(plain_size(c, "weight", i));
  }
  /// A size of the planes, which the gradient has to know as a number.
  static int64_t plain_size(const Call& c, const char* name, size_t i) {
    SymInt size = c.tensor(name).sym_size(static_cast<int64_t>(i) + 2);
    if (size.is_symbolic()) c.refuse("planes of a symbolic size");
    return size.value();
  }
  Attributes attributes() const {
    Attributes out;
    out.set("strides", stride).set("pads", both_ends(padding)).set("dilations", dilation).set("group", groups);
    return out;
  }
  size_t spatial;
  std::vector<int64_t> stride, padding, dilation, kernel;
  int64_t groups;
};

/// The gradient of the images that a convolution looked at: the convolution the other way round.
Name gradient_of_images(const Call& c, const Windows& w) {
  Attributes attributes = w.attributes();
  if (c.flag("transposed")) return c.emit("Conv", {c["grad_output"], c["weight"]}, attributes);
  std::vector<int64_t> left(w.spatial);  // what the last windows did not reach
  for (size_t i = 0; i < w.spatial; ++i)
    if (w.stride[i] > 1)
      left[i] =
          (Windows::plain_size(c, "input", i) + 2 * w.padding[i] - w.dilation[i] * (w.kernel[i] - 1) - 1) % w.stride[i];
  return c.emit("ConvTranspose", {c["grad_output"], c["weight"]}, attributes.set("output_padding", left));
}

/// Planes of several groups with the batch among the channels: [channels of a group, groups * batch, planes].
Name batch_as_channels(const Call& c, const char* name, const Windows& w) {
  std::vector<int64_t> order = {1, 0};
  for (size_t i = 0; i < w.spatial; ++i) order.push_back(static_cast<int64_t>(i) + 2);
  if (w.groups == 1) return c.emit("Transpose", {c[name]}, Attributes().set("perm", order));
  int64_t channels = c.tensor(name).sym_size(1).value() / w.groups;
  std::vector<int64_t> apart = {-1, w.groups, channels}, joined = {channels, -1};
  order = {2, 1, 0};
  for (size_t i = 0; i < w.spatial; ++i) {
    int64_t size = Windows::plain_size(c, name, i);
    apart.push_back(size), joined.push_back(size), order.push_back(static_cast<int64_t>(i) + 3);
  }
  Name groups = c.emit("Reshape", {c[name], c.model.list(apart)});
  return c.emit("Reshape", {c.emit("Transpose", {groups}, Attributes().set("perm", order)), c.model.list(joined)});
}

/// The gradient of the weight: images are convolved with the gradient, whose places are `stride` apart.
Name gradient_of_weight(const Call& c, const Windows& w) {
  bool transposed = c.flag("transposed");
  std::vector<int64_t> swapped = {1, 0}, axes, none(w.spatial);
  for (size_t i = 0; i < w.spatial; ++i) axes.push_back(static_cast<int64_t>(i) + 2);
  swapped.insert(swapped.end(), axes.begin(), axes.end());
  Name images = batch_as_channels(c, transposed ? "grad_output" : "input", w);
  Name gradient = c.emit("Transpose", {c[transposed ? "input" : "grad_output"]}, Attributes().set("perm", swapped));
  Attributes attributes;
  attributes.set("strides", w.dilation).set("pads", both_ends(w.padding)).set("dilations", w.stride);
  Name made = c.emit("Conv", {images, gradient}, attributes.set("group", w.groups));
  made = c.emit("Slice", {made, c.model.list(none), c.model.list(w.kernel), c.model.list(axes)});
  return c.emit("Transpose", {made}, Attributes().set("perm", swapped));
}

void convolution_backward(Call& c) {
  Windows windows(c);
  std::vector<int64_t> all_but_channels = {0};
  for (size_t i = 0; i < windows.spatial; ++i) all_but_channels.push_back(static_cast<int64_t>(i) + 2);
  Name images = c.uses(0) ? gradient_of_images(c, windows) : Name(),
       weight = c.uses(1) ? gradient_of_weight(c, windows) : Name();
  Name bias = c.uses(2) ? c.emit("ReduceSum", {c["grad_output"], c.model.list(all_but_channels)},
                                 Attributes().set("keepdims", 0))
                        : Name();
  c.give_many({images, weight, bias});
}

struct Pool {
  std::vector<int64_t> kernel, stride, pads;
  Name input;    // with a batch
  bool batched;  // whether it had one
  /// A result without the batch that was added.
  Name own(const Call& c, const Name& made) const {
    return batched ? made : c.emit("Squeeze", {made, c.model.list({0})});
  }
};
Pool pool_of(const Call& c, size_t spatial) {
  bool batched = c.rank("self") == static_cast<int64_t>(spatial) + 2;
  Name input = batched ? c["self"] : c.emit("Unsqueeze", {c["self"], c.model.list({0})});
  Pool pool{c.numbers("kernel_size", spatial), c.numbers("stride", spatial), c.numbers("padding", spatial), input,
            batched};
  if (pool.stride.empty()) pool.stride = pool.kernel;
  return pool;
}
/// With ceil_mode PyTorch leaves out a last window that would start behind the input and its padding; ONNX does not.
void check_last_windows(const Call& c, const Pool& pool, const std::vector<int64_t>& dilations) {
  if (!c.flag("ceil_mode")) return;
  size_t spatial = pool.kernel.size();
  for (size_t i = 0; i < spatial; ++i) {
    int64_t d = c.rank("self") - static_cast<int64_t>(spatial - i);
    SymInt size = c.tensor("self").sym_size(d), made = c.result().sym_size(d);
    int64_t reach = dilations[i] * (pool.kernel[i] - 1) + 1, stride = pool.stride[i], pad = pool.pads[i];
    bool fits = size.is_symbolic() || made.is_symbolic()
                    ? pad == 0 && stride <= reach
                    : made.value() == (size.value() + 2 * pad - reach + stride - 1) / stride + 1;
    if (!fits) c.refuse("ceil_mode with a last window that starts in the padding");
  }
}

Attributes attributes_of(const Pool& pool) {
  Attributes attributes;
  attributes.set("kernel_shape", pool.kernel).set("strides", pool.stride).set("pads", both_ends(pool.pads));
  return attributes;
}

void max_pool(Call& c, size_t spatial) {
  Pool pool = pool_of(c, spatial);
  check_last_windows(c, pool, c.numbers("dilation", spatial));
  Attributes attributes = attributes_of(pool);
  attributes.set("dilations", c.numbers("dilation", spatial)).set("ceil_mode", c.flag("ceil_mode"));
  bool single = c.node().meta.val.is_tensor();
  if (single || !c.uses(1)) {
    Name made = pool.own(c, c.emit("MaxPool", {pool.input}, attributes));
    return single ? c.give(made) : c.give_many({made, ""});
  }
  // ONNX counts through the whole tensor, PyTorch within each plane.
  Names made = c.model.emit_many("MaxPool", {pool.input}, 2, attributes);
  Name places = evaluate(c, "Mod(places, ReduceProd{keepdims=0}(Shape{start=2}(input)))",
                         {{"places", made[1]}, {"input", pool.input}});
  c.give_many({pool.own(c, made[0]), pool.own(c, places)});
}

void average_pool(Call& c, size_t spatial) {
  bool divided = spatial > 1 && c.has("divisor_override");
  if (divided && c.flag("ceil_mode")) c.refuse("divisor_override with ceil_mode");
  Pool pool = pool_of(c, spatial);
  check_last_windows(c, pool, std::vector<int64_t>(spatial, 1));
  Attributes attributes = attributes_of(pool);
  attributes.set("count_include_pad", divided || c.flag("count_include_pad")).set("ceil_mode", c.flag("ceil_mode"));
  Name made = pool.own(c, c.emit("AveragePool", {pool.input}, attributes));
  if (!divided) return c.give(made);
  int64_t count = std::accumulate(pool.kernel.begin(), pool.kernel.end(), int64_t{1}, std::multiplies<>());
  double factor = static_cast<double>(count) / static_cast<double>(c.number("divisor_override"));
  c.give(c.emit("Mul", {made, c.model.scalar(factor, c.result_type())}));
}

/// Windows that together are the whole, one for each element of the result: dimension by dimension, since a mean of
/// means over windows of one size, and an extreme of extremes, is that of all.
void adaptive_pool(Call& c, size_t spatial, const char* reduction) {
  bool single = c.node().meta.val.is_tensor();
  std::vector<int64_t> wanted = c.numbers("output_size", spatial);
  if (!single && c.uses(1)) c.refuse("places of the largest elements");
  Name value = c["self"];
  for (size_t i = 0; i < spatial; ++i) {
    int64_t d = static_cast<int64_t>(i) + c.rank("self") - static_cast<int64_t>(spatial);
    auto window = [&](const Name& part) {
      return c.emit(reduction, {part, c.model.list({d})}, Attributes().set("keepdims", 1));
    };
    if (wanted[i] == 1) {
      value = window(value);
      continue;
    }
    SymInt size = c.tensor("self").sym_sizes()[d];
    if (size.is_symbolic()) c.refuse("windows of sizes that vary");
    Names parts;
    for (int64_t k = 0; k < wanted[i]; ++k) {
      int64_t from = k * size.value() / wanted[i], to = ((k + 1) * size.value() + wanted[i] - 1) / wanted[i];
      parts.push_back(window(c.emit("Slice", {value, c.model.list({from}), c.model.list({to}), c.model.list({d})})));
    }
    value = c.emit("Concat", parts, Attributes().set("axis", d));
  }
  single ? c.give(value) : c.give_many({value, ""});
}

/// Windows of one size are those of a pooling; false where they are not.
bool pool_evenly(Call& c, size_t spatial) {
  std::vector<int64_t> wanted = c.numbers("output_size", spatial), kernel;
  if (c.rank("self") != static_cast<int64_t>(spatial) + 2 ||
      std::ranges::all_of(wanted, [](int64_t n) { return n == 1; }))
    return false;
  for (size_t i = 0; i < spatial; ++i) {
    SymInt size = c.tensor("self").sym_size(static_cast<int64_t>(i) + 2);
    if (size.is_symbolic() || size.value() % wanted[i] != 0) return false;
    kernel.push_back(size.value() / wanted[i]);
  }
  c.give(c.emit("AveragePool", {c["self"]}, Attributes().set("kernel_shape", kernel).set("strides", kernel)));
  return true;
}

void add_windows(Table& table) {
  table["aten::convolution"] = convolution;
  table["aten::convolution_backward"] = convolution_backward;
  for (int d : {1, 2, 3}) {
    size_t spatial = static_cast<size_t>(d);
    table[concat("aten::max_pool", d, "d")] =
        table[concat("aten::max_pool", d, "d_with_indices")] = [spatial](Call& c) { max_pool(c, spatial); };
    table[concat("aten::avg_pool", d, "d")] = [spatial](Call& c) { average_pool(c, spatial); };
    table[concat("aten::adaptive_avg_pool", d, "d")] =
        table[concat("aten::_adaptive_avg_pool", d, "d")] = [spatial](Call& c) {
          if (!pool_evenly(c, spatial)) adaptive_pool(c, spatial, "ReduceMean");
        };
    table[concat("aten::adaptive_max_pool", d, "d")] = [spatial](Call& c) { adaptive_pool(c, spatial, "ReduceMax"); };
  }
}

// ---- norms ----

Name ones_or(const Call& c, std::string_view name, double value, const std::vector<int64_t>& shape, DType dtype) {
  return c.has(name) ? c[name] : c.model.constant(full(shape, value, dtype), "norm_constant");
}

void layer_norm(Call& c) {
  std::vector<int64_t> shape = c.numbers("normalized_shape");
  DType dtype = c.type("input");
  Names inputs = {c["input"], ones_or(c, "weight", 1, shape, dtype), ones_or(c, "bias", 0, shape, dtype)};
  int64_t axis = c.rank("input") - static_cast<int64_t>(shape.size());
  Attributes attributes;
  attributes.set("axis", axis).set("epsilon", c.plain("eps").to_double());
  if (c.node().meta.val.is_tensor()) return c.give(c.emit("LayerNormalization", inputs, attributes));
  bool statistics = c.uses(1) || c.uses(2);
  Names made = c.model.emit_many("LayerNormalization", inputs, statistics ? 3 : 1, attributes);
  made.resize(3);
  c.give_many(made);
}

void batch_norm(Call& c) {
  if (c.tensor("running_mean").is_symbolic()) c.refuse("a number of channels that varies");
  std::vector<int64_t> channels = {c.tensor("running_mean").sizes()[0]};
  DType dtype = c.type("running_mean");
  Name y = c.emit("BatchNormalization",
                  {c["input"], ones_or(c, "weight", 1, channels, dtype), ones_or(c, "bias", 0, channels, dtype),
                   c["running_mean"], c["running_var"]},
                  Attributes().set("epsilon", c.plain("eps").to_double()));
  c.give_many({y, "", ""});
}

/// By the batch's own mean and variance; the running ones' new values are results.
void batch_norm_training(Call& c) {
  if (c.uses(1) || c.uses(2)) c.refuse("the batch's statistics");
  DType dtype = c.type("input");
  int64_t rank = c.rank("input");
  std::vector<int64_t> dims, column(static_cast<size_t>(rank - 1), 1);
  for (int64_t d = 0; d < rank; ++d)
    if (d != 1) dims.push_back(d);
  column[0] = -1;
  auto reduced = [&](const Name& value) {
    return c.emit("ReduceMean", {value, c.model.list(dims)}, Attributes().set("keepdims", 1));
  };
  Name mean = reduced(c["input"]), off = c.emit("Sub", {c["input"], mean}),
       variance = reduced(c.emit("Mul", {off, off}));
  Name deviation = c.emit("Sqrt", {c.emit("Add", {variance, c.as("eps", dtype)})});
  Name y = c.emit("Div", {off, deviation});
  for (auto [name, type] : {std::pair("weight", "Mul"), {"bias", "Add"}})
    if (c.has(name)) y = c.emit(type, {y, c.emit("Reshape", {c[name], c.model.list(column)})});
  Name sizes = c.emit("Gather", {c.emit("Shape", {c["input"]}), c.model.list(dims)});
  Name count = c.model.cast(c.emit("ReduceProd", {sizes}, Attributes().set("keepdims", 0)), DType::Int64, dtype);
  Name unbiased = c.emit("Div", {c.emit("Mul", {variance, count}), c.emit("Sub", {count, c.model.scalar(1, dtype)})});
  if (c.node().target().op()->schema().find("running_mean") < 0) return c.give_many({y, "", ""});
  double momentum = c.plain("momentum").to_double();
  auto moved = [&](const char* running, const Name& found) {
    Name kept = c.emit("Mul", {c[running], c.model.scalar(1 - momentum, dtype)});
    Name flat = c.emit("Reshape", {found, c.model.list({-1})});
    return c.emit("Add", {kept, c.emit("Mul", {flat, c.model.scalar(momentum, dtype)})});
  };
  c.give_many({y, "", "", moved("running_mean", mean), moved("running_var", unbiased)});
}

void group_norm(Call& c) {
  int64_t groups = c.number("group"), rank = c.rank("input");
  DType dtype = c.type("input");
  Name rows = c.emit("Reshape", {c["input"], c.model.list({0, groups, -1})});
  Name normal = c.emit("InstanceNormalization",
                       {rows, c.model.constant(full({groups}, 1, dtype), "norm_constant"),
                        c.model.constant(full({groups}, 0, dtype), "norm_constant")},
                       Attributes().set("epsilon", c.plain("eps").to_double()));
  Name y = c.emit("Reshape", {normal, c.emit("Shape", {c["input"]})});
  std::vector<int64_t> shape(static_cast<size_t>(rank - 1), 1);
  shape[0] = -1;
  for (auto [name, type] : {std::pair("weight", "Mul"), {"bias", "Add"}})
    if (c.has(name)) y = c.emit(type, {y, c.emit("Reshape", {c[name], c.model.list(shape)})});
  c.give_many({y, "", ""});
}

/// Of a model that was exported while it trained. Where nothing is dropped, the result is the input.
void native_dropout(Call& c) {
  double ratio = c.plain("p").to_double();
  Value train = c.plain("train");
  if (ratio >= 1) c.refuse("a dropout of everything");
  bool drops = ratio > 0 && (train.is_none() || train.to_bool());
  DType dtype = c.type("input");
  Name probability = c.model.scalar(drops ? ratio : 0, dtype), training = c.model.scalar(drops, DType::Bool);
  c.give_many(c.model.emit_many("Dropout", {c["input"], probability, training}, 2));
}

void add_norms(Table& table) {
  table["aten::native_dropout"] = native_dropout;
  table["aten::native_layer_norm"] = table["aten::layer_norm"] = layer_norm;
  table["aten::_native_batch_norm_legit_no_training"] = batch_norm;
  table["aten::_native_batch_norm_legit_functional"] = table["aten::_native_batch_norm_legit.no_stats"] =
      batch_norm_training;
  table["aten::native_group_norm"] = group_norm;
  table["aten::_weight_norm_interface"] = [](Call& c) {
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < c.rank("v"); ++d)
      if (d != c.dim("dim", "v")) dims.push_back(d);
    Name norm = c.emit("ReduceL2", {c["v"], c.model.list(dims)}, Attributes().set("keepdims", 1));
    c.give_many({c.emit("Mul", {c["v"], c.emit("Div", {c["g"], norm})}), ""});
  };
  for (auto [name, type] : {std::pair("softmax", "Softmax"), {"log_softmax", "LogSoftmax"}}) {
    auto convert = [type = type](Call& c) {
      c.give(c.emit(type, {c.as("self", c.result_type())}, Attributes().set("axis", c.dim("dim"))));
    };
    table[concat("aten::_", name)] = table[concat("aten::", name, ".int")] = convert;
  }
}

// ---- resampling ----

/// To `output_size`, or by `scale_factors`.
void resize(Call& c, size_t spatial, const Attributes& attributes) {
  const char* input = c.node().target().op()->schema().arguments[0].name.c_str();
  if (c.node().target().op()->schema().find("scale_factors") >= 0 && c.has("scale_factors")) {
    Value given = c.plain("scale_factors");
    Tensor scales = ones({static_cast<int64_t>(spatial) + 2});
    for (size_t i = 0; i < spatial; ++i)
      static_cast<float*>(scales.raw_data())[i + 2] = static_cast<float>(given.double_list()[i]);
    return c.give(c.emit("Resize", {c[input], "", c.model.constant(scales, "scales")}, attributes));
  }
  Name kept = c.emit("Shape", {c[input]}, Attributes().set("start", 0).set("end", 2));
  Name sizes = c.emit("Concat", {kept, c.sizes("output_size")}, Attributes().set("axis", 0));
  c.give(c.emit("Resize", {c[input], "", "", sizes}, attributes));
}

void add_resampling(Table& table) {
  // The form with numbers has the sizes and the factors they came from; the sizes say it all.
  for (int d : {1, 2, 3})
    table[concat("aten::upsample_nearest", d, "d.vec")] =
        table[concat("aten::upsample_nearest", d, "d")] = [d](Call& c) {
          resize(c, static_cast<size_t>(d),
                 Attributes()
                     .set("mode", "nearest")
                     .set("coordinate_transformation_mode", "asymmetric")
                     .set("nearest_mode", "floor"));
        };
  for (auto [name, mode, d] :
       {std::tuple("bilinear2d", "linear", size_t{2}), {"bicubic2d", "cubic", 2}, {"trilinear3d", "linear", 3}})
    table[concat("aten::upsample_", name, ".vec")] = table[concat("aten::upsample_", name)] = [mode = mode,
                                                                                               d = d](Call& c) {
      const char* corners = c.flag("align_corners") ? "align_corners" : "pytorch_half_pixel";
      resize(c, d,
             Attributes().set("mode", mode).set("coordinate_transformation_mode", corners).set("cubic_coeff_a", -0.75));
    };
  table["aten::grid_sampler_2d"] = [](Call& c) {
    constexpr const char* kModes[] = {"bilinear", "nearest", "bicubic"};
    constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
    c.give(c.emit("GridSample", {c["input"], c["grid"]},
                  Attributes()
                      .set("mode", kModes[c.number("interpolation_mode")])
                      .set("padding_mode", kPaddings[c.number("padding_mode")])
                      .set("align_corners", c.flag("align_corners"))));
  };
}

// ---- attention ----

/// Heads of keys and values that several queries share.
Name repeated_heads(const Call& c, const char* name) {
  if (!c.flag("enable_gqa")) return c[name];
  SymInt queries = c.tensor("query").sym_size(-3), own = c.tensor(name).sym_size(-3);
  if (queries.same(own)) return c[name];
  if (queries.is_symbolic() || own.is_symbolic() || c.rank(name) != 4) c.refuse("numbers of heads that vary");
  int64_t times = queries.value() / own.value();
  Name spread = c.emit("Unsqueeze", {c[name], c.model.list({2})});
  spread = c.emit("Expand", {spread, c.model.list({1, 1, times, 1, 1})});
  Name shape = c.emit("Shape", {c[name]});
  Name sizes = c.emit("Mul", {shape, c.model.list({1, times, 1, 1})});
  return c.emit("Reshape", {spread, sizes});
}

void attention(Call& c) {
  if (c.plain("dropout_p").to_double() != 0) c.refuse("dropout");
  DType dtype = c.result_type();
  SymInt width = c.tensor("query").sym_size(-1);
  if (!c.has("scale") && width.is_symbolic()) c.refuse("a width that varies");
  double scale = c.has("scale") ? c.plain("scale").to_double() : 1 / std::sqrt(static_cast<double>(width.value()));
  Name keys = repeated_heads(c, "key"), values = repeated_heads(c, "value");
  std::vector<int64_t> order;
  int64_t rank = c.rank("key");
  for (int64_t d = 0; d < rank - 2; ++d) order.push_back(d);
  order.insert(order.end(), {rank - 1, rank - 2});
  Name query = c.emit("Mul", {c["query"], c.model.scalar(scale, dtype)});
  Name scores = c.emit("MatMul", {query, c.emit("Transpose", {keys}, Attributes().set("perm", order))});
  Name lowest = c.model.scalar(-std::numeric_limits<double>::infinity(), dtype), zero = c.model.scalar(0, dtype);
  Name mask;  // of truth values
  if (c.flag("is_causal")) {
    Name shape = c.emit("Concat", {c.size_of(c["query"], c.rank("query") - 2), c.size_of(keys, rank - 2)},
                        Attributes().set("axis", 0));
    Name all = c.emit("ConstantOfShape", {shape}, Attributes().set("value", ones({1}, DType::Float32)));
    mask = c.model.cast(c.emit("Trilu", {all}, Attributes().set("upper", 0)), DType::Float32, DType::Bool);
  } else if (c.has("attn_mask")) {
    if (c.type("attn_mask") == DType::Bool) mask = c["attn_mask"];
    else scores = c.emit("Add", {scores, c["attn_mask"]});
  }
  if (!mask.empty()) scores = c.emit("Where", {mask, scores, lowest});
  Name weights = c.emit("Softmax", {scores}, Attributes().set("axis", -1));
  if (!mask.empty()) weights = c.emit("Where", {c.emit("IsNaN", {weights}), zero, weights});  // rows that see nothing
  c.give(c.emit("MatMul", {weights, values}));
}

}  // namespace

void add_networks(Table& table) {
  add_products(table);
  add_windows(table);
  add_norms(table);
  add_resampling(table);
  table["aten::scaled_dot_product_attention"] = attention;
}

}  // namespace umbra::io::onnx
