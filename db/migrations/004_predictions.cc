#include "db/migrations/migration.h"

namespace hone::db {

// A fourth rigor, predicted. SQLite changes no CHECK of a table; the manual of its ALTER
// TABLE (section 7) has the text of the schema written instead where no row is concerned, so that a
// large log need not be copied.
const char kMigration004[] = R"sql(
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'rigor BETWEEN 0 AND 2', 'rigor BETWEEN 0 AND 3')
  WHERE type = 'table' AND name = 'records';
PRAGMA writable_schema = RESET;
)sql";

}  // namespace hone::db
