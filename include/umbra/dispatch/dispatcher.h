// The thread's dispatch state: which layers are switched on or off, and the stack of modes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "umbra/core/intrusive.h"
#include "umbra/dispatch/operator.h"

namespace UMBRA_API umbra {

/// Keys that every call of this thread gets, and keys that it skips.
struct DispatchState {
  DispatchKeySet include, exclude;
};
DispatchState& dispatch_state();

/// `ExcludeKeys guard(DispatchKey::Autograd);` switches layers off for a scope.
class ExcludeKeys {
 public:
  explicit ExcludeKeys(DispatchKeySet keys) : before_(dispatch_state().exclude) { dispatch_state().exclude |= keys; }
  ~ExcludeKeys() { dispatch_state().exclude = before_; }
  ExcludeKeys(const ExcludeKeys&) = delete;

 private:
  DispatchKeySet before_;
};

/// Switches layers on for a scope.
class IncludeKeys {
 public:
  explicit IncludeKeys(DispatchKeySet keys) : before_(dispatch_state()) {
    dispatch_state().include |= keys;
    dispatch_state().exclude = dispatch_state().exclude - keys;
  }
  ~IncludeKeys() { dispatch_state() = before_; }
  IncludeKeys(const IncludeKeys&) = delete;

 private:
  DispatchState before_;
};

/// Puts the whole state back when a scope ends: for calls into unknown code.
class SaveDispatchState {
 public:
  SaveDispatchState() : before_(dispatch_state()) {}
  ~SaveDispatchState() { dispatch_state() = before_; }
  SaveDispatchState(const SaveDispatchState&) = delete;
  const DispatchState& before() const { return before_; }

 private:
  DispatchState before_;
};

/// Something that sees the calls of its layer while it is on the thread's stack: FakeMode, a tracer, a user's mode.
///
/// Modes of users are asked first, the last entered before the others; then functionalisation, recording and fake, each
/// by its last entered mode. So what a user's mode does instead of a call is recorded, wherever the mode was entered.
class Mode : public RefCounted {
 public:
  explicit Mode(DispatchKey key) : key_(key) {}
  DispatchKey key() const { return key_; }

 private:
  DispatchKey key_;
};

/// A mode of one's own: sees every call below autograd while it is entered. Inside its handler it is off and those
/// outside it are on, so that what it calls is seen by them, recorded and faked.
///
///     struct Count : DispatchMode {
///       int calls = 0;
///       bool handle(const Operator& op, Value* frame) override { return ++calls, op.call(frame), true; }
///     };
///     auto count = make_counted<Count>();
///     EnterMode scope(count);
class DispatchMode : public Mode {
 public:
  DispatchMode() : Mode(DispatchKey::UserMode) {}
  /// Puts the results of the call into the frame. False passes it on to the tensor classes among the arguments.
  virtual bool handle(const Operator& op, Value* frame) = 0;
};

/// The innermost (last entered) mode of a layer on this thread, or null.
Mode* active_mode(DispatchKey key);
const std::vector<IntrusivePtr<Mode>>& mode_stack();

/// Enters a mode for a scope; leaves it however the scope ends.
class EnterMode {
 public:
  explicit EnterMode(IntrusivePtr<Mode> mode);
  ~EnterMode();
  EnterMode(const EnterMode&) = delete;

 private:
  const Mode* mode_;
  size_t depth_;
  DispatchState before_;
};
/// For callers without scopes (Python's __enter__ and __exit__).
void push_mode(IntrusivePtr<Mode> mode);
void pop_mode(const Mode* mode);

/// Takes the innermost mode of a layer off the stack for a scope: what runs inside sees the next one out, if any.
class WithoutMode {
 public:
  explicit WithoutMode(DispatchKey key);
  ~WithoutMode();
  WithoutMode(const WithoutMode&) = delete;

 private:
  IntrusivePtr<Mode> mode_;
  size_t position_ = 0;
  DispatchState before_;
};

/// For a layer above autograd that has recorded a call already: until the scope ends, users' modes entered inside
/// `mode` may look at calls, but a call that one of them does not pass on as it is, is refused.
class ModesMayOnlyLook {
 public:
  explicit ModesMayOnlyLook(const Mode* mode);
  ~ModesMayOnlyLook();
  ModesMayOnlyLook(const ModesMayOnlyLook&) = delete;

 private:
  bool before_;
};

/// Takes all modes of a layer off the stack for a scope.
class WithoutModes {
 public:
  explicit WithoutModes(DispatchKey key) {
    while (active_mode(key)) off_.push_back(std::make_unique<WithoutMode>(key));
  }
  ~WithoutModes() {
    while (!off_.empty()) off_.pop_back();
  }
  WithoutModes(const WithoutModes&) = delete;

 private:
  std::vector<std::unique_ptr<WithoutMode>> off_;
};

/// Hands a call to the handlers of the tensor classes among its arguments, with all modes as they are: what the
/// handlers do with the tensors inside is seen by them.
void pass_to_subclass(const Operator& op, DispatchKeySet keys, Value* frame);

/// The function that serves every operator at a layer. Registered once, at start-up, by the layer.
struct RegisterLayer {
  RegisterLayer(DispatchKey key, LayerFunction function);
};
/// The same for operators that take functions: what the layer does with a function, it learns once. A layer without one
/// refuses them.
struct RegisterFunctionLayer {
  RegisterFunctionLayer(DispatchKey key, LayerFunction function);
};

/// Runs an operator from its definition, on a backend or (none) without data: `make` allocates outputs, with memory or
/// without.
using MakeTensor = Tensor (*)(const TensorSpec& spec, void* context);
void run_definition(const Operator& op, Value* frame, std::optional<Backend> backend, MakeTensor make, void* context);

}  // namespace umbra
