// A bundle brings its own C library, so that it starts on any distribution and in an empty root:
//     ROOT/bin/NAME, ROOT/libexec/hone/NAME    this program
//     ROOT/lib/ld-linux-x86-64.so.2            starts
//     ROOT/lib/programs/NAME                   the program proper
// Linked statically. /proc/self/exe of the program is then in ROOT/lib, beside which it finds its
// helpers in ROOT/libexec/hone.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace {

constexpr char kLoader[] = "ld-linux-x86-64.so.2";

/// The nearest folder above with lib/ld-linux-x86-64.so.2; empty: there is none.
std::filesystem::path RootAbove(std::filesystem::path folder) {
  std::error_code none;
  for (;; folder = folder.parent_path()) {
    if (std::filesystem::exists(folder / "lib" / kLoader, none)) return folder;
    if (folder == folder.parent_path()) return {};
  }
}

}  // namespace

int main(int, char** argv) {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) self = std::filesystem::absolute(argv[0], error);  // no /proc
  const std::filesystem::path root = RootAbove(self.parent_path());
  if (root.empty()) {
    std::fprintf(stderr, "%s: lib/%s of its bundle is missing; unpack all of it\n", argv[0],
                 kLoader);
    return 127;
  }
  const std::string lib = (root / "lib").string(), loader = lib + "/" + kLoader;
  const std::string program = lib + "/programs/" + self.filename().string();
  // What the caller wants to be found besides, as a driver at a place of its own.
  const char* const more = std::getenv("LD_LIBRARY_PATH");
  std::string path = more == nullptr || *more == '\0' ? lib : lib + ":" + more;
  std::string words[] = {loader, "--library-path", path, "--argv0", argv[0], program};
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  for (char** word = argv + 1; *word != nullptr; ++word) all.push_back(*word);
  all.push_back(nullptr);
  ::execv(loader.c_str(), all.data());
  std::fprintf(stderr, "%s: cannot start %s: %s\n", argv[0], loader.c_str(), std::strerror(errno));
  return 127;
}
