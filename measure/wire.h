#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/byte_stream.h"
#include "base/core/clock.h"
#include "base/core/result.h"
#include "base/core/status.h"

// The pipes between a Hone program and the programs it starts (hone-builder, hone-runner), whose
// payloads ByteWriter makes. std only: the runner, which has no Abseil, links it.
//
// A frame is, little-endian:
//   u32 magic "HNW1"   u16 kWireVersion   u16 type   u32 payload bytes   u32 CRC-32C of the payload
//   payload
// Neither end trusts the other: lengths are checked before anything is allocated, and every read of
// a payload is bounded.
namespace hone::measure {

/// Raised when a payload changes its layout; both ends come from one build, so no other is
/// accepted.
inline constexpr uint16_t kWireVersion = 5;
inline constexpr size_t kFrameHeaderBytes = 16;
inline constexpr int64_t kMaxFramePayloadBytes = int64_t{1} << 30;

/// Types of frames. Do not renumber.
enum class FrameType : uint16_t {
  kBuildRequest = 1,
  kBuildReply = 2,
  kLinkRequest = 3,
  kLinkReply = 4,
  kPrepareRequest = 5,
  kPrepareReply = 6,
  kTimeRequest = 7,
  kTimeReply = 8,
  kLibraryRequest = 9,
  kLibraryReply = 10,
  kModelRequest = 11,
  kModelReply = 12,
};

struct Frame {
  uint16_t type = 0;
  std::string payload;
};

/// Header and payload as they stand on a pipe.
std::string EncodeFrame(FrameType type, std::string_view payload);

/// Cuts a stream of bytes into frames. Not thread-safe.
class FrameDecoder {
 public:
  explicit FrameDecoder(int64_t max_payload_bytes = kMaxFramePayloadBytes)
      : max_payload_bytes_(max_payload_bytes) {}

  void Append(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole frame, nothing yet, or kDataLoss for bytes that are no frame (then the stream
  /// is lost: there is no resynchronisation).
  Result<std::optional<Frame>> Next();
  /// True in the middle of a frame: an end of the stream here is a loss.
  bool has_partial() const { return !buffer_.empty(); }

 private:
  int64_t max_payload_bytes_;
  std::string buffer_;
};

/// Until when to wait for the other end. No clock: for ever.
struct WireDeadline {
  const MonotonicClock* clock = nullptr;
  int64_t at_ns = 0;
};

/// Writes one frame. kUnavailable: the other end is gone; kDeadlineExceeded: it does not read
/// (then part of the frame may be written and the stream is lost). Raises no SIGPIPE.
Status WriteFrame(int fd, FrameType type, std::string_view payload, WireDeadline deadline = {});

/// Reads until one frame is whole. kUnavailable: the stream ended between two frames (or its reader
/// was gone); kDataLoss: it ended inside one or is no frame; kDeadlineExceeded.
Result<Frame> ReadFrame(int fd, FrameDecoder& decoder, WireDeadline deadline = {});

}  // namespace hone::measure
