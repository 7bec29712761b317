#pragma once

#include <string>
#include <vector>

#include "tests/client/run_hone.h"

namespace hone::client::testing {

/// True when the interpreter that CMake was told of (HONE_TEST_PYTHON) exists.
bool HavePython();

/// Runs a script with sys.argv[1:] = arguments.
ProgramRun RunPython(const std::string& script, std::vector<std::string> arguments);

}  // namespace hone::client::testing

/// Skips a test that needs numpy, onnx or onnxruntime, and says so.
#define HONE_SKIP_WITHOUT_PYTHON()                                                  \
  if (!::hone::client::testing::HavePython())                                       \
  GTEST_SKIP() << "no Python with numpy, onnx and onnxruntime at " HONE_TEST_PYTHON \
                  " (scripts/models.sh makes one)"
