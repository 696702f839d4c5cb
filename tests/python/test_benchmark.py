"""torch.utils.benchmark: what measurements say, tables, timers."""
import pytest
import umbra as torch
from umbra.utils.benchmark import Compare, Measurement, TaskSpec, Timer


def measured(time, **task):
    return Measurement(1, [time * (1 + step * 0.01) for step in range(6)], TaskSpec("x + y", "pass", label="sum", **task))


def test_measurements_as_text():
    task = TaskSpec("x + y", "a = 1", label="sum", sub_label="small", description="first", num_threads=4)
    one, many = Measurement(10, [1e-4], task), Measurement(100, [1.2e-3, 1.3e-3, 1.25e-3, 1.7e-3, 1.21e-3], task)
    assert repr(one).splitlines()[1:] == ["sum: small", "first", "setup: a = 1", "  10.00 us", "  1 measurement, 10 runs , 4 threads"]
    assert repr(many).splitlines()[4:] == ["  Median: 12.50 us", "  IQR:    0.90 us (12.10 to 13.00)", "  5 measurements, 100 runs per measurement, 4 threads"]
    assert many.median == pytest.approx(12.5e-6) and many.significant_figures == 1 and not many.has_warnings and many.as_row_name == "small"


def test_tables():
    table = Compare([measured(1.234e-5, sub_label="small", description="one"), measured(3.3e-4, sub_label="big", description="one"),
                     measured(5.5e-6, sub_label="small", description="two"), measured(1e-5, sub_label="small", description="one", num_threads=2)])
    assert str(table).splitlines() == [
        "[----------- sum -----------]", "             |   one   |  two", "1 threads: ------------------", "      small  |   12.6  |  5.6",
        "      big    |  338.2  |     ", "2 threads: ------------------", "      small  |   10.3  |     ", "", "Times are in microseconds (us)."]
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        table.extend_results([1])


def test_timers():
    calls = []
    timer = Timer("calls.append(torch.get_num_threads())", globals={"calls": calls}, num_threads=1)
    assert timer.timeit(20).number_per_run == 20 and len(calls) == 22 and set(calls) == {1}
    assert sum(timer.blocked_autorange(min_run_time=0.01).raw_times) >= 0.01
    with pytest.raises(NotImplementedError, match="language='cpp'"):
        Timer("x", language="cpp")
    with pytest.raises(ZeroDivisionError):
        Timer("1 / 0").timeit(1)
    assert torch.utils.benchmark.select_unit(2e-3) == ("ms", 1e-3)
