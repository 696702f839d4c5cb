"""What help() says of operators: a text, where `_operator_docs.txt` has one, above their schemas."""
import functools
import os


@functools.cache
def _texts():
    """Text and examples by the operator's name; of another name for the same, that name."""
    texts, last = {}, None
    with open(os.path.join(os.path.dirname(__file__), "_operator_docs.txt")) as file:
        for line in file:
            if line.startswith("    "):
                texts[last] += ("\n\n" if line.startswith("    >>> ") else "\n") + line.rstrip()
            elif not line.startswith("#"):
                last, colon, text = line.strip().partition(": ")
                if colon:
                    texts[last] = text
                else:
                    other, _, same = last.partition(" = ")
                    texts[other] = texts.get(same) or (same,)
    return {name: texts[text[0]] if isinstance(text, tuple) else text for name, text in texts.items()}


def described(name):
    """The text for "relu" or "relu_", or ""; in-place forms, copies of views and the like follow from the operator's."""
    texts = _texts()
    if name in texts:
        return texts[name]
    for ending, beside in (("_", "Writes its first argument: "), ("_copy", "As a copy, not a view: ")):
        text = texts.get(name.removesuffix(ending)) if name.endswith(ending) else None
        if text:
            text = text.partition("\n")[0]
            return beside + text[0].lower() + text[1:]
    return ""
