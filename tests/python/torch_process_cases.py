"""torch.compile(backend="hone") in a program: threads, fork, its end, tunings, leaks."""
import gc
import os
import pathlib
import subprocess
import sys
import threading
import unittest

import hone
from model_cases import resident_bytes
from torch_backend_cases import MISSING, Case

if not MISSING:
    import torch
    from torch import nn


def net(seed=3):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval()


PROGRAM = """
import torch, hone.pytorch
torch.manual_seed(3)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).eval()
x = torch.ones(2, 16)
compiled = torch.compile(net, backend="hone", options={"log": LOG})
with torch.no_grad():
    torch.testing.assert_close(compiled(x), net(x))
"""


def program(text, log="tune.db", before="", **environment):
    script = before + PROGRAM.replace("LOG", repr(log)) + text
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, **environment}, timeout=120, check=False)


@unittest.skipIf(MISSING, f"this Python has no {', '.join(MISSING)}")
class TorchProcessTest(Case):
    def test_hundred_threads_call_one_module(self):
        module, wrong = net(), []
        compiled = self.compiled(module)

        def call(seed):
            x = torch.full((2, 16), float(seed))
            try:
                with torch.no_grad():
                    want = module(x)
                    for _ in range(10):
                        torch.testing.assert_close(compiled(x), want, rtol=1e-4, atol=1e-4)
            except Exception as error:  # pylint: disable=broad-except
                wrong.append(f"{seed}: {error}")
        for count in (1, 100):  # PyTorch's export of a graph is not safe beside calls of other threads
            threads = [threading.Thread(target=call, args=(seed,)) for seed in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])
        self.assertIn("compiled", [row["state"] for row in self.rows()])

    def test_a_child_after_fork_goes_on(self):
        module, x = net(), torch.ones(2, 16)
        compiled = self.compiled(module)
        with torch.no_grad():
            want = compiled(x)
            child = os.fork()
            if child == 0:
                same = all(torch.equal(compiled(x), want) for _ in range(20))
                os._exit(0 if same else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertTrue(torch.equal(compiled(x), want))

    def test_an_exception_in_a_callback_passes_through(self):
        module, x = net(), torch.ones(2, 16)

        def stop(*_):
            raise ZeroDivisionError("mine")
        hook = module[1].register_forward_hook(stop)
        compiled = self.compiled(module)
        with torch.no_grad():
            with self.assertRaisesRegex(ZeroDivisionError, "mine"):
                compiled(x)
            hook.remove()
            self.assert_equal(compiled(x), module(x))

    def test_ten_thousand_calls_leak_nothing(self):
        """What leaks grows in each round; malloc and the collector may touch a megabyte anew in one."""
        compiled, x = self.compiled(net()), torch.ones(2, 16)

        def calls(count):
            for _ in range(count):
                compiled(x)
            gc.collect()
            return resident_bytes(), sys.getallocatedblocks()
        with torch.no_grad():
            told = [calls(2000), *[calls(10000) for _ in range(3)]]
        size, blocks = zip(*([after - before for before, after in zip(one, other)]
                             for one, other in zip(told, told[1:])))
        self.assertLess(min(size), 1 << 16, told)
        self.assertLess(sum(size), 3 << 20, told)
        self.assertLess(min(blocks), 500, told)

    def test_a_dropped_module_is_freed(self):
        gc.collect()  # what earlier tests dropped
        module = net()
        compiled, before = self.compiled(module), len(os.listdir("/proc/self/fd"))
        with torch.no_grad():
            compiled(torch.ones(2, 16))
        del compiled, module
        torch._dynamo.reset()
        gc.collect()
        self.assertEqual(self.rows(), [])
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_the_first_call_tunes_into_the_log_and_the_next_process_finds_it(self):
        pathlib.Path("tune.db").unlink(missing_ok=True)
        done = program("", HONE_TUNE="4")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(hone.Log("tune.db").stats()["records"], 0)
        known = {record["workload"] for record in hone.Log("tune.db").best()}
        done = program("from hone.pytorch.graph import graphs\n"
                       "[variant] = next(iter(graphs)).rows()\n"
                       "print(*(kernel['workload'] for kernel in variant.package.model.kernels))\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertLessEqual(set(done.stdout.split()), known)

    def test_tunes_in_the_background_and_goes_on_with_the_result(self):
        pathlib.Path("tune.db").unlink(missing_ok=True)
        done = program("import time\n"
                       "from hone.pytorch.graph import graphs\n"
                       "[variant] = next(iter(graphs)).rows()\n"
                       "first = variant.package\n"
                       "while variant.package is first: time.sleep(0.05)\n"
                       "with torch.no_grad():\n"
                       "    torch.testing.assert_close(compiled(x), net(x))\n",
                       before="import hone.pytorch.options\nhone.pytorch.options.BACKGROUND_SECONDS = 2\n",
                       HONE_TUNE="background")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(hone.Log("tune.db").stats()["records"], 0)

    def test_a_tuning_in_the_background_ends_with_the_interpreter(self):
        pathlib.Path("tune.db").unlink(missing_ok=True)
        done = program("import time, os\n"
                       "while not os.path.exists('tune.db'): time.sleep(0.05)\n", HONE_TUNE="background")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_logs_that_take_no_records_are_read_and_not_tuned(self):
        found = ("from hone.pytorch.graph import graphs\n"
                 "[variant] = next(iter(graphs)).rows()\n"
                 "print(*((kernel['rung'], kernel['why']) for kernel in variant.package.model.kernels))\n")
        pathlib.Path("tune.db").unlink(missing_ok=True)
        tuned = program(found, HONE_TUNE="2")
        self.assertEqual((tuned.returncode, tuned.stderr), (0, ""))
        pathlib.Path("pinned.db").unlink(missing_ok=True)
        told = hone.programs.call("db", "snapshot", "tune.db", "--output", "pinned.db")
        pathlib.Path("tune.db").unlink()
        said = {}
        for log in (told["pin"], False):
            for tune in ("1", "background"):
                done = program(found + "print(hone.tune_seen(seconds=1)[0]['state'])\n", log=log, HONE_TUNE=tune)
                with self.subTest(log=log, tune=tune):
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    said[log], state = done.stdout.splitlines()
                    self.assertEqual(state, "compiled")
        self.assertEqual(said[told["pin"]], tuned.stdout.strip())  # records, or that a judge left them
        self.assertNotEqual(said[False], said[told["pin"]])
        done = program("print(*(row['state'] for row in hone.seen()))", log=f"pinned.db@sha256:{'0' * 64}")
        self.assertEqual((done.returncode, done.stdout), (0, "eager\n"))  # the pin is compared
        self.assertEqual(done.stderr.count("FallbackWarning"), 1)
        self.assertRegex(done.stderr, "pinned.db' is not the pinned one")

    def test_a_busy_log_is_told_once_and_the_graph_compiled_untuned(self):
        pathlib.Path("busy.db").unlink(missing_ok=True)
        squeezenet = hone.zoo("squeezenet", "squeezenet.onnx")
        session = hone.tune(squeezenet, seconds=60, threads=1, log="busy.db", wait=False)
        next(iter(session))  # it writes the log
        done = program("print([row['state'] for row in hone.seen()])\n", log="busy.db", HONE_TUNE="1")
        session.cancel()
        self.assertEqual((done.returncode, done.stdout), (0, "['compiled']\n"), done.stderr)
        self.assertEqual(done.stderr.count("FallbackWarning"), 1)
        self.assertRegex(done.stderr, "is compiled untuned: .*busy.db")

    def test_tunes_what_was_seen(self):
        module, x = net(), torch.ones(2, 16)
        gc.collect()  # graphs of other tests
        compiled = self.compiled(module, log="seen.db")
        with torch.no_grad():
            compiled(x)
            before = hone.seen()[-1]
            rows = hone.tune_seen(seconds=4, bar=False)
            self.assertEqual(rows[-1]["name"], before["name"])
            self.assert_equal(compiled(x), module(x))
        self.assertGreater(hone.Log("seen.db").stats()["records"], 0)
