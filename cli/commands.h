// What the commands of `umbra` do. Each gives the exit status: 0, or 1 where the answer is no.
#pragma once

#include <string>
#include <vector>

#include "umbra/umbra.h"

namespace umbra::cli {

int info(const std::string& path);
int show(const std::string& path, bool as_graph);
int weights(const std::string& path);
int check_files(const std::vector<std::string>& paths);
int list_operators(const std::string& text);
/// What definitions have, in columns parted by tabs.
int list_facts(const std::string& text);

struct RunOptions {
  std::string path;
  std::vector<std::string> inputs;  // files and numbers
  bool example = false;             // the inputs that the program was saved with
  std::string expected;             // a file that outputs are compared with
  double tolerance = 1e-4;
  std::string output;  // a file for outputs
  int repeat = 1;
  bool profile = false;
};
int run(const RunOptions& options);

int decompose_file(const std::string& from, const std::string& to, bool keep_composites);
int diff(const std::string& first, const std::string& second);
int convert(const std::string& from, const std::string& to);
int completion(const std::string& shell, const std::vector<std::string>& commands);

}  // namespace umbra::cli
