#include "client/completion.h"

#include <string_view>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "client/option_table.h"

namespace hone::client {
namespace {

std::vector<OptionSpec> AllOptions(const CommandSpec& command) {
  std::vector<OptionSpec> options(command.options.begin(), command.options.end());
  options.insert(options.end(), CommonOptions().begin(), CommonOptions().end());
  return options;
}

std::string CommandNames() {
  std::vector<std::string_view> names;
  for (const CommandSpec& command : Commands()) names.push_back(command.name);
  return fmt::format("{}", fmt::join(names, " "));
}

/// What follows `--option ` in bash: words, file names, or nothing.
std::string BashValue(ValueKind kind, std::string_view choices) {
  if (kind == ValueKind::kFile)
    return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\"))";
  if (kind == ValueKind::kChoice) {
    return fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))",
                       fmt::join(SplitChoices(choices), " "));
  }
  return "COMPREPLY=()";
}

/// The place of a positional is told by the words before it that are neither options nor values.
std::string BashPositionals(const CommandSpec& command, const std::string& valued) {
  if (command.positionals.empty()) return "COMPREPLY=()";
  std::string text = fmt::format("_hone_place \"{} \"\n      case $place in\n", valued);
  int place = 0;
  for (const PositionalSpec& positional : command.positionals) {
    text += fmt::format("        {}) {} ;;\n",
                        positional.repeated ? std::string("*") : std::to_string(place++),
                        BashValue(positional.kind, positional.choices));
  }
  return text + "      esac";
}

std::string BashCommand(const CommandSpec& command) {
  std::string values, words, valued;
  for (const OptionSpec& option : AllOptions(command)) {
    words += fmt::format(" --{}", option.name);
    if (option.kind == ValueKind::kFlag) continue;
    std::string pattern = fmt::format("--{}", option.name);
    valued += fmt::format(" --{}", option.name);
    if (option.letter != '\0') {
      pattern += fmt::format("|-{}", option.letter);
      valued += fmt::format(" -{}", option.letter);
    }
    values +=
        fmt::format("        {}) {}; return ;;\n", pattern, BashValue(option.kind, option.choices));
  }
  return fmt::format(
      "    {})\n      case \"$previous\" in\n{}      esac\n"
      "      if [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return; fi\n"
      "      {} ;;\n",
      command.name, values, words.substr(1), BashPositionals(command, valued));
}

/// Square brackets and colons end a description in zsh.
std::string ZshQuote(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshValue(ValueKind kind, std::string_view choices) {
  if (kind == ValueKind::kFile) return "_files";
  if (kind == ValueKind::kChoice) return fmt::format("({})", fmt::join(SplitChoices(choices), " "));
  return " ";
}

std::string ZshCommand(const CommandSpec& command) {
  std::string text = fmt::format("    {})\n      _arguments", command.name);
  for (const OptionSpec& option : AllOptions(command)) {
    std::string value;
    if (option.kind != ValueKind::kFlag) {
      value =
          fmt::format(":{}:{}", ZshQuote(option.argument), ZshValue(option.kind, option.choices));
    }
    const char* star = option.repeated ? "*" : "";
    text +=
        fmt::format(" \\\n        '{}--{}[{}]{}'", star, option.name, ZshQuote(option.help), value);
    if (option.letter != '\0') {
      text += fmt::format(" \\\n        '{}-{}[{}]{}'", star, option.letter, ZshQuote(option.help),
                          value);
    }
  }
  for (const PositionalSpec& positional : command.positionals) {
    text += fmt::format(" \\\n        '{}{}:{}'",
                        positional.repeated   ? "*:"
                        : positional.required ? ":"
                                              : "::",
                        ZshQuote(positional.name), ZshValue(positional.kind, positional.choices));
  }
  return text + " ;;\n";
}

std::string FishQuote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

/// -x: takes a value that is no file; -r -F: one that is, although the script turned files off.
std::string FishValue(ValueKind kind, std::string_view choices) {
  if (kind == ValueKind::kFlag) return "";
  if (kind == ValueKind::kFile) return " -r -F";
  if (kind != ValueKind::kChoice) return " -x";
  return fmt::format(" -x -a {}",
                     FishQuote(fmt::format("{}", fmt::join(SplitChoices(choices), " "))));
}

std::string FishCommand(const CommandSpec& command) {
  std::string text = fmt::format("complete -c hone -n __fish_use_subcommand -a {} -d {}\n",
                                 command.name, FishQuote(command.summary));
  const std::string line = fmt::format("complete -c hone -n '__hone_command {}'", command.name);
  for (const OptionSpec& option : AllOptions(command)) {
    text += fmt::format("{} -l {}", line, option.name);
    if (option.letter != '\0') text += fmt::format(" -s {}", option.letter);
    text +=
        fmt::format("{} -d {}\n", FishValue(option.kind, option.choices), FishQuote(option.help));
  }
  // fish does not count places: what any of them takes is offered at each.
  for (const PositionalSpec& positional : command.positionals) {
    if (positional.kind == ValueKind::kFile) text += line + " -F\n";
    if (positional.kind == ValueKind::kChoice) {
      text += fmt::format(
          "{} -a {}\n", line,
          FishQuote(fmt::format("{}", fmt::join(SplitChoices(positional.choices), " "))));
    }
  }
  return text;
}

}  // namespace

std::string BashCompletion() {
  std::string text = fmt::format(
      "# bash completion for hone; made by `hone completion bash`\n"
      "# Sets place to the number of arguments before the word; $1 names the options with values.\n"
      "_hone_place() {{\n"
      "  local i\n"
      "  place=0\n"
      "  for ((i = 2; i < COMP_CWORD; ++i)); do\n"
      "    if [[ $1 == *\" ${{COMP_WORDS[i]}} \"* ]]; then\n"
      "      ((++i))\n"
      "      [[ ${{COMP_WORDS[i]}} == = ]] && ((++i))\n"
      "    elif [[ ${{COMP_WORDS[i]}} != -* ]]; then\n"
      "      ((++place))\n"
      "    fi\n"
      "  done\n"
      "}}\n"
      "_hone() {{\n"
      "  local place\n"
      "  COMPREPLY=()\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" previous=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  if [[ $COMP_CWORD == 1 ]]; then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\")); return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n",
      CommandNames());
  for (const CommandSpec& command : Commands()) text += BashCommand(command);
  return text + "  esac\n}\ncomplete -F _hone hone\n";
}

std::string ZshCompletion() {
  std::string text =
      "#compdef hone\n"
      "# zsh completion for hone; made by `hone completion zsh`\n"
      "_hone() {\n"
      "  local line state\n"
      "  if (( CURRENT == 2 )); then\n"
      "    local -a commands\n    commands=(\n";
  for (const CommandSpec& command : Commands()) {
    text += fmt::format("      '{}:{}'\n", command.name, ZshQuote(command.summary));
  }
  text +=
      "    )\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n"
      "  words=(\"hone $words[2]\" \"${(@)words[3,-1]}\")\n"
      "  (( CURRENT -= 1 ))\n"
      "  case $command in\n";
  for (const CommandSpec& command : Commands()) text += ZshCommand(command);
  return text +
         "  esac\n}\nif [[ $funcstack[1] == _hone ]]; then _hone \"$@\"; else compdef _hone hone; "
         "fi\n";
}

std::string FishCompletion() {
  std::string text =
      "# fish completion for hone; made by `hone completion fish`\n"
      // fish's own condition takes every word of the line for a command.
      "function __hone_command\n"
      "    set -l words (commandline -opc)\n"
      "    test (count $words) -gt 1; and test $words[2] = $argv[1]\n"
      "end\n"
      "complete -c hone -f\n"
      "complete -c hone -n __fish_use_subcommand -l version -d 'Print every version number'\n";
  for (const CommandSpec& command : Commands()) text += FishCommand(command);
  return text;
}

}  // namespace hone::client
