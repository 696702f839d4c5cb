"""Modules of PyTorch as programs. ORACLE names a Python that has torch (and, for the last test, torchvision or transformers)."""
import os
import pathlib
import subprocess
import textwrap

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def in_torch(code):
    oracle = os.environ.get("ORACLE")
    if not oracle:
        pytest.skip("ORACLE names no Python with torch")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    start = "import torch, umbra\nfrom umbra.export import Dim\n"
    out = subprocess.run([oracle, "-c", start + textwrap.dedent(code)], capture_output=True, text=True, env=environment, check=False)
    assert out.returncode == 0, out.stderr[-3000:]
    return out.stdout


EQUAL = """
    def equal(module, args, others=(), dynamic=None, **options):
        program = umbra.from_torch(module, args, dynamic_shapes=dynamic, **options)
        for given in (args, *others):
            with torch.no_grad():
                want = module(*given)
            got = program.module()(*[umbra.from_dlpack(x) for x in given])
            assert torch.allclose(torch.from_dlpack(got.detach()), want, atol=1e-4), given[0].shape
        return program
"""


def test_a_module_gives_the_same_at_other_sizes():
    in_torch(EQUAL + """
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 2)).eval()
    program = equal(model, (torch.randn(2, 1, 8, 8),), [(torch.randn(5, 1, 8, 8),)], ({0: Dim("batch")},))
    assert [str(n.target) for n in program.graph.nodes if n.op == "call_function"][0] == "aten.conv2d.default"
    assert [e.fqn for e in program.module_call_graph][:3] == ["", "0", "1"]
    """)


def test_sizes_in_arithmetic_stay_symbols():
    in_torch(EQUAL + """
    class Model(torch.nn.Module):
        def forward(self, x):
            n, d = x.shape
            if n > 1:
                x = x.reshape(n * d // 2, 2) + torch.arange(n * d // 2).unsqueeze(1) * (n / 2)
            return x.view(n, -1) * int(d)
    equal(Model(), (torch.randn(4, 6),), [(torch.randn(7, 6),)], ({0: Dim.AUTO},))
    """)


def test_weights_are_shared_and_can_be_trained():
    in_torch("""
    model = torch.nn.Linear(2, 1, bias=False)
    program = umbra.from_torch(model, (torch.ones(3, 2),))
    module = program.module()
    module(umbra.ones(3, 2)).sum().backward()
    assert module.weight.grad.tolist() == [[3.0, 3.0]]
    with torch.no_grad():
        model.weight.fill_(5.0)
    assert module(umbra.ones(3, 2)).flatten().tolist() == [10.0] * 3
    """)


def test_buffers_that_the_module_writes_are_written():
    in_torch("""
    model = torch.nn.BatchNorm1d(2)
    program = umbra.from_torch(model, (torch.ones(3, 2),))
    assert model.running_mean.tolist() == [0.0, 0.0]
    program.module()(umbra.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert abs(model.running_mean[0].item() - 0.3) < 1e-6   # one memory
    """)


def test_a_region_without_gradients_has_none_in_the_program():
    in_torch("""
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            with torch.no_grad():
                y = x * self.a
            return y * self.b
    program = umbra.from_torch(Model(), (torch.ones(2),))
    module = program.module()
    module(umbra.ones(2)).sum().backward()
    assert module.a.grad is None and module.b.grad.tolist() == [1.0, 1.0]
    assert umbra.is_grad_enabled() and torch.is_grad_enabled()
    """)


def test_attention_is_captured_as_modules_write_it_for_training():
    in_torch(EQUAL + """
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    equal(layer, (torch.randn(2, 3, 8),), [(torch.randn(4, 3, 8),)], ({0: Dim("batch")},))
    """)


def test_a_buffer_that_is_replaced_is_written():
    in_torch("""
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))
            self.calls = 0

        def forward(self, x):
            self.total = self.total + x
            self.calls += 1
            return self.total * 2
    model = Model()
    module = umbra.from_torch(model, (torch.ones(2),)).module()
    assert model.total.tolist() == [0.0, 0.0] and model.calls == 0
    module(umbra.ones(2))
    assert module(umbra.ones(2)).tolist() == [4.0, 4.0] and module.total.tolist() == [2.0, 2.0]
    """)


def test_structures_of_inputs_and_outputs():
    in_torch("""
    class Model(torch.nn.Module):
        def forward(self, x, *, pairs):
            return {"sum": x + pairs[0]["a"], "parts": (pairs[0]["a"], None, 3)}
    program = umbra.from_torch(Model(), (torch.ones(2),), {"pairs": [{"a": torch.ones(2)}]})
    out = program.module()(umbra.ones(2), pairs=[{"a": umbra.full((2,), 2.0)}])
    assert out["sum"].tolist() == [3.0, 3.0] and out["parts"][1:] == (None, 3)
    """)


def test_decisions_by_data_are_refused_and_what_is_no_module():
    in_torch("""
    class Model(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x
    try:
        umbra.from_torch(Model(), (torch.ones(2),))
    except Exception as error:
        assert "data-dependent" in str(error), error
    else:
        raise AssertionError("accepted")
    try:
        umbra.from_torch(lambda x: x, (torch.ones(2),))
    except TypeError:
        pass
    assert torch.ones(2).sum() == 2     # torch is as it was
    """)


def test_the_program_is_saved_for_torch():
    in_torch("""
    import tempfile
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.LayerNorm(4))
    program = umbra.from_torch(model, (torch.ones(2, 3),), dynamic_shapes=({0: Dim("batch")},))
    with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
        umbra.export.save(program, file.name)
        again = torch.export.load(file.name).module()
    x = torch.randn(6, 3)
    assert torch.allclose(again(x), model(x), atol=1e-5)
    """)


def test_shapes_that_change_in_place():
    in_torch(EQUAL + """
    class Model(torch.nn.Module):
        def forward(self, x):
            y = x.clone()
            y.unsqueeze_(0).transpose_(1, 2)
            return y[:, :, 0] * y.shape[1] + len(y) + y.size(-1) + y.dim()
    equal(Model(), (torch.randn(4, 6),), [(torch.randn(7, 6),)], ({0: Dim("n")},))
    """)
