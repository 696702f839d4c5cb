#!/usr/bin/env python3
"""Writes the typed C++ functions and methods of all operators, from the schemas in their definitions.

usage: generate_operators.py --sources src/ops --out build/generated

Reads every UMBRA_OPERATOR("...") with its .inplace("...") and .out("...") and writes
    include/umbra/generated/functions.h    free functions:  Tensor add(const Tensor& self, const Tensor& other, ...)
    include/umbra/generated/methods.inc    the same as members of Tensor
    src/functions_<k>.cpp                  their bodies: arguments into a frame, the call, results out
A file whose contents would not change is left alone. The headers declare all of ATen (src/ops/aten_schemas.txt), defined here or not, so
that a new definition changes one source and no header. `installed/` is what users see: the same headers with the defined operators alone,
and with libtorch's names beside them (`linalg::inv` for `linalg_inv`, the members in umbra/libtorch_methods.inc).
"""
import argparse
import pathlib
import re
import sys
import zlib

PARTS = 8
# Members that Tensor has by itself.
OWN_MEMBERS = {"size", "stride", "numel", "dim", "is_complex", "is_floating_point", "data", "backward", "requires_grad_", "retain_grad",
               "is_leaf", "is_conj", "is_neg", "storage_offset", "is_contiguous", "sym_size", "sym_stride", "sym_numel",
               "sym_storage_offset", "device", "dtype", "sizes", "strides", "grad", "item_size", "defined", "is_same",
               "index", "index_put_"}
# Members that are no free functions: as such, their names would be taken from users.
METHODS_ONLY = {"values", "indices", "crow_indices", "col_indices", "ccol_indices", "row_indices", "coalesce", "is_coalesced", "sparse_dim",
                "dense_dim", "to_dense", "to_sparse", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"}
# Questions about types: core/dtype.h has these functions, with the operators' signatures.
OWN_FUNCTIONS = {"can_cast", "promote_types"}
KEYWORDS = {"and", "or", "not", "xor", "union", "double", "float", "int", "long", "short", "bool", "char", "operator"}
OPTIONS = ["dtype", "layout", "device", "pin_memory"]
# Families that libtorch has namespaces for.
FAMILIES = ["linalg", "fft", "special"]


class Argument:
    def __init__(self, text, keyword_only):
        match = re.match(r"\s*([A-Za-z]+)(\([^)]*\))?(\?)?(\[\d*\])?(\?)?\s+(\w+)(?:\s*=\s*(.*))?$", text, re.S)
        if not match:
            sys.exit(f"generate_operators: cannot read argument '{text}'")
        self.base, alias, q1, brackets, q2, self.name, self.default = match.groups()
        self.write = bool(alias and "!" in alias)
        self.list = brackets is not None
        self.list_size = int(brackets[1:-1] or 0) if brackets else 0
        self.optional = bool(q2) or (bool(q1) and not self.list)
        self.keyword_only = keyword_only
        # Where overloads differ here: a number is no list, a truth value no number, and the other way round (see tell_apart).
        self.only_list = self.only_flag = self.only_number = False
        if self.default is not None:
            self.default = self.default.strip()


def split(text):
    """Splits at commas that stand outside brackets and quotes."""
    parts, depth, quote, start = [], 0, None, 0
    for i, c in enumerate(text):
        if quote:
            quote = None if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


class Schema:
    def __init__(self, text):
        match = re.match(r"\s*(?:(\w+)::)?(\w+)(?:\.(\w+))?\((.*)\)\s*->\s*(.*)$", text, re.S)
        if not match:
            sys.exit(f"generate_operators: cannot read schema '{text}'")
        self.space, self.name, self.overload, arguments, returns = match.groups()
        self.space, self.overload = self.space or "aten", self.overload or ""
        self.arguments, keyword_only = [], False
        for part in split(arguments):
            if part == "*":
                keyword_only = True
            else:
                self.arguments.append(Argument(part, keyword_only))
        returns = returns.strip()
        inner = split(returns[1:-1]) if returns.startswith("(") else [returns]
        self.returns = [re.match(r"([A-Za-z]+)(\([^)]*\))?(\?)?(\[\])?", r).group(1, 4) for r in inner]

    def full_name(self):
        return f"{self.space}::{self.name}" + (f".{self.overload}" if self.overload else "")

    def variant(self, name):
        variant = self.copy()
        variant.name, _, variant.overload = name.partition(".")
        return variant

    def inplace(self, name):
        variant = self.variant(name)
        variant.arguments[0].write = True
        variant.returns = [] if variant.arguments[0].list else [("Tensor", None)]
        return variant

    def out(self, name, outputs):
        variant = self.variant(name)
        for output in outputs or ["out"]:
            extra = Argument(f"Tensor(a!) {output}", True)
            variant.arguments.append(extra)
        return variant

    def copy(self):
        import copy
        return copy.deepcopy(self)


PLAIN = {"int": "int64_t", "SymInt": "SymInt", "float": "double", "bool": "bool", "ScalarType": "DType", "Device": "Device",
         "Layout": "Layout", "MemoryFormat": "MemoryFormat", "SymFloat": "SymFloat", "SymBool": "SymBool"}
NUMBERS = {"int", "SymInt", "float", "Scalar", "SymFloat"}
LISTS = {"Tensor": "ArrayRef<Tensor>", "int": "IntArrayRef", "SymInt": "SymIntArrayRef", "float": "ArrayRef<double>",
         "bool": "std::vector<bool>", "Scalar": "ArrayRef<Scalar>"}


def cpp_type(a):
    if a.list and a.base in ("int", "SymInt"):
        plain = a.base.capitalize() if a.base == "int" else a.base
        kind = f"argument::{plain}List" if a.only_list else f"argument::{plain}s"
        return f"const argument::Optional<{kind}>&" if a.optional else f"const {kind}&"
    if a.list:
        plain = LISTS[a.base]
        return f"std::optional<{plain}>" if a.optional else plain
    if a.base == "Tensor":
        return "const Tensor&"
    if a.base == "Scalar":
        if a.optional:
            return "const argument::Number&" if a.only_number else "const std::optional<Scalar>&"
        return "const Scalar&"
    if a.base == "str":
        return "const std::optional<std::string>&" if a.optional else "const argument::Text&"
    if a.base == "Generator":
        return "const IntrusivePtr<Generator>&"
    if a.base == "bool" and a.only_flag and not a.optional:
        return "argument::Flag"
    plain = PLAIN[a.base]
    return f"std::optional<{plain}>" if a.optional else plain


def cpp_default(a):
    d = a.default
    if d is None:
        return None
    if d == "None":
        return "{}" if a.base in ("Tensor", "Generator") and not a.list else "std::nullopt"
    if d in ("True", "False"):
        return d.lower()
    if d.startswith("["):
        return "{" + d[1:-1].replace("True", "true").replace("False", "false") + "}"
    if d.startswith(("'", '"')):
        return '"' + d[1:-1] + '"'
    if a.list:
        return "{" + ", ".join([d] * max(a.list_size, 1)) + "}"
    if a.base == "MemoryFormat" and d == "0":
        d = "contiguous_format"
    return {"Mean": "1", "contiguous_format": "MemoryFormat::Contiguous", "inf": "INFINITY", "long": "DType::Int64"}.get(d, d)


def boxed(a):
    """The expression that puts an argument into a frame."""
    n = safe(a.name)
    if a.list:
        if a.base in ("int", "SymInt"):
            items = f"{n}.get()" if a.only_list or a.list_size < 2 else f"{n}.times({a.list_size})"
            if a.base == "int":
                items = f"as_sym({items})"
            return f"{n}.present() ? Value::borrow({items}) : Value()" if a.optional else f"Value::borrow({items})"
        if a.base == "bool":
            return f"Value({n})"
        if a.base == "Scalar":
            return f"box_scalars({n})"
        return f"{n} ? Value::borrow(*{n}) : Value()" if a.optional else f"Value::borrow({n})"
    if a.base == "Tensor":
        return f"Value::borrow({n})"
    if a.base == "str" and not a.optional:
        return f"Value::borrow({n}.string)"
    if (a.base == "bool" and a.only_flag and not a.optional) or (a.base == "Scalar" and a.optional and a.only_number):
        return f"Value({n}.value)"
    return f"Value({n})"


def safe(name):
    return name + "_" if name in KEYWORDS else name


def result_type(schema):
    def one(base, is_list):
        if is_list:
            return {"Tensor": "std::vector<Tensor>", "int": "std::vector<int64_t>", "SymInt": "std::vector<SymInt>"}[base]
        return {"Tensor": "Tensor", "Scalar": "Scalar", "str": "std::string"}.get(base) or PLAIN[base]
    if not schema.returns:
        return "void"
    if len(schema.returns) == 1:
        return one(*schema.returns[0])
    return "std::tuple<" + ", ".join(one(*r) for r in schema.returns) + ">"


def unboxed(base, is_list, i):
    if is_list:
        return {"Tensor": f"frame[{i}].tensor_list().vec()", "int": f"guard_ints(frame[{i}].int_list())",
                "SymInt": f"frame[{i}].int_list().vec()"}[base]
    method = {"Tensor": "take_tensor", "int": "to_int", "SymInt": "to_sym_int", "float": "to_double", "bool": "to_bool",
              "Scalar": "to_scalar", "str": "to_string", "ScalarType": "to_dtype", "SymBool": "to_sym_bool",
              "SymFloat": "to_sym_float"}[base]
    return f"frame[{i}].{method}()"


def tell_apart(schemas):
    """Marks the arguments at which overloads of one name have different things that C++ would convert into each other."""
    places = {}
    for schema in schemas:
        has_out = any(a.keyword_only and a.write for a in schema.arguments)
        for i, a in enumerate(schema.arguments):
            places.setdefault((schema.name, has_out, i), []).append(a)
    for arguments in places.values():
        lists = any(a.list and a.base != "Tensor" for a in arguments)
        numbers = any(not a.list and a.base in NUMBERS for a in arguments)
        scalars = any(a.optional and a.base == "Scalar" for a in arguments)
        flags = any(not a.list and not a.optional and a.base == "bool" for a in arguments)
        for a in arguments:
            a.only_list, a.only_flag, a.only_number = numbers, lists or scalars, flags


class Function:
    """A schema as C++ sees it: parameters (the four options of a factory are one), and how the frame is filled."""

    def __init__(self, schema):
        self.schema = schema
        self.name = schema.name
        arguments = schema.arguments
        outs = [a for a in arguments if a.keyword_only and a.write]
        if outs:
            self.name += "_out"
        names = [a.name for a in arguments]
        start = next((i for i in range(len(names)) if names[i:i + 4] == OPTIONS), None)
        self.parameters, self.boxed = [], []
        for a in outs:
            self.parameters.append((cpp_type(a), safe(a.name), None))
        for i, a in enumerate(arguments):
            if start is not None and start <= i < start + 4:
                if i == start:
                    self.parameters.append(("const TensorOptions&", "options", "{}"))
                whole = a.base == "ScalarType" and a.default in ("long", "4")  # what is drawn or counted, not measured
                self.boxed.append(f"Value(options.{a.name}" + (".value_or(DType::Int64)" if whole else "") + ")")
            else:
                if a not in outs:
                    self.parameters.append((cpp_type(a), safe(a.name), cpp_default(a)))
                self.boxed.append(boxed(a))
        self.fix_defaults()

    def fix_defaults(self):
        """C++ wants defaults at the end: a parameter after the last one without a default keeps its own, the others lose theirs."""
        seen_required = False
        for i in range(len(self.parameters) - 1, -1, -1):
            kind, name, default = self.parameters[i]
            if default is None:
                seen_required = True
            elif seen_required:
                self.parameters[i] = (kind, name, None)

    def required(self):
        """The types of the shortest call."""
        return tuple(kind for kind, _, default in self.parameters if default is None)

    def require_one_more(self):
        """Takes the first default away; false where there is none."""
        for i, (kind, name, default) in enumerate(self.parameters):
            if default is not None:
                self.parameters[i] = (kind, name, None)
                return True
        return False

    def declaration(self, skip=0, defaults=True):
        out = []
        for kind, name, default in self.parameters[skip:]:
            out.append(f"{kind} {name}" + (f" = {default}" if default is not None and defaults else ""))
        return ", ".join(out)

    def key(self):
        return self.name, tuple(k for k, _, _ in self.parameters)

    def is_method(self):
        a = self.schema.arguments
        return bool(a) and a[0].base == "Tensor" and not a[0].list and a[0].name == "self" and not self.name.endswith("_out") \
            and self.name not in OWN_MEMBERS and self.name not in KEYWORDS

    def body(self):
        n = max(len(self.boxed), len(self.schema.returns), 1)
        here = "static " if self.name in METHODS_ONLY else ""
        lines = [f"{here}{result_type(self.schema)} {safe(self.name)}({self.declaration(defaults=False)}) {{",
                 f'  static const Operator& op = get_operator("{self.schema.full_name()}");',
                 f"  Value frame[{n}] = {{{', '.join(self.boxed)}}};", "  op.call(frame);"]
        results = [unboxed(b, l, i) for i, (b, l) in enumerate(self.schema.returns)]
        if any(kind == "const TensorOptions&" for kind, _, _ in self.parameters):
            lines += [f"  Tensor result = {results[0]};", "  if (options.requires_grad) result.requires_grad_();", "  return result;"]
        elif len(results) == 1:
            lines.append(f"  return {results[0]};")
        elif results:
            lines.append("  return {" + ", ".join(results) + "};")
        return "\n".join(lines + ["}"])

    def with_dtype(self):
        """A factory that is given a type and no other option: `zeros({2, 3}, DType::Int64)`; None where it takes no options."""
        at = next((i for i, (kind, _, _) in enumerate(self.parameters) if kind == "const TensorOptions&"), 0)
        if at == 0 or self.name == "to" or any(default is None for _, _, default in self.parameters[at:]):
            return None
        parameters = ", ".join(f"{kind} {name}" for kind, name, _ in self.parameters[:at])
        names = ", ".join(name for _, name, _ in self.parameters[:at])
        return (f"template <std::same_as<DType> D> Tensor {safe(self.name)}({parameters}, D dtype) "
                f"{{ return {safe(self.name)}({names}, TensorOptions{{.dtype = dtype}}); }}")

    def in_namespace(self, family):
        """linalg::inv beside linalg_inv; None for operators of other families, and for those that programs seldom call."""
        short = self.name.removeprefix(family + "_")
        if short == self.name or short.startswith("_") or short.endswith("_out"):
            return None
        names = ", ".join(name for _, name, _ in self.parameters)
        return f"inline {result_type(self.schema)} {short}({self.declaration()}) {{ return umbra::{self.name}({names}); }}"

    def method_declaration(self):
        return f"  {result_type(self.schema)} {self.name}({self.declaration(skip=1)}) const;"

    def method_body(self):
        call = ", ".join(["*this"] + [name for _, name, _ in self.parameters[1:]])
        return (f"{result_type(self.schema)} Tensor::{self.name}({self.declaration(skip=1, defaults=False)}) const "
                f"{{ return umbra::{safe(self.name)}({call}); }}")


def read_schemas(folder):
    for path in sorted(pathlib.Path(folder).rglob("*.cpp")):
        text = path.read_text()
        starts = [m.start() for m in re.finditer(r"^UMBRA_OPERATOR\(", text, re.M)]
        for start, end in zip(starts, starts[1:] + [len(text)]):
            block = text[start:end]
            match = re.match(r'UMBRA_OPERATOR\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', block)
            if not match:
                sys.exit(f"generate_operators: {path}: UMBRA_OPERATOR needs a string literal")
            literal = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match.group(1)))
            schema = Schema(literal.replace('\\"', '"'))
            yield schema
            chain = block[match.end():]
            for inplace in re.finditer(r"\.inplace\(\"([\w.]+)\"\)", chain):
                yield schema.inplace(inplace.group(1))
            for out in re.finditer(r"\.(?:generated_)?out\(\"([\w.]+)\"(?:,\s*\{([^}]*)\})?\)", chain):
                names = re.findall(r'"(\w+)"', out.group(2) or "")
                yield schema.out(out.group(1), names)


def is_expressible(schema):
    """False for the few schemas of ATen with types that have no C++ counterpart here yet."""
    known = PLAIN.keys() | LISTS.keys() | {"str", "Generator"}
    arguments = all(a.base in known and (not a.list or a.base in LISTS) for a in schema.arguments)
    returns = all(base in PLAIN or base in ("Tensor", "Scalar", "str") for base, is_list in schema.returns if not is_list)
    return arguments and returns and all(base in ("Tensor", "int", "SymInt") for base, is_list in schema.returns if is_list)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


NOTE = "// Written by tools/generate_operators.py from the operators' schemas.\n"


def functions_of(schemas):
    """The functions that C++ has of the schemas, by name and overload."""
    functions, seen = [], set()
    for schema in schemas:
        f = Function(schema)
        if f.key() in seen:  # overloads that C++ cannot tell apart: the first one is the function
            continue
        seen.add(f.key())
        functions.append(f)
    functions.sort(key=lambda f: (f.name, f.schema.overload))
    # Where two overloads could be called with the same arguments, the one with more parameters gives up a default.
    calls = set()
    for f in sorted(functions, key=lambda f: (f.name, len(f.parameters), f.schema.overload)):
        while (f.name, f.required()) in calls and f.require_one_more():
            pass
        calls.add((f.name, f.required()))
    return functions


def write_headers(folder, functions, for_users):
    head = NOTE + ("#pragma once\n\n#include <cmath>\n#include <concepts>\n#include <optional>\n#include <string>\n#include <tuple>\n"
                   "#include <vector>\n\n"
                   '#include "umbra/core/generator.h"\n#include "umbra/core/value.h"\n\nnamespace UMBRA_API umbra {\n\n')
    declarations = "\n".join(f"{result_type(f.schema)} {safe(f.name)}({f.declaration()});  // {f.schema.full_name()}"
                             for f in functions if f.name not in METHODS_ONLY)
    declarations += "\n\n" + "\n".join(filter(None, (f.with_dtype() for f in functions if f.name not in METHODS_ONLY)))
    methods = [f.method_declaration() for f in functions if f.is_method()]
    if for_users:
        for family in FAMILIES:
            members = filter(None, (f.in_namespace(family) for f in functions))
            declarations += f"\n\nnamespace {family} {{\n" + "\n".join(members) + f"\n}}  // namespace {family}"
        methods = [m for m in methods if "Scalar item()" not in m]  # that one gives a Scalar of more names
        methods.append('#include "umbra/libtorch_methods.inc"')
    write(folder / "umbra/generated/functions.h", head + declarations + "\n\n}  // namespace umbra\n")
    write(folder / "umbra/generated/methods.inc", NOTE + "\n".join(methods) + "\n")


def write_sources(folder, functions):
    head = NOTE + ('#include "umbra/dispatch/operator.h"\n#include "umbra/generated/functions.h"\n\nnamespace umbra {\n\n'
                   "[[maybe_unused]] static Value box_scalars(ArrayRef<Scalar> scalars) {\n"
                   "  return std::vector<Value>(scalars.begin(), scalars.end());\n}\n\n")
    for part in range(PARTS):
        bodies = []
        for f in functions:
            if f.name in OWN_FUNCTIONS or zlib.crc32(f.name.encode()) % PARTS != part:
                continue
            bodies.append(f.body())
            if f.is_method():
                bodies.append(f.method_body())
        write(folder / f"functions_{part}.cpp", head + "\n\n".join(bodies) + "\n\n}  // namespace umbra\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    own = list(read_schemas(args.sources))
    aten = [Schema(line) for line in (pathlib.Path(args.sources) / "aten_schemas.txt").read_text().splitlines()]
    # ATen's own text first: how a definition spells a default, and which definitions there are, leaves the headers as they are.
    known = {s.full_name() for s in aten}
    schemas = aten + [s for s in own if s.full_name() not in known]
    schemas = [s for s in schemas if s.space == "aten" and is_expressible(s)]
    tell_apart(schemas)
    functions = functions_of(schemas)
    names = {s.full_name() for s in own}
    defined = [f for f in functions if f.schema.full_name() in names]
    out = pathlib.Path(args.out)
    write_headers(out / "include", functions, False)
    write_headers(out / "installed", defined, True)
    write_sources(out / "src", defined)


if __name__ == "__main__":
    main()
