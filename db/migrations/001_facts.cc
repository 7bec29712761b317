#include "db/migrations/migration.h"

namespace hone::db {

// Ids and hashes are 16 bytes, big-endian. `content` is ContentHash of db/record.h. `merged` is 1
// for what came from another log. `sequence` is the order in which this log got its facts.
const char kMigration001[] = R"sql(
CREATE TABLE workloads (
  hash BLOB PRIMARY KEY CHECK (length(hash) = 16),
  text TEXT NOT NULL,
  flop INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  content BLOB NOT NULL CHECK (length(content) = 16)
) STRICT;

CREATE TABLE traces (
  hash BLOB PRIMARY KEY CHECK (length(hash) = 16),
  text TEXT NOT NULL
) STRICT;

CREATE TABLE targets (
  hash BLOB PRIMARY KEY CHECK (length(hash) = 16),
  text TEXT NOT NULL UNIQUE,
  isa TEXT NOT NULL
) STRICT;

CREATE TABLE devices (
  id BLOB PRIMARY KEY CHECK (length(id) = 16),
  device_class TEXT NOT NULL,
  fingerprint TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
  sequence INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  request TEXT NOT NULL,
  seed INTEGER NOT NULL,
  versions TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  content BLOB NOT NULL CHECK (length(content) = 16),
  merged INTEGER NOT NULL CHECK (merged IN (0, 1))
) STRICT;

CREATE TABLE blobs (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  bytes BLOB NOT NULL
) STRICT;

CREATE TABLE records (
  sequence INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  workload BLOB NOT NULL REFERENCES workloads (hash),
  target BLOB NOT NULL REFERENCES targets (hash),
  device BLOB NOT NULL REFERENCES devices (id),
  accuracy INTEGER NOT NULL CHECK (accuracy BETWEEN 0 AND 2),
  policy INTEGER NOT NULL,
  trace BLOB NOT NULL REFERENCES traces (hash),
  trace_version INTEGER NOT NULL,
  builder TEXT NOT NULL,
  rigor INTEGER NOT NULL CHECK (rigor BETWEEN 0 AND 2),
  median_ns REAL NOT NULL,
  low_ns REAL NOT NULL CHECK (low_ns > 0 AND low_ns <= median_ns),
  high_ns REAL NOT NULL CHECK (median_ns <= high_ns),
  noisy INTEGER NOT NULL CHECK (noisy IN (0, 1)),
  session BLOB NOT NULL REFERENCES sessions (id),
  seed INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  content BLOB NOT NULL CHECK (length(content) = 16),
  merged INTEGER NOT NULL CHECK (merged IN (0, 1))
) STRICT;
CREATE INDEX records_by_key ON records (workload, policy, target, low_ns);
CREATE INDEX records_by_session ON records (session);

CREATE TABLE samples (
  record BLOB PRIMARY KEY REFERENCES records (id),
  folded INTEGER NOT NULL CHECK (folded IN (0, 1)),
  values_ns BLOB NOT NULL CHECK (length(values_ns) % 8 = 0),
  content BLOB NOT NULL CHECK (length(content) = 16)
) STRICT;

CREATE TABLE attempts (
  sequence INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  session BLOB NOT NULL REFERENCES sessions (id),
  workload BLOB NOT NULL REFERENCES workloads (hash),
  target BLOB NOT NULL REFERENCES targets (hash),
  device BLOB NOT NULL REFERENCES devices (id),
  accuracy INTEGER NOT NULL CHECK (accuracy BETWEEN 0 AND 2),
  policy INTEGER NOT NULL,
  trace BLOB NOT NULL REFERENCES traces (hash),
  proposer TEXT NOT NULL,
  outcome INTEGER NOT NULL CHECK (outcome BETWEEN 0 AND 9),
  message TEXT NOT NULL,
  record BLOB REFERENCES records (id),
  cost_ns INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  content BLOB NOT NULL CHECK (length(content) = 16),
  merged INTEGER NOT NULL CHECK (merged IN (0, 1))
) STRICT;
CREATE INDEX attempts_by_session ON attempts (session);
CREATE INDEX attempts_by_workload ON attempts (workload);

CREATE TABLE events (
  sequence INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  session BLOB REFERENCES sessions (id),
  type TEXT NOT NULL,
  payload BLOB NOT NULL,
  content BLOB NOT NULL CHECK (length(content) = 16),
  merged INTEGER NOT NULL CHECK (merged IN (0, 1))
) STRICT;
CREATE INDEX events_by_session ON events (session);

CREATE TRIGGER workloads_stay BEFORE UPDATE ON workloads
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER workloads_remain BEFORE DELETE ON workloads
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER traces_stay BEFORE UPDATE ON traces
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER traces_remain BEFORE DELETE ON traces
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER targets_stay BEFORE UPDATE ON targets
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER targets_remain BEFORE DELETE ON targets
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER devices_stay BEFORE UPDATE ON devices
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER devices_remain BEFORE DELETE ON devices
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER sessions_stay BEFORE UPDATE ON sessions
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER sessions_remain BEFORE DELETE ON sessions
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER blobs_stay BEFORE UPDATE ON blobs
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER blobs_remain BEFORE DELETE ON blobs
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER records_stay BEFORE UPDATE ON records
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER records_remain BEFORE DELETE ON records
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER attempts_stay BEFORE UPDATE ON attempts
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER attempts_remain BEFORE DELETE ON attempts
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER events_stay BEFORE UPDATE ON events
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER samples_remain BEFORE DELETE ON samples
  BEGIN SELECT RAISE(ABORT, 'samples are folded, not deleted'); END;
CREATE TRIGGER samples_fold_once BEFORE UPDATE ON samples WHEN OLD.folded = 1 OR NEW.folded = 0
  BEGIN SELECT RAISE(ABORT, 'samples change only by being folded'); END;
)sql";

}  // namespace hone::db
