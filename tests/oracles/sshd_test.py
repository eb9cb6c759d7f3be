"""OpenSSH's server with probes on all its functions: what it does before it knows who is there, it does
in a child that a filter of system calls confines."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from oracle import definitions, some
from support import maps, probectl
from support.daemon import Daemon
from support.paths import BUILD
from support.process import Program, is_running_free
from support.wait import wait_until

SSHD = BUILD / "openssh-server" / "usr" / "sbin" / "sshd"

CONFIGURATION = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KexAlgorithms curve25519-sha256
LogLevel DEBUG2
"""
# Its user, and a directory of its own, without which it does not start, in a mount name space.
START = """
mount --bind "$1/passwd" /etc/passwd; mount --bind "$1/shadow" /etc/shadow
mount -t tmpfs none /run; mkdir /run/sshd
exec "$2" -D -e -f "$1/sshd_config"
"""
SCRIPT = "echo hello; read word; echo said $word; kill -9 $$"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@unittest.skipUnless(os.geteuid() == 0, "needs root: logs in as root, in a mount name space")
class Sshd(unittest.TestCase):
    def setUp(self):
        if not SSHD.exists():
            self.skipTest("no openssh-server; `./dev test` unpacks one")
        folder = tempfile.TemporaryDirectory(prefix="probed-sshd-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key],
                           check=True, timeout=20)
        self.port = free_port()
        texts = {"sshd_config": CONFIGURATION.format(folder=self.folder, port=self.port),
                 "passwd": "root:x:0:0:root:/root:/bin/sh\nsshd:x:65533:65534::/run/sshd:/bin/false\n",
                 "shadow": "root:*:19000::::::\n"}
        for name, text in texts.items():
            (self.folder / name).write_text(text)

    def start(self):
        server = Program(["unshare", "--mount", "--propagation", "private", "sh", "-ec", START, "sh",
                          self.folder, SSHD])
        self.addCleanup(server.__exit__)
        server.wait_for("Server listening on", stream="err")
        return server

    def log_in(self):
        """What a session printed, and how it ended."""
        with Program(["ssh", "-F", "none", "-i", self.folder / "user", "-p", str(self.port),
                      "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                      "-o", "LogLevel=ERROR", "root@127.0.0.1", SCRIPT]) as client:
            client.say("friend\n")
            return client.finish(60), client.out, client.err

    def test_it_lets_in_whom_it_lets_in(self):
        server = self.start()
        expected = self.log_in()
        self.assertEqual(expected[1], "hello\nsaid friend\n", server.err[-2000:])
        lines = definitions(str(SSHD))
        for optimization in ("off", "on"):
            with self.subTest(optimization=optimization), Daemon() as daemon:
                daemon.optimize(optimization)
                chosen = some(lines, 5) if optimization == "off" else lines
                self.assertEqual(self.probed(server, daemon, chosen), expected, server.err[-2000:])
            wait_until(lambda: is_running_free(server.pid), 10, "it runs free")
            self.assertEqual(maps.changed_text(server.pid), [])
            self.assertEqual(self.log_in(), expected)
        self.assertNotRegex(server.err, r"signal 31|SIGSYS")
        server.signal(signal.SIGTERM)
        self.assertEqual(server.finish(20), 0)

    def probed(self, server, daemon, lines):
        with probectl.Attached(server.pid, lines, "--follow", "--rate", "20",
                               address=daemon.address) as session:
            answer = self.log_in()
            children = re.findall(r"Network child is on pid (\d+)", server.err)
            self.assertEqual(session.detach(60), 0, session.program.err)
            confined = int(children[-1])
            self.assertTrue(any(record.pid == confined for record in session.records),
                            "no hit in the confined child")
        return answer


if __name__ == "__main__":
    unittest.main()
