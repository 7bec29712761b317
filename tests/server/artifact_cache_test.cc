#include "server/artifact_cache.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace hone::server {
namespace {

TEST(ArtifactCacheTest, ItsKeyTellsWhatWasAskedForApart) {
  const proto::Job job{.workload = "w", .target = "t", .traces = {"a", "b"}};
  const std::string key = ArtifactCache::KeyOf(job, 0, "1+22.1");
  EXPECT_EQ(ArtifactCache::KeyOf(job, 0, "1+22.1"), key);
  EXPECT_NE(ArtifactCache::KeyOf(job, 1, "1+22.1"), key);
  EXPECT_NE(ArtifactCache::KeyOf(job, 2, "1+22.1"), key);
  EXPECT_NE(ArtifactCache::KeyOf(job, 0, "2+22.1"), key);
  EXPECT_NE(ArtifactCache::KeyOf({.workload = "w", .target = "ta", .traces = {""}}, 0, "1+22.1"),
            ArtifactCache::KeyOf({.workload = "w", .target = "t", .traces = {"a"}}, 0, "1+22.1"));
}

TEST(ArtifactCacheTest, WhatWasUsedLastStays) {
  ArtifactCache cache(3 * 600);
  for (const char* key : {"a", "b", "c"}) {
    cache.Put(key, {{}, std::make_shared<const std::string>(88, 'x')});
  }
  EXPECT_NE(cache.Find("a"), nullptr);
  cache.Put("d", {{}, std::make_shared<const std::string>(88, 'x')});
  EXPECT_EQ(cache.Find("b"), nullptr);
  for (const char* key : {"a", "c", "d"}) EXPECT_NE(cache.Find(key), nullptr) << key;
  EXPECT_EQ(cache.num_evicted(), 1);
  cache.Put("d", {{}, std::make_shared<const std::string>(10, 'x')});
  EXPECT_LE(cache.bytes(), 3 * 600);
}

}  // namespace
}  // namespace hone::server
