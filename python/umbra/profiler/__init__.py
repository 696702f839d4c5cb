"""torch.profiler's names: regions can be marked, and nothing is measured; a profile is refused."""
import enum

from umbra.autograd.profiler import kineto_available, record_function  # noqa: F401


class ProfilerActivity(enum.Enum):
    CPU, CUDA, XPU, MTIA, HPU, PrivateUse1 = range(6)


class ProfilerAction(enum.Enum):
    """What a profiler does in a step."""
    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities():
    """None: nothing is measured."""
    return set()


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """The function of a step's number that says what a profiler does in it."""
    def action(step):
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE
    return action


class profile:
    """A profile of what runs inside. There is none here."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch.profiler.profile is not in Umbra yet")


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    raise NotImplementedError("torch.profiler.tensorboard_trace_handler is not in Umbra yet")
