#include "measure/wire.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/core/broken_pipe_guard.h"
#include "base/core/crc32c.h"
#include "base/core/status_macros.h"

namespace hone::measure {
namespace {

constexpr uint32_t kMagic = 0x31574e48;  // "HNW1"
constexpr size_t kReadChunkBytes = size_t{1} << 16;

std::string ErrnoText(int error_number) { return std::generic_category().message(error_number); }

template <typename T>
T LoadAt(std::string_view bytes, size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Waits until `fd` can be read or written without blocking, or its other end is gone.
Status WaitFor(int fd, short events, const WireDeadline& deadline) {
  for (;;) {
    int timeout_ms = -1;
    if (deadline.clock != nullptr) {
      const int64_t left_ns = deadline.at_ns - deadline.clock->NowNs();
      if (left_ns <= 0) {
        return Status(StatusCode::kDeadlineExceeded,
                      "the other end of the pipe did not answer in time");
      }
      // Rounded up, so that the last millisecond is not spent spinning.
      timeout_ms = static_cast<int>(std::min<int64_t>(left_ns / 1'000'000 + 1, 60'000));
    }
    pollfd waiting{fd, events, 0};
    const int ready = poll(&waiting, 1, timeout_ms);
    if (ready > 0) return Status();
    if (ready < 0 && errno != EINTR) {
      return Status(StatusCode::kInternal, "cannot wait for a pipe: " + ErrnoText(errno));
    }
  }
}

}  // namespace

std::string EncodeFrame(FrameType type, std::string_view payload) {
  HONE_CHECK(static_cast<int64_t>(payload.size()) <= kMaxFramePayloadBytes)
      << "a payload of " << payload.size() << " bytes";
  ByteWriter writer;
  writer.Put(kMagic);
  writer.Put(kWireVersion);
  writer.Put(static_cast<uint16_t>(type));
  writer.Put(static_cast<uint32_t>(payload.size()));
  writer.Put(Crc32c(payload.data(), payload.size()));
  std::string frame = writer.Take();
  frame.append(payload);
  return frame;
}

Result<std::optional<Frame>> FrameDecoder::Next() {
  if (buffer_.size() < kFrameHeaderBytes) return std::optional<Frame>();
  if (LoadAt<uint32_t>(buffer_, 0) != kMagic) {
    return Status(StatusCode::kDataLoss, "the pipe carries something that is no frame of Hone");
  }
  const auto version = LoadAt<uint16_t>(buffer_, 4);
  if (version != kWireVersion) {
    return Status(StatusCode::kDataLoss, "the other end speaks version " + std::to_string(version) +
                                             " of the pipe, this one " +
                                             std::to_string(kWireVersion) +
                                             "; install programs of one build together");
  }
  const auto size = LoadAt<uint32_t>(buffer_, 8);
  if (static_cast<int64_t>(size) > max_payload_bytes_) {
    return Status(StatusCode::kDataLoss, "a frame of " + std::to_string(size) +
                                             " bytes where at most " +
                                             std::to_string(max_payload_bytes_) + " are accepted");
  }
  if (buffer_.size() - kFrameHeaderBytes < size) return std::optional<Frame>();
  Frame frame{LoadAt<uint16_t>(buffer_, 6), buffer_.substr(kFrameHeaderBytes, size)};
  if (Crc32c(frame.payload.data(), size) != LoadAt<uint32_t>(buffer_, 12)) {
    return Status(StatusCode::kDataLoss, "a frame's checksum does not fit its payload");
  }
  buffer_.erase(0, kFrameHeaderBytes + size);
  return std::optional<Frame>(std::move(frame));
}

Status WriteFrame(int fd, FrameType type, std::string_view payload, WireDeadline deadline) {
  const BrokenPipeGuard guard;
  const std::string bytes = EncodeFrame(type, payload);
  std::string_view rest = bytes;
  while (!rest.empty()) {
    HONE_RETURN_IF_ERROR(WaitFor(fd, POLLOUT, deadline));
    // PIPE_BUF is what poll promises to take without blocking; with no deadline blocking is fine.
    const size_t chunk =
        deadline.clock == nullptr ? rest.size() : std::min<size_t>(rest.size(), 4096);
    const ssize_t written = write(fd, rest.data(), chunk);
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      return Status(StatusCode::kUnavailable, "the other end of the pipe is gone");
    } else if (errno != EINTR && errno != EAGAIN) {
      return Status(StatusCode::kInternal, "cannot write to a pipe: " + ErrnoText(errno));
    }
  }
  return Status();
}

Result<Frame> ReadFrame(int fd, FrameDecoder& decoder, WireDeadline deadline) {
  std::array<char, kReadChunkBytes> chunk;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(std::optional<Frame> frame, decoder.Next());
    if (frame.has_value()) return *std::move(frame);
    HONE_RETURN_IF_ERROR(WaitFor(fd, POLLIN, deadline));
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got > 0) {
      decoder.Append(std::string_view(chunk.data(), static_cast<size_t>(got)));
    } else if (got == 0) {
      if (decoder.has_partial()) {
        return Status(StatusCode::kDataLoss, "the pipe ended inside a frame");
      }
      return Status(StatusCode::kUnavailable, "the other end of the pipe is gone");
    } else if (errno != EINTR && errno != EAGAIN) {
      return Status(StatusCode::kInternal, "cannot read from a pipe: " + ErrnoText(errno));
    }
  }
}

}  // namespace hone::measure
