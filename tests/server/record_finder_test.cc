#include "server/record_finder.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "db/memory_database.h"

namespace hone::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RecordFinder, VerdictsAreToldToTheModelThatAsks) {
  const Hash128 model = HashBytes("a model");
  const db::Session session{.id = {7, 7}, .request = "{}", .versions = "{}", .created_ms = 1};
  const auto verdict = [&](const std::string& target, double ratio) {
    return db::ModelVerdict{.model = model,
                            .target = target,
                            .device_class = "class",
                            .ratio = ratio,
                            .session = session.id};
  };
  db::MemoryDatabase log;
  ASSERT_TRUE(log.Append({.sessions = {session},
                          .events = {db::EventOf(verdict("cpu:avx2,threads=1", 1.5)),
                                     db::EventOf(verdict("cpu:avx2,threads=2", 3)),
                                     db::EventOf(verdict("cpu:avx2,threads=1", 2))}})
                  .ok());
  proto::FindRecords question{.limit = 1};
  question.key.target = "cpu:avx2,threads=1";
  question.key.device_class = "class";
  // As who does not know of verdicts asks.
  EXPECT_THAT(AnswerFrom(log, question)->verdicts, IsEmpty());
  question.model = model;
  EXPECT_THAT(AnswerFrom(log, question)->verdicts,
              ElementsAre(verdict("cpu:avx2,threads=1", 2), verdict("cpu:avx2,threads=1", 1.5)));
  question.model = HashBytes("another");
  EXPECT_THAT(AnswerFrom(log, question)->verdicts, IsEmpty());
}

}  // namespace
}  // namespace hone::server
