"""Hooks of modules as methods of their programs."""
import types

from umbra.jit._compile import declare


def declare_hooks(module, cls):
    """Gives a class the hooks of its module as methods, which calls of the module run; the methods that are new."""
    before, after = _unique(module._forward_pre_hooks, "Pre-hook", module), _unique(module._forward_hooks, "Hook", module)
    declared = {}
    for name, hook in {**before, **after}.items():
        if cls.method(name) is not None:
            raise RuntimeError(f"Can't define hook: {name} on class: {cls.name} because a method or hook with that name already exists.")
        cls.add_method(name, declare(hook, f"{cls.name}.{name}", cls.type))
        declared[name] = cls.method(name)
    order = [[getattr(h, "__name__", "") for h in hooks.values()] for hooks in (module._forward_pre_hooks, module._forward_hooks)]
    if not declared:
        return []
    forward = cls.method("forward")
    if forward is not None:
        _check(module, forward, [declared[n] for n in order[0]], [declared[n] for n in order[1]])
    cls.set_hooks(*order)
    return list(declared.values())


def _unique(hooks, what, module):
    """Hooks by name: two functions of one name cannot both be methods."""
    found = {}
    for hook in hooks.values():
        name = getattr(hook, "__name__", type(hook).__name__)
        if not isinstance(hook, types.FunctionType):
            raise RuntimeError(f"{what} '{name}' on module '{type(module).__name__}' is not a function, so it cannot be compiled")
        if name == "<lambda>":
            raise RuntimeError(f"Expected a single top-level function: {hook.__code__.co_filename}:{hook.__code__.co_firstlineno}")
        if found.setdefault(name, hook) is not hook:
            raise RuntimeError(f"{what} '{name}' on {type(module).__name__} has at least two different python definitions. Please use unique names for all"
                               " hooks.")
    return found


def _check(module, forward, before, after):
    """Signatures of hooks have to be those that calls of the module need."""
    name = type(module).__name__
    inputs = [kind for _, kind in forward.parameters()[1:]]
    whole = f"Tuple[{', '.join(map(str, inputs)) or '()'}]"
    either = f"'None', '{inputs[0]}', or '{whole}'" if len(inputs) == 1 and inputs[0].kind() != "TupleType" else f"'None' or '{whole}'"
    for hook in before:
        _check_before(hook, name, inputs, whole,
                      f"This error occurred while scripting the forward pre-hook '{hook.name}' on module '{name}'. If you did not want to script this pre-hook"
                      f" remove it from the original NN module before scripting. Pre-hooks for module '{name}' are expected to have the following signature:"
                      f" {hook.name}(self, input: {whole}) with a return type of either {either}.\n")
    output = forward.result()
    for hook in after:
        _check_after(hook, name, inputs, output,
                     f"This error occurred while scripting the forward hook '{hook.name}' on module {name}. If you did not want to script this hook remove it"
                     " from the original NN module before scripting. This hook was expected to have the following signature:"
                     f" {hook.name}(self, input: {whole}, output: {output}). The type of the output arg is the returned type from either the forward method or"
                     " the previous hook if it exists. Note that hooks can return anything, but if the hook is on a submodule the outer module is expecting the"
                     " same return type as the submodule's forward.\n")
        declared = hook.declared_result()
        given = declared or hook.result()
        output = given if declared is not None or given.kind() != "NoneType" else output


def _check_before(hook, module, inputs, whole, advice):
    kinds = [kind for _, kind in hook.parameters()]
    where = f"Pre-hook '{hook.name}' on module '{module}'"
    if len(kinds) != 2:
        raise RuntimeError(f"{where} was expected to only have exactly 2 inputs but it had {len(kinds)} inputs. {advice}")
    result = hook.declared_result()
    if result is None:
        raise RuntimeError(f"{where} is missing a return annotation. Return annotations are required, please add one.\n{advice}")
    _check_tuple(kinds[1], inputs, where, advice)
    one = inputs[0] if len(inputs) == 1 else None
    if result.kind() == "NoneType" or one is not None and one.kind() != "TupleType" and result == one:
        return
    wrong = f"{where} returned the wrong type of: '{result}'."
    if result.kind() != "TupleType":
        raise RuntimeError(wrong + advice)
    if one is not None and one.kind() == "TupleType" and list(result.elements()) != inputs:
        raise RuntimeError(f"{wrong} When forward has a single tuple input argument, the return needs to be 'None' or a nested tuple containing forward's input"
                           f" tuple argument as in: '{whole}'.\n{advice}")
    if len(result.elements()) != len(inputs):
        raise RuntimeError(f"{wrong} The returned tuple contains the wrong number of contained types.\n{advice}")
    if list(result.elements()) != inputs:
        raise RuntimeError(f"{wrong} The returned tuple contains the wrong inner types.\n{advice}")


def _check_after(hook, module, inputs, output, advice):
    kinds = [kind for _, kind in hook.parameters()]
    where = f"Hook '{hook.name}' on module '{module}'"
    if len(kinds) != 3:
        raise RuntimeError(f"{where} was expected to only have exactly 3 inputs but it had {len(kinds)} inputs. {advice}")
    _check_tuple(kinds[1], inputs, where, advice)
    if kinds[2] != output:
        raise RuntimeError(f"{where} has the wrong type for the output argument. Received type: '{kinds[2]}'. Expected type: '{output}'.\n{advice}")


def _check_tuple(kind, inputs, where, advice):
    if kind.kind() != "TupleType":
        raise RuntimeError(f"{where} expected the input argument to be typed as a Tuple but found type: '{kind}' instead.\n{advice}")
    if not inputs and kind.elements():
        raise RuntimeError(f"{where} was expecting Tuple[()] as the input type. Received type: '{kind}'.\n{advice}")
    if len(kind.elements()) != len(inputs):
        raise RuntimeError(f"{where} has the wrong number of contained types for the input argument's Tuple. Received type: '{kind}'.\n{advice}")
    if list(kind.elements()) != inputs:
        raise RuntimeError(f"{where} has the wrong inner types for the input tuple argument. Received type: '{kind}'.\n{advice}")
