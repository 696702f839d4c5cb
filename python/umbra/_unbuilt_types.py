"""torch's types of elements that no tensor here can have: they can be named, compared and put in tables."""
_FACTS = {  # bytes of an element, whether it is floating-point, complex
    **dict.fromkeys(("qint8", "quint8", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", *(f"uint{n}" for n in range(1, 8)),
                     *(f"int{n}" for n in range(1, 8))), (1, False, False)),
    "float4_e2m1fn_x2": (1, True, False),
    "qint32": (4, False, False), "bits16": (2, False, False), "bcomplex32": (4, False, True),
}


class UnbuiltType:
    """The name of a type of elements; a tensor of it cannot be made."""

    def __init__(self, name, itemsize, is_floating_point, is_complex):
        self._name, self.itemsize, self.is_floating_point, self.is_complex = name, itemsize, is_floating_point, is_complex

    @property
    def is_signed(self):
        if self._name.startswith(("q", "bits")):
            raise RuntimeError("Bits types are undefined" if self._name.startswith("bits") else "isSignedType not supported for quantized types")
        return not self._name.startswith("uint")

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return _find, (self._name,)


class qscheme:
    """How integers stand for numbers: named by the settings of quantised models; no tensor here has one."""

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return _find, (self._name,)


def _find(name):
    return TYPES[name] if name in TYPES else SCHEMES[name]


TYPES = {name: UnbuiltType(name, *facts) for name, facts in _FACTS.items()}
SCHEMES = {name: qscheme(name) for name in ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
                                            "per_channel_affine_float_qparams")}
globals().update(TYPES | SCHEMES)
