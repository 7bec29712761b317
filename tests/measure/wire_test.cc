#include "measure/wire.h"

#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "base/core/unique_fd.h"

namespace hone::measure {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read_end.Reset(ends[0]);
    write_end.Reset(ends[1]);
  }
  UniqueFd read_end, write_end;
};

TEST(WireTest, FrameLayoutIsFixed) {
  // Written out by hand from the comment in wire.h; CRC-32C of "abc" is 0x364b3fb7 (RFC 3720
  // polynomial).
  const std::string expected(
      "HNW1\x05\x00\x02\x00\x03\x00\x00\x00\xb7\x3f\x4b\x36"
      "abc",
      19);
  EXPECT_EQ(EncodeFrame(FrameType::kBuildReply, "abc"), expected);
}

TEST(WireTest, ValuesComeBack) {
  ByteWriter writer;
  writer.Put(int64_t{-5});
  writer.Put(uint8_t{250});
  writer.Put(1.5);
  writer.PutText(std::string("a\0b", 3));
  writer.PutText("");
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.Get<int64_t>(), -5);
  EXPECT_EQ(reader.Get<uint8_t>(), 250);
  EXPECT_EQ(reader.Get<double>(), 1.5);
  EXPECT_EQ(reader.GetText(), std::string_view("a\0b", 3));
  EXPECT_EQ(reader.GetText(), "");
  EXPECT_TRUE(reader.Finish("values").ok());
}

TEST(WireTest, ReaderFailsOnceAndForAll) {
  ByteWriter writer;
  writer.Put(uint32_t{1000});  // a string of 1000 bytes that are not there
  writer.Put(uint32_t{7});
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.GetText(), "");
  EXPECT_EQ(reader.Get<uint32_t>(), 0u);
  const Status status = reader.Finish("thing");
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), testing::HasSubstr("damaged thing"));
  EXPECT_THAT(status.message(), testing::HasSubstr("1000 bytes where 4 are left"));
}

TEST(WireTest, CountsBeyondThePayloadAreRefusedBeforeAllocation) {
  ByteWriter writer;
  writer.Put(uint32_t{0xffffffff});
  writer.Put(uint64_t{0});
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.GetCount(8), 0u);
  EXPECT_TRUE(reader.failed());
}

TEST(WireTest, LeftOverBytesAreAnError) {
  ByteReader reader("x");
  EXPECT_EQ(reader.Finish("nothing").code(), StatusCode::kDataLoss);
}

TEST(WireTest, DecoderTakesFramesInAnyPieces) {
  const std::string stream = EncodeFrame(FrameType::kBuildRequest, "first") +
                             EncodeFrame(FrameType::kBuildReply, "") +
                             EncodeFrame(FrameType::kBuildRequest, std::string(5000, 'z'));
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{16}, stream.size()}) {
    FrameDecoder decoder;
    std::vector<Frame> frames;
    for (size_t at = 0; at < stream.size(); at += piece) {
      decoder.Append(std::string_view(stream).substr(at, piece));
      for (;;) {
        Result<std::optional<Frame>> next = decoder.Next();
        ASSERT_TRUE(next.ok());
        if (!next->has_value()) break;
        frames.push_back(**next);
      }
    }
    ASSERT_EQ(frames.size(), 3u) << "pieces of " << piece;
    EXPECT_EQ(frames[0].payload, "first");
    EXPECT_EQ(frames[1].type, 2);
    EXPECT_EQ(frames[2].payload.size(), 5000u);
    EXPECT_FALSE(decoder.has_partial());
  }
}

TEST(WireTest, DecoderRefusesForeignBytesVersionsSizesAndDamage) {
  const std::string good = EncodeFrame(FrameType::kBuildRequest, "payload");
  struct Case {
    size_t byte;
    char value;
    const char* says;
  };
  for (const Case& c :
       {Case{0, 'X', "no frame"}, Case{4, 9, "version 9"}, Case{11, 127, "at most 100"},
        Case{12, 0, "checksum"}, Case{18, '!', "checksum"}}) {
    std::string bad = good;
    bad[c.byte] = c.value;
    FrameDecoder decoder(100);
    decoder.Append(bad);
    const Result<std::optional<Frame>> next = decoder.Next();
    ASSERT_FALSE(next.ok()) << "byte " << c.byte;
    EXPECT_EQ(next.status().code(), StatusCode::kDataLoss);
    EXPECT_THAT(next.status().message(), testing::HasSubstr(c.says));
  }
}

TEST(WireTest, RandomBytesNeverMakeAFrame) {
  const uint64_t seed = 20;
  Random random(seed);
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  const std::string good = EncodeFrame(FrameType::kBuildRequest, "some payload of some length");
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    const size_t flips = 1 + random.Below(4);
    for (size_t f = 0; f < flips; ++f) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    }
    FrameDecoder decoder(1 << 20);
    decoder.Append(bytes);
    const Result<std::optional<Frame>> next = decoder.Next();
    // The type alone is not under the checksum; the caller compares it with what it asked for.
    if (!next.ok() || !next->has_value()) continue;
    EXPECT_EQ((*next)->payload, "some payload of some length");
  }
}

TEST(WireTest, FramesLargerThanAPipeGoThrough) {
  Pipe pipe;
  const std::string payload(3 << 20, 'p');
  SystemMonotonicClock clock;
  const WireDeadline deadline{&clock, clock.NowNs() + 20'000'000'000};
  std::thread writer([&] {
    EXPECT_TRUE(WriteFrame(pipe.write_end.get(), FrameType::kBuildReply, payload, deadline).ok());
  });
  FrameDecoder decoder;
  const Result<Frame> frame = ReadFrame(pipe.read_end.get(), decoder, deadline);
  writer.join();
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  EXPECT_EQ(frame->payload, payload);
}

TEST(WireTest, EndOfStreamTellsACleanEndFromALoss) {
  for (const size_t keep : {size_t{0}, size_t{10}, size_t{17}}) {
    Pipe pipe;
    const std::string frame = EncodeFrame(FrameType::kBuildReply, "abc");
    ASSERT_EQ(write(pipe.write_end.get(), frame.data(), keep), static_cast<ssize_t>(keep));
    pipe.write_end.Reset();
    FrameDecoder decoder;
    const Result<Frame> read = ReadFrame(pipe.read_end.get(), decoder);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.status().code(), keep == 0 ? StatusCode::kUnavailable : StatusCode::kDataLoss);
  }
}

TEST(WireTest, DeadlinesHoldForReadingAndWriting) {
  Pipe pipe;
  SystemMonotonicClock clock;
  FrameDecoder decoder;
  const Result<Frame> read =
      ReadFrame(pipe.read_end.get(), decoder, {&clock, clock.NowNs() + 20'000'000});
  EXPECT_EQ(read.status().code(), StatusCode::kDeadlineExceeded);
  // Nobody reads: the pipe fills up.
  const Status written =
      WriteFrame(pipe.write_end.get(), FrameType::kBuildRequest, std::string(1 << 20, 'x'),
                 {&clock, clock.NowNs() + 20'000'000});
  EXPECT_EQ(written.code(), StatusCode::kDeadlineExceeded);
}

TEST(WireTest, WritingToNobodyIsAnErrorNotASignal) {
  Pipe pipe;
  pipe.read_end.Reset();
  EXPECT_EQ(WriteFrame(pipe.write_end.get(), FrameType::kBuildRequest, "x").code(),
            StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hone::measure
