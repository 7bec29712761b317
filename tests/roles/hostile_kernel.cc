// A candidate's code that does one forbidden thing, HOSTILE_KIND, instead of its work: what a
// builder that is not to be trusted may send. Every phase of a kernel has it.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "measure/run_job.h"
#include "measure/wire.h"

namespace {

// The builder writes the name of a file here that nobody but its owner may read.
volatile char g_key_path[200] = "@KEY-PATH@";

[[noreturn]] void SleepForEver() {
  for (;;) ::poll(nullptr, 0, -1);
}

void Say(const std::string& frames) {
  if (::write(STDOUT_FILENO, frames.data(), frames.size()) < 0) std::abort();
}

[[maybe_unused]] std::string ForgedCheck() {
  return hone::measure::EncodeFrame(hone::measure::FrameType::kPrepareReply,
                                    hone::measure::EncodePrepareReply({}));
}

[[maybe_unused]] std::string ForgedTimes() {
  hone::measure::TimeReply reply;
  reply.samples_ns = {100, 100, 100, 100, 100};
  reply.sentinel_ns = 1000;
  reply.runs = 6;
  reply.timed_ns = 600;
  return hone::measure::EncodeFrame(hone::measure::FrameType::kTimeReply,
                                    hone::measure::EncodeTimeReply(reply));
}

/// The next job on standard input is the signal.
void KillByNextByte() {
  ::fcntl(STDIN_FILENO, F_SETOWN, ::getpid());
  ::fcntl(STDIN_FILENO, F_SETSIG, SIGKILL);
  ::fcntl(STDIN_FILENO, F_SETFL, ::fcntl(STDIN_FILENO, F_GETFL) | O_ASYNC);
}

/// Its own number stands for that of its parent, which it would have to guess: who asks for it
/// (getppid) is ended for that. It says by its death that it could.
void ChooseOwner() {
  const f_owner_ex owner{F_OWNER_PID, ::getpid()};
  if (::fcntl(STDIN_FILENO, F_SETOWN_EX, &owner) == 0) std::abort();
}

/// So that nobody could map or grow them for those behind. It says by its death that it could.
void SealOutputs() {
  for (const int seal : {F_SEAL_GROW, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL}) {
    if (::fcntl(hone::measure::kOutputFd, F_ADD_SEALS, seal) == 0) std::abort();
  }
}

/// Memory that no limit of address space counts: as many files as there may be, and all that one
/// takes. It says by its own death that nobody stopped it.
void FillMemoryFiles() {
  constexpr int kMany = 64;
  constexpr int kMuch = 64 << 20;
  int last = -1;
  for (int count = 0;; ++count) {
    if (count == kMany) std::abort();
    const int fd = ::memfd_create("hoard", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) break;
    last = fd;
  }
  static const char kBlock[1 << 16] = {};
  for (int at = 0; at < kMuch; at += sizeof kBlock) {
    if (::write(last, kBlock, sizeof kBlock) <= 0) return;
  }
  std::abort();
}

void Misbehave() {
  enum {
    kSocket,
    kExec,
    kWrite,
    kKey,
    kFork,
    kMemory,
    kKillParent,
    kKillSelf,
    kForgeBoth,
    kForgeCheck,
    kClose,
    kSleep,
    kExit,
    kSignalOwner,
    kSignalSelf,
    kSeal,
    kFiles
  };
  switch (HOSTILE_KIND) {
    case kSocket: static_cast<void>(::socket(AF_INET, SOCK_STREAM, 0)); break;
    case kExec: {
      char program[] = "/bin/true";
      char* const words[] = {program, nullptr};
      ::execv(program, words);
      break;
    }
    case kWrite:
      static_cast<void>(::open("/tmp/escaped-from-hone", O_WRONLY | O_CREAT, 0600));
      break;
    case kKey: {
      // Readable: it says so by its death. Otherwise it has just not done its work.
      char path[sizeof g_key_path];
      for (size_t i = 0; i < sizeof path; ++i) path[i] = g_key_path[i];
      if (::open(path, O_RDONLY) >= 0) std::abort();
      break;
    }
    case kFork:
      for (;;) ::fork();
    case kMemory: {
      auto* all = static_cast<volatile char*>(::operator new (size_t{64} << 30));
      for (size_t at = 0; at < size_t{64} << 30; at += 4096) all[at] = 1;
      break;
    }
    case kKillParent: ::kill(::getppid(), SIGKILL); break;
    case kKillSelf: ::raise(SIGKILL); break;
    case kForgeBoth: Say(ForgedCheck() + ForgedTimes()); SleepForEver();
    case kForgeCheck: Say(ForgedCheck()); SleepForEver();
    case kClose: ::close(STDOUT_FILENO); SleepForEver();
    case kSleep: SleepForEver();
    case kExit: ::_exit(0);
    case kSignalOwner: ChooseOwner(); break;
    case kSignalSelf: KillByNextByte(); break;
    case kSeal: SealOutputs(); break;
    case kFiles: FillMemoryFiles(); break;
    default: break;
  }
}

}  // namespace

#define HOSTILE_PHASE(n)                                                                  \
  extern "C" __attribute__((visibility("default"))) int32_t candidate_p##n(const void*) { \
    Misbehave();                                                                          \
    return 0;                                                                             \
  }
HOSTILE_PHASE(0)
HOSTILE_PHASE(1)
HOSTILE_PHASE(2)
HOSTILE_PHASE(3)
HOSTILE_PHASE(4)
HOSTILE_PHASE(5)
HOSTILE_PHASE(6)
HOSTILE_PHASE(7)
