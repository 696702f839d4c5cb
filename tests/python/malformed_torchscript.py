"""Makes malformed TorchScript archives out of a sound one: cut, swapped, of wrong types, recursive, hostile.

Run as a program it loads every file of a folder and says what became of it, a line each: a file that ends the process
is then known by the line that is missing.
"""
import io
import struct
import sys
import zipfile


SIZES = b"J\x04\0\0\0J\x03\0\0\0"  # of the weight: 4, 3


def entries_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, contents in entries.items():
            archive.writestr(name, contents)
    return out.getvalue()


def program(*parts):
    """A pickle of protocol 2 from its instructions."""
    return b"\x80\x02" + b"".join(parts) + b"."


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return b"X" + struct.pack("<I", len(data)) + data


def named(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def place_of(entries):
    """The root of an archive, the file of its class Net, and the module that the file is."""
    root = next(iter(entries)).split("/")[0] + "/"
    code = next(name for name, contents in entries.items() if name.endswith(".py") and b"class Net(Module)" in contents)
    return root, code, code[len(root + "code/"):-len(".py")].replace("/", ".")


def replaced(data, old, new):
    assert old in data, f"{old} is not in the sound file"
    return data.replace(old, new, 1)


def damaged_containers(good):
    """The zip archive itself."""
    for share in (0, 1, 2, 5, 10, 25, 50, 75, 90, 99):
        yield f"cut_{share}", good[: len(good) * share // 100]
    yield "cut_last_byte", good[:-1]
    yield "reversed", good[::-1]
    yield "zeros_inside", good[: len(good) // 3] + bytes(64) + good[len(good) // 3 + 64:]
    yield "text", b"a module, honest\n"
    end = good.rindex(b"PK\x05\x06")
    yield "huge_count", good[: end + 8] + b"\xfe\xff\xfe\xff" + good[end + 12:]
    yield "huge_directory", good[: end + 12] + b"\xfe\xff\xff\xff" + good[end + 16:]
    yield "directory_outside", good[: end + 16] + b"\xfe\xff\xff\xff" + good[end + 20:]


def damaged_entries(good):
    """Entries that are missing, swapped or cut."""
    entries = entries_of(good)
    root, code, _ = place_of(entries)
    storage = next(n for n in entries if n.startswith(root + "data/"))

    def with_entry(name, contents):
        return archive_of({**entries, name: contents})

    for name in ("data.pkl", "constants.pkl"):
        yield f"without_{name}", archive_of({k: v for k, v in entries.items() if k != root + name})
        yield f"empty_{name}", with_entry(root + name, b"")
        yield f"half_{name}", with_entry(root + name, entries[root + name][: len(entries[root + name]) // 2])
        yield f"code_as_{name}", with_entry(root + name, entries[code])
    yield "swapped_pickles", archive_of({**entries, root + "data.pkl": entries[root + "constants.pkl"], root + "constants.pkl": entries[root + "data.pkl"]})
    yield "without_code", archive_of({k: v for k, v in entries.items() if k != code})
    yield "empty_code", with_entry(code, b"")
    yield "pickle_as_code", with_entry(code, entries[root + "data.pkl"])
    yield "half_code", with_entry(code, entries[code][: len(entries[code]) // 2])
    yield "code_not_utf8", with_entry(code, entries[code].replace(b"forward", b"for\xff\xfeard"))
    yield "code_zero_bytes", with_entry(code, entries[code].replace(b"\n", b"\n\0", 3))
    yield "short_storage", with_entry(storage, entries[storage][:-4])
    yield "without_storage", archive_of({k: v for k, v in entries.items() if k != storage})
    yield "big_endian", with_entry(root + "byteorder", b"big")


def damaged_pickles(good):
    """What data.pkl says."""
    entries = entries_of(good)
    root, _, module = place_of(entries)
    data = entries[root + "data.pkl"]

    def with_data(contents):
        return archive_of({**entries, root + "data.pkl": contents})

    cls = named(module, "Net")
    yield "none", with_data(program(b"N"))
    yield "list", with_data(program(b"]"))
    yield "runs_code", with_data(program(named("os", "system"), text("echo A READER MUST NOT RUN THIS"), b"\x85R"))
    yield "runs_builtin", with_data(program(named("builtins", "eval"), text("1+1"), b"\x85R"))
    yield "unknown_class", with_data(program(named(module, "Other"), b")\x81}b"))
    yield "class_not_utf8", with_data(program(b"c" + module.encode() + b"\nN\xff\xfet\n", b")\x81}b"))
    yield "text_not_utf8", with_data(replaced(data, text("training"), text(b"train\xffng")))
    yield "no_state", with_data(program(cls, b")\x81"))
    yield "state_is_list", with_data(program(cls, b")\x81]b"))
    yield "state_is_itself", with_data(program(cls, b")\x81q\x00h\x00b"))
    yield "attributes_missing", with_data(program(cls, b")\x81}b"))
    yield "recursive_state", with_data(program(cls, b")\x81q\x00}(", text("training"), b"h\x00", text("linear"), b"h\x00ub"))
    yield "recursive_list", with_data(program(b"]q\x00h\x00a"))
    yield "deep_list", with_data(program(b"]" * 100_000 + b"a" * 99_999))
    yield "deep_objects", with_data(program((cls + b")\x81") * 5000 + b"b" * 4999))
    yield "many_marks", with_data(program(b"(" * 200_000))
    yield "stack_empty", with_data(program(b"0"))
    yield "memo_missing", with_data(program(b"h\x07"))
    yield "long_text", with_data(b"\x80\x02X\xff\xff\xff\x7fab.")
    yield "huge_integer", with_data(program(b"\x8a\xff" + b"\x7f" * 255))
    yield "size_negative", with_data(replaced(data, SIZES, b"J\xff\xff\xff\xff" + SIZES[5:]))
    yield "size_huge", with_data(replaced(data, SIZES, b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f"))
    yield "type_of_storage", with_data(replaced(data, b"FloatStorage", b"OddStorage"))
    yield "bool_is_text", with_data(replaced(data, text("training") + b"\x88", text("training") + text("yes")))


def damaged_source(good):
    """What the program's source says."""
    entries = entries_of(good)
    root, code, module = place_of(entries)
    source, net = entries[code].decode(), f"{module}.Net"

    def with_source(contents):
        return archive_of({**entries, code: contents.encode()})

    yield "unknown_type", with_source(replaced(source, ": Tensor", ": Tensr"))
    yield "unknown_operator", with_source(replaced(source, "torch.relu", "torch.no_such_relu"))
    yield "unknown_base", with_source(replaced(source, "(Module)", "(Moodule)"))
    yield "type_of_itself", with_source(replaced(source, "training : bool", f"training : {net}"))
    yield "wrong_attribute_type", with_source(replaced(source, "training : bool", "training : Dict[str, Tensor]"))
    yield "deep_brackets", with_source(replaced(source, "return ", "return " + "(" * 100_000))
    yield "deep_indents", with_source("class Net(Module):\n" + "".join(" " * i + "if True:\n" for i in range(1, 3000)))
    yield "deep_types", with_source(replaced(source, "training : bool", "training : " + "Optional[" * 5000 + "int" + "]" * 5000))
    yield "no_self", with_source(replaced(source, f"def forward(self: {net},", "def forward("))
    looping = f"class Net(Module):\n  training : bool\n  def __setstate__(self: {net},\n    x: Dict[str, bool]) -> NoneType:\n    return (self).__setstate__(x, )\n"
    yield "calls_itself", archive_of({**entries, code: looping.encode(), root + "data.pkl": program(named(module, "Net"), b")\x81}b")})
    endless = looping.replace("    return (self).__setstate__(x, )\n", "    while True:\n      _0 = torch._set_item(x, \"a\", True)\n    return None\n")
    yield "does_not_end", archive_of({**entries, code: endless.encode(), root + "data.pkl": program(named(module, "Net"), b")\x81}b")})
    yield "constant_outside", with_source(replaced(source, "return ", "return CONSTANTS.c99999999999999999999 + "))


def malformed(good):
    for make in (damaged_containers, damaged_entries, damaged_pickles, damaged_source):
        yield from make(good)


def main(folder):
    import pathlib

    import umbra
    for path in sorted(pathlib.Path(folder).iterdir()):
        try:
            module = umbra.jit.load(str(path))
            for method in module._method_names() if hasattr(module, "_method_names") else ["forward"]:
                getattr(module, method).graph
            outcome = "loaded"
        except Exception as error:  # noqa: BLE001
            outcome = f"{type(error).__name__}: {' '.join(str(error).split())}"
        print(f"{path.name}\t{outcome}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
