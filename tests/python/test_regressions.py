"""Behaviour that once was wrong: guards of exported programs, aliasing and caching in ahead-of-time autograd, bad arguments."""
import pytest
import umbra as torch
import umbra.export
from umbra.functorch.compile import aot_function, nop


def test_branches_on_sizes_are_checked_when_the_program_runs():
    class Parity(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[0] % 2 == 0 else x * 3
    module = umbra.export.export(Parity(), (torch.ones(20),), dynamic_shapes={"x": {0: umbra.export.Dim.AUTO}}, strict=False).module()
    assert torch.equal(module(torch.ones(6)), torch.full((6,), 2.0))
    with pytest.raises(AssertionError, match="Guard failed"):
        module(torch.ones(5))


def test_a_derived_dimension_without_its_root_is_checked():
    class Double(torch.nn.Module):
        def forward(self, x):
            return x * 2
    half = umbra.export.Dim("half", min=2, max=64)
    module = umbra.export.export(Double(), (torch.ones(8),), dynamic_shapes={"x": {0: 2 * half}}, strict=False).module()
    assert module(torch.ones(12)).shape == (12,)
    for size in (7, 400):
        with pytest.raises(AssertionError, match="Guard failed"):
            module(torch.ones(size))


def test_a_program_of_one_tensor_given_twice_tells_that_it_reads_one_of_two():
    class Difference(torch.nn.Module):
        def forward(self, a, b):
            return a - b * 2
    x = torch.ones(3)
    program = umbra.export.export(Difference(), (x, x), strict=False)
    for module in (program.module(), program.run_decompositions().module()):
        y = torch.full((3,), 10.0)
        assert torch.equal(module(y, y), torch.full((3,), -10.0))
        with pytest.warns(UserWarning, match="exported with one tensor for 'a' and 'b', and reads the last of them alone"):
            module(y, torch.ones(3))


def test_compiled_views_follow_the_offset_of_their_input():
    compiled = aot_function(lambda x: x[0:2], nop)
    base = torch.arange(6.0)
    assert compiled(base[0:3]).tolist() == [0, 1]
    assert compiled(base[3:6]).tolist() == [3, 4]


def test_compiled_views_keep_dtype_conjugation_and_detachment():
    assert aot_function(lambda x: x.view(torch.int32), nop)(torch.ones(2)).dtype == torch.int32
    z = torch.tensor([1 + 2j])
    assert aot_function(lambda x: x.conj(), nop)(z).resolve_conj().tolist() == [1 - 2j]
    assert not aot_function(lambda x: x.detach(), nop)(torch.ones(2, requires_grad=True)).requires_grad


def test_compiling_sees_the_callers_grad_mode():
    compiled = aot_function(lambda x: x * 3 if torch.is_grad_enabled() else x * 2, nop)
    with torch.no_grad():
        assert compiled(torch.ones(1)).item() == 2
    assert compiled(torch.ones(1)).item() == 3


def test_bounds_of_random_integers_are_checked():
    for low, high in ((5, 5), (5, 3)):
        with pytest.raises(RuntimeError, match="less than 'to'"):
            torch.randint(low, high, (2,))


def test_processes_start_with_seeds_of_their_own():
    import subprocess
    import sys

    line = "import umbra as torch; print(torch.initial_seed(), torch.rand(1).item(), torch.Generator().initial_seed())"
    first, second = (subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True).stdout.split() for _ in range(2))
    assert first[0] != second[0] and first[1] != second[1]
    assert first[2] == second[2] == "67280421310721"
