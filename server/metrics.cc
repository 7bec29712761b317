#include "server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "server/transitions.h"

namespace hone::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<std::pair<std::string, std::string>>;

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

class Families {
 public:
  void Begin(std::string name, std::string help, MetricType type) {
    families_.push_back({std::move(name), std::move(help), type, {}});
  }
  /// A value of the family begun last.
  void Add(double value, const Labels& labels = {}) {
    MetricFamily& family = families_.back();
    ClientMetric& metric = family.metric.emplace_back();
    for (const auto& [name, text] : labels) metric.label.push_back({name, text});
    if (family.type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
  }
  void Gauge(std::string name, std::string help, double value) {
    Begin(std::move(name), std::move(help), MetricType::Gauge);
    Add(value);
  }
  void Counter(std::string name, std::string help, int64_t value) {
    Begin(std::move(name), std::move(help), MetricType::Counter);
    Add(static_cast<double>(value));
  }
  /// One counter a word of what `label` may be.
  void Counters(std::string name, std::string help, const std::string& label,
                const std::vector<std::pair<std::string, int64_t>>& values) {
    Begin(std::move(name), std::move(help), MetricType::Counter);
    for (const auto& [word, value] : values) Add(static_cast<double>(value), {{label, word}});
  }
  void Commits(const CommitTimes& times) {
    Begin("hone_commit_seconds", "Duration of a group commit, synced to disk.",
          MetricType::Histogram);
    prometheus::ClientMetric::Histogram& histogram =
        families_.back().metric.emplace_back().histogram;
    histogram.sample_count = static_cast<uint64_t>(times.commits);
    histogram.sample_sum = Seconds(times.total_ns);
    uint64_t below = 0;
    for (size_t i = 0; i < CommitTimes::kEndsNs.size(); ++i) {
      below += static_cast<uint64_t>(times.buckets[i]);
      histogram.bucket.push_back({below, Seconds(CommitTimes::kEndsNs[i])});
    }
  }
  std::string Text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families_);
    return out.str();
  }

 private:
  std::vector<MetricFamily> families_;
};

/// By the names that every program has in Prometheus.
void AddUsage(const ProcessFacts& facts, Families& out) {
  const ProcessUsage& usage = facts.usage;
  out.Gauge("process_start_time_seconds", "When honed started, in seconds since 1970.",
            facts.started_unix);
  if (usage.cpu_seconds >= 0) {
    out.Begin("process_cpu_seconds_total", "CPU time used, in user and system mode.",
              MetricType::Counter);
    out.Add(usage.cpu_seconds);
  }
  const auto known = [&](const char* name, const char* help, int64_t value) {
    if (value >= 0) out.Gauge(name, help, static_cast<double>(value));
  };
  known("process_resident_memory_bytes", "Resident memory.", usage.resident_bytes);
  known("process_virtual_memory_bytes", "Virtual memory.", usage.virtual_bytes);
  known("process_open_fds", "Open file descriptors.", usage.open_files);
  known("process_max_fds", "How many may be open.", usage.most_files);
}

void AddProcess(const ProcessFacts& facts, Families& out) {
  out.Begin("hone_build_info", "Always 1; what runs.", MetricType::Gauge);
  out.Add(1, {{"version", facts.version}, {"builder", facts.builder}});
  AddUsage(facts, out);
  out.Gauge("hone_log_writable", "0 while nothing can be written (a full disk), else 1.",
            facts.trouble.empty() ? 1 : 0);
  out.Gauge("hone_log_held_back_seconds", "For how long nothing can be written; 0 while it can.",
            Seconds(facts.trouble_ns));
  out.Begin("hone_log_bytes", "Size of the log's files.", MetricType::Gauge);
  out.Add(static_cast<double>(facts.log_bytes), {{"file", "main"}});
  out.Add(static_cast<double>(facts.wal_bytes), {{"file", "wal"}});
  out.Commits(facts.commits);
  out.Counter("hone_commit_units_total", "Changes made durable; many share a commit.",
              facts.commits.units);
  out.Begin("hone_callers_refused_total",
            "Connections, calls and streams refused for who called, or in which protocol.",
            MetricType::Counter);
  for (int i = 0; i < kNumRefusals; ++i) {
    out.Add(static_cast<double>(facts.refusals[static_cast<size_t>(i)]),
            {{"reason", std::string(NameOf(static_cast<Refusal>(i)))}});
  }
}

void AddCertificates(const ProcessFacts& facts, Families& out) {
  if (facts.certificates.empty()) return;
  out.Begin("hone_certificate_end_timestamp_seconds",
            "When a certificate is over, in seconds since 1970.", MetricType::Gauge);
  for (const CertificateEnd& one : facts.certificates) {
    out.Add(static_cast<double>(one.unix_s), {{"subject", one.subject}});
  }
}

void AddWork(const FarmView& view, Families& out) {
  const FarmCounters& c = view.counters;
  out.Gauge("hone_sessions", "Sessions that run.", static_cast<double>(view.sessions.size()));
  out.Gauge("hone_queue_attempts", "Attempts that no worker has yet.",
            static_cast<double>(view.waiting));
  out.Gauge("hone_queue_oldest_age_seconds", "How long the oldest of them waits.",
            Seconds(view.oldest_waiting_ns));
  out.Gauge("hone_leases_open", "Leases that workers hold.", static_cast<double>(view.open_leases));
  out.Gauge("hone_leases_started", "Open leases whose code runs.",
            static_cast<double>(view.started_leases));
  out.Counter("hone_leases_granted_total", "Leases granted.", c.granted);
  out.Counters("hone_leases_ended_total", "Leases ended, by reason.", "reason",
               {{"done", c.acknowledged},
                {"expired", c.expired},
                {"returned", c.returned},
                {"revoked", c.revoked},
                {"lost", c.lost}});
  out.Counter("hone_results_total", "Results that came, whatever became of them.", c.results);
  out.Counters("hone_results_refused_total", "Results that were not counted as new, by reason.",
               "reason",
               {{"duplicate", c.duplicates},
                {"conflict", c.conflicts},
                {"stale", c.stale},
                {"invalid", c.invalid}});
  out.Begin("hone_attempts_total", "Attempts closed durably, by outcome.", MetricType::Counter);
  for (int i = 0; i < measure::kNumOutcomes; ++i) {
    out.Add(static_cast<double>(c.outcomes[static_cast<size_t>(i)]),
            {{"outcome", std::string(measure::ToString(static_cast<measure::Outcome>(i)))}});
  }
  out.Counter("hone_infrastructure_faults_total", "Faults of workers that cost no session.",
              c.infrastructure_faults);
  out.Counter("hone_results_held_back_total",
              "Results measured again on another device before they count.", c.held_back);
  out.Counter("hone_build_leases_granted_total", "Leases granted to build for others.",
              c.granted_builds);
  out.Counters("hone_artifacts_total", "Artifacts of builders, by what became of them.", "result",
               {{"taken", c.artifacts},
                {"refused", c.artifacts_refused},
                {"no_room", c.artifacts_no_room},
                {"unasked", c.artifacts_unasked},
                {"gone", c.artifacts_gone}});
  out.Counter("hone_condemned_total", "Attempts given up because their workers were lost.",
              c.condemned);
  out.Begin("hone_project_device_seconds_total", "Device time charged, in all starts of honed.",
            MetricType::Counter);
  for (const ProjectView& project : view.projects) {
    out.Add(Seconds(project.charged_ns), {{"project", project.name}});
  }
}

/// One gauge for each state of each device: a state that changes is no label of an info metric.
void AddStates(const FarmView& view, Families& out) {
  out.Begin("hone_device_state", "1 for the state that a device is in, 0 for the others.",
            MetricType::Gauge);
  for (const DeviceView& d : view.devices) {
    for (int s = 0; s <= static_cast<int>(db::DeviceState::kLost); ++s) {
      const auto state = static_cast<db::DeviceState>(s);
      out.Add(d.info.state == state ? 1 : 0, {{"worker", d.info.worker},
                                              {"device", d.info.device.name},
                                              {"state", std::string(NameOf(state))}});
    }
  }
}

void AddDevices(const ProcessFacts& facts, const FarmView& view, Families& out) {
  const auto each = [&](const char* name, const char* help, MetricType type, const auto& value) {
    out.Begin(name, help, type);
    for (const DeviceView& d : view.devices) {
      const double number = value(d);
      if (number < 0) continue;  // not known yet
      out.Add(number, {{"worker", d.info.worker}, {"device", d.info.device.name}});
    }
  };
  out.Gauge("hone_worker_streams", "Workers connected.", static_cast<double>(facts.streams));
  out.Counter("hone_workers_refused_total", "Workers refused for their version or name.",
              view.counters.refused_workers);
  out.Counter("hone_worker_streams_replaced_total", "Streams that a newer one replaced.",
              view.counters.replaced_streams);
  out.Begin("hone_devices", "Devices seen since the start, by state.", MetricType::Gauge);
  for (int s = 0; s <= static_cast<int>(db::DeviceState::kLost); ++s) {
    const auto state = static_cast<db::DeviceState>(s);
    const auto n = std::ranges::count_if(
        view.devices, [&](const DeviceView& d) { return d.info.state == state; });
    out.Add(static_cast<double>(n), {{"state", std::string(NameOf(state))}});
  }
  out.Counter("hone_quarantines_total", "Devices put into quarantine.", view.counters.quarantined);
  out.Begin("hone_device_info", "Always 1; what is known of a device.", MetricType::Gauge);
  for (const DeviceView& d : view.devices) {
    out.Add(1, {{"worker", d.info.worker},
                {"device", d.info.device.name},
                {"device_class", d.info.device.device_class},
                {"target", d.info.device.target},
                {"role", std::string(proto::NameOf(d.info.role))},
                {"sandboxed", d.info.sandboxed ? "yes" : "no"}});
  }
  AddStates(view, out);
  each("hone_device_up", "1 while its worker is connected and it gets work.", MetricType::Gauge,
       [](const DeviceView& d) {
         return d.info.connected && d.info.state == db::DeviceState::kActive ? 1.0 : 0.0;
       });
  each("hone_device_busy_seconds_total", "Device time of its worker's process.",
       MetricType::Counter, [](const DeviceView& d) { return Seconds(d.info.busy_ns); });
  each("hone_device_busy_ratio", "Busy share of the last minute, 0 to 1.", MetricType::Gauge,
       [](const DeviceView& d) { return d.busy_share; });
  each("hone_device_noise_ratio",
       "Half the interquartile range of a candidate's samples over their median, running mean.",
       MetricType::Gauge, [](const DeviceView& d) { return d.noise; });
  each("hone_device_probe_flop_per_second",
       "f32 multiply-adds of one core, two each, as its worker probed it.", MetricType::Gauge,
       [](const DeviceView& d) { return d.info.probes ? d.info.probes->flop_per_second : -1; });
  each("hone_device_probe_memory_bytes_per_second",
       "Reading memory with all cores, as its worker probed it.", MetricType::Gauge,
       [](const DeviceView& d) {
         return d.info.probes ? d.info.probes->memory_bytes_per_second : -1;
       });
  each("hone_device_probe_noise_ratio", "Spread of equal pieces of work in its probe.",
       MetricType::Gauge,
       [](const DeviceView& d) { return d.info.probes ? d.info.probes->noise : -1; });
  each("hone_device_leases", "Leases that it holds.", MetricType::Gauge,
       [](const DeviceView& d) { return static_cast<double>(d.info.leases); });
  each("hone_device_results_total", "Results that closed a lease.", MetricType::Counter,
       [](const DeviceView& d) { return static_cast<double>(d.info.results); });
  each("hone_device_noisy_results_total", "Results measured under foreign load.",
       MetricType::Counter,
       [](const DeviceView& d) { return static_cast<double>(d.noisy_results); });
}

}  // namespace

std::string MetricsText(const ProcessFacts& facts, const FarmView& view) {
  Families families;
  AddProcess(facts, families);
  AddCertificates(facts, families);
  // Before the first look at the farm there is nothing to say of it; zeros would read as a loss.
  if (view.taken_ns != 0) {
    AddWork(view, families);
    AddDevices(facts, view, families);
  }
  return families.Text();
}

}  // namespace hone::server
