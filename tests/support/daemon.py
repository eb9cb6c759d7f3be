"""A probed of our own, on a socket of its own."""

import json
import tempfile

from support.paths import PROBED
from support.probectl import environment, probectl
from support.process import Program
from support.wait import wait_until

_MAY_BECOME_A_JUMP = "it becomes a jump if its code allows that"


class Daemon:
    def __init__(self, runtime_directory=None, options=(), under=(), patient=False):
        """`under`: words before its command. `patient`: it may end before it answers."""
        self._patient = patient
        self._folder = tempfile.TemporaryDirectory(prefix="probed-socket-")
        self.address = f"unix://{self._folder.name}/socket"
        env = environment()
        if runtime_directory:
            env["RUNTIME_DIRECTORY"] = runtime_directory
        self.program = Program([*under, PROBED, "--listen", self.address, *options], env=env)

    def __enter__(self):
        def answers():
            if self.program.process.poll() is not None:
                if self._patient:
                    return True
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

    def optimize(self, switch):
        """"on" or "off"."""
        answer = self.run("optimization", switch)
        assert answer.out == f"{switch}\n", answer.err

    def settled_sites(self, seconds=60, tolerant=False):
        """All sites, once each is a jump or says what is in the way of one; `tolerant`: or the
        daemon has ended."""
        sites = []

        def settled():
            answer = self.run("sites", "--json")
            if tolerant and answer.code != 0:
                return True
            assert answer.code == 0, answer.err
            sites[:] = [json.loads(line) for line in answer.out.splitlines()]
            return sites and all(site["reason"] != _MAY_BECOME_A_JUMP for site in sites)
        wait_until(settled, seconds, "it is known which sites are jumps")
        return sites

    def run(self, *words, **more):
        return probectl(*words, address=self.address, **more)
