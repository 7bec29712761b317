#include "measure/run_test_hook.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "measure/run_job.h"
#include "measure/wire.h"

namespace hone::measure {
namespace {

[[noreturn]] void UseAllMemory() {
  constexpr size_t kChunkBytes = size_t{64} << 20;
  for (;;) {
    auto* chunk = static_cast<volatile char*>(::operator new(kChunkBytes));
    chunk[0] = 1;
  }
}

/// Where the kernel only refuses what would end others, a crash tells that it did not.
void Refused(bool refused) {
  if (!refused) __builtin_trap();
}

}  // namespace

void EndIfAsked(const std::string& hook, const char* step) {
  if (hook != std::string("kill-") + step) return;
  std::fprintf(stderr, "killed at runner.%s\n", step);
  std::raise(SIGKILL);
}

void Misbehave(const std::string& hook, const std::vector<GuardedBuffer>& outputs) {
  if (hook == "crash") {
    volatile char* volatile nowhere = nullptr;
    *nowhere = 1;
  } else if (hook == "overrun") {
    const std::span<std::byte> output = outputs.at(0).span();
    volatile std::byte* behind = output.data() + (output.size() + 63) / 64 * 64;
    *behind = std::byte{1};
  } else if (hook == "hang") {
    for (;;) __builtin_ia32_pause();
  } else if (hook == "memory") {
    UseAllMemory();
  } else if (hook == "socket") {
    Refused(::socket(AF_INET, SOCK_STREAM, 0) < 0);
  } else if (hook == "exec") {
    char program[] = "/bin/true";
    char* const words[] = {program, nullptr};
    ::execv(program, words);
  } else if (hook == "fork") {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    Refused(child < 0);
  } else if (hook == "write") {
    Refused(::open("escaped", O_WRONLY | O_CREAT, 0600) < 0);
  } else if (hook == "read") {
    // A sandboxed process cannot even see its own program: then nothing happens.
    Refused(::open("/proc/self/exe", O_RDONLY) < 0);
  } else if (hook == "order") {
    int on = 1;
    Refused(::ioctl(STDOUT_FILENO, FIOASYNC, &on) < 0);
  } else if (hook == "forge") {
    const std::string answer = EncodeFrame(FrameType::kPrepareReply, EncodePrepareReply({}));
    if (::write(STDOUT_FILENO, answer.data(), answer.size()) < 0) __builtin_trap();
  } else if (hook == "wrong") {
    const std::span<std::byte> output = outputs.at(0).span();
    if (!output.empty()) output.back() ^= std::byte{0x40};
  }
  EndIfAsked(hook, "ran");
}

}  // namespace hone::measure
