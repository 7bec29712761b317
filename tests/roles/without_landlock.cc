// Runs a program in which Landlock cannot be had:
//
//     without_landlock refused|absent PROGRAM [ARGUMENT…]
//
// refused: a filter around it says EPERM, as systemd's SystemCallFilter= may; absent: ENOSYS, as
// kernels before Linux 5.13 do.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const __u32 error = argv[1] == std::string_view("refused") ? EPERM : ENOSYS;
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SYS_landlock_create_ruleset, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYS_landlock_restrict_self, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof code / sizeof code[0], code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    std::perror("without_landlock");
    return 3;
  }
  execv(argv[2], argv + 2);
  std::perror(argv[2]);
  return 4;
}
