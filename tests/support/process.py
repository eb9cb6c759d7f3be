"""Programs under test: started with a deadline, read line by line, always reaped."""

import ctypes
import os
import signal
import subprocess
import threading
import time

from support.wait import PATIENCE, Late, wait_until

_ADDR_NO_RANDOMIZE = 0x0040000
_PR_SET_PDEATHSIG = 1


def _fixed_addresses():
    ctypes.CDLL(None).personality(_ADDR_NO_RANDOMIZE)


class Program:
    """A child process whose output is collected by threads, so that no pipe can fill up.

    Use as a context manager: leaving it kills the child (by its own pid) if it still runs.
    """

    def __init__(self, argv, *, env=None, fixed_addresses=False, cwd=None, stdin=subprocess.PIPE,
                 new_session=False):
        self.argv = [str(word) for word in argv]
        self.process = subprocess.Popen(
            self.argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
            cwd=cwd, start_new_session=new_session,
            preexec_fn=_fixed_addresses if fixed_addresses else None)
        self.pid = self.process.pid
        self._out, self._err = bytearray(), bytearray()
        self._readers = [
            threading.Thread(target=self._collect, args=(self.process.stdout, self._out)),
            threading.Thread(target=self._collect, args=(self.process.stderr, self._err))]
        for reader in self._readers:
            reader.daemon = True
            reader.start()

    @staticmethod
    def _collect(pipe, into):
        try:
            while chunk := os.read(pipe.fileno(), 65536):
                into += chunk
        except ValueError:
            pass  # a test closed it

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass

    @property
    def out(self):
        return bytes(self._out).decode("latin-1")

    @property
    def err(self):
        return bytes(self._err).decode("latin-1")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        for reader in self._readers:
            reader.join(5)

    def signal(self, number):
        self.process.send_signal(number)

    def say(self, text):
        self.process.stdin.write(text.encode("latin-1"))
        self.process.stdin.flush()

    def wait_for(self, text, seconds=10.0, stream="out"):
        """Waits until `text` stands in the output; a program that ended without it is an error."""
        def seen():
            ended = self.process.poll() is not None
            if ended:
                for reader in self._readers:
                    reader.join(5)
            if text in getattr(self, stream):
                return True
            if ended:
                raise AssertionError(f"{self.argv[0]} ended ({self.process.returncode}) without "
                                     f"{text!r}\nout: {self.out}\nerr: {self.err}")
            return False
        wait_until(seen, seconds, f"{text!r} from {self.argv[0]}; out: {self.out[-500:]!r}; "
                                  f"err: {self.err[-500:]!r}")

    def finish(self, seconds=20.0, close_input=True):
        """Ends its input, waits for it to exit and returns its exit code (negative: signal)."""
        if close_input and self.process.stdin is not None:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            code = self.process.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            raise Late(f"{' '.join(self.argv)[:300]} still runs after {seconds} s\n"
                       f"out: {self.out[-1000:]}\nerr: {self.err[-1000:]}") from None
        for reader in self._readers:
            reader.join(5)
        return code


def run(argv, seconds=20.0, **options):
    """Runs a program to its end; returns it with `code` set."""
    with Program(argv, **options) as program:
        program.code = program.finish(seconds)
        return program


def status(pid, field):
    """A field of /proc/PID/status, or None when the process is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="latin-1") as file:
            for line in file:
                if line.startswith(field + ":"):
                    return line.split(":", 1)[1].strip()
    except (FileNotFoundError, ProcessLookupError):
        pass
    return None


def threads(pid):
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]


def tracer_of(pid):
    return int(status(pid, "TracerPid") or 0)


def is_running_free(pid):
    """Not traced, and no thread stopped."""
    return tracer_of(pid) == 0 and all(
        (status(tid, "State") or "R")[0] in "RSDI" for tid in threads(pid))


def interrupt(program):
    program.signal(signal.SIGINT)


__all__ = ["Program", "run", "status", "threads", "tracer_of", "is_running_free", "interrupt",
           "time"]
