"""Networks by torch.compile(backend="hone") beside eager: some of those that torch_networks.py writes
out; all of them, and the architectures of transformers, in scripts/proof.sh torch."""
import os
import unittest

from torch_backend_cases import MISSING, Case

if not MISSING:
    import torch
    import torch_networks

WHOLE = bool(os.environ.get("TEST_WHOLE"))
SAMPLE = ("resnet_padded", "unet", "lstm", "early_exit", "experts", "decoder", "encoder")


def tensors(results):
    if isinstance(results, torch.Tensor):
        return [results]
    values = results.values() if hasattr(results, "values") else results
    return [tensor for value in values if value is not None and not isinstance(value, (int, float, str))
            for tensor in tensors(value)]


@unittest.skipIf(MISSING, f"this Python has no {', '.join(MISSING)}")
class TorchNetworkTest(Case):
    def check(self, make, name):
        torch._dynamo.reset()
        torch.manual_seed(11)
        network, given = make(name)
        words, named = ((), given) if isinstance(given, dict) else (given, {})
        compiled = self.compiled(network)
        with torch.no_grad():
            for _ in range(2):
                got, want = tensors(compiled(*words, **named)), tensors(network(*words, **named))
                self.assertEqual(len(got), len(want))
                for one, other in zip(got, want):
                    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
        rows = self.rows()
        if any(isinstance(module, torch.nn.RNNBase) for module in network.modules()):
            return  # TorchDynamo leaves recurrent modules to eager
        self.assertIn("compiled", [row["state"] for row in rows])
        whys = [row["why"] for row in rows if row["state"] != "compiled" and "its results" not in row["why"]]
        self.assertEqual(whys, [])

    def test_networks_written_out(self):
        for name in torch_networks.NETWORKS if WHOLE else SAMPLE:
            with self.subTest(name):
                self.check(torch_networks.make, name)

    def test_architectures_of_transformers(self):
        if not WHOLE:
            self.skipTest("scripts/proof.sh torch runs it")
        import torch_transformers  # pylint: disable=import-outside-toplevel
        for name in torch_transformers.TABLE:
            with self.subTest(name):
                self.check(torch_transformers.make, name)
