#include "tests/client/python.h"

#include <filesystem>

namespace hone::client::testing {

bool HavePython() { return std::filesystem::exists(HONE_TEST_PYTHON); }

ProgramRun RunPython(const std::string& script, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {HONE_TEST_PYTHON, "-c", script});
  return RunProcess(arguments, "/dev/null");
}

}  // namespace hone::client::testing
