// Completion of commands and files by the shells.
#include <cstdio>

#include "commands.h"

namespace umbra::cli {

int completion(const std::string& shell, const std::vector<std::string>& commands) {
  std::string words;
  for (const std::string& command : commands) words += (words.empty() ? "" : " ") + command;
  if (shell == "bash") {
    std::printf(
        "_umbra() {\n  local word=${COMP_WORDS[COMP_CWORD]}\n"
        "  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W '%s' -- \"$word\"))\n"
        "  else COMPREPLY=($(compgen -f -- \"$word\")); fi\n}\ncomplete -o filenames -F _umbra umbra\n",
        words.c_str());
  } else if (shell == "zsh") {
    std::printf("#compdef umbra\n_arguments '1:command:(%s)' '*:file:_files'\n", words.c_str());
  } else {
    std::printf("complete -c umbra -n __fish_use_subcommand -a '%s'\n", words.c_str());
  }
  return 0;
}

}  // namespace umbra::cli
