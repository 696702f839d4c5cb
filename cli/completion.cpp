// Completion of commands, options and files by the shells.
#include <cstdio>

#include "commands.h"

namespace umbra::cli {

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

/// Inside of single quotes.
std::string quoted(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out;
}

void complete_bash(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const CommandWords& c : commands) names.push_back(c.name);
  std::printf(
      "_umbra() {\n  local word=${COMP_WORDS[COMP_CWORD]} options=\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W '%s --help --version' -- \"$word\")); return; fi\n"
      "  case ${COMP_WORDS[1]} in\n",
      joined(names).c_str());
  for (const CommandWords& c : commands)
    std::printf("    %s) options='%s' ;;\n", c.name.c_str(), joined(c.options).c_str());
  std::printf(
      "  esac\n  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
      "  else COMPREPLY=($(compgen -f -- \"$word\")); fi\n}\ncomplete -o filenames -F _umbra umbra\n");
}

void complete_zsh(const std::vector<CommandWords>& commands) {
  std::printf("#compdef umbra\n_umbra() {\n  local -a commands=(\n");
  for (const CommandWords& c : commands) std::printf("    '%s:%s'\n", c.name.c_str(), quoted(c.description).c_str());
  std::printf("  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  case $words[2] in\n");
  for (const CommandWords& c : commands)
    std::printf("    %s) _arguments '*:file:_files' %s ;;\n", c.name.c_str(), joined(c.options).c_str());
  std::printf("  esac\n}\ncompdef _umbra umbra\n");
}

void complete_fish(const std::vector<CommandWords>& commands) {
  for (const CommandWords& c : commands) {
    std::printf("complete -c umbra -n __fish_use_subcommand -a '%s' -d '%s'\n", c.name.c_str(),
                quoted(c.description).c_str());
    for (const std::string& option : c.options)
      std::printf("complete -c umbra -n '__fish_seen_subcommand_from %s' -l '%s'\n", c.name.c_str(),
                  option.substr(2).c_str());
  }
}

}  // namespace

int completion(const std::string& shell, const std::vector<CommandWords>& commands) {
  if (shell == "bash") complete_bash(commands);
  else if (shell == "zsh") complete_zsh(commands);
  else complete_fish(commands);
  return 0;
}

}  // namespace umbra::cli
