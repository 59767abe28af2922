"""Ctrl-C (SIGINT) among threads, libraries and child processes."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn


@contextlib.contextmanager
def deaf_children() -> Iterator[None]:
    """Let processes started within never see SIGINT.

    Ctrl-C reaches every process of the terminal's group. The parent decides what becomes of its
    children; a child that ignores the signal by itself can still be hit while its interpreter
    starts. A blocked signal is inherited from the first instruction on.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def never_lose_interrupts() -> None:
    """Make sure that every Ctrl-C raises KeyboardInterrupt in the main thread.

    RDKit puts a handler of its own in place while it works on a molecule, and a SIGINT that
    comes then is dropped. So SIGINT is blocked everywhere but in one thread that waits for it
    and hands it on to the main thread as SIGUSR1, which no library takes over. Call it in the
    main thread, before other threads start: they inherit what is blocked.

    Does nothing where SIGINT is ignored or handled already, or on Windows.
    """
    if (
        not hasattr(signal, "pthread_sigmask")
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        or signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL
    ):
        return
    main = threading.get_ident()
    signal.signal(signal.SIGUSR1, _interrupt)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def hand_on() -> NoReturn:
        while True:
            signal.sigwait({signal.SIGINT})
            signal.pthread_kill(main, signal.SIGUSR1)

    threading.Thread(target=hand_on, name="interrupts", daemon=True).start()


def _interrupt(signum: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
