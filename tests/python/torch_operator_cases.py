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
        for case, why in told.items():
            if case.kind in known.get(case.name, set()):
                self.assertEqual(why, "", case)
