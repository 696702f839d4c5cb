"""`assert` in programs that are exported: a condition that only data decides is checked when the program runs."""
import dis
import sys

from umbra.compiler import is_exporting

_RAISES = ["LOAD_ASSERTION_ERROR", "RAISE_VARARGS"]


def is_exported_assertion():
    """Whether the caller, in the middle of deciding by a condition, is an `assert` without a message of a program that is exported. (PyTorch looks no
    further: one with a message is refused, as any other branch is.)"""
    if not is_exporting():
        return False
    frame = sys._getframe(1)
    following = [step.opname for step in dis.get_instructions(frame.f_code) if step.offset > frame.f_lasti]
    if sys.version_info >= (3, 13) and following[:1] == ["POP_JUMP_IF_TRUE"]:  # what decides stands before the jump
        following = following[1:]
    return following[:2] == _RAISES
