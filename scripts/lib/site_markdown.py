# SPDX-License-Identifier: Apache-2.0
"""Changes Markdown that is written for GitHub so that mkdocs, whose Python-Markdown has other rules, shows the same. There, the text of a list
item is indented by four spaces for each level, an empty line separates a list from the paragraph before it, and `\\|` in a table's code span keeps
its backslash."""
import re

INDENT = 4
ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)]) {1,4}(?=\S)")
FENCE = re.compile(r"```+|~~~+")
BLOCK = re.compile(r"#{1,6} |\||>|<!--|```|~~~")  # these end a paragraph
CODE = re.compile(r"`[^`]*`")


class Rewriter:
    """Lines in, lines out. `starts` has the column at which the text of each open list item starts, `several` whether it has several blocks."""

    def __init__(self):
        self.lines, self.starts, self.several, self.fence = [], [], [], ""
        self.previous = "empty"  # kind of the previous line: empty, text or block

    def column(self):
        return self.starts[-1] if self.starts else 0

    def write(self, text, extra=0):
        self.lines.append(" " * (INDENT * len(self.starts) + extra) + text if text else "")

    def separate(self):
        if self.previous != "empty":
            self.lines.append("")

    def close(self, indent):
        """Ends the items to which a line with this indentation does not belong; returns those items' `several`."""
        count = len(self.starts)
        while self.starts and indent < self.starts[-1]:
            self.starts.pop()
        ended, self.several = self.several[len(self.starts):count], self.several[:len(self.starts)]
        if self.previous == "empty":
            self.several = [True] * len(self.several)
        return ended

    def add_fenced(self, text, indent):
        self.write(text, max(0, indent - self.column()))
        if text.startswith(self.fence) and not text.strip(self.fence[0]).strip():
            self.fence, self.previous = "", "block"

    def add_item(self, text, indent, marker):
        after_paragraph = not self.starts and self.previous == "text"
        if any(self.close(indent)) or after_paragraph:
            self.separate()
        self.write(text)
        self.starts.append(indent + len(marker))
        self.several.append(False)
        self.previous = "text"

    def add_block(self, text, indent):
        if self.close(indent):
            self.separate()
        if indent - self.column() >= INDENT:  # code
            self.write(text, indent - self.column())
            self.previous = "block"
            return
        if text.startswith("|"):
            if self.previous == "text":
                self.separate()
            text = CODE.sub(lambda code: code[0].replace("\\|", "|"), text)
        fence = FENCE.match(text)
        self.fence = fence[0] if fence else ""
        self.write(text)
        self.previous = "block" if BLOCK.match(text) else "text"

    def add(self, line):
        text = line.strip(" ") if not self.fence else line.lstrip(" ")
        indent = len(line) - len(line.lstrip(" "))
        item = ITEM.match(text)
        if item and self.previous == "text" and not self.starts and text[0].isdigit() and not re.match(r"1[.)]", text):
            item = None  # a number at the start of a line of a paragraph
        if self.fence:
            self.add_fenced(text, indent)
        elif not text:
            self.write("")
            self.previous = "empty"
        elif item and indent - self.column() < INDENT:
            self.add_item(text, indent, item[0])
        elif self.previous == "text" and not BLOCK.match(text):
            self.write(text)  # the paragraph goes on, wherever the line starts
        else:
            self.add_block(text, indent)


def for_mkdocs(text):
    rewriter = Rewriter()
    for line in text.split("\n"):
        rewriter.add(line)
    return "\n".join(rewriter.lines)
