"""Shows Umbra's values in gdb as the library prints them.

Installed beside the library as libumbra.so.<version>-gdb.py, which gdb loads by itself where its auto-load safe path allows;
elsewhere: (gdb) source <prefix>/share/umbra/gdb/umbra.py

    (gdb) print x
    $1 = Tensor float32[2, 3] cpu {1, 2, 3, 4, 5, 6}
"""
import gdb
import gdb.printing

NUMBER_TYPES = {"UInt8": "unsigned char", "Int8": "signed char", "Int16": "short", "Int32": "int", "Int64": "long", "Float32": "float",
                "Float64": "double", "Bool": "bool", "UInt16": "unsigned short", "UInt32": "unsigned int", "UInt64": "unsigned long"}
SHOWN = 8  # elements of a tensor


def enumerator(value):
    """Float32 of umbra::DType::Float32."""
    return str(value).rsplit("::", 1)[-1]


def pointer_in(handle):
    """What an IntrusivePtr, a shared_ptr or a unique_ptr points to."""
    for field in handle.type.strip_typedefs().fields():
        if field.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
            return handle[field]
    return None


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
    def __init__(self, value):
        self.value = value

    def to_string(self):
        impl = pointer_in(self.value["impl_"])
        if not impl:
            return "Tensor (undefined)"
        impl = impl.dereference()
        dim, inline = int(impl["dim_"]), int(impl["inline_"].type.sizeof // 16)
        place = impl["inline_"] if dim <= inline else pointer_in_unique(impl["heap_"])
        sizes = [sym_int(place[i]) for i in range(dim)]
        dtype = enumerator(impl["dtype_"])
        text = f"Tensor {dtype.lower()}[{', '.join(sizes)}] {Device(impl['device_']).to_string()}"
        return text + self.elements(impl, dtype)

    def elements(self, impl, dtype):
        storage = pointer_in(impl["storage_"])
        data = storage.dereference()["data_"] if storage else None
        numel, offset = sym_int(impl["numel_"]), sym_int(impl["offset_"])
        if not data or dtype not in NUMBER_TYPES or not numel.isdigit() or not offset.isdigit() or not bool(impl["contiguous_"]):
            return ""
        numbers = data.cast(gdb.lookup_type(NUMBER_TYPES[dtype]).pointer())
        count = min(int(numel), SHOWN)
        shown = ", ".join(str(numbers[int(offset) + i]) for i in range(count))
        return " {" + shown + (", ..." if int(numel) > SHOWN else "") + "}"


def pointer_in_unique(value):
    """The address in a std::unique_ptr<T[]>."""
    text = gdb.default_visualizer(value)
    children = list(text.children()) if text and hasattr(text, "children") else []
    return children[0][1] if children else value["_M_t"]["_M_t"]["_M_head_impl"]


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
