#!/usr/bin/env python3
"""The Debian packages, made by CPack from a build: which there are, what they need, and that together
they compile and run a model from the place where they were unpacked. `scripts/proof.sh packages`
installs them in a bare root.

    packages_test.py --build DIR [--results FILE.xml]
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

from units_test import Skipped, write_results

PACKAGES = {"hone", "hone-builder", "hone-runner", "hone-worker", "honed", "libhone-runtime",
            "libhone-client", "libhone-dev", "hone-doc"}


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class PackagesTest:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def prepare(self):
        for program in ("cpack", "dpkg-shlibdeps", "file"):
            if not shutil.which(program):
                raise Skipped(f"there is no {program}; scripts/deps.sh package installs it")
        run("cpack", "--config", self.args.build / "CPackConfig.cmake", "-G", "DEB", "-B", self.folder,
            # Their size is no matter here, their time is.
            "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")
        self.debs = {path.name.split("_")[0]: path for path in self.folder.glob("*.deb")}
        self.root = self.folder / "root"
        self.files = {}
        for name, deb in self.debs.items():
            run("dpkg-deb", "-x", deb, self.root)
            lines = run("dpkg-deb", "-c", deb).splitlines()
            self.files[name] = {line.split()[5] for line in lines if not line.startswith("d")}

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.debs[package], name).strip()

    def case_each_part_is_a_package(self):
        assert set(self.debs) == PACKAGES, set(self.debs) ^ PACKAGES
        owner = {}
        for package, files in self.files.items():
            assert f"./usr/share/doc/{package}/copyright" in files, f"{package} has no licence"
            for file in files:
                assert file not in owner, f"{file} is in {owner[file]} and {package}"
                owner[file] = package
        wanted = {"/bin/hone": "hone", "/libexec/hone/hone-builder": "hone-builder",
                  "/libexec/hone/hone-runner": "hone-runner", "/bin/honed": "honed",
                  "/system/honed.service": "honed", "/system/hone-worker.service": "hone-worker",
                  "/dist-packages/hone/model.py": "libhone-runtime", "/hone/hone.h": "libhone-dev",
                  "/man1/hone-tune.1": "hone", "/man8/honed.8": "honed", "/hone/FARM.md": "hone-doc",
                  "/examples/c/run_model.c": "libhone-dev"}
        for end, package in wanted.items():
            assert [owner[file] for file in owner if file.endswith(end)] == [package], end

    def case_dependencies_are_those_of_the_programs(self):
        needs = {package: self.field(package, "Depends") for package in PACKAGES}
        assert "libllvm" in needs["hone-builder"], needs["hone-builder"]
        for package in PACKAGES - {"hone-builder"}:
            assert "libllvm" not in needs[package], f"{package}: {needs[package]}"
        version = self.field("hone", "Version")
        for package, other in (("hone", "hone-builder"), ("hone", "hone-runner"),
                               ("hone-worker", "hone-runner"), ("libhone-dev", "libhone-runtime")):
            assert f"{other} (= {version})" in needs[package], f"{package}: {needs[package]}"
        assert "libgrpc++" in needs["honed"] and "libprometheus-cpp" in needs["honed"], needs["honed"]
        strangers = re.sub(r"\b(libc6|libgcc-s1|libstdc\+\+6) \([^)]*\),?\s*", "", needs["libhone-runtime"] + ",")
        assert not strangers.strip(" ,"), f"libhone-runtime also needs {strangers}"

    def case_scripts_make_the_user_and_are_sound(self):
        for package in ("honed", "hone-worker"):
            script = run("dpkg-deb", "-I", self.debs[package], "postinst")
            assert "useradd --system" in script
            path = self.folder / f"{package}.postinst"
            path.write_text(script, encoding="utf-8")
            run("sh", "-n", path)

    def case_bytecode_goes_with_the_module(self):
        script = self.folder / "prerm"
        script.write_text(run("dpkg-deb", "-I", self.debs["libhone-runtime"], "prerm"), encoding="utf-8")
        root = self.folder / "purged"
        cache = root / "usr/lib/python3/dist-packages/hone/pytorch/__pycache__"
        cache.mkdir(parents=True)
        (cache / "graph.cpython-311.pyc").touch()
        run("sh", script, env={**os.environ, "DPKG_ROOT": str(root)})
        assert not cache.exists() and cache.parent.exists()
        run("sh", script, env={**os.environ, "DPKG_ROOT": str(self.folder / "nowhere")})

    def case_together_they_compile_and_run(self):
        hone = self.root / "usr/bin/hone"
        run(hone, "zoo", "mlp", cwd=self.folder)
        run(hone, "compile", "mlp.onnx", "--no-log", "-o", "mlp.hone", "--cache-mb", "0", cwd=self.folder)
        run(hone, "run", "mlp.hone", "--inputs", "mlp.inputs.npz", "--outputs", "y.npz", cwd=self.folder)
        assert "hone-worker" in run(self.root / "usr/bin/hone-worker", "--version")
        library = next(self.root.glob("usr/lib/**/libhone_runtime.so.0"))
        assert "hone_model_open" in run("nm", "-D", library)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path)
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="hone-packages-") as folder:
        test, missing = PackagesTest(args, pathlib.Path(folder)), None
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
                except Exception:  # pylint: disable=broad-except
                    verdict, why = "failed", traceback.format_exc()
            results.append((name.removeprefix("case_"), verdict, why))
            print(f"{verdict:8} {results[-1][0]} {why}")
    if args.results:
        write_results(args.results, results)
    return 1 if any(verdict == "failed" for _, verdict, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
