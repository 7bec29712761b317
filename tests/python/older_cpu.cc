// A library for LD_PRELOAD: the program that loads it finds itself on a CPU without FMA, AVX2 and
// AVX-512. The kernel lets `cpuid` fault, and the handler answers without these.

#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

void LetFault(bool faults) { ::syscall(SYS_arch_prctl, ARCH_SET_CPUID, faults ? 0 : 1); }

void Answer(int, siginfo_t*, void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const code = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  if (code[0] != 0x0F || code[1] != 0xA2) {
    ::signal(SIGSEGV, SIG_DFL);  // the program's own fault, which happens again
    return;
  }
  const auto leaf = static_cast<unsigned>(registers[REG_RAX]);
  const auto part = static_cast<unsigned>(registers[REG_RCX]);
  unsigned a = 0, b = 0, c = 0, d = 0;
  LetFault(false);
  __cpuid_count(leaf, part, a, b, c, d);
  LetFault(true);
  if (leaf == 1) c &= ~static_cast<unsigned>(bit_FMA);
  if (leaf == 7) {
    constexpr unsigned kAvx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512IFMA | bit_AVX512CD |
                                 bit_AVX512BW | static_cast<unsigned>(bit_AVX512VL);
    if (part == 0) b &= ~(bit_AVX2 | bit_BMI2 | kAvx512);
    if (part == 1) a = 0;
    c = d = 0;
  }
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

// Before the program's own constructors, which ask what the CPU has.
__attribute__((constructor)) void Begin() {
  struct sigaction action = {};
  action.sa_sigaction = Answer;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGSEGV, &action, nullptr);
  if (::syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) != 0) {
    std::fputs("older_cpu: this machine cannot let cpuid fault\n", stderr);
    std::_Exit(77);
  }
}

}  // namespace
