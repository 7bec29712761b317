#include "tests/mock_cuda/mock_script.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace hone::mock_cuda {
namespace {

Script ReadScript() {
  Script script;
  // HONE_MOCK_CUDA=wrong: for programs that hand their environment on.
  const char* const word = std::getenv("HONE_MOCK_CUDA");
  script.wrong = word != nullptr && std::string_view(word) == "wrong";
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&TheScript), &self) == 0) return script;
  std::ifstream file(std::filesystem::path(self.dli_fname).parent_path() / "mock_cuda.script");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what, text;
    words >> what >> std::ws;
    if (what == "time") script.real_time = true;
    if (what == "wrong") script.wrong = true;
    if (what == "slow") words >> script.slow;
    if (what == "lie") words >> script.lie;
    if (what == "memory") words >> script.memory_bytes;
    if (what == "capability") words >> script.capability;
    if (what == "multiprocessors") words >> script.multiprocessors;
    if (what == "cuda") words >> script.cuda;
    if (what == "uuid") words >> script.uuid;
    if (what == "devices") words >> script.devices;
    if (what == "dead") words >> script.dead;
    if (what == "hang") words >> script.hang;
    if (what == "lose") words >> script.lose;
    if (what == "driver") words >> script.driver;
    if (what == "power") words >> script.power;
    if (what == "clock") words >> script.clock;
    if (what == "temperature") words >> script.temperature;
    if (what == "name") std::getline(words, script.name);
    if (what == "fault") words >> script.fault_call >> script.fault_after >> script.fault_code;
  }
  return script;
}

}  // namespace

const Script& TheScript() {
  static const Script script = ReadScript();
  return script;
}

}  // namespace hone::mock_cuda
