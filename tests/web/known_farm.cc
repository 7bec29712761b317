#include "tests/web/known_farm.h"

#include "fmt/format.h"

#include "base/core/random.h"

namespace hone::web_test {
namespace {

constexpr int64_t kStartMs = 1'760'000'000'000;
constexpr double kMs = 1e6;

server::DeviceView Device(const std::string& worker, double busy, double noise) {
  server::DeviceView d;
  d.info.worker = worker;
  d.info.device = {.name = "cpu:0",
                   .device_class = "intel-6-143",
                   .target = "cpu:avx512+vnni,threads=16",
                   .cores = 16,
                   .memory_bytes = int64_t{64} << 30};
  d.info.connected = true;
  d.info.leases = 6;
  d.info.results = 18'211;
  d.busy_share = busy;
  d.noise = noise;
  d.started = 1;
  return d;
}

/// Products of 500 and more terms for resnet18, no text of a workload for others.
std::string WorkloadText(const std::string& model, int task) {
  if (model != "resnet18") return model + std::to_string(task);
  return fmt::format(
      "workload 1\nx0: f32[1000,{0}] input range(-1,1)\nx1: f32[{0},500] constant\n"
      "s0: f32[1000,500] output = sum[r0:{0}] (x0[i0, r0] * x1[r0, i1])\n",
      500 + task);
}

}  // namespace

std::string Hostile(const std::string& where) {
  return "<img src=x onerror=\"document.title='owned " + where +
         "'\"><script>document.title='owned'</script>\"'&amp;</a>" + where;
}

KnownFarm::KnownFarm() {
  AddKnownSession();
  AddSession({1, 1}, Hostile("model"), db::SessionState::kRunning, "", 2);
  Measured({1, 1}, 0, "default", 9 * kMs);
  Measured({1, 1}, 1, "default", 4 * kMs);
  failures_[{1, 1}].push_back(
      {.id = {9, 9},
       .session = {1, 1},
       .key = {.workload = HashBytes(Hostile("workload") + "0"), .target = Hostile("target")},
       .trace = Hostile("trace"),
       .proposer = Hostile("proposer"),
       .outcome = db::Outcome::kBuildCrashed,
       .message = Hostile("message")});
  Measured({1, 1}, 1, "model", 0, "build_crashed");
  AddSession({2, 2}, "bert_small", db::SessionState::kFinished, "time", 4);
  Say({2, 2}, "elapsed", "1");
  for (int task = 0; task < 4; ++task) Measured({2, 2}, task, "default", (task + 1) * 0.6 * kMs);
  Say({2, 2}, "elapsed", "600");
  for (int task = 0; task < 4; ++task) Measured({2, 2}, task, "model", (task + 1) * 0.55 * kMs);
  AddSession({3, 3}, "vgg16", db::SessionState::kWaiting, "waiting for a device that can run it",
             9);
  AddSession({4, 4}, "lstm_lm", db::SessionState::kFailed, "its log refused what it wrote", 1);
}

void KnownFarm::AddSession(const Hash128& id, const std::string& model, db::SessionState state,
                           const std::string& reason, int tasks) {
  auto row = std::make_shared<server::web::SessionRow>();
  const bool hostile = model.find('<') != std::string::npos;
  row->row = {.id = id,
              .owner = hostile ? Hostile("owner") : "alice",
              .project = hostile ? Hostile("project") : "vision",
              .state = state,
              .reason = hostile ? Hostile("reason") : reason,
              .device_class = "intel-6-143",
              .created_ms = kStartMs};
  row->spec.model = model;
  row->spec.target = hostile ? Hostile("target") : "cpu:avx512+vnni,threads=16";
  row->spec.seconds = 240;
  for (int i = 0; i < tasks; ++i) {
    row->spec.tasks.push_back(
        {.workload = hostile ? Hostile("workload") + std::to_string(i) : WorkloadText(model, i),
         .name = hostile ? Hostile("task") : fmt::format("layer{}.conv+relu", i),
         .count = 1});
  }
  sessions_.push_back(std::move(row));
}

void KnownFarm::Say(const Hash128& id, const std::string& type, const std::string& payload) {
  events_[id].push_back({.session = id, .type = type, .payload = payload, .sequence = ++sequence_});
}

void KnownFarm::Measured(const Hash128& id, int task, const std::string& proposer, double ns,
                         const std::string& outcome) {
  ++attempt_;
  Say(id, "proposed", fmt::format("{} {} 7 {}", attempt_, task, proposer));
  Say(id, "result", fmt::format("{} {} {} 0.1", attempt_, outcome, ns));
}

void KnownFarm::AddKnownSession() {
  const Hash128 id = KnownSession();
  AddSession(id, "resnet18", db::SessionState::kRunning, "", 8);
  Say(id, "elapsed", "0.5");
  for (int task = 0; task < 8; ++task) Measured(id, task, "default", 5 * kMs);
  Random random(7);
  // Each task from 5 to 2.5 ms in steps, over 60 s.
  for (int step = 1; step <= 40; ++step) {
    Say(id, "elapsed", fmt::format("{:.3f}", 60.0 * step / 40));
    const double share = 1 - static_cast<double>(40 - step) * static_cast<double>(40 - step) / 1600;
    for (int task = 0; task < 8; ++task) {
      if (step < 40 && random.Below(3) == 0) continue;
      Measured(id, task, "model", (5 - 2.5 * share) * kMs);
    }
  }
  const std::pair<const char*, const char*> causes[] = {
      {"run_crashed", "signal 11 at address 0x7f00{}: guard page after buffer x1"},
      {"wrong_answer", "element {} differs: 3.25 instead of 3.5 (allowed 0.0004)"},
      {"run_timeout", "ran longer than 2.0 s"}};
  for (int i = 0; i < 17; ++i) {
    const auto& [outcome, message] = causes[i < 11 ? 0 : i < 16 ? 1 : 2];
    Measured(id, i % 8, "random", 0, outcome);
    failures_[id].push_back(
        {.id = {0xabc, static_cast<uint64_t>(i)},
         .session = id,
         .key = {.workload = HashBytes(WorkloadText("resnet18", i % 8)),
                 .target = "cpu:avx512+vnni,threads=16"},
         .trace = fmt::format("split(s2.i1, [7, 4, {}])\nreorder(s2.i0.0, s2.i1.0, s2.r0)\n"
                              "vectorize(s2.i1.2)\nparallel(s2.i0.0)\n",
                              i),
         .proposer = "random",
         .outcome = *measure::ParseOutcome(outcome),
         .message = fmt::format(fmt::runtime(message), i),
         .cost_ns = 250'000'000,
         .created_ms = kStartMs + i * 1000});
  }
  Judge(id);
}

void KnownFarm::Judge(const Hash128& id) {
  Say(id, db::kModelVerdict,
      db::EventOf({.target = "cpu:avx512,threads=16",
                   .device_class = "class",
                   .default_ns = 40 * kMs,
                   .tuned_ns = 20 * kMs,
                   .ratio = 2,
                   .ratio_low = 1.95,
                   .ratio_high = 2.05,
                   .rounds = 40})
          .payload);
}

void KnownFarm::AddLongSession(const Hash128& id, int64_t attempts) {
  AddSession(id, "long", db::SessionState::kFinished, "trials", 1);
  for (int64_t i = 0; i < attempts; ++i) Measured(id, 0, i == 0 ? "default" : "model", 5 * kMs);
}

server::ProcessFacts KnownFarm::Facts() {
  server::ProcessFacts facts{.version = "0.1.0",
                             .builder = "1+22.1",
                             .now_ns = 273'600'000'000'000,
                             .started_ns = 0,
                             .trouble = "",
                             .log_bytes = 182'000'000,
                             .wal_bytes = 4'100'000,
                             .refusals = {0, 1},
                             .streams = 3};
  for (int i = 0; i < 1000; ++i) facts.commits.Add(i < 985 ? 400'000 : 1'800'000, 20);
  return facts;
}

server::FarmView KnownFarm::View() {
  ++polls_;
  server::FarmView view{.taken_ns = 273'599'000'000'000};
  view.counters.granted = 54'610;
  view.counters.acknowledged = 54'433;
  view.counters.results = 54'500 + 96 * polls_;
  view.counters.expired = 3;
  view.counters.lost = 2;
  view.counters.duplicates = 41;
  view.counters.outcomes[0] = 53'120;
  view.counters.outcomes[5] = 11;
  view.counters.outcomes[8] = 5;
  view.sessions[KnownSession()] = open_;
  view.sessions[{1, 1}] = {.left_ns = -1, .waits = "waiting for a device that can run it"};
  view.waiting = 37;
  view.oldest_waiting_ns = 400'000'000;
  view.open_leases = 18;
  view.started_leases = 3;
  view.devices.push_back(Device("rack1-node07", 0.97, 0.004));
  view.devices.push_back(Device("rack1-node08", 0.88, 0.031));
  view.devices.push_back(Device(Hostile("worker"), 0.52, -1));
  view.devices.back().info.sandboxed = false;
  view.devices.back().info.device.target = Hostile("device");
  view.devices.push_back(Device("rack2-node01", -1, -1));
  view.devices.back().info.state = db::DeviceState::kQuarantined;
  view.devices.back().info.reason = "failed on two candidates that are good elsewhere";
  for (server::DeviceView& device : view.devices) {
    device.info.probes = proto::Probes{1.312e11, 2.14e10, 0.0042, 1};
    device.info.program_version = "0.1.0";
    device.info.device.driver = Hostile("driver");
  }
  view.counters.quarantined = 1;
  view.counters.held_back = 12;
  view.devices.push_back(Device("laptop", -1, 0.09));
  view.devices.back().info.connected = false;
  view.devices.back().info.leases = 0;
  view.projects.push_back({.name = "vision", .share = 2, .charged_ns = 1});
  return view;
}

int64_t KnownFarm::UnixMs() { return kStartMs + 3'600'000 + polls_ * 2000; }

absl::Status KnownFarm::ScanEvents(const Hash128& session, int64_t after,
                                   const std::function<bool(const db::Event&)>& visit) {
  for (const db::Event& event : events_[session]) {
    if (event.sequence <= after) continue;
    ++events_read_;
    if (!visit(event)) break;
  }
  return absl::OkStatus();
}

absl::Status KnownFarm::ScanFailures(const Hash128& session,
                                     const std::function<bool(const db::Attempt&)>& visit) {
  for (const db::Attempt& attempt : failures_[session]) {
    if (!visit(attempt)) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<db::RankedRecord>> KnownFarm::FindBest(const db::RecordKey& key) {
  if (key.target != "cpu:avx512+vnni,threads=16") return std::optional<db::RankedRecord>();
  db::RankedRecord best{.rigor = db::Rigor::kVerified};
  best.record.id = {0xbe57, 1};
  best.record.key = key;
  best.record.trace = "split(s2.i1, [3, 16, 6])\nvectorize(s2.i1.2)\n" + Hostile("best");
  best.record.builder_version = "1+22.1";
  best.record.median_ns = 1.5 * kMs;
  best.record.low_ns = 1.4 * kMs;
  best.record.high_ns = 1.6 * kMs;
  best.record.created_ms = kStartMs;
  return std::optional<db::RankedRecord>(std::move(best));
}

}  // namespace hone::web_test
