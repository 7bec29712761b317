#include "client/db_recheck.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/core/cpu.h"
#include "base/core/random_id.h"
#include "base/status.h"
#include "base/versions.h"
#include "client/device_changes.h"
#include "client/json_text.h"
#include "client/log_trace_source.h"
#include "client/model_loader.h"
#include "client/shared_device.h"
#include "client/text_table.h"
#include "client/user_cache.h"
#include "client/version_text.h"
#include "db/recheck.h"
#include "ir/kind_facts.h"
#include "ir/kind_name.h"
#include "ir/text.h"
#include "measure/device.h"
#include "measure/helper_check.h"
#include "measure/kind_runner.h"
#include "measure/local_measurer.h"
#include "schedule/lower.h"
#include "search/median_interval.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

constexpr int kRounds = 24;

/// A device of this machine, and who measures on it.
struct Bench {
  measure::HostDevice device;
  std::optional<SharedDevice> shared;  ///< of a device that is not the host
  std::unique_ptr<measure::LocalMeasurer> measurer;
};

/// What became of a key.
struct Rechecked {
  db::RecordKey key;
  db::TuningRecord before;
  std::optional<db::TuningRecord> now;
  std::string why;  ///< there is none now
};

auto OrderOf(const db::RecordKey& key) {
  return std::tuple(key.target, key.workload, key.device_class, key.accuracy,
                    key.measurement_policy);
}

class Rechecking {
 public:
  Rechecking(CommandContext& context, db::LogFile& log)
      : context_(context), log_(log), clock_(*context.environment.clock) {
    session_.id = RandomId();
    session_.versions = VersionJson();
    session_.request = JsonText(ordered_json({{"command", "hone db recheck"}}));
    session_.created_ms = NowMs();
  }

  absl::Status Run() {
    HONE_ASSIGN_OR_RETURN(const std::vector<db::RecordKey> keys, KeysOfLog());
    for (const db::RecordKey& key : keys) {
      HONE_ASSIGN_OR_RETURN(Bench * bench, BenchOf(key));
      if (bench == nullptr) continue;
      HONE_ASSIGN_OR_RETURN(const std::vector<db::RankedRecord> best,
                            log_.TopRecords({.key = key, .builder_version = BuilderVersionText()},
                                            static_cast<int>(context_.arguments.Integer("top"))));
      if (best.empty()) continue;
      if (!context_.arguments.Flag("all") && !HasChanged(best.front().record.device, *bench)) {
        ++unchanged_;
        continue;
      }
      HONE_RETURN_IF_ERROR(Measure(key, best, *bench));
      if (bench->shared && bench->shared->bad()) return bench->shared->Usable();
    }
    Print();
    return absl::OkStatus();
  }

 private:
  int64_t NowMs() const { return wall_clock_.UnixNs() / 1'000'000; }

  absl::StatusOr<std::vector<db::RecordKey>> KeysOfLog() {
    std::map<decltype(OrderOf({})), db::RecordKey> keys;
    HONE_RETURN_IF_ERROR(log_.ScanRecords({}, [&](const db::RankedRecord& r) {
      keys.try_emplace(OrderOf(r.record.key), r.record.key);
      return absl::OkStatus();
    }));
    HONE_RETURN_IF_ERROR(log_.ScanDevices([&](const db::Device& device) {
      fingerprints_[db::DeviceId(device)] = device.fingerprint;
      return absl::OkStatus();
    }));
    std::vector<db::RecordKey> all;
    for (const auto& [order, key] : keys) all.push_back(key);
    return all;
  }

  /// The device of this machine that the key is of; null: there is none.
  absl::StatusOr<Bench*> BenchOf(const db::RecordKey& key) {
    const std::string kind(ir::KindNameOf(key.target));
    ir::Target target;
    std::string why;
    if (key.measurement_policy == kNotMeasured || !ir::ParseTarget(key.target, &target, &why) ||
        !ir::HostCanRun(target, &why) ||
        key.measurement_policy != ir::VersionsOf(key.target).measurement_policy) {
      return nullptr;
    }
    const auto known = benches_.find(kind);
    if (known == benches_.end()) {
      const auto device = measure::DescribeDevice(kind + ":0");
      if (!device.ok()) return nullptr;
      benches_[kind].device = *device;
    }
    Bench& bench = benches_[kind];
    if (bench.device.device_class != key.device_class) return nullptr;
    if (bench.measurer == nullptr) HONE_RETURN_IF_ERROR(Open(target, &bench));
    return &bench;
  }

  absl::Status Open(const ir::Target& target, Bench* bench) {
    measure::LocalMeasurerOptions o;
    o.builder = LocalBuilder(context_.arguments, context_.environment);
    o.builder.processes = UsableCores();
    o.runner.device = target.kind + ":0";
    o.oracle.cache = OpenUserCache(context_.arguments, context_.environment);
    o.device_class = bench->device.device_class;
    const int cores = measure::HostCoresOf(target);
    o.alternate = cores > 0 && cores + o.builder.processes > UsableCores();
    HONE_RETURN_IF_ERROR(measure::CheckHelpers(o.builder, o.runner, clock_));
    if (!measure::RunsOnHost(target.text)) {
      bench->shared.emplace(context_.arguments.Text("lock-folder"), bench->device, context_.err);
      HONE_RETURN_IF_ERROR(bench->shared->Usable());
      HONE_RETURN_IF_ERROR(bench->shared->Share(o, log_));
    }
    bench->measurer = std::make_unique<measure::LocalMeasurer>(std::move(o), clock_);
    return absl::OkStatus();
  }

  /// Whether this very device was not as it is now when that was measured: not another one of its
  /// class.
  bool HasChanged(const Hash128& device, const Bench& bench) const {
    const auto before = fingerprints_.find(device);
    return before != fingerprints_.end() && before->second != bench.device.fingerprint &&
           SameDevice(before->second, bench.device.fingerprint);
  }

  absl::Status Measure(const db::RecordKey& key, const std::vector<db::RankedRecord>& best,
                       Bench& bench) {
    Rechecked done{.key = key, .before = best.front().record, .now = {}, .why = {}};
    HONE_ASSIGN_OR_RETURN(const auto row, log_.FindWorkload(key.workload));
    if (!row) return absl::OkStatus();  // `hone db verify` says so
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(row->text));
    ir::Target target;
    HONE_CHECK(ir::ParseTarget(key.target, &target, &done.why)) << done.why;
    HONE_ASSIGN_OR_RETURN(const schedule::Trace fallback, schedule::DefaultTrace(workload, target));
    std::vector<std::string> traces = {schedule::ToText(fallback)};
    for (const db::RankedRecord& r : best) {
      if (r.record.trace != traces.front()) traces.push_back(r.record.trace);
    }
    const auto shared = std::make_shared<const ir::Workload>(workload);
    std::vector<measure::MeasureInput> inputs;
    for (const std::string& trace : traces) {
      inputs.push_back({.id = static_cast<int64_t>(inputs.size()) + 1,
                        .workload = shared,
                        .target = key.target,
                        .trace = trace,
                        .kind = measure::MeasureKind::kFinal,
                        .accuracy = key.accuracy,
                        .seed = done.before.seed});
    }
    const std::vector<measure::ComparedTrace> compared = bench.measurer->Compare(inputs, kRounds);
    db::Batch batch;
    for (size_t i = 0; i < compared.size(); ++i) {
      if (compared[i].samples_ns.empty()) {
        if (done.why.empty()) done.why = compared[i].error.message;
        continue;
      }
      batch.records.push_back(RecordOf(done, traces[i], compared[i], bench));
      const db::TuningRecord& made = batch.records.back();
      if (!done.now || made.low_ns < done.now->low_ns) done.now = made;
    }
    if (done.now) HONE_RETURN_IF_ERROR(Commit(done, traces, bench, std::move(batch)));
    if (!context_.json()) context_.err << LineOf(done) << std::flush;
    done_.push_back(std::move(done));
    return absl::OkStatus();
  }

  db::TuningRecord RecordOf(const Rechecked& of, const std::string& trace,
                            const measure::ComparedTrace& compared, const Bench& bench) const {
    const search::MedianInterval m = search::IntervalOf(compared.samples_ns);
    return {.id = RandomId(),
            .key = of.key,
            .device = db::DeviceId(DeviceOf(bench)),
            .trace = trace,
            .trace_version = kTraceTextVersion,
            .builder_version = BuilderVersionText(),
            .rigor = db::Rigor::kVerified,
            .median_ns = m.median,
            .low_ns = m.low,
            .high_ns = m.high,
            .noisy = compared.noisy,
            .session = session_.id,
            .seed = of.before.seed,
            .created_ms = NowMs(),
            .samples_ns = {compared.samples_ns.begin(), compared.samples_ns.end()}};
  }

  static db::Device DeviceOf(const Bench& bench) {
    return {bench.device.device_class, bench.device.fingerprint};
  }

  /// What was measured now takes the place of what these Traces were, and of all that would answer
  /// before it.
  absl::Status Commit(const Rechecked& done, const std::vector<std::string>& traces,
                      const Bench& bench, db::Batch batch) {
    const db::RankedRecord now = {.record = *done.now, .rigor = db::Rigor::kVerified};
    const std::set<std::string> again(traces.begin(), traces.end());
    db::Recheck recheck{.workload = done.key.workload, .replaced = {}, .session = session_.id};
    const db::FactFilter filter = {.workload = done.key.workload,
                                   .device_class = done.key.device_class};
    HONE_RETURN_IF_ERROR(log_.ScanRecords(filter, [&](const db::RankedRecord& r) {
      if (r.record.key != done.key) return absl::OkStatus();
      db::RankedRecord old = r;
      old.other_builder = r.record.builder_version != BuilderVersionText();
      old.rigor = db::EffectiveRigor(r.record, r.merged, old.other_builder);
      if (again.contains(r.record.trace) || db::RanksBefore(old, now))
        recheck.replaced.push_back(r.record.id);
      return absl::OkStatus();
    }));
    batch.devices = {DeviceOf(bench)};
    batch.sessions = {session_};
    batch.events = {db::EventOf(recheck)};
    return log_.Append(batch).status();
  }

  std::string LineOf(const Rechecked& done) const {
    const std::string workload = done.key.workload.ToHex().substr(0, 12);
    if (!done.now) return fmt::format("{}: not measured: {}\n", workload, done.why);
    return fmt::format("{}: {:.2f} us, was {:.2f}{}\n", workload, done.now->median_ns * 1e-3,
                       done.before.median_ns * 1e-3,
                       done.now->trace == done.before.trace ? "" : ", by another schedule");
  }

  void Print() {
    int64_t others = 0, failed = 0;
    TextTable table({"WORKLOAD", "WAS US", "NOW US", "BEST", "TARGET"});
    ordered_json list = ordered_json::array();
    for (const Rechecked& done : done_) {
      const bool same = done.now && done.now->trace == done.before.trace;
      if (!done.now) ++failed;
      if (done.now && !same) ++others;
      const double now_us = done.now ? done.now->median_ns * 1e-3 : 0;
      list.push_back({{"workload", done.key.workload.ToHex()},
                      {"target", done.key.target},
                      {"was_us", done.before.median_ns * 1e-3},
                      {"now_us", now_us},
                      {"same", same},
                      {"error", done.now ? "" : done.why}});
      table.Add({done.key.workload.ToHex().substr(0, 12),
                 fmt::format("{:.2f}", done.before.median_ns * 1e-3),
                 done.now ? fmt::format("{:.2f}", now_us) : "-",
                 !done.now ? "not measured"
                 : same    ? "as before"
                           : "another",
                 done.key.target});
    }
    context_.json_result = JsonText(ordered_json(
        {{"log", log_.path()}, {"unchanged", unchanged_}, {"rechecked", std::move(list)}}));
    if (context_.json()) return;
    if (!done_.empty()) context_.out << table.Text();
    context_.out << fmt::format(
        "{} kernels measured again, {} have another best schedule, {} could not be measured\n",
        done_.size(), others, failed);
    if (unchanged_ > 0) {
      context_.out << fmt::format(
          "{} were measured on this device as it is now; --all takes them too\n", unchanged_);
    }
  }

  CommandContext& context_;
  db::LogFile& log_;
  const MonotonicClock& clock_;
  const SystemWallClock wall_clock_;
  db::Session session_;
  std::map<Hash128, std::string> fingerprints_;  // by DeviceId
  std::map<std::string, Bench> benches_;         // by kind
  std::vector<Rechecked> done_;
  int64_t unchanged_ = 0;
};

}  // namespace

absl::Status RecheckLog(CommandContext& context, db::LogFile& log) {
  return Rechecking(context, log).Run();
}

}  // namespace hone::client
