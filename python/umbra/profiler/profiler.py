"""Where torch keeps what torch.profiler has: the same things."""
from umbra.profiler import *  # noqa: F401,F403
from umbra.profiler import ProfilerAction, ProfilerActivity, profile, schedule, supported_activities, tensorboard_trace_handler  # noqa: F401


def _default_schedule_fn(_):
    """Every step is recorded."""
    return ProfilerAction.RECORD
