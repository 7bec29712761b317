#include "db/migrations/migration.h"

namespace hone::db {

// The state of a farm (docs/formats/farm.md), beside the facts so that a result and the end of its
// lease are one transaction. Not facts: snapshots and merges leave these tables out. States are
// the numbers of db/farm_store.h.
const char kMigration002[] = R"sql(
CREATE TABLE farm_starts (
  number INTEGER PRIMARY KEY,
  start INTEGER NOT NULL UNIQUE,
  started_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE farm_sessions (
  number INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  owner TEXT NOT NULL,
  project TEXT NOT NULL,
  digest TEXT NOT NULL,
  spec BLOB NOT NULL,
  state INTEGER NOT NULL,
  reason TEXT NOT NULL,
  device_class TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX farm_sessions_by_state ON farm_sessions (state);

CREATE TABLE farm_leases (
  token BLOB PRIMARY KEY CHECK (length(token) = 16),
  session BLOB NOT NULL REFERENCES farm_sessions (id),
  attempt INTEGER NOT NULL,
  worker TEXT NOT NULL,
  device TEXT NOT NULL,
  instance BLOB NOT NULL CHECK (length(instance) = 16),
  state INTEGER NOT NULL,
  content TEXT NOT NULL,
  charge_ns INTEGER NOT NULL CHECK (charge_ns >= 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX farm_open_leases ON farm_leases (session) WHERE state <= 2;
CREATE UNIQUE INDEX farm_answers ON farm_leases (session, attempt) WHERE state = 3;

CREATE TABLE farm_suspects (
  session BLOB NOT NULL REFERENCES farm_sessions (id),
  attempt INTEGER NOT NULL,
  losses INTEGER NOT NULL CHECK (losses > 0),
  condemned INTEGER NOT NULL CHECK (condemned IN (0, 1)),
  reason TEXT NOT NULL,
  PRIMARY KEY (session, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE farm_projects (
  project TEXT PRIMARY KEY,
  share INTEGER NOT NULL CHECK (share > 0),
  charged_ns INTEGER NOT NULL CHECK (charged_ns >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE farm_requests (
  caller TEXT NOT NULL,
  id TEXT NOT NULL,
  digest TEXT NOT NULL,
  answer BLOB NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (caller, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX farm_requests_by_age ON farm_requests (created_ms);

CREATE TABLE farm_devices (
  worker TEXT NOT NULL,
  device TEXT NOT NULL,
  state INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (worker, device)
) STRICT, WITHOUT ROWID;

CREATE TABLE farm_revoked (
  identity TEXT PRIMARY KEY,
  since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE farm_audit (
  number INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE TRIGGER farm_audit_stays BEFORE UPDATE ON farm_audit
  BEGIN SELECT RAISE(ABORT, 'the audit never changes'); END;
CREATE TRIGGER farm_audit_remains BEFORE DELETE ON farm_audit
  BEGIN SELECT RAISE(ABORT, 'the audit is never deleted'); END;
)sql";

}  // namespace hone::db
