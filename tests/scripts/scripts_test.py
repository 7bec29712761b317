#!/usr/bin/env python3
"""The scripts where something is missing or was interrupted: each refusal of quickstart.sh says what
to do, cases.sh never leaves half of its cases, and the runs under sanitizers have the cases too.

    scripts_test.py --source DIR [--results FILE.xml]

Each case runs copies of the scripts in a folder of its own, with programs of its own in front of
PATH that answer for another machine.
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
from xml.sax.saxutils import quoteattr

GOOD_MACHINE = {"free_kib": 9_000_000, "memory_kib": 8_000_000, "machine": "x86_64", "flags": "fpu fma avx2"}
# What the machine lacks -> (what it is then, what the refusal says, what it advises).
REFUSALS = {
    "disk": ({"free_kib": 1_024_000}, "1000 MiB of disk are free", "free some, or clone elsewhere"),
    "memory": ({"memory_kib": 2_048_000}, "has 2000 MiB of memory, the build needs 4 GB",
               "give this virtual machine or container more, or use another machine"),
    "processor": ({"machine": "aarch64"}, "this machine is aarch64", "use such a machine"),
    "avx2": ({"flags": "fpu fma"}, "no AVX2 and FMA", "use one that has them"),
    "fma": ({"flags": "fpu avx2"}, "no AVX2 and FMA", "use one that has them"),
}
FAKE_MAKER = """import pathlib, sys, os
out = pathlib.Path(sys.argv[1])
out.mkdir()
(out / "first").write_text("1")
if os.environ.get("INTERRUPT"):
    sys.exit(1)
(out / "second").write_text("2")
"""


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/usr/bin/env bash\n" + text, encoding="utf-8")
    path.chmod(0o755)


class ScriptsTest:
    def __init__(self, source, folder):
        self.tree, self.programs, self.log = folder / "tree", folder / "programs", folder / "log"
        (self.tree / "scripts").mkdir(parents=True)
        self.programs.mkdir()
        self.source = source

    def script(self, name):
        shutil.copy(self.source / "scripts" / name, self.tree / "scripts" / name)

    def run(self, *command, **environment):
        env = dict(os.environ, PATH=f"{self.programs}:{os.environ['PATH']}", **environment)
        return subprocess.run([str(word) for word in command], cwd=self.tree, env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60)

    def pretend(self, free_kib, memory_kib, machine, flags):
        """A machine for quickstart.sh: what it asks of the system is answered by these programs."""
        write_program(self.programs / "df",
                      f"printf 'Filesystem blocks Used Available\\n/dev/x 9 9 {free_kib}\\n'\n")
        write_program(self.programs / "uname", f"echo {machine}\n")
        for name, file, text in (("awk", "/proc/meminfo", f"MemTotal: {memory_kib} kB"),
                                 ("grep", "/proc/cpuinfo", f"flags : {flags}")):
            real = shutil.which(name)
            write_program(self.programs / name, f"""
if [ "${{@: -1}}" = {file} ]; then exec {real} "${{@:1:$#-1}}" <<<"{text}"; fi
exec {real} "$@"
""")

    def case_packages_bring_what_makes_the_wheel(self):
        """On a bare Debian there is no python3-venv, without which pip's environment cannot be made."""
        self.script("deps.sh")
        write_program(self.programs / "dpkg-query", "exit 1\n")
        write_program(self.programs / "id", "echo 1000\n")
        write_program(self.programs / "sudo", "exit 1\n")
        done = self.run("scripts/deps.sh", "package")
        assert done.returncode != 0, done.stdout
        for package in ("python3-venv", "patchelf", "zstd"):
            assert package in done.stdout, done.stdout

    def case_after_the_quickstart_hone_is_found(self):
        """README goes on with `hone`, which the quickstart leaves in the build's folder."""
        readme = (self.source / "README.md").read_text(encoding="utf-8")
        script = (self.source / "scripts/quickstart.sh").read_text(encoding="utf-8")
        folder = script.partition("\nbuild=")[2].partition("\n")[0] + "/bin"
        block = readme.partition("$ scripts/quickstart.sh\n")[2].partition("```")[0]
        assert f'export PATH="$PWD/{folder}:$PATH"' in block, block
        assert "export PATH=" in script.rpartition("awk -v")[2]

    def case_quickstart_refuses_with_advice(self):
        self.script("quickstart.sh")
        write_program(self.tree / "scripts/deps.sh", "echo reached the packages >&2; exit 1\n")
        for name, (lacking, what, advice) in REFUSALS.items():
            self.pretend(**{**GOOD_MACHINE, **lacking})
            done = self.run("scripts/quickstart.sh")
            assert done.returncode == 1, (name, done.stdout)
            refusal = done.stdout.partition("quickstart: ")[2]
            assert what in refusal and advice in refusal, (name, done.stdout)
            assert "reached the packages" not in done.stdout, (name, done.stdout)

    def case_quickstart_goes_on_where_all_is_there(self):
        self.script("quickstart.sh")
        write_program(self.tree / "scripts/deps.sh", "echo reached the packages >&2; exit 1\n")
        self.pretend(**GOOD_MACHINE)
        done = self.run("scripts/quickstart.sh")
        assert done.returncode == 1, done.stdout
        assert "reached the packages" in done.stdout and "run this script again" in done.stdout, done.stdout

    def case_quickstart_goes_on_after_an_interrupted_tuning_alone(self):
        self.script("quickstart.sh")
        for helper in ("deps.sh", "jobs.sh"):
            write_program(self.tree / "scripts" / helper, "echo 1\n")
        write_program(self.programs / "cmake", "exit 0\n")
        self.pretend(**GOOD_MACHINE)
        for ending, step, going_on in ((7, "tune", True), (8, "tune", False), (7, "compile", False)):
            write_program(self.tree / "build/release/bin/hone", f"""
[ "$1" != {step} ] || exit {ending}
echo '{{"median_us": 1000, "attempts": 3}}'
""")
            done = self.run("scripts/quickstart.sh")
            assert (done.returncode == 0) == going_on, (step, ending, done.stdout)
            assert ("candidates measured" in done.stdout) == going_on, (step, ending, done.stdout)
            assert ("going on with what was found" in done.stdout) == going_on, (step, ending, done.stdout)

    def case_quickstart_forgives_a_full_disk_after_its_build(self):
        self.script("quickstart.sh")
        write_program(self.tree / "scripts/deps.sh", "echo reached the packages >&2; exit 1\n")
        write_program(self.tree / "build/release/bin/hone", "exit 1\n")
        self.pretend(**{**GOOD_MACHINE, "free_kib": 1000})
        assert "reached the packages" in self.run("scripts/quickstart.sh").stdout

    def case_cases_are_whole_or_not_there(self):
        self.script("cases.sh")
        makers = self.tree / "tests/conformance"
        for folder in ("families", "networks"):
            (makers / folder).mkdir(parents=True)
            (makers / folder / "a.py").write_text("", encoding="utf-8")
        for name in ("node", "random", "network"):
            (makers / f"make_{name}_cases.py").write_text(FAKE_MAKER, encoding="utf-8")
        (self.tree / "tests/models").mkdir()
        (self.tree / "tests/models/requirements.txt").write_text("onnx==1\n", encoding="utf-8")
        build = self.tree / "build"
        without = self.run("scripts/cases.sh", build)
        assert without.returncode == 1 and "run scripts/models.sh" in without.stdout, without.stdout
        (build / "venv/bin").mkdir(parents=True)
        (build / "venv/bin/python").symlink_to(sys.executable)

        stopped = self.run("scripts/cases.sh", build, INTERRUPT="1")
        assert stopped.returncode == 1, stopped.stdout
        assert not (build / "node_cases").exists(), "half of the cases have the name of the whole"
        assert self.run("scripts/cases.sh", build).returncode == 0
        wholes = [build / f"{name}_cases/second" for name in ("node", "random", "network")]
        assert all(whole.exists() for whole in wholes)

        # What is up to date stays; a change of a script or of the packages makes all anew.
        wholes[0].write_text("kept", encoding="utf-8")
        assert self.run("scripts/cases.sh", build).returncode == 0
        assert wholes[0].read_text(encoding="utf-8") == "kept"
        (self.tree / "tests/models/requirements.txt").write_text("onnx==2\n", encoding="utf-8")
        stopped = self.run("scripts/cases.sh", build, INTERRUPT="1")
        assert stopped.returncode == 1 and wholes[0].exists(), "a failure took the old cases away"
        assert self.run("scripts/cases.sh", build).returncode == 0
        assert wholes[0].read_text(encoding="utf-8") == "2", "the old cases stayed"

    def case_every_run_of_tests_has_its_cases(self):
        for script, words, build in (("test.sh", [], "build/ci"), ("proof.sh", ["asan"], "build/asan")):
            self.script(script)
            self.script("bare_root.sh")
            self.script("python_proofs.sh")
            for helper in ("deps.sh", "jobs.sh", "models.sh", "cases.sh", "torch.sh", "count_tests.py"):
                write_program(self.tree / "scripts" / helper, f'echo "{helper} $*" >>"{self.log}"; echo 1\n')
            for program in ("cmake", "ctest", "python3"):
                write_program(self.programs / program, f'echo "{program} $*" >>"{self.log}"\n')
            self.log.write_text("", encoding="utf-8")
            done = self.run(f"scripts/{script}", *words)
            lines = self.log.read_text(encoding="utf-8").splitlines()
            tests = [i for i, line in enumerate(lines) if line.startswith("ctest") and " -N " not in line]
            assert done.returncode == 0 and len(tests) == 1, (done.stdout, lines)
            for wanted in (f"models.sh {build}/models", f"cases.sh {build}"):
                assert wanted in lines[: tests[0]], (script, wanted, lines)

    def case_programs_of_tests_are_known_before_they_are_built(self):
        self.script("test_programs.py")
        (self.tree / "test-programs.txt").write_text("db tests/db_test\nfarm.0 tests/farm_test\nfarm.1 tests/farm_test\n",
                                                     encoding="utf-8")

        def programs(*entries):
            tests = json.dumps({"tests": [{"name": name} for name in entries]})  # no "command": nothing is built
            return self.run("bash", "-c", f"python3 scripts/test_programs.py . <<<'{tests}'").stdout

        assert programs("farm.0", "db", "farm.1") == "tests/db_test tests/farm_test\n", programs("farm.0", "db", "farm.1")
        assert programs("db", "tidy") == "", "a script may run anything"

    def case_races_of_our_own_are_told_from_grpcs(self):
        self.script("tsan_reports.py")
        reports = self.tree / "reports"
        reports.mkdir()
        (reports / "tsan.1").write_text(tsan_report("std::swap /usr/include/c++/12/bits/move.h:205",
                                                    "grpc::internal::Call::call() /usr/include/grpcpp/call.h:70"))
        aside = self.run("python3", "scripts/tsan_reports.py", reports)
        assert aside.returncode == 0 and aside.stdout == "0 reports, 1 of gRPC's own hand-overs set aside\n", aside.stdout
        # Called by gRPC, but what is read is ours.
        (reports / "tsan.2").write_text(tsan_report(
            "std::string::size() /usr/include/c++/12/bits/string.h:9", "hone::server::Row::owner() ../../server/row.cc:7",
            "grpc::internal::Call::call() /usr/include/grpcpp/call.h:70"))
        ours = self.run("python3", "scripts/tsan_reports.py", reports)
        assert ours.returncode == 1 and "server/row.cc:7" in ours.stdout, ours.stdout
        assert ours.stdout.endswith("1 reports, 1 of gRPC's own hand-overs set aside\n"), ours.stdout
        (reports / "tsan.2").unlink()
        # A reactor is called back after its handler has returned it; another one may be at any time.
        for made, place, told in (("Watch", "Watch", 2), ("Row", "Row", 1), ("Watch", "", 1)):
            (reports / "tsan.3").write_text(tsan_report(
                "hone::server::End::End() ../../server/end.h:2",
                f"std::make_shared<hone::server::{made}, hone::Id>() /usr/include/c++/12/bits/shared_ptr.h:1",
                "hone::server::Service::WatchSession() ../../server/service.cc:9",
                "grpc::internal::Handler<hone::v1::Request>::RunHandler() /usr/include/grpcpp/handler.h:8",
                other=("hone::server::End::Begin() ../../server/end.cc:5", "hone::server::Watch::OnCancel() ../../server/w.cc:7"),
                place=f"std::make_shared<hone::server::{place}, hone::Id>() /usr/include/c++/12/bits/shared_ptr.h:1"))
            sorted_out = self.run("python3", "scripts/tsan_reports.py", reports)
            assert sorted_out.returncode == 2 - told, sorted_out.stdout
            assert sorted_out.stdout.endswith(f"{2 - told} reports, {told} of gRPC's own hand-overs set aside\n"), sorted_out.stdout


def tsan_report(*frames, other=("hone::server::Row::Set() ../../server/row.cc:3",), place="main()"):
    """A race of two accesses: one with these frames, innermost first, and one of ours."""
    def numbered(each):
        return "".join(f"    #{i} {frame} (server_test+0x1)\n" for i, frame in enumerate(each))
    stack, other = numbered(frames), numbered(other)
    return (f"{'=' * 18}\nWARNING: ThreadSanitizer: data race (pid=1)\n  Read of size 8 at 0x1 by thread T1:\n{stack}\n"
            f"  Previous write of size 8 at 0x1 by thread T2 (mutexes: write M1):\n{other}\n"
            f"  Location is heap block of size 464 at 0x1 allocated by thread T2:\n    #0 {place}\n\n"
            f"SUMMARY: ThreadSanitizer: data race\n{'=' * 18}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path)
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="hone-scripts-") as folder:
        for name in [n for n in dir(ScriptsTest) if n.startswith("case_")]:
            why = ""
            try:
                getattr(ScriptsTest(args.source, pathlib.Path(folder, name)), name)()
            except Exception:  # pylint: disable=broad-except
                why = traceback.format_exc()
            results.append((name.removeprefix("case_"), why))
            print(f"{'failed' if why else 'passed':8} {results[-1][0]} {why}")
    if args.results:
        write_results(args.results, results)
    return 1 if any(why for _, why in results) else 0


def write_results(path, results):
    with open(path, "w", encoding="utf-8") as out:
        out.write('<testsuites><testsuite name="scripts">\n')
        for name, why in results:
            inside = f"<failure message={quoteattr(why)}/>" if why else ""
            out.write(f'<testcase name="{name}" status="run">{inside}</testcase>\n')
        out.write("</testsuite></testsuites>\n")


if __name__ == "__main__":
    sys.exit(main())
