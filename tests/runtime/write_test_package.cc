#include <cstdio>

#include "tests/runtime/test_model.h"

// write_test_package FILE: the hand-made model's package, for tests of programs that load one.
int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_test_package FILE\n");
    return 2;
  }
  const auto model = hone::runtime::testing::MakeTestModel("cpu:avx2,threads=2");
  const hone::Status status = hone::runtime::WritePackage(model.package, argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
