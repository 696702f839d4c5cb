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

struct ViewOptions {
  std::string path;
  std::string output;              // where the page goes; empty: to the browser
  bool no_open = false;            // only write it
  std::vector<std::string> sizes;  // "s0=64": for costs
};
int view(const ViewOptions& options);

struct TrainOptions {
  std::string path;
  std::vector<std::string> inputs;
  bool example = false;
  std::string target;  // a file with what the first result should be
  std::string loss = "mse", optimizer = "sgd";
  double rate = 0.01;
  int steps = 10;
  std::string output;  // where the trained program goes
};
int train(const TrainOptions& options);

int decompose_file(const std::string& from, const std::string& to, bool keep_composites);
int diff(const std::string& first, const std::string& second);
int convert(const std::string& from, const std::string& to, const std::vector<std::string>& inputs);
/// A TorchScript archive as a program, for inputs like these: files, or looks such as float32[batch=2,3,224,224].
int convert_torchscript(const std::string& from, const std::string& to, const std::vector<std::string>& inputs);

/// A command as a shell completes it.
struct CommandWords {
  std::string name, description;
  std::vector<std::string> options;  // "--input"
};
int completion(const std::string& shell, const std::vector<CommandWords>& commands);

}  // namespace umbra::cli
