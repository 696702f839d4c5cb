"""The package under torch's names, and what importing it costs."""
import subprocess
import sys
import textwrap


def run(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_torch_names_lead_to_umbra():
    assert run("""
        import umbra
        umbra.compat.install()
        import torch
        import torch.utils._pytree as pytree
        from torch.autograd import Function
        from torch._subclasses.fake_tensor import FakeTensorMode
        assert torch is umbra and pytree is umbra.utils._pytree and Function is umbra.autograd.Function
        assert torch.nn.parameter is umbra.nn.parameter
        try:
            import torch.no_such_module
        except ModuleNotFoundError as error:
            print(error.name)
    """) == "torch.no_such_module"


def test_import_is_light():
    assert run("""
        import sys
        import umbra
        print([name for name in ("numpy", "umbra.nn", "umbra.fx", "umbra.library") if name in sys.modules])
    """) == "[]"


def test_import_is_fast():
    best = min(_processor_time() for _ in range(3))  # a busy machine does not count
    assert best < 0.2, f"import umbra took {best:.2f} s"


def _processor_time():
    return float(run("import time; t = time.process_time(); import umbra; print(time.process_time() - t)"))
