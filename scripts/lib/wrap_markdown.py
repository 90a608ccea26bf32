#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""wrap_markdown [--check] [FILE...]: puts paragraphs, quotes and list items of the tree's Markdown into lines of at most 100 columns, or names
the files in which they are not. The words stay; a code span or a link is not divided. Tables, code, headings and HTML stay as they are."""
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
WRITTEN = {"docs/messages.md", "docs/verbs.md", "docs/measured/import.md"}  # by programs
WIDTH = 100
ITEM = re.compile(r"( *)(?:[-*+]|\d+[.)]) +(?=\S)")
QUOTE = re.compile(r" {0,3}> ?")
FENCE = re.compile(r" *(```+|~~~+)")
# A line of its own: a heading, a table, HTML, the definition of a link, a rule, a directive of the site's generator.
ALONE = re.compile(r" *(#{1,6} |\||<|\[[^]]+\]: |(\* *){3,}$|(- *){3,}$|!!!|\?\?\?|:::|=+$)")
# A word that would begin something else at the start of a line.
BEGINS = re.compile(r"([-*+>]|#{1,6}|\d+[.)]|=+|-+|\||```.*|~~~.*|<.*|>.*|!!!.*|:::.*)$")
UNIT = re.compile(r"!?\[[^][]*(?:\[[^][]*\](?:\([^()]*\))?[^][]*)*\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?: \"[^\"]*\")?\)|(`+)(?:(?!\1).)+?\1(?!`)")


def fill(text, first, rest, width):
    """The words of text in lines that begin with first, then with rest."""
    lines, line, empty = [], first, True
    for word in UNIT.sub(lambda unit: unit[0].replace(" ", "\0"), text).split():
        word = word.replace("\0", " ")
        if not empty and len(line) + 1 + len(word) > width and not BEGINS.match(word):
            lines.append(line)
            line, empty = rest, True
        line += word if empty else " " + word
        empty = False
    return [*lines, line]


class Paragraphs:
    """The lines that are made, and the paragraph under way."""

    def __init__(self, width):
        self.width, self.lines, self.text, self.first, self.rest = width, [], [], "", ""

    def end(self):
        if self.text:
            self.lines += fill(" ".join(self.text), self.first, self.rest, self.width)
        self.text = []

    def keep(self, *lines):
        self.end()
        self.lines += lines

    def begin(self, text, first, rest):
        self.end()
        self.text, self.first, self.rest = [text], first, rest


def blocks(lines):
    """What stays as it is as (False, lines), quotes and the rest as (True, lines)."""
    at = 0
    while at < len(lines):
        end, line = at + 1, lines[at]
        fence = FENCE.match(line)
        if at == 0 and line == "---":
            end = lines.index("---", 1) + 1
        elif fence:
            while end < len(lines) and not (lines[end].strip().startswith(fence[1]) and not lines[end].strip().strip(fence[1][0])):
                end += 1
            end = min(end + 1, len(lines))
        elif "<!--" in line:
            while "-->" not in lines[end - 1] and end < len(lines):
                end += 1
        elif QUOTE.match(line):
            while end < len(lines) and QUOTE.match(lines[end]):
                end += 1
        else:
            yield not ALONE.match(line) and bool(line.strip()), [line]
            at = end
            continue
        yield bool(QUOTE.match(line)), lines[at:end]
        at = end


def wrapped(text, width=WIDTH):
    made, depth = Paragraphs(width), 0  # depth: of the text of the list item under way
    for moves, lines in blocks(text.split("\n")):
        line = lines[0]
        indent, item = len(line) - len(line.lstrip(" ")), ITEM.match(line)
        if moves and QUOTE.match(line):
            inner = wrapped("\n".join(QUOTE.sub("", each, count=1) for each in lines), width - 2)
            made.keep(*(f"> {each}".rstrip() for each in inner.split("\n")))
        elif not moves:
            made.keep(*lines)
            depth = depth if not line.strip() or indent else 0
        elif item and (made.text or indent < depth + 4):
            depth = len(item[0])
            made.begin(line[depth:], item[0], " " * depth)
        elif made.text:
            made.text.append(line.strip())
        elif indent >= depth + 4:
            made.keep(line)  # code
        else:
            depth = min(depth, indent)
            made.begin(line.strip(), " " * indent, " " * indent)
        if moves and made.text and line.endswith(("  ", "\\")):
            made.end()
            made.lines[-1] += "" if line.endswith("\\") else "  "
    made.end()
    return "\n".join(made.lines)


def of_the_tree():
    found = subprocess.run(["git", "-C", SOURCE, "ls-files", "*.md"], check=True, capture_output=True, text=True).stdout.split("\n")
    return [str(SOURCE / each) for each in found if each and each not in WRITTEN and (SOURCE / each).exists()]


def main(words):
    check, wrong = words[:1] == ["--check"], 0
    for name in words[check:] or of_the_tree():
        path = Path(name)
        text = path.read_text()
        new = wrapped(text)
        if new == text:
            continue
        wrong += 1
        if check:
            number = next(k for k, (old, made) in enumerate(zip(text.split("\n"), new.split("\n")), 1) if old != made)
            print(f"{name.removeprefix(f'{SOURCE}/')}:{number}: the lines are not as scripts/format puts them, at most {WIDTH} columns")
        else:
            path.write_text(new)
    return 1 if check and wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
