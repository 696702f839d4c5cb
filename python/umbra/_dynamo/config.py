"""Switches that torch has here. Those of fake tensors and of captures by torch.compile mean what they say; the others can be set and have no effect."""
from umbra._config_patch import patcher

fake_tensor_cache_enabled = True  # calls on fake tensors are counted from the first question on
fake_tensor_cache_crosscheck_enabled = False  # calls that were seen before are compared with what they gave then

suppress_errors = False  # where a backend fails the function runs as it is
verbose = False
_DEFAULT_LIMIT = 8
cache_size_limit = recompile_limit = _DEFAULT_LIMIT  # kinds of calls that one function is captured for; whichever of the two names is set counts
error_on_recompile = False  # a call of a second kind raises RecompileError
fail_on_recompile_limit_hit = False  # beyond the limit a call raises FailOnRecompileLimitHit; otherwise the function runs as it is
error_on_nested_fx_trace = True  # a compiled function inside of make_fx, symbolic tracing or torch.jit.trace is refused; otherwise it is a part of the trace
automatic_dynamic_shapes = True
capture_scalar_outputs = False  # numbers that only data tell are captured as symbols, as with `fullgraph`; otherwise the function runs as it is
capture_dynamic_output_shape_ops = False  # so are sizes

# Of no effect here: functions are captured by running them, modules as they are, calls are guarded by what was read, and there are no several processes.
optimize_ddp = inline_inbuilt_nn_modules = guard_nn_modules = skip_nnmodule_hook_guards = True
skip_fwd_side_effects_in_bwd_under_checkpoint = trace_autograd_ops = False
accumulated_recompile_limit = accumulated_cache_size_limit = 256
skip_code_recursive_on_recompile_limit_hit = skip_code_recursive_on_cache_limit_hit = True
assume_static_by_default = dynamic_shapes = force_parameter_static_shapes = force_nn_module_property_static_shapes = True
specialize_int = specialize_float = allow_unspec_int_on_nn_module = allow_ignore_mark_dynamic = allow_rnn = prepare_freezing = False
prefer_deferred_runtime_asserts_over_guards = do_not_emit_runtime_asserts = False
capture_autograd_function = capture_func_transforms = capture_sparse_compute = trace_numpy = enable_trace_contextlib = True
rewrite_assert_with_torch_assert = enable_faithful_generator_behavior = use_lazy_graph_module = report_guard_failures = True
replay_record_enabled = cprofile = nested_graph_breaks = enable_cpp_symbolic_shape_guards = allow_empty_graphs = False
log_compilation_metrics = enable_cpp_guard_manager = skip_torchrec = True
traceable_tensor_subclasses, nontraceable_tensor_subclasses = set(), set()

patch = patcher(__name__)
