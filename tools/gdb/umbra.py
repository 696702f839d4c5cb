"""Shows Umbra's values in gdb as the library prints them.

Installed beside the library as libumbra.so.<version>-gdb.py, which gdb loads by itself where its auto-load safe path allows;
elsewhere: (gdb) source <prefix>/share/umbra/gdb/umbra.py

    (gdb) print x
    $1 = Tensor float32[2, 3] cpu [0., 1., 2., 3., 4., 5.]
"""
import gdb
import gdb.printing


def enumerator(value):
    """Float32 of umbra::DType::Float32."""
    return str(value).rsplit("::", 1)[-1]


def sym_int(value):
    bits = int(value["data_"])
    return str(bits) if bits >= -(1 << 62) else "<symbol>"


def items_text(data, count, text=str):
    return "[" + ", ".join(text(data[i]) for i in range(count)) + "]"


def element_text(value):
    return sym_int(value) if value.type.strip_typedefs().name == "umbra::SymInt" else str(value)


class SymInt:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return sym_int(self.value)


class Array:
    """ArrayRef and SmallVector."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        return items_text(self.value["data_"], int(self.value["size_"]), element_text)


class Scalar:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        kind = enumerator(self.value["kind_"])
        if kind in ("Bool", "Int"):
            number = int(self.value["int_"])
            return str(bool(number) if kind == "Bool" else number)
        if kind == "Complex":
            return f"({self.value['double_']} + {self.value['imag_']}j)"
        return str(self.value["double_"]) if kind == "Double" else "<symbol>"


class Device:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        name, index = enumerator(self.value["type"]).lower(), int(self.value["index"])
        return name if index < 0 else f"{name}:{index}"


class Tensor:
    """Asks the library, since a program's debug information does not have the class behind the handle."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        function = "((const char* (*)(const void*)) 'umbra::detail::debug_text(umbra::Tensor const*)')"
        try:
            return gdb.parse_and_eval(f"{function}({int(self.value.address)})").string()
        except gdb.error:  # nothing runs, as in a core file
            return f"Tensor at {self.value['impl_']}"


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("umbra")
    collection.add_printer("Tensor", "^umbra::Tensor$", Tensor)
    collection.add_printer("SymInt", "^umbra::SymInt$", SymInt)
    collection.add_printer("ArrayRef", "^umbra::ArrayRef<.*>$", Array)
    collection.add_printer("SmallVector", "^umbra::SmallVector<.*>$", Array)
    collection.add_printer("Scalar", "^umbra::Scalar$", Scalar)
    collection.add_printer("Device", "^umbra::Device$", Device)
    return collection


gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(), replace=True)
