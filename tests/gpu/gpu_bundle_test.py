#!/usr/bin/env python3
"""scripts/gpu_bundle.sh and what it packs: the archive's size, that the programs start in an empty root,
and gpu_check.sh on the mock driver, as at first touch on hardware.

    gpu_bundle_test.py --build DIR --source DIR [--results FILE.xml]
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

PACKAGING = pathlib.Path(__file__).resolve().parent.parent / "packaging"
sys.path.insert(0, str(PACKAGING))
from units_test import Skipped, write_results  # noqa: E402


def run(*command, code=0, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class BundleTest:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def prepare(self):
        if not (self.args.build / "venv/bin/python").exists():
            raise Skipped("there is no venv in the build; scripts/models.sh makes it")
        if not shutil.which("xz"):
            raise Skipped("there is no xz")
        run(self.args.source / "scripts/gpu_bundle.sh", "--build-dir", self.args.build, "--output",
            self.folder, "--fast")
        self.tree = self.folder / "hone-gpu"
        self.environment = dict(os.environ, LD_LIBRARY_PATH=str(self.args.build / "tests/mock_cuda"))

    def check(self, *words, code=0):
        """gpu_check.sh on the mock; the JSON's rows by part."""
        run(self.tree / "gpu_check.sh", *words, code=code, env=self.environment)
        return json.loads((self.tree / "results/gpu_check.json").read_text())

    def case_all_19_networks_travel(self):
        assert len(list((self.tree / "models/skeletons").glob("*.onnx"))) == 19

    def case_programs_start_in_an_empty_root(self):
        root = self.folder / "root"
        for name in ("bin", "lib", "libexec"):
            shutil.copytree(self.tree / name, root / name)
        (root / "proc").mkdir()
        (root / "tmp").mkdir()
        try:
            run("unshare", "-m", "mount", "-t", "proc", "proc", root / "proc")
        except (AssertionError, OSError) as error:
            raise Skipped(f"no file system can be mounted here: {str(error)[:80]}") from None

        def inside(*words, code=0):
            script = f'mount -t proc proc "{root}/proc" && exec chroot "{root}" "$@"'
            return run("unshare", "-m", "sh", "-c", script, "sh", *words, code=code)

        inside("/bin/hone", "zoo", "mlp", "-o", "/m.onnx")
        inside("/bin/hone", "compile", "/m.onnx", "--target", "cuda:sm_90a", "-o", "/m.hone", "--no-log")
        inside("/bin/hone", "run", "/m.onnx", "--inputs", "/m.inputs.npz", "--no-log")
        assert "hone-builder and hone-runner answer" in inside("/bin/hone", "doctor")
        assert "has no CUDA driver" in inside("/bin/hone", "run", "/m.hone", "--inputs", "/m.inputs.npz",
                                              code=8)

    def case_the_parts_run_on_the_mock_driver(self):
        os.symlink(self.args.build / "network_cases", self.tree / "cases/network")
        # One row of each part; nothing here can swizzle, search or sanitize.
        self.check("correct", "--rows", "operator", "--stride", "60")
        self.check("models", "--rows", "mlp")
        self.check("kernels", "peers", "--rows", "tiny")
        self.check("kernels", "--rows", "rates")
        found = self.check("search", "faults")
        rows = found["rows"]
        assert found["device"]["name"] == "mock GPU" and found["date"] and found["versions"]["hone"], found
        assert rows["correct"]["operator cases"]["result"] == "passed", rows
        # What a routine of the host does for a CPU.
        scatter = self.folder / "scatter"
        scatter.mkdir()
        os.symlink(self.args.build / "random_cases/scatter_4", scatter / "one")
        done = self.folder / "scatter.txt"
        run(self.tree / "bin/gpu-cases", "cuda:native", "60", done, f"random={scatter}", env=self.environment)
        assert "passed random/one" in done.read_text(), done.read_text()
        assert rows["models"]["mlp"]["result"] == "measured" and rows["models"]["mlp"]["us"] > 0, rows
        assert rows["kernels"]["add_tiny"]["us"] == 250, rows  # one launch of the mock
        assert rows["kernels"]["rates"]["rates"]["memory_bytes_per_second"] > 0, rows
        assert rows["search"]["search"]["what"].startswith("not built yet"), rows
        assert rows["peers"]["add_tiny"]["result"] in ("missing", "measured"), rows
        assert rows["faults"]["another chip"]["result"] == "passed", rows
        assert rows["faults"]["a killed process"]["result"] == "passed", rows
        assert "add_tiny" in (self.tree / "results/table.txt").read_text()

    def case_what_is_open_goes_on(self):
        results = self.folder / "again"
        words = ("faults", "--rows", "chip", "--results", results)
        run(self.tree / "gpu_check.sh", *words, "--seconds", "1", code=3, env=self.environment)
        run(self.tree / "gpu_check.sh", *words, env=self.environment)
        first = (results / "state.json").stat().st_mtime_ns
        run(self.tree / "gpu_check.sh", *words, env=self.environment)  # done: nothing runs again
        assert first == (results / "state.json").stat().st_mtime_ns

    def case_a_wrong_network_is_told(self):
        results = self.folder / "wrong"
        words = ("models", "--rows", "mlp", "--results", results)
        self.environment["HONE_MOCK_CUDA"] = "wrong"
        try:
            run(self.tree / "gpu_check.sh", *words, code=1, env=self.environment)
        finally:
            del self.environment["HONE_MOCK_CUDA"]
        row = json.loads((results / "gpu_check.json").read_text())["rows"]["models"]["mlp"]
        assert row["result"] == "failed", row

    def case_the_tables_kernels_assemble(self):
        if not shutil.which("ptxas"):
            raise Skipped("no ptxas in the PATH")
        for table in ("tma", "wgmma"):
            ptx = self.folder / f"{table}.ptx"
            ptx.write_text(run(self.tree / "bin/gpu-truth", "ptx", table))
            said = run("ptxas", "-arch", "sm_90a", "-v", ptx, "-o", self.folder / "cubin")
            assert "0 bytes spill stores" in said and "(C75" not in said, said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path)
    args = parser.parse_args()
    args.build, args.source = args.build.resolve(), args.source.resolve()
    results = []
    with tempfile.TemporaryDirectory(prefix="hone-bundle-") as folder:
        test, missing = BundleTest(args, pathlib.Path(folder)), None
        try:
            test.prepare()
        except Skipped as reason:
            missing = ("skipped", str(reason))
        except Exception:  # pylint: disable=broad-except
            missing = ("failed", traceback.format_exc())
        for name in [n for n in dir(test) if n.startswith("case_")]:
            verdict, why = missing or ("passed", "")
            if not missing:
                try:
                    getattr(test, name)()
                except Skipped as reason:
                    verdict, why = "skipped", str(reason)
                except Exception:  # pylint: disable=broad-except
                    verdict, why = "failed", traceback.format_exc()
            results.append((name.removeprefix("case_"), verdict, why))
            print(f"{verdict:8} {results[-1][0]} {why}", flush=True)
    if args.results:
        write_results(args.results, results)
    return 1 if any(verdict == "failed" for _, verdict, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
