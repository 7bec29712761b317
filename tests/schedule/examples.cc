#include "tests/schedule/examples.h"

#include <fstream>

#include "tests/test_paths.h"

namespace hone::schedule {

std::vector<Example> ReadExamples() {
  std::ifstream page(hone::testing::SourceDir() + "/docs/decisions/0002-traces-of-the-lowering.md");
  std::vector<Example> examples;
  Example next;
  std::string line, fence, block;
  while (std::getline(page, line)) {
    if (line.rfind("## ", 0) == 0) next = {.section = line.substr(3)};
    if (line.rfind("```", 0) == 0) {
      if (!fence.empty() && line == "```") {
        if (fence == "workload") {
          next.workload = block;
        } else {
          next.trace = block;
          next.name = fence.substr(fence.find(' ') + 1);
          examples.push_back(next);
        }
        fence.clear();
      } else {
        fence = line.substr(3);
        block.clear();
      }
    } else if (!fence.empty()) {
      block += line + "\n";
    }
  }
  return examples;
}

}  // namespace hone::schedule
