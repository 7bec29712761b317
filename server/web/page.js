// The page of a farm. It reads /api/v1 and draws; it changes nothing. Every text from outside
// becomes a text node or an attribute, never markup.
"use strict";

const kPollMs = 2000;
const kPatienceMs = 8000;
const kSvg = "http://www.w3.org/2000/svg";
const kSvgTags = new Set(["svg", "path", "line", "text", "rect", "circle", "g", "title"]);

// ---- text ----

const plain = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const count = (n) => plain.format(n);

function digits(value, most = 3) {
  if (value === 0) return "0";
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.max(0, Math.min(most, most - whole)));
}

function latency(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms >= 1000) return digits(ms / 1000) + " s";
  if (ms >= 1) return digits(ms) + " ms";
  return digits(ms * 1000) + " µs";
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 10) return digits(seconds, 2) + " s";
  const s = Math.round(seconds);
  if (s < 120) return s + " s";
  if (s < 7200) return Math.floor(s / 60) + " min" + (s < 600 && s % 60 ? " " + (s % 60) + " s" : "");
  if (s < 172800) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
}

function bytes(n) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) { n /= 1000; ++i; }
  return (i === 0 ? n : digits(n)) + " " + units[i];
}

const percent = (share) => (share === null ? "–" : digits(100 * share, 2) + " %");
const words = (text) => text.replaceAll("_", " ");
const when = (ms) => new Date(ms).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

// ---- elements ----

function h(tag, attributes, ...children) {
  const element = kSvgTags.has(tag) ? document.createElementNS(kSvg, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

const keyOf = (node) => (node && node.nodeType === 1 ? node.getAttribute("data-key") : null);

// Makes `from` equal to `to` with as few changes as possible, so that focus, selection and scroll
// positions survive a poll.
function morph(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName || keyOf(from) !== keyOf(to)) {
    from.replaceWith(to);
    return;
  }
  if (from.nodeType !== 1) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  morphChildren(from, [...to.childNodes]);
}

function morphChildren(from, wanted) {
  const keyed = new Map();
  for (const child of from.children) if (keyOf(child)) keyed.set(keyOf(child), child);
  let at = from.firstChild;
  for (const child of wanted) {
    const key = keyOf(child);
    const match = key ? keyed.get(key) : at && !keyOf(at) ? at : null;
    if (!match) {
      from.insertBefore(child, at);
      continue;
    }
    keyed.delete(key);
    if (match === at) at = at.nextSibling;
    else from.insertBefore(match, at);
    morph(match, child);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// ---- charts ----

// The points of a step curve in pixels: what was best holds until something better came.
function stepPath(points, x, y, end) {
  let path = "";
  points.forEach(([s, ms], i) => { path += i === 0 ? `M${x(s)},${y(ms)}` : `H${x(s)}V${y(ms)}`; });
  return path + `H${x(end)}`;
}

const round = (n) => Math.round(n * 10) / 10;

function scales(session, box) {
  const values = session.curve.map((p) => p[1]);
  if (session.searched_default_ms) values.push(session.searched_default_ms);
  let low = Math.min(...values), high = Math.max(...values);
  const span = Math.max(high - low, high * 0.04);
  low = Math.max(0, low - span * 0.18);
  high += span * 0.12;
  const budget = session.left_s !== null && session.elapsed_s > 0 ? session.elapsed_s + session.left_s : 0;
  const last = session.curve[session.curve.length - 1][0];
  const end = Math.max(budget, session.elapsed_s, last, 1e-3);
  return {
    low, high, end, now: Math.max(session.elapsed_s, last),
    x: (s) => round(box.left + (s / end) * (box.right - box.left)),
    y: (ms) => round(box.bottom - ((ms - low) / (high - low)) * (box.bottom - box.top)),
  };
}

// The search's own times: the final comparison runs both in turns, and its times stand in the figures.
const lastOf = (curve) => curve[curve.length - 1][1];

function describe(session) {
  return `Best so far: ${latency(session.searched_default_ms)} by default, ${latency(lastOf(session.curve))} ` +
    `after ${duration(session.elapsed_s)}`;
}

function spark(session) {
  if (session.curve.length === 0) return h("span", { class: "quiet" }, session.complete ? "nothing measured yet" : "reading…");
  const s = scales(session, { left: 0, right: 200, top: 2, bottom: 32 });
  const line = stepPath(session.curve, s.x, s.y, s.now);
  return h("svg", { class: "spark", viewBox: "0 0 200 34", preserveAspectRatio: "none", role: "img", "aria-label": describe(session) },
    session.searched_default_ms && h("line", { class: "default", x1: 0, x2: 200, y1: s.y(session.searched_default_ms), y2: s.y(session.searched_default_ms) }),
    h("path", { class: "area", d: `${line}V34H${s.x(session.curve[0][0])}Z` }),
    h("path", { class: "line", d: line }));
}

function ticks(low, high, most) {
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw);
  const list = [];
  for (let i = Math.ceil(low / step); i * step <= high; ++i) list.push(i * step);
  return list;
}

function timeTicks(end, most) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800];
  const step = steps.find((s) => end / s <= most) || 604800 * Math.ceil(end / 604800 / most);
  const list = [];
  for (let t = 0; t <= end; t += step) list.push(t);
  return list;
}

function bigChart(session, width) {
  if (session.curve.length === 0) return h("p", { class: "empty" }, "Nothing is measured yet.");
  const height = width < 560 ? 210 : 280;
  const s = scales(session, { left: 58, right: width - 14, top: 14, bottom: height - 26 });
  const line = stepPath(session.curve, s.x, s.y, s.now);
  const [endX, endY] = [s.x(s.now), s.y(session.curve[session.curve.length - 1][1])];
  const labelLeft = endX > width - 110;
  return h("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe(session), class: "big" },
    ticks(s.low, s.high, 4).map((ms) => [
      h("line", { class: "grid", x1: 58, x2: width - 14, y1: s.y(ms), y2: s.y(ms) }),
      h("text", { x: 50, y: s.y(ms) + 4, "text-anchor": "end" }, latency(ms))]),
    timeTicks(s.end, width < 560 ? 4 : 8).map((t) =>
      h("text", { x: s.x(t), y: height - 6, "text-anchor": t === 0 ? "start" : s.x(t) > width - 40 ? "end" : "middle" }, t === 0 ? "0" : duration(t))),
    session.searched_default_ms && h("line", { class: "default", x1: 58, x2: width - 14, y1: s.y(session.searched_default_ms), y2: s.y(session.searched_default_ms) }),
    session.searched_default_ms && h("text", { x: width - 14, y: s.y(session.searched_default_ms) - 5, "text-anchor": "end" }, "default " + latency(session.searched_default_ms)),
    h("path", { class: "area", d: `${line}V${height - 26}H${s.x(session.curve[0][0])}Z` }),
    h("path", { class: "line", d: line }),
    h("circle", { class: "dot", cx: endX, cy: endY, r: 5 }),
    h("text", { class: "now", x: labelLeft ? endX - 8 : endX + 9, y: endY + (labelLeft ? 18 : 4), "text-anchor": labelLeft ? "end" : "start" }, latency(lastOf(session.curve))));
}

function meter(share, label) {
  if (share === null) return h("span", { class: "quiet" }, "–");
  return h("div", { class: "meter" },
    h("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", role: "img", "aria-label": `${label} ${percent(share)}` },
      h("rect", { width: round(100 * Math.min(1, share)), height: 6 })),
    h("span", {}, percent(share)));
}

// ---- the farm ----

const chip = (word) => h("span", { class: "chip " + word }, words(word));

function figure(name, value, unit, below) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value, unit && h("u", {}, unit), h("small", {}, below)));
}

function figures(farm) {
  const rate = resultRate(farm);
  const known = farm.devices.filter((d) => d.connected && d.busy !== null);
  const busy = known.length ? known.reduce((sum, d) => sum + d.busy, 0) / known.length : null;
  const working = farm.devices.filter((d) => d.connected && d.state === "active").length;
  return h("dl", { class: "figures" },
    figure("Sessions running", count(farm.sessions_running), "", `${count(farm.sessions.length)} listed`),
    figure("Candidates waiting", count(farm.queue.waiting), "", farm.queue.waiting ? `oldest ${duration(farm.queue.oldest_s)}` : "none"),
    figure("Leases out", count(farm.leases_open), "", `${count(farm.leases_started)} measuring`),
    figure("Results", rate === null ? "–" : digits(rate, 2), "/s", `${count(farm.counters.results.received)} since the start`),
    figure("Devices busy", busy === null ? "–" : digits(100 * busy, 2), "%", `${working} of ${farm.devices.length} get work`),
    figure("Commit, 99 %", farm.commits.count ? digits(farm.commits.p99_ms, 2) : "–", "ms", `log ${bytes(farm.log.bytes + farm.log.wal_bytes)}`));
}

function timeLeft(s) {
  if (s.state !== "running") return s.elapsed_s > 0 ? duration(s.elapsed_s) + " used" : "–";
  return s.left_s === null ? "no limit" : duration(s.left_s) + " left";
}

function gain(s) {
  if (!s.default_ms || !s.best_ms) return h("span", { class: "gain quiet" }, "–");
  const ratio = s.default_ms / s.best_ms;
  return h("span", { class: "gain" + (ratio > 1.005 ? " up" : "") }, ratio.toFixed(2) + " ×");
}

function sessionRow(s) {
  return h("li", { class: "row session", "data-key": s.id },
    h("div", { class: "what" },
      h("a", { href: "#/session/" + s.id }, h("b", {}, s.model || "unnamed")), " ", chip(s.state),
      h("small", {}, `${s.owner}${s.project === s.owner ? "" : " · " + s.project} · ${s.tasks} tasks · ${s.target}`),
      s.reason && s.state !== "finished" && h("small", {}, s.reason),
      s.waits && h("small", { class: "bad" }, s.waits)),
    h("div", { class: "curve" }, spark(s)),
    h("div", { class: "n times" }, s.best_ms ? [h("span", { class: "quiet" }, latency(s.default_ms) + " → "), h("b", {}, latency(s.best_ms))] : "–"),
    h("div", { class: "n" }, gain(s)),
    h("div", { class: "n tried" }, count(s.attempts) + " tried", h("small", { class: s.failed ? "bad" : "" }, s.failed ? ` ${count(s.failed)} failed` : s.attempts ? " none failed" : "")),
    h("div", { class: "n left" }, timeLeft(s)));
}

function sessions(farm) {
  if (farm.sessions.length === 0) {
    return h("p", { class: "panel empty" }, "No sessions yet. Start one: ", h("code", {}, "hone tune MODEL --server …"));
  }
  const head = ["Model", "Best so far", "Default → best", "Gain", "Candidates", "Time"];
  return h("div", { class: "panel" },
    h("div", { class: "row session head", "aria-hidden": "true" }, head.map((t, i) => h("div", { class: i > 1 ? "n" : "" }, t))),
    h("ul", { class: "rows" }, farm.sessions.map(sessionRow)));
}

const probed = (p) => `${digits(p.flop_per_second / 1e9)} GFLOP/s a core · ${digits(p.memory_bytes_per_second / 1e9)} GB/s · ± ${percent(p.noise)}`;

function deviceRow(d) {
  const state = d.connected ? d.state : d.state === "active" ? "away" : d.state;
  return h("li", { class: "row device", "data-key": d.worker + "/" + d.device },
    h("div", { class: "what" }, h("b", {}, d.worker), " ", h("span", { class: "quiet" }, d.device),
      d.role === "build" && h("span", { class: "quiet" }, " builds for others"),
      d.role === "run" && h("span", { class: "quiet" }, " runs what others build"),
      !d.sandboxed && h("span", { class: "bad" }, " without sandbox"),
      h("small", { title: d.driver }, d.target || d.device_class || "not connected since honed started",
        d.program_version && ` · hone ${d.program_version}`),
      d.probes && h("small", { title: "as its worker probed it" }, probed(d.probes)),
      d.reason && h("small", { class: "bad" }, d.reason)),
    h("div", { class: "state" }, chip(state)),
    h("div", { class: "busy", "data-label": "busy" }, meter(d.busy, "busy")),
    h("div", { class: "n", "data-label": "noise", title: "typical spread of a candidate's samples" }, d.noise === null ? "–" : "± " + percent(d.noise)),
    h("div", { class: "n", "data-label": "leases" }, count(d.leases)),
    h("div", { class: "n", "data-label": "results" }, count(d.results)));
}

function devices(farm) {
  if (farm.devices.length === 0) {
    return h("p", { class: "panel empty" }, "No devices yet. Start one: ", h("code", {}, "hone-worker --connect …"));
  }
  const head = ["Device", "State", "Busy", "Noise", "Leases", "Results"];
  return h("div", { class: "panel" },
    h("div", { class: "row device head", "aria-hidden": "true" }, head.map((t, i) => h("div", { class: i > 2 ? "n" : "" }, t))),
    h("ul", { class: "rows" }, farm.devices.map(deviceRow)));
}

function counts(pairs) {
  const some = pairs.filter(([, n]) => n !== 0);
  if (some.length === 0) return h("p", { class: "panel empty" }, "None yet.");
  return h("dl", { class: "panel counts" }, some.map(([name, n, bad]) =>
    h("div", {}, h("dt", {}, words(name)), h("dd", { class: bad ? "bad" : "" }, count(n)))));
}

function counters(farm) {
  const c = farm.counters;
  return h("div", { class: "pair" },
    h("section", {}, h("h2", {}, "Outcomes", h("small", {}, "since honed started")),
      counts(Object.entries(c.outcomes).map(([name, n]) => [name, n, name !== "ok"]))),
    h("section", {}, h("h2", {}, "Leases and refusals", h("small", {}, "since honed started")),
      counts([["granted", c.leases.granted], ["expired", c.leases.expired, 1], ["returned", c.leases.returned],
        ["revoked", c.leases.revoked], ["lost", c.leases.lost, 1], ["condemned", c.condemned, 1],
        ["duplicate_results", c.results.duplicate], ["conflicting_results", c.results.conflict, 1],
        ["stale_results", c.results.stale], ["measured_again_elsewhere", c.held_back], ["quarantined", c.quarantined, 1],
        ["callers_refused", farm.callers_refused, 1]])));
}

function drawFarm(farm) {
  return [figures(farm),
    h("section", { "aria-label": "Sessions" }, h("h2", {}, "Sessions"), sessions(farm)),
    h("section", { "aria-label": "Devices" }, h("h2", {}, "Devices"), devices(farm),
      farm.devices.length > 0 && command("To let one finish and give it nothing more:", `hone device drain ${farm.devices[0].worker}/${farm.devices[0].device} --server …`)),
    counters(farm)];
}

// ---- one session ----

function taskRow(session, t) {
  const ratio = t.default_us && t.best_us ? t.default_us / t.best_us : null;
  return h("li", { class: "row task", "data-key": t.workload },
    h("div", { class: "name" }, h("b", {}, t.name), h("small", {}, h("code", {}, t.workload.slice(0, 12)), " ", t.verdict !== "open" && chip(t.verdict), " ",
        t.best_us && h("button", { type: "button", class: "best", "data-session": session.id, "data-best": t.workload,
          "aria-label": "best trace of " + t.name }, "best trace"))),
    h("div", { class: "n count", "data-label": "count" }, "× " + t.count),
    h("div", { class: "n share", "data-label": "share" }, percent(t.share)),
    h("div", { class: "n quiet", "data-label": "default" }, t.default_us ? latency(t.default_us / 1000) : "–"),
    h("div", { class: "n", "data-label": "best" }, t.best_us ? latency(t.best_us / 1000) : "–"),
    h("div", { class: "n" }, ratio ? h("span", { class: "gain" + (ratio > 1.005 ? " up" : "") }, ratio.toFixed(2) + " ×") : "–"),
    h("div", { class: "roof", "data-label": "roofline" }, meter(t.roofline, "of the roofline")),
    h("div", { class: "n trials", "data-label": "tried" }, count(t.trials), t.failed > 0 && h("small", { class: "bad" }, count(t.failed) + " failed")));
}

// What a table can be sorted by: how a column is called, what of a row it shows, whether the largest
// come first.
const kColumns = {
  tasks: {
    task: ["Task", (t) => t.name], count: ["Count", (t) => t.count, true], share: ["Share", (t) => t.share, true],
    default: ["Default", (t) => t.default_us, true], best: ["Best", (t) => t.best_us, true],
    gain: ["Gain", (t) => (t.default_us && t.best_us ? t.default_us / t.best_us : null), true],
    roofline: ["Roofline", (t) => t.roofline, true], tried: ["Tried", (t) => t.trials, true],
  },
  trials: {
    number: ["Candidate", (t) => t.attempt, true], task: ["Task", (t) => t.task], at: ["Measured", (t) => t.seconds, true],
    time: ["Time", (t) => t.us], proposer: ["Proposed by", (t) => t.proposer], outcome: ["Outcome", (t) => t.outcome],
  },
};
const sorted = { tasks: { by: "share", down: true }, trials: { by: "number", down: true } };

// What is not known stands last, whichever way.
function inOrder(table) {
  const { by, down } = sorted[table];
  return (a, b) => {
    const [x, y] = [a, b].map(kColumns[table][by][1]);
    if (x === null || y === null) return (x === null) - (y === null);
    const less = typeof x === "string" ? x.localeCompare(y) : x - y;
    return down ? -less : less;
  };
}

// A header whose words sort. `left`: columns that are not numbers.
function sortHead(table, row, left) {
  const { by, down } = sorted[table];
  return h("div", { class: `row ${row} head`, role: "group", "aria-label": "Sort by" }, Object.entries(kColumns[table]).map(([key, [name]]) =>
    h("div", { class: left.includes(key) ? "" : "n" },
      h("button", { type: "button", "data-table": table, "data-sort": key, "aria-pressed": String(by === key) },
        name, by === key && (down ? " ↓" : " ↑")))));
}

function tasks(session) {
  return h("div", { class: "panel" }, sortHead("tasks", "task", ["task", "roofline"]),
    h("ul", { class: "rows" }, [...session.task_list].sort(inOrder("tasks")).map((t) => taskRow(session, t))));
}

function trialRow(t) {
  return h("li", { class: "row trial", "data-key": "trial " + t.attempt },
    h("div", { class: "n quiet number" }, "#" + t.attempt),
    h("div", { class: "name", title: t.workload }, t.task),
    h("div", { class: "n quiet at", "data-label": "after" }, duration(t.seconds)),
    h("div", { class: "n time" }, t.us ? h("b", {}, latency(t.us / 1000)) : "–"),
    h("div", { class: "quiet by" }, words(t.proposer)),
    h("div", { class: "outcome" + (t.outcome === "ok" ? " quiet" : " bad") }, words(t.outcome)));
}

function trials(session) {
  return h("div", { class: "panel long", tabindex: 0, role: "region", "aria-label": "List of candidates" }, sortHead("trials", "trial", ["task", "proposer", "outcome"]),
    h("ul", { class: "rows" }, [...session.trials].sort(inOrder("trials")).map(trialRow)));
}

function verdict(session) {
  const v = session.verdict;
  if (!v) {
    return session.state === "finished" && h("p", { class: "verdict quiet" },
      "model: no verdict, as a farm compares kernels alone; ", h("code", {}, "hone tune … --judge"), " has a device compare the whole model");
  }
  const [low, high] = [v.ratio_low, v.ratio_high].map((ratio) => ratio.toFixed(Math.abs(ratio - 1) < 0.005 ? 4 : 2));
  return h("p", { class: "verdict" + (v.keeps_defaults ? "" : " won") },
    `model: ${latency(v.default_ms)} → ${latency(v.tuned_ms)}, ${v.ratio.toFixed(2)} × `,
    v.keeps_defaults ? `[${low}, ${high}]: not surely faster, so this model keeps its defaults` : `faster [${low}, ${high}]`);
}

// The page changes nothing; these do, where they are pasted.
const command = (says, text) => h("p", { class: "command quiet" }, says, " ", h("code", {}, text));

function causeRow(session, f) {
  return h("li", { class: "row cause", "data-key": f.outcome + " " + f.cause },
    h("b", { class: "bad" }, count(f.count)),
    h("div", {}, h("b", {}, words(f.outcome)), h("small", {}, h("code", {}, f.cause)),
      h("div", { class: "examples" }, f.examples.map((e) =>
        h("button", { type: "button", "data-key": e.id, "data-session": session.id, "data-attempt": e.id },
          `${e.task || "candidate"} · ${e.id.slice(-8)}`)))));
}

function drawSession(session, width) {
  const left = session.left_s === null ? (session.state === "running" ? "no limit" : "–") : duration(session.left_s);
  return [
    h("p", { class: "crumbs" }, h("a", { href: "#/" }, "← all sessions")),
    h("p", { class: "title" }, h("strong", {}, session.model || "unnamed"), chip(session.state),
      h("span", { class: "quiet" }, [session.owner, session.target, "since " + when(session.created_ms), session.reason].filter(Boolean).join(" · ")),
      session.waits && h("span", { class: "bad" }, session.waits)),
    verdict(session),
    h("dl", { class: "figures" },
      figure("Gain", session.default_ms && session.best_ms ? (session.default_ms / session.best_ms).toFixed(2) : "–", "×", "over the default"),
      figure("Best", latency(session.best_ms), "", session.measured_tasks < session.tasks
        ? `sum of ${count(session.measured_tasks)} of ${count(session.tasks)} kernels` : "all kernels of the model"),
      figure("Default", latency(session.default_ms), "", "the same, untuned"),
      figure("Time left", left, "", `${duration(session.elapsed_s)} used`),
      figure("Candidates", count(session.attempts), "", session.budget.trials ? `of ${count(session.budget.trials)}` : "measured"),
      figure("Failed", count(session.failed), "", session.attempts ? percent(session.failed / session.attempts) : "none")),
    h("section", { "aria-label": "Best so far" }, h("h2", {}, "Best so far"),
      h("figure", { class: "panel chart" }, bigChart(session, width),
        h("figcaption", {}, "Sum of count × best latency over all tasks, against the session's own time.", !session.complete && " Still reading."))),
    h("section", { "aria-label": "Tasks" }, h("h2", {}, "Tasks", h("small", {}, "share of the model's time, and how much of the roofline is reached")), tasks(session)),
    session.failures.length > 0 && h("section", { "aria-label": "Failures by cause" }, h("h2", {}, "Failures by cause"),
      h("ul", { class: "panel" }, session.failures.map((f) => causeRow(session, f)))),
    session.trials.length > 0 && h("section", { "aria-label": "Candidates" },
      h("h2", {}, "Candidates", h("small", {}, "the newest, and the three fastest of each task; times are the search's own")), trials(session)),
    ["waiting", "running"].includes(session.state) && command("To end it:", `hone session cancel ${session.id.slice(0, 12)} --server …`)].filter(Boolean);
}

// ---- a candidate ----

function drawCandidate(a) {
  return [
    h("div", { class: "bar" }, h("b", { id: "candidate-title" }, words(a.outcome)), h("span", { class: "quiet" }, a.task),
      h("button", { type: "button", "data-close": "" }, "Close")),
    h("div", { class: "body" },
      a.message && h("pre", { tabindex: 0, role: "region", "aria-label": "Message" }, a.message),
      h("p", { class: "quiet" }, `attempt ${a.id} · proposed as ${words(a.proposer)} · ${a.target} · cost ${duration(a.cost_s)} · ${when(a.created_ms)}`),
      h("b", {}, "Trace"),
      h("pre", { tabindex: 0, role: "region", "aria-label": "Trace" }, a.trace || "(the default schedule)"))];
}

function drawBest(r) {
  return [
    h("div", { class: "bar" }, h("b", { id: "candidate-title" }, "best"), h("span", { class: "quiet" }, r.task),
      h("button", { type: "button", "data-close": "" }, "Close")),
    h("div", { class: "body" },
      h("p", {}, h("b", {}, latency(r.median_us / 1000)), ` · ${latency(r.low_us / 1000)} to ${latency(r.high_us / 1000)} · ${words(r.rigor)}`,
        r.noisy && h("span", { class: "bad" }, " · measured under foreign load")),
      h("p", { class: "quiet" }, `record ${r.id} · ${r.target} · builder ${r.builder} · ${when(r.created_ms)}`),
      h("b", {}, "Trace"),
      h("pre", { tabindex: 0, role: "region", "aria-label": "Trace" }, r.trace || "(the default schedule)"))];
}

async function showDialog(path, drawn) {
  const dialog = document.getElementById("candidate");
  let body;
  try {
    body = drawn(await ask(path));
  } catch (error) {
    body = [h("div", { class: "bar" }, h("b", { id: "candidate-title" }, "not found"),
      h("button", { type: "button", "data-close": "" }, "Close")),
    h("div", { class: "body" }, h("p", {}, String(error.message)))];
  }
  dialog.replaceChildren(...body);
  dialog.showModal();
}

// ---- talking to honed ----

async function ask(path) {
  const response = await fetch("/api/v1/" + path, { signal: AbortSignal.timeout(kPatienceMs), cache: "no-store" });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error || "status " + response.status);
  if (answer.version !== 1) throw new Error("honed was replaced by another version; load the page again");
  return answer;
}

let seen = [];  // [time, results] of the last polls, for a rate

function resultRate(farm) {
  const now = farm.unix_ms / 1000, total = farm.counters.results.received;
  if (seen.length && total < seen[seen.length - 1][1]) seen = [];
  if (!seen.length || now > seen[seen.length - 1][0]) seen.push([now, total]);
  while (seen.length > 2 && now - seen[0][0] > 20) seen.shift();
  const span = now - seen[0][0];
  return span > 1 ? (total - seen[0][1]) / span : null;
}

function say(trouble, about) {
  const health = document.getElementById("health");
  const text = trouble || "healthy";
  if (health.textContent !== text) health.textContent = text;
  health.className = trouble ? "bad" : "";
  if (about) document.getElementById("about").textContent = about;
}

const route = () => {
  const match = /^#\/session\/([0-9a-f]{32})$/.exec(location.hash);
  return match ? { session: match[1] } : {};
};

let timer = 0, round_trip = 0, heard = 0, last = null;

function draw() {
  const main = document.getElementById("main");
  if (!last) return;
  const body = last.session ? drawSession(last.session, Math.max(280, main.clientWidth - 30)) : drawFarm(last.farm);
  if (main.dataset.view !== last.view) main.replaceChildren(...body);
  else morphChildren(main, body);
  main.dataset.view = last.view;
  document.title = (last.session ? (last.session.model || "unnamed") + " · " : "") + "Hone farm";
}

async function poll() {
  clearTimeout(timer);
  const mine = ++round_trip;
  const at = route();
  try {
    const [farm, session] = await Promise.all([ask("farm"), at.session ? ask("session?id=" + at.session) : null]);
    if (mine !== round_trip) return;
    resultRate(farm);
    heard = performance.now();
    last = { farm, session, view: at.session || "farm" };
    say(farm.trouble, `honed ${farm.honed} · up ${duration(farm.uptime_s)}`);
    draw();
    document.documentElement.dataset.drawn = last.view;
  } catch (error) {
    if (mine !== round_trip) return;
    const silent = heard ? ` for ${duration((performance.now() - heard) / 1000)}` : "";
    say(error instanceof TypeError || error.name === "TimeoutError" ? `no word from honed${silent}; trying on` : error.message);
  }
  timer = setTimeout(poll, document.hidden ? 5 * kPollMs : kPollMs);
}

document.addEventListener("click", (event) => {
  if (event.target.closest(".skip")) {
    // Without following the link: what stands after # is the view.
    event.preventDefault();
    document.getElementById("main").focus();
    return;
  }
  const button = event.target.closest("button");
  if (!button) return;
  const { session, attempt, best } = button.dataset;
  if (button.dataset.sort) {
    const { table, sort } = button.dataset;
    const now = sorted[table];
    sorted[table] = { by: sort, down: now.by === sort ? !now.down : kColumns[table][sort][2] === true };
    draw();
  }
  if (attempt) showDialog(`attempt?session=${session}&id=${attempt}`, drawCandidate);
  if (best) showDialog(`best?session=${session}&workload=${best}`, drawBest);
  if ("close" in button.dataset) document.getElementById("candidate").close();
});
window.addEventListener("hashchange", () => {
  window.scrollTo(0, 0);
  poll();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
window.addEventListener("resize", () => { clearTimeout(window.redraw); window.redraw = setTimeout(draw, 100); });
poll();
