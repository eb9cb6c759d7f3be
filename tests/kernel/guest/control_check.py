"""The tests of the kernel's side, with a kernel that has all of it."""

import unittest

import programs
from kernel_side import readme


class Control(unittest.TestCase):
    maxDiff = None

    def test_control(self):
        # Without those for kernels that have no kprobes.
        filters = ("--gtest_filter=RefusalsTest.*:ControlTest.*:Sweep*"
                   "-*NamesWhatTheKernelIsBuilt*:*KeepsToItself")
        if "t[:" not in readme():  # nor those for newer kernels
            filters += ":*FunctionAndTracepointProbes*:*TheKernelWritesOut:*EverySort*"
        self.assertGreater(programs.assert_passes(self, "kernel_control_test", filters), 20)
