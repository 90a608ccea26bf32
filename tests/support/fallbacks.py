# SPDX-License-Identifier: Apache-2.0
"""The page docs/measured/fallbacks.md: what each cell says is what a run gave, and with DRARUN_GOLDEN=write it is written there."""
import os

from .build import SOURCE

PAGE = SOURCE / "docs/measured/fallbacks.md"
WORKS = "works"
NOT_RUN = "not run"


def cells(line):
    return [each.strip() for each in line.strip().strip("|").split(" | ")]


class Table:
    """One table of the page, below its heading. rows: {what is missing: how that is forced}; columns: the cases."""

    def __init__(self, heading, rows, columns):
        self.heading, self.rows, self.columns = f"## {heading}", rows, list(columns)

    def found(self):
        """(the page's lines, where the table begins in them, and where it ends)."""
        lines = PAGE.read_text().splitlines()
        first = next(k for k in range(lines.index(self.heading), len(lines)) if lines[k].startswith("|"))
        last = next((k for k in range(first, len(lines)) if not lines[k].startswith("|")), len(lines))
        return lines, first, last

    def read(self):
        """{(row, column): the cell}."""
        lines, first, last = self.found()
        _, _, *columns = cells(lines[first])
        return {(row, column): cell for row, _, *rest in map(cells, lines[first + 2:last]) for column, cell in zip(columns, rest)}

    def made(self, known):
        """The table's lines with these cells."""
        whole = [["without", "forced by", *self.columns], ["---"] * (2 + len(self.columns))]
        whole += [[row, how, *(known.get((row, column), NOT_RUN) for column in self.columns)] for row, how in self.rows.items()]
        return [f"| {' | '.join(line)} |" if line[0] != "---" else f"|{'|'.join(line)}|" for line in whole]

    def hold(self, row, column, said):
        """The page has what this run gave."""
        if os.environ.get("DRARUN_GOLDEN") == "write":
            lines, first, last = self.found()
            lines[first:last] = self.made({**self.read(), (row, column): said})
            PAGE.write_text("\n".join(lines) + "\n")
        assert self.read()[row, column] == said

    def check(self):
        """No row, column or reason on the page that no test holds, and none missing."""
        lines, first, last = self.found()
        assert lines[first:last] == self.made(self.read())
        assert NOT_RUN not in self.read().values()
