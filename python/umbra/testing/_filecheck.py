"""Checks that pieces of a text stand in it, in an order: of graphs' and programs' texts above all."""
import re

_KINDS = ("CHECK-SOURCE-HIGHLIGHTED", "CHECK-COUNT", "CHECK-NEXT", "CHECK-SAME", "CHECK-NOT", "CHECK-DAG", "CHECK-REGEX", "CHECK")
_HERE = " <--- HERE"


def _marked(text, start, end):
    """The text with the line that holds [start, end) underlined there."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    width = max(min(end, line_end) - start, 1)
    rest = text[line_end + 1:]
    return text[:line_end] + "\n" + " " * (start - line_start) + "~" * width + _HERE + "\n" + rest + ("" if rest.endswith("\n") or not rest else "\n")


class _Check:
    def __init__(self, kind, text, count=0):
        self.kind, self.text, self.count = kind, text, count

    def __str__(self):
        return f"{self.kind}{f'-{self.count}' if self.kind == 'CHECK-COUNT' else ''}: {self.text}"

    def missing(self, text, what=None):
        return RuntimeError(f'Expected to find "{self.text if what is None else what}" but did not find it\nSearched string:\n{text}\nFrom {self}\n')

    def unwanted(self, text, start, what=None):
        shown = text + "\n" if what is not None else _marked(text, start, start + len(self.text))
        return RuntimeError(f'Expected to not find "{self.text if what is None else what}" but found it\n{shown}From {self}\n')

    def find(self, text, start):
        """Where this check is met at or after `start`: the first and one beyond the last character."""
        if self.kind == "CHECK-REGEX":
            match = re.compile(self.text).search(text, start)
            if match is None:
                raise RuntimeError(f'Expected to find regex "{self.text}" but did not find it\nSearched string:\n{text}\nFrom {self}\n')
            return match.span()
        first = text.find(self.text, start)
        if first < 0:
            raise self.missing(text)
        return first, first + len(self.text)

    def run(self, text, start):
        if self.kind == "CHECK-COUNT":
            first, end = None, start
            for _ in range(self.count):
                place, end = self.find(text, end)
                first = place if first is None else first
            return (start if first is None else first), end
        if self.kind == "CHECK-SOURCE-HIGHLIGHTED":
            return self._highlighted(text, start)
        first, end = self.find(text, start)
        if self.kind in ("CHECK-SAME", "CHECK-NEXT"):
            self._same_or_next_line(text, start, first)
        return first, end

    def _same_or_next_line(self, text, start, first):
        newline = text.find("\n", start, first)
        if self.kind == "CHECK-NEXT":
            if newline < 0:
                raise self.missing(text, "\\n")
            newline = text.find("\n", newline + 1, first)
        if newline >= 0:
            raise self.unwanted(text, newline, "\\n")

    def _highlighted(self, text, start):
        """The text, underlined on the line below it."""
        first, end = self.find(text, start)
        while True:
            line_start = text.rfind("\n", 0, first) + 1
            below = text.find("\n", first)
            mark = below + 1 + first - line_start
            marks = text[mark:mark + len(self.text)]
            around = text[mark - 1:mark] + text[mark + len(self.text):mark + len(self.text) + 1]
            if below >= 0 and marks == "~" * len(self.text) and "~" not in around and "\n" not in text[below + 1:mark]:
                return first, mark + len(self.text)
            following = text.find(self.text, end)
            if following < 0:
                raise RuntimeError(f'Expected to find "{self.text}"highlighted but it is not.\n{_marked(text, first, end)}')
            first, end = following, following + len(self.text)


class FileCheck:
    """Checks that are made of one text, in the order in which they were added; each looks behind the one before.

        FileCheck().check("aten.add").check_not("aten.mul").check("return").run(program.graph_module.code)

    Raises RuntimeError that says which check was not met and where.
    """

    def __init__(self):
        self._checks, self._was_run = [], False

    def _add(self, kind, text, count=0):
        self._checks.append(_Check(kind, text, count))
        return self

    def check(self, text):
        """`text` stands behind what the check before found."""
        return self._add("CHECK", text)

    def check_not(self, text):
        """`text` does not stand between the checks before and behind this one."""
        return self._add("CHECK-NOT", text)

    def check_same(self, text):
        """`text` stands behind what the check before found, on the same line."""
        return self._add("CHECK-SAME", text)

    def check_next(self, text):
        """`text` stands on the line after that of the check before."""
        return self._add("CHECK-NEXT", text)

    def check_count(self, str, count, exactly=False):
        """The text stands `count` times; with `exactly`, not once more before the next check."""
        if count == 0 and not exactly:
            raise RuntimeError("Count == 0 && !exactly doesn't do anything")
        if count:
            self._add("CHECK-COUNT", str, count)
        return self._add("CHECK-NOT", str) if exactly else self

    def check_dag(self, text):
        """`text` stands behind the checks before; neighbours of this kind may be met in any order."""
        return self._add("CHECK-DAG", text)

    def check_source_highlighted(self, text):
        """`text` stands there with a line of `~` right below it, as errors underline source."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", text)

    def check_regex(self, pattern):
        """A match of the regular expression stands behind what the check before found."""
        return self._add("CHECK-REGEX", pattern)

    def run(self, checks_file, test_file=None):
        """Makes the checks of a text or graph; given two arguments, those that the first one spells (`# CHECK: ...`) of the second."""
        if test_file is not None:
            self._parse(str(checks_file))
        text = str(checks_file if test_file is None else test_file)
        self._was_run = True
        if not self._checks:
            raise RuntimeError("No checks have been added to this instance ofFilecheck! Check for bad input.")
        self._run(text)

    def _run(self, text):
        position, unwanted, place = 0, [], 0
        while place < len(self._checks):
            check = self._checks[place]
            if check.kind == "CHECK-NOT":
                unwanted.append(check)
                place += 1
                continue
            group = 1
            while check.kind == "CHECK-DAG" and place + group < len(self._checks) and self._checks[place + group].kind == "CHECK-DAG":
                group += 1
            spans = [c.run(text, position) for c in self._checks[place:place + group]]
            self._forbid(unwanted, text, position, min(first for first, _ in spans))
            position, unwanted, place = max(end for _, end in spans), [], place + group
        self._forbid(unwanted, text, position, len(text))

    @staticmethod
    def _forbid(checks, text, start, end):
        for check in checks:
            found = text.find(check.text, start, end)
            if found >= 0:
                raise check.unwanted(text, found)

    def _parse(self, source):
        for match in re.finditer(r"^[ \t]*#[ \t]*(CHECK[^:\n]*):[ ]?(.*)$", source, re.MULTILINE):
            head, text = match.group(1), match.group(2)
            count = re.fullmatch(r"CHECK-COUNT(-EXACTLY)?-(\d+)", head)
            if count:
                self.check_count(text, int(count.group(2)), bool(count.group(1)))
            elif head in _KINDS and head != "CHECK-COUNT":
                self._add(head, text)
            else:
                raise RuntimeError(f"Could not parse check at:\n{_marked(source, match.start(1), match.end(1))}Check for bad input.")

    def __repr__(self):
        lines = ["<torch.FileCheck object>"] + ([] if self._was_run else ["You have not run this instance of FileCheck!"])
        return "\n".join(lines + ["FileCheck checks:"] + ["\t" + str(check) for check in self._checks]) + "\n"
