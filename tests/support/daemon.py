"""A probed of our own, on a socket of its own."""

import tempfile

from support.paths import PROBED
from support.probectl import environment, probectl
from support.process import Program
from support.wait import wait_until


class Daemon:
    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="probed-socket-")
        self.address = f"unix://{self._folder.name}/socket"
        self.program = Program([PROBED, "--listen", self.address], env=environment())

    def __enter__(self):
        def answers():
            if self.program.process.poll() is not None:
                raise AssertionError(f"probed ended: {self.program.err}{self.program.out}")
            return self.run("status").code == 0
        try:
            wait_until(answers, 15, "probed answers")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.program.__exit__()
        self._folder.cleanup()

    def run(self, *words, **more):
        return probectl(*words, address=self.address, **more)
