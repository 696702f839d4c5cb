// `umbra view`: a program as a page in the browser.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "commands.h"
#include "files.h"
#include "umbra/io/file.h"
#include "umbra/view/page.h"

extern char** environ;

namespace umbra::cli {

namespace {

/// Asks the desktop to show a file; false where there is none or it does not know how.
bool open_in_browser(const std::string& path) {
  if (!std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY")) return false;
  std::string command = "xdg-open", argument = path;
  char* arguments[] = {command.data(), argument.data(), nullptr};
  pid_t child;
  int status = 0;
  return posix_spawnp(&child, command.c_str(), nullptr, nullptr, arguments, environ) == 0 &&
         waitpid(child, &status, 0) == child && status == 0;
}

/// Beside nothing of the user's: where pages go that nobody named.
std::string temporary_page(const std::string& path) {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("umbra-view-" + std::to_string(getuid()));
  std::filesystem::create_directories(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  return (folder / std::filesystem::path(path).filename()).replace_extension(".html").string();
}

}  // namespace

int view(const ViewOptions& options) {
  bool named = !options.output.empty();
  if (named) check_place(options.output);
  ExportedProgram program = load_program(options.path);
  std::string page = named ? options.output : temporary_page(options.path);
  io::save_file(page, program_page(program, {.title = std::filesystem::path(options.path).filename().string(),
                                             .sizes = options.sizes}));
  std::printf("%s\n", page.c_str());
  if (!named && !options.no_open && !open_in_browser(page))
    std::fprintf(stderr, "umbra: there is no desktop here; open the page in a browser\n");
  return 0;
}

}  // namespace umbra::cli
