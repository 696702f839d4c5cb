"""What a profile shows: calls, what calls of one name have in common, and tables of both."""
import collections
import json

from umbra._options import not_built


def _time_text(microseconds):
    """As torch's tables write times."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


def _memory_text(size):
    for unit, bytes_ in (("GB", 2 ** 30), ("MB", 2 ** 20), ("KB", 2 ** 10)):
        if abs(size) >= bytes_:
            return f"{size / bytes_:.2f} {unit}"
    return f"{size} B"


class Interval:
    """From when to when, in microseconds."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        return self.end - self.start


class _Times:
    """What calls and averages show alike; times are microseconds of the CPU."""
    device_time = device_time_total = self_device_time_total = 0
    device_memory_usage = self_device_memory_usage = 0
    is_async = is_remote = is_legacy = False

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: _time_text(self.cpu_time))
    cpu_time_total_str = property(lambda self: _time_text(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: _time_text(self.self_cpu_time_total))


class FunctionEvent(_Times):
    """A call of an operator, or a region that has a name."""
    count = 1

    def __init__(self, id, name, start, end, is_user_annotation, memory, input_shapes):
        self.id, self.name, self.key, self.trace_name = id, name, name, name
        self.time_range = Interval(start, end)
        self.is_user_annotation, self.self_cpu_memory_usage, self.input_shapes = is_user_annotation, memory, input_shapes
        self.cpu_parent, self.cpu_children, self.thread = None, [], 1

    @property
    def cpu_time_total(self):
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self):
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def cpu_memory_usage(self):
        return self.self_cpu_memory_usage + sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self):
        return (f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} cpu_start_us={self.time_range.start} "
                f"cpu_end_us={self.time_range.end} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>")


class FunctionEventAvg(_Times):
    """The sum of calls of one name."""

    def __init__(self, key=None, input_shapes=None):
        self.key, self.input_shapes = key, input_shapes
        self.count = self.cpu_time_total = self.self_cpu_time_total = self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.is_user_annotation = False

    def add(self, other):
        self.count += other.count
        self.is_user_annotation |= other.is_user_annotation
        for name in ("cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self):
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
                f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>")


_SORTS = ("cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count",
          "device_time", "device_time_total", "self_device_time_total", "device_memory_usage", "self_device_memory_usage")


class EventList(list):
    """Calls, or averages of them."""

    def __init__(self, events=(), profile_memory=False, shapes=False):
        super().__init__(events)
        self._profile_memory, self._shapes = profile_memory, shapes

    @property
    def self_cpu_time_total(self):
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False, include_python_functions=False):
        """One entry for each name; by shapes, one for each name and the shapes of its arguments."""
        not_built("key_averages", group_by_stack_n=(group_by_stack_n, 0), group_by_overload_name=(group_by_overload_name, False),
                  include_python_functions=(include_python_functions, False))
        found = collections.OrderedDict()
        for event in self:
            key = (event.key, str(event.input_shapes) if group_by_input_shapes else "")
            if key not in found:
                found[key] = FunctionEventAvg(event.key, event.input_shapes if group_by_input_shapes else None)
            found[key].add(event)
        return EventList(found.values(), self._profile_memory, group_by_input_shapes)

    def total_average(self):
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80, header=None,
              top_level_events_only=False, time_unit=None):
        """A table as torch prints it. There is no column of sources, which `max_src_column_width` would bound."""
        not_built("table", time_unit=(time_unit, None))
        if sort_by is not None and sort_by not in _SORTS:
            raise AttributeError(f"a table cannot be sorted by {sort_by!r}; it can by {', '.join(_SORTS)}")
        events = [event for event in self if not top_level_events_only or getattr(event, "cpu_parent", None) is None]
        total = sum(event.self_cpu_time_total for event in events)
        if sort_by is not None:
            events.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        rows = [self._row(event, total, max_name_column_width, max_shapes_column_width) for event in events[:row_limit if row_limit >= 0 else None]]
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
                  *(["CPU Mem", "Self CPU Mem"] if self._profile_memory else []), "# of Calls", *(["Input Shapes"] if self._shapes else [])]
        widths = [max([len(title), *(len(row[i]) for row in rows)]) + 4 if title in ("Name", "Input Shapes") else 12 for i, title in enumerate(titles)]
        line = "".join("-" * width + "  " for width in widths)
        texts = ["".join(cell.rjust(width) + "  " for cell, width in zip(row, widths)) for row in (titles, *rows)]
        top = [] if header is None else ["=" * len(line), header]
        return "\n".join([*top, line, texts[0], line, *texts[1:], line, f"Self CPU time total: {_time_text(total)}"]) + "\n"

    def _row(self, event, total, name_width, shapes_width):
        def share(time):
            return f"{time * 100 / total if total else 0:.2f}%"

        def cut(text, width):
            return text if len(text) <= width or width < 3 else text[:width - 3] + "..."
        row = [cut(event.key, name_width), share(event.self_cpu_time_total), event.self_cpu_time_total_str, share(event.cpu_time_total),
               event.cpu_time_total_str, event.cpu_time_str]
        if self._profile_memory:
            row += [_memory_text(event.cpu_memory_usage), _memory_text(event.self_cpu_memory_usage)]
        row.append(str(event.count))
        if self._shapes:
            row.append(cut(str(event.input_shapes), shapes_width))
        return row

    def export_chrome_trace(self, path):
        """Writes the calls for `chrome://tracing`."""
        events = [{"name": event.name, "ph": "X", "ts": event.time_range.start, "dur": event.time_range.elapsed_us(), "pid": 0, "tid": event.thread,
                   "cat": "user_annotation" if event.is_user_annotation else "cpu_op", "args": {"Input Dims": event.input_shapes}} for event in self]
        with open(path, "w") as file:
            json.dump({"traceEvents": events}, file)

    def __str__(self):
        return self.table()


def events_of(calls, shapes, memory):
    """The calls that were noted, as events: each with what it is part of."""
    events = EventList(profile_memory=memory)
    for place, (name, begin, end, parent, region, size, sizes) in enumerate(calls):
        event = FunctionEvent(place, name, begin / 1000, end / 1000, region, size, [_shape(text) for text in sizes] if shapes else "")
        events.append(event)
        if parent >= 0:
            event.cpu_parent = events[parent]
            events[parent].cpu_children.append(event)
    return events


def _shape(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError:  # sizes that are symbols
        return text
