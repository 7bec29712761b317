#!/usr/bin/env python3
"""What packaging/ has for those who run a farm: alerts and dashboard name metrics that exist, promtool
accepts the alerts and their tests, kubernetes-validate the manifests. Without those programs their
cases are skipped, and say so.

    monitoring_test.py --source DIR [--python PROGRAM] [--results FILE.xml]
"""
import argparse
import json
import pathlib
import re
import shutil
import sys
import tempfile
import traceback

from packages_test import run
from units_test import Skipped, write_results

# What Prometheus itself has, and labels that scraping adds.
FOREIGN = {"up", "ALERTS"}


class MonitoringTest:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.packaging = args.source / "packaging"

    def documented(self):
        """Metric names of the reference, with their labels."""
        text = (self.args.source / "docs/reference/metrics.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| (`[a-z_`, ]+`) \| (gauge|counter|histogram) \| *([^|]*?) *\|", text, re.M)
        return {name: set(re.findall(r"\w+", labels)) | {"instance", "job", "le"}
                for names, _, labels in rows for name in re.findall(r"`(\w+)`", names)}

    def check(self, expression, where):
        known = self.documented()
        used = re.findall(r"\b((?:hone|process)_\w+)(?:\{([^}]*)\})?", expression)
        assert used or FOREIGN & set(re.findall(r"\w+", expression)), f"{where}: no metric in {expression}"
        for name, labels in used:
            name = name if name in known else re.sub(r"_(bucket|sum|count)$", "", name)
            assert name in known, f"{where}: there is no metric {name}"
            strangers = set(re.findall(r"(\w+) *(?:=|!)", labels)) - known[name]
            assert not strangers, f"{where}: {name} has no label {strangers}"

    def case_alerts_name_metrics_that_exist(self):
        text = (self.packaging / "prometheus/hone.rules.yml").read_text(encoding="utf-8")
        rules = re.findall(r"- alert: (\w+)\n +expr: (.*)\n", text)
        assert len(rules) == text.count("- alert:") >= 5
        page = (self.args.source / "docs/reference/metrics.md").read_text(encoding="utf-8")
        for name, expression in rules:
            self.check(expression, name)
            assert f"| `{name}` |" in page, f"{name} is not in docs/reference/metrics.md"

    def case_the_dashboard_names_metrics_that_exist(self):
        board = json.loads((self.packaging / "grafana/hone.json").read_text(encoding="utf-8"))
        targets = [target["expr"] for row in board["panels"] for panel in [row, *row.get("panels", [])]
                   for target in panel.get("targets", [])]
        assert len(targets) > 15, targets
        for expression in targets:
            self.check(expression, "hone.json")

    def case_promtool_accepts_the_alerts(self):
        if not shutil.which("promtool"):
            raise Skipped("there is no promtool; apt-get install prometheus has it")
        rules = self.packaging / "prometheus"
        run("promtool", "check", "rules", "--lint=all", "--lint-fatal", rules / "hone.rules.yml")
        run("promtool", "test", "rules", rules / "hone.rules.test.yml")

    def case_kubernetes_accepts_the_manifests(self):
        program = pathlib.Path(self.args.python or sys.executable).parent / "kubernetes-validate"
        if not program.exists():
            raise Skipped("there is no kubernetes-validate beside the tests' Python")
        run(program, "--strict", *sorted((self.packaging / "kubernetes").glob("*.yaml")))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--python")
    parser.add_argument("--results", type=pathlib.Path)
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="hone-monitoring-") as folder:
        test = MonitoringTest(args, pathlib.Path(folder))
        for name in [n for n in dir(test) if n.startswith("case_")]:
            verdict, why = "passed", ""
            try:
                getattr(test, name)()
            except Skipped as reason:
                verdict, why = "skipped", str(reason)
            except Exception:  # pylint: disable=broad-except
                verdict, why = "failed", traceback.format_exc()
            results.append((name.removeprefix("case_"), verdict, why))
            print(f"{verdict:8} {results[-1][0]} {why}")
    if args.results:
        write_results(args.results, results)
    return 1 if any(verdict == "failed" for _, verdict, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
