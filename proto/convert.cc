#include "proto/convert.h"

#include <cmath>
#include <set>

#include "fmt/format.h"

#include "base/sha256.h"
#include "base/status.h"
#include "hone/v1/farm.pb.h"
#include "ir/target.h"
#include "proto/convert_artifact.h"
#include "proto/convert_probes.h"
#include "proto/field_check.h"
#include "proto/limits.h"

namespace hone::proto {
namespace {

absl::StatusOr<DeviceFacts> Device(const v1::DeviceFacts& wire) {
  DeviceFacts d;
  HONE_ASSIGN_OR_RETURN(d.name, Name(wire.name(), "device.name"));
  HONE_ASSIGN_OR_RETURN(d.device_class, Name(wire.device_class(), "device.device_class"));
  HONE_ASSIGN_OR_RETURN(d.fingerprint,
                        Bounded(wire.fingerprint(), 1, kMaxTextBytes, "device.fingerprint"));
  HONE_ASSIGN_OR_RETURN(d.target, TargetText(wire.target(), "device.target"));
  HONE_RETURN_IF_ERROR(InRange(wire.cores(), 1, 4096, "device.cores"));
  HONE_RETURN_IF_ERROR(InRange(wire.memory_bytes(), 0, int64_t{1} << 50, "device.memory_bytes"));
  d.cores = wire.cores();
  d.memory_bytes = wire.memory_bytes();
  HONE_ASSIGN_OR_RETURN(d.driver, Text(wire.driver(), "device.driver"));
  return d;
}

void Device(const DeviceFacts& d, v1::DeviceFacts* wire) {
  wire->set_name(Cut(d.name, kMaxNameBytes));
  wire->set_device_class(Cut(d.device_class, kMaxNameBytes));
  wire->set_fingerprint(Cut(d.fingerprint, kMaxTextBytes));
  wire->set_target(d.target);
  wire->set_cores(d.cores);
  wire->set_memory_bytes(d.memory_bytes);
  wire->set_driver(Cut(d.driver, kMaxTextBytes));
}

template <typename List>
absl::StatusOr<std::vector<HeldLease>> Held(const List& wire) {
  HONE_RETURN_IF_ERROR(AtMost(static_cast<size_t>(wire.size()), kMaxHeld, "held"));
  std::vector<HeldLease> held;
  for (const v1::HeldLease& lease : wire) {
    HONE_ASSIGN_OR_RETURN(const Hash128 token, IdFromBytes(lease.token(), "held.token"));
    held.push_back({token, lease.started()});
  }
  return held;
}

template <typename List>
void Held(const std::vector<HeldLease>& held, List* wire) {
  for (const HeldLease& lease : held) {
    v1::HeldLease* one = wire->Add();
    one->set_token(IdBytes(lease.token));
    one->set_started(lease.started);
  }
}

template <typename Map>
absl::StatusOr<std::map<std::string, std::string>> Labels(const Map& wire) {
  HONE_RETURN_IF_ERROR(AtMost(wire.size(), kMaxLabels, "labels"));
  std::map<std::string, std::string> labels;
  for (const auto& [key, value] : wire) {
    HONE_ASSIGN_OR_RETURN(std::string name, Name(key, "labels"));
    HONE_ASSIGN_OR_RETURN(labels[name], Printing(value, 0, kMaxNameBytes, "labels"));
  }
  return labels;
}

template <typename Map>
void Labels(const std::map<std::string, std::string>& labels, Map* wire) {
  for (const auto& [key, value] : labels) {
    (*wire)[Cut(key, kMaxNameBytes)] = Cut(value, kMaxNameBytes);
  }
}

absl::StatusOr<WorkerMessage> FromHello(const v1::Hello& wire) {
  Hello h;
  h.protocol = wire.protocol();
  h.measurement_policy = wire.measurement_policy();
  HONE_ASSIGN_OR_RETURN(h.builder_version, Text(wire.builder_version(), "builder_version"));
  HONE_ASSIGN_OR_RETURN(h.program_version, Text(wire.program_version(), "program_version"));
  HONE_ASSIGN_OR_RETURN(h.instance, IdFromBytes(wire.instance(), "instance"));
  HONE_RETURN_IF_ERROR(InRange(wire.role(), 1, 3, "role"));
  h.role = static_cast<WorkerRole>(wire.role());
  HONE_ASSIGN_OR_RETURN(h.device, Device(wire.device()));
  HONE_ASSIGN_OR_RETURN(h.labels, Labels(wire.labels()));
  HONE_ASSIGN_OR_RETURN(h.held, Held(wire.held()));
  h.sandboxed = wire.sandboxed();
  HONE_ASSIGN_OR_RETURN(h.sandbox_gap, Text(wire.sandbox_gap(), "sandbox_gap"));
  if (wire.has_probes()) {
    HONE_ASSIGN_OR_RETURN(h.probes, FromProbes(wire.probes()));
  }
  return h;
}

void FromHello(const Hello& h, v1::Hello* wire) {
  wire->set_protocol(h.protocol);
  wire->set_builder_version(h.builder_version);
  wire->set_measurement_policy(h.measurement_policy);
  wire->set_program_version(h.program_version);
  wire->set_instance(IdBytes(h.instance));
  wire->set_role(static_cast<v1::Role>(h.role));
  Device(h.device, wire->mutable_device());
  Labels(h.labels, wire->mutable_labels());
  Held(h.held, wire->mutable_held());
  wire->set_sandboxed(h.sandboxed);
  wire->set_sandbox_gap(Cut(h.sandbox_gap, kMaxTextBytes));
  if (h.probes) ToProbes(*h.probes, wire->mutable_probes());
}

// A result that says it is ok has samples, another has none.
absl::Status SamplesFit(measure::Outcome outcome, const std::vector<int64_t>& samples) {
  if ((outcome == measure::Outcome::kOk) == !samples.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("samples_ns: outcome {} with {} samples",
                                                measure::ToString(outcome), samples.size()));
}

absl::StatusOr<std::vector<KernelTimes>> KernelsOf(const v1::Compared& wire) {
  HONE_RETURN_IF_ERROR(AtMost(static_cast<size_t>(wire.kernels_size()), kMaxKernels, "kernels"));
  std::vector<KernelTimes> kernels;
  std::set<Hash128> seen;
  size_t samples = 0;
  for (const v1::KernelTimes& one : wire.kernels()) {
    KernelTimes& kernel = kernels.emplace_back();
    HONE_ASSIGN_OR_RETURN(kernel.workload, IdFromBytes(one.workload(), "kernels.workload"));
    if (!seen.insert(kernel.workload).second) {
      return absl::InvalidArgumentError("kernels.workload: one twice");
    }
    HONE_ASSIGN_OR_RETURN(kernel.samples_ns, Samples(one.samples_ns(), "kernels.samples_ns"));
    HONE_RETURN_IF_ERROR(SamplesFit(measure::Outcome::kOk, kernel.samples_ns));
    samples += kernel.samples_ns.size();
    HONE_RETURN_IF_ERROR(AtMost(samples, kMaxKernelSamples, "kernels.samples_ns"));
  }
  return kernels;
}

absl::StatusOr<WorkerMessage> FromResult(const v1::Result& wire) {
  WorkResult r;
  HONE_ASSIGN_OR_RETURN(r.token, IdFromBytes(wire.token(), "token"));
  HONE_RETURN_IF_ERROR(InRange(wire.outcome(), 0, measure::kNumOutcomes - 1, "outcome"));
  r.outcome = static_cast<measure::Outcome>(wire.outcome());
  HONE_ASSIGN_OR_RETURN(r.message, Text(wire.message(), "message"));
  HONE_ASSIGN_OR_RETURN(r.samples_ns, Samples(wire.samples_ns(), "samples_ns"));
  r.hopeless = wire.hopeless();
  r.noisy = wire.noisy();
  HONE_RETURN_IF_ERROR(InRange(wire.build_ns(), 0, kMaxNs, "build_ns"));
  HONE_RETURN_IF_ERROR(InRange(wire.run_ns(), 0, kMaxNs, "run_ns"));
  r.build_ns = wire.build_ns();
  r.run_ns = wire.run_ns();
  HONE_RETURN_IF_ERROR(InRange(wire.part_ns(), 0, kMaxNs, "part_ns"));
  r.part_ns = wire.part_ns();
  HONE_RETURN_IF_ERROR(RealInRange(wire.part(), 0, r.part_ns > 0 ? 1 : 0, "part"));
  if (wire.part() > 0) r.part = wire.part();
  HONE_RETURN_IF_ERROR(AtMost(static_cast<size_t>(wire.compared_size()), kMaxTraces, "compared"));
  for (const v1::Compared& one : wire.compared()) {
    ComparedResult& c = r.compared.emplace_back();
    HONE_RETURN_IF_ERROR(InRange(one.outcome(), 0, measure::kNumOutcomes - 1, "compared.outcome"));
    c.outcome = static_cast<measure::Outcome>(one.outcome());
    HONE_ASSIGN_OR_RETURN(c.message, Text(one.message(), "compared.message"));
    HONE_ASSIGN_OR_RETURN(c.samples_ns, Samples(one.samples_ns(), "compared.samples_ns"));
    if (c.outcome == measure::Outcome::kOk) {
      HONE_RETURN_IF_ERROR(SamplesFit(c.outcome, c.samples_ns));
    }
    HONE_ASSIGN_OR_RETURN(c.kernels, KernelsOf(one));
  }
  if (r.compared.empty()) HONE_RETURN_IF_ERROR(SamplesFit(r.outcome, r.samples_ns));
  return r;
}

void FromResult(const WorkResult& r, v1::Result* wire) {
  wire->set_token(IdBytes(r.token));
  wire->set_outcome(static_cast<int>(r.outcome));
  wire->set_message(Cut(r.message, kMaxTextBytes));
  wire->mutable_samples_ns()->Assign(r.samples_ns.begin(), r.samples_ns.end());
  wire->set_hopeless(r.hopeless);
  wire->set_noisy(r.noisy);
  wire->set_build_ns(r.build_ns);
  wire->set_run_ns(r.run_ns);
  if (r.part_ns > 0) {
    wire->set_part_ns(r.part_ns);
    wire->set_part(r.part);
  }
  for (const ComparedResult& c : r.compared) {
    v1::Compared* one = wire->add_compared();
    one->set_outcome(static_cast<int>(c.outcome));
    one->set_message(Cut(c.message, kMaxTextBytes));
    one->mutable_samples_ns()->Assign(c.samples_ns.begin(), c.samples_ns.end());
    for (const KernelTimes& kernel : c.kernels) {
      v1::KernelTimes* times = one->add_kernels();
      times->set_workload(IdBytes(kernel.workload));
      times->mutable_samples_ns()->Assign(kernel.samples_ns.begin(), kernel.samples_ns.end());
    }
  }
}

absl::StatusOr<Job> FromJob(const v1::Job& wire) {
  Job job;
  HONE_RETURN_IF_ERROR(InRange(wire.kind(), 1, 3, "job.kind"));
  job.kind = static_cast<JobKind>(wire.kind());
  HONE_ASSIGN_OR_RETURN(job.workload,
                        Bounded(wire.workload(), 1, kMaxWorkloadBytes, "job.workload"));
  HONE_ASSIGN_OR_RETURN(job.target, TargetText(wire.target(), "job.target"));
  const auto traces = static_cast<size_t>(wire.traces_size());
  HONE_RETURN_IF_ERROR(AtMost(traces, kMaxTraces, "job.traces"));
  if (traces == 0 || (job.kind == JobKind::kScreen && traces != 1)) {
    return absl::InvalidArgumentError("job.traces: one for a screen, several for a comparison");
  }
  for (const std::string& trace : wire.traces()) {
    HONE_ASSIGN_OR_RETURN(job.traces.emplace_back(),
                          Bounded(trace, 0, kMaxTraceBytes, "job.traces"));
  }
  HONE_RETURN_IF_ERROR(InRange(wire.accuracy(), 0, ir::kNumAccuracyClasses - 1, "job.accuracy"));
  job.accuracy = static_cast<ir::AccuracyClass>(wire.accuracy());
  HONE_RETURN_IF_ERROR(InRange(wire.incumbent_ns(), 0, kMaxNs, "job.incumbent_ns"));
  job.incumbent_ns = wire.incumbent_ns();
  job.seed = wire.seed();
  HONE_RETURN_IF_ERROR(InRange(wire.rounds(), 0, kMaxRounds, "job.rounds"));
  job.rounds = wire.rounds();
  HONE_RETURN_IF_ERROR(InRange(wire.most_ns(), 0, kMaxNs, "job.most_ns"));
  job.most_ns = wire.most_ns();
  HONE_RETURN_IF_ERROR(InRange(wire.part_ns(), 0, kMaxNs, "job.part_ns"));
  job.part_ns = wire.part_ns();
  HONE_RETURN_IF_ERROR(RealInRange(wire.part_ratio(), 0, kMaxPartRatio, "job.part_ratio"));
  if (wire.part_ratio() > 0) job.part_ratio = wire.part_ratio();
  job.both_ways = wire.both_ways();
  return job;
}

void FromJob(const Job& job, v1::Job* wire) {
  wire->set_kind(static_cast<v1::JobKind>(job.kind));
  wire->set_workload(job.workload);
  wire->set_target(job.target);
  for (const std::string& trace : job.traces) wire->add_traces(trace);
  wire->set_accuracy(static_cast<int>(job.accuracy));
  wire->set_incumbent_ns(job.incumbent_ns);
  wire->set_seed(job.seed);
  wire->set_rounds(job.rounds);
  wire->set_most_ns(job.most_ns);
  if (job.part_ns == 0) return;
  wire->set_part_ns(job.part_ns);
  wire->set_part_ratio(job.part_ratio);
  wire->set_both_ways(job.both_ways);
}

absl::StatusOr<ServerMessage> FromGrant(const v1::Grant& wire) {
  Grant g;
  HONE_ASSIGN_OR_RETURN(g.token, IdFromBytes(wire.token(), "token"));
  HONE_ASSIGN_OR_RETURN(g.session, IdFromBytes(wire.session(), "session"));
  HONE_RETURN_IF_ERROR(InRange(wire.attempt(), 0, INT64_MAX, "attempt"));
  g.attempt = wire.attempt();
  HONE_ASSIGN_OR_RETURN(g.job, FromJob(wire.job()));
  HONE_RETURN_IF_ERROR(InRange(wire.start_by_ms(), 1, kMaxMs, "start_by_ms"));
  HONE_RETURN_IF_ERROR(InRange(wire.run_by_ms(), 1, kMaxMs, "run_by_ms"));
  g.start_by_ms = wire.start_by_ms();
  g.run_by_ms = wire.run_by_ms();
  HONE_RETURN_IF_ERROR(ArtifactsFromWire(wire, &g));
  return g;
}

absl::StatusOr<ServerMessage> FromWelcome(const v1::Welcome& wire) {
  Welcome w;
  HONE_RETURN_IF_ERROR(InRange(wire.heartbeat_ms(), 1, kMaxMs, "heartbeat_ms"));
  w.heartbeat_ms = wire.heartbeat_ms();
  for (const auto& [list, out] : {std::pair{&wire.keep(), &w.keep}, {&wire.drop(), &w.drop}}) {
    HONE_RETURN_IF_ERROR(AtMost(static_cast<size_t>(list->size()), kMaxHeld, "keep, drop"));
    for (const std::string& token : *list) {
      HONE_ASSIGN_OR_RETURN(out->emplace_back(), IdFromBytes(token, "keep, drop"));
    }
  }
  return w;
}

}  // namespace

absl::StatusOr<WorkerMessage> FromWire(const v1::WorkerMessage& wire) {
  switch (wire.kind_case()) {
    case v1::WorkerMessage::kHello: return FromHello(wire.hello());
    case v1::WorkerMessage::kHeartbeat: {
      Heartbeat h;
      HONE_ASSIGN_OR_RETURN(h.held, Held(wire.heartbeat().held()));
      HONE_RETURN_IF_ERROR(InRange(wire.heartbeat().busy_ns(), 0, INT64_MAX, "busy_ns"));
      h.busy_ns = wire.heartbeat().busy_ns();
      HONE_RETURN_IF_ERROR(InRange(wire.heartbeat().sentinel_ns(), 0, INT64_MAX, "sentinel_ns"));
      h.sentinel_ns = wire.heartbeat().sentinel_ns();
      return h;
    }
    case v1::WorkerMessage::kStarted: {
      HONE_ASSIGN_OR_RETURN(const Hash128 token, IdFromBytes(wire.started().token(), "token"));
      return Started{token};
    }
    case v1::WorkerMessage::kResult: return FromResult(wire.result());
    case v1::WorkerMessage::kReturned: {
      Returned r;
      HONE_ASSIGN_OR_RETURN(r.token, IdFromBytes(wire.returned().token(), "token"));
      HONE_ASSIGN_OR_RETURN(r.reason, Text(wire.returned().reason(), "reason"));
      return r;
    }
    case v1::WorkerMessage::kCredit:
      HONE_RETURN_IF_ERROR(InRange(wire.credit().leases(), 0, kMaxCredit, "leases"));
      return WorkerCredit{wire.credit().leases()};
    case v1::WorkerMessage::kDraining: return Draining{};
    case v1::WorkerMessage::kBuilt: return FromWire(wire.built());
    case v1::WorkerMessage::kArtifact: return FromWire(wire.artifact());
    case v1::WorkerMessage::kFetch: return FromWire(wire.fetch());
    case v1::WorkerMessage::kProbes: return FromProbes(wire.probes());
    case v1::WorkerMessage::kDeviceLost: {
      HONE_ASSIGN_OR_RETURN(std::string reason, Text(wire.device_lost().reason(), "reason"));
      return DeviceLost{std::move(reason)};
    }
    case v1::WorkerMessage::KIND_NOT_SET: break;
  }
  return absl::InvalidArgumentError("a worker's message of no known kind");
}

void ToWire(const WorkerMessage& message, v1::WorkerMessage* wire) {
  if (const auto* probes = std::get_if<Probes>(&message)) {
    ToProbes(*probes, wire->mutable_probes());
  } else if (const auto* hello = std::get_if<Hello>(&message)) {
    FromHello(*hello, wire->mutable_hello());
  } else if (const auto* heartbeat = std::get_if<Heartbeat>(&message)) {
    Held(heartbeat->held, wire->mutable_heartbeat()->mutable_held());
    wire->mutable_heartbeat()->set_busy_ns(heartbeat->busy_ns);
    wire->mutable_heartbeat()->set_sentinel_ns(heartbeat->sentinel_ns);
  } else if (const auto* started = std::get_if<Started>(&message)) {
    wire->mutable_started()->set_token(IdBytes(started->token));
  } else if (const auto* result = std::get_if<WorkResult>(&message)) {
    FromResult(*result, wire->mutable_result());
  } else if (const auto* returned = std::get_if<Returned>(&message)) {
    wire->mutable_returned()->set_token(IdBytes(returned->token));
    wire->mutable_returned()->set_reason(Cut(returned->reason, kMaxTextBytes));
  } else if (const auto* credit = std::get_if<WorkerCredit>(&message)) {
    wire->mutable_credit()->set_leases(credit->leases);
  } else if (const auto* built = std::get_if<Built>(&message)) {
    ToWire(*built, wire->mutable_built());
  } else if (const auto* chunk = std::get_if<ArtifactChunk>(&message)) {
    ToWire(*chunk, wire->mutable_artifact());
  } else if (const auto* fetch = std::get_if<Fetch>(&message)) {
    ToWire(*fetch, wire->mutable_fetch());
  } else if (const auto* lost = std::get_if<DeviceLost>(&message)) {
    wire->mutable_device_lost()->set_reason(Cut(lost->reason, kMaxTextBytes));
  } else {
    wire->mutable_draining();
  }
}

absl::StatusOr<ServerMessage> FromWire(const v1::ServerMessage& wire) {
  switch (wire.kind_case()) {
    case v1::ServerMessage::kWelcome: return FromWelcome(wire.welcome());
    case v1::ServerMessage::kGrant: return FromGrant(wire.grant());
    case v1::ServerMessage::kAcknowledgement: {
      Acknowledgement a;
      HONE_ASSIGN_OR_RETURN(a.token, IdFromBytes(wire.acknowledgement().token(), "token"));
      HONE_RETURN_IF_ERROR(InRange(wire.acknowledgement().verdict(), 1, 4, "verdict"));
      a.verdict = static_cast<Verdict>(wire.acknowledgement().verdict());
      HONE_ASSIGN_OR_RETURN(a.reason, Text(wire.acknowledgement().reason(), "reason"));
      return a;
    }
    case v1::ServerMessage::kRevoke: {
      Revoke r;
      HONE_ASSIGN_OR_RETURN(r.token, IdFromBytes(wire.revoke().token(), "token"));
      HONE_ASSIGN_OR_RETURN(r.reason, Text(wire.revoke().reason(), "reason"));
      return r;
    }
    case v1::ServerMessage::kCredit:
      HONE_RETURN_IF_ERROR(InRange(wire.credit().results(), 0, INT64_MAX, "results"));
      return ServerCredit{wire.credit().results()};
    case v1::ServerMessage::kDrain: {
      HONE_ASSIGN_OR_RETURN(std::string reason, Text(wire.drain().reason(), "reason"));
      return Drain{std::move(reason)};
    }
    case v1::ServerMessage::kArtifact: return FromWire(wire.artifact());
    case v1::ServerMessage::kProbe: {
      HONE_ASSIGN_OR_RETURN(std::string reason, Text(wire.probe().reason(), "reason"));
      return Probe{std::move(reason)};
    }
    case v1::ServerMessage::KIND_NOT_SET: break;
  }
  return absl::InvalidArgumentError("a server's message of no known kind");
}

void ToWire(const ServerMessage& message, v1::ServerMessage* wire) {
  if (const auto* probe = std::get_if<Probe>(&message)) {
    wire->mutable_probe()->set_reason(Cut(probe->reason, kMaxTextBytes));
  } else if (const auto* welcome = std::get_if<Welcome>(&message)) {
    wire->mutable_welcome()->set_heartbeat_ms(welcome->heartbeat_ms);
    for (const Hash128& t : welcome->keep) wire->mutable_welcome()->add_keep(IdBytes(t));
    for (const Hash128& t : welcome->drop) wire->mutable_welcome()->add_drop(IdBytes(t));
  } else if (const auto* grant = std::get_if<Grant>(&message)) {
    v1::Grant* out = wire->mutable_grant();
    out->set_token(IdBytes(grant->token));
    out->set_session(IdBytes(grant->session));
    out->set_attempt(grant->attempt);
    FromJob(grant->job, out->mutable_job());
    out->set_start_by_ms(grant->start_by_ms);
    out->set_run_by_ms(grant->run_by_ms);
    ArtifactsToWire(*grant, out);
  } else if (const auto* ack = std::get_if<Acknowledgement>(&message)) {
    wire->mutable_acknowledgement()->set_token(IdBytes(ack->token));
    wire->mutable_acknowledgement()->set_verdict(static_cast<v1::Verdict>(ack->verdict));
    wire->mutable_acknowledgement()->set_reason(Cut(ack->reason, kMaxTextBytes));
  } else if (const auto* revoke = std::get_if<Revoke>(&message)) {
    wire->mutable_revoke()->set_token(IdBytes(revoke->token));
    wire->mutable_revoke()->set_reason(Cut(revoke->reason, kMaxTextBytes));
  } else if (const auto* credit = std::get_if<ServerCredit>(&message)) {
    wire->mutable_credit()->set_results(credit->results);
  } else if (const auto* chunk = std::get_if<ArtifactChunk>(&message)) {
    ToWire(*chunk, wire->mutable_artifact());
  } else {
    wire->mutable_drain()->set_reason(Cut(std::get<Drain>(message).reason, kMaxTextBytes));
  }
}

absl::StatusOr<DeviceInfo> FromWire(const v1::DeviceInfo& wire) {
  DeviceInfo d;
  HONE_ASSIGN_OR_RETURN(d.worker, Name(wire.worker(), "worker"));
  HONE_RETURN_IF_ERROR(InRange(wire.role(), 0, 3, "role"));
  if (wire.role() != v1::ROLE_UNSPECIFIED) {
    d.role = static_cast<WorkerRole>(wire.role());
    HONE_ASSIGN_OR_RETURN(d.device, Device(wire.device()));
  } else {
    HONE_ASSIGN_OR_RETURN(d.device.name, Name(wire.device().name(), "device.name"));
  }
  HONE_RETURN_IF_ERROR(InRange(wire.state(), 1, 5, "state"));
  d.state = static_cast<db::DeviceState>(wire.state() - 1);
  HONE_ASSIGN_OR_RETURN(d.reason, Text(wire.reason(), "reason"));
  d.connected = wire.connected();
  d.sandboxed = wire.sandboxed();
  d.leases = wire.leases();
  d.busy_ns = wire.busy_ns();
  d.results = wire.results();
  if (wire.has_probes()) {
    HONE_ASSIGN_OR_RETURN(d.probes, FromProbes(wire.probes()));
  }
  HONE_ASSIGN_OR_RETURN(d.program_version, Text(wire.program_version(), "program_version"));
  HONE_ASSIGN_OR_RETURN(d.labels, Labels(wire.labels()));
  HONE_RETURN_IF_ERROR(InRange(wire.since_ms(), 0, kMaxMs, "since_ms"));
  d.since_ms = wire.since_ms();
  return d;
}

void ToWire(const DeviceInfo& d, v1::DeviceInfo* wire) {
  wire->set_worker(d.worker);
  Device(d.device, wire->mutable_device());
  wire->set_state(static_cast<v1::DeviceState>(static_cast<int>(d.state) + 1));
  wire->set_reason(Cut(d.reason, kMaxTextBytes));
  wire->set_connected(d.connected);
  wire->set_sandboxed(d.sandboxed);
  wire->set_leases(d.leases);
  wire->set_busy_ns(d.busy_ns);
  wire->set_results(d.results);
  if (d.probes) ToProbes(*d.probes, wire->mutable_probes());
  wire->set_program_version(Cut(d.program_version, kMaxTextBytes));
  wire->set_since_ms(d.since_ms);
  if (d.role) wire->set_role(static_cast<v1::Role>(*d.role));
  Labels(d.labels, wire->mutable_labels());
}

std::string ResultDigest(const WorkResult& r) {
  std::string text = fmt::format(
      "result 1\n{}\n{}:{}\n{}\n{} {} {} {}\n", static_cast<int>(r.outcome), r.message.size(),
      r.message, fmt::join(r.samples_ns, " "), r.hopeless, r.noisy, r.build_ns, r.run_ns);
  if (r.part_ns > 0) text += fmt::format("part {} {}\n", r.part_ns, r.part);
  for (const ComparedResult& c : r.compared) {
    text += fmt::format("{} {}:{} {}\n", static_cast<int>(c.outcome), c.message.size(), c.message,
                        fmt::join(c.samples_ns, " "));
    for (const KernelTimes& kernel : c.kernels) {
      text +=
          fmt::format("kernel {} {}\n", kernel.workload.ToHex(), fmt::join(kernel.samples_ns, " "));
    }
  }
  return Sha256Hex(text);
}

}  // namespace hone::proto
