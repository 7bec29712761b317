#include "tests/mock_cuda/mock_machine.h"

#include <filesystem>
#include <fstream>

#include "tests/test_paths.h"

namespace hone {

MockMachine::MockMachine(const std::string& script) {
  // Copies: a runner's sandbox looks at where a link leads.
  for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.1"}) {
    std::filesystem::copy_file(testing::BuildDir() + "/tests/mock_cuda/" + name, Path(name));
  }
  SetScript(script);
}

void MockMachine::SetScript(const std::string& script) const {
  std::ofstream(Path("mock_cuda.script")) << script;
}

}  // namespace hone
