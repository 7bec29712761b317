#include "client/next_command.h"

#include "fmt/format.h"

#include "base/shell_word.h"
#include "client/model_loader.h"

namespace hone::client {

std::string CompileLine(const Arguments& arguments, const ir::Target& target,
                        const std::string& from) {
  const std::string& model = arguments.Text("MODEL");
  std::string line = "hone compile " + ShellWord(model);
  for (const char* name : {"dim", "shape", "bind", "cut"}) {
    for (const std::string& value : arguments.List(name))
      line += fmt::format(" --{} {}", name, ShellWord(value));
  }
  if (arguments.GivenOnLine("target") || arguments.GivenOnLine("threads"))
    line += " --target " + ShellWord(target.text);
  for (const char* name : {"batch", "accuracy", "precision"}) {
    if (arguments.GivenOnLine(name))
      line += fmt::format(" --{} {}", name, ShellWord(arguments.Text(name)));
  }
  if (!from.empty()) line += " " + from;
  return line + " -o " + ShellWord(ModelName(model) + ".hone");
}

}  // namespace hone::client
