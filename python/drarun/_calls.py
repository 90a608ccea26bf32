# SPDX-License-Identifier: Apache-2.0
"""Calls that wait, and how they are ended: by Ctrl-C at any time, and by asyncio."""
from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Interruptible(Protocol):
    """A connection, or what runs on this machine."""

    def interrupt(self) -> None: ...


class Interrupt:
    """Ends what one call does with connections, also with those that it opens later."""

    def __init__(self) -> None:
        self.fired = False
        self._connections: list[Interruptible] = []  # append and copy are whole: a signal may come between any two lines

    def fire(self) -> None:
        self.fired = True
        for each in list(self._connections):
            each.interrupt()

    def covers(self, connection: Interruptible) -> None:
        self._connections.append(connection)
        if self.fired:
            connection.interrupt()


current: contextvars.ContextVar[Interrupt | None] = contextvars.ContextVar("drarun_interrupt", default=None)


class _Work:
    """A function on a thread of its own."""

    def __init__(self, function: Callable[[], Any], ended: Callable[[], None]) -> None:
        self.interrupt = Interrupt()
        self.result: Any = None
        self.raised: BaseException | None = None
        self._function, self._ended = function, ended
        context = contextvars.copy_context()
        context.run(current.set, self.interrupt)
        threading.Thread(target=context.run, args=(self._run,), name="drarun", daemon=True).start()

    def _run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as error:
            self.raised = error
        finally:
            self._ended()

    def answer(self) -> Any:
        if self.raised is not None:
            raise self.raised
        return self.result


def interruptibly(function: Callable[[], T]) -> T:
    """The function's result. In the main thread, where Python's signal handlers run, Ctrl-C ends it: the call that it
    is in first tidies up, and then KeyboardInterrupt is raised; a second Ctrl-C does not wait for that."""
    if threading.current_thread() is not threading.main_thread():
        return function()
    done, pressed = threading.Event(), 0
    work: _Work | None = None

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if work is not None:
            work.interrupt.fire()
        if pressed > 1:
            done.set()

    # With the usual handler KeyboardInterrupt might be raised between any two lines here.
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, on_interrupt)
    try:
        work = _Work(function, done.set)
        if pressed:
            work.interrupt.fire()
        done.wait()
    except BaseException:  # of the program's own handler
        if work is not None:
            work.interrupt.fire()
        raise
    finally:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt
    result: T = work.answer()
    return result


async def in_thread(function: Callable[[], T]) -> T:
    """The function's result, with the loop free meanwhile. Cancelling ends it: the call that it is in tidies up first."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def ended() -> None:
        try:
            loop.call_soon_threadsafe(done.set)
        except RuntimeError:  # the loop was closed: nobody waits
            pass

    work = _Work(function, ended)
    try:
        await done.wait()
    except asyncio.CancelledError:
        work.interrupt.fire()
        await done.wait()
        raise
    result: T = work.answer()
    return result
