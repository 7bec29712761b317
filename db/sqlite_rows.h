#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "db/database.h"
#include "db/sqlite_connection.h"

// Rows to facts and samples to bytes. The readers check nothing but what a cast needs; a fact is as
// it was written when its ContentHash is the stored one.
namespace hone::db {

/// SELECT … FROM … of one kind of fact, to be followed by WHERE; the tables' aliases are r
/// (records), a (attempts), v (values of Traces), e (events), s (sessions), w (workloads), t
/// (targets), d (devices).
extern const char kSelectRecords[];
extern const char kSelectAttempts[];
extern const char kSelectValues[];
extern const char kSelectEvents[];
extern const char kSelectSessions[];
extern const char kSelectWorkloads[];

/// The column of each that has the row's place in its table: sequence, or rowid.
inline constexpr int kPlaceInRecords = 20;
inline constexpr int kPlaceInAttempts = 17;
inline constexpr int kPlaceInValues = 5;
inline constexpr int kPlaceInEvents = 4;
inline constexpr int kPlaceInSessions = 7;
inline constexpr int kPlaceInWorkloads = 5;

/// A fact as read, and the content hash stored beside it.
template <typename T>
struct StoredFact {
  T fact;
  Hash128 content;
  bool merged = false;
};

StoredFact<TuningRecord> RecordOfRow(const Query& row);  ///< without samples
StoredFact<Attempt> AttemptOfRow(const Query& row);
StoredFact<TraceValues> ValuesOfRow(const Query& row);
StoredFact<Event> EventOfRow(const Query& row);
StoredFact<Session> SessionOfRow(const Query& row);
StoredFact<WorkloadRow> WorkloadOfRow(const Query& row);

/// Whether a log has values of Traces: those of schemas before 3 have none.
absl::StatusOr<bool> HasValues(Connection& connection);

/// kDataLoss unless the fact has the stored content hash.
template <typename T>
absl::Status CheckContent(const StoredFact<T>& stored, const std::string& kind, const Hash128& id,
                          const std::string& path);
absl::Status DamagedFact(const std::string& kind, const Hash128& id, const std::string& path);

template <typename T>
absl::Status CheckContent(const StoredFact<T>& stored, const std::string& kind, const Hash128& id,
                          const std::string& path) {
  return ContentHash(stored.fact) == stored.content ? absl::OkStatus()
                                                    : DamagedFact(kind, id, path);
}

/// A checked record as it ranks; `builder_version` as in RecordQuery.
absl::StatusOr<RankedRecord> RankedRecordOfRow(const Query& row, const std::string& builder_version,
                                               const std::string& path);

/// Little-endian f64 each.
std::string EncodeSamples(const std::vector<double>& samples_ns);
std::vector<double> DecodeSamples(std::string_view bytes);

}  // namespace hone::db
