#include "client/package_object.h"

#include <elf.h>

#include <cstring>

#include "base/file.h"
#include "base/status.h"

namespace hone::client {
namespace {

constexpr size_t kPage = 4096;

enum Section : uint16_t {
  kNull,
  kData,   ///< the package
  kEntry,  ///< its address and its size
  kRelocation,
  kNoStack,
  kSymbols,
  kNames,
  kSectionNames,
  kNum
};

/// Appends to `text` with its final 0; gives the place.
Elf64_Word AddName(std::string& text, const std::string& name) {
  const auto place = static_cast<Elf64_Word>(text.size());
  text.append(name.c_str(), name.size() + 1);
  return place;
}

/// Fills up to a multiple of `unit` and gives the place.
size_t Align(std::string& bytes, size_t unit) {
  bytes.resize((bytes.size() + unit - 1) / unit * unit);
  return bytes.size();
}

template <typename T>
void Append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Elf64_Ehdr FileHeader(size_t sections) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = sections;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kNum;
  header.e_shstrndx = kSectionNames;
  return header;
}

/// Eight bytes of kEntry, visible to all.
Elf64_Sym EntrySymbol(Elf64_Word name, size_t offset) {
  Elf64_Sym symbol = {};
  symbol.st_name = name;
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  symbol.st_shndx = kEntry;
  symbol.st_value = offset;
  symbol.st_size = 8;
  return symbol;
}

Elf64_Sym DataSection() {
  Elf64_Sym symbol = {};
  symbol.st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION);
  symbol.st_shndx = kData;
  return symbol;
}

}  // namespace

absl::Status WritePackageObject(const std::string& package_path, const std::string& name,
                                const std::string& object_path) {
  HONE_ASSIGN_OR_RETURN(const std::string package, ReadFile(package_path));
  std::string section_names(1, '\0'), names(1, '\0');
  Elf64_Shdr sections[kNum] = {};
  const auto describe = [&](Section section, const char* called, Elf64_Word type, Elf64_Xword flags,
                            size_t offset, size_t bytes, size_t unit) {
    sections[section].sh_name = AddName(section_names, called);
    sections[section].sh_type = type;
    sections[section].sh_flags = flags;
    sections[section].sh_offset = offset;
    sections[section].sh_size = bytes;
    sections[section].sh_addralign = unit;
  };
  std::string file(kPage, '\0');
  file += package;
  describe(kData, ".rodata.package", SHT_PROGBITS, SHF_ALLOC, kPage, package.size(), kPage);
  const size_t entry = Align(file, 8);
  Append(file, uint64_t{0});  // the linker writes the address
  Append(file, uint64_t{package.size()});
  describe(kEntry, ".data.rel.ro.package", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, entry, 16, 8);
  Append(file, Elf64_Rela{.r_offset = 0, .r_info = ELF64_R_INFO(1, R_X86_64_64), .r_addend = 0});
  describe(kRelocation, ".rela.data.rel.ro.package", SHT_RELA, SHF_INFO_LINK, entry + 16,
           sizeof(Elf64_Rela), 8);
  sections[kRelocation].sh_link = kSymbols;
  sections[kRelocation].sh_info = kEntry;
  sections[kRelocation].sh_entsize = sizeof(Elf64_Rela);
  describe(kNoStack, ".note.GNU-stack", SHT_PROGBITS, 0, file.size(), 0, 1);

  const size_t symbols = file.size();
  Append(file, Elf64_Sym{});
  Append(file, DataSection());
  Append(file, EntrySymbol(AddName(names, name + "_package"), 0));
  Append(file, EntrySymbol(AddName(names, name + "_package_bytes"), 8));
  describe(kSymbols, ".symtab", SHT_SYMTAB, 0, symbols, file.size() - symbols, 8);
  sections[kSymbols].sh_link = kNames;
  sections[kSymbols].sh_info = 2;  // the first global one
  sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  describe(kNames, ".strtab", SHT_STRTAB, 0, file.size(), names.size(), 1);
  file += names;
  describe(kSectionNames, ".shstrtab", SHT_STRTAB, 0, file.size(), 0, 1);
  sections[kSectionNames].sh_size = section_names.size();
  file += section_names;
  const size_t table = Align(file, 8);
  for (const Elf64_Shdr& section : sections) Append(file, section);
  const Elf64_Ehdr header = FileHeader(table);
  std::memcpy(file.data(), &header, sizeof header);
  return WriteFileAtomically(object_path, file);
}

}  // namespace hone::client
