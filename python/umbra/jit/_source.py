"""The source of functions, as the compiler reads it."""
import ast
import dataclasses
import linecache
import sys
import textwrap
import typing


def source_of(function):
    """The text of a function, its file, its first line, and how far its lines were moved to the left."""
    code = getattr(function, "__code__", None)
    lines = linecache.getlines(code.co_filename) if code is not None else []
    if not 0 < (code.co_firstlineno if code is not None else 0) <= len(lines):
        raise OSError(f"Can't get source for {function}. TorchScript requires source access in order to carry out compilation, make sure "
                      "original .py files are available.")
    first = code.co_firstlineno - 1
    indent = len(lines[first]) - len(lines[first].lstrip())
    return _dedented(lines[first:_end_of(code, lines, indent)], indent), code.co_filename, first + 1, indent


def _end_of(code, lines, indent):
    """The line after a function: the first that is indented no more than the function, from where its code ends on."""
    last = max([line for _, _, line in code.co_lines() if line])
    end = _after_block(lines, last, indent)
    if end == len(lines) or (lines[end].lstrip()[0] not in ")]}" and not any("\"\"\"" in line or "'''" in line for line in lines[last - 1:end])):
        return end
    # What comes last is written over several lines: only the code says where it ends.
    return _after_block(lines, max(end for _, end, _, _ in code.co_positions() if end is not None), indent)


def _after_block(lines, start, indent):
    for i in range(start, len(lines)):
        text = lines[i].lstrip()
        if text and len(lines[i]) - len(text) <= indent:
            return i
    return len(lines)


def _dedented(lines, indent):
    if indent == 0:
        return "".join(lines)
    margin = lines[0][:indent]
    cut = [line[indent:] if line.startswith(margin) else "" if line.strip() else "\n" for line in lines]
    return "".join(cut) if all(cut) else textwrap.dedent("".join(lines))  # a text inside goes further to the left


def signature_of(source):
    """A function's source without its body, which may be any Python."""
    if "# type:" in source:
        return source
    definition = ast.parse(source).body[0]
    definition.body = [ast.Pass()]
    definition.decorator_list = []
    return ast.unparse(definition) + "\n"


def defaults_of(function):
    """The defaults of a function's parameters by their names; lists and dicts are refused."""
    code, values = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values):code.co_argcount]
    defaults = {**dict(zip(names, values)), **(function.__kwdefaults__ or {})}
    for name, value in defaults.items():
        if isinstance(value, (list, dict)) and not function.__module__.startswith("umbra."):
            raise RuntimeError("Mutable default parameters are not supported because Python binds them to the function and they persist across"
                               f" function calls.\nAs a workaround, make the default None and instantiate the default parameter within the body of"
                               f" the function. Found {type(value)} on parameter {name}.")
    return defaults


def has_source(function):
    """Whether a function was written in a file: dataclasses make others, and share some that programs have no use for."""
    return function.__code__.co_filename != "<string>" and function.__module__ != "dataclasses"


def method_of_dataclass(cls, name):
    """A method that a dataclass makes, as a function with source; None where programs have no use for it."""
    if name == "__init__":
        return _init_of_dataclass(cls)
    fields, hints = [field.name for field in dataclasses.fields(cls) if field.compare], typing.get_type_hints(cls)
    if name not in _COMPARISONS or not all(hints[field] in (int, float, bool, str) for field in fields):
        return None
    if name == "__eq__":
        body = ["return " + (" and ".join(f"self.{field} == other.{field}" for field in fields) or "True")]
    else:  # the first fields that are not equal decide
        sign = _COMPARISONS[name]
        body = [line for field in fields for line in (f"if self.{field} != other.{field}:", f"    return self.{field} {sign[0]} other.{field}")]
        body.append(f"return {sign.endswith('=')}")
    return _function(cls, name, ["self", "other: _own_class"], "bool", body, {"_own_class": cls})


_COMPARISONS = {"__eq__": "==", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


def _init_of_dataclass(cls):
    fields = [field for field in dataclasses.fields(cls) if field.init]
    for field in fields:
        if field.default_factory is not dataclasses.MISSING:
            raise NotImplementedError(f"the field {field.name!r} of the dataclass {cls.__name__} has a default_factory, which scripts cannot call")
    hints = typing.get_type_hints(cls)
    names = {**{f"_type_of_{field.name}": hints[field.name] for field in fields}, **{f"_default_of_{field.name}": field.default for field in fields}}
    parameters = [f"{field.name}: _type_of_{field.name}" + (f" = _default_of_{field.name}" if field.default is not dataclasses.MISSING else "")
                  for field in fields]
    body = [f"self.{field.name} = {field.name}" for field in fields] + (["self.__post_init__()"] if hasattr(cls, "__post_init__") else []) or ["pass"]
    return _function(cls, "__init__", ["self", *parameters], None, body, names)


def _function(cls, name, parameters, result, body, names):
    """A function of these lines; `names` are those that it knows beside its module's."""
    text = f"def {name}({', '.join(parameters)}){f' -> {result}' if result else ''}:\n" + "".join(f"    {line}\n" for line in body)
    return _defined(text, name, f"<dataclass {cls.__module__}.{cls.__qualname__}.{name}>", {**vars(sys.modules[cls.__module__]), **names})


def _defined(text, name, file, scope):
    """The function of a name that a text defines; its source is found again under a file's name."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), scope)
    return scope[name]


def method_of_class_method(cls, function):
    """A class method as a method of objects, which is how programs call it: its first parameter is a name for the class."""
    definition = ast.parse(source_of(function)[0]).body[0]
    definition.decorator_list = []
    own = definition.args.args[0].arg
    definition.args.args[0] = ast.arg("_object")
    file = f"<class method {cls.__module__}.{cls.__qualname__}.{function.__name__}>"
    return _defined(ast.unparse(definition) + "\n", function.__name__, file, {**function.__globals__, own: cls, cls.__name__: cls})
