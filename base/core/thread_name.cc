#include "base/core/thread_name.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace hone {
namespace {

// On Linux the priority of a thread is its own, whatever POSIX says of processes.
id_t ThisThread() { return static_cast<id_t>(::gettid()); }
int Nice() { return ::getpriority(PRIO_PROCESS, ThisThread()); }
void SetNice(int nice) { (void)::setpriority(PRIO_PROCESS, ThisThread(), nice); }

}  // namespace

void NameThisThread(const char* name) {
  constexpr size_t kMost = 15;
  (void)::pthread_setname_np(::pthread_self(), std::string(name).substr(0, kMost).c_str());
}

void LowerThisThread() { SetNice(std::max(Nice(), 10)); }

void RaiseThisThread() { SetNice(std::min(Nice(), -15)); }

}  // namespace hone
