#include "base/core/thread_name.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

namespace hone {

void NameThisThread(const char* name) {
  constexpr size_t kMost = 15;
  (void)::pthread_setname_np(::pthread_self(), std::string(name).substr(0, kMost).c_str());
}

void LowerThisThread() {
  constexpr int kNice = 10;
  // On Linux the priority of a thread is its own, whatever POSIX says of processes.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
}

}  // namespace hone
