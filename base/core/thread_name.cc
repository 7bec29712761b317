#include "base/core/thread_name.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

namespace hone {
namespace {

void SetNice(int nice) {
  // On Linux the priority of a thread is its own, whatever POSIX says of processes.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice);
}

}  // namespace

void NameThisThread(const char* name) {
  constexpr size_t kMost = 15;
  (void)::pthread_setname_np(::pthread_self(), std::string(name).substr(0, kMost).c_str());
}

void LowerThisThread() { SetNice(10); }

void RaiseThisThread() { SetNice(-15); }

}  // namespace hone
