#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "fmt/core.h"

#include "tests/ptx/names.h"
#include "tests/ptx/program.h"

namespace hone::ptx {
namespace {

struct Token {
  std::string_view text;
  int line = 0;
};

bool IsWordStart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

/// Words, numbers and single signs; comments and strings are left out.
std::vector<Token> Tokens(std::string_view text) {
  std::vector<Token> tokens;
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      while (at < text.size() && text[at] != '\n') ++at;
    } else if (c == '"') {
      at = text.find('"', at + 1);
      at = at == std::string_view::npos ? text.size() : at + 1;
    } else if (IsWordStart(c)) {
      size_t end = at + 1;
      while (end < text.size()) {
        const bool scope = text.substr(end, 2) == "::";  // shared::cta
        if (!scope && !IsWordStart(text[end])) break;
        end += scope ? 2 : 1;
      }
      tokens.push_back({text.substr(at, end - at), line});
      at = end;
    } else {
      tokens.push_back({text.substr(at, 1), line});
      ++at;
    }
  }
  return tokens;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(Tokens(text)) {}

  absl::StatusOr<Program> Parse() {
    while (ok() && at_ < tokens_.size()) ParseTop();
    if (!error_.empty()) return absl::InvalidArgumentError(error_);
    return std::move(program_);
  }

 private:
  bool ok() const { return error_.empty(); }
  void Fail(std::string what) {
    if (ok()) error_ = fmt::format("line {}: {}", Line(), what);
  }
  int Line() const { return tokens_.empty() ? 0 : tokens_[std::min(at_, tokens_.size() - 1)].line; }
  std::string_view Peek() const { return at_ < tokens_.size() ? tokens_[at_].text : ""; }
  std::string_view Take() {
    const std::string_view text = Peek();
    ++at_;
    return text;
  }
  bool TakeIf(std::string_view text) {
    if (Peek() != text) return false;
    ++at_;
    return true;
  }
  void Expect(std::string_view text) {
    if (!TakeIf(text)) Fail(fmt::format("'{}' where '{}' must stand", Peek(), text));
  }

  int64_t TakeInteger() {
    const bool negative = TakeIf("-");
    std::string_view text = Take();
    const bool hex = text.starts_with("0x");
    if (hex) text.remove_prefix(2);
    if (text.ends_with('U')) text.remove_suffix(1);
    uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
    if (error != std::errc() || end != text.data() + text.size()) {
      --at_;
      Fail(fmt::format("'{}' is not an integer", text));
    }
    return static_cast<int64_t>(negative ? ~value + 1 : value);
  }

  void ParseTop() {
    const std::string_view word = Peek();
    if (word == ".version" || word == ".address_size") {
      at_ += 2;
    } else if (word == ".target") {
      ++at_;
      program_.target = std::string(Take());
    } else if (word == ".visible" || word == ".extern" || word == ".weak") {
      ++at_;
    } else if (word == ".entry") {
      ParseKernel();
    } else if (word == ".global" || word == ".const" || word == ".shared") {
      const bool given = at_ > 0 && tokens_[at_ - 1].text == ".extern";
      Variable v = ParseVariable();
      const bool shared = v.space == Space::kShared;
      if (given != (shared && v.bytes == 0))
        Fail("what a launch gives is an array of shared memory without a size, and nothing else");
      (shared ? program_.given : program_.variables).push_back(std::move(v));
      Expect(";");
    } else {
      Fail(fmt::format("'{}' is not known at this place", word));
    }
  }

  // .space [.align n] [.ptr ...] .type name[n] [= {...}]
  Variable ParseVariable() {
    Variable v;
    const std::optional<Space> space = SpaceNamed(Take().substr(1));
    if (!space) Fail("no such state space");
    v.space = space.value_or(Space::kGlobal);
    std::optional<Type> type;
    while (ok() && Peek().starts_with(".")) {
      const std::string_view word = Take();
      if (word == ".align") {
        v.alignment = TakeInteger();
      } else if (word != ".ptr" && !SpaceNamed(word.substr(1))) {
        type = TypeNamed(word.substr(1));
        if (!type) Fail(fmt::format("no type {}", word));
      }
    }
    const Type element = type.value_or(Type{'b', 8});
    v.alignment = std::max<int64_t>(v.alignment, element.bytes());
    v.name = std::string(Take());
    v.bytes = element.bytes();
    if (TakeIf("[")) {
      v.bytes *= Peek() == "]" ? 0 : TakeInteger();
      Expect("]");
    }
    if (TakeIf("=")) ParseInitial(element, &v);
    return v;
  }

  void ParseInitial(Type element, Variable* v) {
    const bool list = TakeIf("{");
    while (ok() && Peek() != "}") {
      const uint64_t bits = ParseNumber(Take());
      for (int k = 0; k < element.bytes(); ++k)
        v->initial.push_back(static_cast<uint8_t>(bits >> (8 * k)));
      if (!list || !TakeIf(",")) break;
    }
    if (list) Expect("}");
    v->initial.resize(static_cast<size_t>(v->bytes), 0);
  }

  void ParseKernel() {
    Expect(".entry");
    kernel_ = Kernel{};
    registers_.clear();
    labels_.clear();
    kernel_.name = std::string(Take());
    if (TakeIf("(")) {
      while (ok() && Peek() != ")") {
        kernel_.parameters.push_back(ParseVariable());
        if (!TakeIf(",")) break;
      }
      Expect(")");
    }
    while (ok() && Peek() != "{") {
      const std::string_view word = Take();
      if (word == ".reqntid" || word == ".maxntid") {
        int k = 0;
        do {
          const auto n = static_cast<int>(TakeInteger());
          if (k < 3 && word == ".reqntid") kernel_.threads[k] = n;
          ++k;
        } while (ok() && TakeIf(","));
      } else if (word == ".minnctapersm" || word == ".maxnreg") {
        TakeInteger();
      } else {
        Fail(fmt::format("'{}' is not known at this place", word));
      }
    }
    Expect("{");
    for (int depth = 1; ok() && depth > 0;) {
      if (at_ >= tokens_.size()) Fail("the kernel does not end");
      if (TakeIf("{")) {
        ++depth;
      } else if (TakeIf("}")) {
        --depth;
      } else {
        ParseStatement();
      }
    }
    ResolveLabels();
    program_.kernels[kernel_.name] = std::move(kernel_);
  }

  void ParseStatement() {
    const std::string_view word = Peek();
    if (word == ".reg") {
      ParseRegisters();
    } else if (word == ".shared" || word == ".local") {
      kernel_.variables.push_back(ParseVariable());
      Expect(";");
    } else if (word == ".pragma") {
      ++at_;
      Expect(";");
    } else if (at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == ":") {
      labels_[std::string(word)] = static_cast<int>(kernel_.body.size());
      at_ += 2;
    } else {
      ParseInstruction();
    }
  }

  void ParseRegisters() {
    Expect(".reg");
    const std::optional<Type> type = TypeNamed(Take().substr(1));
    if (!type) return Fail("no such type of register");
    do {
      const std::string name(Take());
      if (TakeIf("<")) {
        const int64_t count = TakeInteger();
        for (int64_t k = 0; k < count; ++k) AddRegister(fmt::format("{}{}", name, k), *type);
        Expect(">");
      } else {
        AddRegister(name, *type);
      }
    } while (ok() && TakeIf(","));
    Expect(";");
  }

  void AddRegister(const std::string& name, Type type) {
    registers_[name] = static_cast<int>(kernel_.registers.size());
    kernel_.registers.push_back(type);
  }

  void ParseInstruction() {
    Instruction in;
    in.line = Line();
    const size_t first = at_;
    if (TakeIf("@")) {
      in.guard_negated = TakeIf("!");
      in.guard = Register(Take());
    }
    const std::string_view name = Take();
    if (const std::string unknown = ReadName(name, &in); !unknown.empty()) {
      --at_;
      return Fail(fmt::format("instruction {}: {} is not known", name, unknown));
    }
    while (ok() && Peek() != ";") {
      in.operands.push_back(ParseOperand());
      if (!TakeIf(",")) break;
    }
    for (size_t k = first; k < at_ && k < tokens_.size(); ++k)
      in.text += (k == first ? "" : " ") + std::string(tokens_[k].text);
    Expect(";");
    if (const std::string wrong = CheckForm(in); !wrong.empty())
      Fail(fmt::format("'{}': {}", in.text, wrong));
    kernel_.body.push_back(std::move(in));
  }

  int Register(std::string_view name) {
    const auto found = registers_.find(std::string(name));
    if (found != registers_.end()) return found->second;
    Fail(fmt::format("no register {}", name));
    return -1;
  }

  Operand ParseOperand() {
    Operand o = ParseSimple();
    if (!TakeIf("|")) return o;
    Operand pair;
    pair.kind = Operand::Kind::kPair;
    pair.parts = {o, ParseSimple()};
    return pair;
  }

  Operand ParseSimple() {
    Operand o;
    if (TakeIf("!")) o.negated = true;
    if (TakeIf("[")) return ParseAddress();
    if (TakeIf("{")) {
      o.kind = Operand::Kind::kVector;
      do o.parts.push_back(ParseSimple());
      while (ok() && TakeIf(","));
      Expect("}");
      return o;
    }
    const bool minus = Peek() == "-";
    const std::string_view word =
        minus && at_ + 1 < tokens_.size() ? tokens_[at_ + 1].text : Peek();
    if (minus || std::isdigit(static_cast<unsigned char>(word.empty() ? 'x' : word[0])) != 0) {
      o.kind = Operand::Kind::kImmediate;
      if (word.starts_with("0f") || word.starts_with("0d")) {
        o.bits = ParseNumber(Take());
      } else {
        o.bits = static_cast<uint64_t>(TakeInteger());
      }
      return o;
    }
    o.name = std::string(Take());
    const auto found = registers_.find(o.name);
    if (found != registers_.end()) {
      o.kind = Operand::Kind::kRegister;
      o.reg = found->second;
    } else if (o.name == "_") {
      o.kind = Operand::Kind::kSink;
    } else if (o.name.starts_with("%")) {
      o.kind = Operand::Kind::kSpecial;
      if (!IsSpecial(o.name)) Fail(fmt::format("no register {}", o.name));
    } else {
      o.kind = Operand::Kind::kSymbol;  // or a label, see ResolveLabels
      if (TakeIf("+")) o.offset = TakeInteger();
    }
    return o;
  }

  Operand ParseAddress() {
    Operand o;
    o.kind = Operand::Kind::kAddress;
    o.name = std::string(Take());
    const auto found = registers_.find(o.name);
    if (found != registers_.end()) o.reg = found->second;
    if (TakeIf("+")) o.offset = TakeInteger();
    if (TakeIf(",")) o.parts.push_back(ParseSimple());  // of a tensor's map: {column, row}
    Expect("]");
    return o;
  }

  uint64_t ParseNumber(std::string_view word) {
    if (word == "-") return ~ParseNumber(Take()) + 1;
    const bool typed = word.starts_with("0f") || word.starts_with("0d");
    const bool hex = typed || word.starts_with("0x");
    const std::string_view digits = hex ? word.substr(2) : word;
    uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
    if (error != std::errc() || end != digits.data() + digits.size())
      Fail(fmt::format("'{}' is not a number", word));
    return value;
  }

  void ResolveLabels() {
    for (Instruction& in : kernel_.body) {
      if (in.opcode != "bra") continue;
      Operand& o = in.operands[0];
      const auto found = labels_.find(o.name);
      if (found == labels_.end()) return Fail(fmt::format("no label {}", o.name));
      o.kind = Operand::Kind::kLabel;
      o.target = found->second;
    }
  }

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  std::string error_;
  Program program_;
  Kernel kernel_;
  std::map<std::string, int> registers_;
  std::map<std::string, int> labels_;
};

}  // namespace

absl::StatusOr<Program> ParsePtx(std::string_view text) { return Parser(text).Parse(); }

}  // namespace hone::ptx
