#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "db/database.h"
#include "proto/farm_messages.h"

namespace hone::v1 {
class DeviceInfo;
class FindRecordsRequest;
class ModelVerdict;
class Record;
class ServerMessage;
class SessionEvent;
class SessionInfo;
class SessionSpec;
class WorkerMessage;
}  // namespace hone::v1

// The only code that knows both the wire and the farm's plain values. FromWire trusts nothing: what
// is absent, unknown, out of range or larger than limits.h is kInvalidArgument, which names the
// field. ToWire cuts texts to their bound and replaces what is not UTF-8.
namespace hone::proto {

absl::StatusOr<WorkerMessage> FromWire(const v1::WorkerMessage& wire);
void ToWire(const WorkerMessage& message, v1::WorkerMessage* wire);

absl::StatusOr<ServerMessage> FromWire(const v1::ServerMessage& wire);
void ToWire(const ServerMessage& message, v1::ServerMessage* wire);

absl::StatusOr<SessionSpec> FromWire(const v1::SessionSpec& wire);
void ToWire(const SessionSpec& spec, v1::SessionSpec* wire);
/// The bytes that honed stores of a session, and the digest by which an equal request joins it.
std::string EncodeSpec(const SessionSpec& spec);
absl::StatusOr<SessionSpec> DecodeSpec(const std::string& bytes);
std::string SpecDigest(const SessionSpec& spec);

absl::StatusOr<SessionInfo> FromWire(const v1::SessionInfo& wire);
void ToWire(const SessionInfo& info, v1::SessionInfo* wire);

absl::StatusOr<SessionEvent> FromWire(const v1::SessionEvent& wire);
void ToWire(const SessionEvent& event, v1::SessionEvent* wire);

absl::StatusOr<FindRecords> FromWire(const v1::FindRecordsRequest& wire);
void ToWire(const FindRecords& request, v1::FindRecordsRequest* wire);
absl::StatusOr<db::ModelVerdict> FromWire(const v1::ModelVerdict& wire);
void ToWire(const db::ModelVerdict& verdict, v1::ModelVerdict* wire);

absl::StatusOr<db::RankedRecord> FromWire(const v1::Record& wire);
void ToWire(const db::RankedRecord& record, v1::Record* wire);

absl::StatusOr<DeviceInfo> FromWire(const v1::DeviceInfo& wire);
void ToWire(const DeviceInfo& info, v1::DeviceInfo* wire);

/// 16 bytes, `high` first, and back.
std::string IdBytes(const Hash128& id);
absl::StatusOr<Hash128> IdFromBytes(std::string_view bytes, std::string_view field);

/// Digest of everything in a result but its token: equal content, equal digest.
std::string ResultDigest(const WorkResult& result);

}  // namespace hone::proto
