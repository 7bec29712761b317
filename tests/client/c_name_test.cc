#include "client/c_name.h"

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "client/package_header.h"
#include "ir/plan.h"
#include "tests/client/run_hone.h"

namespace hone::client {
namespace {

TEST(CNameTest, OfAnyName) {
  EXPECT_EQ(CIdentifier("resnet18"), "resnet18");
  EXPECT_EQ(CIdentifier("my model-v1.2"), "my_model_v1_2");
  EXPECT_EQ(CIdentifier("3d"), "m3d");
  EXPECT_EQ(CIdentifier("_x"), "m_x");
  EXPECT_EQ(CIdentifier(""), "m");
}

TEST(CNameTest, WhatMeansSomethingElseGetsAnotherName) {
  EXPECT_EQ(CModelName("resnet18"), "resnet18");
  EXPECT_EQ(CModelName("int"), "m_int");
  EXPECT_EQ(CModelName("main"), "m_main");
  EXPECT_EQ(CModelName("hone_model"), "m_hone_model");
  EXPECT_EQ(CFieldName("int"), "int_");
  EXPECT_EQ(CFieldName("main"), "main");
}

// One compilation a language, of headers for all these names.
TEST(CNameTest, HeadersOfAllNamesCompileInCAndInCpp) {
  const testing::TemporaryFolder folder;
  ir::Plan plan;
  std::string program;
  const std::vector<std::string> names = {
      "int",    "double",    "NULL",    "hone_model", "hone_input", "hone",   "HONE_OK",
      "new",    "class",     "bool",    "main",       "size_t",     "linux",  "unix",
      "typeof", "INT32_MAX", "xor_eq",  "inputs",     "self",       "model",  "context",
      "status", "offsetof",  "uint8_t", "constexpr",  "net",        "asm",    "threads",
      "final",  "co_return", "inputs_", "restrict",   "data",       "import", "i386"};
  for (const std::string& name : names) {
    plan.inputs.push_back({.name = name, .dtype = ir::DType::kBool, .shape = {1}});
  }
  plan.outputs = plan.inputs;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string text = PackageHeader({CModelName(names[i]), "cpu:avx2,threads=1", &plan});
    ASSERT_TRUE(WriteFileAtomically(folder.Path(fmt::format("h{}.h", i)), text).ok());
    program += fmt::format("#include \"h{}.h\"\n{}* use_{}(void);\n", i, CModelName(names[i]), i);
  }
  program += "int main(void) { return 0; }\n";
  ASSERT_TRUE(WriteFileAtomically(folder.Path("all.c"), program).ok());
  for (const std::vector<std::string>& language :
       {std::vector<std::string>{"/usr/bin/cc", "-std=c99"},
        {"/usr/bin/cc", "-std=gnu17"},
        {"/usr/bin/c++", "-x", "c++", "-std=c++11"},
        {"/usr/bin/c++", "-x", "c++", "-std=gnu++20"}}) {
    std::vector<std::string> words = language;
    words.insert(words.end(),
                 {"-Wall", "-Wextra", "-Werror", "-fsyntax-only", folder.Path("all.c")});
    const testing::ProgramRun run = testing::RunProcess(words, "/dev/null");
    EXPECT_EQ(run.exit_code, 0) << language.back() << "\n" << run.err;
  }
}

}  // namespace
}  // namespace hone::client
