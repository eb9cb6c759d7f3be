"""The tests of the kernel's side, with a kernel that has all of it."""

import unittest

import programs


class Control(unittest.TestCase):
    def test_control(self):
        filters = "--gtest_filter=RefusalsTest.*:ControlTest.*:Sweep*-*NamesWhatTheKernelIsBuilt*"
        self.assertGreater(programs.assert_passes(self, "kernel_control_test", filters), 20)
