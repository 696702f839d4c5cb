"""What Umbra does not have yet says so, by name."""
import importlib.util
import pathlib
import subprocess
import sys

import pytest

import umbra
from umbra._modules import torch_names

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_a_name_of_torch_that_is_missing_is_named():
    with pytest.raises(AttributeError, match="^torch.package is not in Umbra yet$"):
        umbra.package
    with pytest.raises(AttributeError, match="^torch.nn.functional.scaled_mm is not in Umbra yet$"):
        umbra.nn.functional.scaled_mm
    with pytest.raises(AttributeError, match="^torch.Tensor.to_mkldnn is not in Umbra yet$"):
        umbra.ones(2).to_mkldnn()
    assert not hasattr(umbra, "package") and not hasattr(umbra.Tensor, "to_mkldnn") and not hasattr(umbra.ones(1), "to_mkldnn")


def test_a_name_that_torch_has_not_is_no_promise():
    for holder in (umbra, umbra.nn, umbra.optim.adam, umbra.linalg, umbra.ones(1)):
        with pytest.raises(AttributeError) as caught:
            holder.nonsense
        assert "yet" not in str(caught.value)


@pytest.mark.parametrize("line", ["from umbra import package", "from umbra import CallStack", "from umbra.nn.functional import scaled_mm"])
def test_importing_a_missing_name_says_so(line):
    with pytest.raises(ImportError, match=r"cannot import name .* is not in Umbra yet"):
        exec(line)


@pytest.mark.parametrize("line", ["import umbra.utils.mobile_optimizer", "from umbra.utils.mobile_optimizer import optimize_for_mobile", "import umbra.package as o"])
def test_importing_a_missing_module_says_so(line):
    with pytest.raises(ModuleNotFoundError, match=r"torch\.(utils.mobile_optimizer|package) is not in Umbra yet"):
        exec(line)


def test_probing_for_a_missing_module_finds_nothing():
    assert importlib.util.find_spec("umbra.package") is None
    assert importlib.util.find_spec("umbra.nn.functional") is not None


def test_the_list_has_what_everyone_knows():
    names = torch_names()
    for module, name in (("torch", "vmap"), ("torch.nn", "LSTM"), ("torch.nn.functional", "conv2d"), ("torch.linalg", "svd"), ("torch.fft", "fft"),
                         ("torch.optim", "RMSprop"), ("torch.func", "jvp"), ("torch.Tensor", "addmm"), ("torch.utils.data", "DataLoader")):
        assert name in names[module]


def test_the_page_of_missing_names_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "tools/missing_names.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_methods_of_other_classes_say_so_too():
    graph = umbra.fx.Graph()
    with pytest.raises(AttributeError, match="^torch.fx.graph.Graph.create_size_node is not in Umbra yet$"):
        graph.create_size_node
    assert hasattr(graph, "find_nodes") and not hasattr(graph, "create_size_node")


@pytest.mark.parametrize("module, has, lacks", [
    ("umbra", {"Tensor", "ones", "float32", "load", "vmap", "dsmm", "export"}, {"set", "slice", "nn", "relu_backward", "__getattr__", "set_grad_enabled"}),
    ("umbra.onnx", {"export", "ONNXProgram"}, {"os", "enum", "TrainingMode"}), ("umbra.fft", {"fft", "rfftn"}, {"hfft2"}),
    ("umbra.cuda", {"is_available", "amp"}, {"Tensor", "lazy_submodules"}), ("umbra.ao.nn", {"quantized"}, {"lazy_submodules"}),
    ("umbra.nn.init", {"xavier_uniform_"}, {"math", "warnings"}), ("umbra.library", {"custom_op"}, {"CustomOpDef", "umbra"}),
    ("umbra.optim", {"AdamW", "lr_scheduler"}, {"adam", "lazy_submodules"}), ("umbra.export", {"export", "Dim", "dims"}, {"load_pt2", "check_protocol"}),
    ("umbra.utils.data", {"DataLoader", "random_split"}, {"dataset", "sampler"}), ("umbra.profiler", {"profile", "schedule"}, {"os", "time", "warnings"})])
def test_names_of_all_are_those_of_torch(module, has, lacks):
    names = {}
    exec(f"from {module} import *", names)
    assert has <= set(names) and not lacks & set(names)


def test_names_of_all_are_there():
    for module in ("amp", "autograd", "cpu", "cuda", "cuda.amp", "export", "fft", "special", "nn.init", "optim.lr_scheduler", "sparse", "storage", "fx", "jit", "nn.attention", "nn.parallel", "nn.utils", "optim", "profiler", "utils.data"):
        found = importlib.import_module(f"umbra.{module}")
        assert found.__all__ and set(found.__all__) - {"_DatasetKind"} <= torch_names().get(f"torch.{module}", set(found.__all__)), module
        assert all(hasattr(found, name) for name in found.__all__), module
