"""Parts of a program in the place of which other modules run."""
from umbra.export.unflatten import unflatten


def _swap_modules(ep, modules_to_swap):
    """The program as a module whose parts at these paths are the modules given. Their signatures have to be kept by the program
    (`export(preserve_module_call_signature=...)`): they are called as the parts were."""
    kept = {entry.fqn.split("@")[0] for entry in ep.module_call_graph if entry.fqn and entry.signature is not None}
    for path in modules_to_swap:
        if path not in kept:
            raise AssertionError(f"the program keeps no signature of the module {path!r}, so nothing can be called in its place")
    whole = unflatten(ep)
    for path, module in modules_to_swap.items():
        owner, _, name = path.rpartition(".")
        setattr(whole.get_submodule(owner), name, module)
    return whole
