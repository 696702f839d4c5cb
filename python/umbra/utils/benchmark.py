"""How long a statement takes: `Timer("x @ x", globals={"x": x}).blocked_autorange()`, and tables that compare such measurements.

Statements are Python's. Counts of instructions (`collect_callgrind`) are not here.
"""
import contextlib
import dataclasses
import math
import statistics
import textwrap
import timeit

import umbra

timer = timeit.default_timer
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
_NAMES_OF_UNITS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}
_LEAST_INTERVAL = 25e-9  # what a clock tells apart
_FLUCTUATION, _DISTURBANCE = 0.1, 0.25  # the spread, as a part of the median, from which a measurement warns


@contextlib.contextmanager
def set_torch_threads(n):
    """Runs operators on n threads inside."""
    before = umbra.get_num_threads()
    umbra.set_num_threads(n)
    try:
        yield
    finally:
        umbra.set_num_threads(before)


def select_unit(t):
    """The unit in which a time in seconds is a number of one to three digits, and its size."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(math.log10(t) // 3, "s")
    return unit, _UNITS[unit]


def trim_sigfig(x, n):
    """A number with n digits that count: 3.14159 with two is 3.1."""
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return round(x / scale) * scale


def _quantile(times, part):
    place = part * (len(times) - 1)
    low = int(place)
    high = min(low + 1, len(times) - 1)
    return times[low] + (times[high] - times[low]) * (place - low)


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """What is measured."""
    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        if self.label is None and "\n" in self.stmt:
            return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"
        return (self.stmt if self.label is None else self.label) + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self):
        if not self.setup or self.setup == "pass":
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self):
        return "\n".join(part + "\n" if "\n" in part else part for part in (self.title, self.description, self.setup_str()) if part)


class Measurement:
    """Times of a task, each of `number_per_run` runs."""

    def __init__(self, number_per_run, raw_times, task_spec, metadata=None):
        self.number_per_run, self.raw_times, self.task_spec, self.metadata = number_per_run, raw_times, task_spec, metadata

    def __getattr__(self, name):
        if name != "task_spec" and name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @property
    def times(self):
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def _sorted(self):
        return sorted(self.times)

    median = property(lambda self: _quantile(self._sorted, 0.5))
    mean = property(lambda self: statistics.fmean(self.times))
    iqr = property(lambda self: _quantile(self._sorted, 0.75) - _quantile(self._sorted, 0.25))
    title = property(lambda self: self.task_spec.title)
    as_row_name = property(lambda self: self.sub_label or self.stmt or "[Unknown]")
    has_warnings = property(lambda self: not self.meets_confidence())

    def meets_confidence(self, threshold=_FLUCTUATION):
        return self.iqr / self.median < threshold

    @property
    def significant_figures(self):
        """How many digits of the median can be relied on, by the middle half of the times."""
        count = len(self.raw_times)
        middle = self._sorted[count // 4:math.ceil(3 * count / 4)]
        interval = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), _LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), 4)

    @staticmethod
    def merge(measurements):
        """One measurement for each task."""
        times = {}
        for measurement in measurements:
            times.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, of_task, task) for task, of_task in times.items()]

    def __repr__(self):
        count, (unit, size) = len(self.raw_times), select_unit(self.median)
        lines = [object.__repr__(self), self.task_spec.summarize(), f"  {'Median: ' if count > 1 else ''}{self.median / size:.2f} {unit}"]
        if count >= 4:
            low, high = (_quantile(self._sorted, part) / size for part in (0.25, 0.75))
            lines.append(f"  IQR:    {self.iqr / size:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(f"  {count} measurement{'s' if count > 1 else ''}, {self.number_per_run} runs {'per measurement,' if count > 1 else ','} "
                     f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}")
        if self.has_warnings:
            why = "This could indicate system fluctuation." if self.meets_confidence(_DISTURBANCE) else "This suggests significant environmental influence."
            lines.append(f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n           {why}")
        return "\n".join(lines)


class Timer:
    """Measures a statement, after a warm-up, on `num_threads` threads."""

    def __init__(self, stmt="pass", setup="pass", global_setup="", timer=timer, globals=None, label=None, sub_label=None, description=None, env=None,
                 num_threads=1, language="python"):
        if str(language).lower() not in ("py", "python"):
            raise NotImplementedError(f"torch.utils.benchmark.Timer(language={language!r}) is not in Umbra yet")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`.")
        stmt, setup = (textwrap.dedent(text).strip("\n").rstrip() for text in (stmt, setup))
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._timer = timeit.Timer(stmt or "pass", setup or "pass", timer, {"torch": umbra, **(globals or {})})

    def _timeit(self, number):
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number=1000000):
        """One time of that many runs."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def _block(self, min_run_time):
        """How many runs hide what the clock takes."""
        overhead, number = statistics.median(self._timeit(0) for _ in range(5)), 1
        while True:
            time = self._timeit(number)
            if time > min_run_time or (overhead / time <= 1e-4 and time >= min_run_time / 1000):
                return number
            number *= 10

    def _blocks(self, number, enough, callback):
        times = []
        while not times or not enough(times):
            times.append(self._timeit(number))
            if callback:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Times of blocks of runs, for at least `min_run_time` seconds."""
        with set_torch_threads(self._task_spec.num_threads):
            return self._blocks(self._block(min_run_time), lambda times: sum(times) >= min_run_time, callback)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Times of blocks of runs, until their spread is below `threshold` of the median."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(0.05)

            def enough(times):
                spread = Measurement(number, times, self._task_spec)
                return (len(times) > 3 and sum(times) > min_run_time and spread.meets_confidence(threshold)) or sum(times) > max_run_time
            return self._blocks(number, enough, callback)

    def collect_callgrind(self, *args, **kwargs):
        raise NotImplementedError("torch.utils.benchmark.Timer.collect_callgrind is not in Umbra yet")


class Compare:
    """Tables of measurements: one for each label, with a row for each statement or sub-label and a column for each description."""

    def __init__(self, results):
        self._results, self._trims = [], False
        self.extend_results(results)

    def extend_results(self, results):
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Shows only digits that can be relied on."""
        self._trims = True

    def colorize(self, rowwise=False):
        raise NotImplementedError(f"torch.utils.benchmark.Compare.colorize(rowwise={rowwise}) is not in Umbra yet")

    def highlight_warnings(self):
        raise NotImplementedError("torch.utils.benchmark.Compare.highlight_warnings is not in Umbra yet")

    def print(self):
        print(str(self))

    def __str__(self):
        by_label = {}
        for result in Measurement.merge(self._results):
            by_label.setdefault(result.label, []).append(result)
        return "\n".join(self._table(label, results) for label, results in by_label.items())

    def _table(self, label, results):
        if len({result.env for result in results}) > 1:
            raise NotImplementedError("torch.utils.benchmark.Compare of several environments is not in Umbra yet")
        unit, size = select_unit(min(result.median for result in results))
        rows = sorted(dict.fromkeys((result.num_threads, result.as_row_name) for result in results), key=lambda row: row[0])
        columns = list(dict.fromkeys(result.description for result in results))
        found = {(result.num_threads, result.as_row_name, result.description): result for result in results}
        cells = [["", *(column or "" for column in columns)], *(["      " + name] for _, name in rows)]
        for column in columns:
            of_column = [found.get((*row, column)) for row in rows]
            for line, text in zip(cells[1:], self._column(of_column, size)):
                line.append(text)
        widths = [max(map(len, parts)) for parts in zip(*cells)]
        lines = ["  |  ".join(text.center(width) for text, width in zip(cells[0], widths))]
        whole, threads = len(lines[0]), None
        for (count, _), line in zip(rows, cells[1:]):
            if count != threads:
                lines.append(f"{count} threads: ".ljust(whole, "-"))
                threads = count
            lines.append("  |  ".join([line[0].ljust(widths[0]), *(text.center(width) for text, width in zip(line[1:], widths[1:]))]))
        return "\n".join([f"[{f' {label or str()} '.center(whole - 2, '-')}]", *lines, "", f"Times are in {_NAMES_OF_UNITS[unit]} ({unit}).", ""])

    def _column(self, results, size):
        """The numbers of a column, all with as many digits."""
        digits = [math.ceil(math.log10(result.median / size)) for result in results if result]
        figures = [max(result.significant_figures - before, 0) for result, before in zip(filter(None, results), digits)]
        decimals = min(figures) if self._trims else 1
        width = max(digits) + decimals + (1 if decimals else 0)
        for result in results:
            if result is None:
                yield " " * len(f"{1:>{width}.{decimals}f}")
            else:
                value = result.median / size
                yield f"{trim_sigfig(value, result.significant_figures) if self._trims else value:>{width}.{decimals}f}"
