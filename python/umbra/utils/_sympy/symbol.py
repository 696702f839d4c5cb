"""Kinds of symbols, by the first letters of their names."""
import enum
import re


class SymT(enum.Enum):
    """What a symbol stands for."""
    SIZE = enum.auto()
    FLOAT = enum.auto()
    UNBACKED_INT = enum.auto()
    UNBACKED_FLOAT = enum.auto()


prefix_str = {SymT.SIZE: "s", SymT.UNBACKED_INT: "u", SymT.UNBACKED_FLOAT: "zuf", SymT.FLOAT: "zf"}


def make_symbol(prefix, idx):
    """The symbol of a kind and a number: `u3`."""
    from umbra.export.exported_program import Symbol
    return Symbol(f"{prefix_str[prefix]}{idx}")


def _kinds(prefix):
    return (prefix,) if isinstance(prefix, SymT) else tuple(prefix)


def symbol_is_type(sym, prefix):
    """Whether a symbol is of a kind, or of one of several."""
    return any(re.fullmatch(rf"{prefix_str[kind]}\d+", str(sym)) for kind in _kinds(prefix))


def free_symbol_is_type(e, prefix):
    """Whether an expression has a symbol of a kind."""
    return any(symbol_is_type(name, prefix) for name in re.findall(r"\b[A-Za-z_]\w*\b", str(e)))
