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
        session = farm.tune(network, seconds=6, threads=1, wait=False)
        counted = [p for p in session if p.candidates is not None]
        # About one a second, of a search that may end early.
        self.assertGreaterEqual(3 * len(counted), counted[-1].seconds)
        self.assertEqual({p.budget_seconds for p in counted}, {6})
        self.assertEqual(sorted(p.seconds for p in counted), [p.seconds for p in counted])
        self.assertGreater(counted[-1].candidates, 0)
        self.assertGreater(len(session.tasks), 0)
        # Nobody asked for a comparison of whole models.
        self.assertIsNone(session.verdict.word)
        self.assertIsNone(session.verdict.ratio)
        self.assertRegex(str(session.verdict), "^model: no verdict, as a farm compares kernels only")
        self.assertIn("no verdict", session._repr_html_())
        self.assertIsNone(session.log)
        with self.assertRaisesRegex(hone.UsageError, "the farm's own page.*type: hone") as raised:
            session.report()
        commands = str(raised.exception).split("type: ")[1].replace("hone ", os.environ["HONE_BIN"] + "/hone ")
        said = subprocess.run(commands, shell=True, capture_output=True, text=True, check=True).stdout
        self.assertIn("wrote report.html", said)

        rows = farm.query(network, threads=1)
        self.assertEqual({row["workload"] for row in rows},
                         {row["workload"] for row in session.tasks})
        self.assertGreater(sum(row["rung"] == "exact" for row in rows), 0, rows)
        self.assertEqual(len(farm.sessions()), 1)
        self.assertGreater(farm.stats()["records"], 0)
        best = farm.best()
        self.assertLessEqual({row["workload"] for row in session.tasks},
                             {row["workload"] for row in best})
        self.assertEqual(farm.best(best[0]["workload"])[0], best[0])

        judged = farm.tune(network, seconds=2, threads=1, judge=True).verdict
        if judged.word is None:  # asked for, and made, on a busy machine or where two seconds found nothing
            self.assertRegex(str(judged), "^model: no verdict, (other programs disturbed it|"
                                          "every kernel keeps its default schedule)")
        else:
            self.assertRegex(str(judged), "^model: .* × ")
            self.assertGreater(judged.ratio, 0)

        there = farm.compile(network, threads=1)
        alone = hone.compile(network, threads=1)
        values = {tensor.name: np.ones(tensor.shape, np.float32) for tensor in there.inputs}
        for got, want in zip(there(**values), alone(**values)):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

        with self.assertRaisesRegex(hone.ServerError, "name your credentials"):
            hone.connect(self.server, insecure_loopback=True)
