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


def test_modules_answer_what_inspect_asks_of_them():
    assert run("""
        import inspect, sys, types
        import umbra
        umbra.compat.install()
        import torch.nn, torch.jit, torch.ops
        assert torch.ops is umbra.ops
        umbra._C._nn.gelu
        odd = [name for name, module in sys.modules.items() if isinstance(module, types.ModuleType)
               and not isinstance(getattr(module, "__file__", None), (str, type(None)))]
        print(odd, len(inspect.stack()))
    """) == "[] 1"


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


def test_classes_say_that_they_are_torchs():
    assert run("""
        import umbra
        umbra.compat.install()
        import torch
        print(type(torch.ones(1)).__module__, type(torch.float32).__module__, torch.Size.__module__, torch.nn.Parameter.__module__)
        umbra.compat.uninstall()
        print(type(umbra.ones(1)).__module__, umbra.nn.Parameter.__module__)
    """).split() == ["torch", "torch", "torch", "torch.nn.parameter", "umbra", "umbra.nn.parameter"]


def test_names_of_torch_distributed_are_imported_and_refused():
    assert run("""
        import umbra
        umbra.compat.install()
        import torch
        from torch.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel
        from torch.distributed.checkpoint import save
        import torch.distributed as dist
        from torch.distributed import rpc
        assert not isinstance(torch.nn.Linear(1, 1), FullyShardedDataParallel) and not hasattr(dist, "nonsense")
        asked = rpc.api._require_initialized(print)
        for call in (dist.send, save, lambda: FullyShardedDataParallel(None), asked):
            try:
                call()
            except RuntimeError as error:
                print(str(error).partition(":")[0])
        try:
            import torch.distributed.no_such_module
        except ModuleNotFoundError as error:
            print(error.name)
    """).split("\n") == ["torch.distributed.send is not in Umbra, which has one process",
                         "torch.distributed.checkpoint.save is not in Umbra, which has one process",
                         "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel is not in Umbra, which has one process",
                         "RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.", "torch.distributed.no_such_module"]


def test_importing_a_module_does_not_hide_the_function_of_its_name():
    assert run("""
        import umbra
        umbra.compat.install()
        import torch.autograd.gradcheck
        from torch.autograd.gradcheck import gradcheck
        print(torch.autograd.gradcheck is gradcheck)
    """) == "True"


def test_importing_from_a_module_that_was_not_loaded_yet_does_not_hide_the_function_either():
    assert run("""
        import umbra
        umbra.compat.install()
        from torch.export.unflatten import UnflattenedModule
        import torch
        print(callable(torch.export.unflatten))
    """) == "True"
