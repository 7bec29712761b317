// What `hone compile --emit` writes, used as a C program would.

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/sanitizer.h"
#include "base/file.h"
#include "tests/client/run_hone.h"
#include "tests/test_paths.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramRun;
using testing::RunHone;
using testing::RunProcess;
using testing::TemporaryFolder;

constexpr char kMain[] = R"(
#include "NAME.h"
#include <stdio.h>
int main(void) {
  static float x[784], y[10], z[10];
  NAME first, second;
  const NAME_inputs in = {x};
  const NAME_outputs out = {y}, again = {z};
  int i;
  for (i = 0; i < 784; ++i) x[i] = (float)(i % 29) * 0.05f - 0.7f;
  if (NAME_open(&first, 1) != HONE_OK || NAME_open(&second, 2) != HONE_OK ||
      NAME_run(&first, &in, &out) != HONE_OK || NAME_run(&second, &in, &again) != HONE_OK) {
    puts(hone_last_error());
    return 1;
  }
  NAME_close(&first);
  NAME_close(&second);
  for (i = 0; i < 10; ++i) printf("%.9g\n", (double)y[i]);
  for (i = 0; i < 10; ++i) if (y[i] != z[i]) return 2;
  return 0;
}
)";

std::string MainOf(const std::string& name) {
  std::string text = kMain;
  for (size_t at = 0; (at = text.find("NAME", at)) != std::string::npos;) {
    text.replace(at, 4, name);
  }
  return text;
}

class EmitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "what a sanitizer's build makes lacks the sanitizer's runtime";
    ASSERT_EQ(RunHone({"zoo", "mlp", "-o", folder_.Path("mlp.onnx")}).exit_code, 0);
    const ProgramRun run = RunHone({"compile", folder_.Path("mlp.onnx"), "-o",
                                    folder_.Path("my-mlp.hone"), "--emit", "so,header"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("my-mlp.so"));
    ASSERT_TRUE(WriteFileAtomically(folder_.Path("main.c"), MainOf("my_mlp")).ok());
    std::filesystem::rename(folder_.Path("my-mlp.h"), folder_.Path("my_mlp.h"));
  }
  /// Compiles main.c and runs it; gives its output.
  std::string BuildAndRun(std::vector<std::string> words) {
    words.insert(words.end(), {"-o", folder_.Path("main")});
    const ProgramRun built = RunProcess(words, "/dev/null");
    EXPECT_EQ(built.exit_code, 0) << built.err;
    if (built.exit_code != 0) return "";
    const ProgramRun run = RunProcess({folder_.Path("main")}, "/dev/null");
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    return run.out;
  }
  const TemporaryFolder folder_;
};

TEST_F(EmitTest, CProgramLinksTheLibraryAlone) {
  const std::string c = BuildAndRun({"/usr/bin/cc", "-std=c99", "-Wall", "-Wextra", "-Werror",
                                     "-pedantic", folder_.Path("main.c"), folder_.Path("my-mlp.so"),
                                     "-Wl,-rpath," + folder_.path()});
  EXPECT_EQ(std::count(c.begin(), c.end(), '\n'), 10);
  // In C++ too, and with the object and the runtime's archive the same.
  const std::string cpp =
      BuildAndRun({"/usr/bin/c++", "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror",
                   folder_.Path("main.c"), "-x", "none", folder_.Path("my-mlp.o"),
                   hone::testing::BuildDir() + "/lib/libhone_runtime.a"});
  EXPECT_EQ(c, cpp);
}

TEST_F(EmitTest, LibraryShowsTheApiAndThePackageOnly) {
  const ProgramRun symbols =
      RunProcess({"/usr/bin/nm", "-D", "--defined-only", folder_.Path("my-mlp.so")}, "/dev/null");
  EXPECT_THAT(symbols.out, HasSubstr(" my_mlp_package\n"));
  std::istringstream lines(symbols.out);
  for (std::string address, kind, name; lines >> address >> kind >> name;) {
    EXPECT_TRUE(name.starts_with("hone_") || name.starts_with("my_mlp_package")) << name;
  }
  const ProgramRun needed =
      RunProcess({"/usr/bin/readelf", "-d", folder_.Path("my-mlp.so")}, "/dev/null");
  EXPECT_THAT(needed.out, HasSubstr("libstdc++.so.6"));
  EXPECT_THAT(needed.out, Not(HasSubstr("libhone")));
}

TEST_F(EmitTest, LibraryCanBeUnloaded) {
  constexpr char kLoader[] = R"(
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int i;
  for (i = 0; i < 3; ++i) {
    void* library = dlopen(argv[argc - 1], RTLD_NOW);
    const char* (*error)(void);
    int (*open)(const char*, const void*, void**);
    void* model = 0;
    if (library == 0) { puts(dlerror()); return 1; }
    *(void**)&open = dlsym(library, "hone_model_open");
    *(void**)&error = dlsym(library, "hone_last_error");
    if (open("/nonexistent", 0, &model) != 5) return 2;  /* a thread-local text is made */
    puts(error());
    if (dlclose(library) != 0) return 3;
  }
  return 0;
}
)";
  ASSERT_TRUE(WriteFileAtomically(folder_.Path("load.c"), kLoader).ok());
  const ProgramRun built = RunProcess(
      {"/usr/bin/cc", folder_.Path("load.c"), "-o", folder_.Path("load"), "-ldl"}, "/dev/null");
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const ProgramRun run = RunProcess({folder_.Path("load"), folder_.Path("my-mlp.so")}, "/dev/null");
  EXPECT_EQ(run.exit_code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("/nonexistent"));
}

TEST_F(EmitTest, EachLibraryHasThreadsOfItsOwn) {
  constexpr char kThreads[] = R"(
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include "my_mlp.h"
int main(int argc, char** argv) {
  int i;
  for (i = 1; i < argc - 1; ++i) {
    void* library = dlopen(argv[i], RTLD_NOW);
    hone_status (*open)(const char*, const hone_model_options*, hone_model**);
    hone_status (*create)(hone_model*, const hone_context_options*, hone_context**);
    void (*fill)(hone_context_options*, size_t);
    hone_context_options options;
    hone_model* model = 0;
    hone_context* context = 0;
    int threads = -2;  /* . and .. */
    DIR* tasks;
    if (library == 0) { puts(dlerror()); return 1; }
    *(void**)&open = dlsym(library, "hone_model_open");
    *(void**)&create = dlsym(library, "hone_context_create");
    *(void**)&fill = dlsym(library, "hone_context_options_fill");
    fill(&options, sizeof(options));
    options.threads = 4;
    if (open(argv[argc - 1], 0, &model) != HONE_OK) return 2;
    if (create(model, &options, &context) != HONE_OK) return 3;
    tasks = opendir("/proc/self/task");
    while (readdir(tasks) != 0) ++threads;
    closedir(tasks);
    printf("%d threads\n", threads);
  }
  return 0;
}
)";
  ASSERT_TRUE(WriteFileAtomically(folder_.Path("threads.c"), kThreads).ok());
  const ProgramRun built = RunProcess({"/usr/bin/cc", folder_.Path("threads.c"), "-o",
                                       folder_.Path("threads"), "-ldl"},
                                      "/dev/null");
  ASSERT_EQ(built.exit_code, 0) << built.err;
  std::filesystem::copy_file(folder_.Path("my-mlp.so"), folder_.Path("other.so"));
  const ProgramRun run =
      RunProcess({folder_.Path("threads"), folder_.Path("my-mlp.so"), folder_.Path("other.so"),
                  folder_.Path("my-mlp.hone")},
                 "/dev/null");
  EXPECT_EQ(run.exit_code, 0) << run.out;
  EXPECT_EQ(run.out, "4 threads\n7 threads\n");
}

TEST_F(EmitTest, SameInputSameBytes) {
  const auto first = ReadFile(folder_.Path("my-mlp.so"));
  ASSERT_EQ(RunHone({"compile", folder_.Path("mlp.onnx"), "-o", folder_.Path("my-mlp.hone"),
                     "--emit", "so,header"})
                .exit_code,
            0);
  EXPECT_EQ(*first, *ReadFile(folder_.Path("my-mlp.so")));
}

TEST(EmitOptions, UnknownWordIsAUsageError) {
  const ProgramRun run = RunHone({"compile", "x.onnx", "--emit", "so,dll"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("\"dll\" is none of them"));
}

TEST(EmitOptions, WhatIsEmittedTakesNotThePlaceOfThePackage) {
  const TemporaryFolder folder;
  ASSERT_EQ(RunHone({"zoo", "mlp", "-o", folder.Path("mlp.onnx")}).exit_code, 0);
  for (const auto& [ending, words] :
       {std::pair(".so", "so"), std::pair(".o", "so"), std::pair(".h", "object,header")}) {
    const std::string path = folder.Path(std::string("m") + ending);
    const ProgramRun run =
        RunHone({"compile", folder.Path("mlp.onnx"), "-o", path, "--emit", words});
    EXPECT_EQ(run.exit_code, 2) << ending << run.err;
    EXPECT_THAT(run.err, HasSubstr("call it '" + folder.Path("m.hone") + "' with --output"));
    EXPECT_FALSE(std::filesystem::exists(path)) << ending;
  }
}

}  // namespace
}  // namespace hone::client
