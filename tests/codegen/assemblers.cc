#include "tests/codegen/assemblers.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace hone::codegen {
namespace {

/// The path of a program in the PATH; empty: there is none.
std::string FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    const std::filesystem::path file = std::filesystem::path(rest.substr(0, end)) / name;
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) return file.string();
  }
  return {};
}

}  // namespace

std::vector<std::unique_ptr<Assembler>> AssemblersHere(const MonotonicClock& clock) {
  std::vector<std::unique_ptr<Assembler>> all;
  if (auto built_in = BuiltInAssembler()) all.push_back(std::move(built_in));
  const std::string ptxas = FindProgram("ptxas");
  if (ptxas.empty()) return all;
  auto program = PtxasAssembler(ptxas, clock);
  EXPECT_TRUE(program.ok()) << program.status();
  if (program.ok()) all.push_back(*std::move(program));
  return all;
}

}  // namespace hone::codegen
