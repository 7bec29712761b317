#include "db/migrations/migration.h"

namespace hone::db {

// What Traces were written from, by name. `content` is the hash of the other fields. A Trace alone
// says what runs: records do not name these rows.
const char kMigration003[] = R"sql(
CREATE TABLE trace_values (
  sequence INTEGER PRIMARY KEY,
  workload BLOB NOT NULL REFERENCES workloads (hash),
  target BLOB NOT NULL REFERENCES targets (hash),
  trace BLOB NOT NULL REFERENCES traces (hash),
  text TEXT NOT NULL,
  content BLOB NOT NULL CHECK (length(content) = 16),
  UNIQUE (workload, target, trace)
) STRICT;

CREATE TRIGGER trace_values_stay BEFORE UPDATE ON trace_values
  BEGIN SELECT RAISE(ABORT, 'facts never change'); END;
CREATE TRIGGER trace_values_remain BEFORE DELETE ON trace_values
  BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
)sql";

}  // namespace hone::db
