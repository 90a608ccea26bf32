# SPDX-License-Identifier: Apache-2.0
"""The public C headers as a module for cffi: declarations.py HEADERS _api.py

The module is plain Python of cffi's out-of-line ABI mode: no compiler is needed to make it, and no parser of C to
load it."""
import re
import sys
from pathlib import Path


def strip(text: str) -> str:
    """A header without what only a preprocessor and a C++ compiler read."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"^#ifdef __cplusplus$.*?^#endif$", "", text, flags=re.S | re.M)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    text = re.sub(r"\bDRARUN_DEFINE_INIT\(\w+\)", "", text)
    return re.sub(r"\bDRARUN_API\b", "", text)


def in_order(headers: Path) -> list[Path]:
    """Each after those that it includes."""
    found: list[Path] = []

    def add(header: Path) -> None:
        for name in re.findall(r'#include "drarun/(\w+\.h)"', header.read_text()):
            add(headers / name)
        if header not in found:
            found.append(header)

    add(headers / "drarun.h")
    return found


def write(headers: Path, module: Path) -> None:
    from cffi import FFI
    ffi = FFI()
    ffi.set_source("drarun._api", None)
    ffi.cdef("\n".join(strip(header.read_text()) for header in in_order(headers)))
    ffi.emit_python_code(str(module))
    module.write_text("# SPDX-License-Identifier: Apache-2.0\n" + module.read_text())


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
