#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gtest/gtest.h"

#include "db/database.h"
#include "facts.h"

namespace hone::db {

/// One implementation: `make` gives an empty database that may keep files in the folder.
struct DatabaseMaker {
  std::string name;
  std::function<std::unique_ptr<Database>(const TestFolder&)> make;
};

/// What every Database does; instantiate it for each implementation.
class DatabaseConformance : public ::testing::TestWithParam<DatabaseMaker> {
 protected:
  DatabaseConformance() : database_(GetParam().make(folder_)) {}
  Database& database() { return *database_; }
  /// Appends and expects success.
  Appended Add(const Batch& batch, Origin origin = Origin::kHere);

  TestFolder folder_;
  std::unique_ptr<Database> database_;
};

std::string MakerName(const ::testing::TestParamInfo<DatabaseMaker>& info);

}  // namespace hone::db
