"""What probectl tells of the running kernel, against the kernel's own files."""

import json
import os
import re
import unittest
from pathlib import Path

from support.probectl import probectl

_KALLSYMS = Path("/proc/kallsyms")


def functions(prefix):
    """{(name, address)} of kallsyms."""
    found = re.findall(rf"^(\S+) [tTwW] ({prefix}\S*)", _KALLSYMS.read_text(), re.M)
    return {(name, int(address, 16)) for address, name in found}


@unittest.skipUnless(os.geteuid() == 0, "the kernel's addresses are for root")
class ThisKernel(unittest.TestCase):
    def test_symbols(self):
        answer = probectl("symbols", "--kernel", "do_sys_*", "--json")
        self.assertEqual(answer.code, 0, answer.err)
        symbols = [json.loads(line) for line in answer.out.splitlines()]
        self.assertEqual({(s["name"], s["address"]) for s in symbols}, functions("do_sys_"))
        self.assertGreater(len(symbols), 3)

    def test_limit_and_pattern_that_is_not_there(self):
        answer = probectl("symbols", "--kernel", "--limit", "7")
        self.assertEqual((answer.code, len(answer.out.splitlines())), (0, 7))
        answer = probectl("symbols", "--kernel", "no_such_function_at_all")
        self.assertNotEqual(answer.code, 0)
        self.assertIn("SYMBOL_NOT_FOUND", answer.err)

    def test_explain_names_what_was_meant(self):
        answer = probectl("explain", "--kernel", "do_sys_openat2")
        self.assertEqual(answer.code, 0, answer.err)
        answer = probectl("explain", "--kernel", "do_sys_openatt2")
        self.assertIn("KERNEL_SYMBOL_NOT_FOUND", answer.err)
        self.assertIn("do_sys_openat2", answer.err)

    @unittest.skipIf(Path("/sys/kernel/debug/kprobes").exists(), "debugfs is mounted")
    def test_list_without_debugfs(self):
        answer = probectl("kernel", "list")
        self.assertNotEqual(answer.code, 0)
        self.assertIn("NO_KPROBES_DIRECTORY", answer.err)


if __name__ == "__main__":
    unittest.main()
