#pragma once

#include <array>

namespace hone::db {

/// One step of the schema: from version `to - 1` to `to`, run inside a transaction.
struct Migration {
  int to = 0;
  const char* sql = nullptr;
};

extern const char kMigration001[];
extern const char kMigration002[];
extern const char kMigration003[];
extern const char kMigration004[];

/// Every step since the empty file, in order; the last one's `to` is kSchemaVersion. Steps that
/// were released never change.
inline constexpr int kNumMigrations = 4;
inline const std::array<Migration, kNumMigrations> kMigrations = {
    {{1, kMigration001}, {2, kMigration002}, {3, kMigration003}, {4, kMigration004}}};

}  // namespace hone::db
