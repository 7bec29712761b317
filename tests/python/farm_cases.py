"""`hone.connect` gives on a farm what the module gives alone: a farm of one machine is started."""
import os
import pathlib
import re
import signal
import subprocess
import unittest

import hone
import numpy as np


class FarmTest(unittest.TestCase):
    def setUp(self):
        honed = pathlib.Path(os.environ["HONE_BIN"], "honed")
        self.honed = subprocess.Popen([honed, "--dev", "--listen", "127.0.0.1:0"], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(self.end)
        self.server, told = "", []
        for line in self.honed.stdout:
            told.append(line)
            found = re.search(r"hone tune .*--server (\S+) --tls (\S+)", line)
            if found:
                self.server, self.tls = found.groups()
            if self.server and any("event=device_probed" in each for each in told):
                return
        self.fail("".join(told))

    def end(self):
        self.honed.send_signal(signal.SIGINT)
        self.honed.communicate(timeout=60)

    def test_tunes_compiles_tells_and_refuses_strangers(self):
        farm = hone.connect(self.server, tls=self.tls)
        network = os.path.abspath(hone.zoo("mlp"))
        session = farm.tune(network, seconds=6, threads=1)
        self.assertGreater(len(session.tasks), 0)
        rows = farm.query(network, threads=1)
        self.assertEqual({row["workload"] for row in rows},
                         {row["workload"] for row in session.tasks})
        self.assertGreater(sum(row["rung"] == "exact" for row in rows), 0, rows)
        self.assertEqual(len(farm.sessions()), 1)

        there = farm.compile(network, threads=1)
        alone = hone.compile(network, threads=1)
        values = {tensor.name: np.ones(tensor.shape, np.float32) for tensor in there.inputs}
        for got, want in zip(there(**values), alone(**values)):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

        with self.assertRaisesRegex(hone.ServerError, "name your credentials"):
            hone.connect(self.server, insecure_loopback=True)
