#pragma once

#include "absl/status/statusor.h"

#include "proto/worker_messages.h"

namespace hone::v1 {
class ArtifactChunk;
class Built;
class Fetch;
class Grant;
}  // namespace hone::v1

// The part of convert.h that is about artifacts; for convert.cc alone.
namespace hone::proto {

absl::StatusOr<Built> FromWire(const v1::Built& wire);
void ToWire(const Built& built, v1::Built* wire);

absl::StatusOr<ArtifactChunk> FromWire(const v1::ArtifactChunk& wire);
void ToWire(const ArtifactChunk& chunk, v1::ArtifactChunk* wire);

absl::StatusOr<Fetch> FromWire(const v1::Fetch& wire);
void ToWire(const Fetch& fetch, v1::Fetch* wire);

/// What a Grant says beside its job: its kind, what is wanted of a builder, what a runner gets.
/// `grant->job` is filled in before.
absl::Status ArtifactsFromWire(const v1::Grant& wire, Grant* grant);
void ArtifactsToWire(const Grant& grant, v1::Grant* wire);

}  // namespace hone::proto
