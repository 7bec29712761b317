#!/usr/bin/env python3
"""Follows docs/FARM.md as it stands: the blocks marked `sh tuner`, `sh worker` and `sh yours`, the
first in one network namespace, the others in a second one, joined by a cable. What differs from
the page: a shorter time to tune, and `scp` from tuner is `cp` (there is no sshd). Then the cable is
cut for longer than a worker may be silent, while a session runs. Where namespaces are not allowed
everything runs on loopback, no cable is cut, and the test says so.

    guide_test.py --guide docs/FARM.md --bin FOLDER [--results FILE.xml]
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from xml.sax.saxutils import quoteattr

SECONDS = 12
CUT_SECONDS = 25  # honed gives a silent worker up after 20
CUT_SESSION_SECONDS = 65
LONG_RUNNING = re.compile(r"(honed --db|hone-worker )")


def blocks(path):
    """The page's commands by machine."""
    found = re.findall(r"^```sh (\w+)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S)
    return {machine: text.splitlines() for machine, text in found}


class Machine:
    """A place to run commands: a network namespace with /etc/hosts of its own, or this machine."""

    def __init__(self, name, folder, path, hosts=None):
        self.name, self.folder, self.holder, self.path = name, folder / name, None, path
        self.folder.mkdir()
        self.running = []
        if hosts:
            # Chrooted tests may own no namespaces: whoever asked falls back to loopback.
            self.holder = subprocess.Popen(
                ["unshare", "--net", "--mount", "sh", "-c",
                 f"mount --bind {shlex.quote(str(hosts))} /etc/hosts && ip link set lo up && echo up"
                 " && exec sleep 600"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if self.holder.stdout.readline() != "up\n":
                raise OSError(self.holder.stderr.read().strip())

    def words(self, line):
        inside = ["sh", "-c", line]
        if not self.holder:
            return inside
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-m", "--wdns=" + str(self.folder)] + inside

    def environment(self):
        return {"PATH": f"{self.path}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.folder)}

    def run(self, line):
        done = subprocess.run(self.words(line), cwd=self.folder, env=self.environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=150, check=False)
        print(f"{self.name}$ {line}\n{done.stdout}", flush=True)
        if done.returncode != 0:
            raise AssertionError(f"{self.name}: `{line}` ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def start(self, line):
        print(f"{self.name}$ {line} &", flush=True)
        log = open(self.folder / "log", "a", encoding="utf-8")
        self.running.append(subprocess.Popen(self.words("exec " + line), cwd=self.folder,
                                             env=self.environment(), stdout=log,
                                             stderr=subprocess.STDOUT, start_new_session=True))

    def said(self):
        log = self.folder / "log"
        return log.read_text(encoding="utf-8") if log.exists() else ""

    def until(self, text):
        for _ in range(200):
            if text in self.said():
                return
            time.sleep(0.1)
        raise AssertionError(f"{self.name} never said '{text}':\n{self.said()}")

    def end(self):
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            try:
                code = process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = "killed"
            if code != 0:
                raise AssertionError(f"{self.name}: SIGTERM ended it with {code}:\n{self.said()}")

    def close(self):
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if self.holder:
            self.holder.kill()
            self.holder.wait()


class Guide:
    def __init__(self, args, folder):
        self.folder, self.steps = folder, blocks(args.guide)
        assert list(self.steps) == ["tuner", "worker", "yours"], f"blocks of {args.guide}: {list(self.steps)}"
        self.address = "tuner"
        try:
            self.tuner, self.other = self.two_machines(args.bin)
            print("two network namespaces")
        except (OSError, AssertionError, subprocess.CalledProcessError) as reason:
            print(f"no network namespaces here ({reason}); everything on loopback")
            self.address = "127.0.0.1"
            self.tuner = Machine("coordinator", folder, args.bin)
            self.other = Machine("second", folder, args.bin)

    def two_machines(self, path):
        hosts = self.folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n10.77.5.1 tuner\n", encoding="utf-8")
        tuner = Machine("tuner", self.folder, path, hosts)
        other = Machine("worker", self.folder, path, hosts)
        subprocess.run(["ip", "link", "add", "hone0", "netns", str(tuner.holder.pid), "type", "veth",
                        "peer", "name", "hone1", "netns", str(other.holder.pid)], check=True,
                       capture_output=True)
        tuner.run("ip addr add 10.77.5.1/24 dev hone0 && ip link set hone0 up")
        other.run("ip addr add 10.77.5.2/24 dev hone1 && ip link set hone1 up")
        return tuner, other

    def adapt(self, line):
        line = re.sub(r"scp -rp tuner:(\S+) \.", lambda m: f"cp -rp {self.tuner.folder}/{m[1]} .", line)
        line = re.sub(r"--seconds \d+", f"--seconds {SECONDS}", line)
        return line.replace("tuner:7421", self.address + ":7421")

    def follow(self, machine, name):
        """Does what the block says; what its commands said, by line."""
        said = {}
        for step, line in ((step, self.adapt(step)) for step in self.steps[name]):
            if LONG_RUNNING.search(line):
                machine.start(line)
            else:
                said[step] = machine.run(line)
        return said

    def case_from_nothing_to_a_tuned_model(self):
        self.follow(self.tuner, "tuner")
        self.tuner.until("event=honed_started")
        self.follow(self.other, "worker")
        self.tuner.until("event=worker_connected")
        said = self.follow(self.other, "yours")
        compiled = "".join(text for step, text in said.items() if step.startswith("hone compile "))
        assert "3 kernels (3 exact)" in compiled, f"not built from what was measured: {compiled}"
        metrics = self.ask(9464, "/metrics")
        measured = re.search(r'^hone_attempts_total{outcome="ok"} (\d+)$', metrics, re.M)
        assert measured and int(measured[1]) > 0, metrics
        assert self.ask(9464, "/healthz").strip() == "ok"
        farm = self.ask(7422, "/api/v1/farm")
        assert '"worker":"w1"' in farm, farm

    def ask(self, port, path):
        program = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}{path}').read().decode())"
        return self.tuner.run(f"python3 -c {shlex.quote(program)}")

    def case_a_cut_cable_loses_nothing(self):
        if not self.tuner.holder:
            print("no network namespaces here: no cable was cut")
            return
        server = f"--server {self.address}:7421 --tls alice --json"
        journal = self.other.folder / "cut.journal"
        self.other.run("hone zoo squeezenet -o cut.onnx")  # hundreds of candidates

        def measured():
            lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
            return [line.split()[2] for line in lines if line.startswith("measured ")]

        def await_more_than(count):
            for _ in range(600):
                if len(measured()) > count:
                    return
                time.sleep(0.1)
            raise AssertionError(f"no more than {len(measured())} candidates were measured")

        client = subprocess.Popen(
            self.other.words(f"exec hone tune cut.onnx --seconds {CUT_SESSION_SECONDS} --seed 7"
                             f" --journal {journal.name} {server}"),
            cwd=self.other.folder, env=self.other.environment(), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        try:
            await_more_than(20)
            self.tuner.run("ip link set hone0 down")
            time.sleep(CUT_SECONDS)
            before = len(measured())
            self.tuner.run("ip link set hone0 up")
            # TCP tells of it where something was on its way just then, else the worker's silence does.
            noticed = re.search(r"event=worker_(disconnected|lost)", self.tuner.said())
            assert noticed, "honed saw no cut"
            out, err = client.communicate(timeout=150)
        finally:
            client.kill()
        assert client.returncode == 0, f"{out}\n{err}"
        attempts = measured()
        assert len(attempts) > before, "nothing was measured after the cut"
        assert len(attempts) == len(set(attempts)), "an answer came twice"
        shown = self.other.run(f"hone session show {json.loads(out)['session']} {server}")
        assert json.loads(shown)["attempts"] == len(attempts), shown

    def case_asked_to_end_both_do(self):
        self.other.end()
        self.tuner.end()

    def run(self):
        """All cases, in their order, each on what those before left; the failure of the first that has one."""
        cases = {name: value for name, value in vars(Guide).items() if name.startswith("case_")}
        results = dict.fromkeys((name.removeprefix("case_") for name in cases), "not reached")
        for name, case in cases.items():
            try:
                case(self)
                results[name.removeprefix("case_")] = ""
                print(f"{name}: passed", flush=True)
            except Exception:  # pylint: disable=broad-except
                failure = traceback.format_exc()
                print(failure, self.tuner.said()[-3000:], self.other.said()[-3000:])
                results[name.removeprefix("case_")] = failure
                break
        return results

    def close(self):
        self.other.close()
        self.tuner.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guide", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hone-guide-") as folder:
        guide = Guide(args, pathlib.Path(folder))
        try:
            results = guide.run()
        finally:
            guide.close()
    failures = sum(bool(why) for why in results.values())
    if args.results:
        counts = f'tests="{len(results)}" failures="{failures}"'
        inside = "".join(
            f'<testcase name="{name}" status="run">'
            + (f"<failure message={quoteattr(why)}/>" if why else "") + "</testcase>"
            for name, why in results.items())
        args.results.write_text(f'<testsuites {counts}><testsuite name="guide" {counts}>{inside}'
                                "</testsuite></testsuites>\n", encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
