# SPDX-License-Identifier: Apache-2.0
"""The links of a page, for where the repository's other files are not: the notes of a release, the chart, the Python package."""
import posixpath
import re

REPOSITORY = "https://github.com/drarun/drarun"
RELATIVE = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


def absolute(text: str, page: str, version: str) -> str:
    """The Markdown of the file `page` of the repository, with links to the files of the release `version` in place of relative ones."""
    def link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), match[1]))
        return f"]({REPOSITORY}/blob/v{version}/{path})"
    return RELATIVE.sub(link, text)
