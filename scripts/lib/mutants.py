# SPDX-License-Identifier: Apache-2.0
"""Mutants of the product's C: one operator, condition, constant or return value changed in the body of a function. The house format
tells binary operators from unary ones and declarators: only they have a space on both sides."""
import hashlib
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import choose_tests

FOLDERS = "jobs", "worker", "launcher", "plugin", "lib"

# What each token becomes; one of the choices is drawn.
OPERATORS = {
    "==": ("!=",), "!=": ("==",), "<": ("<=", ">="), ">": (">=", "<="), "<=": ("<", ">"), ">=": (">", "<"),
    "&&": ("||",), "||": ("&&",), "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("/",),
    "&": ("|",), "|": ("&",), "<<": (">>",), ">>": ("<<",), "+=": ("-=",), "-=": ("+=",), "|=": ("&=",), "&=": ("|=",),
}
_SPACED = "|".join(re.escape(each) for each in sorted(OPERATORS, key=len, reverse=True))
_TOKENS = re.compile(rf"""
    (?<=\ )(?P<operator>{_SPACED})(?=[ \n])
  | (?P<step>\+\+|--)
  | (?<![\w\])])!(?=[\w(*])
  | (?<![\w.])(?P<number>\d+)(?![\w.])
  | \b(?P<bool>true|false)\b
  | \breturn\ (?P<value>[^;{{}}\n]+);
  | \b(?:if|while)\ (?P<condition>\()
""", re.X)
_SKIPPED_LINES = re.compile(r"\s*(assert|_Static_assert|static_assert|log_debug)\b")
_ARRAY = re.compile(r"\w[ *]+\w+(\[\w*\])*\[$")  # before the size in a declaration


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    start: int  # the place of what is replaced in the file's text
    end: int
    text: str
    before: str  # the line, stripped
    after: str

    def apply(self, source):
        return source[:self.start] + self.text + source[self.end:]

    def key(self):
        return self.file, self.before, self.after

    def __str__(self):
        return f"{self.file}:{self.line}\n-   {self.before}\n+   {self.after}"


def masked(text):
    """The text with blanks in the place of comments, strings, characters and preprocessor lines."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found.group())
    return re.sub(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^[ \t]*\#(?:\\\n|[^\n])*""", blank, text, flags=re.S | re.M)


def bodies(text):
    """(start, end) of the functions' bodies: from a { to a } that begin a line."""
    return [found.span() for found in re.finditer(r"^\{\n.*?^\}$", text, re.S | re.M)]


def closing(text, start):
    """The place of the parenthesis that closes the one at start; None where it is not on the line."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
        if text[i] == "\n":
            return None
    return None


def choices(code, found):
    """(start, end, replacements) for a match of _TOKENS."""
    name = found.lastgroup
    if name == "operator":
        yield *found.span(name), OPERATORS[found.group(name)]
    elif name == "step":
        yield *found.span(), ("--" if found.group() == "++" else "++",)
    elif name == "bool":
        yield *found.span(), ("false" if found.group() == "true" else "true",)
    elif name == "number":
        line = code[code.rfind("\n", 0, found.start()) + 1:found.start()]
        if not _ARRAY.search(line) and not line.endswith("= {"):  # not sizes, and not = {0}
            value = int(found.group())
            yield *found.span(), ("1",) if value == 0 else (str(value + 1), str(value - 1))
    elif name == "value":
        if found.group(name) not in ("NULL", "true", "false"):
            yield *found.span(name), ("1",) if found.group(name) == "0" else ("0",)
    elif name == "condition":
        end = closing(code, found.start(name))
        if end:
            yield found.start(name), end + 1, (f"(!{code[found.start(name):end + 1]})",)
    else:
        yield *found.span(), ("",)


def sites(text):
    """(start, end, replacements) of everything in the text that can be changed."""
    code = masked(text)
    for begin, end in bodies(code):
        at = begin
        while found := _TOKENS.search(code, at, end):
            line = code[code.rfind("\n", 0, found.start()) + 1:code.find("\n", found.start())]
            if not _SKIPPED_LINES.match(line):
                yield from choices(code, found)
            # a value and a condition hold tokens of their own
            at = found.end() if found.lastgroup not in ("value", "condition") else found.start() + 1


def chance(*words):
    """A number that these words alone decide."""
    return int.from_bytes(hashlib.sha1(repr(words).encode()).digest()[:8], "big")


def mutants_of(file, text, seed):
    for start, end, replacements in sites(text):
        column = start - text.rfind("\n", 0, start)
        new = replacements[chance(seed, file, column, text[text.rfind("\n", 0, start):start]) % len(replacements)]
        if new.startswith("(!("):
            new = f"(!{text[start:end]})"
        first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        before, after = text[first:last], text[first:start] + new + text[end:last]
        yield Mutant(file, text.count("\n", 0, start) + 1, start, end, new, before.strip(), after.strip())


def product_files(root, folder):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "--", folder],
                            stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return [file for file in listed if re.fullmatch(r"(?!.*/(test|fuzz)/).*\.c", file) and (Path(root) / file).exists()]


def read_equivalent(path):
    """The mutants that no test can notice, and why: blocks as `mutate` prints them, with a line `why:`."""
    known, block = {}, {}
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else (), 1):
        mark, _, rest = line.partition(" ")
        if mark in ("-", "+"):
            block[mark] = rest.strip()
        elif mark == "why:":
            if not (rest and {"file", "-", "+"} <= block.keys()):
                raise ValueError(f"{path}:{number}: 'why:' needs a reason, after a file, a line - and a line +")
            known[block["file"], block["-"], block["+"]] = rest
            block = {}
        elif line and mark != "#":
            block["file"] = line.partition(":")[0]
    return known


# Labels of programs that need nodes, a guest or an idle machine, none of which scripts/mutate gives them.
OUTSIDE = {"bed", "node", "timed", "vm"}


def steps(selected, programs):
    """(unit tests, the gate's other programs, the proof's others) of those that scripts/test --for selects. programs: {name: (its labels, its
    test files)} of all. A choice of cases that the gate has of a selected file comes with the gate's."""
    usable = {name for name in selected if not programs[name][0] & OUTSIDE}
    files = set().union(*(programs[name][1] for name in usable))
    unit = {name for name in usable if programs[name][0] & choose_tests.UNIT}
    gate = {name for name in usable - unit if "gate" in programs[name][0]}
    gate |= {name for name, (labels, own) in programs.items() if name.startswith("gate.") and own and own <= files}
    return unit, gate, usable - unit - gate


def draw(root, seed, count, folder=None, equivalent=()):
    """{folder: (number to draw, iterator of all mutants)}, in proportion to what can be changed in it. What is drawn of a line depends
    on the seed and the line alone, so that the same are drawn after a change elsewhere."""
    found = {}
    for each in [folder] if folder else FOLDERS:
        mutants = [mutant for file in product_files(root, each) for mutant in mutants_of(file, (Path(root) / file).read_text(), seed)
                   if mutant.key() not in equivalent]
        found[each] = sorted(mutants, key=lambda mutant: chance(seed, mutant.key()))
    total = sum(map(len, found.values()))
    if total == 0:
        raise ValueError(f"{folder}: no C of the product there that can be changed")
    # largest remainder
    shares = {each: count * len(mutants) / total for each, mutants in found.items()}
    numbers = {each: int(share) for each, share in shares.items()}
    for each in sorted(shares, key=lambda each: numbers[each] - shares[each])[:count - sum(numbers.values())]:
        numbers[each] += 1
    return {each: (numbers[each], iter(mutants)) for each, mutants in found.items()}
