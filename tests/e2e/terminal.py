"""A program in a pseudo-terminal of its own, as a person would run it."""

import os
import pty
import signal

from support.wait import wait_until


class Terminal:
    def __init__(self, argv, env):
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                os.execve(str(argv[0]), [str(word) for word in argv], env)
            finally:
                os._exit(127)
        os.set_blocking(self._fd, False)
        self.text = self.before = ""
        self._status = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)

    def _read(self):
        try:
            while chunk := os.read(self._fd, 65536):
                self.text += chunk.decode("latin-1")
        except (BlockingIOError, OSError):
            pass

    def expect(self, text, seconds=15):
        """Waits for `text` after what was expected before; drops everything up to it, which is
        `before` then."""
        def seen():
            self._read()
            return text in self.text
        wait_until(seen, seconds, f"{text!r} on the terminal, which shows {self.text[-800:]!r}")
        self.before, self.text = self.text.split(text, 1)

    def front_pid(self):
        """The leader of the job in front."""
        return os.tcgetpgrp(self._fd)

    def front(self):
        """Name of the program that a typed Ctrl-C goes to."""
        try:
            with open(f"/proc/{self.front_pid()}/comm", encoding="latin-1") as comm:
                return comm.read().strip()
        except OSError:
            return ""

    def type(self, text):
        os.write(self._fd, text.encode())

    def finish(self, seconds=15):
        """Exit code of the program."""
        def ended():
            self._read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                self._status = status
            return pid != 0
        wait_until(ended, seconds, f"the end of the terminal's program; {self.text[-800:]!r}")
        self._read()
        return os.waitstatus_to_exitcode(self._status)
