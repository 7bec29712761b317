#!/usr/bin/env python3
"""libhone_client as installed: the headers alone, what the library shows and remembers, and
examples/cpp built through find_package(hone) that tunes on a farm of this machine.

    example_test.py --source DIR --build DIR [--results FILE.xml]
"""
import argparse
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from xml.sax.saxutils import quoteattr

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "package"))
from install_test import run  # noqa: E402


class ExampleTest:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.prefix = folder / "prefix"
        installed = folder / "installed"
        for component in ("libhone-runtime", "libhone-client", "libhone-dev"):
            run("cmake", "--install", args.build, "--prefix", installed, "--component", component)
        installed.rename(self.prefix)  # Nothing may remember the place.
        self.shared_library = next(self.prefix.glob("lib*/**/libhone_client.so.0"))

    def case_the_headers_stand_alone(self):
        for header in ("client.h", "status.h"):
            text = (self.prefix / "include/hone" / header).read_text(encoding="utf-8")
            foreign = [name for name in re.findall(r'#include [<"](.*)[>"]', text)
                       if "/" in name and not name.startswith("hone/")]
            assert not foreign, f"{header} includes {foreign}"
            source = self.folder / "alone.cc"
            source.write_text(f'#include "hone/{header}"\n#include "hone/{header}"\n', encoding="utf-8")
            run("c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                "-Wno-missing-field-initializers", "-I", self.prefix / "include", source)

    def case_nothing_else_is_visible(self):
        symbols = run("nm", "-DC", "--defined-only", self.shared_library)
        names = [line.split(maxsplit=2)[2] for line in symbols.splitlines()]
        strangers = [n for n in names
                     if not re.match(r"hone::(Client::|Status::|StatusCodeName)", n)]
        assert any(n.startswith("hone::Client::Connect(") for n in names), names[:5]
        assert not strangers, f"also visible: {strangers[:5]}"

    def case_the_example_tunes_on_a_farm(self):
        build = self.folder / "example"
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        run("cmake", *generator, "-S", self.args.source / "examples/cpp", "-B", build,
            f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"
            " -Wno-missing-field-initializers")
        run("cmake", "--build", build)
        # The library looks for hone-builder beside itself.
        shutil.copytree(self.args.build / "libexec/hone", self.prefix / "libexec/hone")
        programs = self.args.build / "bin"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        running = [subprocess.Popen(
            [str(programs / "honed"), "--insecure-loopback", "--listen", address, "--db",
             str(self.folder / "tune.db"), "--config", "/dev/null"], stderr=subprocess.DEVNULL)]
        try:
            running.append(subprocess.Popen(
                [str(programs / "hone-worker"), "--insecure-loopback", "--connect", address,
                 "--config", "/dev/null", "--lock-folder", str(self.folder)],
                stderr=subprocess.DEVNULL))
            model = self.folder / "mlp.onnx"
            run(programs / "hone", "zoo", "mlp", "-o", model)
            said = run(build / "tune_on_farm", address, "-", model, "6", self.folder / "snap.db",
                       timeout=120)
            print(said)
            assert re.search(r"^session [0-9a-f]{32}, \d tasks for cpu:", said, re.M), said
            # On a machine that has more to do than cores some candidates end by their limit of time.
            counts = re.search(r"^(\d+) measured, (\d+) failed; ended: ", said, re.M)
            measured, failed = int(counts[1]), int(counts[2])
            assert measured > 5 and failed < measured, said
            assert re.search(r"^best of .+: \d+\.\d\d us, ", said, re.M), said
            command = re.search(r"^hone (compile .*)$", said, re.M)[1].split()
            command[-1] = str(self.folder / "model.hone")
            run(programs / "hone", *command)
        finally:
            for process in reversed(running):
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(timeout=60) for process in running]
        assert codes == [0, 0], codes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path)
    args = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory(prefix="hone-client-") as folder:
        test = ExampleTest(args, pathlib.Path(folder).resolve())
        for name in [n for n in dir(test) if n.startswith("case_")]:
            try:
                getattr(test, name)()
                results[name.removeprefix("case_")] = ""
            except Exception:  # pylint: disable=broad-except
                results[name.removeprefix("case_")] = traceback.format_exc()
            print(name.removeprefix("case_"), results[name.removeprefix("case_")] or "ok")
    if args.results:
        with open(args.results, "w", encoding="utf-8") as out:
            out.write('<testsuites><testsuite name="client_example">\n')
            for case, why in results.items():
                inside = f"<failure message={quoteattr(why)}/>" if why else ""
                out.write(f'<testcase name="{case}" status="run">{inside}</testcase>\n')
            out.write("</testsuite></testsuites>\n")
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
