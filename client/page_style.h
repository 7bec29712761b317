#pragma once

namespace hone::client {

/// The style of the pages that `hone report` and `hone quantize --report` write: light and dark,
/// from 360 pixels on, printable. `wide` and `extra` mark columns that narrow screens leave out.
inline constexpr char kPageStyle[] = R"(
:root { color-scheme: light dark; --ink: #1c2330; --quiet: #667085; --page: #f6f7f9; --card: #fff;
  --edge: #e3e6eb; --accent: #2563a8; --tint: #2563a81f; --good: #1d8a55; --bad: #c2412d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --quiet: #98a2b3; --page: #12161d;
  --card: #1a202a; --edge: #2b3340; --accent: #7ab0ec; --tint: #7ab0ec26; --good: #58c28d;
  --bad: #ee8069; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 17px; margin: 36px 0 12px; }
.quiet { color: var(--quiet); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px;
  margin: 24px 0 0; }
.verdict { font-size: 19px; font-weight: 650; margin: 20px 0 0; }
.verdict.won { color: var(--good); }
.card, .panel { background: var(--card); border: 1px solid var(--edge); border-radius: 10px; }
.card { padding: 14px 16px; }
.card b { display: block; font-size: 24px; font-weight: 650; letter-spacing: -.02em; }
.card span { color: var(--quiet); font-size: 13px; }
.panel { padding: 16px; overflow-x: auto; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 12px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th { text-align: left; font-weight: 600; color: var(--quiet); font-size: 12px;
  padding: 4px 10px 8px; }
td { padding: 5px 10px; border-top: 1px solid var(--edge); vertical-align: middle; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td small { color: var(--quiet); display: block; font-size: 11.5px; }
code, pre { font: 12.5px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
td code { overflow-wrap: anywhere; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.name { min-width: 190px; max-width: 300px; }
svg { display: block; width: 100%; height: auto; }
svg.small { width: auto; }
svg.large { min-width: 520px; }
.grid { stroke: var(--edge); } .axis { stroke: var(--quiet); }
.tick { fill: var(--quiet); font-size: 11px; } .label { fill: var(--ink); font-size: 13px;
  font-weight: 650; }
.line { fill: none; stroke: var(--accent); stroke-width: 2; stroke-linejoin: round; }
.area { fill: var(--tint); } .dot { fill: var(--accent); }
.reference { stroke: var(--quiet); stroke-dasharray: 5 4; }
.win { fill: var(--good); opacity: .75; } .loss { fill: var(--bad); opacity: .75; }
.whisker { fill: none; stroke: var(--ink); stroke-width: 1.2; }
.trials input { accent-color: var(--accent); margin: 0 4px 0 0; }
.trials label { margin-right: 16px; font-size: 13px; }
.trials .rows { display: flex; flex-direction: column; margin-top: 10px; }
.trial { display: grid; gap: 0 12px; padding: 4px 10px; font-size: 13.5px; order: var(--new);
  border-top: 1px solid var(--edge);
  grid-template-columns: 56px minmax(0, 1fr) 76px 84px 96px 110px; }
.trial.head { order: 0; border: 0; color: var(--quiet); font-size: 12px; font-weight: 600; }
.trial .n { text-align: right; font-variant-numeric: tabular-nums; }
#by-group:checked ~ .rows > .trial:not(.head) { order: var(--group); }
#by-time:checked ~ .rows > .trial:not(.head) { order: var(--time); }
#by-outcome:checked ~ .rows > .trial:not(.head) { order: var(--outcome); }
.bad { color: var(--bad); }
tr.kept td { background: var(--tint); }
.ring { fill: none; stroke: var(--accent); stroke-width: 2; }
.meter { background: var(--edge); border-radius: 3px; height: 6px; width: 60px; overflow: hidden; }
.meter i { display: block; height: 100%; background: var(--accent); }
@media (max-width: 1000px) { .extra, .meter { display: none; }
  .name { min-width: 110px; } td, th { padding-left: 6px; padding-right: 6px; } }
@media (max-width: 700px) { .wide, .trial .by, .trial .at, .trial.head { display: none; }
  td.n small { display: none; } td.name small { display: block; }
  .trial { grid-template-columns: minmax(0, 1fr) auto; padding: 5px 6px; }
  .trial .number { grid-row: 2; text-align: left; } .trial .outcome { text-align: right; } }
@media (max-width: 520px) { main { padding: 20px 12px 40px; } .panel { padding: 10px; }
  .pair { grid-template-columns: 1fr; }
  .trials label { margin-right: 4px; font-size: 12px; }
  svg.large { min-width: 0; overflow: visible; padding-left: 24px; } .tick { font-size: 24px; }
  .label { font-size: 26px; } }
@media (min-width: 1000px) { .large .tick { font-size: 8px; } .large .label { font-size: 9.5px; } }
@media print { body { background: #fff; } .panel, .card { break-inside: avoid; }
  .panel { overflow: visible; } .trials input, .trials label { display: none; } }
)";

}  // namespace hone::client
