#include "server/transitions.h"

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/file.h"
#include "tests/test_paths.h"

namespace hone::server {
namespace {

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// The rows `| machine | from | event | to | …` of the document.
std::set<std::vector<std::string>> DocumentedTransitions() {
  const std::string text =
      ReadFile(hone::testing::SourceDir() + "/docs/formats/farm.md").value_or("");
  const std::set<std::string> machines = {"session", "attempt", "lease", "worker", "device"};
  std::set<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, '|');) row.push_back(Trimmed(cell));
    if (row.size() < 5 || !machines.contains(row[1])) continue;
    EXPECT_TRUE(rows.insert({row[1], row[2], row[3], row[4]}).second) << line;
  }
  return rows;
}

TEST(Transitions, TheDocumentShowsTheTablesOfTheCode) {
  std::set<std::vector<std::string>> code;
  for (const TransitionText& t : AllTransitions()) {
    code.insert(
        {std::string(t.machine), std::string(t.from), std::string(t.event), std::string(t.to)});
  }
  EXPECT_EQ(code, DocumentedTransitions());
  EXPECT_GT(code.size(), 40u);
}

TEST(Transitions, WhatTheTableLacksIsRefused) {
  EXPECT_EQ(Next(LeaseState::kDone, LeaseTrigger::kAnswer), std::nullopt);
  EXPECT_EQ(Next(SessionState::kFinished, SessionTrigger::kBegin), std::nullopt);
  LeaseState state = LeaseState::kExpired;
  EXPECT_DEATH(Move(state, LeaseTrigger::kCommit), "no transition of state 4");
}

}  // namespace
}  // namespace hone::server
