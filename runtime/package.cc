#include "runtime/package.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>

#include "base/core/byte_stream.h"
#include "base/core/crc32c.h"
#include "base/core/status_macros.h"
#include "base/core/unique_fd.h"
#include "base/versions.h"
#include "runtime/device.h"
#include "runtime/info_codec.h"
#include "runtime/message.h"
#include "runtime/plan_check.h"
#include "runtime/plan_codec.h"

namespace hone::runtime {
namespace {

// As in PNG: a byte above 127, a name, and line ends that a text transfer would change.
constexpr std::string_view kMagic = "\x89HONE\r\n\x1a";
constexpr uint64_t kPageBytes = 4096;

// Sections, in the order of the file. Stored: do not renumber.
enum class Section : uint32_t { kInfo = 1, kPlan = 2, kCode = 3, kConstants = 4 };
constexpr size_t kSectionsOfVariant = 3;
constexpr uint32_t kFirstFormatOfVariants = 4;

struct SectionEntry {
  Section kind = Section::kInfo;
  uint32_t checksum = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

constexpr size_t kEntryBytes = 4 + 4 + 8 + 8;
constexpr size_t kFixedBytes = 8 + 4 + 4 + 4 + 4 + 8 + 8;
constexpr size_t kChecksumAt = 8 + 4 + 4;  // after magic, format and runtime

std::string_view Chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint32_t ChecksumOf(std::string_view bytes) { return Crc32c(bytes.data(), bytes.size()); }

uint64_t Alignment(Section section) {
  return section == Section::kCode || section == Section::kConstants ? kPageBytes : 8;
}

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

constexpr size_t HeaderBytes(size_t sections) { return kFixedBytes + sections * kEntryBytes; }

/// Info, plan and code of each variant, then the constants of all.
Section KindAt(size_t section, size_t sections) {
  if (section + 1 == sections) return Section::kConstants;
  constexpr std::array kKinds = {Section::kInfo, Section::kPlan, Section::kCode};
  return kKinds[section % kSectionsOfVariant];
}

/// Where the sections lie, given their sizes: there is only one way.
std::vector<SectionEntry> LayOut(const std::vector<uint64_t>& sizes) {
  std::vector<SectionEntry> entries;
  uint64_t at = HeaderBytes(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Section kind = KindAt(i, sizes.size());
    at = RoundUp(at, Alignment(kind));
    entries.push_back({.kind = kind, .checksum = 0, .offset = at, .bytes = sizes[i]});
    at += sizes[i];
  }
  return entries;
}

std::string EncodeHeader(uint64_t isa_bits, const std::vector<SectionEntry>& all) {
  ByteWriter writer;
  writer.PutBytes(kMagic);
  writer.Put<uint32_t>(kPackageFormatVersion);
  writer.Put<uint32_t>(kRuntimeVersion);
  writer.Put<uint32_t>(0);  // the checksum's place
  writer.Put<uint32_t>(static_cast<uint32_t>(all.size()));
  writer.Put<uint64_t>(isa_bits);
  writer.Put<uint64_t>(all.back().offset + all.back().bytes);
  for (const SectionEntry& entry : all) {
    writer.Put<uint32_t>(static_cast<uint32_t>(entry.kind));
    writer.Put<uint32_t>(entry.checksum);
    writer.Put<uint64_t>(entry.offset);
    writer.Put<uint64_t>(entry.bytes);
  }
  std::string header = writer.Take();
  ByteWriter checksum;
  checksum.Put<uint32_t>(ChecksumOf(header));
  header.replace(kChecksumAt, 4, checksum.bytes());
  return header;
}

Result<ir::Target> ParsedTarget(const std::string& text) {
  ir::Target target;
  std::string error;
  if (ir::ParseTarget(text, &target, &error)) return target;
  return Status(StatusCode::kInvalidArgument, error);
}

/// The pieces of the file in order; views into `made` and the packages.
struct Pieces {
  std::deque<std::string> made;  // whose strings stay where they are
  std::vector<std::string_view> all;

  void Add(std::string piece) { all.push_back(made.emplace_back(std::move(piece))); }
};

Result<std::unique_ptr<Pieces>> MakePieces(const Variants& variants) {
  HONE_RETURN_IF_ERROR(CheckPackages(variants));
  auto pieces = std::make_unique<Pieces>();
  std::vector<std::string_view> contents;
  uint64_t isa_bits = 0;
  for (const Package& package : variants) {
    HONE_ASSIGN_OR_RETURN(const ir::Target target, ParsedTarget(package.info.target));
    isa_bits |= ir::PackageBits(target);
    ByteWriter plan;
    EncodePlan(package.plan, plan);
    contents.push_back(pieces->made.emplace_back(EncodeInfo(package.info)));
    contents.push_back(pieces->made.emplace_back(plan.Take()));
    contents.push_back(Chars(package.code));
  }
  contents.push_back(Chars(variants.front().constants));
  std::vector<uint64_t> sizes;
  for (const std::string_view content : contents) sizes.push_back(content.size());
  std::vector<SectionEntry> entries = LayOut(sizes);
  for (size_t i = 0; i < contents.size(); ++i) entries[i].checksum = ChecksumOf(contents[i]);
  pieces->Add(EncodeHeader(isa_bits, entries));
  uint64_t at = HeaderBytes(entries.size());
  for (size_t i = 0; i < contents.size(); ++i) {
    pieces->Add(std::string(entries[i].offset - at, '\0'));
    pieces->all.push_back(contents[i]);
    at = entries[i].offset + entries[i].bytes;
  }
  return pieces;
}

Status WriteAllPieces(int fd, const std::vector<std::string_view>& pieces,
                      const std::string& path) {
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      const ssize_t written = ::write(fd, piece.data(), piece.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return SystemError(errno, "cannot write '" + path + "'");
      piece.remove_prefix(static_cast<size_t>(written));
    }
  }
  return {};
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

struct Header {
  int format = 0;
  uint64_t isa_bits = 0;
  std::vector<SectionEntry> entries;

  size_t variants() const { return entries.size() / kSectionsOfVariant; }
};

Status Damaged(const std::string& why) {
  return {StatusCode::kDataLoss, "the package is damaged: " + why + "; get it again or rebuild it"};
}

Status CheckVersions(uint32_t format, uint32_t runtime) {
  if (format == 0 || runtime == 0) return Invalid("not a package: version 0");
  if (format > static_cast<uint32_t>(kPackageFormatVersion)) {
    return {StatusCode::kFailedPrecondition,
            Message("the package has format ", format, ", this runtime (Hone ", kProgramVersion,
                    ") reads up to ", kPackageFormatVersion, "; use a newer runtime")};
  }
  if (format < static_cast<uint32_t>(kOldestPackageFormatVersion)) {
    return {
        StatusCode::kFailedPrecondition,
        Message("the package has format ", format, ", this runtime (Hone ", kProgramVersion,
                ") reads ", kOldestPackageFormatVersion, " and later; compile the model again")};
  }
  if (runtime > static_cast<uint32_t>(kRuntimeVersion)) {
    return {StatusCode::kFailedPrecondition,
            Message("the package needs runtime ", runtime, ", this one (Hone ", kProgramVersion,
                    ") is ", kRuntimeVersion, "; use a newer runtime")};
  }
  return {};
}

Result<Header> ParseHeader(std::span<const std::byte> bytes) {
  const std::string_view chars = Chars(bytes);
  if (chars.substr(0, kMagic.size()) != kMagic) {
    return Invalid("not a Hone package (it does not begin with the mark of one)");
  }
  if (bytes.size() < HeaderBytes(kSectionsOfVariant + 1)) {
    return Damaged(Message("only ", bytes.size(), " bytes"));
  }
  ByteReader reader(chars.substr(kMagic.size()));
  const uint32_t format = reader.Get<uint32_t>();
  const uint32_t runtime = reader.Get<uint32_t>();
  HONE_RETURN_IF_ERROR(CheckVersions(format, runtime));
  const uint32_t checksum = reader.Get<uint32_t>();
  const size_t sections = reader.Get<uint32_t>();
  const size_t variants = sections / kSectionsOfVariant;
  const bool right = variants == 1 || format >= kFirstFormatOfVariants;
  if (sections % kSectionsOfVariant != 1 || !right || variants > kMaxVariants ||
      bytes.size() < HeaderBytes(sections)) {
    return Invalid("header: wrong number of sections");
  }
  std::string zeroed(chars.substr(0, HeaderBytes(sections)));
  zeroed.replace(kChecksumAt, 4, 4, '\0');
  if (ChecksumOf(zeroed) != checksum) return Damaged("the header's checksum is wrong");

  Header header;
  header.entries.resize(sections);
  header.format = static_cast<int>(format);
  header.isa_bits = reader.Get<uint64_t>();
  const uint64_t file_bytes = reader.Get<uint64_t>();
  if (file_bytes != bytes.size()) {
    return Damaged(Message("it has ", bytes.size(), " bytes of ", file_bytes));
  }
  for (SectionEntry& entry : header.entries) {
    entry.kind = static_cast<Section>(reader.Get<uint32_t>());
    entry.checksum = reader.Get<uint32_t>();
    entry.offset = reader.Get<uint64_t>();
    entry.bytes = reader.Get<uint64_t>();
    if (entry.bytes > bytes.size()) return Invalid("header: a section larger than the file");
  }
  return header;
}

/// What a table that was read to its end is.
Status TableStatus(ByteReader& reader, std::string_view table) {
  if (reader.AtEnd()) return {};
  return Invalid(table, ": ", reader.reason(), " (at byte ", reader.at(), " of the table)");
}

/// The places must be those that LayOut gives: so nothing overlaps, overflows or hides in between.
Status CheckLayout(const Header& header, std::span<const std::byte> bytes) {
  std::vector<uint64_t> sizes;
  for (const SectionEntry& entry : header.entries) sizes.push_back(entry.bytes);
  const std::vector<SectionEntry> expected = LayOut(sizes);
  uint64_t end = HeaderBytes(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const SectionEntry& entry = header.entries[i];
    if (entry.kind != expected[i].kind || entry.offset != expected[i].offset ||
        entry.offset + entry.bytes > bytes.size()) {
      return Invalid("header: section ", i, " is not where it belongs");
    }
    const auto padding = bytes.subspan(end, entry.offset - end);
    if (std::any_of(padding.begin(), padding.end(),
                    [](std::byte b) { return b != std::byte{0}; })) {
      return Damaged(Message("bytes between sections, before section ", i));
    }
    end = entry.offset + entry.bytes;
  }
  if (end != bytes.size()) return Invalid("header: bytes after the last section");
  return {};
}

/// CheckPackage; the target of the package, which is parsed here.
Result<ir::Target> CheckedTarget(const Package& package) {
  HONE_ASSIGN_OR_RETURN(ir::Target target, ParsedTarget(package.info.target));
  const uint64_t isa_bits = ir::PackageBits(target);
  if (package.info.kernels.size() != package.plan.kernels.size()) {
    return Invalid("the package describes ", package.info.kernels.size(), " kernels, the plan has ",
                   package.plan.kernels.size());
  }
  for (size_t i = 0; i < package.plan.kernels.size(); ++i) {
    const Result<ir::Target> needs = ParsedTarget(package.plan.kernels[i].target);
    if (!needs.ok()) return Invalid("kernel ", i, ": ", needs.status().message());
    if ((ir::PackageBits(*needs) & ~isa_bits) != 0) {
      return Invalid("kernel ", i, " is made for ", package.plan.kernels[i].target,
                     ", the package for ", package.info.target);
    }
  }
  HONE_RETURN_IF_ERROR(CheckInfo(package.info));
  HONE_RETURN_IF_ERROR(CheckPlan(package.plan, static_cast<int64_t>(package.constants.size())));
  if (package.plan.kernels.empty()) {
    if (!package.code.empty()) return Invalid("code without kernels");
    return target;
  }
  // A kind that this program cannot run may still be looked at.
  const Device* const device = DevicesOfKinds().Find(target.kind);
  if (device != nullptr) HONE_RETURN_IF_ERROR(device->CheckCode(package.code));
  return target;
}

bool SameValues(const std::vector<ir::PlanValue>& some, const std::vector<ir::PlanValue>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                    [](const ir::PlanValue& a, const ir::PlanValue& b) {
                      return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape;
                    });
}

/// CheckPackages; the targets of the packages.
Result<std::vector<ir::Target>> CheckedTargets(const Variants& variants) {
  if (variants.empty() || variants.size() > kMaxVariants) {
    return Invalid("a file for ", variants.size(), " targets");
  }
  const Package& first = variants.front();
  std::vector<ir::Target> targets;
  for (size_t i = 0; i < variants.size(); ++i) {
    const Package& each = variants[i];
    HONE_ASSIGN_OR_RETURN(ir::Target target, CheckedTarget(each));
    targets.push_back(std::move(target));
    for (size_t k = 0; k < i; ++k) {
      if (variants[k].info.target == each.info.target) {
        return Invalid("two packages for ", each.info.target, " in one file");
      }
    }
    if (!SameValues(each.plan.inputs, first.plan.inputs) ||
        !SameValues(each.plan.outputs, first.plan.outputs)) {
      return Invalid("the packages for ", first.info.target, " and ", each.info.target,
                     " have other inputs or outputs");
    }
    if (each.constants.data() != first.constants.data() ||
        each.constants.size() != first.constants.size()) {
      return Invalid("the packages for ", first.info.target, " and ", each.info.target,
                     " do not share their constants");
    }
  }
  return targets;
}

}  // namespace

Status CheckPackage(const Package& package) { return CheckedTarget(package).status(); }

Status CheckPackages(const Variants& variants) { return CheckedTargets(variants).status(); }

Result<std::string> SerializePackage(const Package& package) {
  return SerializePackages({package});
}

Result<std::string> SerializePackages(const Variants& variants) {
  HONE_ASSIGN_OR_RETURN(const auto pieces, MakePieces(variants));
  std::string bytes;
  for (const std::string_view piece : pieces->all) bytes += piece;
  return bytes;
}

namespace {

/// A pipe or a device gets the bytes; replacing it by a file would take it from everybody.
Status WriteInPlace(const std::vector<std::string_view>& pieces, const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return SystemError(errno, "cannot write '" + path + "'");
  return WriteAllPieces(fd.get(), pieces, path);
}

Status WriteBeside(const std::vector<std::string_view>& pieces, const std::string& path) {
  const std::string temporary = Message(path, ".tmp.", ::getpid());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd.valid()) return SystemError(errno, "cannot write '" + path + "'");
  Status status = WriteAllPieces(fd.get(), pieces, path);
  if (status.ok() && ::fsync(fd.get()) != 0) {
    status = SystemError(errno, "cannot write '" + path + "'");
  }
  if (status.ok() && ::close(fd.Release()) != 0) {
    status = SystemError(errno, "cannot write '" + path + "'");
  }
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = SystemError(errno, "cannot write '" + path + "'");
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  // The new name is on disk when its folder is. Some file systems cannot do this; the file is whole
  // either way.
  const UniqueFd folder(::open(FolderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) ::fsync(folder.get());
  return {};
}

}  // namespace

Status WritePackage(const Package& package, const std::string& path) {
  return WritePackages({package}, path);
}

Status WritePackages(const Variants& variants, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const auto pieces, MakePieces(variants));
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) return Invalid("cannot write '", path, "': it is a folder");
    return WriteInPlace(pieces->all, path);
  }
  return WriteBeside(pieces->all, path);
}

Result<Variants> ParsePackages(std::span<const std::byte> bytes) {
  HONE_ASSIGN_OR_RETURN(const Header header, ParseHeader(bytes));
  HONE_RETURN_IF_ERROR(CheckLayout(header, bytes));
  std::vector<std::span<const std::byte>> contents;
  for (const SectionEntry& entry : header.entries) {
    contents.push_back(bytes.subspan(entry.offset, entry.bytes));
    if (ChecksumOf(Chars(contents.back())) != entry.checksum) {
      return Damaged(Message("the checksum of section ", contents.size() - 1, " is wrong"));
    }
  }
  Variants variants(header.variants());
  for (size_t i = 0; i < variants.size(); ++i) {
    Package& package = variants[i];
    const size_t first = i * kSectionsOfVariant;
    ByteReader info(Chars(contents[first]));
    package.info = DecodeInfo(info, header.format);
    HONE_RETURN_IF_ERROR(TableStatus(info, "info table"));
    ByteReader plan(Chars(contents[first + 1]));
    package.plan = DecodePlan(plan, header.format);
    HONE_RETURN_IF_ERROR(TableStatus(plan, "plan"));
    package.code = contents[first + 2];
    package.constants = contents.back();
  }
  HONE_ASSIGN_OR_RETURN(std::vector<ir::Target> targets, CheckedTargets(variants));
  uint64_t isa_bits = 0;
  for (size_t i = 0; i < variants.size(); ++i) {
    isa_bits |= ir::PackageBits(targets[i]);
    variants[i].target = std::move(targets[i]);
  }
  if (isa_bits != header.isa_bits)
    return Invalid("header: instruction sets differ from the target");
  return variants;
}

Result<Package> ParsePackage(std::span<const std::byte> bytes) {
  HONE_ASSIGN_OR_RETURN(Variants variants, ParsePackages(bytes));
  if (variants.size() > 1)
    return Invalid("the file has packages for ", variants.size(), " targets");
  return std::move(variants.front());
}

}  // namespace hone::runtime
