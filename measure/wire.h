#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "base/core/status.h"

// The one codec of the pipes between a Hone program and the programs it starts (hone-builder,
// hone-runner). std only: the runner, which has no Abseil, links it.
//
// A frame is, little-endian:
//   u32 magic "HNW1"   u16 kWireVersion   u16 type   u32 payload bytes   u32 CRC-32C of the payload
//   payload
// Neither end trusts the other: lengths are checked before anything is allocated, and every read of
// a payload is bounded.
namespace hone::measure {

/// Raised when a payload changes its layout; both ends come from one build, so no other is
/// accepted.
inline constexpr uint16_t kWireVersion = 2;
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

/// Appends values to a payload: integers and floats little-endian, strings and lists behind a u32
/// count.
class WireWriter {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T>
  void Put(T value) {
    static_assert(std::endian::native == std::endian::little);
    payload_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void PutString(std::string_view text);
  void PutCount(size_t count);

  const std::string& payload() const { return payload_; }
  std::string Take() { return std::move(payload_); }

 private:
  std::string payload_;
};

/// Reads a payload written by WireWriter. The first value that does not fit makes the reader fail
/// for good: everything read from then on is zero or empty, so a decoder checks once, at the end.
/// The payload must outlive the reader.
class WireReader {
 public:
  explicit WireReader(std::string_view payload) : rest_(payload) {}

  template <typename T>
  requires std::is_arithmetic_v<T> T Get() {
    T value{};
    const std::string_view bytes = Take(sizeof value);
    if (failed_) return value;
    std::char_traits<char>::copy(reinterpret_cast<char*>(&value), bytes.data(), sizeof value);
    return value;
  }
  /// A string of at most `max_bytes`; the view points into the payload.
  std::string_view GetString(size_t max_bytes = kMaxFramePayloadBytes);
  /// The count of a list whose elements take at least `min_element_bytes` each: a count that cannot
  /// fit in what is left fails here, before anything is reserved.
  size_t GetCount(size_t min_element_bytes);

  /// Marks the payload as bad (a value outside its range).
  void Fail(std::string_view reason);
  bool failed() const { return failed_; }
  /// Ok when every value fitted and nothing is left over; otherwise kDataLoss with `what` was read.
  Status Finish(std::string_view what) const;

 private:
  std::string_view Take(size_t bytes);

  std::string_view rest_;
  bool failed_ = false;
  std::string reason_;
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
