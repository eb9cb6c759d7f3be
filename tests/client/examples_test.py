"""docs/examples against a daemon: clients that know the API, or the JSON, and nothing else of us."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import probectl
from support.daemon import Daemon
from support.paths import ROOT, target
from support.process import Program

EXAMPLES = ROOT / "docs/examples"


class Api(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("grpc") and shutil.which("grpc_python_plugin"),
                         "no gRPC for Python")
    def test_rates(self):
        with tempfile.TemporaryDirectory() as stubs:
            subprocess.run(["protoc", "-I", ROOT / "proto", f"--python_out={stubs}",
                            f"--grpc_out={stubs}", "--plugin=protoc-gen-grpc=" +
                            shutil.which("grpc_python_plugin"),
                            *sorted((ROOT / "proto/probed/v1").glob("*.proto"))],
                           check=True, timeout=60)
            with Daemon() as daemon, Program([target("counter")]) as counter:
                counter.wait_for("ready")
                pid = str(counter.pid)
                self.assertEqual(daemon.run("attach", "--pid", pid).code, 0)
                self.assertEqual(daemon.run("define", "--pid", pid, "-e",
                                            f"p:e/w {target('counter')}:work").code, 0)
                with Program([sys.executable, EXAMPLES / "rates.py", daemon.address],
                             env=probectl.environment() | {"PYTHONPATH": stubs}) as rates:
                    rates.wait_for("/s\n", 30)
                    self.assertRegex(rates.out, rf"^targets/{pid}-\d+ counter-\S* 1 sites\n"
                                                r"e/w [1-9]\d*/s\n")


class Json(unittest.TestCase):
    def test_latency(self):
        path = target("counter")
        with Program([path]) as counter:
            counter.wait_for("ready")
            traced = probectl.probectl("attach", "--pid", str(counter.pid), "--format", "json",
                                       "--count", "400", "-e", f"p:l/in {path}:work", "-e",
                                       f"r:l/out {path}:work")
        self.assertEqual(traced.code, 0, traced.err)
        done = subprocess.run([sys.executable, EXAMPLES / "latency.py"], input=traced.out, text=True,
                              capture_output=True, timeout=30, check=True)
        calls = int(re.search(r"^(\d+) calls\n\Z", done.stdout, re.M)[1])
        self.assertIn(calls, (199, 200))  # it may have begun between an entry and its return


if __name__ == "__main__":
    unittest.main()
