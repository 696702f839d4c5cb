"""Profiles: which calls they note, what belongs to what, tables, schedules."""
import json

import pytest
import umbra as torch
from umbra.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def test_calls_and_regions_and_what_is_part_of_what():
    layer, x = torch.nn.Linear(3, 4), torch.ones(2, 3)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as p:
        with record_function("mine"):
            y = layer(x).relu()
        y.sum().backward()
    region = p.events()[0]
    assert region.name == "mine" and region.is_user_annotation and {"aten::addmm", "aten::relu"} <= {child.name for child in region.cpu_children}
    addmm = next(event for event in p.events() if event.name == "aten::addmm")
    assert addmm.cpu_parent is region and addmm.input_shapes[:3] == [[4], [2, 3], [3, 4]] and addmm.self_cpu_memory_usage == 32
    assert region.cpu_time_total >= addmm.cpu_time_total > 0
    averages = {entry.key: entry for entry in p.key_averages()}
    assert averages["aten::sum"].count == 2 and averages["aten::threshold_backward"].count == 1  # the backward pass is seen


def test_tables_are_sorted_and_cut():
    with profile() as p:
        for _ in range(3):
            torch.ones(2)
        torch.ones(200, 200) @ torch.ones(200, 200)
    table = p.key_averages().table(sort_by="count", row_limit=1).splitlines()
    assert table[1].split("  ")[0] == "" and table[1].split()[0] == "Name" and len(table) == 6
    assert table[3].split()[0] == "aten::ones" and table[3].split()[-1] == "5" and table[5].startswith("Self CPU time total: ")
    with pytest.raises(AttributeError, match="cannot be sorted by 'foo'"):
        p.key_averages().table(sort_by="foo")


def test_a_schedule_says_which_steps_are_noted():
    cycles = []
    with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=lambda p: cycles.append([e.name for e in p.events()])) as p:
        for _ in range(8):
            torch.zeros(1)
            p.step()
    assert cycles == [["ProfilerStep#2", "aten::zeros", "ProfilerStep#3", "aten::zeros"], ["ProfilerStep#6", "aten::zeros", "ProfilerStep#7", "aten::zeros"]]
    assert p.schedule(1) == ProfilerAction.WARMUP


def test_a_trace_is_written_for_browsers(tmp_path):
    with torch.autograd.profiler.profile() as p:
        torch.ones(2).add(1)
    p.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [e["name"] for e in events] == ["aten::ones", "aten::add"] and all(e["dur"] > 0 for e in events)
    assert p.self_cpu_time_total > 0 and "aten::add" in str(p)


def test_an_error_leaves_nothing_behind():
    with pytest.raises(RuntimeError, match="must match"):
        with profile():
            torch.ones(2) + torch.ones(3)
    with profile(profile_memory=True) as p:
        with pytest.raises(RuntimeError, match="memory is being counted already"):
            profile(profile_memory=True).start()
        torch.ones(2)
    assert [event.name for event in p.events()] == ["aten::ones"]
    with pytest.raises(NotImplementedError, match="with_stack=True"):
        profile(with_stack=True)


def test_a_schedule_notes_at_least_one_step():
    with pytest.raises(AssertionError, match="active=0"):
        schedule(wait=1, warmup=1, active=0)
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=0, warmup=0, active=1)


def test_a_profile_that_runs_is_known_and_can_be_ended():
    profile = torch.autograd.profiler.profile()
    profile.__enter__()
    assert torch.autograd._profiler_enabled()
    torch.ones(2).add(1)
    torch.autograd._disable_profiler()
    assert not torch.autograd._profiler_enabled()
    table = profile.function_events.key_averages(group_by_input_shapes=False).table(row_limit=1, max_src_column_width=10)
    assert "Self CPU time total" in table


def test_the_older_profile_takes_the_name_of_its_implementation():
    with torch.autograd.profiler.profile(use_kineto=True) as p:
        torch.ones(2) + 1
    assert "aten::add" in [event.name for event in p.function_events]
