#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/core/broken_pipe_guard.h"
#include "base/subprocess.h"

namespace hone {
namespace {

void SetNonBlocking(const UniqueFd& fd) {
  if (fd.valid()) ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

// Reads what is there; closes the descriptor at its end.
void Drain(UniqueFd* fd, std::string* text, int64_t max_bytes) {
  std::array<char, 1 << 16> buffer;
  while (fd->valid()) {
    const ssize_t got = ::read(fd->get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      fd->Reset();
      return;
    }
    const int64_t room = std::max<int64_t>(0, max_bytes - static_cast<int64_t>(text->size()));
    text->append(buffer.data(), static_cast<size_t>(std::min<int64_t>(room, got)));
  }
}

// Writes what the pipe takes; closes it when all is written or nobody reads.
void Feed(UniqueFd* fd, std::string_view* input) {
  while (fd->valid() && !input->empty()) {
    const ssize_t put = ::write(fd->get(), input->data(), input->size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0) break;
    input->remove_prefix(static_cast<size_t>(put));
  }
  fd->Reset();
}

}  // namespace

absl::StatusOr<RunResult> RunSubprocess(const SubprocessOptions& options, const RunOptions& run,
                                        const MonotonicClock& clock) {
  const BrokenPipeGuard guard;
  HONE_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Spawn(options));
  SetNonBlocking(child.standard_input());
  SetNonBlocking(child.standard_output());
  SetNonBlocking(child.standard_error());

  RunResult result;
  std::string_view input = run.input;
  const int64_t deadline_ns = run.timeout_ns < 0 ? -1 : clock.NowNs() + run.timeout_ns;
  for (;;) {
    Feed(&child.standard_input(), &input);
    Drain(&child.standard_output(), &result.standard_output, run.max_output_bytes);
    Drain(&child.standard_error(), &result.standard_error, run.max_output_bytes);
    HONE_ASSIGN_OR_RETURN(const std::optional<ExitState> ended, child.Wait(clock, 0));
    if (ended) {
      result.exit_state = *ended;
      break;
    }
    if (deadline_ns >= 0 && clock.NowNs() >= deadline_ns) {
      result.timed_out = true;
      HONE_ASSIGN_OR_RETURN(result.exit_state, child.End());
      break;
    }
    // A child that holds no pipe any more is noticed by exit_fd, or at the next tick without one.
    std::array<pollfd, 4> entries = {{{child.standard_input().get(), POLLOUT, 0},
                                      {child.standard_output().get(), POLLIN, 0},
                                      {child.standard_error().get(), POLLIN, 0},
                                      {child.exit_fd(), POLLIN, 0}}};
    int64_t wait_ms = child.exit_fd() >= 0 ? 1'000 : 2;
    if (deadline_ns >= 0) {
      const int64_t left_ms = (deadline_ns - clock.NowNs()) / 1'000'000 + 1;
      wait_ms = std::clamp<int64_t>(left_ms, 1, wait_ms);
    }
    ::poll(entries.data(), entries.size(), static_cast<int>(wait_ms));
  }
  // The whole group is dead now, so the pipes end.
  Drain(&child.standard_output(), &result.standard_output, run.max_output_bytes);
  Drain(&child.standard_error(), &result.standard_error, run.max_output_bytes);
  return result;
}

}  // namespace hone
