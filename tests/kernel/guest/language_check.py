"""The language's differential test, against this kernel's uprobe_events."""

import unittest

import programs

# Here, each accepted filter takes the kernel 50 ms.
_LESS = {"PROBED_LANG_LINES": "3000", "PROBED_LANG_FILTERS": "200", "PROBED_LANG_HIT_FILTERS": "60"}


class Language(unittest.TestCase):
    def test_differential(self):
        self.assertGreater(
            programs.assert_passes(self, "lang_kernel_differential_test", environment=_LESS), 5)
