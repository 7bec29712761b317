#include "db/memory_database.h"

#include "database_conformance.h"

namespace hone::db {
namespace {

INSTANTIATE_TEST_SUITE_P(Memory, DatabaseConformance,
                         ::testing::Values(DatabaseMaker{
                             .name = "Memory",
                             .make = [](const TestFolder&) -> std::unique_ptr<Database> {
                               return std::make_unique<MemoryDatabase>();
                             }}),
                         MakerName);

}  // namespace
}  // namespace hone::db
