"""Options: what is accepted has its effect, what is not built is refused by name, what torch does not have is a TypeError."""
import ast
import io
import pathlib
import warnings

import pytest

import umbra as torch
from umbra import nn
from umbra.export import Dim, export
from umbra.func import functional_call
from umbra.fx.experimental.proxy_tensor import make_fx

PACKAGE = pathlib.Path(torch.__file__).parent


# ---- no parameter is dropped ----

# Parameters that have nothing to change here, by function or everywhere, and why.
NOTHING_TO_CHANGE = {
    "_dynamo/utils.py is_compile_supported": "nothing is compiled to machine code", "hub.py tqdm.__init__": "a bar of progress that shows nothing",
    "exception": "of __exit__", "types": "of handlers", "memo": "copies share the object", "protocol": "of pickle", "_stacklevel": "of warnings",
    "_": "what a callback is given and does not need", "foreach": "one implementation, which gives the values of all",
    **{f"_accelerator.py {name}": "there is no such device" for name in ("refused", "zero", "no", "nowhere", "no_statistics")},
    **{f"{place}": "there is no such device" for place in (
        "accelerator.py current_accelerator", "accelerator.py memory_allocated", "accelerator.py memory_stats", "cuda/__init__.py device_memory_used",
        "backends/cudnn.py is_acceptable", "backends/mps.py is_macos_or_newer", "backends/mps.py is_macos13_or_newer",
        "optim/optimizer.py _default_to_fused_or_foreach")},
    **{f"distributed/{place}": "there is one process: it waits for nobody, and nothing travels" for place in (
        "_group.py Work.wait", "_group.py ProcessGroup.barrier", "_group.py ProcessGroup.allreduce", "_group.py new_group",
        "algorithms/join.py Join.__exit__", "algorithms/join.py JoinHook.post_hook",
        *(f"_collectives.py {name}" for name in ("barrier", "monitored_barrier", "all_gather_object", "broadcast_object_list", "gather_object",
                                                 "scatter_object_list")),
        *(f"_functional_collectives.py {name}" for name in ("broadcast", "all_reduce", "all_reduce_coalesced", "all_gather_tensor",
                                                            "reduce_scatter_tensor", "all_to_all_single")))},
    **{f"nn/parallel/distributed.py DistributedDataParallel.{name}": "there is one process: how gradients travel changes nothing" for name in (
        "__init__", "join", "join_hook")},
    **{f"utils/data/_utils/collate.py collate_{kind}_fn": "what goes into containers hands it on" for kind in (
        "tensor", "numpy_scalar", "float", "int", "str")},
    "utils/data/_iterators.py _BaseDataLoaderIter._reset": "first_iter: for those that derive from it",
    "utils/data/datapipes/iter/combining.py _ForkerIterDataPipe.get_length_by_instance": "each child has all samples",
    "onnx/__init__.py export": "verbose prints, artifacts_dir is of reports, which are refused; the others change the form of a file, not what it computes",
    "cpu/__init__.py current_stream": "there is one", "compiler.py set_stance.__init__": "skip_guard_eval_unsafe: guards are cheap, and always evaluated",
    "autograd/profiler_util.py EventList.table": "there is no column of sources",
    "autograd/profiler.py profile.__init__": "use_kineto: one implementation notes the calls",
    "utils/cpp_extension.py BuildExtension.with_options": "refused when it is made", "utils/cpp_extension.py BuildExtension.__init__": "refused",
    "utils/tensorboard/plugins.py pr_curve_raw": "the counts have the weights in them",
    "jit/_annotations.py annotate": "for the compiler of TorchScript",
    **{f"jit/_library_images.py {kind}max_pool{n}d{variant}": "chosen by it" for kind in ("", "adaptive_", "fractional_") for n in (1, 2, 3)
       for variant in ("", "_with_indices")},
    **{f"jit/_library_tensors.py {name}{variant}": "chosen by it" for name in ("unique", "unique_consecutive")
       for variant in ("", "_counts", "_inverse", "_both")},
    "jit/_library_tensors.py lu": "chosen by it", "jit/_library_tensors.py lu_with_infos": "chosen by it",
    "jit/_library_functions.py gumbel_softmax": "eps: without effect, as in torch",
    "jit/_library.py _Autocast.__exit__": "of with statements", "jit/_library.py _Autocast.__init__": "cache_enabled changes no value",
    "jit/_library.py _NoGrad.__exit__": "of with statements", "jit/_library.py _RecordFunction.__exit__": "of with statements",
    "nn/modules/lazy.py LazyModuleMixin._lazy_load_hook": "of hooks", "nn/utils/spectral_norm.py note": "of hooks",
    "nn/utils/prune.py Identity.compute_mask": "the mask does not follow from the elements",
    "nn/utils/prune.py CustomFromMask.compute_mask": "the mask does not follow from the elements",
    "_functorch/aot_autograd.py aot_function": "enable_log changes no result; the rest is ahead-of-time autograd's",
    "_functorch/aot_autograd.py _compile_module": "as aot_function", "_functorch/aot_autograd.py aot_module_simplified": "as aot_function",
    "_functorch/aot_export.py aot_export_joint_simple": "num_params_buffers changes no result",
    "_library/autograd.py Generated.forward": "the call has them", "_modules.py _Finder.find_spec": "of importers",
    "_library/opcheck.py test_schema": "no tolerances", "_library/opcheck.py test_autograd_registration": "no tolerances",
    "_library/opcheck.py test_faketensor": "no tolerances",
    "_tensor.py _array_wrap": "of NumPy", "_tensor.py _dlpack": "of DLPack: the version",
    "autograd/graph.py save_on_cpu.__init__": "there is no accelerator's memory to pin",
    "compat.py _AliasLoader.create_module": "of importers", "compat.py _AliasFinder.find_spec": "of importers",
    **{f"distributions/{file}.py {name}Transform.log_abs_det_jacobian": "follows from one side of it, or from neither"
       for file, name in [("transforms", n) for n in ("Affine", "CumulativeDistribution", "Exp", "Sigmoid", "Softplus", "Tanh")]
       + [("_event_transforms", n) for n in ("CorrCholesky", "Reshape")]},
    "distributions/utils.py lazy_property.__get__": "of descriptors", "distributions/von_mises.py VonMises.expand": "made anew",
    "cuda.py is_bf16_supported": "there is no CUDA", "cuda.py manual_seed": "there is no CUDA",
    **{f"export/{place}": "the version of operators: nothing goes by it, as in torch" for place in (
        "__init__.py save", "pt2_archive/_package.py package_pt2", "pt2_archive/_package.py load_pt2")},
    "export/_trace.py export": "strict: there is one way to capture", "export/_trace.py _export": "what 2.4 called it",
    "fx/_symbolic_trace.py Tracer.is_leaf_module": "for subclasses", "fx/_symbolic_trace.py Tracer.getattr": "for subclasses",
    "fx/experimental/proxy_tensor.py make_fx": "_disable_torch_fn_metadata_mode: there is no such metadata",
    "fx/experimental/symbolic_shapes.py ShapeEnv.create_symintnode": "a symbol is its own node",
    "fx/experimental/_unbacked_bindings.py resolve_unbacked_bindings": "symbols keep their names",
    **{f"fx/experimental/sym_node.py SymNode.{name}": "file and line: where it is asked is found out anyway"
       for name in ("guard_int", "guard_float", "guard_bool", "guard_size_oblivious", "guard_or_false", "guard_or_true", "expect_true",
                    "statically_known_true")},
    "fx/experimental/symbolic_shapes.py ShapeEnv.format_guards": "guards have one form", "fx/experimental/_size_questions.py expect_true": "of stacks",
    "fx/graph.py find_nodes": "the order is the graph's always", "fx/passes/split_module.py split_module": "root_m: attributes are the graph module's",
    "nn/functional/_pooling.py with_indices": "the places are always given",
    "fx/interpreter.py Interpreter.placeholder": "for subclasses", "fx/interpreter.py Interpreter.get_attr": "for subclasses",
    "fx/interpreter.py Interpreter.output": "for subclasses", "fx/interpreter.py Interpreter.map_nodes_to_values": "for subclasses",
    "fx/interpreter.py Transformer.placeholder": "for subclasses", "fx/interpreter.py _TransformerTracer.is_leaf_module": "for subclasses",
    "nn/attention/__init__.py sdpa_kernel": "one kernel a device", "nn/attention/flex_attention.py noop_mask": "everything passes", "nn/modules/linear.py Identity.__init__": "as torch's",
    "nn/modules/transformer.py TransformerEncoder.__init__": "there is no fast path that they are about",
    "nn/utils/spectral_norm.py SpectralNormStateDictHook.__call__": "as hooks are called",
    "nn/utils/spectral_norm.py SpectralNormLoadStateDictPreHook.__call__": "as hooks are called",
    "nn/modules/conv.py _LazyConvXdMixin.initialize_parameters": "output_size is the call's own",
    "storage.py _is_pinned": "there is no device to pin memory for",
    "storage.py TypedStorage.__init__": "_internal: there is no warning to leave out", "random.py fork_rng": "how errors are worded", "utils/_pytree.py LeafSpec.__repr__": "a leaf is one line",
    "_subclasses/fake_tensor.py FakeTensorConverter.from_real_tensor": "trace: there is no log of it",
    "_subclasses/fake_tensor.py FakeTensorMode.from_tensor": "trace: there is no log of it",
}


def _functions(node, prefix=""):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child
        inner = f"{child.name}." if isinstance(child, ast.ClassDef) else "" if isinstance(child, ast.FunctionDef) else prefix
        yield from _functions(child, inner)


def _only_raises(function):
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return not body or isinstance(body[-1], ast.Raise) and all(isinstance(s, (ast.Raise, ast.If)) for s in body)


def test_every_parameter_is_used_or_refused():
    dropped = []
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        for name, function in _functions(ast.parse(path.read_text())):
            if _only_raises(function) or f"{file} {name}" in NOTHING_TO_CHANGE:
                continue
            arguments = function.args
            # A positional `_` is nameless on purpose; `**_` would swallow keywords.
            given = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs if a.arg != "_"]
            given += [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]
            used = {n.id for statement in function.body for n in ast.walk(statement) if isinstance(n, ast.Name)}
            unused = [a for a in given if a not in used and a not in ("self", "cls") and a not in NOTHING_TO_CHANGE and not a.startswith("__")]
            dropped += [f"{file} {name}: {a}" for a in unused]
    assert not dropped, "\n".join(dropped)


# ---- refused by name ----

class Plus(nn.Module):
    def forward(self, x, other=1):
        return x + other


def not_built_calls():
    x = torch.ones(2, 2)
    program = export(Plus(), (x,))
    return {
        "proxy_module_inputs": lambda: make_fx(torch.sin, proxy_module_inputs=True),
        "decompose_custom_triton_ops": lambda: program.run_decompositions(decompose_custom_triton_ops=True),
        "hint_override": lambda: torch._dynamo.mark_dynamic(x, 0, hint_override=2),
        "colored": lambda: torch.fx.symbolic_trace(Plus()).print_readable(False, colored=True),
        "level": lambda: _dual_of_another_level(),
    }


def _dual_of_another_level():
    with torch.autograd.forward_ad.dual_level():
        torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1), level=5)


@pytest.mark.parametrize("option", not_built_calls())
def test_an_option_that_is_not_built_is_named(option):
    with pytest.raises(NotImplementedError, match=option):
        not_built_calls()[option]()


@pytest.mark.parametrize("call", [
    lambda: nn.Conv2d(1, 1, 1, output_padding=1), lambda: nn.ReLU(foo=1), lambda: torch.optim.AdamW([torch.ones(1)], decoupled_weight_decay=True),
    lambda: export(Plus(), (torch.ones(1),), foo=1), lambda: make_fx(torch.sin, foo=1), lambda: torch.random.fork_rng(foo=1),
    lambda: torch._dynamo.mark_dynamic(torch.ones(1), 0, foo=1), lambda: torch.compiler.disable(foo=1), lambda: nn.functional.relu(torch.ones(1), foo=1),
    lambda: torch.fx.symbolic_trace(Plus()).print_readable(False, foo=1), lambda: nn.modules.module.register_module_forward_hook(print, foo=1)])
def test_what_torch_does_not_have_is_a_type_error(call):
    with pytest.raises(TypeError):
        call()


# ---- accepted, with their effect ----

def test_old_names_of_reductions():
    a, b = torch.zeros(2), torch.full((2,), 3.0)
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert nn.functional.mse_loss(a, b, size_average=False).item() == 18
    with pytest.warns(UserWarning, match="reduction='none'"):
        assert nn.MSELoss(reduce=False)(a, b).tolist() == [9, 9]


def test_weighted_losses():
    a, b, w = torch.zeros(2), torch.tensor([1.0, 3.0]), torch.tensor([3.0, 1.0])
    assert nn.functional.mse_loss(a, b, weight=w).item() == 3  # (3 * 1 + 1 * 9) / 4


def test_loader_options_without_workers_are_checked_as_in_torch():
    loader = torch.utils.data.DataLoader
    for options in ({"prefetch_factor": 2}, {"persistent_workers": True}, {"multiprocessing_context": "spawn"}, {"timeout": -1}):
        with pytest.raises(ValueError):
            loader([1], **options)


def test_a_hook_that_is_always_called_sees_a_failed_forward():
    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("no")
    seen, module = [], Fails()
    module.register_forward_hook(lambda m, args, output: seen.append(("sometimes", output)))
    module.register_forward_hook(lambda m, args, output: seen.append(("always", output)), always_call=True)
    with pytest.raises(KeyError):
        module(1)
    assert seen == [("always", None)]


def test_an_interpreter_lets_values_go():
    class Watch(torch.fx.Interpreter):
        most = 0

        def run_node(self, n):
            self.most = max(self.most, len(self.env))
            return super().run_node(n)
    graph = torch.fx.symbolic_trace(lambda x: x.sin().cos().sin().cos())
    few, all_kept = Watch(graph), Watch(graph, garbage_collect_values=False)
    few.run(torch.ones(1)), all_kept.run(torch.ones(1))
    assert (few.most, all_kept.most) == (1, 5)


def test_marked_sizes_are_dynamic_in_export():
    x = torch.ones(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    module = export(Plus(), (x,)).module()
    assert module(torch.ones(7, 3)).shape == (7, 3)
    with pytest.raises(AssertionError):
        module(torch.ones(4, 5))
    torch._dynamo.mark_static(x)
    with pytest.raises(AssertionError):
        export(Plus(), (x,)).module()(torch.ones(7, 3))


class Config:
    pass


@pytest.mark.parametrize("value", [Config(), [Config()], {1}, torch.float32, print, 1j])
def test_an_input_that_export_does_not_know_is_refused(value):
    with pytest.raises(ValueError, match="Unsupported input type"):
        export(Plus(), (torch.ones(1), value))


def test_an_output_size_that_a_transposed_convolution_cannot_give_is_refused():
    module = nn.ConvTranspose2d(1, 2, 2, stride=2)
    assert module(torch.ones(1, 1, 2, 2), output_size=[5, 4]).shape == (1, 2, 5, 4)
    with pytest.raises(ValueError, match="valid sizes range from"):
        module(torch.ones(1, 1, 2, 2), output_size=[9, 9])
    with pytest.raises(ValueError, match="must have 2 or 4 elements"):
        module(torch.ones(1, 1, 2, 2), output_size=[9])


def test_options_of_factories_that_have_no_effect_are_refused():
    x = torch.ones(2)
    for call in (lambda **o: torch.ones(2, **o), lambda **o: torch.ones_like(x, **o), lambda **o: x.new_full((2,), 1.0, **o),
                 lambda **o: torch.arange(3, **o), lambda **o: torch.randn(2, **o)):
        with pytest.raises(RuntimeError, match="accelerator"):
            call(pin_memory=True)
        with pytest.raises(NotImplementedError, match="layout"):
            call(layout=torch.sparse_coo)
        call(pin_memory=False, layout=torch.strided)
    with pytest.raises(RuntimeError, match="accelerator"):
        torch.tensor([1.0], pin_memory=True)


def test_module_to_takes_what_torch_takes():
    module = nn.Linear(2, 2)
    assert module.to(tensor=torch.ones(1, dtype=torch.float64)).weight.dtype == torch.float64
    assert module.to("cpu", torch.float32, non_blocking=True).weight.dtype == torch.float32
    for call in (lambda: module.to(foo=1), lambda: module.to([1])):
        with pytest.raises(TypeError):
            call()


def test_load_places_tensors_by_a_function():
    file = io.BytesIO()
    torch.save({"a": torch.ones(2)}, file)
    seen = []
    file.seek(0)
    loaded = torch.load(file, map_location=lambda storage, where: (seen.append(where), storage)[1])
    assert loaded["a"].tolist() == [1, 1] and seen == ["cpu"]
    file.seek(0)
    with pytest.raises(TypeError, match="foo"):
        torch.load(file, foo=1)


def test_seeds_have_64_bits_and_generators_are_the_cpus():
    assert torch.Generator().manual_seed(-1).initial_seed() == 2**64 - 1
    for seed in (2**64, -2**63 - 1):
        with pytest.raises(ValueError, match="Overflow"):
            torch.manual_seed(seed)
    with pytest.raises(RuntimeError, match="cuda"):
        torch.Generator("cuda")


# ---- functional_call ----

def test_functional_call_checks_names_when_strict():
    module, w = nn.Linear(2, 2), torch.ones(2, 2)
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'bias'"):
        functional_call(module, {"weight": w}, (w,), strict=True)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'foo'"):
        functional_call(module, {"weight": w, "bias": w[0], "foo": w}, (w,), strict=True)
    with pytest.raises(TypeError, match="not an instance"):
        functional_call(module, {"weight": 3}, (w,))
    functional_call(module, {"foo": w}, (w,))
    assert not hasattr(module, "foo")


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


def test_functional_call_replaces_tied_weights_together():
    module, w = Tied(), torch.ones(2, 2)
    assert functional_call(module, {"a.weight": w}, (w,)).tolist() == [[4, 4], [4, 4]]
    assert functional_call(module, {"a.weight": w, "b.weight": w}, (w,), strict=True).tolist() == [[4, 4], [4, 4]]
    with pytest.raises(ValueError, match="which are tied"):
        functional_call(module, {"a.weight": w, "b.weight": w * 2}, (w,))
    with pytest.raises(RuntimeError, match="Missing"):
        functional_call(module, {"a.weight": w}, (w,), strict=True, tie_weights=False)
    assert module.a.weight is module.b.weight


# ---- the cache of compiled functions ----

def test_plain_arguments_are_told_apart_by_type_and_value():
    from umbra.functorch.compile import aot_function
    graphs = []
    compiled = aot_function(lambda x, value: (x, value), lambda graph, _: graphs.append(graph) or graph)
    values = [1, True, 1.0, "1", 0.0, -0.0, float("nan"), None, 2**70]
    for count, value in enumerate(values, 1):
        for _ in range(2):
            result = compiled(torch.ones(1), value)[1]
            assert type(result) is type(value) and repr(result) == repr(value) and len(graphs) == count


def test_dims_are_refused_where_nothing_can_be_dynamic():
    for value in (2.5, "a", None):
        with pytest.raises(Exception, match="non-tensor type"):
            export(Plus(), (torch.ones(3), value), dynamic_shapes={"x": None, "other": {0: Dim("d")}})


def test_stand_ins_do_not_mix_with_other_tensors_unless_that_is_allowed():
    weight = torch.ones(3)
    for mode in ("fake", "symbolic"):
        with pytest.raises(AssertionError, match="allow_non_fake_inputs"):
            make_fx(lambda x: x * weight, tracing_mode=mode)(torch.ones(3))
        assert make_fx(lambda x: x * weight, tracing_mode=mode, _allow_non_fake_inputs=True)(torch.ones(3))(torch.ones(3)).tolist() == [1, 1, 1]


def test_an_interpreter_takes_and_gives_nests_where_the_capture_did():
    graph = make_fx(lambda d: {"sum": d["a"] + d["b"][0]})({"a": torch.ones(1), "b": [torch.ones(1)]})
    assert torch.fx.Interpreter(graph).run({"a": torch.ones(1), "b": [torch.ones(1)]})["sum"].item() == 2
    assert torch.fx.Interpreter(graph).run(torch.ones(1), torch.ones(1), enable_io_processing=False)[0].item() == 2


def test_requires_grad_is_a_bool():
    for make in (lambda value: torch.ones(2, requires_grad=value), lambda value: torch.zeros_like(torch.ones(1), requires_grad=value),
                 lambda value: torch.tensor([1.0], requires_grad=value)):
        for value in (1, "a", 1.0):
            with pytest.raises(TypeError, match="requires_grad"):
                make(value)
    assert not torch.ones(2, requires_grad=None).requires_grad and torch.ones(2, requires_grad=True).requires_grad


def test_warnings_that_are_given_once_or_each_time():
    x = torch.ones(2)

    def warnings_of_two_calls():
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(2):
                torch.addcmul(x, 1, x, x)
        return len(seen)
    assert warnings_of_two_calls() <= 1 and warnings_of_two_calls() == 0
    torch.set_warn_always(True)
    try:
        assert torch.is_warn_always_enabled() and warnings_of_two_calls() == 2
    finally:
        torch.set_warn_always(False)
    assert warnings_of_two_calls() == 0


def test_reductions_as_texts_numbers_and_flags():
    from umbra.nn import _reduction
    assert [_reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    flags = [(a, b) for a in (None, True, False) for b in (None, True, False)]
    assert [_reduction.legacy_get_string(*f, emit_warning=False) for f in flags] == ["mean", "mean", "none"] * 2 + ["sum", "sum", "none"]
    assert [_reduction.legacy_get_enum(*f, emit_warning=False) for f in flags] == [1, 1, 0, 1, 1, 0, 2, 2, 0]
