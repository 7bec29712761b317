"""Some of PyTorch's samples of its operators by the backend hone, against torch_operators.txt; all of
them in scripts/proof.sh torch. Skipped where this Python lacks what those samples need."""
import importlib.util
import unittest

from torch_backend_cases import MISSING as NO_TORCH

MISSING = NO_TORCH + [name for name in ("expecttest",) if importlib.util.find_spec(name) is None]
NAMES = 8  # of the table


@unittest.skipIf(MISSING, f"this Python has no {', '.join(MISSING)}")
class TorchOperatorTest(unittest.TestCase):
    def test_samples_of_the_table_pass(self):
        import torch_operators  # pylint: disable=import-outside-toplevel
        known = torch_operators.read_table()
        some = set(sorted(known)[::max(1, len(known) // NAMES)])
        cases = list(torch_operators.all_cases(lambda name, _: name in some, torch_operators.TYPES))
        told = torch_operators.run(cases, tell=lambda line: None)
        self.assertGreaterEqual(len(told), NAMES)
        # Both ways: what the table names passes and has samples, and nothing else passes.
        self.assertEqual(list(torch_operators.wrong_of(told, {name: known[name] for name in some}, True)), [])

    def test_a_line_whose_operator_is_gone_is_wrong(self):
        import torch_operators  # pylint: disable=import-outside-toplevel
        [case] = torch_operators.all_cases(lambda name, _: name == "abs", ["f32"], 1)
        for known, wrong in (({"abs": {"f32"}}, []), ({"abs": set()}, ["abs f32: it passes"]),
                             ({"abs": {"f32"}, "gone": {"i64"}}, ["gone i64: it has no samples"])):
            self.assertEqual(list(torch_operators.wrong_of({case: ""}, known, True)), wrong)
        self.assertEqual(list(torch_operators.wrong_of({case: "no"}, {"abs": {"f32"}, "gone": {"i64"}}, False)),
                         ["abs f32: no"])
