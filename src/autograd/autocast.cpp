#include "umbra/autograd/autocast.h"

#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

#include "core/per_thread.h"
#include "dispatch/kernel_table.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

// ---- what is cast ----

/// A cast of the arguments of one operator: by a policy, or to a type that the user has chosen.
struct Cast {
  CastPolicy policy;
  std::optional<DType> dtype;
};

// PyTorch's lists for the CPU. They say what a library of kernels is good at, not what an operator is; so they stand
// here, side by side, and not in the definitions.
constexpr const char* kShort[] = {"conv1d",
                                  "conv1d.padding",
                                  "conv2d",
                                  "conv2d.padding",
                                  "conv3d",
                                  "conv3d.padding",
                                  "conv_transpose1d",
                                  "conv_transpose2d.input",
                                  "conv_transpose3d.input",
                                  "conv_tbc",
                                  "_convolution.deprecated",
                                  "mm",
                                  "bmm",
                                  "addmm",
                                  "addbmm",
                                  "baddbmm",
                                  "matmul",
                                  "linear",
                                  "linalg_vecdot",
                                  "prelu",
                                  "scaled_dot_product_attention",
                                  "_addmm_activation",
                                  "_native_multi_head_attention",
                                  "mkldnn_rnn_layer"};
constexpr const char* kWidest[] = {"cat", "stack", "index_copy"};
constexpr const char* kFull[] = {"_grid_sampler_2d_cpu_fallback",
                                 "_lu_with_info",
                                 "adaptive_avg_pool3d",
                                 "adaptive_max_pool3d",
                                 "avg_pool3d",
                                 "binary_cross_entropy",
                                 "binary_cross_entropy_with_logits",
                                 "cdist",
                                 "cholesky_inverse",
                                 "cholesky_solve",
                                 "cosine_embedding_loss",
                                 "cross_entropy_loss",
                                 "ctc_loss.IntList",
                                 "ctc_loss.Tensor",
                                 "fake_quantize_per_tensor_affine",
                                 "fft_fft",
                                 "fft_fft2",
                                 "fft_fftn",
                                 "fft_hfft",
                                 "fft_ifft",
                                 "fft_ifft2",
                                 "fft_ifftn",
                                 "fft_ihfft",
                                 "fft_irfft",
                                 "fft_irfft2",
                                 "fft_irfftn",
                                 "fft_rfft",
                                 "fft_rfft2",
                                 "fft_rfftn",
                                 "fractional_max_pool2d",
                                 "fractional_max_pool3d",
                                 "geqrf",
                                 "grid_sampler",
                                 "grid_sampler_2d",
                                 "grid_sampler_3d",
                                 "hinge_embedding_loss",
                                 "huber_loss",
                                 "inverse",
                                 "kl_div",
                                 "l1_loss",
                                 "linalg_cholesky",
                                 "linalg_cholesky_ex",
                                 "linalg_cond",
                                 "linalg_cond.p_str",
                                 "linalg_eig",
                                 "linalg_eigh",
                                 "linalg_eigvals",
                                 "linalg_eigvalsh",
                                 "linalg_householder_product",
                                 "linalg_inv",
                                 "linalg_inv_ex",
                                 "linalg_lstsq",
                                 "linalg_matrix_rank",
                                 "linalg_matrix_rank.atol_rtol_float",
                                 "linalg_matrix_rank.atol_rtol_tensor",
                                 "linalg_matrix_rank.tol_tensor",
                                 "linalg_matrix_sqrth",
                                 "linalg_qr",
                                 "linalg_solve",
                                 "linalg_svd",
                                 "linalg_svdvals",
                                 "linalg_tensorinv",
                                 "linalg_tensorsolve",
                                 "lu_solve",
                                 "margin_ranking_loss",
                                 "max_pool3d",
                                 "max_unpool2d",
                                 "max_unpool3d",
                                 "mse_loss",
                                 "multi_margin_loss",
                                 "multilabel_margin_loss",
                                 "multilabel_margin_loss_forward",
                                 "nanquantile",
                                 "nanquantile.scalar",
                                 "nll_loss",
                                 "nll_loss2d",
                                 "orgqr",
                                 "ormqr",
                                 "pinverse",
                                 "poisson_nll_loss",
                                 "polar",
                                 "prod",
                                 "prod.dim_int",
                                 "quantile",
                                 "quantile.scalar",
                                 "reflection_pad1d",
                                 "reflection_pad2d",
                                 "replication_pad1d",
                                 "replication_pad2d",
                                 "replication_pad3d",
                                 "smooth_l1_loss",
                                 "soft_margin_loss",
                                 "stft",
                                 "stft.center",
                                 "svd",
                                 "trace",
                                 "triangular_solve",
                                 "triplet_margin_loss",
                                 "view_as_complex"};

class Casts {
 public:
  Casts() {
    for (const char* name : kShort) add(name, CastPolicy::Short);
    for (const char* name : kWidest) add(name, CastPolicy::Widest);
    for (const char* name : kFull) add(name, CastPolicy::Full);
  }
  std::optional<Cast> find(const Operator& op) const {
    std::shared_lock lock(mutex_);
    auto found = casts_.find(&op);
    return found == casts_.end() ? std::nullopt : std::optional(found->second);
  }
  void set(const Operator& op, DType dtype) {
    std::unique_lock lock(mutex_);
    casts_[&op] = {CastPolicy::Short, dtype};
  }

 private:
  void add(const char* name, CastPolicy policy) {
    if (const Operator* op = find_operator(concat("aten::", name))) casts_[op] = {policy, std::nullopt};
  }
  mutable std::shared_mutex mutex_;
  std::unordered_map<const Operator*, Cast> casts_;
};
Casts& casts() {
  static auto& all = *new Casts;
  return all;
}

// ---- the state of a thread ----

constinit thread_local AutocastState g_cpu;
constinit thread_local bool g_cache_enabled = true;
constinit thread_local int g_nesting = 0;
/// For each region that was entered: whether a program that is being recorded has it.
std::vector<bool>& regions() {
  static PerThread<std::vector<bool>> of_thread;
  return *of_thread;
}
AutocastObserver g_observer = {};
/// Leaves and what they were cast to. A leaf is kept with its cast: its address means nothing without it.
auto& cast_leaves() {
  static PerThread<std::unordered_map<const TensorImpl*, std::pair<Tensor, Tensor>>> of_thread;
  return *of_thread;
}

bool is_eligible(const Tensor& t) {
  return t.defined() && t.device().type == DeviceType::CPU && t.is_floating_point() && t.dtype() != DType::Float64;
}

/// A leaf is cast once for a region, so that its gradient is made once, too. Without recording a cast has no history,
/// and what is kept would miss it later.
Tensor cast(const Tensor& t, DType dtype) {
  if (!is_eligible(t) || t.dtype() == dtype) return t;
  bool cached = dtype == g_cpu.dtype && t.dtype() == DType::Float32 && t.requires_grad() && !t.is_view() &&
                t.is_leaf() && g_cache_enabled && is_grad_enabled();
  if (!cached) return t.to(dtype);
  auto found = cast_leaves().find(t.impl());
  if (found != cast_leaves().end()) return found->second.second;
  Tensor made = t.to(dtype);
  cast_leaves().emplace(t.impl(), std::pair(t, made));
  return made;
}

DType widest(const Operator& op, const Value* frame) {
  DType found = g_cpu.dtype;
  auto look = [&](const Tensor& t) {
    if (!is_eligible(t) || t.dtype() == g_cpu.dtype) return;
    check(found == DType::Float32 || t.dtype() == DType::Float32,
          "Unexpected floating ScalarType in at::autocast::prioritize");
    found = DType::Float32;
  };
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (frame[i].is_tensor()) look(frame[i].tensor_ref());
    if (frame[i].is_tensor_list())
      for (const Tensor& t : frame[i].tensor_list().vec()) look(t);
  }
  return found;
}

DType target(const Cast& cast, const Operator& op, const Value* frame) {
  if (cast.dtype) return *cast.dtype;
  if (cast.policy == CastPolicy::Full) return DType::Float32;
  return cast.policy == CastPolicy::Short ? g_cpu.dtype : widest(op, frame);
}

/// A tracer above has recorded the call as it was made. A program without the region would compute in other types.
void check_region_recorded(const Operator& op) {
  bool recorded = !regions().empty() && regions().back();
  check<NotImplementedError>(recorded || !active_mode(DispatchKey::PreProxy), "autocast of ", op.name(),
                             " in a program that is recorded above autograd (torch.export, make_fx with pre_dispatch): "
                             "the region has to begin inside the program");
}

void cast_arguments(const Operator& op, DType dtype, Value* frame) {
  auto changed = [&](const Tensor& t) {
    Tensor made = cast(t, dtype);
    if (!made.is_same(t)) check_region_recorded(op);
    return made;
  };
  // From the last to the first: PyTorch's casts stand in that order in graphs.
  for (size_t i = op.argument_count(); i-- > 0;) {
    if (frame[i].is_tensor()) {
      Tensor made = changed(frame[i].tensor_ref());
      if (!made.is_same(frame[i].tensor_ref())) frame[i] = Value(std::move(made));
    } else if (frame[i].is_tensor_list()) {
      std::vector<Tensor> list = frame[i].tensor_list().vec();
      for (Tensor& t : list) t = changed(t);
      frame[i] = Value(std::move(list));
    }
  }
}

/// PyTorch runs an LSTM as one operator of its list (mkldnn_rnn_layer), unless cell and output differ in size.
bool is_one_lstm(const Operator& op, const Value* frame) {
  static const Operator* lstm = find_operator("aten::lstm.input");
  if (&op != lstm || !frame[1].is_tensor_list()) return false;
  std::vector<Tensor> hx = frame[1].tensor_list().vec();
  return hx.size() == 2 && hx[0].dim() > 0 && hx[1].dim() > 0 && hx[0].sym_size(-1).same(hx[1].sym_size(-1)) &&
         is_eligible(frame[0].tensor_ref());
}

/// What a library has registered for this layer; null where it has nothing, or nothing on the CPU takes part.
std::shared_ptr<const LibraryKernel> kernel_of_library(const Operator& op, const Value* frame) {
  if (!op.library_kernels()) return nullptr;
  bool on_cpu = false;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](const TensorImpl* t) { on_cpu |= t->device().type == DeviceType::CPU; });
  return on_cpu ? op.library_kernels()->find(KernelKey::AutocastCPU) : nullptr;
}

std::optional<Cast> cast_of(const Operator& op, const Value* frame) {
  if (kernel_of_library(op, frame)) return std::nullopt;
  std::optional<Cast> found = casts().find(op);
  if (!found && is_one_lstm(op, frame)) found = Cast{CastPolicy::Short, std::nullopt};
  return found;
}

void autocast_layer(const Operator& op, DispatchKeySet keys, Value* frame) {
  std::shared_ptr<const LibraryKernel> kernel = kernel_of_library(op, frame);
  if (kernel && kernel->function) {  // it runs with autocast on: what it casts and what it calls without is up to it
    check_region_recorded(op);
    return run_library_kernel(*kernel, op, frame);
  }
  std::optional<Cast> found = cast_of(op, frame);
  // A composite comes apart further in, and its parts are cast there.
  if (!found && op.definition().composite) return op.redispatch(keys.below(DispatchKey::Autocast), frame);
  ExcludeKeys off(DispatchKey::Autocast);
  if (!found) return op.redispatch(keys.below(DispatchKey::Autocast), frame);
  cast_arguments(op, target(*found, op, frame), frame);
  op.call(frame);
}

/// Functions are run further in, with autocast as it is.
void autocast_functions(const Operator& op, DispatchKeySet keys, Value* frame) {
  op.redispatch(keys.below(DispatchKey::Autocast), frame);
}

const RegisterLayer kAutocast(DispatchKey::Autocast, autocast_layer);
const RegisterFunctionLayer kAutocastFunctions(DispatchKey::Autocast, autocast_functions);

}  // namespace

bool autocast_ahead(const Operator& op, Value* frame) {
  if (!op.keys(frame).has(DispatchKey::Autocast)) return false;
  std::optional<Cast> found = cast_of(op, frame);
  if (found) {
    ExcludeKeys off(DispatchKey::Autocast);
    cast_arguments(op, target(*found, op, frame), frame);
  }
  return found.has_value();
}

AutocastState autocast_state(DeviceType device) {
  if (device == DeviceType::CPU) return g_cpu;
  return {false, device == DeviceType::CUDA ? DType::Float16 : DType::BFloat16};
}

void set_autocast_enabled(DeviceType device, bool enabled) {
  check<NotImplementedError>(device == DeviceType::CPU || !enabled, "autocast on ", device, " is not in Umbra yet");
  if (device != DeviceType::CPU) return;
  g_cpu.enabled = enabled;
  DispatchState& state = dispatch_state();
  state.include = enabled ? state.include | DispatchKey::Autocast : state.include - DispatchKey::Autocast;
}

void set_autocast_dtype(DeviceType device, DType dtype) {
  if (device == DeviceType::CPU) g_cpu.dtype = dtype;
  else
    check<NotImplementedError>(dtype == autocast_state(device).dtype, "autocast on ", device, " is not in Umbra yet");
}

bool is_autocast_cache_enabled() { return g_cache_enabled; }
void set_autocast_cache_enabled(bool enabled) { g_cache_enabled = enabled; }
void clear_autocast_cache() { cast_leaves().clear(); }
int autocast_increment_nesting() { return ++g_nesting; }
int autocast_decrement_nesting() { return --g_nesting; }

void set_autocast_observer(AutocastObserver observer) { g_observer = observer; }
void autocast_region_begins(DeviceType device, AutocastState state, bool cache) {
  regions().push_back(g_observer.begins && g_observer.begins(device, state, cache));
}
void autocast_region_ends() {
  bool recorded = regions().back();
  regions().pop_back();
  if (recorded) g_observer.ends();
}

AutocastAside::AutocastAside() { regions().push_back(true); }
AutocastAside::~AutocastAside() { regions().pop_back(); }

AutocastScope::AutocastScope(DType dtype, bool enabled, bool cache) : before_(g_cpu), cache_before_(g_cache_enabled) {
  autocast_region_begins(DeviceType::CPU, {enabled, dtype}, cache);
  set_autocast_dtype(DeviceType::CPU, dtype);
  set_autocast_enabled(DeviceType::CPU, enabled);
  g_cache_enabled = cache;
  autocast_increment_nesting();
}
AutocastScope::~AutocastScope() {
  if (autocast_decrement_nesting() == 0) clear_autocast_cache();
  g_cache_enabled = cache_before_;
  set_autocast_dtype(DeviceType::CPU, before_.dtype);
  set_autocast_enabled(DeviceType::CPU, before_.enabled);
  autocast_region_ends();
}

void set_autocast_inputs(const Operator& op, DType dtype) { casts().set(op, dtype); }

}  // namespace umbra
