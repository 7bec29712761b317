#!/usr/bin/env python3
"""The systemd units: `systemd-analyze verify` finds nothing, `systemd-analyze security` calls them
well protected, and the example configurations are accepted by the programs. Without systemd the
first two are skipped, and say so.

    units_test.py --build DIR --source DIR [--results FILE.xml]
"""
import argparse
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import traceback
from xml.sax.saxutils import quoteattr

UNITS = {"honed": 15, "hone-worker": 20}  # the most that `security` may say, in tenths


class Skipped(Exception):
    """The reason why a case cannot run here."""


def run(*command):
    return subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)


class UnitsTest:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def analyze(self):
        """The program; the units, with the programs of the build tree in place of installed ones."""
        program = shutil.which("systemd-analyze")
        if not program:
            raise Skipped("there is no systemd-analyze; apt-get install systemd has it")
        paths = []
        for unit in UNITS:
            text = (self.args.build / f"lib/systemd/system/{unit}.service").read_text(encoding="utf-8")
            assert "@" not in re.sub(r"@(system-service|privileged|resources)", "", text), text
            text = re.sub(r"^(ExecStart=)\S*/(hone\S*)", rf"\g<1>{self.args.build}/bin/\2",
                          text, flags=re.M)
            text = re.sub(r"^Documentation=.*$", "Documentation=man:hone(1)", text, flags=re.M)
            path = self.folder / f"{unit}.service"
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return program, paths

    def case_verify(self):
        program, paths = self.analyze()
        done = run(program, "verify", "--man=no", "--recursive-errors=no", *paths)
        ours = [line for line in done.stdout.splitlines() if "hone" in line]
        assert done.returncode == 0 and not ours, done.stdout
        broken = self.folder / "broken.service"
        broken.write_text("[Service]\nExecStart=/no/such/program\n", encoding="utf-8")
        assert run(program, "verify", "--man=no", broken).returncode != 0, "verify finds nothing"

    def case_a_wrong_configuration_is_not_started_again(self):
        """RestartPreventExitStatus= is of the main process: what is run before it restarts for ever."""
        for unit in UNITS:
            text = (self.args.build / f"lib/systemd/system/{unit}.service").read_text(encoding="utf-8")
            assert re.search(r"^RestartPreventExitStatus=2$", text, re.M), unit
            assert not re.search(r"^Exec(StartPre|Condition)=", text, re.M), unit

    def case_they_say_when_they_are_ready(self):
        """Type=notify: systemd waits for it, so it has to come."""
        for unit in UNITS:
            text = (self.args.build / f"lib/systemd/system/{unit}.service").read_text(encoding="utf-8")
            assert re.search(r"^Type=notify$", text, re.M), unit
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(self.folder / "notify"))
            manager.settimeout(60)
            words = {"honed": ["--listen", "127.0.0.1:0", "--db", self.folder / "tune.db"],
                     "hone-worker": ["--connect", "127.0.0.1:1", "--lock-folder", self.folder]}
            for program, more in words.items():
                with subprocess.Popen([self.args.build / "bin" / program, "--config", "/dev/null",
                                       "--insecure-loopback", *more], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL,
                                      env={"NOTIFY_SOCKET": str(self.folder / "notify")}) as child:
                    try:
                        assert manager.recv(64) == b"READY=1", program
                    finally:
                        child.terminate()
                if program == "honed":
                    assert manager.recv(64) == b"STOPPING=1"

    def case_security(self):
        program, paths = self.analyze()
        for path in paths:
            most = UNITS[path.stem]
            done = run(program, "security", "--offline=true", f"--threshold={most}", path)
            assert done.returncode == 0, done.stdout
            assert "exposure level" in done.stdout, done.stdout

    def allowed_calls(self, program, path):
        """The system calls that a unit's filter lets through."""
        def members(word):
            if not word.startswith("@"):
                return {word}
            lines = run(program, "syscall-filter", word).stdout.splitlines()[1:]
            words = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
            return set().union(*(members(word) for word in words))

        allowed = set()
        for line in re.findall(r"^SystemCallFilter=(.*)$", path.read_text(encoding="utf-8"), re.M):
            named = set().union(*(members(word) for word in line.lstrip("~").split()))
            allowed = allowed - named if line.startswith("~") else allowed | named
        return allowed

    def case_children_may_lock_themselves_up(self):
        """The worker's filter lets through what measure/sandbox.cc calls."""
        program, paths = self.analyze()
        allowed = self.allowed_calls(program, paths[-1])
        wanted = {"seccomp", "prctl", "prlimit64", "memfd_create", "execve", "landlock_create_ruleset",
                  "landlock_add_rule", "landlock_restrict_self"}
        assert wanted <= allowed, wanted - allowed
        assert "mount" not in allowed and "bpf" not in allowed

    def case_the_loop_may_go_first(self):
        """honed's filter and limit let base/core/thread_name.h raise a thread and lower others."""
        program, paths = self.analyze()
        allowed = self.allowed_calls(program, paths[0])
        assert "setpriority" in allowed and "sched_setscheduler" not in allowed
        assert "\nLimitNICE=-15\n" in paths[0].read_text(encoding="utf-8")

    def case_example_configurations(self):
        for program, config in {"honed": "honed.toml", "hone-worker": "worker.toml"}.items():
            text = (self.args.source / "packaging/etc" / config).read_text(encoding="utf-8")
            binary = self.args.build / "bin" / program
            # Every commented default is an option with that default.
            whole = self.folder / config
            whole.write_text(re.sub(r"^# (?=[a-z-]+ = )", "", text, flags=re.M), encoding="utf-8")
            words = [binary, "--config", whole, "--check-config"]
            # The check wants credentials and the log's folder to be there.
            role, tls, ca = {"honed": "server"}.get(program, "measure"), self.folder / program, self.folder / "ca"
            run(self.args.build / "bin/honed", "init-ca", "--ca", ca)
            run(self.args.build / "bin/honed", "issue", role, "w", "--ca", ca, "--out", tls)
            words += ["--tls", tls]
            if program == "honed":
                words += ["--db", self.folder / "tune.db"]
            done = run(*words)
            assert done.returncode == 0, done.stdout
            usage = run(binary, "--help").stdout
            for name, value in re.findall(r'^# ([a-z-]+) = "(.*)"$', text, re.M):
                if name == "labels":
                    continue  # has no default
                line = re.search(rf"^ *--{name} .*$", usage, re.M)
                assert line and value in line[0], f"{config}: {name} is not {value} by default"
            whole.write_text(text + '\nno-such-option = "1"\n', encoding="utf-8")
            assert run(binary, "--config", whole, "--check-config").returncode == 2

    def case_the_guide_makes_the_folders_that_its_check_wants(self):
        """DEPLOYING checks the configuration before systemd has made the unit's StateDirectory."""
        guide = (self.args.source / "docs/DEPLOYING.md").read_text(encoding="utf-8")
        before = guide.partition("$ honed --check-config\n")[0].rpartition("```console")[2]
        made = re.search(r"^\$ install -d .*$", before, re.M)[0].split()
        usage = run(self.args.build / "bin/honed", "--help").stdout
        log = re.search(r"^ *--db .*default (\S+)\)", usage, re.M)[1]
        tls = re.search(r"^ *--tls .*default (\S+)\)", usage, re.M)[1]
        assert str(pathlib.Path(log).parent) in made and tls in made, made


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path)
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="hone-units-") as folder:
        for name in [n for n in dir(UnitsTest) if n.startswith("case_")]:
            case = pathlib.Path(folder, name)
            case.mkdir()
            verdict, why = "passed", ""
            try:
                getattr(UnitsTest(args, case), name)()
            except Skipped as reason:
                verdict, why = "skipped", str(reason)
            except Exception:  # pylint: disable=broad-except
                verdict, why = "failed", traceback.format_exc()
            results.append((name.removeprefix("case_"), verdict, why))
            print(f"{verdict:8} {results[-1][0]} {why}")
    if args.results:
        write_results(args.results, results)
    return 1 if any(verdict == "failed" for _, verdict, _ in results) else 0


def write_results(path, results):
    with open(path, "w", encoding="utf-8") as out:
        out.write('<testsuites><testsuite name="units">\n')
        for name, verdict, why in results:
            element = {"passed": "", "failed": "failure", "skipped": "skipped"}[verdict]
            inside = f"<{element} message={quoteattr(why)}/>" if element else ""
            out.write(f'<testcase name="{name}" status="run">{inside}</testcase>\n')
        out.write("</testsuite></testsuites>\n")


if __name__ == "__main__":
    sys.exit(main())
