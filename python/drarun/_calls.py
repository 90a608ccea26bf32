# SPDX-License-Identifier: Apache-2.0
"""Calls that wait, and how they are ended: by Ctrl-C at any time, and by asyncio."""
from __future__ import annotations

import asyncio
import contextvars
import os
import select
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol, TypeVar

from ._errors import InterruptedError

T = TypeVar("T")

WOKEN = b"\0"  # no signal's number


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
        self.begun = False
        self._function, self._ended = function, ended

    def start(self) -> None:
        context = contextvars.copy_context()
        context.run(current.set, self.interrupt)
        threading.Thread(target=context.run, args=(self._run,), name="drarun", daemon=True).start()

    def _run(self) -> None:
        self.begun = True
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

    def failure_to_end(self) -> BaseException | None:
        """Why an interrupted call could not tidy up; None: it could, or had ended before."""
        return None if isinstance(self.raised, InterruptedError) else self.raised


class _Wakeup:
    """Lets the main thread sleep until another thread wakes it or a signal has come. A lock does not do for that: Python
    runs its handlers when a wait ends, and the wait does not end by a signal that came right before it, or that the
    kernel gave to another thread. What set_wakeup_fd writes stays there until it is read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readable, self._writable = socket.socketpair()
        self._readable.setblocking(False)
        self._writable.setblocking(False)
        self._before = signal.set_wakeup_fd(self._writable.fileno(), warn_on_full_buffer=False)

    def wake(self) -> None:
        with self._lock:  # the number of a closed socket may be another file's
            if self._writable.fileno() >= 0:
                self._write(self._writable.fileno(), WOKEN)

    def wait(self) -> None:
        poll = select.poll()
        poll.register(self._readable, select.POLLIN)
        poll.poll()
        self._hand_on()

    def close(self) -> None:
        signal.set_wakeup_fd(self._before, warn_on_full_buffer=False)
        self._hand_on()
        self._readable.close()
        with self._lock:
            self._writable.close()

    def _hand_on(self) -> None:
        """Passes the numbers of signals to the former wakeup descriptor: an event loop reads it."""
        try:
            signals = self._readable.recv(4096).replace(WOKEN, b"")
        except BlockingIOError:
            return
        if signals and self._before >= 0:
            self._write(self._before, signals)

    @staticmethod
    def _write(fd: int, data: bytes) -> None:
        try:
            os.write(fd, data)
        except OSError:  # full: its reader is woken in any case; closed: nobody reads
            pass


def interruptibly(function: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """The function's result. In the main thread, where Python's signal handlers run, Ctrl-C ends it: the call that it
    is in first tidies up, and then KeyboardInterrupt is raised; a second Ctrl-C does not wait for that. The same goes for
    what a handler of the program raises. undo: of a result that nobody gets, since the interrupt came behind it."""
    if threading.current_thread() is not threading.main_thread():
        return function()
    wakeup = _Wakeup()
    ended, pressed = False, 0

    def on_end() -> None:
        nonlocal ended
        ended = True
        wakeup.wake()

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        work.interrupt.fire()

    def settle() -> None:
        """Waits for the end, or for the second Ctrl-C."""
        while not ended and pressed < 2:
            wakeup.wait()

    work = _Work(function, on_end)
    # With the usual handler KeyboardInterrupt might be raised between any two lines here.
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if usual:
            signal.signal(signal.SIGINT, on_interrupt)
        try:
            work.start()
            settle()
        except BaseException:  # of the program's own handler
            work.interrupt.fire()
            if work.begun:
                settle()
                _take_back(work, ended, undo)
            raise
        if pressed:
            _take_back(work, ended, undo)
    finally:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        wakeup.close()
    if pressed:
        raise KeyboardInterrupt from work.failure_to_end()
    result: T = work.answer()
    return result


def _take_back(work: _Work, ended: bool, undo: Callable[[T], object] | None) -> None:
    if ended and undo is not None and work.raised is None:
        undo(work.result)


async def in_thread(function: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """The function's result, with the loop free meanwhile. Cancelling ends it: the call that it is in tidies up first.
    undo: as of interruptibly."""
    work, done = _started(function)
    try:
        await done.wait()
    except asyncio.CancelledError:
        work.interrupt.fire()
        await _settled(done)
        if undo is not None and work.raised is None:
            taken_back = undo
            taking, done = _started(lambda: taken_back(work.result))
            await _settled(done)
            taking.answer()
        raise
    result: T = work.answer()
    return result


def _started(function: Callable[[], object]) -> tuple[_Work, asyncio.Event]:
    """The function in a thread, and what is set in the running loop when it has ended."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def ended() -> None:
        try:
            loop.call_soon_threadsafe(done.set)
        except RuntimeError:  # the loop was closed: nobody waits
            pass

    work = _Work(function, ended)
    work.start()
    return work, done


async def _settled(done: asyncio.Event) -> None:
    """Waits however often the task is cancelled meanwhile, as by a time limit in a group of tasks that ends."""
    while not done.is_set():
        try:
            await done.wait()
        except asyncio.CancelledError:
            pass
