#!/usr/bin/env python3
"""Writes hone.json beside it, the dashboard of a tuning farm, with grafana-foundation-sdk:

    pip install grafana-foundation-sdk && python3 packaging/grafana/dashboard.py
"""
import json
import pathlib

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DataSourceRef, DashboardCursorSync

SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
HERE = '{instance=~"$instance"}'


def panel(kind, title, unit, help_text, *queries):
    """A panel of (expression, legend) pairs; HERE stands for the chosen honed."""
    made = kind.Panel().title(title).unit(unit).datasource(SOURCE).description(help_text)
    for expression, legend in queries:
        made.with_target(prometheus.Dataquery().expr(expression).legend_format(legend))
    return made


def small(title, unit, help_text, expression):
    return panel(stat, title, unit, help_text, (expression, "")).span(4).height(4)


def wide(title, unit, help_text, *queries):
    return panel(timeseries, title, unit, help_text, *queries).span(12).height(8).min(0)


def build():
    return (
        dashboard.Dashboard("Hone farm")
        .uid("hone-farm")
        .tags(["hone"])
        .refresh("30s")
        .time("now-6h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("source").type("prometheus").label("Source"))
        .with_variable(dashboard.QueryVariable("instance").label("honed").datasource(SOURCE)
                       .query("label_values(hone_build_info, instance)").multi(True).include_all(True))
        .with_row(dashboard.Row("Now"))
        .with_panel(small("Sessions", "short", "Sessions that run", f"sum(hone_sessions{HERE})"))
        .with_panel(small("Devices at work", "short", "Connected and given work", f"sum(hone_device_up{HERE})"))
        .with_panel(small("Devices out", "short", "Lost or quarantined",
                          'sum(hone_devices{instance=~"$instance", state=~"lost|quarantined"})'))
        .with_panel(small("Attempts waiting", "short", "No worker has them yet", f"sum(hone_queue_attempts{HERE})"))
        .with_panel(small("Oldest wait", "s", "Among the attempts that wait", f"max(hone_queue_oldest_age_seconds{HERE})"))
        .with_panel(small("Log", "bytes", "Its files together", f"sum(hone_log_bytes{HERE})"))
        .with_row(dashboard.Row("Work"))
        .with_panel(wide("Results a second", "ops", "Attempts closed durably, by outcome",
                         (f"sum by (outcome) (rate(hone_attempts_total{HERE}[5m]))", "{{outcome}}")))
        .with_panel(wide("Leases", "short", "Out with workers, and those whose code runs",
                         (f"sum(hone_leases_open{HERE})", "open"),
                         (f"sum(hone_leases_started{HERE})", "started")))
        .with_panel(wide("Leases that did not end well", "ops", "By reason",
                         ('sum by (reason) (rate(hone_leases_ended_total{instance=~"$instance", reason!="done"}[5m]))',
                          "{{reason}}")))
        .with_panel(wide("Device time by project", "s", "Seconds of devices a second",
                         (f"sum by (project) (rate(hone_project_device_seconds_total{HERE}[5m]))", "{{project}}")))
        .with_row(dashboard.Row("Devices"))
        .with_panel(wide("Busy share", "percentunit", "In the last minute", (f"hone_device_busy_ratio{HERE}", "{{worker}}/{{device}}")))
        .with_panel(wide("Noise", "percentunit", "Half the interquartile range of a candidate's samples over their median",
                         (f"hone_device_noise_ratio{HERE}", "{{worker}}/{{device}}")))
        .with_row(dashboard.Row("honed"))
        .with_panel(wide("Commits", "s", "To the log, synced to disk",
                         (f"histogram_quantile(0.99, sum by (le) (rate(hone_commit_seconds_bucket{HERE}[5m])))", "99th percentile"),
                         (f"histogram_quantile(0.5, sum by (le) (rate(hone_commit_seconds_bucket{HERE}[5m])))", "median")))
        .with_panel(wide("Memory", "bytes", "Resident", (f"process_resident_memory_bytes{HERE}", "{{instance}}")))
        .with_panel(wide("CPU", "percentunit", "CPUs in use", (f"rate(process_cpu_seconds_total{HERE}[5m])", "{{instance}}")))
        .with_panel(wide("Callers refused", "ops", "By reason",
                         (f"sum by (reason) (rate(hone_callers_refused_total{HERE}[5m]))", "{{reason}}")))
    )


if __name__ == "__main__":
    text = json.dumps(json.loads(JSONEncoder(sort_keys=True).encode(build().build())), indent=1, sort_keys=True)
    pathlib.Path(__file__).with_name("hone.json").write_text(text + "\n", encoding="utf-8")
