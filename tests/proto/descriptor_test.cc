#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "tests/test_paths.h"

// The public protocol only grows: every field, value and call of the committed descriptor set is
// still there with its number and type. After adding some, copy generated/proto/farm.descriptors of
// the build tree over tests/proto/farm.descriptors.
namespace hone::proto {
namespace {

using Facts = std::map<std::string, std::string>;

void Collect(const google::protobuf::DescriptorProto& message, const std::string& prefix,
             Facts& facts) {
  const std::string name = prefix + message.name();
  for (const auto& field : message.field()) {
    facts[name + " " + std::to_string(field.number())] =
        field.name() + " " + std::to_string(field.type()) + " " + field.type_name() + " " +
        std::to_string(field.label());
  }
  for (const auto& value : message.enum_type()) {
    for (const auto& v : value.value()) {
      facts[name + "." + value.name() + " " + std::to_string(v.number())] = v.name();
    }
  }
  for (const auto& nested : message.nested_type()) Collect(nested, name + ".", facts);
}

Facts FactsOf(const std::string& path) {
  google::protobuf::FileDescriptorSet set;
  EXPECT_TRUE(set.ParseFromString(ReadFile(path).value_or(""))) << path;
  Facts facts;
  for (const auto& file : set.file()) {
    for (const auto& message : file.message_type()) Collect(message, "", facts);
    for (const auto& value : file.enum_type()) {
      for (const auto& v : value.value()) {
        facts[value.name() + " " + std::to_string(v.number())] = v.name();
      }
    }
    for (const auto& service : file.service()) {
      for (const auto& method : service.method()) {
        facts[service.name() + "." + method.name()] =
            method.input_type() + " " + method.output_type() + " " +
            std::to_string(method.client_streaming()) + std::to_string(method.server_streaming());
      }
    }
  }
  return facts;
}

// What of `before` is missing or other in `after`.
std::string Broken(const Facts& before, const Facts& after) {
  for (const auto& [key, value] : before) {
    const auto now = after.find(key);
    if (now == after.end()) return key + " (" + value + ") was removed";
    if (now->second != value) return key + " was " + value + ", is " + now->second;
  }
  return "";
}

TEST(Descriptors, NothingOfTheProtocolIsRemovedOrRetyped) {
  const Facts before = FactsOf(hone::testing::SourceDir() + "/tests/proto/farm.descriptors");
  const Facts now = FactsOf(hone::testing::BuildDir() + "/generated/proto/farm.descriptors");
  EXPECT_GT(before.size(), 150u);
  EXPECT_EQ(Broken(before, now), "");
}

TEST(Descriptors, ARemovedOrRetypedFieldIsNoticed) {
  Facts now = FactsOf(hone::testing::SourceDir() + "/tests/proto/farm.descriptors");
  const Facts before = now;
  now.erase("Grant 1");
  EXPECT_EQ(Broken(before, now), "Grant 1 (token 12  1) was removed");
  now = before;
  now["Grant 1"] = "token 9  1";
  EXPECT_EQ(Broken(before, now), "Grant 1 was token 12  1, is token 9  1");
}

// The file is the public API's only manual: what a field or call is for, and of numbers and texts
// which are taken.
TEST(Descriptors, EveryFieldAndCallSaysWhatItMeans) {
  const auto text = ReadFile(hone::testing::SourceDir() + "/proto/hone/v1/farm.proto");
  ASSERT_TRUE(text.ok());
  const std::regex field(R"(\s+(repeated )?(map<[^>]*>|[\w.]+) \w+ = \d+;.*)");
  const std::regex bounded(R"(\s+(repeated )?(map<.*|string|bytes|u?int\d\d|double) \w+ = .*)");
  const std::regex range(R"(\d|\b(Name|Text|Target|any|at least)\b)");
  const std::regex call(R"(\s+rpc .*)");
  std::istringstream lines(*text);
  std::string above;
  int found = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t slashes = line.find("//");
    if (line.find_first_not_of(' ') == slashes && slashes != std::string::npos) {
      above += line;
      continue;
    }
    if (std::regex_match(line, field) || std::regex_match(line, call)) {
      ++found;
      const std::string said = above + (slashes == std::string::npos ? "" : line.substr(slashes));
      EXPECT_NE(said, "") << line;
      EXPECT_TRUE(!std::regex_match(line, bounded) || std::regex_search(said, range))
          << "no range: " << line;
    }
    above.clear();
  }
  EXPECT_GT(found, 150);
}

}  // namespace
}  // namespace hone::proto
