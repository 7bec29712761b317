#include <elf.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "base/subprocess.h"
#include "tests/test_paths.h"

// What programs are linked with, by their dynamic sections and those of everything that they pull
// in: a machine that only runs has neither LLVM nor XGBoost.
namespace hone {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// An ELF file's dynamic section.
struct Dynamic {
  std::vector<std::string> needed, folders;  ///< DT_NEEDED; DT_RUNPATH and DT_RPATH
};

template <typename T>
T At(const std::string& bytes, size_t offset) {
  T value{};
  EXPECT_LE(offset + sizeof value, bytes.size());
  if (offset + sizeof value <= bytes.size()) {
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  }
  return value;
}

Dynamic ReadDynamic(const std::string& path) {
  Dynamic dynamic;
  const std::string bytes = ReadFile(path).value_or("");
  EXPECT_EQ(bytes.substr(0, SELFMAG), ELFMAG) << path;
  const auto header = At<Elf64_Ehdr>(bytes, 0);
  std::vector<Elf64_Phdr> segments;
  for (int i = 0; i < header.e_phnum; ++i) {
    segments.push_back(
        At<Elf64_Phdr>(bytes, header.e_phoff + static_cast<size_t>(i) * sizeof(Elf64_Phdr)));
  }
  const auto offset_of = [&](uint64_t address) {
    for (const Elf64_Phdr& s : segments) {
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address < s.p_vaddr + s.p_filesz) {
        return address - s.p_vaddr + s.p_offset;
      }
    }
    return uint64_t{0};
  };
  std::vector<Elf64_Dyn> entries;
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type != PT_DYNAMIC) continue;
    for (size_t at = 0; at < s.p_filesz; at += sizeof(Elf64_Dyn)) {
      entries.push_back(At<Elf64_Dyn>(bytes, s.p_offset + at));
    }
  }
  uint64_t strings = 0;
  for (const Elf64_Dyn& e : entries) {
    if (e.d_tag == DT_STRTAB) strings = offset_of(e.d_un.d_ptr);
  }
  for (const Elf64_Dyn& e : entries) {
    if (e.d_tag != DT_NEEDED && e.d_tag != DT_RUNPATH && e.d_tag != DT_RPATH) continue;
    const std::string text = bytes.c_str() + strings + e.d_un.d_val;
    (e.d_tag == DT_NEEDED ? dynamic.needed : dynamic.folders).push_back(text);
  }
  return dynamic;
}

/// The loader's cache: name to path.
const std::map<std::string, std::string>& LoaderCache() {
  static const std::map<std::string, std::string> kCache = [] {
    std::map<std::string, std::string> cache;
    for (const char* program : {"/sbin/ldconfig", "/usr/sbin/ldconfig"}) {
      if (!std::filesystem::exists(program)) continue;
      const auto ran = RunSubprocess({.argv = {program, "-p"}}, {}, SystemMonotonicClock());
      EXPECT_TRUE(ran.ok()) << ran.status();
      std::istringstream lines(ran.ok() ? ran->standard_output : "");
      for (std::string line; std::getline(lines, line);) {
        const size_t arrow = line.find(" => ");
        if (arrow == std::string::npos || line.find("x86-64") == std::string::npos) continue;
        const size_t name = line.find_first_not_of(" \t");
        cache.emplace(line.substr(name, line.find(' ', name) - name), line.substr(arrow + 4));
      }
      break;
    }
    return cache;
  }();
  return kCache;
}

std::string Resolve(const std::string& name, const Dynamic& by) {
  for (const std::string& list : by.folders) {
    std::istringstream folders(list);
    for (std::string folder; std::getline(folders, folder, ':');) {
      const std::string path = folder + "/" + name;
      if (!folder.empty() && std::filesystem::exists(path)) return path;
    }
  }
  const auto cached = LoaderCache().find(name);
  return cached == LoaderCache().end() ? "" : cached->second;
}

/// Names of everything that a program pulls in.
std::set<std::string> LibrariesOf(const std::string& program) {
  std::set<std::string> names;
  std::vector<std::string> paths = {program};
  while (!paths.empty()) {
    const Dynamic dynamic = ReadDynamic(paths.back());
    paths.pop_back();
    for (const std::string& name : dynamic.needed) {
      if (!names.insert(name).second) continue;
      const std::string path = Resolve(name, dynamic);
      EXPECT_NE(path, "") << name << " of " << program << " is nowhere";
      if (!path.empty()) paths.push_back(path);
    }
  }
  return names;
}

TEST(LinkedLibraries, WhoOnlyRunsHasNeitherLlvmNorXgboost) {
  const std::string build = hone::testing::BuildDir();
  for (const char* program : {"/bin/hone-worker", "/libexec/hone/hone-runner"}) {
    SCOPED_TRACE(program);
    const std::set<std::string> libraries = LibrariesOf(build + program);
    EXPECT_THAT(libraries, Contains(HasSubstr("libc.so")));
    for (const char* heavy : {"LLVM", "lld", "xgboost", "clang"}) {
      EXPECT_THAT(libraries, Not(Contains(HasSubstr(heavy))));
    }
  }
}

TEST(LinkedLibraries, ThisTestFindsThemWhereTheyAre) {
  const std::string build = hone::testing::BuildDir();
  EXPECT_THAT(LibrariesOf(build + "/libexec/hone/hone-builder"), Contains(HasSubstr("LLVM")));
  EXPECT_THAT(LibrariesOf(build + "/bin/honed"), Contains(HasSubstr("xgboost")));
}

}  // namespace
}  // namespace hone
