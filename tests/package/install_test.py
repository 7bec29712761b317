#!/usr/bin/env python3
"""Installs the runtime into a fresh folder and uses it as a stranger would: the public header alone in
C and C++, the C example through find_package(hone), both libraries, and hone_add_model() with a
command that records how it is called.

    install_test.py --source DIR --build DIR --write-package PROGRAM [--results FILE.xml]
"""
import argparse
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from xml.sax.saxutils import quoteattr

CONSUMER = """cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C CXX)
find_package(hone 0.1 REQUIRED CONFIG)
add_executable(with_static "{source}/examples/c/run_model.c")
target_link_libraries(with_static PRIVATE hone::runtime_static)
set(HONE_COMMAND "{folder}/recorder")
hone_add_model(tiny MODEL tiny.onnx TARGET cpu:avx2,threads=2 DB "snap.db@sha256:{digest}"
               REQUIRE nearest DEVICE_CLASS "a class" DIM batch=4 seq=16)
hone_add_model(plain MODEL tiny.onnx OUTPUT sub/other.hone DB live.db)
hone_add_model(bound MODEL tiny.onnx BIND x=x.npy ACCURACY strict TRACES hand)
hone_add_model(alone MODEL tiny.onnx)
get_target_property(package tiny HONE_PACKAGE)
message(STATUS "package of tiny: ${{package}}")
"""
RECORDER = """#!/bin/sh
printf '%s\\n' "$@" > "$0.$(basename "$4").args"
mkdir -p "$(dirname "$4")" && echo package > "$4"
depfile= && for word; do [ "$depfile" = next ] && depfile="$word"; [ "$word" = --depfile ] && depfile=next; done
echo "$4: $2 $2.data" > "$depfile"
"""
DIGEST = "ab" * 32


class Skipped(Exception):
    """The reason why a case cannot run here."""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class InstallTest:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.prefix = folder / "prefix"
        self.package = folder / "model.hone"
        self.sanitizer = []

    def prepare(self):
        for component in ("libhone-runtime", "libhone-client", "libhone-dev"):
            run("cmake", "--install", self.args.build, "--prefix", self.prefix, "--component", component)
        # Moved after installation: nothing may remember the place.
        moved = self.folder / "moved"
        self.prefix.rename(moved)
        self.prefix = moved
        run(self.args.write_package, self.package)
        cache = pathlib.Path(self.args.build, "CMakeCache.txt").read_text(encoding="utf-8")
        flags = re.search(r"^CMAKE_CXX_FLAGS:[A-Z]*=(.*)$", cache, re.M).group(1)
        self.sanitizer = re.findall(r"-fsanitize=[\w,]+", flags)
        found = list(self.prefix.glob("lib*/**/libhone_runtime.so.0"))
        assert len(found) == 1, f"libhone_runtime.so.0 was installed {len(found)} times"
        self.shared_library = found[0]

    def inputs(self):
        """x f32 [5,7] and ids i64 [5] as raw files, whose answers are known: see `expected`."""
        x = self.folder / "x.bin"
        ids = self.folder / "ids.bin"
        x.write_bytes(struct.pack("<35f", *([0.0] * 35)))
        ids.write_bytes(struct.pack("<5q", 0, 1, 2, 3, 4))
        return x, ids

    def check_example(self, program):
        """With x = 0, z is rows 0 to 4 of the table and `top` the two largest of each row."""
        x, ids = self.inputs()
        lines = run(program, self.package, x, ids).splitlines()
        names = [line.split()[0] for line in lines]
        assert names == ["z", "last", "top", "places"], lines
        z = [float(value) for value in lines[0].split()[2:8]]
        top = [float(value) for value in lines[2].split()[2:4]]
        places = [int(value) for value in lines[3].split()[2:4]]
        order = sorted(range(6), key=lambda j: (-z[j], j))[:2]
        assert places == order and top == [z[j] for j in order], lines
        assert any(z), "a table of zeros would prove nothing"
        failed = subprocess.run([program, self.package, ids, ids], capture_output=True, text=True,
                                check=False)
        assert failed.returncode == 1 and "size of the input" in failed.stderr, failed
        failed = subprocess.run([program, x], capture_output=True, text=True, check=False)
        assert failed.returncode == 1 and "not a Hone package" in failed.stderr, failed

    def case_installed_files(self):
        files = {p.name for p in self.prefix.rglob("*") if p.is_file() or p.is_symlink()}
        wanted = {"hone.h", "libhone_runtime.so", "libhone_runtime.a", "hone-config.cmake",
                  "hone-config-version.cmake", "hone_add_model.cmake", "hone-targets.cmake"}
        assert wanted <= files, f"missing: {wanted - files}"
        for path in self.prefix.rglob("*.cmake"):
            text = path.read_text(encoding="utf-8")
            for place in (str(self.folder), str(self.args.source), str(self.args.build)):
                assert place not in text, f"{path.name} names {place}"

    def case_only_the_c_api_is_visible(self):
        symbols = run("nm", "-D", "--defined-only", self.shared_library)
        names = [line.split()[-1] for line in symbols.splitlines()]
        strangers = [n for n in names if not n.startswith("hone_")]
        assert "hone_model_open" in names
        assert not strangers, f"also visible: {strangers[:10]}"

    def case_needs_only_system_libraries(self):
        if self.sanitizer:
            raise Skipped("sanitizers bring libraries of their own")
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", self.shared_library))
        allowed = r"(libc|libstdc\+\+|libgcc_s|libm|libpthread|libdl|ld-linux-x86-64)\.so\.\d+"
        strangers = [name for name in needed if not re.fullmatch(allowed, name)]
        assert needed and not strangers, f"also needed: {strangers}"

    def case_header_alone_in_c_and_cpp(self):
        for compiler, language, standard in (("cc", "c", "c99"), ("cc", "c", "c11"),
                                             ("c++", "c++", "c++11"), ("c++", "c++", "c++20")):
            run(compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror",
                "-pedantic", "-fsyntax-only", self.prefix / "include/hone/hone.h")

    def configure(self, source, build):
        flags = " ".join(self.sanitizer)
        return run("cmake", "-G", "Ninja", "-S", source, "-B", build,
                   f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_C_FLAGS=-Wall -Wextra -Werror {flags}",
                   f"-DCMAKE_EXE_LINKER_FLAGS={flags}")

    def case_c_example_with_find_package(self):
        build = self.folder / "example"
        self.configure(pathlib.Path(self.args.source, "examples/c"), build)
        run("cmake", "--build", build)
        self.check_example(build / "run_model")

    def case_static_library_and_add_model(self):
        source, build = self.folder / "consumer", self.folder / "consumer-build"
        source.mkdir()
        for name in ("tiny.onnx", "tiny.onnx.data", "snap.db", "live.db", "x.npy"):
            (source / name).write_text("")
        recorder = self.folder / "recorder"
        recorder.write_text(RECORDER)
        recorder.chmod(0o755)
        (source / "CMakeLists.txt").write_text(
            CONSUMER.format(source=self.args.source, folder=self.folder, digest=DIGEST))
        output = self.configure(source, build)
        assert f"package of tiny: {build}/tiny.hone" in output, output
        run("cmake", "--build", build)
        self.check_example(build / "with_static")

        def arguments(name):
            return pathlib.Path(f"{recorder}.{name}.args").read_text().splitlines()
        assert arguments("tiny.hone") == [
            "compile", f"{source}/tiny.onnx", "-o", f"{build}/tiny.hone",
            "--snapshot", f"{source}/snap.db@sha256:{DIGEST}", "--target", "cpu:avx2,threads=2",
            "--require", "nearest", "--device-class", "a class",
            "--dim", "batch=4", "--dim", "seq=16",
            "--depfile", f"{build}/tiny.hone.d"], arguments("tiny.hone")
        assert arguments("other.hone") == [
            "compile", f"{source}/tiny.onnx", "-o", f"{build}/sub/other.hone",
            "--db", f"{source}/live.db",
            "--depfile", f"{build}/sub/other.hone.d"], arguments("other.hone")
        assert arguments("bound.hone") == [
            "compile", f"{source}/tiny.onnx", "-o", f"{build}/bound.hone",
            "--accuracy", "strict", "--bind", f"x={source}/x.npy", "--traces", f"{source}/hand",
            "--depfile", f"{build}/bound.hone.d"], arguments("bound.hone")

        assert arguments("alone.hone") == [
            "compile", f"{source}/tiny.onnx", "-o", f"{build}/alone.hone",
            "--no-log", "--depfile", f"{build}/alone.hone.d"], arguments("alone.hone")

        def compiled(changed):
            """The packages that a build makes after a change of this file."""
            for record in self.folder.glob("recorder.*.args"):
                record.unlink()
            if changed:
                later = time.time() + 5
                os.utime(source / changed, (later, later))
            run("cmake", "--build", build)
            return sorted(p.name.split(".")[1] for p in self.folder.glob("recorder.*.args"))
        assert compiled(None) == [], "compiled without need"
        assert compiled("x.npy") == ["bound"]
        # Only the command knows of external data, and says so in its dependency file.
        assert compiled("tiny.onnx.data") == ["alone", "bound", "other", "tiny"]

    def case_model_compiled_by_an_installed_hone(self):
        if self.sanitizer:
            raise Skipped("a library of --emit so has no sanitizer's runtime")
        prefix = self.folder / "whole"
        run("cmake", "--install", self.args.build, "--prefix", prefix)
        command = prefix / "bin/hone"
        for page in ("man/man1/hone-tune.1", "man/man8/honed.8", "man/man8/hone-worker.8",
                     "bash-completion/completions/hone", "zsh/site-functions/_hone",
                     "fish/vendor_completions.d/hone.fish"):
            assert (prefix / "share" / page).stat().st_size > 100, page
        model = self.folder / "mlp.onnx"
        run(command, "zoo", "mlp", "-o", model)
        build = self.folder / "compiled"
        run("cmake", "-G", "Ninja", "-S", pathlib.Path(self.args.source, "examples/c"), "-B", build,
            f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release", f"-DMODEL={model}",
            "-DCMAKE_C_FLAGS=-std=c11 -Wall -Wextra -Werror -pedantic")
        # The user's own log is not looked at: this is none.
        run("cmake", "--build", build, env={**os.environ, "HONE_DB": str(self.folder)})
        pixels = struct.pack("<784f", *((i % 29) * 0.05 - 0.7 for i in range(784)))
        raw = self.folder / "pixels.bin"
        raw.write_bytes(pixels)
        alone = subprocess.run([build / "classify"], input=pixels, capture_output=True, check=True)
        scores = [float(line.split()[1]) for line in alone.stdout.decode().splitlines()[:10]]
        # The package through the runtime's library gives the same.
        line = run(build / "run_model", build / "mlp.hone", raw).splitlines()[0].split()
        assert line[:2] == ["output", "[1,10]"], line
        for a, b in zip(scores, map(float, line[2:10])):
            assert abs(a - b) <= 1e-5 * max(1, abs(a)), (scores, line)
        assert len(set(scores)) == 10, scores
        # Only libraries of the system are needed.
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", build / "mlp.so"))
        assert not [name for name in needed if "hone" in name], needed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--write-package", required=True)
    parser.add_argument("--results")
    args = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        test = InstallTest(args, pathlib.Path(folder).resolve())
        test.prepare()
        for name in sorted(n for n in dir(test) if n.startswith("case_")):
            case = name.removeprefix("case_")
            try:
                getattr(test, name)()
                results[case] = ("passed", None)
                print(f"ok      {case}")
            except Skipped as reason:
                results[case] = ("skipped", str(reason))
                print(f"skipped {case}: {reason}")
            except Exception:  # pylint: disable=broad-except
                results[case] = ("failed", traceback.format_exc())
                print(f"FAILED  {case}\n{traceback.format_exc()}")
    if args.results:
        write_results(args.results, results)
    failed = sum(outcome == "failed" for outcome, _ in results.values())
    print(f"{len(results)} cases, {failed} failed")
    return 1 if failed else 0


def write_results(path, results):
    """GoogleTest's XML, as scripts/count_tests.py reads it."""
    with open(path, "w", encoding="utf-8") as out:
        out.write("<testsuites><testsuite name=\"Package\">\n")
        for case, (outcome, message) in results.items():
            out.write(f"<testcase name={quoteattr(case)} status=\"run\">")
            if outcome != "passed":
                element = "failure" if outcome == "failed" else "skipped"
                out.write(f"<{element} message={quoteattr(message)}/>")
            out.write("</testcase>\n")
        out.write("</testsuite></testsuites>\n")


if __name__ == "__main__":
    sys.exit(main())
