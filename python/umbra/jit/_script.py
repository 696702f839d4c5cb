"""Compiling: functions, modules and classes from their source."""


def compile_exports(module, made):
    """Compiles what a module that is traced marks with torch.jit.export."""


def compile_script_module(module):
    """Compiles the methods that a ScriptModule's class marks."""
    raise NotImplementedError("torch.jit.script_method is not in Umbra yet")
