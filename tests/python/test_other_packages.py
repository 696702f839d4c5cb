"""Names and habits of torch that other packages rely on."""
import collections
import copy
import gc
import struct

import numpy as np
import pytest

import umbra as torch
from umbra.utils.data._utils.collate import collate, default_collate, default_collate_fn_map
from umbra.utils.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary


def test_batches_are_of_the_type_of_the_samples():
    Pair = collections.namedtuple("Pair", "a b")
    pair = default_collate([Pair(1, 2.0), Pair(3, 4.0)])
    assert isinstance(pair, Pair) and pair.a.tolist() == [1, 3] and pair.b.dtype == torch.float64
    ordered = default_collate([collections.OrderedDict(x=1), collections.OrderedDict(x=2)])
    assert isinstance(ordered, collections.OrderedDict) and ordered["x"].tolist() == [1, 2]
    assert default_collate([np.float32(1), np.float32(2)]).dtype == torch.float32
    assert default_collate(["a", "b"]) == ["a", "b"]
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([(1, 2), (3,)])


def test_a_table_teaches_batches_of_other_types():
    class Image:
        def __init__(self, value):
            self.value = value

    def stack(batch, *, collate_fn_map=None):
        return collate([image.value for image in batch], collate_fn_map=collate_fn_map)
    batch = collate([{"image": Image(1)}, {"image": Image(2)}], collate_fn_map={Image: stack, **default_collate_fn_map})
    assert batch["image"].tolist() == [1, 2]
    with pytest.raises(TypeError, match="found .*Image"):
        default_collate([Image(1)])


def test_numpy_in_a_worker_is_seeded_as_in_torch():
    from umbra.utils.data._utils.worker import _generate_state
    assert _generate_state(123456789012345678, 3) == [3644766378, 3582135145, 3528621066, 4065950836]


def test_weak_dictionaries_are_joined():
    first, second = torch.ones(1), torch.zeros(1)
    one, other = WeakTensorKeyDictionary({first: 1, second: 1}), WeakTensorKeyDictionary({second: 2})
    assert dict((one | other).items()) == {first: 1, second: 2} and (other | one)[second] == 1
    assert ({first: 5} | other)[first] == 5 and len(copy.deepcopy(one)) == 2
    other |= one
    assert other[first] == other[second] == 1
    with pytest.raises(TypeError):
        one | [1]


def test_weak_dictionaries_tell_keys_apart_by_identity():
    notes = WeakTensorKeyDictionary()
    x, same = torch.ones(2), torch.ones(2)
    notes[x] = "x"
    assert x in notes and same not in notes and notes[x] == "x" and len(notes) == 1
    del x
    gc.collect()
    assert len(notes) == 0
    with pytest.raises(KeyError):
        notes[same]
    assert WeakIdKeyDictionary({same: 1}) == WeakIdKeyDictionary({same: 1})


def test_operators_that_are_not_built_can_be_named_and_not_called():
    table = {torch.ops.aten._sparse_mm_reduce_impl.default: 1}
    assert table[torch.ops.aten._sparse_mm_reduce_impl.default] == 1
    with pytest.raises(NotImplementedError, match="torch.ops.aten._sparse_mm_reduce_impl.default is not in Umbra yet"):
        torch.ops.aten._sparse_mm_reduce_impl.default(torch.ones(2))
    assert not hasattr(torch.ops.aten, "no_such_operator")


def test_types_of_elements_that_are_not_built_can_be_named():
    assert repr(torch.qint8) == "torch.qint8" and torch.qint8.itemsize == 1 and torch.qint8 is torch.qint8
    with pytest.raises(TypeError):
        torch.ones(2, dtype=torch.qint8)


def test_types_of_torchscript_by_torchs_names():
    ints = torch.ListType(torch.IntType.get())
    assert str(ints) == "List[int]" and isinstance(ints, torch.ListType) and not isinstance(ints, torch.TensorType)
    assert str(torch.NoneType.get()) == "NoneType"


def test_contexts_decorate_functions_and_generators():
    from umbra.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager
    log = []

    class noted(_DecoratorContextManager):
        def __enter__(self):
            log.append("in")

        def __exit__(self, *error):
            log.append("out")

    @noted()
    def count():
        received = yield 1
        log.append(received)
        yield 2
    numbers = count()
    assert next(numbers) == 1 and log == ["in", "out"]
    assert numbers.send("hello") == 2 and log == ["in", "out", "in", "hello", "out"]

    class quiet(noted, _NoParamDecoratorContextManager):
        pass

    @quiet
    def answer():
        return 42
    assert answer() == 42 and log[-2:] == ["in", "out"]


def test_tensors_are_grouped_by_device_and_type():
    from umbra.utils._foreach_utils import _group_tensors_by_device_and_dtype as group
    a, b, c = torch.ones(1), torch.ones(1, dtype=torch.float64), torch.zeros(1)
    groups = group([[a, b, c], [], [c, b, a]], with_indices=True)
    lists, places = groups[torch.device("cpu"), torch.float32]
    assert [[id(t) for t in part] for part in lists] == [[id(a), id(c)], [], [id(c), id(a)]] and places == [0, 2]


def test_what_needs_several_processes_can_be_asked_for_and_not_made():
    from umbra.distributed.fsdp import FSDPModule, fully_shard
    assert not isinstance(torch.nn.Linear(1, 1), FSDPModule)
    with pytest.raises(RuntimeError, match="is not in Umbra, which has one process"):
        fully_shard(torch.nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="is not in Umbra, which has one process"):
        torch.distributed.optim.ZeroRedundancyOptimizer([])


def test_all_elements_are_checked():
    torch._check_tensor_all_with(ValueError, torch.tensor([True, True]))
    with pytest.raises(ValueError, match="negative"):
        torch._check_tensor_all_with(ValueError, torch.tensor([True, False]), lambda: "negative")


def test_functions_are_known_by_name():
    from umbra.overrides import is_tensor_method_or_property, resolve_name
    assert resolve_name(torch.add) == "torch.add" and resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert resolve_name(torch.Tensor.shape.__get__) == "torch.Tensor.shape.__get__" and resolve_name(print) is None
    assert is_tensor_method_or_property(torch.Tensor.add) and not is_tensor_method_or_property(torch.add)


def test_a_part_of_a_sequence_of_modules_keeps_names():
    part = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh(), torch.nn.ELU())[1:]
    assert list(part._modules) == ["1", "2"]


def test_buffers_are_told_from_other_tensors():
    assert isinstance(torch.nn.Buffer(torch.ones(1)), torch.nn.Buffer) and not isinstance(torch.ones(1), torch.nn.Buffer)


def test_the_edge_of_a_leaf_leads_to_what_adds_to_its_gradient():
    edge = torch.autograd.graph.get_gradient_edge(torch.ones(2, requires_grad=True))
    assert "AccumulateGrad" in edge.node.name() and edge.output_nr == 0


def test_samples_without_a_batch_are_padded_round_about():
    assert torch.nn.CircularPad1d(1)(torch.arange(3.0)[None]).tolist() == [[2, 0, 1, 2, 0]]
    with pytest.raises(RuntimeError, match="expected 1 or 2 non-padded dimensions"):
        torch.ops.aten._pad_circular(torch.arange(3.0), [1, 1])


def test_functions_of_no_module_are_compiled():
    scope = {}
    exec("def f(x): return x.sin() + 1", scope)
    scope["f"].__module__ = None
    assert torch.compile(scope["f"], backend="eager")(torch.zeros(2)).tolist() == [1, 1]


def test_dispatch_keys_have_names():
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)
    assert keys.has(torch._C.DispatchKey.AutocastCPU) and str(torch._C.DispatchKey.CPU) == "DispatchKey.CPU"
    x = torch.eye(2)
    with torch.autocast("cpu"):
        with torch._C._ExcludeDispatchKeyGuard(keys):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == torch.bfloat16
    with pytest.raises(NotImplementedError, match="CPU"):
        torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU))


def test_devices_that_are_not_there_have_types_and_no_tensors():
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor) and torch.cuda._initialized is False
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        torch.cuda.FloatTensor(2)
    for ask in (lambda: torch.zeros(2, device="cuda"), lambda: torch.ones(2).cuda(), lambda: torch.nn.Linear(2, 2).to("cuda:1"), lambda: torch.tensor([1.0], device="cuda")):
        with pytest.raises(AssertionError, match="^Torch not compiled with CUDA enabled"):
            ask()
    with pytest.raises(AssertionError, match="^Torch not compiled with XPU enabled"):
        torch.ones(2).to("xpu")
    with pytest.raises(RuntimeError, match="^PyTorch is not linked with support for mps devices"):
        torch.ones(2).to("mps")
    with pytest.raises(RuntimeError, match="NVTX"):
        torch.cuda.nvtx.range_push("x")
    assert torch._utils._get_device_index("cuda:1") == 1 and torch._utils._get_device_index(torch.device("cpu"), allow_cpu=True) == -1
    with pytest.raises(ValueError, match="non cpu device"):
        torch._utils._get_device_index("cpu")


def test_weights_that_lie_in_the_cache_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert torch.hub._get_torch_home() == str(tmp_path) and torch.hub.get_dir() == str(tmp_path / "hub")
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    torch.save({"w": torch.ones(2)}, tmp_path / "hub" / "checkpoints" / "net-abc123.pth")
    assert torch.hub.load_state_dict_from_url("https://example.org/net-abc123.pth", check_hash=True)["w"].tolist() == [1.0, 1.0]
    with pytest.raises(NotImplementedError, match="downloads nothing"):
        torch.hub.load_state_dict_from_url("https://example.org/other.pth")


def test_a_modules_tensors_are_swapped_by_name():
    from umbra.nn.utils._named_member_accessor import swap_tensor
    layer, other = torch.nn.Linear(2, 2), torch.zeros(2, 2)
    own = layer.weight
    assert swap_tensor(layer, "weight", other) is own and layer.weight is other and "weight" in layer._parameters
    with pytest.raises(AttributeError, match="Linear has no attribute `nope`"):
        swap_tensor(layer, "nope", other)


def test_memory_says_how_large_it_is():
    import sys
    assert sys.getsizeof(torch.zeros(1000).untyped_storage()) > 4000 and sys.getsizeof(torch.zeros(1000).storage()) > 4000


def test_scalars_and_histograms_are_written_for_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from umbra.utils.tensorboard import SummaryWriter
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", torch.tensor(0.5) * step, step)
        writer.add_histogram("weights", torch.arange(4.0), 1, bins=2)
        with pytest.raises(NotImplementedError, match="SummaryWriter.add_graph is not in Umbra yet"):
            writer.add_graph(None)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(0, 0.0), (1, 0.5), (2, 1.0)]
    assert events.Histograms("weights")[0].histogram_value.num == 4


def test_building_an_extension_is_refused_when_it_is_tried():
    from umbra.utils.cpp_extension import CUDA_HOME, load
    assert CUDA_HOME is None
    with pytest.raises(RuntimeError, match="extensions that are compiled against PyTorch cannot be built"):
        load(name="own", sources=["own.cpp"])


def thread_local_bytes(library):
    """What an ELF file takes of each thread's memory."""
    with open(library, "rb") as file:
        header = file.read(64)
        start, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
        file.seek(start)
        table = file.read(size * count)
    kinds = (struct.unpack_from("<I", table, i * size)[0] for i in range(count))
    return sum(struct.unpack_from("<Q", table, i * size + 40)[0] for i, kind in enumerate(kinds) if kind == 7)


def test_libraries_that_are_loaded_later_find_thread_local_memory():
    """The loader has 1664 bytes for all libraries with fast thread-local variables; several copies of OpenMP's need 120 to 136 each."""
    with open("/proc/self/maps") as maps:
        libraries = {line.split()[-1] for line in maps if "libumbra.so" in line or "/umbra/_C." in line}
    assert libraries and sum(map(thread_local_bytes, libraries)) <= 800


def test_hooks_of_registrations_and_whether_any_are_around_calls_are_known_by_torchs_names():
    from umbra.nn.modules import module
    assert not module._has_any_global_hook() and not module._global_parameter_registration_hooks
    handles = [module.register_module_forward_hook(lambda *_: None), module.register_module_parameter_registration_hook(lambda *_: None)]
    assert module._has_any_global_hook() and len(module._global_parameter_registration_hooks) == 1
    for handle in handles:
        handle.remove()
    assert not module._has_any_global_hook() and not module._global_parameter_registration_hooks


def test_whether_function_modes_are_entered_can_be_asked():
    assert not torch._C._is_torch_function_mode_enabled() and not torch._C._is_torch_function_all_disabled()
    with torch.overrides.TorchFunctionMode():
        assert torch._C._is_torch_function_mode_enabled()
        with torch._C.DisableTorchFunction():
            assert not torch._C._is_torch_function_mode_enabled() and torch._C._is_torch_function_all_disabled()


def test_names_of_the_package_hide_none_of_pythons_that_torch_leaves():
    names = dir(torch)
    assert not {"set", "slice", "copy", "expand", "add_"} & set(names) and {"add", "abs_", "abs", "nn", "Tensor", "float32"} <= set(names)
    assert callable(torch.add_) and callable(torch.copy)  # they are still there to be called


def test_vmap_by_its_older_name():
    from umbra._vmap_internals import _vmap
    x, w = torch.arange(6.0).view(3, 2), torch.ones(3, requires_grad=True)
    squares = w ** 2
    assert torch.equal(_vmap(lambda g: torch.autograd.grad(squares, w, g, retain_graph=True)[0])(torch.eye(3)), 2 * torch.eye(3))
    doubled, none, sums = _vmap(lambda row: (row * 2, None, row.sum()), allow_none_pass_through=True)(x)
    assert torch.equal(doubled, x * 2) and none is None and torch.equal(sums, x.sum(1))
    with pytest.raises(ValueError, match="NoneType"):
        _vmap(lambda row: (row, None))(x)


def test_what_is_built_in_is_told():
    """bitsandbytes asks, before it looks for kernels of its own."""
    assert torch._C.has_lapack and torch._C._has_mkldnn == torch.backends.mkldnn.is_available()
    assert torch._C.has_mkl == torch.backends.mkl.is_available() and torch._C.has_openmp == torch.backends.openmp.is_available()
    assert not (torch._C._has_cuda or torch._C._has_xpu or torch._C._has_mps or torch._C._has_cudnn)
