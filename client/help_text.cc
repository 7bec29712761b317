#include "client/help_text.h"

#include <span>
#include <vector>

#include "fmt/format.h"

#include "base/versions.h"
#include "client/exit_code.h"

namespace hone::client {
namespace {

constexpr size_t kColumns = 100;

/// `text` in lines of at most kColumns; paragraphs (empty lines) are kept; every line but the first
/// is indented.
std::string Wrap(std::string_view text, size_t first_column, size_t indent) {
  std::string out;
  size_t column = first_column;
  size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '\n') {
      out += '\n';
      column = 0;
      ++at;
      continue;
    }
    if (text[at] == ' ') {
      ++at;
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (column > indent && column + 1 + word.size() > kColumns) {
      out += '\n';
      column = 0;
    }
    if (column == 0) {
      out += std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    at = end;
  }
  return out;
}

std::string Synopsis(const CommandSpec& command) {
  std::string text = fmt::format("hone {}", command.name);
  for (const PositionalSpec& positional : command.positionals) {
    text += positional.required ? fmt::format(" {}", positional.name)
                                : fmt::format(" [{}]", positional.name);
    if (positional.repeated) text += fmt::format(" [{}...]", positional.name);
  }
  for (const OptionSpec& option : command.options) {
    if (option.required) text += fmt::format(" --{} {}", option.name, option.argument);
  }
  return text + " [options]";
}

std::string OptionNames(const OptionSpec& option) {
  std::string text = option.letter == '\0' ? "    " : fmt::format("-{}, ", option.letter);
  text += fmt::format("--{}", option.name);
  if (!option.argument.empty()) text += fmt::format(" {}", option.argument);
  return text;
}

std::string OptionHelp(const OptionSpec& option) {
  std::string text(option.help);
  if (!option.choices.empty()) text += fmt::format(": {}", option.choices);
  if (option.repeated) text += "; may be repeated";
  if (!option.default_words.empty()) {
    text += fmt::format(" (default: {})", option.default_words);
  } else if (!option.default_text.empty()) {
    text += fmt::format(" (default: {})", option.default_text);
  }
  return text;
}

std::string PositionalHelp(const PositionalSpec& positional) {
  std::string text(positional.help);
  if (!positional.choices.empty()) {
    text += ": ";
    for (const char c : positional.choices)
      text += c == '|' ? std::string(", ") : std::string(1, c);
  }
  return text;
}

/// "  names    help", the help starting in column 30.
std::string Row(const std::string& names, const std::string& help) {
  constexpr size_t kIndent = 30;
  std::string text = fmt::format("  {}", names);
  if (text.size() + 2 > kIndent) {
    text += '\n' + std::string(kIndent, ' ');
  } else {
    text += std::string(kIndent - text.size(), ' ');
  }
  return text + Wrap(help, kIndent, kIndent) + '\n';
}

using Options = std::vector<const OptionSpec*>;

/// A command's options, in the table's order: those for which a farm must be asked stand apart.
struct OptionGroups {
  Options own, of_server;
};
OptionGroups GroupOptions(const CommandSpec& command) {
  OptionGroups groups;
  for (const std::span<const OptionSpec> options : {command.options, CommonOptions()}) {
    for (const OptionSpec& option : options) {
      (option.of_server ? groups.of_server : groups.own).push_back(&option);
    }
  }
  return groups;
}
constexpr std::string_view kOfServer = "Asking a farm (with --server)";

/// roff needs its control characters escaped.
std::string Roff(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    line_start = c == '\n';
  }
  return out;
}

std::string RoffParagraphs(std::string_view text) {
  std::string out = ".PP\n";
  while (!text.empty()) {
    const size_t end = text.find("\n\n");
    out += Roff(text.substr(0, end)) + '\n';
    if (end == std::string_view::npos) break;
    out += ".PP\n";
    text.remove_prefix(end + 2);
  }
  return out;
}

std::string RoffItem(const std::string& term, const std::string& text) {
  return fmt::format(".TP\n.B {}\n{}\n", Roff(term), Roff(text));
}

std::string ManHeader(const std::string& title, std::string_view summary) {
  return fmt::format(".TH {} 1 \"\" \"Hone {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
                     Roff(title), kProgramVersion, Roff(title), Roff(summary));
}

std::string ExitStatusSection() {
  std::string text = ".SH EXIT STATUS\n";
  for (int i = 0; i < kNumExitCodes; ++i) {
    text += RoffItem(std::to_string(i), std::string(ExitCodeMeaning(static_cast<ExitCode>(i))));
  }
  return text;
}

constexpr std::string_view kProgramSummary = "makes neural networks fast by search";

std::string OverviewPage() {
  std::string page = ManHeader("hone", kProgramSummary);
  page += ".SH SYNOPSIS\n.B hone\n.I COMMAND\n[arguments]\n.SH COMMANDS\n";
  for (const CommandSpec& command : Commands()) {
    page += RoffItem(fmt::format("hone {}", command.name), std::string(command.summary));
  }
  page +=
      ".SH FILES\n" +
      RoffItem("$XDG_CONFIG_HOME/hone/config.toml",
               "Values for options, under the options' own names: before the first table for every "
               "command, in a table [COMMAND] for one. The command line wins. Unknown keys are "
               "refused, and those that name a file to write.");
  return page + ExitStatusSection();
}

}  // namespace

std::string ProgramHelp() {
  std::string text = fmt::format("Hone {} {}.\n\nUsage: hone COMMAND [arguments]\n\nCommands:\n",
                                 kProgramVersion, kProgramSummary);
  for (const CommandSpec& command : Commands()) {
    text += Row(std::string(command.name), std::string(command.summary));
  }
  text += "\nOptions:\n" + Row("-h, --help", "Print this help and exit") +
          Row("    --version", "Print every version number and exit; with --json as JSON");
  text += "\n`hone help COMMAND` says more about one.\n";
  return text;
}

std::string FirstHelp() {
  return fmt::format("Hone {} {}.\n\nUsage: hone COMMAND [arguments]\n\nTo begin:\n",
                     kProgramVersion, kProgramSummary) +
         Row("hone zoo resnet18", "Write a well-known network to try with: resnet18.onnx") +
         Row("hone tune resnet18.onnx", "Search for fast schedules; every result goes into a log") +
         Row("hone compile resnet18.onnx", "Write resnet18.hone from the best in the log") +
         Row("hone bench resnet18.hone", "Time it") +
         Row("hone doctor", "Check whether this machine measures well") +
         "\n`hone --help` lists every command, `hone help COMMAND` explains one.\n";
}

std::string CommandHelp(const CommandSpec& command) {
  std::string text = fmt::format("{}.\n\nUsage: {}\n\n", command.summary, Synopsis(command));
  text += Wrap(command.description, 0, 0) + "\n";
  if (!command.positionals.empty()) text += "\nArguments:\n";
  for (const PositionalSpec& positional : command.positionals) {
    text += Row(std::string(positional.name), PositionalHelp(positional));
  }
  const OptionGroups groups = GroupOptions(command);
  text += "\nOptions:\n";
  for (const OptionSpec* option : groups.own) {
    text += Row(OptionNames(*option), OptionHelp(*option));
  }
  if (!groups.of_server.empty()) text += fmt::format("\n{}:\n", kOfServer);
  for (const OptionSpec* option : groups.of_server) {
    text += Row(OptionNames(*option), OptionHelp(*option));
  }
  return text + fmt::format("\nExample:\n  {}\n", command.example);
}

std::string ManPage(const CommandSpec* command) {
  if (command == nullptr) return OverviewPage();
  std::string page = ManHeader(fmt::format("hone-{}", command->name), command->summary);
  page += fmt::format(".SH SYNOPSIS\n.B {}\n.SH DESCRIPTION\n", Roff(Synopsis(*command)));
  page += RoffParagraphs(command->description);
  if (!command->positionals.empty()) page += ".SH ARGUMENTS\n";
  for (const PositionalSpec& positional : command->positionals) {
    page += RoffItem(std::string(positional.name), PositionalHelp(positional));
  }
  const OptionGroups groups = GroupOptions(*command);
  const auto add = [&page](const Options& options) {
    for (const OptionSpec* option : options) {
      std::string names = OptionNames(*option);
      names.erase(0, names.find_first_not_of(' '));
      page += RoffItem(names, OptionHelp(*option));
    }
  };
  page += ".SH OPTIONS\n";
  add(groups.own);
  if (!groups.of_server.empty()) page += fmt::format(".SS {}\n", Roff(kOfServer));
  add(groups.of_server);
  page += fmt::format(".SH EXAMPLE\n.nf\n{}\n.fi\n", Roff(command->example));
  return page + ".SH SEE ALSO\n.BR hone (1)\n";
}

}  // namespace hone::client
