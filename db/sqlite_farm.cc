#include <utility>

#include "fmt/core.h"

#include "db/farm_store.h"
#include "db/sqlite_log_file.h"

namespace hone::db {
namespace {

constexpr char kLeaseColumns[] =
    "token, session, attempt, worker, device, instance, state, content, charge_ns";
constexpr char kSessionColumns[] =
    "id, owner, project, digest, spec, state, reason, device_class, fingerprint, created_ms";

constexpr char kSuspectColumns[] = "session, attempt, losses, condemned, farm_suspects.reason";

FarmLease LeaseOfRow(const Query& row) {
  return {.token = row.Hash(0),
          .session = row.Hash(1),
          .attempt = row.Int(2),
          .worker = row.Text(3),
          .device = row.Text(4),
          .instance = row.Hash(5),
          .state = static_cast<LeaseState>(row.Int(6)),
          .content = row.Text(7),
          .charge_ns = row.Int(8)};
}

FarmSession SessionOfFarmRow(const Query& row) {
  return {.id = row.Hash(0),
          .owner = row.Text(1),
          .project = row.Text(2),
          .digest = row.Text(3),
          .spec = row.Text(4),
          .state = static_cast<SessionState>(row.Int(5)),
          .reason = row.Text(6),
          .device_class = row.Text(7),
          .fingerprint = row.Text(8),
          .created_ms = row.Int(9)};
}

FarmSuspect SuspectOfRow(const Query& row) {
  return {.session = row.Hash(0),
          .attempt = row.Int(1),
          .losses = static_cast<int>(row.Int(2)),
          .condemned = row.Int(3) != 0,
          .reason = row.Text(4)};
}

template <typename T, typename Read>
absl::StatusOr<std::vector<T>> AllRows(absl::StatusOr<Query> query, const Read& read) {
  HONE_RETURN_IF_ERROR(query.status());
  std::vector<T> rows;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, query->Next());
    if (!row) return rows;
    rows.push_back(read(*query));
  }
}

template <typename T, typename Read>
absl::StatusOr<std::optional<T>> OneRow(absl::StatusOr<Query> query, const Read& read) {
  HONE_RETURN_IF_ERROR(query.status());
  HONE_ASSIGN_OR_RETURN(const bool row, query->Next());
  if (!row) return std::optional<T>();
  return std::optional<T>(read(*query));
}

class SqliteFarmStore final : public FarmStore {
 public:
  explicit SqliteFarmStore(SqliteLogFile& log) : log_(log), connection_(log.connection()) {}

  absl::Status AddStart(uint64_t start, int64_t started_ms) override {
    return connection_.Do("INSERT INTO farm_starts (start, started_ms) VALUES (?, ?)",
                          static_cast<int64_t>(start), started_ms);
  }
  absl::StatusOr<FarmState> Load() override;
  absl::StatusOr<std::vector<absl::Status>> Commit(
      const std::vector<const FarmUnit*>& units) override;
  absl::Status CheckInPlace() override { return connection_.CheckInPlace(); }
  absl::StatusOr<std::optional<FarmLease>> FindLease(const Hash128& token) override {
    return OneRow<FarmLease>(
        connection_.Run(fmt::format("SELECT {} FROM farm_leases WHERE token = ?", kLeaseColumns),
                        token),
        LeaseOfRow);
  }
  absl::StatusOr<std::optional<FarmRequest>> FindRequest(const std::string& caller,
                                                         const std::string& id) override {
    return OneRow<FarmRequest>(
        connection_.Run("SELECT caller, id, digest, answer, created_ms FROM farm_requests WHERE "
                        "caller = ? AND id = ?",
                        caller, id),
        [](const Query& row) {
          return FarmRequest{row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Int(4)};
        });
  }
  absl::StatusOr<std::optional<FarmSession>> FindFarmSession(const Hash128& id) override {
    return OneRow<FarmSession>(
        connection_.Run(fmt::format("SELECT {} FROM farm_sessions WHERE id = ?", kSessionColumns),
                        id),
        SessionOfFarmRow);
  }
  absl::StatusOr<std::vector<FarmSession>> LatestSessions(
      int limit, const std::string& owner, const std::optional<Hash128>& after) override {
    return AllRows<FarmSession>(
        connection_.Run("SELECT id, owner, project, digest, '', state, reason, device_class, "
                        "fingerprint, created_ms FROM farm_sessions WHERE (?1 = '' OR owner = ?1) "
                        "AND (?3 IS NULL OR number < (SELECT number FROM farm_sessions WHERE id = "
                        "?3)) ORDER BY number DESC LIMIT ?2",
                        owner, limit, after),
        SessionOfFarmRow);
  }
  absl::StatusOr<std::vector<FarmSession>> OpenAndLatestSessions(int ended) override {
    return AllRows<FarmSession>(
        connection_.Run("SELECT id, owner, project, digest, '', state, reason, device_class, "
                        "fingerprint, created_ms FROM farm_sessions WHERE state <= 2 OR number IN "
                        "(SELECT number FROM farm_sessions WHERE state > 2 ORDER BY number DESC "
                        "LIMIT ?) ORDER BY number DESC",
                        ended),
        SessionOfFarmRow);
  }
  absl::StatusOr<std::optional<FarmSuspect>> FindSuspect(const Hash128& session,
                                                         int64_t attempt) override {
    return OneRow<FarmSuspect>(
        connection_.Run(
            fmt::format("SELECT {} FROM farm_suspects WHERE session = ? AND attempt = ?",
                        kSuspectColumns),
            session, attempt),
        SuspectOfRow);
  }
  absl::StatusOr<int64_t> CountAnswers(const Hash128& session, int64_t below) override {
    return connection_.Number(
        "SELECT count(*) FROM farm_leases WHERE session = ? AND attempt < ? AND state = 3", session,
        below);
  }
  absl::StatusOr<std::vector<int64_t>> AnswersFrom(const Hash128& session, int64_t first) override {
    return AllRows<int64_t>(
        connection_.Run("SELECT attempt FROM farm_leases WHERE session = ? AND attempt >= ? AND "
                        "state = 3",
                        session, first),
        [](const Query& row) { return row.Int(0); });
  }
  absl::StatusOr<std::vector<FarmLease>> LeasesOf(const Hash128& session) override {
    return AllRows<FarmLease>(
        connection_.Run(fmt::format("SELECT {} FROM farm_leases WHERE session = ?", kLeaseColumns),
                        session),
        LeaseOfRow);
  }
  absl::StatusOr<std::vector<FarmAudit>> Audit(int limit) override {
    return AllRows<FarmAudit>(
        connection_.Run("SELECT at_ms, actor, action, subject, detail FROM farm_audit "
                        "ORDER BY number DESC LIMIT ?",
                        limit),
        [](const Query& row) {
          return FarmAudit{row.Int(0), row.Text(1), row.Text(2), row.Text(3), row.Text(4)};
        });
  }
  absl::Status ForgetRequests(int64_t before_ms) override {
    return connection_.Do("DELETE FROM farm_requests WHERE created_ms < ?", before_ms);
  }

 private:
  absl::Status Apply(const FarmUnit& unit);
  absl::Status Do(const AddFarmSession& change);
  absl::Status Do(const SetFarmSession& change);
  absl::Status Do(const AddFarmLease& change);
  absl::Status Do(const StartFarmLease& change);
  absl::Status Do(const EndFarmLease& change);
  absl::Status Do(const PutFarmSuspect& change);
  absl::Status Do(const DropFarmSuspect& change);
  absl::Status Do(const PutFarmDevice& change);
  absl::Status Do(const PutFarmProject& change);
  absl::Status Do(const RevokeFarmIdentity& change);
  absl::Status Do(const FarmRequest& change);
  absl::Status Do(const FarmAudit& change);

  /// The last change met exactly one row.
  absl::Status One(std::string_view what) const {
    if (sqlite3_changes(connection_.handle()) == 1) return absl::OkStatus();
    return absl::FailedPreconditionError(fmt::format("{}: no such row in that state", what));
  }

  SqliteLogFile& log_;
  Connection& connection_;
};

absl::StatusOr<FarmState> SqliteFarmStore::Load() {
  FarmState state;
  HONE_ASSIGN_OR_RETURN(
      state.sessions,
      AllRows<FarmSession>(
          connection_.Run(fmt::format(
              "SELECT {} FROM farm_sessions WHERE state <= 2 ORDER BY number", kSessionColumns)),
          SessionOfFarmRow));
  HONE_ASSIGN_OR_RETURN(
      state.leases,
      AllRows<FarmLease>(
          connection_.Run(fmt::format("SELECT {} FROM farm_leases WHERE state <= 2 ORDER BY token",
                                      kLeaseColumns)),
          LeaseOfRow));
  HONE_ASSIGN_OR_RETURN(
      state.suspects,
      AllRows<FarmSuspect>(
          connection_.Run(
              fmt::format("SELECT {} FROM farm_suspects JOIN farm_sessions ON id = session WHERE "
                          "state <= 2 AND attempt >= 0",
                          kSuspectColumns)),
          SuspectOfRow));
  HONE_ASSIGN_OR_RETURN(
      state.projects,
      AllRows<FarmProject>(connection_.Run("SELECT project, share, charged_ns FROM farm_projects"),
                           [](const Query& row) {
                             return FarmProject{row.Text(0), row.Int(1), row.Int(2)};
                           }));
  HONE_ASSIGN_OR_RETURN(
      state.devices,
      AllRows<FarmDevice>(
          connection_.Run("SELECT worker, device, state, reason FROM farm_devices WHERE state > 0"),
          [](const Query& row) {
            return FarmDevice{row.Text(0), row.Text(1), static_cast<DeviceState>(row.Int(2)),
                              row.Text(3)};
          }));
  HONE_ASSIGN_OR_RETURN(state.revoked,
                        AllRows<std::string>(connection_.Run("SELECT identity FROM farm_revoked"),
                                             [](const Query& row) { return row.Text(0); }));
  return state;
}

absl::Status SqliteFarmStore::Do(const AddFarmSession& change) {
  const FarmSession& s = change.session;
  HONE_RETURN_IF_ERROR(connection_.Do(
      "INSERT INTO farm_projects VALUES (?, 1, 0) ON CONFLICT (project) DO NOTHING", s.project));
  return connection_.Do(
      fmt::format("INSERT INTO farm_sessions ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  kSessionColumns),
      s.id, s.owner, s.project, s.digest, Query::BlobBytes{s.spec}, static_cast<int>(s.state),
      s.reason, s.device_class, s.fingerprint, s.created_ms);
}

absl::Status SqliteFarmStore::Do(const SetFarmSession& change) {
  HONE_RETURN_IF_ERROR(
      connection_.Do("UPDATE farm_sessions SET state = ?1, reason = ?2, "
                     "device_class = CASE ?3 WHEN '' THEN device_class ELSE ?3 END, "
                     "fingerprint = CASE ?4 WHEN '' THEN fingerprint ELSE ?4 END WHERE id = ?5 AND "
                     "(state < 2 OR (state = 2 AND ?1 IN (2, 4)))",
                     static_cast<int>(change.state), change.reason, change.device_class,
                     change.fingerprint, change.id));
  return One("session");
}

absl::Status SqliteFarmStore::Do(const AddFarmLease& change) {
  const FarmLease& l = change.lease;
  return connection_.Do(
      fmt::format("INSERT INTO farm_leases ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", kLeaseColumns),
      l.token, l.session, l.attempt, l.worker, l.device, l.instance, static_cast<int>(l.state),
      l.content, l.charge_ns);
}

absl::Status SqliteFarmStore::Do(const StartFarmLease& change) {
  HONE_RETURN_IF_ERROR(connection_.Do(
      "UPDATE farm_leases SET state = 1 WHERE token = ? AND state = 0", change.token));
  return One("lease");
}

absl::Status SqliteFarmStore::Do(const EndFarmLease& change) {
  HONE_RETURN_IF_ERROR(connection_.Do(
      "UPDATE farm_leases SET state = ?, content = ?, charge_ns = ? WHERE token = ? AND state <= 2",
      static_cast<int>(change.state), change.content, change.charge_ns, change.token));
  HONE_RETURN_IF_ERROR(One("lease"));
  if (change.charge_ns == 0) return absl::OkStatus();
  return connection_.Do(
      "UPDATE farm_projects SET charged_ns = charged_ns + ? WHERE project = (SELECT project FROM "
      "farm_sessions JOIN farm_leases ON session = id WHERE token = ?)",
      change.charge_ns, change.token);
}

absl::Status SqliteFarmStore::Do(const PutFarmSuspect& change) {
  const FarmSuspect& s = change.suspect;
  return connection_.Do("INSERT OR REPLACE INTO farm_suspects VALUES (?, ?, ?, ?, ?)", s.session,
                        s.attempt, s.losses, s.condemned, s.reason);
}

absl::Status SqliteFarmStore::Do(const DropFarmSuspect& change) {
  HONE_RETURN_IF_ERROR(connection_.Do("DELETE FROM farm_suspects WHERE session = ? AND attempt = ?",
                                      change.session, change.attempt));
  return One("suspect");
}

absl::Status SqliteFarmStore::Do(const PutFarmDevice& change) {
  const FarmDevice& d = change.device;
  return connection_.Do("INSERT OR REPLACE INTO farm_devices VALUES (?, ?, ?, ?)", d.worker,
                        d.device, static_cast<int>(d.state), d.reason);
}

absl::Status SqliteFarmStore::Do(const PutFarmProject& change) {
  return connection_.Do(
      "INSERT INTO farm_projects VALUES (?1, ?2, 0) ON CONFLICT (project) DO UPDATE SET share = ?2",
      change.project, change.share);
}

absl::Status SqliteFarmStore::Do(const RevokeFarmIdentity& change) {
  return connection_.Do("INSERT INTO farm_revoked VALUES (?, ?) ON CONFLICT (identity) DO NOTHING",
                        change.identity, change.since_ms);
}

absl::Status SqliteFarmStore::Do(const FarmRequest& change) {
  return connection_.Do("INSERT INTO farm_requests VALUES (?, ?, ?, ?, ?)", change.caller,
                        change.id, change.digest, Query::BlobBytes{change.answer},
                        change.created_ms);
}

absl::Status SqliteFarmStore::Do(const FarmAudit& change) {
  return connection_.Do(
      "INSERT INTO farm_audit (at_ms, actor, action, subject, detail) VALUES (?, ?, ?, ?, ?)",
      change.at_ms, change.actor, change.action, change.subject, change.detail);
}

absl::Status SqliteFarmStore::Apply(const FarmUnit& unit) {
  // Facts first: a farm's row may name them, never the other way round.
  if (!unit.facts.empty()) {
    HONE_RETURN_IF_ERROR(log_.AppendInTransaction(unit.facts, Origin::kHere).status());
  }
  for (const FarmChange& change : unit.changes) {
    HONE_RETURN_IF_ERROR(std::visit([this](const auto& c) { return Do(c); }, change));
  }
  return absl::OkStatus();
}

// Whether the unit is at fault, not the log.
bool IsRefusal(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kFailedPrecondition ||
         status.code() == absl::StatusCode::kAlreadyExists;
}

absl::StatusOr<std::vector<absl::Status>> SqliteFarmStore::Commit(
    const std::vector<const FarmUnit*>& units) {
  HONE_ASSIGN_OR_RETURN(Transaction transaction,
                        Transaction::Begin(connection_, "BEGIN IMMEDIATE"));
  std::vector<absl::Status> results;
  for (const FarmUnit* unit : units) {
    HONE_RETURN_IF_ERROR(connection_.Do("SAVEPOINT unit"));
    absl::Status applied = Apply(*unit);
    if (!applied.ok()) {
      if (!IsRefusal(applied)) return applied;
      HONE_RETURN_IF_ERROR(connection_.Do("ROLLBACK TO unit"));
    }
    HONE_RETURN_IF_ERROR(connection_.Do("RELEASE unit"));
    results.push_back(std::move(applied));
  }
  HONE_RETURN_IF_ERROR(transaction.Commit());
  return results;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FarmStore>> FarmStore::Open(LogFile& log) {
  auto* file = dynamic_cast<SqliteLogFile*>(&log);
  HONE_CHECK(file != nullptr) << "a farm's log is a file";
  return std::unique_ptr<FarmStore>(new SqliteFarmStore(*file));
}

}  // namespace hone::db
