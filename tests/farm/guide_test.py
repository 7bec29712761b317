#!/usr/bin/env python3
"""Follows docs/FARM.md as it stands: the blocks marked `sh tuner`, `sh worker` and `sh yours`, the
first in one network namespace, the others in a second one, joined by a cable. What differs from
the page: a shorter time to tune, and `scp` from tuner is `cp` (there is no sshd). Where namespaces
are not allowed everything runs on loopback, and the test says so.

    guide_test.py --guide docs/FARM.md --bin FOLDER [--results FILE.xml]
"""
import argparse
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
        for line in map(self.adapt, self.steps[name]):
            if LONG_RUNNING.search(line):
                machine.start(line)
            else:
                machine.run(line)

    def case_from_nothing_to_a_tuned_model(self):
        self.follow(self.tuner, "tuner")
        self.tuner.until("event=honed_started")
        self.follow(self.other, "worker")
        self.tuner.until("event=worker_connected")
        self.follow(self.other, "yours")
        assert (self.other.folder / "model.hone").stat().st_size > 1000
        ask = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:%d%s').read().decode())"
        metrics = self.tuner.run(f'python3 -c "{ask % (9464, "/metrics")}"')
        assert 'hone_attempts_total{outcome="ok"} 0' not in metrics
        assert self.tuner.run(f'python3 -c "{ask % (9464, "/healthz")}"').strip() == "ok"
        farm = self.tuner.run(f'python3 -c "{ask % (7422, "/api/v1/farm")}"')
        assert '"worker":"w1"' in farm, farm
        self.other.end()
        self.tuner.end()

    def close(self):
        self.other.close()
        self.tuner.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guide", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path)
    args = parser.parse_args()
    failure = ""
    with tempfile.TemporaryDirectory(prefix="hone-guide-") as folder:
        guide = Guide(args, pathlib.Path(folder))
        try:
            guide.case_from_nothing_to_a_tuned_model()
            print("passed")
        except Exception:  # pylint: disable=broad-except
            failure = traceback.format_exc()
            print(failure, guide.tuner.said()[-3000:], guide.other.said()[-3000:])
        finally:
            guide.close()
    if args.results:
        inside = f"<failure message={quoteattr(failure)}/>" if failure else ""
        args.results.write_text(
            f'<testsuites tests="1" failures="{int(bool(failure))}"><testsuite name="guide" tests="1"'
            f' failures="{int(bool(failure))}"><testcase name="from_nothing_to_a_tuned_model"'
            f' status="run">{inside}</testcase></testsuite></testsuites>\n', encoding="utf-8")
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
