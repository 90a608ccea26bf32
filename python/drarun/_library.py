# SPDX-License-Identifier: Apache-2.0
"""libdrarun, loaded once, and the ways values take between Python and it."""
from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Union

from ._errors import KINDS, Error, Finding, UsageError

try:
    from ._api import ffi as ffi  # for the others
except ImportError as error:
    if "cffi" in (error.name or ""):
        raise ImportError("drarun: cffi is missing: pip install cffi") from error
    raise ImportError(f"drarun: {error}: this is the package's source; install it (pip install ./python) or make "
                      "drarun/_api.py with python/declarations.py") from error

PathName = Union[str, "os.PathLike[str]"]
"""Of a file."""
Files = Union[PathName, Iterable[PathName], None]
"""One file or several."""

NAME = "libdrarun.so.0"


def _has(loaded: Any, name: str) -> bool:
    try:
        getattr(loaded, name)
    except (AttributeError, ffi.error):  # by version of cffi
        return False
    return True


def _load() -> Any:
    """DRARUN_LIBRARY, else the one beside this file, else where the loader finds one."""
    beside = Path(__file__).with_name(NAME)
    named = os.environ.get("DRARUN_LIBRARY")
    path = named or (str(beside) if beside.exists() else NAME)
    try:
        loaded = ffi.dlopen(path)
    except OSError as error:
        where = "DRARUN_LIBRARY" if named else "beside the package" if path != NAME else "by the loader"
        raise ImportError(f"drarun: {NAME}, looked for {where}: {error}; install libdrarun0 or name the file in "
                          "DRARUN_LIBRARY") from error
    lacking = sorted(name for name in dir(loaded) if name.startswith("drarun_") and not _has(loaded, name))
    if lacking:
        version = ffi.string(loaded.drarun_version()).decode() if "drarun_version" not in lacking else "?"
        raise ImportError(f"drarun: {path} is version {version} and too old for this package: it lacks "
                          f"{', '.join(lacking[:3])}; update it, or unset DRARUN_LIBRARY")
    return loaded


def string(text: Any) -> str | None:
    """A borrowed text. What is no UTF-8 (file names) comes as os.fsdecode has it."""
    return os.fsdecode(ffi.string(text)) if text else None


lib = _load()
version: str = string(lib.drarun_version()) or ""


def taken(text: Any) -> str | None:
    """A text that the library hands over."""
    try:
        return string(text)
    finally:
        lib.drarun_free(text)


def _encoded(name: str, value: PathName) -> bytes:
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise UsageError(f"{name}: expected a text, got {value!r}")
    data = os.fsencode(value)
    if b"\0" in data:
        raise UsageError(f"{name}: a text without a NUL is expected")
    return data


def number(value: Any) -> int | None:
    """Of an int or what is one (numpy.int64); None: it is none."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def words(name: str, value: Iterable[PathName]) -> list[PathName]:
    """The words of a list. A text is no list, though it could be taken for one of letters."""
    if isinstance(value, (str, bytes)):
        raise UsageError(f"{name}: expected a list of words, got the text {value!r}")
    return list(value)


def at_least_one(name: str, value: Any) -> Any:
    """The value. 0 is none to the library, and None here."""
    if number(value) == 0:
        raise UsageError(f"{name}: expected 1 or more, got 0")
    return value


def _member(name: str, type: str, value: Any, keep: list[Any]) -> Any:
    """A member of a struct of options; what it points to is put into keep."""
    if type == "double":
        return float(value)
    if "*" not in type:
        whole = number(value)
        if whole is None:
            raise UsageError(f"{name}: expected a whole number, got {value!r}")
        return whole
    if type.count("*") == 1:
        if not isinstance(value, (str, os.PathLike)):
            raise UsageError(f"{name}: expected a text, got {value!r}")
        keep.append(ffi.new("char[]", _encoded(name, value)))
        return keep[-1]
    texts = [ffi.new("char[]", _encoded(name, each)) for each in value]
    keep += [texts, ffi.new("char *[]", [*texts, ffi.NULL])]
    return keep[-1]


@functools.cache
def _types(kind: str) -> dict[str, str]:
    """Of the members of such a struct, as C has them: ``char *``."""
    return {name: field.type.cname for name, field in ffi.typeof(f"struct drarun_{kind}_options").fields}


class Options:
    """struct drarun_KIND_options with those members that are not None; for one call or several."""

    def __init__(self, kind: str, **members: Any) -> None:
        self.keep: list[Any] = []
        self.pointer = ffi.new(f"struct drarun_{kind}_options *")
        self.pointer.size = ffi.sizeof(self.pointer[0])
        types = _types(kind)
        for name, value in members.items():
            if value is None:
                continue
            try:
                setattr(self.pointer, name, _member(name.rstrip("_"), types[name], value, self.keep))
            except OverflowError as error:
                raise UsageError(f"{name}: {value} is out of range") from error


class Calls:
    """Functions that the library calls back during one call. What they raise is kept and raised after it."""

    def __init__(self) -> None:
        self.keep: list[Any] = []
        self.raised: BaseException | None = None
        self.stop: Callable[[], None] | None = None
        """Ends the call that the functions are of, where what they return cannot."""
        self.last: Callable[[], None] | None = None
        """Called after the call, before what was raised is."""

    def function(self, type: str, function: Callable[..., Any], on_error: Any = None) -> Any:
        """on_error: what the library gets when function raises, and from then on."""

        def guarded(*args: Any) -> Any:
            if self.raised is not None:
                return on_error
            try:
                return function(*args)
            except BaseException as error:  # also KeyboardInterrupt: it may come at any line
                self.raised = error
                if on_error is None and self.stop is not None:
                    self.stop()
                return on_error

        self.keep.append(ffi.callback(type, guarded))
        return self.keep[-1]

    def settle(self) -> None:
        if self.raised is None and self.last is not None:
            self.last()
        if self.raised is not None:
            raise self.raised


def files(value: Files) -> list[PathName] | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        raise UsageError("expected the names of files, got a dict: objects=json.dumps(...) takes objects themselves")
    return [value] if isinstance(value, (str, os.PathLike)) else list(value)


def new_error() -> Any:
    return ffi.new("struct drarun_error *")


def error_of(err: Any, findings: tuple[Finding, ...] = (), total: int | None = None) -> Error:
    kind = KINDS.get(string(lib.drarun_error_kind_name(err.kind)) or "", Error)
    return kind(string(err.text) or os.strerror(err.code), code=err.code, path=string(err.path) or None,
                line=err.line or None, column=err.column or None, findings=findings, total=total)


def check(status: int, err: Any) -> None:
    if status < 0:
        raise error_of(err)
