#include "proto/convert_artifact.h"

#include <algorithm>
#include <set>

#include "fmt/format.h"

#include "base/status.h"
#include "hone/v1/farm.pb.h"
#include "proto/convert.h"
#include "proto/field_check.h"
#include "proto/limits.h"

namespace hone::proto {
namespace {

absl::StatusOr<std::string> Sha256Text(const std::string& text, std::string_view field) {
  constexpr size_t kDigits = 64;
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() == kDigits && std::ranges::all_of(text, is_digit)) return text;
  return absl::InvalidArgumentError(fmt::format("{}: not 64 lower-case hexadecimal digits", field));
}

absl::StatusOr<Artifact> OneFromWire(const v1::Artifact& wire) {
  Artifact a;
  HONE_RETURN_IF_ERROR(InRange(wire.outcome(), 0, measure::kNumOutcomes - 1, "artifact.outcome"));
  a.outcome = static_cast<measure::Outcome>(wire.outcome());
  HONE_ASSIGN_OR_RETURN(a.message, Text(wire.message(), "artifact.message"));
  if (a.outcome == measure::Outcome::kOk) {
    HONE_ASSIGN_OR_RETURN(a.sha256, Sha256Text(wire.sha256(), "artifact.sha256"));
    HONE_RETURN_IF_ERROR(InRange(wire.bytes(), 1, kMaxPackageBytes, "artifact.bytes"));
  } else if (!wire.sha256().empty() || wire.bytes() != 0) {
    return absl::InvalidArgumentError("artifact.sha256: of what could not be built");
  }
  a.bytes = wire.bytes();
  return a;
}

void OneToWire(const Artifact& a, v1::Artifact* wire) {
  wire->set_sha256(a.sha256);
  wire->set_bytes(a.bytes);
  wire->set_outcome(static_cast<int>(a.outcome));
  wire->set_message(Cut(a.message, kMaxTextBytes));
}

template <typename List>
absl::StatusOr<std::vector<Artifact>> AllFromWire(const List& wire) {
  HONE_RETURN_IF_ERROR(AtMost(static_cast<size_t>(wire.size()), kMaxArtifacts, "artifacts"));
  std::vector<Artifact> all;
  for (const v1::Artifact& one : wire) {
    HONE_ASSIGN_OR_RETURN(all.emplace_back(), OneFromWire(one));
  }
  return all;
}

}  // namespace

absl::StatusOr<Built> FromWire(const v1::Built& wire) {
  Built b;
  HONE_ASSIGN_OR_RETURN(b.token, IdFromBytes(wire.token(), "token"));
  HONE_ASSIGN_OR_RETURN(b.artifacts, AllFromWire(wire.artifacts()));
  HONE_RETURN_IF_ERROR(InRange(wire.build_ns(), 0, kMaxNs, "build_ns"));
  b.build_ns = wire.build_ns();
  return b;
}

void ToWire(const Built& b, v1::Built* wire) {
  wire->set_token(IdBytes(b.token));
  for (const Artifact& a : b.artifacts) OneToWire(a, wire->add_artifacts());
  wire->set_build_ns(b.build_ns);
}

absl::StatusOr<ArtifactChunk> FromWire(const v1::ArtifactChunk& wire) {
  ArtifactChunk c;
  HONE_ASSIGN_OR_RETURN(c.token, IdFromBytes(wire.token(), "token"));
  HONE_ASSIGN_OR_RETURN(c.sha256, Sha256Text(wire.sha256(), "sha256"));
  HONE_RETURN_IF_ERROR(InRange(wire.total_bytes(), 1, kMaxPackageBytes, "total_bytes"));
  c.total_bytes = wire.total_bytes();
  HONE_RETURN_IF_ERROR(InRange(wire.offset(), 0, c.total_bytes - 1, "offset"));
  c.offset = wire.offset();
  HONE_ASSIGN_OR_RETURN(c.data, Bounded(wire.data(), 1, kArtifactChunkBytes, "data"));
  if (static_cast<int64_t>(c.data.size()) > c.total_bytes - c.offset) {
    return absl::InvalidArgumentError("data: goes on behind the end of the artifact");
  }
  return c;
}

void ToWire(const ArtifactChunk& c, v1::ArtifactChunk* wire) {
  wire->set_token(IdBytes(c.token));
  wire->set_sha256(c.sha256);
  wire->set_total_bytes(c.total_bytes);
  wire->set_offset(c.offset);
  wire->set_data(c.data);
}

absl::StatusOr<Fetch> FromWire(const v1::Fetch& wire) {
  Fetch f;
  HONE_ASSIGN_OR_RETURN(f.token, IdFromBytes(wire.token(), "token"));
  HONE_ASSIGN_OR_RETURN(f.sha256, Sha256Text(wire.sha256(), "sha256"));
  HONE_RETURN_IF_ERROR(InRange(wire.offset(), 0, kMaxPackageBytes - 1, "offset"));
  f.offset = wire.offset();
  return f;
}

void ToWire(const Fetch& f, v1::Fetch* wire) {
  wire->set_token(IdBytes(f.token));
  wire->set_sha256(f.sha256);
  wire->set_offset(f.offset);
}

absl::Status ArtifactsFromWire(const v1::Grant& wire, Grant* grant) {
  HONE_RETURN_IF_ERROR(InRange(wire.kind(), 0, 3, "kind"));
  if (wire.kind() != v1::LEASE_KIND_UNSPECIFIED) grant->kind = static_cast<LeaseKind>(wire.kind());
  HONE_ASSIGN_OR_RETURN(grant->artifacts, AllFromWire(wire.artifacts()));
  const size_t all = grant->job.traces.size() + 1;
  if (grant->job.kind == JobKind::kModel && grant->kind != LeaseKind::kRun) {
    return absl::InvalidArgumentError("kind: models are run, and nothing is built for them");
  }
  const bool run = grant->kind == LeaseKind::kRun;
  if (grant->artifacts.size() != (run ? all : 0)) {
    return absl::InvalidArgumentError(fmt::format(
        "artifacts: {} for {} traces and the default schedule", grant->artifacts.size(), all - 1));
  }
  std::set<int> wanted;
  for (const int position : wire.wanted()) {
    HONE_RETURN_IF_ERROR(InRange(position, 0, static_cast<int64_t>(all) - 1, "wanted"));
    if (!wanted.insert(position).second) {
      return absl::InvalidArgumentError(fmt::format("wanted: {} twice", position));
    }
    grant->wanted.push_back(position);
  }
  if (wanted.empty() == (grant->kind == LeaseKind::kBuild)) {
    return absl::InvalidArgumentError("wanted: of a lease to build, and of no other");
  }
  return absl::OkStatus();
}

void ArtifactsToWire(const Grant& grant, v1::Grant* wire) {
  wire->set_kind(static_cast<v1::LeaseKind>(grant.kind));
  for (const int position : grant.wanted) wire->add_wanted(position);
  for (const Artifact& a : grant.artifacts) OneToWire(a, wire->add_artifacts());
}

}  // namespace hone::proto
