// Short-time Fourier transforms: frames of a signal, each transformed, and back.

#include "ops/common/shape.h"
#include "ops/common/warn_once.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using OptionalInt = std::optional<int64_t>;
using OptionalBool = std::optional<bool>;
using Text = std::optional<std::string>;

/// A tensor's class as PyTorch's messages name it.
std::string class_name(const Tensor& t) {
  bool named = !t.is_complex() && t.dtype() != DType::Bool;
  return named ? concat("torch.", kernel_name(t.dtype()), "Tensor") : concat("CPU", kernel_name(t.dtype()), "Type");
}

template <class T> std::string shown(const std::optional<T>& value) {
  return value ? std::to_string(*value) : std::string("None");
}

/// The call that a message is about, up to its window.
std::string text_of_call(const char* name, const Tensor& self, int64_t n_fft, int64_t hop, int64_t window_length,
                         const Tensor& window) {
  std::string shape = window.defined() ? concat(class_name(window), "{", window.sym_sizes(), "}") : "None";
  return concat(name, "(", class_name(self), self.sym_sizes(), ", n_fft=", n_fft, ", hop_length=", hop,
                ", win_length=", window_length, ", window=", shape);
}

struct Framing {
  int64_t n_fft, hop, window_length;
  Tensor window;
  bool normalized;
  OptionalBool onesided, complex_result, align;

  /// How messages begin: the call with its arguments.
  std::string text(const Tensor& self) const {
    return concat(text_of_call("stft", self, n_fft, hop, window_length, window),
                  ", normalized=", static_cast<int>(normalized), ", onesided=", shown(onesided),
                  ", return_complex=", shown(complex_result), ", align_to_window=", shown(align), ") : ");
  }
};

/// A window in the middle of n_fft zeros.
Tensor centered_window(const Tensor& window, int64_t window_length, int64_t n_fft) {
  int64_t left = (n_fft - window_length) / 2;
  return constant_pad_nd(window, {left, n_fft - window_length - left}, 0);
}

Tensor centered_signal(const Tensor& self, int64_t n_fft, const std::string& mode) {
  SymShape sizes(self.sym_sizes()), wide;
  int64_t extra = 3 - self.dim();
  for (int64_t i = 0; i < extra; ++i) wide.push_back(1);
  for (SymInt s : sizes) wide.push_back(s);
  Tensor padded = pad(self.view(wide), {n_fft / 2, n_fft / 2}, mode);
  return padded.view(SymShape(padded.sym_sizes().drop_front(extra)));
}

/// What PyTorch says once of calls that it advises against.
void warn_without_window(const Framing& f) {
  static std::atomic<bool> told = false;
  if (!f.window.defined())
    warn_once(
        told,
        "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. ",
        "Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.",
        "To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, ",
        "device=<device>)`.");
}
void warn_of_parts() {
  static std::atomic<bool> told = false;
  warn_once(told, "stft with return_complex=False is deprecated. In a future pytorch release, stft will ",
            "return complex tensors for all inputs, and return_complex=False will raise an error.\n",
            "Note: you can still call torch.view_as_real on the complex output to recover the old return format.");
}

Tensor stft_parts(const Tensor& self, Framing f, bool center, const std::string& mode) {
  check(!f.window.defined() || f.window.device() == self.device(),
        "stft input and window must be on the same device but got self on ", self.device(), " and window on ",
        f.window.defined() ? f.window.device() : self.device());
  warn_without_window(f);
  check(!center || !f.align, "stft only supports align_to_window for center = False.");
  bool complex_input = self.is_complex() || (f.window.defined() && f.window.is_complex());
  check(f.complex_result || complex_input,
        "stft requires the return_complex parameter be given for real inputs, and will further require that "
        "return_complex=True in a future PyTorch release.");
  bool complex_result = f.complex_result.value_or(true);
  if (!complex_result) warn_of_parts();
  auto require = [&](bool condition, const auto&... text) {
    if (!condition) fail(f.text(self), text...);
  };
  check<NotImplementedError>(self.is_floating_point() || self.is_complex(), f.text(self),
                             "expected a tensor of floating point or complex values");
  require(self.dim() == 1 || self.dim() == 2, "expected a 1D or 2D tensor");
  Tensor x = self.dim() == 1 ? self.unsqueeze(0) : self;
  if (center) x = centered_signal(x, f.n_fft, mode);
  SymInt length = x.sym_size(1);
  require(f.n_fft > 0 && f.n_fft <= length, "expected 0 < n_fft < ", length, ", but got n_fft=", f.n_fft);
  require(f.hop > 0, "expected hop_length > 0, but got hop_length=", f.hop);
  require(f.window_length > 0 && f.window_length <= f.n_fft,
          "expected 0 < win_length <= n_fft, but got win_length=", f.window_length);
  if (f.window.defined())
    require(f.window.dim() == 1 && f.window.sym_size(0) == f.window_length,
            "expected a 1D window tensor of size equal to win_length=", f.window_length, ", but got window with size ",
            f.window.sym_sizes());
  Tensor window = f.window;
  if (f.window_length < f.n_fft) {
    if (!window.defined()) window = ones({f.window_length}, self.options());
    window = centered_window(window, f.window_length, f.n_fft);
  }
  if (!center && f.align.value_or(false)) {
    int64_t amount = (f.n_fft - f.window_length) / 2;
    x = pad(x, {amount, amount}, mode);
  }
  // Frames overlap: they are views of one signal.
  SymInt frames = (x.sym_size(1) - f.n_fft) / f.hop + 1;
  x = x.as_strided({x.sym_size(0), frames, SymInt(f.n_fft)},
                   {x.sym_stride(0), x.sym_stride(1) * f.hop, x.sym_stride(1)});
  if (window.defined()) x = x.mul(window);
  bool onesided = f.onesided.value_or(!x.is_complex());
  Text norm = f.normalized ? Text("ortho") : Text();
  check(!onesided || !x.is_complex(), "Cannot have onesided output if window or input is complex");
  Tensor out = onesided ? fft_rfft(x, std::nullopt, -1, norm) : fft_fft(x, std::nullopt, -1, norm);
  out.transpose_(1, 2);
  if (self.dim() == 1) out.squeeze_(0);
  return complex_result ? out : view_as_real(out);
}

UMBRA_OPERATOR(
    "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
    "normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor")
    .composite([](const Tensor& self, int64_t n_fft, OptionalInt hop, OptionalInt win, const Tensor& window,
                  bool normalized, OptionalBool onesided, OptionalBool return_complex, OptionalBool align) {
      Framing f{n_fft, hop.value_or(n_fft >> 2), win.value_or(n_fft), window, normalized, onesided, return_complex,
                align};
      return stft_parts(self, f, false, "constant");
    });

UMBRA_OPERATOR(
    "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
    "center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? return_complex=None, "
    "bool? align_to_window=None) -> Tensor")
    .composite([](const Tensor& self, int64_t n_fft, OptionalInt hop, OptionalInt win, const Tensor& window,
                  bool center, const std::string& mode, bool normalized, OptionalBool onesided,
                  OptionalBool return_complex, OptionalBool align) {
      Framing f{n_fft, hop.value_or(n_fft >> 2), win.value_or(n_fft), window, normalized, onesided, return_complex,
                align};
      return stft_parts(self, f, center, mode);
    });

/// The sum of frames [batch, frames, n] that begin `hop` elements after each other.
Tensor overlap_added(const Tensor& frames, SymInt length, int64_t n, int64_t hop) {
  return unfold_backward(frames, {frames.sym_size(0), length}, 1, n, hop);
}

/// What istft is told of the frames; `window` may be absent.
struct Inverse {
  int64_t n_fft, hop, win;
  Tensor window;
  bool center, normalized;
  OptionalBool one_side;
  OptionalInt length;
  bool return_complex;

  /// How messages begin: the call with its arguments.
  std::string text(const Tensor& self) const {
    return concat(text_of_call("istft", self, n_fft, hop, win, window), ", center=", static_cast<int>(center),
                  ", normalized=", static_cast<int>(normalized), ", onesided=", shown(one_side),
                  ", length=", shown(length), ", return_complex=", static_cast<int>(return_complex), ") ");
  }

  bool onesided(SymInt bins) const { return one_side ? *one_side : bins != n_fft; }
};

void check_kinds(const Tensor& self, const Tensor& window) {
  check(!window.defined() || window.device() == self.device(),
        "istft input and window must be on the same device but got self on ", self.device(), " and window on ",
        window.defined() ? window.device() : self.device());
  check<TypeError>(self.is_complex(),
                   "istft requires a complex-valued input tensor matching the output from stft with "
                   "return_complex=True.");
}

/// `pairs`: the input as real numbers, whose dimensions messages count.
void check_sizes(const Tensor& self, const Tensor& pairs, SymInt bins, const Inverse& f) {
  const Tensor& window = f.window;
  auto require = [&](bool condition, const auto&... text) {
    if (!condition) fail(f.text(self), ": ", text...);
  };
  require(self.sym_numel() != 0, "input tensor cannot be empty.");
  require(self.dim() == 2 || self.dim() == 3, "expected a tensor with 3 or 4 dimensions, but got ", pairs.dim());
  bool onesided = f.onesided(bins);
  int64_t wanted = onesided ? f.n_fft / 2 + 1 : f.n_fft;
  require(bins == wanted, "expected the frequency dimension (3rd to the last) of the input tensor to match ",
          onesided ? "n_fft / 2 + 1 when onesided=True, but got " : "n_fft when onesided=False, but got ", bins);
  require(f.hop > 0 && f.hop <= f.win, "expected 0 < hop_length <= win_length");
  require(f.win > 0 && f.win <= f.n_fft, "expected 0 < win_length <= n_fft");
  require(!window.defined() || (window.dim() == 1 && window.sym_size(0) == f.win),
          "Invalid window shape. window has to be 1D and length of `win_length`");
}

/// The frames in time, [batch, frames, n_fft], not yet weighted.
Tensor inverse_frames(const Tensor& self, const Tensor& pairs, const Tensor& window, const Inverse& f) {
  bool onesided = f.onesided(self.sym_size(-2));
  Tensor x = view_as_complex((self.dim() == 2 ? pairs.unsqueeze(0) : pairs).transpose(1, 2));
  Text norm = f.normalized ? Text("ortho") : Text();
  if (f.return_complex) {
    check(!onesided, "Cannot have onesided output if window or input is complex");
    return fft_ifft(x, std::nullopt, -1, norm);
  }
  check(!window.is_complex(), "Complex windows are incompatible with return_complex=False");
  if (!onesided) x = x.slice(-1, 0, f.n_fft / 2 + 1);
  return fft_irfft(x, f.n_fft, -1, norm);
}

/// Refuses windows whose squares add up to nothing somewhere: by that sum the signal is divided.
void check_envelope(const Tensor& self, const Tensor& envelope, const Inverse& f) {
  Tensor vanishes = envelope.abs().min().lt(1e-11);
  const char* message = "window overlap add min: 1";
  bool captured = vanishes.is_fake() || active_mode(DispatchKey::Fake);  // then the run tells
  if (captured) _assert_async(vanishes.logical_not(), message);
  else
    check(!equal(vanishes, vanishes.new_ones({}, {.dtype = DType::Bool})), f.text(self), message,
          "\n[ CPUBoolType{} ]");
}

UMBRA_OPERATOR(
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor")
    .composite([](const Tensor& self, int64_t n_fft, OptionalInt hop_length, OptionalInt win_length,
                  const Tensor& given, bool center, bool normalized, OptionalBool one_side, OptionalInt length,
                  bool return_complex) {
      int64_t hop = hop_length.value_or(n_fft >> 2), win = win_length.value_or(n_fft);
      static std::atomic<bool> told = false;
      if (!given.defined())
        warn_once(told, "A window was not provided. A rectangular window will be applied.Please provide the same ",
                  "window used by stft to make the inversion lossless.To suppress this warning and use a rectangular ",
                  "window, explicitly set `window=torch.ones(n_fft, device=<device>)`.");
      Inverse f{n_fft, hop, win, given, center, normalized, one_side, length, return_complex};
      check_kinds(self, given);
      Tensor pairs = view_as_real(self.resolve_conj());
      SymInt frames = pairs.sym_size(-2), bins = pairs.sym_size(-3), signal = (frames - 1) * hop + n_fft;
      check_sizes(self, pairs, bins, f);
      Tensor window =
          given.defined() ? given : ones({win}, {.dtype = real_type(self.dtype()), .device = self.device()});
      if (win != n_fft) window = centered_window(window, win, n_fft);
      // Overlapping frames are added up, and divided by the sum of the windows' squares.
      Tensor x = inverse_frames(self, pairs, window, f);
      Tensor weighted = x.mul(window.view({1, 1, n_fft}));
      Tensor y = overlap_added(weighted, signal, n_fft, hop);
      Tensor envelope = overlap_added(window.pow(2).expand({1, frames, n_fft}), signal, n_fft, hop);
      int64_t start = center ? n_fft / 2 : 0;
      SymInt end = length ? SymInt(start + *length) : center ? signal - n_fft / 2 : signal;
      y = y.slice(1, start, end);
      envelope = envelope.slice(1, start, end);
      check_envelope(self, envelope, f);
      y = y.div(envelope);
      if (self.dim() == 2) y = y.squeeze(0);
      if (end > signal) y = constant_pad_nd(y, {SymInt(0), end - signal}, 0);
      return y;
    });

}  // namespace
}  // namespace umbra::ops
